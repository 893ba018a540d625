#pragma once

#include <string>
#include <string_view>

#include "base/file_tree.h"
#include "base/result.h"

namespace heddle::nodeagent {

// Files of sysfs, debugfs and configfs that are settings. Paths as base::FileTree has them, below the root "/" of the
// live machine or a folder of a test. Thread rule: as base::FileTree.
class SettingFiles {
 public:
  explicit SettingFiles(std::string root) : root_(std::move(root)), files_(root_) {}

  // What the kernel says there; links are followed as the root has them.
  const base::FileTree& files() const { return files_; }
  // One write(2) to a file that is there, as the kernel wants it. kNotFound: there is no such setting; kInvalid: the
  // kernel does not take this value; kForbidden; kUnimplemented; kUnavailable: busy, or the device is gone.
  [[nodiscard]] base::Status Write(std::string_view path, std::string_view text) const;
  // kAlreadyExists; kNotFound: the folder it would lie in is not there, or the kernel refuses the name.
  [[nodiscard]] base::Status MakeFolder(std::string_view path) const;
  [[nodiscard]] base::Status RemoveFolder(std::string_view path) const;

 private:
  std::string root_;
  base::DiskFileTree files_;
};

}  // namespace heddle::nodeagent
