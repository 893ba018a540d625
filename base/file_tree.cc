#include "base/file_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace heddle::base {
namespace {

constexpr std::size_t kMaxFileBytes = 4 << 20;

Error FromErrno(int error, std::string_view path) {
  const Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound
                    : error == EACCES || error == EPERM ? Code::kForbidden
                                                        : Code::kUnavailable;
  return Error{code, fmt::format("{}: {}", path, std::strerror(error)), std::nullopt};
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

}  // namespace

DiskFileTree::DiskFileTree(std::string root) : root_(std::move(root)) {}

// As a person would type it. Of a recorded machine it stays as on that machine, wherever the recording lies.
std::string DiskFileTree::Shown(std::string_view path) const {
  return root_ == "/" && !path.starts_with('/') ? fmt::format("/{}", path) : std::string(path);
}

Result<std::string> DiskFileTree::Resolve(std::string_view path) const {
  for (const auto& part : std::filesystem::path(path)) {
    if (part == "..") return Fail(Code::kInvalid, fmt::format("{}: a path may not contain \"..\"", path));
  }
  return fmt::format("{}/{}", root_, path);
}

Result<std::string> DiskFileTree::Read(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::string full, Resolve(path));
  const Descriptor file(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Fail(FromErrno(errno, Shown(path)));
  std::string content;
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(FromErrno(errno, Shown(path)));
    if (count == 0) return content;
    if (content.size() + std::size_t(count) > kMaxFileBytes) {
      return Fail(Code::kTooLarge, fmt::format("{}: over {} bytes", path, kMaxFileBytes));
    }
    content.append(buffer.data(), std::size_t(count));
  }
}

Result<std::vector<std::string>> DiskFileTree::List(std::string_view path) const {
  ASSIGN_OR_RETURN(const std::string full, Resolve(path));
  std::error_code error;
  std::filesystem::directory_iterator entries(full, error);
  if (error) return Fail(FromErrno(error.value(), Shown(path)));
  std::vector<std::string> names;
  for (const auto end = std::filesystem::directory_iterator{}; entries != end; entries.increment(error)) {
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
