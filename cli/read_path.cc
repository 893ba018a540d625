#include "cli/read_path.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace heddle::cli {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kChunk = std::size_t{1} << 20;
// What editors of Windows put before a text in UTF-8: no part of it, and few formats know it.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

base::Result<std::string> ReadPath(const std::string& path) {
  if (path.empty()) return base::Fail(base::Code::kInvalid, "\"\" names no file");
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  const auto failed = [&path] {
    if (errno == EISDIR) {
      return base::Fail(base::Code::kInvalid, path + " cannot be read: Is a directory; name the files in it");
    }
    return base::Fail(base::Code::kNotFound, path + " cannot be read: " + std::strerror(errno));
  };
  if (file == nullptr) return failed();
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kChunk);
    const std::size_t got = std::fread(text.data() + before, 1, kChunk, file.get());
    text.resize(before + got);
    if (text.size() > kMaxBytes) {
      return base::Fail(base::Code::kTooLarge, path + " is larger than 1 GiB, the most that is read");
    }
    if (got == kChunk) continue;
    if (std::ferror(file.get()) != 0) return failed();
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    return text;
  }
}

}  // namespace heddle::cli
