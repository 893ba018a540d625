#include "base/write_all.h"

#include <cerrno>
#include <cstring>

namespace heddle::base {

Status WriteAll(const std::string& text, std::FILE* standard_output) {
  const bool written = std::fwrite(text.data(), 1, text.size(), standard_output) == text.size();
  if (written && std::fflush(standard_output) == 0) return {};
  return Fail(Code::kInternal, std::string("standard output cannot be written: ") + std::strerror(errno));
}

}  // namespace heddle::base
