#include "cli/read_path.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

namespace heddle::cli {

base::Result<std::string> ReadPath(const std::string& path) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr)
    return base::Fail(base::Code::kNotFound, path + " cannot be read: " + std::strerror(errno));
  std::string text;
  if (std::fseek(file, 0, SEEK_END) == 0) {
    const long size = std::ftell(file);
    if (size > 0 && size < std::numeric_limits<long>::max()) text.reserve(std::size_t(size) + kPiece);
    std::rewind(file);
  }
  std::size_t read = 0;
  do {
    text.resize(text.size() + kPiece);
    read = std::fread(text.data() + text.size() - kPiece, 1, kPiece, file);
    text.resize(text.size() - kPiece + read);
  } while (read == kPiece);
  const int error = std::ferror(file) != 0 ? errno : 0;
  if (file != stdin) std::fclose(file);
  if (error != 0) return base::Fail(base::Code::kNotFound, path + " cannot be read: " + std::strerror(error));
  return text;
}

}  // namespace heddle::cli
