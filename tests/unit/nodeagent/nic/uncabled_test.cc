// Ports that whoever runs a node says have no cable: what they may write, and what comes of it.
#include "nodeagent/nic/uncabled.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "nodeagent/assembly/identity.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/flags.h"
#include "nodeagent/health/conditions.h"
#include "nodeagent/nic/rdma_probe.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/ticket.h"
#include "tests/support/memory_file_tree.h"
#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

UncabledPorts Named(std::string_view text) {
  auto ports = UncabledPorts::Parse(text);
  EXPECT_TRUE(ports) << ports.error().message;
  return ports ? *std::move(ports) : UncabledPorts();
}

std::string WhyRefused(std::string_view text) {
  const auto ports = UncabledPorts::Parse(text);
  return ports ? std::string() : ports.error().message;
}

TEST(UncabledPorts, AreDevicesWithAllTheirPortsOrOneOfThem) {
  const UncabledPorts ports = Named("mlx5_1,mlx5_[45]:2,rocep*s0f1,ib?:[12]");
  EXPECT_EQ(ports.Naming("mlx5_1", 1), "mlx5_1");
  EXPECT_EQ(ports.Naming("mlx5_1", 2), "mlx5_1");
  EXPECT_EQ(ports.Naming("mlx5_10", 1), "") << "the whole name";
  EXPECT_EQ(ports.Naming("mlx5_4", 2), "mlx5_[45]:2");
  EXPECT_EQ(ports.Naming("mlx5_4", 1), "");
  EXPECT_EQ(ports.Naming("mlx5_6", 2), "");
  EXPECT_EQ(ports.Naming("rocep27s0f1", 1), "rocep*s0f1");
  EXPECT_EQ(ports.Naming("ib0", 2), "ib?:[12]");
  EXPECT_EQ(ports.Naming("ib0", 3), "");
  EXPECT_EQ(ports.text(), "mlx5_1,mlx5_[45]:2,rocep*s0f1,ib?:[12]");
  EXPECT_EQ(UncabledPorts().Naming("mlx5_1", 1), "");
  EXPECT_EQ(Named(""), UncabledPorts());
  EXPECT_EQ(Named("[m]lx5_1").Naming("mlx5_1", 1), "[m]lx5_1");
  EXPECT_EQ(Named("mlx5_[!0-3]").Naming("mlx5_4", 1), "mlx5_[!0-3]");
  EXPECT_EQ(Named("*:2").Naming("mlx5_0", 2), "*:2") << "the second port of every card";
}

TEST(UncabledPorts, AreRefusedWithWhatIsWrongWithThem) {
  EXPECT_THAT(WhyRefused("mlx5_[1,mlx5_2"),
              HasSubstr("\"mlx5_[1\" names no ports without a cable: a [ has no ]"));
  EXPECT_THAT(WhyRefused("mlx5_[1,3]"), HasSubstr("stand no commas: [13]"));
  EXPECT_THAT(WhyRefused("mlx5_[]"), HasSubstr("nothing stands between [ and ]"));
  EXPECT_THAT(WhyRefused("mlx5_[!]"), HasSubstr("nothing stands between [ and ]"));
  EXPECT_THAT(WhyRefused("mlx5_[3-1]"), HasSubstr("the range 3-1 runs backwards"));
  EXPECT_THAT(WhyRefused("mlx5_[1/2]"), HasSubstr("'/' stands between [ and ]"));
  EXPECT_THAT(WhyRefused("mlx5_1:"), HasSubstr("no port stands behind the colon"));
  EXPECT_THAT(WhyRefused(":1"), HasSubstr("no device stands before the colon"));
  for (const char* port : {"0", "255", "one", "1.5", "-1", "99999999999999999999"})
    EXPECT_THAT(WhyRefused(std::string("mlx5_1:") + port), HasSubstr("a number from 1 to 254")) << port;
  EXPECT_THAT(WhyRefused("mlx5_1:1:2"), HasSubstr("':' stands in no device's name"));
  EXPECT_THAT(WhyRefused("mlx5_1, mlx5_2"), HasSubstr("a blank stands in no device's name"));
  EXPECT_THAT(WhyRefused("mlx5_1,,mlx5_2"), HasSubstr("it is empty"));
  EXPECT_THAT(WhyRefused("mlx5_1,"), HasSubstr("behind its last comma"));
  EXPECT_THAT(WhyRefused("{mlx5_1}"), HasSubstr("'{' stands in no device's name"));
  EXPECT_THAT(WhyRefused(std::string(65, 'a')), HasSubstr("over 64 characters"));
  EXPECT_THAT(WhyRefused("*"), HasSubstr("no alarm would be left of any"));
  EXPECT_THAT(WhyRefused("mlx5_1,**:*"), HasSubstr("no alarm would be left of any"));
  EXPECT_THAT(WhyRefused("*"), HasSubstr("write DEVICE or DEVICE:PORT, such as mlx5_1 or mlx5_[45]:2"));
  std::string many = "mlx5_0";
  for (int i = 1; i <= 128; ++i) many += ",mlx5_" + std::to_string(i);
  EXPECT_THAT(WhyRefused(many), HasSubstr("over 128 patterns are given"));
}

TEST(UncabledPorts, TakeWhateverIsWrittenForAListOrRefuseIt) {
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::string text = test::Damage("mlx5_1,mlx5_[45]:2,rocep*s0f1:?,*:[!1-3]", random);
    if (const auto ports = UncabledPorts::Parse(text)) {
      EXPECT_EQ(ports->text(), text);
      (void)ports->Naming("mlx5_1", 1);
    } else {
      EXPECT_THAT(ports.error().message, HasSubstr("names no ports without a cable"));
    }
  }
}

TEST(UncabledPorts, AreRefusedWhenTheAgentStartsWithTheFlagAndTheReason) {
  const auto parse = [](std::vector<std::string> words) -> std::string {
    CLI::App app;
    Flags flags;
    Define(app, flags);
    std::reverse(words.begin(), words.end());
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "taken: " + flags.uncabled;
  };
  EXPECT_EQ(parse({"--uncabled", "mlx5_1,[m]lx5_[45]:2"}), "taken: mlx5_1,[m]lx5_[45]:2");
  EXPECT_EQ(parse({"--uncabled=[m]lx5_1"}), "taken: [m]lx5_1");
  EXPECT_EQ(parse({"--uncabled=mlx5_1", "--uncabled=mlx5_2"}), "taken: mlx5_2") << "what comes later wins";
  EXPECT_THAT(parse({"--uncabled=mlx5_["}),
              testing::AllOf(HasSubstr("--uncabled"), HasSubstr("\"mlx5_[\" names no ports"),
                             HasSubstr("a [ has no ]")));
}

// A machine with one card, whose port is down, beside a card of another model that is up.
struct Bed {
  Bed() {
    Card("mlx5_0", "0000:1b:00.0", "a model", "4: ACTIVE");
    Card("mlx5_1", "0000:3b:00.0", "another", "1: DOWN");
    files.Write("machine.yaml", "name: \"a machine\"\nhostname: \"node-00\"\n");
  }
  void Card(const std::string& device, const std::string& pci, const std::string& board,
            const std::string& state) {
    const std::string base = "sys/class/infiniband/" + device;
    files.Link(base + "/device", "../../../" + pci);
    files.Write(base + "/board_id", board + "\n");
    Port(device, 1, state);
  }
  void Port(const std::string& device, int port, const std::string& state) {
    const std::string base = "sys/class/infiniband/" + device + "/ports/" + std::to_string(port);
    files.Write(base + "/state", state + "\n");
    files.Write(base + "/link_layer", "Ethernet\n");
    files.Write(base + "/rate", "400 Gb/sec (4X NDR)\n");
  }
  std::vector<std::string> Devices(RdmaProbe& probe) {
    readings = probe.Read();
    std::vector<std::string> names;
    for (const RdmaDevice& device : readings.devices) names.push_back(device.name);
    return names;
  }

  test::MemoryFileTree files;
  RdmaReadings readings;
};

TEST(UncabledPorts, AreLeftOutOfTheirCardWithThePatternThatNamesThem) {
  Bed bed;
  RdmaProbe probe(bed.files);
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0", "mlx5_1")) << "nobody can tell that it has no cable";
  probe.LeaveOut(Named("mlx5_[1-3]"));
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0"));
  ASSERT_THAT(bed.readings.excluded, SizeIs(1));
  EXPECT_EQ(bed.readings.excluded[0].device, "mlx5_1");
  EXPECT_EQ(bed.readings.excluded[0].reason, "has no cable, as --uncabled says (mlx5_[1-3])");
  EXPECT_TRUE(bed.readings.excluded[0].whole_function) << "its interface is no NIC either";
  EXPECT_THAT(bed.readings.problems, IsEmpty());
}

TEST(UncabledPorts, AreLeftOutOneByOneOfADeviceWithSeveral) {
  Bed bed;
  bed.Port("mlx5_0", 2, "1: DOWN");
  RdmaProbe probe(bed.files);
  probe.LeaveOut(Named("mlx5_0:2"));
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(bed.readings.devices[0].ports, SizeIs(1));
  ASSERT_THAT(bed.readings.excluded, SizeIs(1));
  EXPECT_EQ(bed.readings.excluded[0].device, "mlx5_0 port 2");
  EXPECT_FALSE(bed.readings.excluded[0].whole_function);
}

TEST(UncabledPorts, CountOnceTheyAreUpAndThatIsAProblem) {
  Bed bed;
  RdmaProbe probe(bed.files);
  probe.LeaveOut(Named("mlx5_1"));
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0"));
  bed.Port("mlx5_1", 1, "4: ACTIVE");
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_THAT(bed.readings.excluded, IsEmpty());
  EXPECT_THAT(
      bed.readings.problems,
      ElementsAre("mlx5_1 port 1 is up, so it counts, though --uncabled says that it has no cable (mlx5_1)"));
  bed.Port("mlx5_1", 1, "1: DOWN");
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0")) << "its owner says so, whatever it was";
}

TEST(UncabledPorts, StayLeftOutWhileTheirStateCannotBeRead) {
  Bed bed;
  RdmaProbe probe(bed.files);
  probe.LeaveOut(Named("mlx5_1"));
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0"));
  const std::string state = "sys/class/infiniband/mlx5_1/ports/1/state";
  bed.files.FailReads(state, base::Error{base::Code::kUnavailable, state + ": Input/output error", {}});
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0"));
}

TEST(UncabledPorts, MayBeOfADeviceInSoftware) {
  Bed bed;
  bed.files.Write("sys/class/infiniband/rxe0/parent", "eth0\n");
  bed.Port("rxe0", 1, "1: DOWN");
  RdmaProbe probe(bed.files);
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0", "mlx5_1", "rxe0"));
  probe.LeaveOut(Named("rxe0"));
  EXPECT_THAT(bed.Devices(probe), ElementsAre("mlx5_0", "mlx5_1"));
}

TEST(UncabledPorts, OfARecordingAreThoseOfTheMachineUnlessOthersAreGiven) {
  Bed bed;
  Identity identity{"node-00", "a machine", ""};
  identity.uncabled = "mlx5_1";
  const auto again = ParseMachineYaml(FormatMachineYaml(identity));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, identity);
  bed.files.Write("machine.yaml", FormatMachineYaml(identity));
  auto recorded = OpenRecorded(bed.files, "folder", "");
  ASSERT_TRUE(recorded);
  EXPECT_THAT(recorded->discovery->Read().rdma.devices, SizeIs(1));
  EXPECT_EQ(recorded->identity.uncabled, "mlx5_1") << "so that it is kept when it is recorded again";
  auto given = OpenRecorded(bed.files, "folder", "", Named("mlx5_7"));
  ASSERT_TRUE(given);
  EXPECT_THAT(given->discovery->Read().rdma.devices, SizeIs(2));
  identity.uncabled = "mlx5_[";
  bed.files.Write("machine.yaml", FormatMachineYaml(identity));
  const auto wrong = OpenRecorded(bed.files, "folder", "");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("folder/machine.yaml: uncabled: \"mlx5_[\""));
}

TEST(UncabledPorts, RaiseNoAlarmAndAreShownWithTheReason) {
  Bed bed;
  auto machine = OpenRecorded(bed.files, "folder", "", Named("mlx5_1"));
  ASSERT_TRUE(machine);
  Observation seen = machine->discovery->Look();
  EXPECT_THAT(seen.problems, Not(Contains(HasSubstr("mlx5_1"))));
  seen.problems.clear();  // of what else this machine lacks, which would be said instead
  for (const crds::Condition& condition : ConditionsOf(seen)) {
    if (condition.type != kDiscoveryComplete) EXPECT_THAT(condition.message, Not(HasSubstr("mlx5_1")));
    if (condition.type == kDiscoveryComplete)
      EXPECT_THAT(condition.message, HasSubstr("mlx5_1 has no cable, as --uncabled says (mlx5_1)"));
  }
  crds::NodeTopology object;
  object.name = "node-00";
  PrintedFacts facts;
  facts.excluded = seen.excluded;
  EXPECT_THAT(Ticket(Report(object, seen, base::WallTime(std::chrono::seconds(1))), facts),
              HasSubstr("Left out\n  mlx5_1: has no cable, as --uncabled says (mlx5_1)"));
}

}  // namespace
}  // namespace heddle::nodeagent
