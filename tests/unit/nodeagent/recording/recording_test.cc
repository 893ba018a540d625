#include "nodeagent/recording/recording.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "nodeagent/gpu/nvml_gpus.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/publish/report.h"
#include "recorded_machine.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

// What the probes read of `source`, written into `target` and read again.
TEST(Recording, ReplaysAMachine) {
  for (const char* shape : {"hgx-h100", "roce-dual-tor", "plain-host"}) {
    const test::RecordedMachine source(shape);
    const base::DiskFileTree files(source.path());
    const RecordingFileTree recording(files);
    auto machine = OpenRecorded(recording, source.path(), "");
    ASSERT_TRUE(machine);
    const Observation seen = machine->discovery->Look();
    ReadForHwloc(recording);
    const test::TemporaryFolder target;
    ASSERT_TRUE(WriteRecording(recording, {}, target.path()));
    const Observation again = test::LookAt(target.path());
    EXPECT_EQ(seen.node, again.node) << shape;
    EXPECT_EQ(seen.problems, again.problems) << shape;
  }
}

TEST(Recording, KeepsTheCountersOfEveryPort) {
  const test::TemporaryFolder source;
  test::WriteMachine("roce-dual-tor", source.path());
  const std::string port = "sys/class/infiniband/mlx5_bond_0/ports/1/";
  const base::DiskFileTree files(source.path());
  ASSERT_TRUE(files.List(port));
  for (const auto& [name, value] :
       {std::pair("counters/link_downed", "3"), std::pair("hw_counters/np_cnp_sent", "77"),
        std::pair("hw_counters/lifespan", "10")}) {
    const std::string path = source.path() + "/" + port + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << value << "\n";
  }
  const std::string driver = source.path() + "/sys/class/infiniband/mlx5_bond_0/device/driver";
  std::filesystem::remove(driver);
  std::filesystem::create_symlink("../../../bus/pci/drivers/mlx5_core", driver);
  const RecordingFileTree recording(files);
  auto machine = OpenRecorded(recording, source.path(), "");
  ASSERT_TRUE(machine);
  const Readings readings = machine->discovery->Read();
  const auto ports = WatchedPorts(readings, Assemble(readings).node);
  ASSERT_GE(ports.size(), 2u);
  source.Write("ethtool/" + ports[1].netdev, "NIC statistics:\n     rx_prio3_pause: 7\n");
  RecordedEthtool ethtool(files);
  const auto extra = RecordCounters(recording, ethtool, ports);
  EXPECT_EQ(extra.size(), 1u);
  const test::TemporaryFolder target;
  ASSERT_TRUE(WriteRecording(recording, extra, target.path()));

  const base::DiskFileTree kept(target.path());
  RecordedEthtool kept_ethtool(kept);
  CounterReader before(files, ethtool), after(kept, kept_ethtool);
  before.Watch(ports);
  after.Watch(ports);
  const auto expected = before.Read(Ask::kFilesAndEthtool).ports;
  EXPECT_EQ(after.Read(Ask::kFilesAndEthtool).ports, expected);
  ASSERT_GE(expected[0].samples.size(), 2u);
  EXPECT_EQ(expected[0].samples[0].value, 3u);
  EXPECT_FALSE(kept.Read(port + "hw_counters/lifespan")) << "nothing that is not wanted";
}

TEST(Recording, FollowsLinksAsSysfsHasThem) {
  test::MemoryFileTree files;
  files.Write("sys/devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  files.Write("sys/devices/pci0000:15/0000:18:00.0/vendor", "0x15b3\n");
  files.Link("sys/devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0/device", "../../../0000:18:00.0");
  files.Link("sys/class/infiniband/mlx5_0", "../../devices/pci0000:15/0000:18:00.0/infiniband/mlx5_0");
  const RecordingFileTree recording(files);
  ASSERT_TRUE(recording.Read("sys/class/infiniband/mlx5_0/ports/1/state"));
  ASSERT_TRUE(recording.Read("sys/class/infiniband/mlx5_0/device/vendor"));
  const test::TemporaryFolder target;
  ASSERT_TRUE(WriteRecording(recording, {{"machine.yaml", "hostname: x\n"}}, target.path()));
  const base::DiskFileTree again(target.path());
  EXPECT_EQ(again.Read("sys/class/infiniband/mlx5_0/device/vendor"), "0x15b3\n");
  EXPECT_EQ(again.Read("machine.yaml"), "hostname: x\n");
}

TEST(Recording, OverwritesNothing) {
  const test::TemporaryFolder target;
  target.Write("precious", "mine");
  test::MemoryFileTree files;
  const RecordingFileTree recording(files);
  const auto status = WriteRecording(recording, {{"precious", "yours"}}, target.path());
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("name a new folder"));
}

TEST(Recording, EndsOnALoopOfLinks) {
  test::MemoryFileTree files;
  files.Link("sys/a", "b");
  files.Link("sys/b", "a");
  const RecordingFileTree recording(files);
  EXPECT_FALSE(recording.Read("sys/a/x"));
  EXPECT_TRUE(recording.ReadLink("sys/a"));
}

TEST(Recording, OfThisVeryMachineSaysWhatTheMachineSays) {
  const test::TemporaryFolder folder;
  const base::DiskFileTree root("/");
  test::FakeClock clock;
  const std::string target = folder.path() + "/recorded";
  const auto driver = [] { return std::make_unique<NvmlGpus>("libnvidia-ml.so.1"); };
  ASSERT_TRUE(Record(root, "this-host", driver(), clock, target));
  auto live = OpenLive(root, "this-host", driver(), clock);
  ASSERT_TRUE(live);
  EXPECT_EQ(live->discovery->Look().node, test::LookAt(target).node);
}

}  // namespace
}  // namespace heddle::nodeagent
