#include "nodeagent/qos/setting_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace heddle::nodeagent {
namespace {

base::Error FromErrno(int error, std::string_view path) {
  const auto code = [error] {
    switch (error) {
      case ENOENT:
      case ENOTDIR:
        return base::Code::kNotFound;
      case EACCES:
      case EPERM:
      case EROFS:
        return base::Code::kForbidden;
      case EINVAL:
      case ERANGE:
      case E2BIG:
        return base::Code::kInvalid;
      case EOPNOTSUPP:
        return base::Code::kUnimplemented;
      case EEXIST:
        return base::Code::kAlreadyExists;
      default:
        return base::Code::kUnavailable;
    }
  }();
  return base::Error{code,
                     fmt::format("{}: {}", path, std::error_code(error, std::generic_category()).message()),
                     std::nullopt};
}

}  // namespace

base::Status SettingFiles::Write(std::string_view path, std::string_view text) const {
  const std::string file = fmt::format("{}/{}", root_, path);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return base::Fail(FromErrno(errno, path));
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  const int error = written < 0 ? errno : written == ssize_t(text.size()) ? 0 : EIO;
  (void)::close(descriptor);
  if (error != 0) return base::Fail(FromErrno(error, fmt::format("{}: \"{}\"", path, text)));
  return {};
}

base::Status SettingFiles::MakeFolder(std::string_view path) const {
  if (::mkdir(fmt::format("{}/{}", root_, path).c_str(), 0755) == 0) return {};
  // configfs: there is no device of this name.
  return base::Fail(FromErrno(errno == ENODEV || errno == EINVAL ? ENOENT : errno, path));
}

base::Status SettingFiles::RemoveFolder(std::string_view path) const {
  if (::rmdir(fmt::format("{}/{}", root_, path).c_str()) == 0) return {};
  return base::Fail(FromErrno(errno, path));
}

}  // namespace heddle::nodeagent
