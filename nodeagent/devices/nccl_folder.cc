#include "nodeagent/devices/nccl_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "nodeagent/devices/offer.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHalf = ".half";

base::Status Unwritable(const std::string& path, int error) {
  return base::Fail(base::Code::kUnavailable,
                    fmt::format("{} cannot be written: {}", path, std::strerror(error)));
}

std::optional<std::string> Content(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

base::Status Replace(const std::string& path, const std::string& content) {
  if (Content(path) == content) return {};
  const std::string half = path + std::string(kHalf);
  const int file = ::open(half.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return Unwritable(half, errno);
  std::size_t done = 0;
  int error = ::fchmod(file, 0644) == 0 ? 0 : errno;  // whoever runs in the container, and whatever our umask
  while (error == 0 && done < content.size()) {
    const ssize_t wrote = ::write(file, content.data() + done, content.size() - done);
    if (wrote >= 0) {
      done += std::size_t(wrote);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // The new content before the new name: after a power cut it is the old file or the new one, and never an empty one.
  if (error == 0 && ::fsync(file) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(half.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(half.c_str());
  return Unwritable(path, error);
}

}  // namespace

base::Status NcclFolder::Write(const NcclFiles& files) const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return Unwritable(folder_, error.value());
  fs::permissions(folder_, fs::perms(0755), error);
  const std::string conf = fmt::format("{}/{}", folder_, kNcclConf);
  const std::string topology = fmt::format("{}/{}", folder_, kNcclTopology);
  // What is pointed to comes before what points to it, and goes after it.
  if (!files.topology.empty()) TRY(Replace(topology, files.topology));
  TRY(Replace(conf, files.conf));
  if (files.topology.empty()) fs::remove(topology, error);
  for (const std::string& path : {conf, topology}) fs::remove(path + std::string(kHalf), error);
  return {};
}

std::optional<std::string> NcclFolder::conf() const {
  return Content(fmt::format("{}/{}", folder_, kNcclConf));
}

}  // namespace heddle::nodeagent
