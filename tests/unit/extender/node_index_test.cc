#include "extender/node_index.h"

#include <gtest/gtest.h>

#include "tests/support/builders.h"

namespace heddle::extender {
namespace {

TEST(NodeIndex, FindsEveryNodeOfTheFabricAndNobodyElse) {
  const topology::Fabric fabric = test::FabricOf("su:4 node:16 gpu:8 nic:8 rail:8");
  const NodeIndex index(fabric);
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    const std::string name = fabric.nodes[i].node.name;
    index.Prefetch(name);
    EXPECT_EQ(index.Find(name), topology::NodeId(i)) << name;
    EXPECT_EQ(index.Find(name + "0"), topology::kNone) << name;
  }
  EXPECT_EQ(index.Find(""), topology::kNone);
  index.Prefetch("");
}

TEST(NodeIndex, OfNoNodesFindsNone) {
  const NodeIndex index{topology::Fabric()};
  index.Prefetch("n1");
  EXPECT_EQ(index.Find("n1"), topology::kNone);
}

}  // namespace
}  // namespace heddle::extender
