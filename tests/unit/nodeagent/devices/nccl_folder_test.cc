#include "nodeagent/devices/nccl_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

ino_t InodeOf(const std::string& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_ino;
}

TEST(NcclFolder, HoldsTheFilesAndReplacesOnlyWhatDiffers) {
  const test::TemporaryFolder state;
  const NcclFolder folder(state.path());
  EXPECT_EQ(folder.conf(), std::nullopt);
  ASSERT_TRUE(folder.Write({"A=1\n", "<system/>"}));
  EXPECT_EQ(folder.conf(), "A=1\n");
  const std::string conf = folder.path() + "/nccl.conf", topology = folder.path() + "/topology.xml";
  EXPECT_EQ(Read(conf), "A=1\n");
  EXPECT_EQ(Read(topology), "<system/>");
  EXPECT_EQ(fs::status(conf).permissions(), fs::perms(0644));
  const ino_t before = InodeOf(topology);
  ASSERT_TRUE(folder.Write({"A=2\n", "<system/>"}));
  EXPECT_EQ(Read(conf), "A=2\n");
  EXPECT_EQ(InodeOf(topology), before);
}

TEST(NcclFolder, SweepsWhatIsNoLongerTrueOrWasNeverFinished) {
  const test::TemporaryFolder state;
  const NcclFolder folder(state.path());
  ASSERT_TRUE(folder.Write({"A=1\n", "<system/>"}));
  std::ofstream(folder.path() + "/nccl.conf.half") << "A";
  ASSERT_TRUE(folder.Write({"A=1\n", ""}));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::ElementsAre("nccl.conf"));
}

TEST(NcclFolder, SaysWhichFileCannotBeWritten) {
  const test::TemporaryFolder state;
  std::ofstream(state.path() + "/nccl") << "a file in the folder's place";
  const auto written = NcclFolder(state.path()).Write({"A=1\n", ""});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, testing::HasSubstr(state.path() + "/nccl"));
}

}  // namespace
}  // namespace heddle::nodeagent
