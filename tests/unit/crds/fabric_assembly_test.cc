#include "crds/fabric_assembly.h"

#include <gtest/gtest.h>

#include <algorithm>

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

TEST(AssembleFabrics, SaysWhatOnlyAllNodesTogetherShowWhereADeclarationAppliesToo) {
  auto made = topology::ParseSynthetic("su:2 node:2 gpu:8 nic:8 rail:8 rate:400 transport:ib");
  ASSERT_TRUE(made);
  topology::Declaration two_to_one;
  two_to_one.oversubscription_percent = 200;
  made->nodes.push_back(made->nodes[0]);
  made->nodes.back().machine = "another";
  const auto fabrics = AssembleFabrics(made->nodes, {{"infiniband", two_to_one}});
  ASSERT_EQ(fabrics.size(), 1U);
  const auto& faults = fabrics.at("infiniband").faults;
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].sentence, "two different nodes are called " + made->nodes[0].name);
}

TEST(AssembleFabrics, SaysThatNothingTellsWhereANodeWithoutNicsIs) {
  auto made = topology::ParseSynthetic("su:1 node:3 gpu:8 nic:8 rail:8 transport:ib");
  ASSERT_TRUE(made);
  topology::Node roce = made->nodes[0], bare = made->nodes[0];
  roce.name = "roce";
  for (topology::Nic& nic : roce.nics) nic.transport = topology::Transport::kRoce;
  bare.name = "bare";
  bare.nics.clear();
  bare.paths.clear();
  made->nodes.push_back(bare);
  topology::Declaration declaration = made->declaration;
  const auto said = [](const topology::Fabric& fabric) {
    return std::any_of(fabric.assumptions.begin(), fabric.assumptions.end(), [](const std::string& one) {
      return one.starts_with("bare has GPUs and no compute NIC");
    });
  };
  EXPECT_FALSE(said(AssembleFabrics(made->nodes, {{"infiniband", declaration}}).at("infiniband")));
  made->nodes.push_back(roce);
  EXPECT_TRUE(said(AssembleFabrics(made->nodes, {{"infiniband", declaration}}).at("infiniband")));
  EXPECT_FALSE(said(AssembleFabrics(made->nodes, {}).at("roce")));
  declaration.excluded_nodes = {"bare"};
  EXPECT_FALSE(said(AssembleFabrics(made->nodes, {{"infiniband", declaration}}).at("infiniband")));
}

}  // namespace
}  // namespace heddle::crds
