#include "recorded_machine.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace heddle::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "heddle-XXXXXX").string();
  path_ = ::mkdtemp(name.data()) == nullptr ? std::string() : name;
  EXPECT_FALSE(path_.empty());
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}
void TemporaryFolder::Write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

std::string Output(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), count);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << output;
  return output;
}

RecordedMachine::RecordedMachine(const std::string& shape, const std::string& arguments, const std::string& hostname) {
  Output("/usr/bin/python3 " HEDDLE_SOURCE_DIR "/tests/support/machines.py " + shape + " " + folder_.path() + " --hostname " +
         hostname + " " + arguments);
}

nodeagent::Observation RecordedMachine::Look() const { return LookAt(folder_.path()); }

nodeagent::Observation LookAt(const std::string& folder, const std::string& node) {
  const base::DiskFileTree files(folder);
  auto machine = nodeagent::OpenRecorded(files, folder, node);
  EXPECT_TRUE(machine) << machine.error().message;
  return machine ? machine->discovery->Look() : nodeagent::Observation();
}

}  // namespace heddle::test
