#include "nodeagent/health/kept_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMost = 1024;
constexpr std::size_t kMaxText = 4096;  // a page is all that an attribute of sysfs can say

// A file on disk that was deleted, or in whose place another was put, has no name any more. sysfs has an error for it.
bool IsRegularWithName(int descriptor) {
  struct stat about {};
  return ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink > 0;
}

}  // namespace

std::size_t MostKeptFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? kMost : std::min<std::size_t>(limit.rlim_cur / 2, kMost);
}

KeptFile::KeptFile(KeptFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), kept_(std::exchange(other.kept_, nullptr)) {}

KeptFile& KeptFile::operator=(KeptFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(kept_, other.kept_);
  return *this;
}

void KeptFile::Close() {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  --*std::exchange(kept_, nullptr);
}

std::optional<std::string> KeptFile::Read(const std::string& root, const std::string& path, std::size_t& kept,
                                          std::size_t most) {
  if (descriptor_ >= 0 && !IsRegularWithName(descriptor_)) Close();
  for (const bool fresh : {descriptor_ < 0, true}) {
    if (fresh) {
      Close();
      if (kept >= most) return std::nullopt;
      // Without O_NONBLOCK the mere opening of a named pipe waits until somebody writes.
      descriptor_ = ::open(fmt::format("{}/{}", root, path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      if (descriptor_ < 0) return std::nullopt;
      kept_ = &kept;
      ++kept;
      if (!IsRegularWithName(descriptor_)) break;
    }
    std::array<char, kMaxText> text;
    ssize_t count = -1;
    do {
      count = ::pread(descriptor_, text.data(), text.size(), 0);
    } while (count < 0 && errno == EINTR);
    if (count >= 0 && std::size_t(count) < text.size()) {
      std::size_t size = std::size_t(count);
      while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' ' || text[size - 1] == '\0')) --size;
      return std::string(text.data(), size);
    }
    if (fresh || count >= 0) break;
  }
  Close();
  return std::nullopt;
}

}  // namespace heddle::nodeagent
