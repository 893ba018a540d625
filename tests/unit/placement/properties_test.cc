// What must hold of every answer on fabrics too large to know the best one: cases by RapidCheck, one for each seed, so
// that HEDDLE_SEED=<seed> runs a failure again and RapidCheck shrinks it to a small fabric.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "placement/planner.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

std::uint64_t case_seed = 0;  // of the case that runs

// One seed is run again: how often something happens says nothing then.
bool Alone() {
  return test::Seeds(50).size() == 1;
}

template <class Property>
void ForAll(int seeds, const Property& property) {
  for (const std::uint64_t seed : test::Seeds(seeds)) {
    rc::detail::TestParams params;
    params.seed = seed;
    params.maxSuccess = 1;
    case_seed = seed;
    rc::detail::TestListenerAdapter silent;
    const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata{}, params, silent,
                                                  std::unordered_map<std::string, rc::detail::Reproduce>{});
    if (result.template is<rc::detail::SuccessResult>()) continue;
    std::ostringstream said;
    rc::detail::printResultMessage(result, said);
    FAIL() << test::Replay(seed) << "\n" << said.str();
  }
}

// Requires: called inside a property. Shrinks towards `low`.
int Draw(int low, int high, const char* what) {
  return *rc::gen::resize(100, rc::gen::inRange(low, high + 1)).as(what);
}
int DrawOneOf(const std::vector<int>& values, const char* what) {
  return *rc::gen::elementOf(values).as(what);
}

struct Case {
  topology::Fabric fabric;
  std::vector<NodeState> nodes;
  GangRequest request;
  base::Random random{0};  // for what a property does to it
};

bool Chance(base::Random& random, int percent) {
  return int(random.Below(100)) < percent;
}

topology::Fabric DrawFabric() {
  FabricOf shape;
  shape.units = Draw(1, 24, "units");
  shape.nodes = Draw(2, 40, "nodes of a unit");
  shape.gpus = 8;
  if (Draw(0, 3, "0, 1 or 2 = servers, 3 = racks of 4 nodes with 4 GPUs") == 3) {
    shape.gpus = 4;
    shape.nodes = (shape.nodes + 3) / 4 * 4;
    shape.racks_per_unit = shape.nodes / 4;
  }
  shape.leaves = DrawOneOf({shape.gpus, shape.gpus / 2, 1}, "leaves of a unit");
  shape.spine_groups = Draw(1, 3, "groups of spines");
  shape.oversubscription_percent = DrawOneOf({100, 200, 400}, "oversubscription in percent");
  return shape.Build();
}

void Fragment(base::Random& random, int percent, Case& drawn) {
  for (std::size_t n = 0; n < drawn.nodes.size(); ++n) {
    NodeState& node = drawn.nodes[n];
    if (Chance(random, percent))
      node.free_gpus &= Chance(random, 50) ? 0x0fU : std::uint32_t(random.Below(256));
    if (Chance(random, 3)) node.unusable = "Cordoned";
    if (Chance(random, 3)) node.free_milli_cpu = std::int64_t(random.Below(9)) * 1000;
    for (auto& uplink : drawn.fabric.nodes[n].uplinks) {
      if (Chance(random, 1)) uplink.gbps /= 2;
    }
  }
}

Case DrawCase(int most_ranks) {
  Case out;
  out.fabric = DrawFabric();
  out.nodes = AllFree(out.fabric);
  const int gpus = int(out.fabric.nodes.front().uplinks.size());
  const int percent = DrawOneOf({0, 30, 70, 90}, "percent of nodes that are in use");
  out.random =
      base::Random(std::uint64_t(*rc::gen::resize(100, rc::gen::inRange(1, 1 << 30)).as("what is in use")));
  Fragment(out.random, percent, out);
  Parallelism p;
  p.tp = DrawOneOf({1, 2, 4, 8}, "tp");
  p.pp = DrawOneOf({1, 2, 3, 4}, "pp");
  p.cp = DrawOneOf({1, 1, 2}, "cp");
  p.dp = Draw(1, std::max(1, most_ranks / int(p.world())), "dp");
  if (p.dp % 2 == 0) p.fsdp = DrawOneOf({0, 0, 2}, "fsdp");
  p.ep = DrawOneOf({1, 1, 2, 4}, "ep");
  if (!WhyNotLaidOut(p).empty()) p.ep = 1;
  int pod = std::min(gpus, DrawOneOf({8, 8, 4, 2}, "GPUs of a pod"));
  while (p.world() % pod != 0) pod /= 2;
  out.request = Gang(p, pod);
  for (PodRequest& each : out.request.pods) each.resources.milli_cpu = 1000;
  if (DrawOneOf({0, 0, 0, 1}, "something is required") == 1) {
    out.request.require.push_back(
        {Axis(DrawOneOf({1, 3, 4, 6}, "of axis")), Level(DrawOneOf({3, 4}, "level"))});
  }
  return out;
}

ClusterState StateOf(const Case& drawn) {
  return Cluster(drawn.fabric, drawn.nodes);
}

const Plan* PlanOf(const Decision& decision) {
  return std::get_if<Plan>(&decision);
}

bool NotFound(const Decision& decision) {
  const auto* refusal = std::get_if<Refusal>(&decision);
  return refusal != nullptr && refusal->reason == RefusalReason::kNotFoundInBudget;
}

// How often the predicted time rose, and by how much. A seed run alone is held to 1 %, so that RapidCheck shrinks it.
struct Frequency {
  int cases = 0, rose = 0, by_more = 0;
  double worst = 0;
  std::string seeds;  // of the worst

  void Count(std::uint64_t seed, std::int64_t before, std::int64_t after) {
    const double by = before > 0 ? double(after) / double(before) - 1 : 0;
    ++cases;
    if (after > before) ++rose;
    if (by > 0.01) ++by_more;
    worst = std::max(worst, by);
    if (by > 0.01 && !Alone()) seeds += fmt::format(" {} ({:.0f} %)", seed, 100 * by);
    if (Alone()) RC_ASSERT(by <= 0.01);
  }
  void Print(const char* what) const {
    std::printf(
        "%s: the predicted time rose in %d of %d cases, by more than 1 %% in %d, by %.1f %% at most:%s\n",
        what, rose, cases, by_more, 100 * worst, seeds.c_str());
  }
};

TEST(Properties, GroupsOfEveryAxisPartTheRanks) {
  ForAll(300, [] {
    Parallelism p;
    p.tp = Draw(1, 9, "tp");
    p.cp = Draw(1, 4, "cp");
    p.dp = Draw(1, 24, "dp");
    p.pp = Draw(1, 9, "pp");
    p.ep = Draw(1, 16, "ep");
    p.etp = Draw(0, 8, "etp");
    p.fsdp = Draw(0, 8, "fsdp");
    p.order = *rc::gen::element(std::array<Axis, 4>{Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp},
                                std::array<Axis, 4>{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp},
                                std::array<Axis, 4>{Axis::kPp, Axis::kDp, Axis::kCp, Axis::kTp});
    if (!WhyNotLaidOut(p).empty()) p.fsdp = 0;
    if (!WhyNotLaidOut(p).empty() || p.ep == 1) p.ep = 1, p.etp = 0;
    RC_ASSERT(WhyNotLaidOut(p).empty());
    for (int axis = 0; axis < kAxisCount; ++axis) {
      std::vector<int> seen(std::size_t(p.world()), 0);
      for (const auto& group : Groups(p, Axis(axis))) {
        RC_ASSERT(int(group.size()) == p.size(Axis(axis)));
        RC_ASSERT(std::is_sorted(group.begin(), group.end()));
        for (const std::int32_t rank : group) ++seen.at(std::size_t(rank));
      }
      RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
    }
  });
}

TEST(Properties, APlanTakesNoGpuTwiceAndKeepsEveryRequirement) {
  int planned = 0, cases = 0;
  ForAll(80, [&] {
    const Case drawn = DrawCase(1024);
    ClusterState state = StateOf(drawn);
    const Decision decision = PlanGang(state, drawn.request);
    ++cases;
    if (PlanOf(decision) == nullptr) return;
    ++planned;
    RC_ASSERT(Faults(state, drawn.request, *PlanOf(decision)) == std::vector<std::string>{});
    RC_ASSERT(PlanOf(decision)->quality == Evaluate(state, drawn.request, PlanOf(decision)->pods));
  });
  if (!Alone()) {
    EXPECT_GE(planned * 3, cases);
  }
}

TEST(Properties, EqualInputsGiveEqualAnswersAndTheStateComesBack) {
  ForAll(40, [] {
    const Case drawn = DrawCase(1024);
    ClusterState state = StateOf(drawn);
    const auto mark = state.Mark();
    const Decision first = PlanGang(state, drawn.request);
    RC_ASSERT(state.Mark() == mark);
    const ClusterState untouched = StateOf(drawn);
    RC_ASSERT(state.whole_domains() == untouched.whole_domains());
    for (std::size_t n = 0; n < drawn.nodes.size(); ++n) {
      RC_ASSERT(state.node(NodeId(n)) == drawn.nodes[n]);
      RC_ASSERT(state.free_gpus_in_unit(drawn.fabric.nodes[n].unit) ==
                untouched.free_gpus_in_unit(drawn.fabric.nodes[n].unit));
    }
    RC_ASSERT(PlanGang(state, drawn.request) == first);
    ClusterState again = StateOf(drawn);
    RC_ASSERT(PlanGang(again, drawn.request) == first);
  });
}

TEST(Properties, BoundPodsStayWhereTheyAre) {
  int planned = 0, given_up = 0;
  ForAll(40, [&] {
    Case drawn = DrawCase(96);
    ClusterState state = StateOf(drawn);
    const Decision free = PlanGang(state, drawn.request);
    if (PlanOf(free) == nullptr) return;
    for (std::size_t p = 0; p < drawn.request.pods.size(); ++p) {
      if (!Chance(drawn.random, 20)) continue;
      drawn.request.pods[p].fixed_node = PlanOf(free)->pods[p].node;
      drawn.request.pods[p].fixed_gpus = PlanOf(free)->pods[p].gpus;
    }
    const Decision bound = PlanGang(state, drawn.request);
    if (PlanOf(bound) == nullptr) {
      RC_ASSERT(NotFound(bound));  // a place is known, so it is not impossible
      ++given_up;
      return;
    }
    ++planned;
    RC_ASSERT(Faults(state, drawn.request, *PlanOf(bound)) == std::vector<std::string>{});
  });
  std::printf("bound pods: %d planned, %d given up though a place is known\n", planned, given_up);
  if (!Alone()) {
    EXPECT_GE(planned, given_up);
  }
}

TEST(Properties, ARepairMovesOnlyTheLostPods) {
  int repaired = 0;
  ForAll(60, [&] {
    Case drawn = DrawCase(512);
    ClusterState state = StateOf(drawn);
    const Decision before = PlanGang(state, drawn.request);
    if (PlanOf(before) == nullptr) return;
    const std::vector<PodPlacement>& stood = PlanOf(before)->pods;
    std::vector<int> lost;
    const NodeId broken = stood[drawn.random.Below(stood.size())].node;
    for (std::size_t p = 0; p < stood.size(); ++p) {
      if (stood[p].node == broken) lost.push_back(int(p));
    }
    drawn.nodes[std::size_t(broken)].unusable = "NotReady";
    ClusterState after = StateOf(drawn);
    for (std::size_t p = 0; p < stood.size(); ++p)
      after.Take(stood[p].node, stood[p].gpus, drawn.request.pods[p].resources);
    const auto mark = after.Mark();
    const Decision repair = RepairGang(after, drawn.request, stood, lost);
    RC_ASSERT(after.Mark() == mark);
    if (PlanOf(repair) == nullptr) return;
    ++repaired;
    for (std::size_t p = 0; p < stood.size(); ++p) {
      const PodPlacement& now = PlanOf(repair)->pods[p];
      if (stood[p].node != broken) RC_ASSERT(now == stood[p]);
      if (stood[p].node == broken)
        RC_ASSERT(now.node != broken && (after.node(now.node).free_gpus & now.gpus) == now.gpus);
    }
  });
  if (!Alone()) {
    EXPECT_GE(repaired, 1);
  }
}

TEST(Properties, MoreFreeGpusNeverCostMuch) {
  Frequency frequency;
  ForAll(80, [&] {
    Case drawn = DrawCase(512);
    ClusterState state = StateOf(drawn);
    const Decision before = PlanGang(state, drawn.request);
    if (PlanOf(before) == nullptr) return;
    for (std::size_t n = 0; n < drawn.nodes.size(); ++n) {
      if (Chance(drawn.random, 30)) drawn.nodes[n] = AllFree(drawn.fabric)[n];
    }
    ClusterState roomier = StateOf(drawn);
    const Decision after = PlanGang(roomier, drawn.request);
    if (PlanOf(after) == nullptr) RC_ASSERT(NotFound(after));
    if (PlanOf(after) == nullptr) return;
    const std::int64_t least = PlanOf(before)->quality.step_micros, now = PlanOf(after)->quality.step_micros;
    frequency.Count(case_seed, least, now);
  });
  frequency.Print("more free GPUs");
  // Measured on 1,500 seeds: 27 of 1,107 cases.
  if (!Alone()) {
    EXPECT_LE(frequency.by_more, 2 + frequency.cases / 20);
  }
}

// The same fabric with its nodes in another order, as other names would give.
Case Renamed(const Case& drawn, base::Random& random) {
  Case out = drawn;
  std::vector<NodeId> now(drawn.nodes.size());  // by former id
  std::iota(now.begin(), now.end(), 0);
  for (std::size_t i = now.size(); i > 1; --i) std::swap(now[i - 1], now[random.Below(i)]);
  for (std::size_t n = 0; n < now.size(); ++n) {
    const auto to = std::size_t(now[n]);
    out.nodes[to] = drawn.nodes[n];
    out.fabric.nodes[to] = drawn.fabric.nodes[n];
    out.fabric.nodes[to].node.name = drawn.fabric.nodes[to].node.name;
  }
  const auto rename = [&](std::vector<NodeId>& nodes) {
    for (NodeId& node : nodes) node = now[std::size_t(node)];
    std::sort(nodes.begin(), nodes.end());
  };
  for (auto& unit : out.fabric.units) rename(unit.nodes);
  for (auto& domain : out.fabric.domains) rename(domain.nodes);
  return out;
}

TEST(Properties, OtherNodeNamesCostTheSame) {
  Frequency frequency;
  ForAll(80, [&] {
    Case drawn = DrawCase(512);
    ClusterState state = StateOf(drawn);
    const Case other = Renamed(drawn, drawn.random);
    ClusterState renamed = StateOf(other);
    const Decision before = PlanGang(state, drawn.request), after = PlanGang(renamed, drawn.request);
    if (!NotFound(before) && !NotFound(after)) RC_ASSERT(before.index() == after.index());
    if (PlanOf(before) == nullptr || PlanOf(after) == nullptr) return;
    const std::int64_t a = PlanOf(before)->quality.step_micros, b = PlanOf(after)->quality.step_micros;
    frequency.Count(case_seed, std::min(a, b), std::max(a, b));
  });
  frequency.Print("other names");
  // Measured on 1,500 seeds: 22 of 1,107 cases.
  if (!Alone()) {
    EXPECT_LE(frequency.by_more, 2 + frequency.cases / 20);
  }
}

// So few places that all are tried.
Case DrawTinyCase() {
  Case drawn;
  FabricOf shape{
      .units = Draw(1, 2, "units"), .nodes = Draw(1, 2, "nodes of a unit"), .gpus = 4, .leaves = 4};
  shape.oversubscription_percent = DrawOneOf({100, 300}, "oversubscription in percent");
  drawn.fabric = shape.Build();
  drawn.nodes = AllFree(drawn.fabric);
  drawn.random = base::Random(std::uint64_t(Draw(1, 1 << 30, "what is in use")));
  Fragment(drawn.random, 30, drawn);
  Parallelism p;
  p.tp = DrawOneOf({1, 2}, "tp");
  p.pp = DrawOneOf({1, 2}, "pp");
  p.dp = DrawOneOf({1, 2}, "dp");
  const int pod = int(std::min<std::int64_t>(p.world(), DrawOneOf({1, 2, 4}, "GPUs of a pod")));
  drawn.request = Gang(p, pod);
  return drawn;
}

TEST(Properties, OtherNodeNamesCostExactlyTheSameWhereEveryPlaceIsTried) {
  int planned = 0;
  ForAll(300, [&] {
    Case drawn = DrawTinyCase();
    const Case other = Renamed(drawn, drawn.random);
    ClusterState state = StateOf(drawn), renamed = StateOf(other);
    const Decision before = PlanGang(state, drawn.request), after = PlanGang(renamed, other.request);
    RC_ASSERT(before.index() == after.index());
    if (PlanOf(before) == nullptr) return;
    const Quality &one = PlanOf(before)->quality, &two = PlanOf(after)->quality;
    RC_ASSERT(one.step_micros == two.step_micros);
    RC_ASSERT(one.leaf_crossings == two.leaf_crossings);
    RC_ASSERT(one.whole_domains_left == two.whole_domains_left);
    ++planned;
  });
  if (!Alone()) {
    EXPECT_GE(planned, 1);
  }
}

// Least spread within 1 % of the fastest: where every place is tried nothing but that per cent can be lost.
TEST(Properties, MoreFreeGpusCostAtMostOnePercentWhereEveryPlaceIsTried) {
  int planned = 0;
  ForAll(300, [&] {
    Case drawn = DrawTinyCase();
    ClusterState state = StateOf(drawn);
    const Decision before = PlanGang(state, drawn.request);
    if (PlanOf(before) == nullptr) return;
    for (std::size_t n = 0; n < drawn.nodes.size(); ++n) {
      if (Chance(drawn.random, 50)) drawn.nodes[n] = AllFree(drawn.fabric)[n];
    }
    ClusterState roomier = StateOf(drawn);
    const Decision after = PlanGang(roomier, drawn.request);
    RC_ASSERT(PlanOf(after) != nullptr);
    RC_ASSERT(PlanOf(after)->quality.step_micros * 100 <= PlanOf(before)->quality.step_micros * 101);
    ++planned;
  });
  if (!Alone()) {
    EXPECT_GE(planned, 1);
  }
}

TEST(Properties, ARefusalStaysOneWithFewerGpus) {
  int refused = 0;
  ForAll(80, [&] {
    Case drawn = DrawCase(4096);
    ClusterState state = StateOf(drawn);
    const Decision before = PlanGang(state, drawn.request);
    if (PlanOf(before) != nullptr || NotFound(before)) return;
    ++refused;
    for (NodeState& node : drawn.nodes) {
      if (Chance(drawn.random, 20)) node.free_gpus &= std::uint32_t(drawn.random.Below(256));
    }
    ClusterState fuller = StateOf(drawn);
    RC_ASSERT(PlanOf(PlanGang(fuller, drawn.request)) == nullptr);
  });
  if (!Alone()) {
    EXPECT_GE(refused, 1);
  }
}

}  // namespace
}  // namespace heddle::placement
