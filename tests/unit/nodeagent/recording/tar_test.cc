#include "nodeagent/recording/tar.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/file_tree.h"
#include "nodeagent/recording/recording.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;

// Every entry below a folder: what a file holds, where a link leads, "/" of a folder.
std::map<std::string, std::string> EntriesOf(const std::string& folder) {
  std::map<std::string, std::string> entries;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder);
    if (entry.is_symlink()) {
      entries[path] = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_directory()) {
      entries[path] = "/";
    } else {
      std::ifstream file(entry.path(), std::ios::binary);
      std::stringstream text;
      text << file.rdbuf();
      entries[path] = text.str();
    }
  }
  return entries;
}

// By the system's tar, without a word from it.
void Unpack(const std::string& tar, const std::string& into) {
  const test::TemporaryFolder folder;
  const std::string archive = folder.path() + "/a.tar";
  std::ofstream(archive, std::ios::binary) << tar;
  fs::create_directories(into);
  const std::string command = fmt::format("tar -xf {} -C {} 2> {}/said", archive, into, folder.path());
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream said(folder.path() + "/said");
  std::stringstream text;
  text << said.rdbuf();
  EXPECT_EQ(text.str(), "");
}

std::map<std::string, std::string> Unpacked(const std::string& tar) {
  const test::TemporaryFolder folder;
  Unpack(tar, folder.path());
  return EntriesOf(folder.path());
}

RecordedFiles Deep() {
  RecordedFiles recorded;
  std::string deep = "sys/devices";
  for (int i = 0; i < 40; ++i) {
    deep += fmt::format("/0000:{:02x}:00.0", i);
    recorded.files[deep + "/vendor"] = fmt::format("0x{:04x}\n", i);
    recorded.links[deep + "/driver"] = "../" + deep.substr(4);
  }
  for (std::size_t length = 90; length < 270; ++length) {
    std::string path = "p/" + std::string(length / 2, 'a') + "/";
    path += std::string(length - path.size(), 'b');
    recorded.files[path] = std::to_string(length);
  }
  return recorded;
}

TEST(Tar, IsWhatTarUnpacks) {
  RecordedFiles recorded;
  recorded.files = {
      {"machine.yaml", "name: x\n"}, {"sys/a/empty", ""}, {"sys/a/block", std::string(512, 'x')}};
  recorded.files["sys/a/binary"] = std::string("\0\xff\n", 3);
  recorded.links = {{"sys/class/net/eth0", "../../a"}, {"sys/out", "/etc/passwd"}, {"machine.yaml", "sys/a"}};
  recorded.folders = {"", "sys/bus/pci/devices"};
  const auto entries = Unpacked(ToTar(recorded));
  EXPECT_EQ(entries.at("sys/a/binary"), recorded.files.at("sys/a/binary"));
  EXPECT_EQ(entries.at("sys/class/net/eth0"), "-> ../../a");
  EXPECT_EQ(entries.at("sys/bus/pci/devices"), "/");
  EXPECT_FALSE(entries.contains("sys/out")) << "no link leads out of it";
  EXPECT_EQ(entries.at("machine.yaml"), "name: x\n");
  EXPECT_EQ(Unpacked(ToTar({})).size(), 0U);
}

TEST(Tar, HoldsWhatWriteRecordingWrites) {
  for (const RecordedFiles& recorded : {test::ReadOf("hgx-h100"), Deep()}) {
    const test::TemporaryFolder folder;
    ASSERT_TRUE(WriteRecording(recorded, folder.path() + "/written"));
    EXPECT_EQ(Unpacked(ToTar(recorded)), EntriesOf(folder.path() + "/written"));
  }
}

// As `record -` writes it and `--machine DIR` reads it.
TEST(Tar, ReplaysAMachine) {
  const test::RecordedMachine machine("roce-dual-tor");
  const base::DiskFileTree files(machine.path());
  testing::internal::CaptureStdout();
  const base::Status done = RecordAgain(files, machine.path(), "", false, std::string(kToStdout));
  const std::string tar = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(done) << done.error().message;
  const test::TemporaryFolder folder;
  Unpack(tar, folder.path());
  EXPECT_EQ(test::LookAt(folder.path()).node, machine.Look().node);
  EXPECT_FALSE(fs::exists("-")) << "it is no folder";
}

TEST(Tar, IsTheSameForTheSame) {
  EXPECT_EQ(ToTar(Deep()), ToTar(Deep()));
  EXPECT_EQ(ToTar(Deep()).size() % 512, 0U);
}

}  // namespace
}  // namespace heddle::nodeagent
