#include "operator/peers.h"

#include <gmock/gmock.h>

#include "topology/synthetic.h"

namespace heddle::operators {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<topology::Node> Nodes(int count) {
  auto made = topology::ParseSynthetic("su:1 node:" + std::to_string(count) +
                                       " gpu:8 nic:8 rail:8 transport:ib machine:h100");
  EXPECT_TRUE(made);
  for (topology::Node& node : made->nodes) node.machine = "HGX H100";
  return made->nodes;
}

std::vector<std::string> Fewer(std::vector<topology::Node> nodes) {
  const auto fabrics = topology::BuildFabrics(std::move(nodes), {});
  EXPECT_EQ(fabrics.size(), 1u);
  return FewerThanPeers(fabrics.front());
}

// All behind one PCIe switch: the last GPU and its NIC.
void Lose(topology::Node& node) {
  const int lost = node.gpus.back().index;
  node.gpus.pop_back();
  node.nics.pop_back();
  std::erase_if(node.paths, [&](const topology::GpuNicPath& path) {
    return path.gpu == lost || std::none_of(node.nics.begin(), node.nics.end(),
                                            [&](const auto& nic) { return nic.name == path.nic; });
  });
}

TEST(Peers, NameTheNodeThatLostAGpuTogetherWithItsNic) {
  auto nodes = Nodes(4);
  Lose(nodes[2]);
  EXPECT_THAT(
      Fewer(nodes),
      ElementsAre("node-02 has 7 of 8 GPUs and 7 of 8 NICs for training, as 3 other nodes of its kind "
                  "(HGX H100) show"));
}

TEST(Peers, AreSilentWhereAllAreAlike) {
  EXPECT_THAT(Fewer(Nodes(4)), IsEmpty());
}

TEST(Peers, AreNotJudgedByTwoOrByHalf) {
  auto two = Nodes(2);
  Lose(two[0]);
  EXPECT_THAT(Fewer(two), IsEmpty());
  auto half = Nodes(4);
  Lose(half[0]);
  Lose(half[1]);
  EXPECT_THAT(Fewer(half), IsEmpty());
}

TEST(Peers, AreOfTheSameProduct) {
  auto nodes = Nodes(4);
  Lose(nodes[3]);
  nodes[3].machine = "PCIe H100";
  EXPECT_THAT(Fewer(nodes), IsEmpty());
  nodes[3].machine.clear();  // nobody knows what it is
  EXPECT_THAT(Fewer(nodes), IsEmpty());
}

TEST(Peers, DoNotBlameWhoHasMore) {
  auto nodes = Nodes(4);
  for (int n = 0; n < 3; ++n) Lose(nodes[std::size_t(n)]);
  EXPECT_THAT(Fewer(nodes), IsEmpty());
}

}  // namespace
}  // namespace heddle::operators
