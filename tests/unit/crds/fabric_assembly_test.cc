#include "crds/fabric_assembly.h"

#include <gtest/gtest.h>

#include "topology/synthetic.h"

namespace heddle::crds {
namespace {

TEST(FabricName, IsTheTransportAndTheSite) {
  EXPECT_EQ(FabricName(topology::Transport::kInfiniBand, ""), "infiniband");
  EXPECT_EQ(FabricName(topology::Transport::kRoce, "berlin"), "roce-berlin");
}

TEST(AssembleFabrics, AppliesTheDeclarationOfThatObjectAlone) {
  const auto synthetic = topology::ParseSynthetic("su:2 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib");
  ASSERT_TRUE(synthetic);
  topology::Declaration two_to_one;
  two_to_one.oversubscription_percent = 200;
  const auto fabrics =
      AssembleFabrics(synthetic->nodes, {{"ethernet", {}}, {"infiniband", two_to_one}, {"roce", {}}});
  ASSERT_EQ(fabrics.size(), 1U);
  EXPECT_EQ(fabrics.begin()->first, "infiniband");
  EXPECT_EQ(fabrics.begin()->second.declaration, two_to_one);
  EXPECT_EQ(fabrics.begin()->second.transport, topology::Transport::kInfiniBand);
}

}  // namespace
}  // namespace heddle::crds
