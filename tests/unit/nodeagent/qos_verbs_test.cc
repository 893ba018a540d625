// `qos show` and what `record` keeps of QoS, by the program itself on a recorded machine.
#include <gmock/gmock.h>

#include <filesystem>

#include "nodeagent/qos/recorded_port_io.h"
#include "nvml_bed.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kPorts = R"(ports:
- name: mlx5_bond_0:1
  netdev: ens1f0np0
  settings: {trust: DSCP, pfc: [3], mtu: 9000, dscpToPriority: [{priority: 3, dscps: "26"}]}
  gaps: [{setting: watchdogMs, reason: the driver has no watchdog}]
  queuePairs: 4
  link: {carrierChanges: 2}
)";

class QosVerbs : public testing::Test {
 protected:
  QosVerbs() {
    test::WriteMachine("roce-dual-tor", machine_);
    folder_.Write("machine/qos.yaml", kPorts);
  }
  std::string Run(const std::string& arguments) const {
    return test::Output(agent_ + " --machine " + machine_ + " " + arguments);
  }
  const test::TemporaryFolder folder_;
  const std::string machine_ = folder_.path() + "/machine";
  const std::string agent_ = test::Built("bin/heddle-nodeagent");
};

TEST_F(QosVerbs, ShowEachSettingOrWhyNot) {
  const std::string shown = Run("qos show mlx5_bond_0:1");
  EXPECT_THAT(shown, HasSubstr("mlx5_bond_0:1  ens1f0np0"));
  EXPECT_THAT(shown, HasSubstr("\n  trust              DSCP\n"));
  EXPECT_THAT(shown, HasSubstr("\n  dscpToPriority     DSCP 26: 3\n"));
  EXPECT_THAT(shown, HasSubstr("\n  watchdogMs         ? the driver has no watchdog\n"));
  EXPECT_THAT(shown, HasSubstr("\n  queue pairs        4 of processes\n"));
  EXPECT_THAT(shown, HasSubstr("\n  link               up, 2 changes\n"));
  EXPECT_THAT(shown, Not(HasSubstr("mlx5_bond_1")));
  // A port of a bond has its own interface; nothing is known of it, which one line says.
  EXPECT_THAT(Run("qos show ens1f1np1"), HasSubstr("mlx5_bond_0:2  ens1f1np1"));
  EXPECT_THAT(Run("qos show ens1f1np1"),
              HasSubstr("\n  all settings       ? qos.yaml of this recorded machine"));
  EXPECT_THAT(Run("qos show ens1f1np1"), Not(HasSubstr("pfc")));
}

TEST_F(QosVerbs, SayWhichPortsThereAreAndWhatARecordingCannotDo) {
  const std::string refused = test::Output("! " + agent_ + " --machine " + machine_ + " qos show eth99 2>&1");
  EXPECT_THAT(refused, HasSubstr("there is no RoCE port eth99; there are mlx5_bond_0:1, mlx5_bond_0:2"));
  EXPECT_THAT(test::Output("! " + agent_ + " --machine " + machine_ + " qos watch 2>&1"),
              HasSubstr("a recorded machine does not change"));
}

// As every other answer of the program.
TEST_F(QosVerbs, SayThatTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const char* verb :
       {"qos show", "qos show -o json", "--print", "--print -o json", "--print --follow", "--nccl-topo -"}) {
    const std::string command = "timeout 60 " + agent_ + " --machine " + machine_ + " " + verb;
    EXPECT_THAT(test::Output("{ " + command + " 2>&1 >/dev/full; test $? -eq 1; }"),
                HasSubstr("heddle-nodeagent: standard output cannot be written: No space left"))
        << verb;
  }
}

TEST_F(QosVerbs, ARecordingIsKeptByTheNextOneUnderOtherNamesToo) {
  for (const char* scrub : {"", " --scrub"}) {
    const std::string copy = folder_.path() + "/copy" + (*scrub != 0 ? "2" : "1");
    Run("record " + copy + scrub);
    const auto ports = ParseQosYaml(base::DiskFileTree(copy).Read("qos.yaml").value());
    ASSERT_TRUE(ports) << ports.error().message;
    EXPECT_EQ(ports->at("mlx5_bond_0:1").reading.have.pfc, lossless::PrioritySet{3});
    EXPECT_EQ(ports->at("mlx5_bond_0:1").queue_pairs, 4);
    EXPECT_GT(ports->size(), 1U) << "ports that were not recorded are named as such";
  }
  const std::string json = Run("qos show mlx5_bond_0 -o json");
  EXPECT_THAT(json, HasSubstr("\"carrierChanges\": 2"));
}

TEST_F(QosVerbs, AMachineNobodyAskedStaysOne) {
  const std::string silent = test::RecordedMachine("roce-dual-tor").path();
  test::Output(agent_ + " --machine " + silent + " record " + folder_.path() + "/copy");
  EXPECT_FALSE(base::DiskFileTree(folder_.path() + "/copy").Read("qos.yaml"));
}

}  // namespace
}  // namespace heddle::nodeagent
