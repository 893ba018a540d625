#include "placement/planner.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <utility>

#include "base/random.h"
#include "tests/unit/placement/fabrics.h"
#include "topology/synthetic.h"

namespace heddle::placement {
namespace {

using testing::IsEmpty;

FabricOf DemoFabric() {
  return {.units = 2, .nodes = 16, .gpus = 8, .leaves = 8};
}

std::set<topology::UnitId> UnitsOf(const ClusterState& state, const Plan& plan) {
  std::set<topology::UnitId> units;
  for (const PodPlacement& pod : plan.pods) units.insert(state.fabric().nodes[std::size_t(pod.node)].unit);
  return units;
}

TEST(Planner, PutsTheDemoGangIntoOneUnitWithWholeTpGroupsAndNoCrossing) {
  auto fabric = DemoFabric().Build();
  auto nodes = AllFree(fabric);
  for (int n : {1, 4, 9}) nodes[std::size_t(n)].free_gpus = 0xf0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 2, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups, 16);
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 16);
  EXPECT_EQ(plan.quality.crossings(), 0);
  EXPECT_EQ(plan.quality.rail_misaligned, 0);
  EXPECT_EQ(UnitsOf(state, plan), (std::set<topology::UnitId>{1}));
}

TEST(Planner, LetsPipelinesCrossWhenTheGangMustSpanTwoUnits) {
  auto fabric = DemoFabric().Build();
  auto nodes = AllFree(fabric);
  for (int n = 0; n < 6; ++n) nodes[std::size_t(n)].free_gpus = 0x0f;
  for (int n = 16; n < 20; ++n) nodes[std::size_t(n)].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 2, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 16);
  EXPECT_EQ(plan.quality.crossings(), 0);
  EXPECT_EQ(plan.quality.leaf_crossings[std::size_t(Axis::kPp)], 64);
  EXPECT_EQ(UnitsOf(state, plan).size(), 2u);
}

TEST(Planner, PutsATpGroupOfSixteenIntoOneNvlinkRack) {
  auto state =
      FreeCluster(FabricOf{.units = 1, .nodes = 36, .gpus = 4, .leaves = 4, .racks_per_unit = 2}.Build());
  const Plan plan = Planned(state, Gang(Sizes(16, 1, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 8);
  EXPECT_EQ(plan.quality.crossings(), 0);
}

TEST(Planner, RefusesATpGroupThatNoDomainHolds) {
  auto state = FreeCluster(DemoFabric().Build());
  const Refusal refusal = Refused(state, Gang(Sizes(16, 1, 2), 8));
  EXPECT_EQ(refusal.reason, RefusalReason::kTooLargeForDomain);
  EXPECT_EQ(refusal.sentence,
            "a TP group of 16 GPUs must lie in one NVLink domain, the largest has 8 (node-0000)");
}

// What the node agent publishes of a rail that flaps, takes in errors or trained to less. Nobody has cordoned the node.
TEST(Planner, AvoidsANodeWithARailOfLessUsableBandwidth) {
  for (const int usable : {0, 100, 200}) {
    for (const std::size_t sick : {0U, 1U, 2U}) {
      auto line = topology::ParseSynthetic(
          "su:1 node:3 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
      ASSERT_TRUE(line.has_value()) << line.error().message;
      topology::NicPort& port = line->nodes[sick].nics[3].ports.front();
      port.usable_gbps = usable;
      port.fault = usable == 0 ? topology::LinkFault::kFlapping : topology::LinkFault::kErrors;
      port.reason = "4 link downs in 10 min";
      auto fabric = topology::BuildFabric(std::move(line->nodes), line->declaration);
      auto nodes = AllFree(fabric);
      auto state = Cluster(std::move(fabric), std::move(nodes));
      const Plan plan = Planned(state, Gang(Sizes(8, 1, 2), 8));
      for (const PodPlacement& pod : plan.pods)
        EXPECT_NE(std::size_t(pod.node), sick) << usable << " Gb/s usable";
    }
  }
}

// What the node agent publishes of NVLinks that trained to less, counted errors or were down a short while ago.
TEST(Planner, AvoidsANodeWithNvlinksOfLessUsableBandwidth) {
  const auto plan_with = [](std::size_t sick, const topology::NvLink::Exception& odd) {
    auto line =
        topology::ParseSynthetic("su:1 node:3 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
    EXPECT_TRUE(line.has_value()) << line.error().message;
    EXPECT_EQ(line->nodes[sick].nvlink.gbps_per_gpu, 3600);
    line->nodes[sick].nvlink.exceptions = {odd};
    auto fabric = topology::BuildFabric(std::move(line->nodes), line->declaration);
    auto nodes = AllFree(fabric);
    auto state = Cluster(std::move(fabric), std::move(nodes));
    return Planned(state, Gang(Sizes(8, 1, 2), 8));
  };
  for (const std::size_t sick : {0U, 1U, 2U}) {
    for (const topology::NvLink::Exception& odd :
         {topology::NvLink::Exception{3, 17}, topology::NvLink::Exception{3, 18, 3500},
          topology::NvLink::Exception{3, 18, 0}}) {
      for (const PodPlacement& pod : plan_with(sick, odd).pods)
        EXPECT_NE(std::size_t(pod.node), sick) << odd.links_up << " links, " << odd.usable_gbps.value_or(-1);
    }
  }
}

TEST(Planner, PlansTheDemoClusterOfTheSyntheticNotation) {
  auto line =
      topology::ParseSynthetic("su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100");
  ASSERT_TRUE(line.has_value()) << line.error().message;
  auto fabric = topology::BuildFabric(std::move(line->nodes), line->declaration);
  auto nodes = AllFree(fabric);
  for (int n : {0, 3, 5}) nodes[std::size_t(n)].free_gpus = 0x0f;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 2, 8), 4));
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 16);
  EXPECT_EQ(plan.quality.crossings(), 0);
  EXPECT_EQ(UnitsOf(state, plan).size(), 1u);
}

TEST(Planner, KeepsShardsInAUnitAndLetsReplicasCross) {
  auto state = FreeCluster(FabricOf{.units = 2, .nodes = 8}.Build());
  auto request = Gang(Sizes(8, 1, 16), 8);
  request.parallelism.fsdp = 8;
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.quality.leaf_crossings[std::size_t(Axis::kFsdp)], 0);
  EXPECT_EQ(plan.quality.crossings(), 128);  // each GPU of a shard meets its replica and is met by it
}

TEST(Planner, GivesSubNodePodsTheSameGpusOnEveryNode) {
  auto fabric = FabricOf{.nodes = 4}.Build();
  auto nodes = AllFree(fabric);
  for (auto& node : nodes) node.free_gpus = 0x3c;  // the middle four
  nodes[2].free_gpus = 0xf0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(2, 1, 4), 2));
  EXPECT_EQ(plan.quality.tp_groups_in_domain, 4);
  EXPECT_EQ(plan.quality.rail_misaligned, 0);
  std::set<topology::NodeId> used;
  for (const auto& pod : plan.pods) used.insert(pod.node);
  EXPECT_LT(used.size(), 4u) << "pods share nodes";
}

TEST(Planner, PutsASmallSubNodeGangOnOneNode) {
  auto state = FreeCluster(FabricOf{}.Build());
  const Plan plan = Planned(state, Gang(Sizes(2, 1, 4), 2));
  for (const auto& pod : plan.pods) EXPECT_EQ(pod.node, plan.pods.front().node);
  EXPECT_EQ(plan.quality.edges[std::size_t(Axis::kDp)], 0);
}

TEST(Planner, PrefersHealthyRails) {
  auto fabric = FabricOf{.nodes = 4}.Build();
  fabric.nodes[0].uplinks[2].gbps = 200;
  fabric.nodes[1].uplinks[7].gbps = 0;
  fabric.nodes[1].uplinks[7].leaf = topology::kNone;
  auto state = FreeCluster(std::move(fabric));
  const Plan plan = Planned(state, Gang(Sizes(8, 1, 2), 8));
  EXPECT_EQ(plan.pods[0].node, 2);
  EXPECT_EQ(plan.pods[1].node, 3);
}

TEST(Planner, LeavesUnhealthyGpusAndUnusableNodesAlone) {
  auto fabric = FabricOf{.nodes = 4}.Build();
  fabric.nodes[0].node.gpus[5].healthy = false;
  auto nodes = AllFree(fabric);
  nodes[1].unusable = "Cordoned";
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Plan plan = Planned(state, Gang(Sizes(8, 1, 2), 8));
  EXPECT_EQ(plan.pods[0].node, 2);
  EXPECT_EQ(plan.pods[1].node, 3);
  const Refusal refusal = Refused(state, Gang(Sizes(8, 1, 3), 8));
  EXPECT_EQ(refusal.reason, RefusalReason::kNotEnoughFree);
  EXPECT_EQ(refusal.left_out, (std::vector<std::pair<std::string, int>>{{"Cordoned", 1}}));
}

TEST(Planner, PlacesALauncherWithoutGpusBesideTheGang) {
  auto state = FreeCluster(FabricOf{.nodes = 4}.Build());
  auto request = Gang(Sizes(8, 1, 2), 8);
  request.pods.insert(request.pods.begin(), PodRequest{});
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.pods[0].gpus, 0u);
  EXPECT_EQ(plan.pods[0].node, plan.pods[1].node);
}

TEST(Planner, KeepsBoundPodsWhereTheyAre) {
  auto fabric = FabricOf{.units = 2, .nodes = 4}.Build();
  auto nodes = AllFree(fabric);
  nodes[5].free_gpus = 0xf0;  // the bound pod's own GPUs are counted as taken
  auto state = Cluster(std::move(fabric), std::move(nodes));
  auto request = Gang(Sizes(8, 1, 3), 4);
  request.pods[1].fixed_node = 5;
  request.pods[1].fixed_gpus = 0x0f;
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.pods[0], (PodPlacement{5, 0xf0})) << "its TP group's other half";
  EXPECT_EQ(UnitsOf(state, plan), (std::set<topology::UnitId>{1}));
}

TEST(Planner, SaysWhichBoundPodBreaksTheGang) {
  auto state = FreeCluster(FabricOf{}.Build());
  auto request = Gang(Sizes(8, 1, 1), 4);
  request.pods[0].fixed_node = 0;
  request.pods[0].fixed_gpus = 0x0f;
  request.pods[1].fixed_node = 1;
  request.pods[1].fixed_gpus = 0x0f;
  const Refusal refusal = Refused(state, request);
  EXPECT_EQ(refusal.reason, RefusalReason::kRequirement);
  EXPECT_EQ(refusal.sentence,
            "pod 1 is bound to node-0001, which breaks tp=nvlink together with the pods bound before it");
}

TEST(Planner, SaysWhatIsNeededAndWhatThereIsInOneMeasure) {
  auto fabric = FabricOf{}.Build();
  auto nodes = AllFree(fabric);
  for (NodeState& node : nodes) node.free_gpus = 0x0f;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  EXPECT_EQ(Refused(state, Gang(Sizes(8, 1, 2), 4)).sentence,
            "8 GPUs needed in one NVLink domain, 2 times, best has 4 (node-0000); 4 of its 8 GPUs are taken, "
            "broken or closed")
      << "not one host, of which the best has four";
}

struct RequirementCase {
  Axis axis;
  Level level;
};
class PlannerRequirement : public testing::TestWithParam<RequirementCase> {};

// Planned() checks every requirement by code of its own.
TEST_P(PlannerRequirement, HoldsOnAFragmentedFabric) {
  auto fabric = FabricOf{.units = 4, .nodes = 8, .spine_groups = 2}.Build();
  auto nodes = AllFree(fabric);
  for (int n = 0; n < 32; n += 5) nodes[std::size_t(n)].free_gpus = 0x0f;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  auto request = Gang(Sizes(4, 2, 4), 4);
  request.parallelism.fsdp = 2;
  request.require = {{GetParam().axis, GetParam().level}};
  Planned(state, request);
}
INSTANTIATE_TEST_SUITE_P(
    EachAxisAndLevel, PlannerRequirement,
    testing::Values(RequirementCase{Axis::kTp, Level::kNode}, RequirementCase{Axis::kTp, Level::kUnit},
                    RequirementCase{Axis::kDp, Level::kLeaf}, RequirementCase{Axis::kDp, Level::kUnit},
                    RequirementCase{Axis::kDp, Level::kSpine}, RequirementCase{Axis::kPp, Level::kLeaf},
                    RequirementCase{Axis::kPp, Level::kNode}, RequirementCase{Axis::kPp, Level::kNvlink},
                    RequirementCase{Axis::kFsdp, Level::kNvlink}, RequirementCase{Axis::kFsdp, Level::kLeaf},
                    RequirementCase{Axis::kCp, Level::kUnit}, RequirementCase{Axis::kEp, Level::kNvlink},
                    RequirementCase{Axis::kGang, Level::kUnit}, RequirementCase{Axis::kGang, Level::kSpine},
                    RequirementCase{Axis::kGang, Level::kSite}),
    [](const auto& test) {
      return std::string(AxisName(test.param.axis)) + "_in_one_" + std::string(LevelName(test.param.level));
    });

TEST(Planner, MeetsNestedRequirementsTogether) {
  auto state = FreeCluster(FabricOf{.units = 4, .nodes = 8, .spine_groups = 2}.Build());
  auto request = Gang(Sizes(8, 2, 8), 4);
  request.require = {{Axis::kDp, Level::kLeaf}, {Axis::kGang, Level::kSpine}};
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.quality.crossings(), 0);
}

TEST(Planner, HonoursAPreferenceThatCanBeHadAndNamesOneThatCannot) {
  auto state = FreeCluster(FabricOf{.units = 2, .nodes = 8}.Build());
  auto request = Gang(Sizes(8, 2, 8), 8);
  request.prefer = {{Axis::kPp, Level::kUnit}, {Axis::kGang, Level::kUnit}};
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.quality.leaf_crossings[std::size_t(Axis::kPp)], 0);
  EXPECT_THAT(plan.explanation, testing::Contains("the preference gang=su could not be met"));
}

TEST(Planner, UsesOnlyAllowedNodesWithRoom) {
  auto fabric = FabricOf{.nodes = 6}.Build();
  auto nodes = AllFree(fabric);
  nodes[1].free_milli_cpu = 500;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  auto request = Gang(Sizes(8, 1, 2), 8);
  request.allowed_nodes = {{1, 3, 5}};
  for (auto& pod : request.pods) {
    pod.allowed = 0;
    pod.resources.milli_cpu = 1000;
  }
  const Plan plan = Planned(state, request);
  EXPECT_EQ(plan.pods[0].node, 3);
  EXPECT_EQ(plan.pods[1].node, 5);
  request.allowed_nodes = {{}};
  EXPECT_EQ(Refused(state, request).reason, RefusalReason::kNoAllowedNode);
}

TEST(Planner, OffersSubstitutesThatNoPodOfTheGangUses) {
  auto state = FreeCluster(FabricOf{.units = 2, .nodes = 16}.Build());
  const Plan plan = Planned(state, Gang(Sizes(8, 1, 4), 8));
  std::set<topology::NodeId> used;
  for (const auto& pod : plan.pods) used.insert(pod.node);
  for (std::size_t p = 0; p < plan.pods.size(); ++p) {
    EXPECT_EQ(plan.substitutes.For(p).size(), 7u);
    for (topology::NodeId node : plan.substitutes.For(p)) {
      EXPECT_EQ(used.count(node), 0u);
      EXPECT_EQ(state.fabric().nodes[std::size_t(node)].unit,
                state.fabric().nodes[std::size_t(plan.pods[p].node)].unit);
    }
  }
  const Plan halves = Planned(state, Gang(Sizes(8, 1, 4), 4));
  EXPECT_THAT(halves.substitutes.For(0), IsEmpty()) << "half a TP group cannot leave its server alone";
}

TEST(Planner, OffersNoSubstituteWithASwappedCableWhereALeafIsRequired) {
  auto fabric = FabricOf{.units = 1, .nodes = 4}.Build();
  std::swap(fabric.nodes[3].uplinks[0], fabric.nodes[3].uplinks[1]);
  auto state = FreeCluster(std::move(fabric));
  auto request = Gang(Sizes(8, 1, 2), 8);
  request.require = {{Axis::kDp, Level::kLeaf}};
  const Plan plan = Planned(state, request);
  for (std::size_t p = 0; p < plan.pods.size(); ++p) {
    EXPECT_EQ(plan.substitutes.For(p).size(), 1u) << "the fourth server's cables end on other leaves";
    for (const topology::NodeId node : plan.substitutes.For(p)) {
      Plan moved = plan;
      moved.pods[p].node = node;
      EXPECT_THAT(Faults(state, request, moved), IsEmpty());
    }
  }
}

TEST(Planner, DoesNotDependOnWhatWasPlannedBefore) {
  auto state = FreeCluster(FabricOf{.units = 2, .nodes = 16}.Build());
  const auto request = Gang(Sizes(8, 2, 8), 4);
  const Decision first = PlanGang(state, request);
  PlanGang(state, Gang(Sizes(4, 2, 2), 2));
  Refused(state, Gang(Sizes(8, 1, 64), 8));
  EXPECT_EQ(first, PlanGang(state, request));
  EXPECT_EQ(state.Mark(), 0u);
}

// What must hold at any size, on fragmented fabrics; Planned() checks it by code of its own.
TEST(Planner, KeepsEveryConstraintOnLargeFragmentedFabrics) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Random random(seed);
    auto fabric =
        FabricOf{.units = 16, .nodes = 16, .spine_groups = 4, .oversubscription_percent = 200}.Build();
    auto nodes = AllFree(fabric);
    for (auto& node : nodes) {
      if (random.Below(4) == 0) node.free_gpus = std::uint32_t(random.Below(256));
      if (random.Below(20) == 0) node.unusable = "Cordoned";
    }
    auto state = Cluster(std::move(fabric), std::move(nodes));
    const int tp = 1 << random.Below(4);
    auto request = Gang(Sizes(tp, 4, 512 / tp / 4), std::array<int, 3>{2, 4, 8}[random.Below(3)]);
    if (random.Below(2) == 0) request.require.push_back({Axis::kPp, Level::kUnit});
    if (random.Below(3) == 0) request.require.push_back({Axis::kGang, Level::kSpine});
    const bool mixed = random.Below(3) == 0 && request.pods.front().gpus == 8 && tp < 8;
    if (mixed) {
      request.pods.front().gpus = 4;
      request.pods.insert(request.pods.begin(), request.pods.front());
    }
    const Decision decision = PlanGang(state, request);
    if (const auto* plan = std::get_if<Plan>(&decision)) {
      EXPECT_THAT(Faults(state, request, *plan), IsEmpty());
    } else {
      EXPECT_THAT(std::get<Refusal>(decision).sentence, testing::Not(IsEmpty()));
      EXPECT_NE(std::get<Refusal>(decision).reason, RefusalReason::kNotFoundInBudget);
    }
  }
}

struct RefusalCase {
  const char* name;
  GangRequest request;
  RefusalReason reason;
  const char* sentence;
};
class PlannerRefusal : public testing::TestWithParam<RefusalCase> {};

TEST_P(PlannerRefusal, SaysWhatIsMissing) {
  auto fabric = DemoFabric().Build();
  auto nodes = AllFree(fabric);
  for (int n = 0; n < 32; ++n) {
    if (n % 16 < (n < 16 ? 6 : 4)) nodes[std::size_t(n)].free_gpus = 0x0f;
  }
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const Refusal refusal = Refused(state, GetParam().request);
  EXPECT_EQ(RefusalReasonName(refusal.reason), RefusalReasonName(GetParam().reason));
  EXPECT_EQ(refusal.sentence, GetParam().sentence);
}

GangRequest Requiring(GangRequest request, Requirement requirement) {
  request.require = {requirement};
  return request;
}
GangRequest WithCpu(GangRequest request, std::int64_t milli_cpu) {
  for (auto& pod : request.pods) pod.resources.milli_cpu = milli_cpu;
  return request;
}
GangRequest OnePodLess(GangRequest request) {
  request.pods.pop_back();
  return request;
}

INSTANTIATE_TEST_SUITE_P(
    Demo, PlannerRefusal,
    testing::Values(
        RefusalCase{"OneUnitTooSmall", Requiring(Gang(Sizes(8, 2, 8), 4), {Axis::kGang, Level::kUnit}),
                    RefusalReason::kRequirement,
                    "16 hosts needed in one scalable unit, best has 12 (su-1); 16 of its 128 GPUs are taken, "
                    "broken or closed"},
        RefusalCase{"FragmentsOnly", Gang(Sizes(8, 1, 24), 8), RefusalReason::kNotEnoughFree,
                    "24 pods need 8 GPUs on a node each; 22 fit now"},
        RefusalCase{"MoreThanIsFree", Gang(Sizes(8, 1, 30), 8), RefusalReason::kNotEnoughFree,
                    "240 GPUs needed, 216 of 256 are free"},
        RefusalCase{"MoreThanExists", Gang(Sizes(8, 1, 64), 8), RefusalReason::kTooLargeForFabric,
                    "512 GPUs needed, the whole fabric has 256"},
        RefusalCase{
            "NeverInOneUnit", Requiring(Gang(Sizes(8, 1, 20), 8), {Axis::kGang, Level::kUnit}),
            RefusalReason::kTooLargeForFabric,
            "20 hosts needed in one scalable unit, the largest holds 16 (su-0), even when all is free"},
        RefusalCase{"PodLargerThanAnyNode", Gang(Sizes(4, 1, 4), 16), RefusalReason::kTooLargeForFabric,
                    "pod 0 asks for 16 GPUs, the largest node it may use has 8 (node-0000)"},
        RefusalCase{"NotEnoughCpu", WithCpu(Gang(Sizes(8, 1, 2), 8), 500'000), RefusalReason::kNotEnoughFree,
                    "2 pods need 8 GPUs on a node each; 0 fit now; enough GPUs are free, but CPU, memory, "
                    "pod slots or "
                    "another resource beside them is short"},
        RefusalCase{"DoesNotMultiply", OnePodLess(Gang(Sizes(8, 2, 8), 4)), RefusalReason::kBadRequest,
                    "tp=8 x cp=1 x dp=8 x pp=2 makes 128 ranks, the gang's 31 pods ask for 124 GPUs"}),
    [](const auto& test) { return test.param.name; });

TEST(Repair, MovesOnlyTheLostPodAndKeepsItsRails) {
  auto fabric = DemoFabric().Build();
  auto state = FreeCluster(fabric);
  const auto request = Gang(Sizes(8, 2, 4), 8);
  const Plan plan = Planned(state, request);
  auto nodes = AllFree(fabric);
  for (const auto& pod : plan.pods) nodes[std::size_t(pod.node)].free_gpus = 0;
  nodes[std::size_t(plan.pods[3].node)].unusable = "NotReady";
  auto after = Cluster(std::move(fabric), std::move(nodes));
  const Decision decision = RepairGang(after, request, plan.pods, {3});
  ASSERT_TRUE(std::holds_alternative<Plan>(decision));
  const Plan& repaired = std::get<Plan>(decision);
  for (std::size_t p = 0; p < plan.pods.size(); ++p) {
    if (p == 3) continue;
    EXPECT_EQ(repaired.pods[p], plan.pods[p]);
  }
  EXPECT_NE(repaired.pods[3].node, plan.pods[3].node);
  EXPECT_EQ(repaired.quality.crossings(), 0);
  EXPECT_EQ(UnitsOf(after, repaired), UnitsOf(state, plan));
}

TEST(Repair, StaysInTheRackOfItsTpGroup) {
  auto fabric = FabricOf{.units = 1, .nodes = 36, .gpus = 4, .leaves = 4, .racks_per_unit = 2}.Build();
  auto state = FreeCluster(fabric);
  const auto request = Gang(Sizes(16, 1, 2), 4);
  const Plan plan = Planned(state, request);
  auto nodes = AllFree(fabric);
  for (const auto& pod : plan.pods) nodes[std::size_t(pod.node)].free_gpus = 0;
  auto after = Cluster(std::move(fabric), std::move(nodes));
  const Decision decision = RepairGang(after, request, plan.pods, {5});
  ASSERT_TRUE(std::holds_alternative<Plan>(decision));
  EXPECT_EQ(std::get<Plan>(decision).quality.tp_groups_in_domain, 2);
}

TEST(Repair, RefusesWhenTheServerOfATpGroupIsFull) {
  auto fabric = DemoFabric().Build();
  auto nodes = AllFree(fabric);
  for (auto& node : nodes) node.free_gpus = 0x0f;
  nodes[0].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const auto request = Gang(Sizes(8, 1, 1), 4);
  const Decision decision = RepairGang(state, request, {{0, 0x0f}, {0, 0xf0}}, {1});
  ASSERT_TRUE(std::holds_alternative<Refusal>(decision));
  EXPECT_EQ(std::get<Refusal>(decision).reason, RefusalReason::kNotEnoughFree);
}

// The pods before it are bound and need no node; the lost one is like them and does.
TEST(Repair, SaysThatTheLostPodMayUseNoNode) {
  auto state = FreeCluster(DemoFabric().Build());
  auto request = Gang(Sizes(8, 1, 2), 8);
  const Plan plan = Planned(state, request);
  request.allowed_nodes = {{}};
  for (PodRequest& pod : request.pods) pod.allowed = 0;
  const Decision decision = RepairGang(state, request, plan.pods, {1});
  ASSERT_TRUE(std::holds_alternative<Refusal>(decision));
  EXPECT_EQ(std::get<Refusal>(decision).reason, RefusalReason::kNoAllowedNode);
  EXPECT_EQ(std::get<Refusal>(decision).sentence,
            "no node meets the selectors, affinity and tolerations of pod 1");
}

TEST(LonePod, FillsBrokenServersBeforeWholeOnes) {
  auto fabric = FabricOf{.nodes = 4}.Build();
  auto nodes = AllFree(fabric);
  nodes[1].free_gpus = 0x03;
  nodes[2].free_gpus = 0x3f;
  nodes[3].free_gpus = 0x01;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const auto scores = ScoreLonePod(state, 2, {0, 1, 2, 3});
  EXPECT_GT(scores[1], scores[2]) << "the tightest fit first";
  EXPECT_GT(scores[2], scores[0]) << "a broken server before a whole one";
  EXPECT_EQ(scores[3], 0) << "one free GPU holds no pod of two";
}

TEST(LonePod, OfSeveralGpusAvoidsNvlinksOfLessUsableBandwidth) {
  auto fabric = FabricOf{.nodes = 3}.Build();
  fabric.nodes[1].node.nvlink.exceptions = {{5, 18, 1800}};
  auto nodes = AllFree(fabric);
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const auto whole = ScoreLonePod(state, 8, {0, 1, 2});
  EXPECT_GT(whole[0], whole[1]);
  EXPECT_EQ(whole[0], whole[2]);
  EXPECT_GT(whole[1], 0) << "it is better than no node";
  const auto seven = ScoreLonePod(state, 7, {0, 1});
  EXPECT_EQ(seven[0], seven[1]) << "seven of its GPUs are sound";
  const auto one = ScoreLonePod(state, 1, {0, 1});
  EXPECT_EQ(one[0], one[1]) << "it sends nothing over NVLink";
}

TEST(LonePod, GetsSparesLast) {
  const auto made = topology::ParseSynthetic("rack:2 tray:3 gpu:4 nic:4 rail:4 machine:gb200 nvl");
  auto fabric = topology::BuildFabric(made->nodes, made->declaration);
  auto nodes = AllFree(fabric);
  nodes[0].free_gpus = 0x3;  // in use, and so no spare
  nodes[4].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const auto without = ScoreLonePod(state, 1, {0, 1, 2, 3, 5});
  const auto scores = ScoreLonePod(state, 1, {0, 1, 2, 3, 5}, 1);
  EXPECT_EQ(scores[0], without[0]);
  EXPECT_EQ(scores[1], without[1]);
  EXPECT_EQ(scores[3], without[3]);
  for (const std::size_t spare : {2u, 4u}) {
    EXPECT_GT(scores[spare], 0) << "it is better than no node";
    EXPECT_LT(scores[spare], 5) << "which rounds to the scheduler's lowest step";
    EXPECT_GE(without[spare], 10);
  }
}

TEST(Evaluate, CountsWhatARankOrderWithoutRailsCosts) {
  auto state = FreeCluster(FabricOf{.units = 2, .nodes = 2}.Build());
  const auto request = Gang(Sizes(4, 1, 2), 4);
  const Quality aligned = Evaluate(state, request, {{0, 0x0f}, {1, 0x0f}});
  const Quality crossed = Evaluate(state, request, {{0, 0x0f}, {1, 0xf0}});
  EXPECT_EQ(aligned.rail_misaligned, 0);
  EXPECT_EQ(aligned.crossings(), 0);
  EXPECT_EQ(crossed.rail_misaligned, 8) << "four rings of two edges";
  EXPECT_EQ(crossed.crossings(), 8);
  EXPECT_GT(crossed.step_micros, aligned.step_micros);
  const Quality split = Evaluate(state, request, {{0, 0x33}, {2, 0x33}});
  EXPECT_EQ(split.crossings(), 8);
  EXPECT_EQ(split.rail_misaligned, 0);
  EXPECT_EQ(Evaluate(state, request, {{0, 0x0f}}), Quality{}) << "half an assignment has no price";
}

// A domain with two members has two NICs out, however many the others have.
TEST(Evaluate, HoldsAnUnevenSplitUpByItsPoorestNode) {
  const ClusterState state = FreeCluster(FabricOf{.nodes = 2}.Build());
  GangRequest request;
  request.parallelism.dp = 8;
  request.pods.assign(8, PodRequest{.gpus = 1});
  const auto split = [](int first) {
    std::vector<PodPlacement> pods;
    for (int i = 0; i < 8; ++i) pods.push_back({i < first ? 0 : 1, 1U << (i < first ? i : i - first)});
    return pods;
  };
  const auto even = Evaluate(state, request, split(4)).step_micros;
  EXPECT_GT(Evaluate(state, request, split(6)).step_micros, even);
  EXPECT_GT(Evaluate(state, request, split(7)).step_micros, Evaluate(state, request, split(6)).step_micros);
}

// As large as the annotation may say: dear, but a number.
TEST(Planner, PricesTheLargestHintsWithoutOverflow) {
  auto state = FreeCluster(FabricOf{.nodes = 4}.Build());
  auto request = Gang(Sizes(8, 2, 2), 8);
  request.model = {1e15, 1'000'000, 10'000'000, 1'000'000'000, 1'000'000, 1'000'000};
  const Plan plan = Planned(state, request);
  EXPECT_GT(plan.quality.step_micros, 0);
  for (const std::int64_t micros : plan.quality.axis_micros) EXPECT_GE(micros, 0);
}

// Both cannot have their node: what tp wins there ep loses twice.
TEST(Planner, LetsTpLeaveItsDomainWhereItMayAndThatIsFaster) {
  auto state = FreeCluster(FabricOf{.nodes = 2}.Build());
  auto request = Gang(Sizes(8, 1, 2), 4);
  request.parallelism.ep = 2;
  request.require = {{Axis::kTp, Level::kUnit}};
  const auto tp_inside = Evaluate(state, request, {{0, 0x0f}, {0, 0xf0}, {1, 0x0f}, {1, 0xf0}}).step_micros;
  const auto ep_inside = Evaluate(state, request, {{0, 0x0f}, {1, 0x0f}, {0, 0xf0}, {1, 0xf0}}).step_micros;
  ASSERT_LT(ep_inside * 102, tp_inside * 100);
  EXPECT_LE(Planned(state, request).quality.step_micros * 100, ep_inside * 101);
}

TEST(Planner, RefusesAFabricWithoutNodes) {
  auto state = FreeCluster(topology::Fabric{});
  EXPECT_EQ(Refused(state, Gang(Sizes(8, 1, 1), 8)).reason, RefusalReason::kTooLargeForFabric);
}

TEST(Evaluate, SharesANarrowUplinkWithTheLoadThatIsThere) {
  auto fabric = std::make_shared<const topology::Fabric>(FabricOf{.units = 2, .nodes = 2}.Build());
  const auto request = Gang(Sizes(8, 1, 2), 8);
  const std::vector<PodPlacement> pods{{0, 0xff}, {2, 0xff}};
  const ClusterState quiet(fabric, AllFree(*fabric));
  const ClusterState busy(fabric, AllFree(*fabric), {{0, 1'600'000}});
  EXPECT_GT(Evaluate(busy, request, pods).step_micros, Evaluate(quiet, request, pods).step_micros);
}

}  // namespace
}  // namespace heddle::placement
