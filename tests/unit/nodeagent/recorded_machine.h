#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/recording/recording.h"
#include "tests/support/memory_file_tree.h"

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

// A machine of the fleet that tests/support/machines.py writes once per test program: one of each shape,
// called like it, and some that differ ("hgx-down", …: see recorded_machine.cc). Whoever changes files takes
// one that nobody else uses.
class RecordedMachine {
 public:
  explicit RecordedMachine(const std::string& name);

  nodeagent::Observation Look() const;
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

// What a look reads of that machine of the fleet, without the thousands of files of its processors, and the same as
// files in memory, to be broken without a disk.
nodeagent::RecordedFiles ReadOf(const std::string& name);
void Fill(const nodeagent::RecordedFiles& recorded, MemoryFileTree& files);

// Every machine of the fleet.
std::vector<std::string> FleetNames();

// Which NICs each GPU is nearest to, by PCI address.
std::map<std::string, std::set<std::string>> PairsOf(const topology::Node& node);
// "0000:18:00.0@3" of each compute NIC, sorted; -1: unknown.
std::vector<std::string> RailsOf(const topology::Node& node);

// Writes a machine of that shape, called node-00, with a PCI tree of its own.
void WriteMachine(const std::string& shape, const std::string& folder);

// The same for any files; `node`: what machine.yaml says.
nodeagent::Observation LookAt(const base::FileTree& files, const std::string& node = "");
// The same for any folder.
nodeagent::Observation LookAt(const std::string& folder, const std::string& node = "");

// What `--print` writes of it, as seen at that time.
std::string TicketAt(const std::string& folder, const std::string& node = "");
inline constexpr base::WallTime kTicketTime{std::chrono::seconds(1'800'000'000)};

// Runs a shell command; its output, or a failed test.
std::string Output(const std::string& command);

}  // namespace heddle::test
