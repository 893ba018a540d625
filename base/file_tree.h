#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::base {

// A read-only view of files under one root: a live machine's "/", or a recorded machine's folder.
// Paths are relative to the root ("sys/class/infiniband"), never with "..". Absent files are kNotFound, which
// probes take for "this machine has no such thing", never for zero. kInvalid: the kernel says that there is no value
// now (EINVAL of sysfs), or the link is none. kUnavailable: no answer, though there may be one later (EIO), or what is
// there is no file to read (a folder, a named pipe, links in a circle).
// Thread rule: every member may be called from any thread.
class FileTree {
 public:
  FileTree() = default;
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;
  virtual ~FileTree() = default;

  // The whole file. Files over 4 MiB are kTooLarge: nothing we read is near that.
  [[nodiscard]] virtual Result<std::string> Read(std::string_view path) const = 0;
  // Names in a folder, sorted, without "." and "..". Folders of over 65,536 entries are kTooLarge: the largest that
  // we list have some thousands.
  [[nodiscard]] virtual Result<std::vector<std::string>> List(std::string_view path) const = 0;
  // What a symbolic link says, unresolved.
  [[nodiscard]] virtual Result<std::string> ReadLink(std::string_view path) const = 0;
};

class DiskFileTree final : public FileTree {
 public:
  explicit DiskFileTree(std::string root);
  [[nodiscard]] Result<std::string> Read(std::string_view path) const override;
  [[nodiscard]] Result<std::vector<std::string>> List(std::string_view path) const override;
  [[nodiscard]] Result<std::string> ReadLink(std::string_view path) const override;

 private:
  std::string Shown(std::string_view path) const;
  [[nodiscard]] Result<std::string> Resolve(std::string_view path) const;
  std::string root_;
};

// Read without the newline that sysfs puts at the end.
[[nodiscard]] Result<std::string> ReadTrimmed(const FileTree& files, std::string_view path);

}  // namespace heddle::base
