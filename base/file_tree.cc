#include "base/file_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace heddle::base {
namespace {

constexpr std::size_t kMaxFileBytes = 4 << 20;
constexpr std::size_t kMaxNames = 1 << 16;

Code CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:  // what a file of sysfs says whose device goes while it is read
      return Code::kNotFound;
    case EACCES:
    case EPERM:
      return Code::kForbidden;
    // How sysfs says that there is no such value now: the speed of a link that is down, an unused GID.
    case EINVAL:
    case EOPNOTSUPP:
    case ENAMETOOLONG:
      return Code::kInvalid;
    default:
      return Code::kUnavailable;
  }
}

Error FromErrno(int error, std::string_view path) {
  return Error{CodeOf(error), fmt::format("{}: {}", path, std::strerror(error)), std::nullopt};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool HasParentPart(std::string_view path) {
  for (std::size_t at = path.find(".."); at != std::string_view::npos; at = path.find("..", at + 1)) {
    const bool begins = at == 0 || path[at - 1] == '/';
    const bool ends = at + 2 == path.size() || path[at + 2] == '/';
    if (begins && ends) return true;
  }
  return false;
}

// Lies in a folder, and reading waits for somebody who writes. One without a name was handed to us by whoever
// started us, as in `--kubeconfig <(command)`.
bool HasName(int pipe) {
  constexpr auto kPipeFs = 0x50495045;  // PIPEFS_MAGIC of linux/magic.h
  struct statfs system {};
  return ::fstatfs(pipe, &system) != 0 || system.f_type != kPipeFs;
}

}  // namespace

DiskFileTree::DiskFileTree(std::string root) : root_(std::move(root)) {}

// As a person would type it. Of a recorded machine it stays as on that machine, wherever the recording lies.
std::string DiskFileTree::Shown(std::string_view path) const {
  return root_ == "/" && !path.starts_with('/') ? fmt::format("/{}", path) : std::string(path);
}

Result<std::string> DiskFileTree::Resolve(std::string_view path) const {
  if (HasParentPart(path)) return Fail(Code::kInvalid, fmt::format("{}: a path may not contain \"..\"", path));
  return fmt::format("{}/{}", root_, path);
}

Result<std::string> DiskFileTree::Read(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::string full, Resolve(path));
  // Without O_NONBLOCK the mere opening of a named pipe waits until somebody writes.
  const Descriptor file(::open(full.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Fail(FromErrno(errno, Shown(path)));
  struct stat about {};
  const bool known = ::fstat(file.get(), &about) == 0;
  if (known && S_ISFIFO(about.st_mode)) {
    if (HasName(file.get()))
      return Fail(Code::kUnavailable, fmt::format("{}: a named pipe and no file", Shown(path)));
    (void)::fcntl(file.get(), F_SETFL, 0);
  }
  // Of a file on disk and of a text of sysfs, which says a page, less than was asked for is all there is: thousands
  // of counters are read this way. procfs, which says 0, may give a part.
  const bool sized = known && S_ISREG(about.st_mode) && about.st_size > 0;
  std::string content;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(FromErrno(errno, Shown(path)));
    if (count == 0) return content;
    if (content.size() + std::size_t(count) > kMaxFileBytes) {
      return Fail(Code::kTooLarge, fmt::format("{}: over {} bytes", Shown(path), kMaxFileBytes));
    }
    content.append(buffer.data(), std::size_t(count));
    if (sized && std::size_t(count) < buffer.size()) return content;
  }
}

Result<std::vector<std::string>> DiskFileTree::List(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::string full, Resolve(path));
  std::error_code error;
  std::filesystem::directory_iterator entries(full, error);
  if (error) return Fail(FromErrno(error.value(), Shown(path)));
  std::vector<std::string> names;
  for (const auto end = std::filesystem::directory_iterator{}; entries != end; entries.increment(error)) {
    if (names.size() >= kMaxNames)
      return Fail(Code::kTooLarge, fmt::format("{}: over {} entries", Shown(path), kMaxNames));
    names.push_back(entries->path().filename().string());
  }
  // An increment that fails also ends the loop.
  if (error) return Fail(FromErrno(error.value(), Shown(path)));
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> DiskFileTree::ReadLink(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::string full, Resolve(path));
  std::error_code error;
  const auto target = std::filesystem::read_symlink(full, error);
  if (error) return Fail(FromErrno(error.value(), Shown(path)));
  return target.string();
}

Result<std::string> ReadTrimmed(const FileTree& files, std::string_view path) {
  ASSIGN_OR_RETURN(std::string text, files.Read(path));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text;
}

}  // namespace heddle::base
