#include "nodeagent/qos/recorded_port_io.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "lossless/compare.h"
#include "nodeagent/qos/overlay.h"
#include "nodeagent/qos/ports.h"
#include "nodeagent/recording/scrub.h"
#include "recorded_machine.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using lossless::kNotSaid;
using lossless::PortSettings;
using lossless::Setting;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kMachine = R"(
ports:
- name: mlx5_0:1
  rdmaDevice: mlx5_0
  netdev: eth2
  driver: mlx5_core
  fec: rs
  queuePairs: 4
  writer: lldpad
  link: {carrierChanges: 3, errors: {rx_crc_errors_phy: 12}}
  settings:
    trust: PCP
    pfc: []
    mtu: 1500
    classPercent: [100, -1, -1, -1, -1, -1, -1, -1]
  gaps:
  - {setting: ecn, reason: the firmware decides}
- name: mlx5_1:1
  netdev: eth3
  settings: {mtu: 1500}
  refuses:
  - {setting: pfc, code: Unavailable, message: the device is busy}
- {name: "mlx5_2:1", netdev: eth4, gone: true}
)";

QosPort Port(int index) {
  QosPort port;
  port.name = fmt::format("mlx5_{}:1", index);
  port.netdev = fmt::format("eth{}", index + 2);
  return port;
}

PortSettings Want() {
  PortSettings want;
  want.trust = lossless::Trust::kDscp;
  want.pfc = {3};
  want.mtu = 9000;
  want.class_percent = {50, kNotSaid, kNotSaid, 50, kNotSaid, kNotSaid, kNotSaid, kNotSaid};
  return want;
}

struct Bed {
  test::MemoryFileTree files{{{"qos.yaml", kMachine}}};
  RecordedPortIo io{files};
};

TEST(RecordedQos, AnswersWhatTheMachineAnswered) {
  Bed bed;
  const QosReading reading = bed.io.Read(Port(0));
  EXPECT_EQ(reading.have.mtu, 1500);
  EXPECT_EQ(reading.have.trust, lossless::Trust::kPcp);
  EXPECT_EQ(reading.have.pfc, lossless::PrioritySet{});
  EXPECT_FALSE(reading.have.tos);
  EXPECT_EQ(reading.fec, lossless::Fec::kReedSolomon);
  EXPECT_THAT(reading.gaps, ElementsAre(lossless::Gap{Setting::kEcn, "the firmware decides"}));
  EXPECT_EQ(bed.io.UserQueuePairs(Port(0)), 4);
  EXPECT_EQ(bed.io.Link(Port(0)), (LinkEvidence{true, 3, {{"rx_crc_errors_phy", 12}}}));
  EXPECT_EQ(bed.io.LikelyWriter(Port(0), Setting::kMtu), "lldpad");
}

TEST(RecordedQos, KeepsInMemoryWhatIsWrittenAndNothingElse) {
  Bed bed;
  const std::array settings{Setting::kTrust, Setting::kClassPercent, Setting::kPfc};
  ASSERT_TRUE(bed.io.Write(Port(0), settings, Want()));
  const QosReading reading = bed.io.Read(Port(0));
  EXPECT_EQ(reading.have.trust, lossless::Trust::kDscp);
  EXPECT_EQ(reading.have.pfc, lossless::PrioritySet{3});
  EXPECT_EQ(reading.have.class_percent->at(0), 50);
  EXPECT_EQ(reading.have.mtu, 1500) << "it was not told to write that";
}

TEST(RecordedQos, KeepsGlobalPauseAndMissesNoneInAnOldRecording) {
  Bed bed;
  EXPECT_FALSE(bed.io.Read(Port(0)).have.global_pause);
  auto ports = ParseQosYaml(kMachine);
  ASSERT_TRUE(ports);
  ports->at("mlx5_0:1").reading.have.global_pause = lossless::GlobalPause::kBoth;
  ports->at("mlx5_1:1").reading.have.global_pause = lossless::GlobalPause::kNone;
  const auto again = ParseQosYaml(FormatQosYaml(*ports));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *ports);
  EXPECT_FALSE(ParseQosYaml("ports: [{name: \"mlx5_0:1\", settings: {globalPause: Half}}]"));
}

TEST(RecordedQos, RefusesACodingThatNobodyHas) {
  const auto ports = ParseQosYaml("ports: [{name: \"mlx5_0:1\", fec: rsx}]");
  ASSERT_FALSE(ports);
  EXPECT_THAT(ports.error().message, HasSubstr("none of none, fc and rs"));
}

TEST(RecordedQos, RefusesWhereTheDriverDidAndStopsThere) {
  Bed bed;
  const std::array settings{Setting::kMtu, Setting::kPfc, Setting::kTrust};
  const auto written = bed.io.Write(Port(1), settings, Want());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable);
  EXPECT_EQ(written.error().message, "pfc: the device is busy");
  EXPECT_EQ(bed.io.Read(Port(1)).have.mtu, 9000);
  EXPECT_FALSE(bed.io.Read(Port(1)).have.trust);
}

TEST(RecordedQos, AnInterfaceThatIsGoneHasNothingToReadOrWrite) {
  Bed bed;
  EXPECT_EQ(bed.io.Read(Port(2)), (QosReading{{}, {}, true}));
  const std::array settings{Setting::kMtu};
  EXPECT_EQ(bed.io.Write(Port(2), settings, Want()).error().code, Code::kUnavailable);
  EXPECT_FALSE(bed.io.Link(Port(2)));
}

TEST(RecordedQos, APortThatNobodyRecordedIsNotKnownUntilItIsWritten) {
  const test::MemoryFileTree none;
  RecordedPortIo io(none);
  const QosReading before = io.Read(Port(0));
  EXPECT_EQ(before.have, PortSettings{});
  EXPECT_EQ(int(before.gaps.size()), lossless::kHostSettings - 2)
      << "traffic_class is no setting of a port, and nobody misses global pause";
  const std::array settings{Setting::kMtu};
  ASSERT_TRUE(io.Write(Port(0), settings, Want()));
  EXPECT_EQ(io.Read(Port(0)).have.mtu, 9000);
  EXPECT_EQ(int(io.Read(Port(0)).gaps.size()), lossless::kHostSettings - 3);
}

TEST(RecordedQos, AFolderKeepsWritesAndHearsASecondWriter) {
  const test::TemporaryFolder folder;
  const std::string state = folder.path() + "/state";
  test::MemoryFileTree files{{{"qos.yaml", kMachine}}};
  RecordedPortIo io(files, state);
  const std::array settings{Setting::kPfc, Setting::kMtu};
  ASSERT_TRUE(io.Write(Port(0), settings, Want()));
  EXPECT_FALSE(io.Write(Port(1), settings, Want()));
  RecordedPortIo again(files, state);
  EXPECT_EQ(again.Read(Port(0)).have.pfc, lossless::PrioritySet{3});
  const base::DiskFileTree written(state);
  EXPECT_EQ(written.Read("writes").value(), "mlx5_0:1 pfc mtu\nmlx5_1:1 refused\n");
  auto ports = ParseQosYaml(*written.Read("qos.yaml"));
  ASSERT_TRUE(ports) << ports.error().message;
  ports->at("mlx5_0:1").reading.have.pfc = lossless::PrioritySet{4};
  folder.Write("state/qos.yaml", FormatQosYaml(*ports));
  EXPECT_EQ(io.Read(Port(0)).have.pfc, lossless::PrioritySet{4});
}

TEST(RecordedQos, SaysWhichKeyOfWhichPortIsWrong) {
  const auto message = [](const std::string& yaml) {
    const auto ports = ParseQosYaml(yaml);
    return ports ? std::string() : ports.error().message;
  };
  EXPECT_THAT(message("ports: 3"), HasSubstr("ports is no list"));
  EXPECT_THAT(message("[]"), HasSubstr("no object"));
  EXPECT_THAT(message("ports: [{netdev: eth0}]"), HasSubstr("ports[0]: name is missing"));
  EXPECT_THAT(message("ports: [{name: a}, {name: a}]"), HasSubstr("ports[1]: a stands twice"));
  EXPECT_THAT(message("ports: [{name: a, settings: {pfc: [9]}}]"), HasSubstr("ports[0]: settings: pfc[0]"));
  EXPECT_THAT(message("ports: [{name: a, rdmaPort: 900}]"), HasSubstr("rdmaPort is no number from 0 to 255"));
  EXPECT_THAT(message("ports: [{name: a, rdmaPort: -1}]"), HasSubstr("rdmaPort is no number from 0 to 255"));
  EXPECT_THAT(message("ports: [{name: a, gaps: [{setting: watched}]}]"), HasSubstr("gaps[0]: \"watched\""));
  EXPECT_THAT(message("ports: [{name: a, refuses: [{setting: pfc, code: Bad}]}]"),
              HasSubstr("\"Bad\" is no code"));
  EXPECT_THAT(message("ports: [{name: a, link: {errors: {x: -1}}}]"), HasSubstr("link.errors"));
  test::MemoryFileTree files{{{"qos.yaml", "ports: 3"}}};
  RecordedPortIo io(files);
  ASSERT_FALSE(io.Read(Port(0)).gaps.empty());
  EXPECT_THAT(io.Read(Port(0)).gaps[0].reason, HasSubstr("ports is no list"));
  EXPECT_FALSE(io.Write(Port(0), {}, {}));
}

TEST(RecordedQos, WhatIsWrittenReadsTheSame) {
  auto ports = ParseQosYaml(kMachine);
  ASSERT_TRUE(ports) << ports.error().message;
  PortSettings& have = ports->at("mlx5_1:1").reading.have;
  have = Want();
  have.dscp_to_priority = lossless::AllDscps(kNotSaid);
  (*have.dscp_to_priority)[26] = 3;
  have.dcqcn = {{lossless::DcqcnParameter::kRpAiRate, 5}};
  have.class_algorithm.emplace().fill(lossless::Algorithm::kVendor);
  const auto again = ParseQosYaml(FormatQosYaml(*ports));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *ports);
}

// An agent that runs on the recording must be told what the one on the machine was.
TEST(RecordedQos, ARecordingOfARecordingAnswersTheSame) {
  Bed bed;
  const std::array ports{Port(0), Port(2)};
  test::MemoryFileTree copied{{{"qos.yaml", FormatQosYaml(RecordQos(bed.io, ports))}}};
  RecordedPortIo io(copied);
  for (const QosPort& port : ports) {
    EXPECT_EQ(io.Read(port), bed.io.Read(port));
    EXPECT_EQ(io.UserQueuePairs(port), bed.io.UserQueuePairs(port));
  }
  EXPECT_EQ(io.Link(Port(0)), bed.io.Link(Port(0)));
}

TEST(RecordedQos, UnderOtherNamesItIsTheSame) {
  const auto ports = ParseQosYaml(kMachine);
  ASSERT_TRUE(ports);
  RecordedFiles recorded;
  recorded.files["qos.yaml"] = FormatQosYaml(*ports);
  EXPECT_EQ(Scrub(recorded), recorded) << "there is nothing in it that names anybody";
}

TEST(Overlay, LeavesWhatIsNotSaidOfATable) {
  PortSettings have;
  have.class_algorithm.emplace().fill(lossless::Algorithm::kVendor);
  have.priority_to_class = lossless::Identity();
  have.dcqcn = {{lossless::DcqcnParameter::kRpGd, 11}};
  PortSettings want;
  want.class_algorithm.emplace().fill(lossless::Algorithm::kAny);
  want.class_algorithm->at(3) = lossless::Algorithm::kEts;
  want.priority_to_class.emplace().fill(kNotSaid);
  want.dcqcn = {{lossless::DcqcnParameter::kRpAiRate, 5}};
  for (int i = 0; i < lossless::kHostSettings; ++i) Overlay(want, Setting(i), have);
  EXPECT_EQ(have.class_algorithm->at(3), lossless::Algorithm::kEts);
  EXPECT_EQ(have.class_algorithm->at(4), lossless::Algorithm::kVendor);
  EXPECT_EQ(have.priority_to_class, lossless::Identity());
  EXPECT_EQ(have.dcqcn->size(), 2u);
  EXPECT_TRUE(lossless::Compare(want, have).compliant());
}

topology::Nic Nic(std::string name, topology::Transport transport, std::string netdev, int ports = 1) {
  topology::Nic nic;
  nic.name = std::move(name);
  nic.transport = transport;
  nic.netdev = std::move(netdev);
  nic.pci = "0000:99:00.0";
  nic.driver = "other";
  for (int i = 1; i <= ports; ++i) nic.ports.emplace_back().number = i;
  return nic;
}

class QosPortsOfANode : public testing::Test {
 protected:
  QosPortsOfANode() {
    files_.Link("sys/class/net/eth2/device", "../../../0000:17:00.0");
    files_.Link("sys/0000:17:00.0/driver", "../bus/pci/drivers/mlx5_core");
    node_.nics = {Nic("mlx5_0", topology::Transport::kRoce, "eth2"),
                  Nic("mlx5_1", topology::Transport::kInfiniBand, ""),
                  Nic("mlx5_2", topology::Transport::kRoce, ""),
                  Nic("mlx5_bond_0", topology::Transport::kRoce, "bond0", 2)};
    Watch("mlx5_0", 1, "mlx5_0", "eth2", false);
    Watch("mlx5_bond_0", 1, "mlx5_bond_0", "eth4", true);
    Watch("mlx5_bond_0", 2, "", "eth5", true);
  }
  void Watch(const char* nic, int number, const char* device, const char* netdev, bool of_bond) {
    WatchedPort& port = watched_.emplace_back();
    port.nic = nic;
    port.number = port.device_port = number;
    port.device = device;
    port.netdev = netdev;
    port.of_bond = of_bond;
  }
  test::MemoryFileTree files_;
  topology::Node node_;
  std::vector<WatchedPort> watched_;
};

TEST_F(QosPortsOfANode, AreOfRoceThoseThatHaveAnInterfaceWithItsFunctionAndDriver) {
  const QosPort found{"mlx5_0:1", "mlx5_0", 1, "eth2", "0000:17:00.0", "mlx5_core"};
  const QosPort first{"mlx5_bond_0:1", "mlx5_bond_0", 1, "eth4", "0000:99:00.0", "other"};
  // The bond is one port of its RDMA device.
  const QosPort second{"mlx5_bond_0:2", "mlx5_bond_0", 1, "eth5", "0000:99:00.0", "other"};
  EXPECT_THAT(QosPorts(QosPortsWanted::kRoce, node_, watched_, &files_), ElementsAre(found, first, second));
}

TEST_F(QosPortsOfANode, AreAllOfThemForWhomAPolicySpeaksTo) {
  std::vector<std::string> names;
  for (const QosPort& port : QosPorts(QosPortsWanted::kAll, node_, watched_, nullptr))
    names.push_back(fmt::format("{} {} {}", port.name, port.netdev, port.pci_address));
  EXPECT_THAT(names,
              ElementsAre("mlx5_0:1 eth2 0000:99:00.0", "mlx5_1:1  0000:99:00.0", "mlx5_2:1  0000:99:00.0",
                          "mlx5_bond_0:1 eth4 0000:99:00.0", "mlx5_bond_0:2 eth5 0000:99:00.0"));
}

TEST_F(QosPortsOfANode, HaveTheInterfaceOfTheirNicWhereNobodyWatchesThem) {
  const std::vector<QosPort> ports = QosPorts(QosPortsWanted::kRoce, node_, {}, &files_);
  ASSERT_THAT(ports, testing::SizeIs(3));
  EXPECT_EQ(ports[0].netdev, "eth2");
  EXPECT_EQ(ports[2].netdev, "bond0");
}

// DCB is set on the ports of a bond; that of the bond itself would be another's.
TEST_F(QosPortsOfANode, OfABondDoNotTakeTheBondsInterfaceForTheirOwn) {
  watched_[2].netdev.clear();
  const std::vector<QosPort> all = QosPorts(QosPortsWanted::kAll, node_, watched_, &files_);
  EXPECT_EQ(all[4].netdev, "");
  EXPECT_THAT(QosPorts(QosPortsWanted::kRoce, node_, watched_, &files_), testing::SizeIs(2));
}

}  // namespace
}  // namespace heddle::nodeagent
