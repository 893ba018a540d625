#include "cli/write_path.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::cli {

base::Status WritePath(const std::string& path, const std::string& text) {
  const auto failed = [&path] {
    return base::Fail(base::Code::kInternal, path + " cannot be written: " + std::strerror(errno));
  };
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return failed();
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  // What the disk had no room for is known when the file is closed.
  if (std::fclose(file) != 0 || !written) return failed();
  return {};
}

}  // namespace heddle::cli
