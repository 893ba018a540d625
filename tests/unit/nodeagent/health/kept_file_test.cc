// Files that are read again and again, on a disk and in this host's sysfs.
#include "nodeagent/health/kept_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "nodeagent/health/counters.h"
#include "tests/unit/nodeagent/recorded_machine.h"

namespace heddle::nodeagent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::size_t OpenDescriptors() {
  return std::size_t(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

class KeptFileTest : public testing::Test {
 protected:
  std::optional<std::string> Read() { return file_.Read(folder_.path(), "counter", kept_, 8); }

  test::TemporaryFolder folder_;
  std::size_t kept_ = 0;
  KeptFile file_;
};

TEST_F(KeptFileTest, SaysWhatStandsThereNowThroughOneDescriptor) {
  folder_.Write("counter", "1\n");
  EXPECT_EQ(Read(), "1");
  const std::size_t open = OpenDescriptors();
  for (const char* text : {"2\n", "30 \n", "", "4"}) {
    folder_.Write("counter", text);
    EXPECT_EQ(Read(), std::string(text).substr(0, std::string(text).find_last_not_of(" \n") + 1));
  }
  EXPECT_EQ(kept_, 1u);
  EXPECT_EQ(OpenDescriptors(), open);
  file_ = KeptFile();
}

TEST_F(KeptFileTest, FollowsThePathWhereAnotherFileIsPutThere) {
  folder_.Write("counter", "1\n");
  EXPECT_EQ(Read(), "1");
  folder_.Write("other", "2\n");
  fs::rename(folder_.path() + "/other", folder_.path() + "/counter");
  EXPECT_EQ(Read(), "2");
  fs::remove(folder_.path() + "/counter");
  EXPECT_EQ(Read(), std::nullopt) << "what is gone is gone at once";
  EXPECT_EQ(kept_, 0u);
  folder_.Write("counter", "3\n");
  EXPECT_EQ(Read(), "3");
}

TEST_F(KeptFileTest, KeepsNoMoreThanItMayAndNothingThatIsNoFileOrIsTooLarge) {
  folder_.Write("counter", "1\n");
  EXPECT_EQ(file_.Read(folder_.path(), "counter", kept_, 0), std::nullopt);
  EXPECT_EQ(kept_, 0u);
  KeptFile other;
  EXPECT_EQ(other.Read(folder_.path(), "counter", kept_, 1), "1");
  EXPECT_EQ(file_.Read(folder_.path(), "counter", kept_, 1), std::nullopt);
  other = std::move(file_);
  EXPECT_EQ(other.Read(folder_.path(), "counter", kept_, 2), "1")
      << "a file moves with its place in the count";
  file_ = KeptFile();
  fs::remove(folder_.path() + "/counter");
  ASSERT_EQ(::mkfifo((folder_.path() + "/counter").c_str(), 0600), 0);
  EXPECT_EQ(Read(), std::nullopt) << "nobody waits for one who writes";
  fs::remove(folder_.path() + "/counter");
  folder_.Write("counter", std::string(4096, '1'));
  EXPECT_EQ(Read(), std::nullopt);
  folder_.Write("counter", std::string(4095, '1'));
  EXPECT_EQ(Read(), std::string(4095, '1'));
}

TEST_F(KeptFileTest, GivesItsDescriptorBack) {
  folder_.Write("counter", "1\n");
  const std::size_t before = OpenDescriptors();
  {
    KeptFile one, two;
    (void)one.Read(folder_.path(), "counter", kept_, 8);
    two = std::move(one);
    EXPECT_EQ(OpenDescriptors(), before + 1);
    EXPECT_EQ(kept_, 1u);
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(kept_, 0u);
}

TEST_F(KeptFileTest, ReadsSysfsAnew) {
  if (!fs::exists("/sys/class/net/lo/carrier_changes")) GTEST_SKIP() << "no sysfs here";
  EXPECT_EQ(file_.Read("/", "sys/class/net/lo/carrier_changes", kept_, 8), "0");
  EXPECT_EQ(file_.Read("/", "sys/class/net/lo/carrier_changes", kept_, 8), "0");
  // The kernel refuses it of the loopback: the path has to say so.
  KeptFile refused;
  EXPECT_EQ(refused.Read("/", "sys/class/net/lo/speed", kept_, 8), std::nullopt);
  file_ = KeptFile();
}

// The reader of counters with its files on disk, as on a machine.
class KeptCountersTest : public testing::Test {
 protected:
  class NoStatistics final : public EthtoolSource {
   public:
    base::Result<EthtoolStats> Read(const std::string& netdev) override {
      return base::Fail(base::Code::kNotFound, netdev);
    }
  };
  KeptCountersTest() {
    Fill("mlx5_0", "12");
    Fill("mlx5_1", "77");
    port_.key = "key";
    port_.nic = port_.device = "mlx5_0";
    reader_.Watch({port_});
  }
  static std::string Folder(const std::string& device) { return "sys/class/infiniband/" + device; }
  void Fill(const std::string& device, const std::string& errors) {
    folder_.Write(Folder(device) + "/ports/1/state", "4: ACTIVE\n");
    folder_.Write(Folder(device) + "/ports/1/phys_state", "5: LinkUp\n");
    folder_.Write(Folder(device) + "/ports/1/counters/symbol_error", errors + "\n");
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  PortReading Read() { return reader_.Read(Ask::kFiles).ports.front(); }

  test::TemporaryFolder folder_;
  const base::DiskFileTree files_{folder_.path()};
  NoStatistics ethtool_;
  CounterReader reader_{files_, ethtool_, folder_.path()};
  WatchedPort port_;
};

TEST_F(KeptCountersTest, SeeEachMoveAndWhatIsGoneAndBack) {
  EXPECT_EQ(Read().samples.at(0).value, 12u);
  Fill("mlx5_0", "13");
  folder_.Write(Folder("mlx5_0") + "/ports/1/state", "1: DOWN\n");
  PortReading now = Read();
  EXPECT_EQ(now.samples.at(0).value, 13u);
  EXPECT_EQ(now.state, topology::LinkState::kDown);
  fs::remove_all(Path(Folder("mlx5_0")));
  now = Read();
  EXPECT_THAT(now.samples, IsEmpty());
  ASSERT_THAT(now.unread, SizeIs(1));
  EXPECT_THAT(now.unread[0].reason, HasSubstr("symbol_error: No such file or directory"));
  EXPECT_THAT(now.state_unread, HasSubstr("ports/1/state: No such file or directory"));
  Fill("mlx5_0", "0");
  now = Read();
  EXPECT_EQ(now.samples.at(0).value, 0u);
  EXPECT_EQ(now.state, topology::LinkState::kActive);
}

// Two cards swap their names, as a reboot of one does with persistent naming off. Until somebody has looked, what is
// counted is that of the card that was meant; after it, of the one that has the name.
TEST_F(KeptCountersTest, StayWithTheCardUntilTheNextLookAndTakeTheNameAfterIt) {
  EXPECT_EQ(Read().samples.at(0).value, 12u);
  fs::rename(Path(Folder("mlx5_0")), Path("sys/away"));
  fs::rename(Path(Folder("mlx5_1")), Path(Folder("mlx5_0")));
  fs::rename(Path("sys/away"), Path(Folder("mlx5_1")));
  EXPECT_EQ(Read().samples.at(0).value, 12u);
  folder_.Write(Folder("mlx5_1") + "/ports/1/counters/symbol_error", "14\n");
  EXPECT_EQ(Read().samples.at(0).value, 14u);
  reader_.Watch({port_});
  EXPECT_EQ(Read().samples.at(0).value, 77u);
}

TEST_F(KeptCountersTest, HoldNothingOpenOfPortsThatAreNoLongerWatched) {
  const std::size_t before = OpenDescriptors();
  (void)Read();
  EXPECT_EQ(OpenDescriptors(), before + 3);
  for (int look = 0; look < 3; ++look) {
    reader_.Watch({port_});
    (void)Read();
  }
  EXPECT_EQ(OpenDescriptors(), before + 3);
  reader_.Watch({});
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace heddle::nodeagent
