// A place in a cloud's network, from a file that somebody keeps on the machine.
#include <gmock/gmock.h>

#include <filesystem>

#include "nodeagent/leaf/memory.h"
#include "nodeagent/leaf/probe.h"
#include "recorded_machine.h"
#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(Labels, AreLinesWithBlanksAndCommentsWhereverPeoplePutThem) {
  const LeafReadings readings = LeavesOfLabels(
      "# written by cloud-init\r\n"
      "  topology.k8s.aws/network-node-layer-3 = nn-0a1b \r\n"
      "#topology.k8s.aws/network-node-layer-4=nn-old\n"
      "zone=us-east-1a\n"
      "no label at all\n");
  EXPECT_THAT(readings.labels, ElementsAre(Pair("topology.k8s.aws/network-node-layer-3", "nn-0a1b")));
}

TEST(GivenLabels, AreReadAnewAtEachLookAndKeptForARecording) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/labels";
  GivenLabels source(path);
  EXPECT_THAT(source.Read({}).problems, ElementsAre(HasSubstr("the file of labels: ")));
  folder.Write("labels", "topology.k8s.aws/network-node-layer-4=nn-1\n");
  const LeafReadings readings = source.Read({});
  EXPECT_THAT(readings.problems, IsEmpty());
  EXPECT_THAT(readings.labels, ElementsAre(Pair("topology.k8s.aws/network-node-layer-4", "nn-1")));
  EXPECT_THAT(readings.files,
              ElementsAre(Pair("labels.txt", "topology.k8s.aws/network-node-layer-4=nn-1\n")));
}

TEST(GivenLabels, ThatNameNoPlaceAreAProblem) {
  const test::TemporaryFolder folder;
  folder.Write("labels", "topology.k8s.aws/network-node-layer-1=nn-1\n");
  GivenLabels source(folder.path() + "/labels");
  EXPECT_THAT(source.Read({}).problems,
              ElementsAre(HasSubstr("/labels names no place: it has no line such as "
                                    "topology.k8s.aws/network-node-layer-4=…")));
  folder.Write("labels", std::string(2 << 20, '\0') + "\ntopology.k8s.aws/network-node-layer-4=nn-1\n");
  EXPECT_THAT(source.Read({}).problems, ElementsAre(HasSubstr("names no place")));
  std::filesystem::remove(folder.path() + "/labels");
  std::filesystem::create_directory(folder.path() + "/labels");
  EXPECT_THAT(source.Read({}).problems, ElementsAre(HasSubstr("the file of labels: ")));
}

// With an EFA machine around it: the leaves are those of the file.
TEST(GivenLabels, TellALiveMachineItsLeaves) {
  const test::TemporaryFolder folder;
  folder.Write("labels", "topology.k8s.aws/network-node-layer-4=nn-1\n");
  const base::DiskFileTree nothing(folder.path());
  test::FakeClock clock;
  LeafReadings leaves;
  for (const auto& source : LiveLeaves(nothing, clock, {}, {.labels_file = folder.path() + "/labels"}))
    leaves.Merge(source->Read({}));
  topology::Node node = test::RecordedMachine("p4d-24xlarge").Look().node;
  crds::FillLeaves(node, leaves.labels);
  EXPECT_EQ(node.FindNic("rdmap16s27")->ports.at(0).leaf_port->leaf, "nn-1");
}

}  // namespace
}  // namespace heddle::nodeagent
