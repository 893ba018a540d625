// Health on whole machines: what counters do to the published ports, rails, conditions and to placement, and what of
// it lives through a restart.
#include "nodeagent/health/health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "nodeagent/health/conditions.h"
#include "nodeagent/health/xid_memory.h"
#include "nodeagent/publish/report.h"
#include "recorded_machine.h"
#include "topology/fabric.h"

namespace heddle::nodeagent {
namespace {

using crds::ConditionStatus;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkFault;
using topology::LinkState;
using Exception = topology::NvLink::Exception;

constexpr base::WallTime kThen{seconds(1'800'000'000)};

class NoEthtool final : public EthtoolSource {
 public:
  base::Result<EthtoolStats> Read(const std::string&) override {
    return base::Fail(base::Code::kNotFound, "none");
  }
};

// A recorded machine of this test's own, whose counters it moves.
class Machine {
 public:
  Machine() {
    test::WriteMachine("hgx-h100", folder_.path());
    for (int i = 0; i < 8; ++i) Set(i, "counters/link_downed", "0");
  }

  void Set(int nic, const std::string& name, const std::string& value) {
    const std::string path =
        fmt::format("{}/sys/class/infiniband/mlx5_{}/ports/1/{}", folder_.path(), nic, name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << value << "\n";
  }

  // A whole cycle of the agent: a look at the machine, one at the counters, and what is published of both.
  Observation Cycle() {
    const base::DiskFileTree files(folder_.path());
    auto machine = OpenRecorded(files, folder_.path(), "");
    EXPECT_TRUE(machine) << machine.error().message;
    const Readings readings = machine->discovery->Read();
    Observation seen = Assemble(readings);
    CounterReader reader(files, ethtool_);
    reader.Watch(WatchedPorts(readings, seen.node));
    now_ += minutes(1);
    links.Look(reader.Read(Ask::kFilesAndEthtool), now_, kThen);
    nvlinks.Look(readings.gpus, now_, kThen);
    ApplyHealth(links.ports(), &nvlinks, seen);
    return seen;
  }
  const std::string& path() const { return folder_.path(); }

  LinkHealth links;
  NvlinkHealth nvlinks;

 private:
  test::TemporaryFolder folder_;
  NoEthtool ethtool_;
  base::MonotonicTime now_{minutes(1)};
};

const crds::Condition& Find(const std::vector<crds::Condition>& conditions, std::string_view type) {
  static const crds::Condition none;
  const auto* found = crds::FindCondition(conditions, type);
  EXPECT_NE(found, nullptr) << type;
  return found == nullptr ? none : *found;
}

const topology::NicPort& PortOf(const Observation& seen, const std::string& nic) {
  return seen.node.FindNic(nic)->ports.front();
}

TEST(Health, ChangesNothingOfASoundMachine) {
  Machine machine;
  const Observation before = test::LookAt(machine.path());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(machine.Cycle().node, before.node);
  const auto conditions = ConditionsOf(machine.Cycle());
  for (int rail = 0; rail < 8; ++rail) {
    const auto& condition = Find(conditions, RailHealthy(rail));
    EXPECT_EQ(condition.status, ConditionStatus::kTrue);
    EXPECT_EQ(condition.reason, "Healthy");
  }
  EXPECT_EQ(Find(conditions, kNvlinkHealthy).status, ConditionStatus::kTrue);
}

TEST(Health, PublishesAFlappingRailWithItsLeafItsEvidenceAndNoBandwidth) {
  Machine machine;
  machine.Cycle();
  machine.Set(3, "counters/link_downed", "4");
  const Observation seen = machine.Cycle();
  const topology::NicPort& port = PortOf(seen, "mlx5_3");
  EXPECT_EQ(port.state, LinkState::kActive);
  EXPECT_EQ(port.rate_gbps, 400);
  EXPECT_EQ(port.usable_gbps, 0);
  EXPECT_EQ(port.fault, LinkFault::kFlapping);
  EXPECT_EQ(seen.node.FindNic("mlx5_3")->rail.value_or(-1), 3)
      << "a rail is where its cable ends, flapping or not";
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  const auto conditions = ConditionsOf(seen);
  const auto& rail = Find(conditions, "Rail3Healthy");
  EXPECT_EQ(rail.status, ConditionStatus::kFalse);
  EXPECT_EQ(rail.reason, "Flapping");
  EXPECT_THAT(rail.message, AllOf(HasSubstr("mlx5_3 port 1 ("), HasSubstr(port.leaf_port->leaf),
                                  HasSubstr("4 link downs in 10 min, since 2027-01-15T08:00:00Z")));
  EXPECT_EQ(Find(conditions, "Rail2Healthy").status, ConditionStatus::kTrue);
  EXPECT_EQ(crds::Summarise(seen.node).rails, "7/8");
}

TEST(Health, SaysTheSameOfAFlapThatGoesOn) {
  Machine machine;
  machine.Cycle();
  machine.Set(3, "counters/link_downed", "4");
  const Observation first = machine.Cycle();
  machine.Set(3, "counters/link_downed", "5");
  const Observation second = machine.Cycle();
  EXPECT_EQ(first.node, second.node);
  EXPECT_EQ(ConditionsOf(first), ConditionsOf(second));
}

TEST(Health, CountsOnHalfOfAPortThatTakesInErrors) {
  Machine machine;
  machine.Set(5, "counters/symbol_error", "7");
  machine.Cycle();
  machine.Set(5, "counters/symbol_error", "500");
  const Observation seen = machine.Cycle();
  EXPECT_EQ(PortOf(seen, "mlx5_5").usable_gbps, 200);
  EXPECT_EQ(Find(ConditionsOf(seen), "Rail5Healthy").reason, "LinkErrors");
}

TEST(Health, IsUnknownOfARailWhoseStateCannotBeRead) {
  Machine machine;
  machine.Cycle();
  const Observation seen_before = test::LookAt(machine.path());
  Observation seen = seen_before;
  PortReading reading;
  const topology::Nic& nic = *seen.node.FindNic("mlx5_1");
  reading.port.key = PortKey(nic, 1);
  reading.port.nic = "mlx5_1";
  reading.state_unread = "sys/class/infiniband/mlx5_1/ports/1/state: Input/output error";
  LinkHealth links;
  links.Look({{reading}}, base::MonotonicTime(minutes(5)), kThen);
  ApplyHealth(links.ports(), nullptr, seen);
  EXPECT_EQ(PortOf(seen, "mlx5_1").usable_gbps, 400) << "nothing was seen that speaks against it";
  const auto conditions = ConditionsOf(seen);
  const auto& rail = Find(conditions, "Rail1Healthy");
  EXPECT_EQ(rail.status, ConditionStatus::kUnknown);
  EXPECT_EQ(rail.reason, "Unread");
  EXPECT_THAT(rail.message, HasSubstr("Input/output error"));
  EXPECT_EQ(crds::FindCondition(conditions, kNvlinkHealthy), nullptr) << "nobody asked";
}

TEST(Health, LearnsBetweenTwoLooksThatAPortWentDown) {
  Machine machine;
  Observation seen = test::LookAt(machine.path());
  PortReading reading;
  reading.port.key = PortKey(*seen.node.FindNic("mlx5_1"), 1);
  reading.port.nic = "mlx5_1";
  reading.state = LinkState::kDown;
  LinkHealth links;
  links.Look({{reading}}, base::MonotonicTime(minutes(5)), kThen);
  ApplyHealth(links.ports(), nullptr, seen);
  EXPECT_EQ(PortOf(seen, "mlx5_1").state, LinkState::kDown);
  EXPECT_EQ(PortOf(seen, "mlx5_1").usable_gbps, 0);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_EQ(Find(ConditionsOf(seen), "Rail1Healthy").reason, "LinkDown");
}

// After a reboot the card is called otherwise: nothing of what stood against it may be said of its successor, and the
// condition of the rail stays one.
TEST(Health, LeavesNoConditionBehindWhenARebootRenamesACard) {
  Machine machine;
  machine.Cycle();
  machine.Set(2, "counters/link_downed", "4");
  const Observation before = machine.Cycle();
  crds::NodeTopology object;
  object.name = before.node.name;
  const crds::NodeTopology published = Report(object, before, kThen);

  Observation after = test::LookAt(machine.path());
  for (topology::Nic& nic : after.node.nics) {
    if (nic.name == "mlx5_2") nic.name = "mlx5_9";
  }
  for (topology::GpuNicPath& path : after.node.paths) {
    if (path.nic == "mlx5_2") path.nic = "mlx5_9";
  }
  std::sort(after.node.nics.begin(), after.node.nics.end(),
            [](const topology::Nic& a, const topology::Nic& b) { return a.name < b.name; });
  LinkHealth links;
  NvlinkHealth nvlinks;
  RestoreHealth(published.status, links, nvlinks);
  std::vector<PortReading> readings;
  for (const topology::Nic& nic : after.node.nics) {
    PortReading reading;
    reading.port.key = PortKey(nic, 1);
    reading.port.nic = nic.name;
    reading.state = LinkState::kActive;
    readings.push_back(reading);
  }
  EXPECT_THAT(links.Look({readings}, base::MonotonicTime(minutes(5)), kThen), IsEmpty());
  ApplyHealth(links.ports(), nullptr, after);
  const crds::NodeTopology next = Report(published, after, kThen);
  EXPECT_EQ(Find(next.status.conditions, "Rail2Healthy").status, ConditionStatus::kFalse);
  EXPECT_THAT(Find(next.status.conditions, "Rail2Healthy").message,
              AllOf(HasSubstr("mlx5_9 port 1"), HasSubstr("4 link downs in 10 min")));
  for (const crds::Condition& condition : next.status.conditions)
    EXPECT_THAT(condition.message, testing::Not(HasSubstr("mlx5_2 "))) << condition.type;
}

TEST(Health, LivesThroughTheObjectAndARestart) {
  Machine machine;
  machine.Cycle();
  machine.Set(3, "counters/link_downed", "4");
  machine.Set(6, "counters/symbol_error", "0");
  machine.Cycle();
  machine.Set(6, "counters/symbol_error", "400");
  const Observation before = machine.Cycle();
  crds::NodeTopology object;
  object.name = before.node.name;
  const auto read = crds::NodeTopologyFromJson(crds::ToJson(Report(object, before, kThen)));
  ASSERT_TRUE(read) << read.error().message;
  machine.links = LinkHealth();  // kill -9
  machine.nvlinks = NvlinkHealth();
  RestoreHealth(read->status, machine.links, machine.nvlinks);
  const Observation after = machine.Cycle();
  EXPECT_EQ(before.node, after.node);
  EXPECT_EQ(ConditionsOf(before), ConditionsOf(after)) << "so nothing is written";
  machine.links = LinkHealth();
  EXPECT_EQ(PortOf(machine.Cycle(), "mlx5_3").fault, LinkFault::kNone)
      << "what stands nowhere is not made up";
}

TEST(Health, PublishesCongestionBesideTheMachineAndKeepsItThroughARestart) {
  Machine machine;
  const auto count = [&](const std::string& value) { machine.Set(3, "counters/port_xmit_discards", value); };
  count("0");
  machine.Cycle();
  crds::NodeTopology object;
  object.name = machine.Cycle().node.name;
  const crds::NodeTopology calm = Report(object, machine.Cycle(), kThen);
  EXPECT_THAT(calm.status.congestion, IsEmpty());
  count("9000");
  const Observation before = machine.Cycle();
  const crds::NodeTopology published = Report(calm, before, kThen + minutes(1));
  EXPECT_THAT(published.status.congestion, testing::ElementsAre(crds::CongestedPort{
                                               "mlx5_3", 1, kThen, "9000 transmit discards in 1 min"}));
  EXPECT_EQ(published.status.node, calm.status.node);
  EXPECT_EQ(published.status.hash, calm.status.hash) << "or every extender would assemble its fabrics anew";
  EXPECT_EQ(published.status.observed_at, calm.status.observed_at);
  EXPECT_EQ(published.status.conditions, calm.status.conditions);
  const auto read = crds::NodeTopologyFromJson(crds::ToJson(published));
  ASSERT_TRUE(read) << read.error().message;
  machine.links = LinkHealth();  // kill -9
  machine.nvlinks = NvlinkHealth();
  RestoreHealth(read->status, machine.links, machine.nvlinks);
  EXPECT_EQ(Report(*read, machine.Cycle(), kThen + minutes(2)).status, read->status)
      << "so nothing is written";
}

TEST(Health, KeepsAnNvlinkFaultThroughARestart) {
  Machine machine;
  crds::NodeTopologyStatus status;
  Observation seen = test::LookAt(machine.path());
  seen.nvlink_faults = {"GPU 3 counts 3 replays on NVLinks 4, 11, since T",
                        "GPU 5 counts 1 recoveries on NVLink 0, since T"};
  crds::NodeTopology object;
  object.name = seen.node.name;
  RestoreHealth(Report(object, seen, kThen).status, machine.links, machine.nvlinks);
  EXPECT_EQ(machine.Cycle().nvlink_faults, seen.nvlink_faults);
}

TEST(Health, TakesTheNumberOfNvlinkFaultsThatFoundNoRoomForNoneAfterARestart) {
  Machine machine;
  Observation seen = test::LookAt(machine.path());
  seen.nvlink_faults.emplace();
  for (int gpu = 0; gpu < 8; ++gpu) {
    std::string& fault = seen.nvlink_faults->emplace_back(fmt::format("GPU {} ", gpu));
    fault.resize(300, 'x');
  }
  crds::NodeTopology object;
  object.name = seen.node.name;
  const crds::NodeTopology published = Report(object, seen, kThen);
  ASSERT_THAT(Find(published.status.conditions, kNvlinkHealthy).message, testing::EndsWith("; and 5 more"));
  RestoreHealth(published.status, machine.links, machine.nvlinks);
  seen.nvlink_faults->resize(3);
  EXPECT_EQ(machine.Cycle().nvlink_faults, seen.nvlink_faults);
}

// NVML tells an XID once: the agent that comes after has it from the object alone.
TEST(Health, KeepsAFatalXidThroughARestartUntilTheNodeBoots) {
  const auto look = [](const std::string& boot, int xid) {
    const base::DiskFileTree disk(test::RecordedMachine("hgx-h100").path());
    GpuReadings gpus = RecordedGpus(disk).Read();
    gpus.gpus.at(5).last_xid = xid;
    test::MemoryFileTree files;
    test::Fill(test::ReadOf("hgx-h100"), files);
    files.Write("nvml.yaml", FormatNvmlYaml(gpus));
    if (!boot.empty()) files.Write("proc/sys/kernel/random/boot_id", boot + "\n");
    return test::LookAt(files);
  };
  const Observation before = look("11111111-0000-4000-8000-000000000001", 79);
  ASSERT_THAT(before.node.gpus.at(5).unhealthy_reason, HasSubstr("XID 79"));
  crds::NodeTopology object;
  object.name = before.node.name;
  const auto read = crds::NodeTopologyFromJson(crds::ToJson(Report(object, before, kThen)));
  ASSERT_TRUE(read) << read.error().message;
  XidMemory memory;
  memory.Restore(read->status);
  const auto after = [&](const std::string& boot, int xid) {
    Observation seen = look(boot, xid);
    std::vector<GpuReading> gpus;
    for (const topology::Gpu& gpu : seen.node.gpus) {
      GpuReading& reading = gpus.emplace_back();
      reading.index = gpu.index;
      reading.uuid = gpu.uuid;
      reading.pci = gpu.pci;
      reading.last_xid = gpu.fatal_xid;
    }
    memory.Apply(gpus, seen);
    EXPECT_EQ(gpus.at(5).last_xid, seen.node.gpus.at(5).fatal_xid);
    return seen;
  };
  const Observation restarted = after("11111111-0000-4000-8000-000000000001", 0);
  EXPECT_EQ(restarted.node, before.node);
  EXPECT_EQ(ConditionsOf(restarted), ConditionsOf(before)) << "so nothing is written";
  EXPECT_EQ(after("", 0).node, before.node) << "that no boot id can be read is no boot";
  EXPECT_EQ(after("11111111-0000-4000-8000-000000000001", 48).node.gpus.at(5).fatal_xid, 48) << "a newer one";
  const Observation booted = after("11111111-0000-4000-8000-000000000002", 0);
  EXPECT_TRUE(booted.node.gpus.at(5).healthy);
  EXPECT_EQ(booted.node.gpus.at(5).fatal_xid, 0);
  EXPECT_EQ(Report(*read, booted, kThen).status.boot_id, "11111111-0000-4000-8000-000000000002");
}

TEST(Health, ExpectsTheLinksThatEveryGpuLost) {
  Machine machine;
  Observation seen = test::LookAt(machine.path());
  const int gbps = seen.node.nvlink.gbps_per_gpu;
  NvlinkHealth nvlinks;
  topology::Node published = seen.node;
  nvlinks.Restore(published, {});
  GpuReadings readings;
  for (const topology::Gpu& gpu : seen.node.gpus) {
    GpuReading reading;
    reading.index = gpu.index;
    reading.uuid = gpu.uuid;
    for (int link = 0; link < 17; ++link)
      reading.nvlinks.push_back({link, true, LinkEnd::kSwitch, {}, 0, {}});
    readings.gpus.push_back(reading);
  }
  nvlinks.Look(readings, base::MonotonicTime(minutes(5)), kThen);
  seen.node.nvlink = {4, 17, gbps * 17 / 18, {}};
  ApplyHealth({}, &nvlinks, seen);
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 18);
  ASSERT_EQ(seen.node.nvlink.exceptions.size(), 8u);
  EXPECT_EQ(seen.node.nvlink.exceptions[7].links_up, 17);
  EXPECT_THAT(topology::Check(seen.node), IsEmpty());
  EXPECT_EQ(Find(ConditionsOf(seen), kNvlinksUp).status, ConditionStatus::kFalse);
  EXPECT_EQ(Find(ConditionsOf(seen), kNvlinkHealthy).reason, "NvlinkFault");
}

// As of an agent that starts while the driver fails on that link.
TEST(Health, CallsNoLinkDownThatIsUntoldOfEveryGpu) {
  Machine machine;
  const base::DiskFileTree files(machine.path());
  const Observation before = test::LookAt(machine.path());
  GpuReadings readings = RecordedGpus(files).Read();
  const auto untell = [](NvlinkReading& link) {
    link.active = false;
    link.word = LinkWord::kUntold;
  };
  for (GpuReading& gpu : readings.gpus) untell(gpu.nvlinks.at(7));
  readings.gpus.at(5).nvlinks.at(9).active = false;  // said to be down
  readings.gpus.at(6).nvlinks.at(4).active = false;
  untell(readings.gpus[6].nvlinks.at(17));
  std::ofstream(machine.path() + "/nvml.yaml") << FormatNvmlYaml(readings);
  Observation seen = test::LookAt(machine.path());
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 17);
  NvlinkHealth nvlinks;
  nvlinks.Restore(before.node, {});
  nvlinks.Look(readings, base::MonotonicTime(minutes(5)), kThen);
  ApplyHealth({}, &nvlinks, seen);
  EXPECT_EQ(seen.node.nvlink.links_per_gpu, 18);
  EXPECT_EQ(seen.node.nvlink.gbps_per_gpu, before.node.nvlink.gbps_per_gpu);
  EXPECT_THAT(seen.node.nvlink.exceptions,
              ElementsAre(Exception{5, 17, std::nullopt}, Exception{6, 17, std::nullopt}));
  EXPECT_EQ(Find(ConditionsOf(seen), kNvlinksUp).message,
            "GPU 5 has 17 of 18 NVLinks up: link 9 is down; GPU 6 has 17 of 18 NVLinks up: link 4 is down");
  EXPECT_THAT(nvlinks.Faults(),
              ElementsAre(HasSubstr("GPU 5 has 17 of 18"), HasSubstr("GPU 6 has 17 of 18")));
}

TEST(Health, CountsOnNoMoreThanThePcieLinkOfANicLetsThrough) {
  Machine machine;
  const topology::Node sound = machine.Cycle().node;
  const auto device =
      std::filesystem::canonical(machine.path() + "/sys/bus/pci/devices/" + sound.FindNic("mlx5_3")->pci);
  for (const std::filesystem::path& end : {device, device.parent_path()})
    std::ofstream(end / "current_link_width") << "4\n";
  const Observation seen = machine.Cycle();
  EXPECT_EQ(PortOf(seen, "mlx5_3").rate_gbps, 400);
  EXPECT_EQ(PortOf(seen, "mlx5_3").usable_gbps, 126) << "four lanes of 32 GT/s";
  EXPECT_EQ(PortOf(seen, "mlx5_2").usable_gbps, 400);
  EXPECT_EQ(Find(ConditionsOf(seen), kPcieLinksFull).status, ConditionStatus::kFalse);
  const topology::Fabric fabric = topology::BuildFabric({seen.node}, {});
  EXPECT_EQ(fabric.nodes.front().uplinks[3].gbps, 126) << "which placement reads";
}

// Eight GPUs of 18 links of 200 Gb/s, of which one counts errors and another lost a link for a moment.
TEST(Health, LowersWhatPlacementCountsOnOfNvlinksWithErrorsAndOfThoseThatFlap) {
  Machine machine;
  const Observation sound = test::LookAt(machine.path());
  ASSERT_EQ(sound.node.nvlink.gbps_per_gpu, 3600);
  GpuReadings readings;
  for (const topology::Gpu& gpu : sound.node.gpus) {
    GpuReading& reading = readings.gpus.emplace_back();
    reading.index = gpu.index;
    reading.uuid = gpu.uuid;
    for (int link = 0; link < 18; ++link)
      reading.nvlinks.push_back({link, true, LinkEnd::kSwitch, {}, 0, {0, 0, 0, std::nullopt}});
  }
  NvlinkHealth nvlinks;
  base::MonotonicTime now{minutes(5)};
  const auto look = [&](std::chrono::minutes later) {
    now += later;
    nvlinks.Look(readings, now, kThen);
    Observation seen = sound;
    ApplyHealth({}, &nvlinks, seen);
    EXPECT_THAT(topology::Check(seen.node), IsEmpty());
    return seen;
  };
  EXPECT_EQ(look(minutes(0)).node, sound.node);
  readings.gpus[3].nvlinks[4].errors.replays = 1;
  readings.gpus[5].nvlinks[17].active = false;
  look(minutes(1));
  readings.gpus[5].nvlinks[17].active = true;
  const Observation seen = look(minutes(1));
  EXPECT_THAT(seen.node.nvlink.exceptions, ElementsAre(Exception{3, 18, 3500}, Exception{5, 18, 3400}));
  EXPECT_EQ(Find(ConditionsOf(seen), kNvlinksUp).status, ConditionStatus::kTrue) << "all of them are up";
  EXPECT_EQ(Find(ConditionsOf(seen), kNvlinkHealthy).reason, "NvlinkFault");
  EXPECT_EQ(look(minutes(10)).node, sound.node) << "the quiet time is over";
}

// Both at once: what trained to less is less by what stands against the others.
TEST(Health, AddsErrorsOfNvlinksToThoseThatTrainedToLess) {
  Machine machine;
  Observation seen = test::LookAt(machine.path());
  NvlinkHealth nvlinks;
  GpuReadings readings;
  GpuReading& gpu = readings.gpus.emplace_back();
  gpu.index = 3;
  gpu.uuid = seen.node.gpus.at(3).uuid;
  for (int link = 0; link < 18; ++link)
    gpu.nvlinks.push_back({link, true, LinkEnd::kSwitch, {}, 0, {0, 0, 0, std::nullopt}});
  nvlinks.Look(readings, base::MonotonicTime(minutes(5)), kThen);
  for (int link = 0; link < 18; ++link) gpu.nvlinks[std::size_t(link)].errors.recoveries = 1;
  nvlinks.Look(readings, base::MonotonicTime(minutes(6)), kThen);
  for (const auto& [trained, counted] : {std::pair(3600, 1800), std::pair(2000, 200), std::pair(100, 0)}) {
    seen.node.nvlink.exceptions.clear();
    if (trained < 3600) seen.node.nvlink.exceptions = {{3, 18, trained}};
    ApplyHealth({}, &nvlinks, seen);
    EXPECT_EQ(seen.node.nvlink.usable_gbps(3), counted);
  }
}

TEST(Health, LowersWhatPlacementCountsOnBeforeAnybodyCordonsTheNode) {
  Machine machine;
  machine.Cycle();
  machine.Set(3, "counters/link_downed", "4");
  machine.Set(5, "counters/local_link_integrity_errors", "0");
  machine.Cycle();
  machine.Set(5, "counters/local_link_integrity_errors", "1");
  topology::Node node = machine.Cycle().node;
  const topology::Fabric fabric = topology::BuildFabric({node}, {});
  const auto& uplinks = fabric.nodes.front().uplinks;
  ASSERT_EQ(uplinks.size(), 8u);
  EXPECT_EQ(uplinks[0].gbps, 400);
  EXPECT_EQ(uplinks[3].gbps, 0) << "flapping";
  EXPECT_EQ(uplinks[5].gbps, 200) << "errors";
}

}  // namespace
}  // namespace heddle::nodeagent
