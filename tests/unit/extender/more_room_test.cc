#include "extender/more_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/snapshot_stage.h"

namespace heddle::extender {
namespace {

using test::Stage;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kA = topology::ParseSynthetic("su:1 node:2 gpu:8 nic:8 rail:8")->nodes[0].name;

// Of two stages, with one set of fabrics and with a set for each.
std::set<std::string> More(const Stage& was, const Stage& is) {
  const SnapshotInputs before = was.Inputs();
  SnapshotInputs after = is.Inputs();
  std::set<std::string> apart = NodesWithMoreRoom(TakeSnapshot(before), TakeSnapshot(after));
  if (was.topologies.size() == is.topologies.size()) {
    after.fabrics = before.fabrics;
    EXPECT_EQ(NodesWithMoreRoom(TakeSnapshot(before), TakeSnapshot(after)), apart);
  }
  return apart;
}

TEST(NodesWithMoreRoom, AreThoseThatAPodHasLeftAndNotThoseThatOneHasCome) {
  Stage with;
  with.Bound("lone", kA, 2);
  EXPECT_THAT(More(with, Stage()), ElementsAre(kA));
  EXPECT_THAT(More(Stage(), with), IsEmpty());
  EXPECT_THAT(More(with, with), IsEmpty());
}

TEST(NodesWithMoreRoom, CountWhatIsNoGpuToo) {
  Stage with;
  with.Bound("lone", kA, 0);
  EXPECT_THAT(More(with, Stage()), ElementsAre(kA)) << "a CPU";
  Stage extended;
  extended.nodes[0]->extended = {{"heddle.dev/fabric", 9}};
  EXPECT_THAT(More(Stage(), extended), ElementsAre(kA));
  EXPECT_THAT(More(extended, Stage()), IsEmpty());
}

TEST(NodesWithMoreRoom, AreNotThoseWithoutAnyGpuToGive) {
  Stage full;
  full.Bound("holder", kA, 8);
  Stage with = full;
  with.Bound("lone", kA, 0);
  EXPECT_THAT(More(with, full), IsEmpty()) << "pods without GPUs come and go everywhere";
}

TEST(NodesWithMoreRoom, AreThoseThatCanBeUsedAgain) {
  Stage cordoned;
  cordoned.nodes[0]->cordoned = true;
  EXPECT_THAT(More(cordoned, Stage()), ElementsAre(kA));
  EXPECT_THAT(More(Stage(), cordoned), IsEmpty());
}

TEST(NodesWithMoreRoom, AreThoseThatAdmitOthers) {
  Stage labelled;
  labelled.nodes[0]->labels = {{"pool", "train"}};
  EXPECT_THAT(More(Stage(), labelled), ElementsAre(kA));
}

TEST(NodesWithMoreRoom, AreThoseThatWereNotThere) {
  Stage more;
  const topology::Node third = topology::ParseSynthetic("su:1 node:3 gpu:8 nic:8 rail:8")->nodes[2];
  more.Add(third);
  EXPECT_THAT(More(Stage(), more), ElementsAre(third.name));
  EXPECT_THAT(More(more, Stage()), IsEmpty());
}

}  // namespace
}  // namespace heddle::extender
