#pragma once

#include <memory>
#include <string>

#include "base/file_tree.h"
#include "nodeagent/machine.h"

namespace heddle::test {

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

// A machine that tests/support/machines.py wrote, and what the agent makes of it.
class RecordedMachine {
 public:
  // `arguments`: as on its command line, "--down 3".
  explicit RecordedMachine(const std::string& shape, const std::string& arguments = "", const std::string& hostname = "node-00");

  nodeagent::Observation Look() const;
  const std::string& path() const { return folder_.path(); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

// The same for any folder.
nodeagent::Observation LookAt(const std::string& folder, const std::string& node = "");

// Runs a shell command; its output, or a failed test.
std::string Output(const std::string& command);

}  // namespace heddle::test
