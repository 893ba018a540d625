#include "nodeagent/leaf/lldpd.h"

#include <gmock/gmock.h>

#include "tests/support/memory_file_tree.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kHeard =
    R"({"lldp":[{"interface":[{"name":"eth1","via":"LLDP","chassis":[{"id":[{"type":"mac","value":"aa:01"}],)"
    R"("name":[{"value":"tor-1"}]}],"port":[{"id":[{"type":"ifname","value":"swp7"}],"ttl":[{"value":"20"}]}]}]}]})";

CommandOptions Says(const std::string& script) {
  CommandOptions options;
  options.arguments = {"/bin/sh", "-c", script};
  options.deadline = std::chrono::seconds(60);
  return options;
}

void AddRoceDevice(test::MemoryFileTree& files) {
  files.Write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  files.Write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
}

TEST(LldpdLeaves, NamesTheLeafAndHowLongThatCounts) {
  const test::MemoryFileTree files;
  LldpdLeaves leaves(Says("printf '%s' '" + kHeard + "'"));
  const LeafReadings readings = leaves.Read(RdmaProbe(files).Read());
  EXPECT_EQ(readings.by_netdev.at("eth1"), (topology::LeafPort{"tor-1", "swp7", "aa:01"}));
  EXPECT_EQ(readings.proof.at("eth1"), std::chrono::seconds(20));
  EXPECT_EQ(readings.files.at("lldp.json"), kHeard);
  EXPECT_FALSE(readings.lldp_unanswered);
  EXPECT_THAT(readings.problems, IsEmpty());
}

TEST(LldpdLeaves, AreNoProblemWithoutLldpcliWhereNoPortSpeaksRoce) {
  const test::MemoryFileTree files;
  CommandOptions missing;
  missing.arguments = {"heddle-no-such-lldpcli"};
  const LeafReadings readings = LldpdLeaves(missing).Read(RdmaProbe(files).Read());
  EXPECT_THAT(readings.problems, IsEmpty());
  EXPECT_TRUE(readings.lldp_unanswered);
}

TEST(LldpdLeaves, SayThatLldpcliIsMissingWhereAPortSpeaksRoce) {
  test::MemoryFileTree files;
  AddRoceDevice(files);
  CommandOptions missing;
  missing.arguments = {"heddle-no-such-lldpcli"};
  EXPECT_THAT(LldpdLeaves(missing).Read(RdmaProbe(files).Read()).problems,
              ElementsAre(HasSubstr("is not installed")));
}

TEST(LldpdLeaves, QuoteLldpcliWithoutTheTimeWhereLldpdIsNotRunning) {
  test::MemoryFileTree files;
  const CommandOptions refused = Says(
      "echo '2026-11-21T23:35:55 [WARN/control] unable to connect to socket /run/lldpd.socket' >&2; exit 1");
  EXPECT_THAT(LldpdLeaves(refused).Read(RdmaProbe(files).Read()).problems, IsEmpty())
      << "nobody needs it here";
  AddRoceDevice(files);
  const LeafReadings readings = LldpdLeaves(refused).Read(RdmaProbe(files).Read());
  EXPECT_THAT(
      readings.problems,
      ElementsAre("lldpd does not say where Ethernet cables end: /bin/sh failed with status 1: unable to "
                  "connect to socket /run/lldpd.socket"));
  EXPECT_TRUE(readings.lldp_unanswered);
  EXPECT_THAT(readings.by_netdev, IsEmpty());
}

TEST(LldpdLeaves, AreRecordedWithTheReasonWhereLldpdDoesNotAnswer) {
  test::MemoryFileTree files, recording;
  AddRoceDevice(files);
  const LeafReadings live = LldpdLeaves(Says("echo 'no socket' >&2; exit 1")).Read(RdmaProbe(files).Read());
  for (const auto& [name, content] : live.files) recording.Write(name, content);
  const LeafReadings replayed = LldpFileLeaves(recording).Read({});
  EXPECT_THAT(replayed.problems, ElementsAre(HasSubstr("no socket")));
  EXPECT_EQ(replayed.problems, live.problems);
  EXPECT_TRUE(replayed.lldp_unanswered);
}

TEST(LldpdLeaves, AreNotStoppedByAnLldpdThatHangs) {
  const test::MemoryFileTree files;
  CommandOptions hangs = Says("sleep 1000");
  hangs.deadline = std::chrono::milliseconds(50);
  const LeafReadings readings = LldpdLeaves(hangs).Read(RdmaProbe(files).Read());
  EXPECT_THAT(readings.problems, ElementsAre(HasSubstr("did not finish within 50 ms")));
  EXPECT_TRUE(readings.lldp_unanswered);
}

TEST(LldpdLeaves, TakeGarbageForNoAnswer) {
  const test::MemoryFileTree files;
  const LeafReadings readings = LldpdLeaves(Says("head -c 100000 /dev/zero")).Read(RdmaProbe(files).Read());
  EXPECT_THAT(readings.problems, ElementsAre(HasSubstr("not what `lldpcli")));
  EXPECT_TRUE(readings.lldp_unanswered);
  EXPECT_THAT(readings.files, IsEmpty());
}

TEST(LldpdLeaves, AskTheSocketThatTheyAreGiven) {
  EXPECT_THAT(AskLldpd().arguments, ElementsAre("lldpcli", "-f", "json0", "show", "neighbors"));
  EXPECT_THAT(AskLldpd("/run/x/lldpd.socket").arguments,
              ElementsAre("lldpcli", "-u", "/run/x/lldpd.socket", "-f", "json0", "show", "neighbors"));
}

}  // namespace
}  // namespace heddle::nodeagent
