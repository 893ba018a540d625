// Random gangs on fabrics small enough to try every assignment. A failing seed is printed; run it alone with
// HEDDLE_SEED=<seed> build/dev/bin/placement_test --gtest_filter='Oracle.*'.
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "base/random.h"
#include "placement/planner.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

struct Instance {
  topology::Fabric fabric;
  std::vector<NodeState> nodes;
  GangRequest request;
};

bool Chance(base::Random& random, int percent) {
  return int(random.Below(100)) < percent;
}

void Damage(base::Random& random, Instance& instance) {
  for (std::size_t n = 0; n < instance.nodes.size(); ++n) {
    NodeState& node = instance.nodes[n];
    if (Chance(random, 35)) node.free_gpus &= std::uint32_t(random.Below(16));
    if (Chance(random, 8)) node.unusable = Chance(random, 50) ? "Cordoned" : "TopologyStale";
    if (Chance(random, 15)) node.free_milli_cpu = std::int64_t(random.Below(5)) * 1000;
    if (Chance(random, 10)) node.free_pods = std::int64_t(random.Below(3));
    for (auto& uplink : instance.fabric.nodes[n].uplinks) {
      if (uplink.leaf != topology::kNone && Chance(random, 5)) uplink.gbps /= 2;
    }
  }
}

void AskFor(base::Random& random, Instance& instance) {
  constexpr std::array<Parallelism, 1> kNone{};
  Parallelism p = kNone[0];
  const std::array<int, 4> small{1, 1, 2, 2};
  p.tp = std::array<int, 4>{1, 2, 2, 4}[random.Below(4)];
  p.pp = small[random.Below(4)];
  p.dp = small[random.Below(4)] * (p.tp < 4 && Chance(random, 40) ? 2 : 1);
  p.cp = Chance(random, 15) && p.world() <= 4 ? 2 : 1;
  if (p.dp % 2 == 0 && Chance(random, 20)) p.fsdp = 2;
  if (p.dp % 2 == 0 && Chance(random, 15)) p.ep = 2;
  GangRequest& request = instance.request;
  request.parallelism = p;
  std::int64_t left = p.world();
  const int usual = 1 << random.Below(3);
  while (left > 0) {
    PodRequest pod;
    pod.gpus =
        int(std::min<std::int64_t>(left, Chance(random, 15) ? 1 + std::int64_t(random.Below(4)) : usual));
    if (Chance(random, 50)) pod.resources.milli_cpu = 1000;
    left -= pod.gpus;
    request.pods.push_back(pod);
  }
  if (Chance(random, 60)) {
    for (PodRequest& pod : request.pods) pod.resources = request.pods.front().resources;
  }
  if (Chance(random, 10)) request.pods.insert(request.pods.begin(), PodRequest{0, {1000, 0, {}}, {}, {}, {}});
  if (Chance(random, 15)) {
    auto& list = request.allowed_nodes.emplace_back();
    for (std::size_t n = 0; n < instance.nodes.size(); ++n) {
      if (Chance(random, 70)) list.push_back(NodeId(n));
    }
    for (PodRequest& pod : request.pods) {
      if (Chance(random, 80)) pod.allowed = 0;
    }
  }
  for (int i = int(random.Below(3)); i > 0; --i) {
    request.require.push_back({Axis(random.Below(kAxisCount)), Level(random.Below(5))});
  }
}

Instance MakeInstance(base::Random& random) {
  FabricOf shape;
  shape.units = 1 + int(random.Below(3));
  shape.nodes = shape.units == 3 ? 1 : 2 + (shape.units == 1 ? int(random.Below(3)) : 0);
  shape.gpus = 4;
  shape.leaves = std::array<int, 4>{4, 4, 2, 1}[random.Below(4)];
  shape.spine_groups = 1 + int(random.Below(2));
  if (shape.nodes % 2 == 0 && Chance(random, 25)) shape.racks_per_unit = shape.nodes / 2;
  shape.oversubscription_percent = Chance(random, 40) ? 300 : 100;
  if (Chance(random, 5)) shape.nvlink = false;
  Instance instance;
  instance.fabric = shape.Build();
  instance.nodes = AllFree(instance.fabric);
  Damage(random, instance);
  AskFor(random, instance);
  return instance;
}

void Print(const ClusterState& state, const GangRequest& request) {
  const Parallelism& p = request.parallelism;
  std::printf("tp=%d cp=%d dp=%d pp=%d ep=%d fsdp=%d\n", p.tp, p.cp, p.dp, p.pp, p.ep, p.fsdp);
  for (const PodRequest& pod : request.pods) {
    std::printf("pod: %d GPUs, %d mCPU%s\n", pod.gpus, int(pod.resources.milli_cpu),
                pod.allowed ? ", some nodes" : "");
  }
  for (const Requirement& r : request.require) {
    std::printf("%s=%s\n", std::string(AxisName(r.axis)).c_str(), std::string(LevelName(r.level)).c_str());
  }
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
    const auto& where = state.fabric().nodes[n];
    const NodeState& node = state.node(NodeId(n));
    std::printf("node %zu: unit %d domain %d free %x mCPU %d pods %d %s", n, where.unit, where.domain,
                node.free_gpus, int(node.free_milli_cpu), int(node.free_pods), node.unusable.c_str());
    for (const auto& uplink : where.uplinks) std::printf(" leaf %d at %d", uplink.leaf, uplink.gbps);
    std::printf("\n");
  }
}

// Every assignment, by recursion over pods; false when there are too many to try.
class BruteForce {
 public:
  BruteForce(const ClusterState& state, const GangRequest& request) : state_(state), request_(request) {}
  bool Run() {
    plan_.pods.assign(request_.pods.size(), {});
    Next(0);
    return left_ > 0;
  }
  bool feasible = false;
  std::int64_t best_micros = 0;

 private:
  void Next(std::size_t pod) {
    if (--left_ <= 0) return;
    if (pod == request_.pods.size()) {
      if (!Faults(state_, request_, plan_).empty()) return;
      const std::int64_t micros = Evaluate(state_, request_, plan_.pods).step_micros;
      if (!feasible || micros < best_micros) best_micros = micros;
      feasible = true;
      return;
    }
    const int wanted = request_.pods[pod].gpus;
    for (std::size_t n = 0; n < state_.fabric().nodes.size(); ++n) {
      std::uint32_t free = state_.node(NodeId(n)).free_gpus;
      if (!state_.node(NodeId(n)).unusable.empty()) continue;
      for (std::size_t other = 0; other < pod; ++other) {
        if (plan_.pods[other].node == NodeId(n)) free &= ~plan_.pods[other].gpus;
      }
      for (std::uint32_t gpus = 0; gpus < 16; ++gpus) {
        if (std::popcount(gpus) != wanted || (gpus & ~free) != 0) continue;
        plan_.pods[pod] = {NodeId(n), gpus};
        Next(pod + 1);
      }
    }
  }

  const ClusterState& state_;
  const GangRequest& request_;
  Plan plan_;
  std::int64_t left_ = 6'000;
};

std::vector<std::int64_t> Fingerprint(const ClusterState& state) {
  std::vector<std::int64_t> out{std::int64_t(state.Mark()), state.whole_domains()};
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
    const NodeState& node = state.node(NodeId(n));
    out.insert(out.end(),
               {std::int64_t(node.free_gpus), node.free_milli_cpu, node.free_memory_bytes, node.free_pods});
  }
  for (std::size_t d = 0; d < state.fabric().domains.size(); ++d)
    out.push_back(state.free_gpus_in_domain(topology::DomainId(d)));
  for (std::size_t u = 0; u < state.fabric().units.size(); ++u)
    out.push_back(state.free_gpus_in_unit(topology::UnitId(u)));
  return out;
}

TEST(Oracle, NeverRefusesWhatBruteForceCanPlaceAndIsRarelySlower) {
  const std::vector<std::uint64_t> seeds = test::Seeds(400);
  const bool replaying = seeds.size() == 1;
  int planned = 0, equal = 0, refused = 0, undecided = 0;
  for (const std::uint64_t seed : seeds) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Instance instance = MakeInstance(random);
    ClusterState state = Cluster(std::move(instance.fabric), std::move(instance.nodes));
    if (replaying) Print(state, instance.request);
    BruteForce truth(state, instance.request);
    if (!truth.Run()) continue;
    const auto before = Fingerprint(state);
    const Decision decision = PlanGang(state, instance.request);
    EXPECT_EQ(before, Fingerprint(state));
    EXPECT_EQ(decision, PlanGang(state, instance.request));
    if (const auto* plan = std::get_if<Plan>(&decision)) {
      EXPECT_THAT(Faults(state, instance.request, *plan), testing::IsEmpty());
      EXPECT_EQ(plan->quality, Evaluate(state, instance.request, plan->pods));
      EXPECT_TRUE(truth.feasible);
      EXPECT_LE(plan->quality.step_micros * 5, truth.best_micros * 6) << truth.best_micros << " is possible";
      ++planned;
      equal += plan->quality.step_micros == truth.best_micros ? 1 : 0;
    } else {
      const Refusal& refusal = std::get<Refusal>(decision);
      EXPECT_FALSE(truth.feasible) << RefusalReasonName(refusal.reason) << ": " << refusal.sentence;
      EXPECT_FALSE(refusal.sentence.empty());
      ++refused;
      undecided += refusal.reason == RefusalReason::kNotFoundInBudget ? 1 : 0;
    }
  }
  RecordProperty("planned", planned);
  RecordProperty("equal", equal);
  std::printf("planned %d, as good as the best %d, refused %d, undecided %d\n", planned, equal, refused,
              undecided);
  if (replaying) return;
  EXPECT_GE(planned, int(seeds.size()) / 5);
  EXPECT_GE(refused, int(seeds.size()) / 15);
  EXPECT_GE(equal * 100, planned * 95);
}

}  // namespace
}  // namespace heddle::placement
