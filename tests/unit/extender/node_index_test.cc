#include "extender/node_index.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

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

TEST(NodeIndex, FindsManyAsItFindsEach) {
  const topology::Fabric fabric = test::FabricOf("su:4 node:16 gpu:8 nic:8 rail:8");
  const NodeIndex index(fabric);
  std::vector<std::string> owned;
  for (std::size_t i = fabric.nodes.size(); i-- > 0;) {
    owned.push_back(fabric.nodes[i].node.name);
    if (i % 3 == 0) owned.push_back("nobody-" + std::to_string(i));
  }
  owned.emplace_back();
  for (const std::size_t count :
       {std::size_t(0), std::size_t(1), std::size_t(16), std::size_t(17), owned.size()}) {
    const std::vector<std::string_view> names(owned.begin(), owned.begin() + std::ptrdiff_t(count));
    const std::vector<topology::NodeId> found = index.FindAll(names);
    ASSERT_EQ(found.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(found[i], index.Find(names[i])) << names[i];
  }
}

TEST(NodeIndex, OfNoNodesFindsNone) {
  const NodeIndex index{topology::Fabric()};
  index.Prefetch("n1");
  EXPECT_EQ(index.Find("n1"), topology::kNone);
  EXPECT_EQ(index.FindAll({"n1"}), std::vector{topology::kNone});
}

}  // namespace
}  // namespace heddle::extender
