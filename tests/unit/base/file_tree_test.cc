#include "base/file_tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One contract for both: every test runs on a folder on disk and on files in memory.
class FileTreeTest : public testing::TestWithParam<bool> {
 protected:
  FileTreeTest()
      : folder_(std::filesystem::temp_directory_path() / ("heddle-tree-" + std::to_string(::getpid()))),
        disk_(folder_.string()) {
    std::filesystem::create_directories(folder_);
  }
  ~FileTreeTest() override { std::filesystem::remove_all(folder_); }

  const FileTree& tree() const { return GetParam() ? static_cast<const FileTree&>(disk_) : memory_; }
  void Write(const std::string& path, const std::string& content) {
    memory_.Write(path, content);
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << content;
  }
  void Link(const std::string& path, const std::string& target) {
    memory_.Link(path, target);
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::filesystem::create_symlink(target, folder_ / path);
  }
  void MakeFolder(const std::string& path) {
    memory_.MakeFolder(path);
    std::filesystem::create_directories(folder_ / path);
  }

  const std::filesystem::path folder_;
  DiskFileTree disk_;
  test::MemoryFileTree memory_;
};

TEST_P(FileTreeTest, ReadsAFileWhole) {
  const std::string bytes("a\0b\n", 4);
  Write("sys/class/net/eth0/mtu", bytes);
  EXPECT_EQ(*tree().Read("sys/class/net/eth0/mtu"), bytes);
  Write("empty", "");
  EXPECT_EQ(*tree().Read("empty"), "");
}

TEST(DiskFileTree, NamesAFileOfTheMachineAsAPersonWouldTypeIt) {
  const DiskFileTree root("/");
  EXPECT_THAT(root.Read("nonexistent/config").error().message, testing::StartsWith("/nonexistent/config: "));
  EXPECT_THAT(root.Read("/nonexistent/config").error().message, testing::StartsWith("/nonexistent/config: "));
}

// Opening one waits for somebody who writes.
TEST(DiskFileTree, DoesNotWaitForANamedPipe) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("heddle-pipe-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string pipe = folder + "/state";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const DiskFileTree tree(folder);
  EXPECT_EQ(tree.Read("state").error().code, Code::kUnavailable);
  const int both = ::open(pipe.c_str(), O_RDWR | O_CLOEXEC);  // a writer who never writes
  EXPECT_THAT(tree.Read("state").error().message, testing::HasSubstr("named pipe"));
  ::close(both);
  std::filesystem::remove_all(folder);
}

// `--kubeconfig <(command)` of a shell is one of those.
TEST(DiskFileTree, ReadsAPipeThatWasHandedToUs) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], "kind: Config", 12), 12);
  ::close(ends[1]);
  EXPECT_EQ(*DiskFileTree("/").Read("dev/fd/" + std::to_string(ends[0])), "kind: Config");
  ::close(ends[0]);
}

TEST(DiskFileTree, EndsOnADeviceThatNeverEnds) {
  const DiskFileTree root("/");
  EXPECT_EQ(*root.Read("dev/null"), "") << "KUBECONFIG=/dev/null means that there is none";
  EXPECT_EQ(root.Read("dev/zero").error().code, Code::kTooLarge);
}

TEST(DiskFileTree, RefusesAFolderWithMoreEntriesThanAnyMachineHas) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("heddle-many-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const int at = ::open(folder.c_str(), O_PATH | O_CLOEXEC);
  for (int i = 0; i < 70'000; ++i) ASSERT_EQ(::symlinkat("x", at, std::to_string(i).c_str()), 0);
  ::close(at);
  EXPECT_EQ(DiskFileTree(folder).List("").error().code, Code::kTooLarge);
  std::filesystem::remove_all(folder);
}

TEST_P(FileTreeTest, SaysThatAFileIsAbsent) {
  Write("file", "x");
  for (const char* path : {"absent", "absent/below", "file/below"}) {
    EXPECT_EQ(tree().Read(path).error().code, Code::kNotFound) << path;
    EXPECT_EQ(tree().List(path).error().code, Code::kNotFound) << path;
    EXPECT_EQ(tree().ReadLink(path).error().code, Code::kNotFound) << path;
  }
}

TEST_P(FileTreeTest, ListsAFolderSorted) {
  for (const char* name : {"d/b", "d/a", "d/c/deep"}) Write(name, "");
  MakeFolder("d/none");
  EXPECT_THAT(*tree().List("d"), ElementsAre("a", "b", "c", "none"));
  EXPECT_THAT(*tree().List("d/none"), IsEmpty());
  EXPECT_THAT(*tree().List(""), ElementsAre("d"));
  EXPECT_EQ(tree().List("d/a").error().code, Code::kNotFound) << "a file is no folder";
}

TEST_P(FileTreeTest, FollowsLinksAndReadsThem) {
  Write("sys/devices/pci0/net/eth0/mtu", "1500\n");
  Link("sys/class/net/eth0", "../../devices/pci0/net/eth0");
  EXPECT_EQ(*tree().ReadLink("sys/class/net/eth0"), "../../devices/pci0/net/eth0");
  EXPECT_EQ(*tree().Read("sys/class/net/eth0/mtu"), "1500\n");
  EXPECT_THAT(*tree().List("sys/class/net/eth0"), ElementsAre("mtu"));
  EXPECT_FALSE(tree().ReadLink("sys/devices/pci0/net/eth0/mtu")) << "a file is no link";
  Link("loop", "loop");
  EXPECT_FALSE(tree().Read("loop"));
  Link("dangling", "nowhere");
  EXPECT_EQ(tree().Read("dangling").error().code, Code::kNotFound);
  EXPECT_EQ(*tree().ReadLink("dangling"), "nowhere");
}

TEST_P(FileTreeTest, NeverLeavesItsRoot) {
  for (const char* path : {"..", "../etc/passwd", "a/../../etc"}) {
    EXPECT_EQ(tree().Read(path).error().code, Code::kInvalid);
    EXPECT_EQ(tree().List(path).error().code, Code::kInvalid);
    EXPECT_EQ(tree().ReadLink(path).error().code, Code::kInvalid);
  }
  Write("a..b", "fine");
  EXPECT_EQ(*tree().Read("a..b"), "fine");
}

TEST_P(FileTreeTest, RefusesAFileOverItsBound) {
  Write("large", std::string((4 << 20) + 1, 'x'));
  EXPECT_EQ(tree().Read("large").error().code, Code::kTooLarge);
  Write("just", std::string(4 << 20, 'x'));
  EXPECT_TRUE(tree().Read("just"));
}

TEST_P(FileTreeTest, SaysThatAFolderIsNoFile) {
  MakeFolder("d");
  EXPECT_FALSE(tree().Read("d"));
  EXPECT_EQ(tree().ReadLink("d").error().code, Code::kInvalid);
}

TEST_P(FileTreeTest, TrimsTheLineEndOfSysfs) {
  Write("a", "value \n");
  EXPECT_EQ(*ReadTrimmed(tree(), "a"), "value");
  EXPECT_EQ(ReadTrimmed(tree(), "b").error().code, Code::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Both, FileTreeTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "OnDisk" : "InMemory"; });

TEST(MemoryFileTree, RemembersWhatWasReadAndFailsAsItIsTold) {
  test::MemoryFileTree tree({{"a", "1"}, {"b/c", "2"}});
  EXPECT_TRUE(tree.Read("a"));
  tree.FailReads("b/c", Error{Code::kForbidden, "b/c: Permission denied", std::nullopt});
  EXPECT_EQ(tree.Read("b/c").error().code, Code::kForbidden);
  EXPECT_THAT(tree.reads(), ElementsAre("a", "b/c"));
  tree.Remove("b");
  EXPECT_EQ(tree.Read("b/c").error().code, Code::kForbidden) << "a failure stays";
  EXPECT_THAT(*tree.List(""), ElementsAre("a"));
}

TEST(Error, AddsContextOutermostFirst) {
  const Error error{Code::kExpired, "410 expired", std::chrono::milliseconds(5)};
  EXPECT_EQ(error.In("list nodes").In("start").message, "start: list nodes: 410 expired");
  EXPECT_EQ(error.In("x").retry_after, std::chrono::milliseconds(5));
  EXPECT_EQ(ToString(error), "Expired: 410 expired");
}

}  // namespace
}  // namespace heddle::base
