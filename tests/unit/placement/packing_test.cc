#include "placement/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/random.h"
#include "placement/count_sums.h"
#include "tests/support/seeds.h"
#include "tests/unit/placement/fabrics.h"

namespace heddle::placement {
namespace {

using topology::NodeId;

constexpr std::int64_t kAmple = 100'000'000;

using Row = std::vector<std::int32_t>;

CountRows RowsOf(const std::vector<Row>& rows) {
  CountRows out(rows.front().size());
  for (const Row& row : rows) out.Add(row);
  return out;
}

Row AsRow(std::span<const std::int32_t> row) {
  return {row.begin(), row.end()};
}

// Every sum there is, cut to the limit, but for those that are at most another.
std::set<Row> LargestSums(const std::vector<std::vector<Row>>& parts, const Row& limit) {
  std::set<Row> sums{Row(limit.size(), 0)};
  for (const auto& part : parts) {
    std::set<Row> next;
    for (const Row& sum : sums) {
      for (const Row& row : part) {
        Row grown = sum;
        for (std::size_t k = 0; k < limit.size(); ++k) grown[k] = std::min(limit[k], sum[k] + row[k]);
        next.insert(grown);
      }
    }
    sums = std::move(next);
  }
  std::set<Row> out;
  for (const Row& sum : sums) {
    const auto above = [&sum](const Row& other) { return other != sum && AtMost(sum, other); };
    if (std::none_of(sums.begin(), sums.end(), above)) out.insert(sum);
  }
  return out;
}

TEST(CountSums, AreThoseThatTryingAllOfThemFinds) {
  int reached = 0, missed = 0;
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const std::size_t kinds = 1 + random.Below(3);
    Row limit(kinds);
    for (auto& most : limit) most = std::int32_t(1 + random.Below(6));
    std::vector<std::vector<Row>> parts(1 + random.Below(5));
    for (auto& part : parts) {
      part.resize(1 + random.Below(3), Row(kinds));
      for (Row& row : part) {
        for (auto& count : row) count = std::int32_t(random.Below(3));
      }
    }
    std::vector<CountRows> held;
    for (const auto& part : parts) held.push_back(RowsOf(part));
    CountSums::Question question;
    for (const CountRows& part : held) question.parts.push_back(&part);
    question.limit = limit;
    question.weight.assign(kinds, 1);
    std::int64_t budget = kAmple;
    CountSums sums(question);
    ASSERT_TRUE(sums.Run(budget));
    const std::set<Row> truth = LargestSums(parts, limit);
    std::set<Row> found;
    for (std::size_t s = 0; s < sums.sums().size(); ++s) {
      found.insert(AsRow(sums.sums()[s]));
      // The rows that are named do make up the sum.
      Row made(kinds, 0);
      const auto rows = sums.RowsOf(s);
      for (std::size_t p = 0; p < parts.size(); ++p) {
        for (std::size_t k = 0; k < kinds; ++k) made[k] += parts[p][std::size_t(rows[p])][k];
      }
      EXPECT_TRUE(AtMost(sums.sums()[s], made));
    }
    EXPECT_EQ(found, truth);
    question.all = true;
    CountSums whole(question);
    ASSERT_TRUE(whole.Run(budget));
    EXPECT_EQ(whole.sums().size(), truth.count(limit));
    ++(truth.count(limit) != 0 ? reached : missed);
  }
  EXPECT_TRUE(reached + missed == 1 || (reached > 10 && missed > 10)) << reached << " and " << missed;
}

// Whether any pods-to-nodes assignment keeps room, lists and required groups, by trying them all.
class EveryAssignment {
 public:
  EveryAssignment(const ClusterState& state, const GangRequest& request) : state_(state), request_(request) {
    std::vector<std::int32_t> pod_of_rank;
    for (std::size_t p = 0; p < request.pods.size(); ++p) {
      pod_of_rank.insert(pod_of_rank.end(), std::size_t(request.pods[p].gpus), std::int32_t(p));
    }
    for (const Requirement& requirement : EffectiveRequirements(request)) {
      for (const auto& group : Groups(request.parallelism, requirement.axis)) {
        if (group.size() < 2) continue;
        std::set<std::int32_t> pods;
        for (const std::int32_t rank : group) pods.insert(pod_of_rank[std::size_t(rank)]);
        // Pods without GPUs belong to the gang.
        for (std::size_t p = 0; requirement.axis == Axis::kGang && p < request.pods.size(); ++p) {
          pods.insert(std::int32_t(p));
        }
        groups_.push_back({requirement.level, pods});
      }
    }
    node_of_.assign(request.pods.size(), topology::kNone);
  }
  bool Exists() { return Next(0); }

 private:
  struct Group {
    Level level;
    std::set<std::int32_t> pods;
  };

  bool Next(std::size_t pod) {
    if (pod == request_.pods.size()) {
      return std::all_of(groups_.begin(), groups_.end(), [this](const Group& group) { return Lies(group); });
    }
    for (NodeId node = 0; node < NodeId(state_.fabric().nodes.size()); ++node) {
      node_of_[pod] = node;
      if (Holds(pod, node) && Next(pod + 1)) return true;
    }
    node_of_[pod] = topology::kNone;
    return false;
  }

  bool Holds(std::size_t pod, NodeId node) const {
    const auto& list = request_.pods[pod].allowed;
    if (list) {
      const auto& nodes = request_.allowed_nodes[*list];
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) return false;
    }
    int gpus = 0, pods = 0;
    std::int64_t cpu = 0, fpga = 0;
    for (std::size_t p = 0; p <= pod; ++p) {
      if (node_of_[p] != node) continue;
      ++pods;
      gpus += request_.pods[p].gpus;
      cpu += request_.pods[p].resources.milli_cpu;
      for (const auto& [name, amount] : request_.pods[p].resources.extended) fpga += amount;
    }
    const NodeState& where = state_.node(node);
    const std::int64_t fpgas = where.free_extended.empty() ? 0 : where.free_extended.front().second;
    return where.unusable.empty() && gpus <= std::popcount(where.free_gpus) && pods <= where.free_pods &&
           cpu <= where.free_milli_cpu && fpga <= fpgas;
  }

  bool Lies(const Group& group) const {
    std::set<std::int32_t> nodes, domains, units;
    for (const std::int32_t p : group.pods) {
      const auto& where = state_.fabric().nodes[std::size_t(node_of_[std::size_t(p)])];
      nodes.insert(node_of_[std::size_t(p)]);
      domains.insert(where.domain);
      units.insert(where.unit);
    }
    const bool one_domain = domains.size() == 1 && *domains.begin() != topology::kNone;
    if (group.level == Level::kNode) return nodes.size() == 1;
    if (group.level == Level::kNvlink) return one_domain;
    return nodes.size() == 1 || one_domain || (units.size() == 1 && *units.begin() != topology::kNone);
  }

  const ClusterState& state_;
  const GangRequest& request_;
  std::vector<Group> groups_;
  std::vector<NodeId> node_of_;
};

struct Instance {
  topology::Fabric fabric;
  std::vector<NodeState> nodes;
  GangRequest request;
};

// Pods of several sizes and wishes, about as many GPUs as are free, with requirements that nest.
Instance MakeInstance(base::Random& random) {
  FabricOf shape{.units = 1 + int(random.Below(3)), .nodes = 2, .gpus = 4, .leaves = 4};
  if (random.Below(3) == 0) shape.racks_per_unit = 1;
  shape.nvlink = random.Below(12) != 0;
  Instance out;
  out.fabric = shape.Build();
  if (shape.nvlink && random.Below(6) == 0) {
    out.fabric.nodes.front().domain = topology::kNone;
    auto& domain = out.fabric.domains.front();
    domain.nodes.erase(domain.nodes.begin());
    domain.gpus -= 4;
  }
  out.nodes = AllFree(out.fabric);
  int free = 0;
  for (NodeState& node : out.nodes) {
    if (random.Below(2) == 0) node.free_gpus = std::uint32_t(random.Below(16));
    if (random.Below(10) == 0) node.unusable = "Cordoned";
    if (random.Below(5) == 0) node.free_milli_cpu = std::int64_t(random.Below(4)) * 1000;
    if (random.Below(5) == 0) node.free_pods = std::int64_t(random.Below(3));
    if (random.Below(2) == 0) node.free_extended = {{"fpga", 1}};
    if (node.unusable.empty()) free += std::popcount(node.free_gpus);
  }
  GangRequest& request = out.request;
  request.parallelism.tp = random.Below(2) == 0 ? 1 : 2;
  request.parallelism.pp = random.Below(3) == 0 ? 2 : 1;
  const int group = int(request.parallelism.world());
  request.parallelism.dp = std::max(1, std::min(12, free - int(random.Below(3))) / group);
  request.allowed_nodes.emplace_back();
  for (std::size_t n = 0; n < out.nodes.size(); ++n) {
    if (random.Below(3) != 0) request.allowed_nodes.front().push_back(NodeId(n));
  }
  if (random.Below(8) == 0) request.pods.push_back({0, {1000, 0, {}}, {}, {}, {}});
  for (int left = int(request.parallelism.world()); left > 0;) {
    PodRequest pod;
    pod.gpus = std::min(left, std::array<int, 5>{1, 2, 2, 3, 4}[random.Below(5)]);
    if (request.pods.size() >= 6) pod.gpus = std::min(left, 4);
    pod.resources.milli_cpu = random.Below(3) == 0 ? 1000 : 0;
    if (random.Below(8) == 0) pod.resources.extended = {{"fpga", 1}};
    if (random.Below(5) == 0) pod.allowed = 0;
    left -= pod.gpus;
    request.pods.push_back(pod);
  }
  for (int i = int(random.Below(3)); i > 0; --i) {
    const std::array<Level, 3> levels{Level::kNvlink, Level::kNode, Level::kUnit};
    const std::array<Axis, 4> axes{Axis::kTp, Axis::kPp, Axis::kDp, Axis::kGang};
    request.require.push_back({axes[random.Below(4)], levels[random.Below(3)]});
  }
  return out;
}

// A tray that was just put in, whose leaves nobody has named yet: its rack is one domain all the same.
TEST(Counting, CountsRacksThoughTheUnitOfATrayIsNotKnown) {
  auto fabric = FabricOf{.units = 1, .nodes = 8, .gpus = 4, .leaves = 4, .racks_per_unit = 2}.Build();
  fabric.nodes[7].unit = topology::kNone;
  fabric.nodes[7].uplinks.assign(4, {});
  fabric.units[0].nodes.pop_back();
  auto nodes = AllFree(fabric);
  for (const std::size_t n : {0U, 1U, 2U}) nodes[n].free_gpus = 0x3;
  for (const std::size_t n : {3U, 5U, 6U, 7U}) nodes[n].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  ASSERT_FALSE(state.dense().nested());
  Planned(state, Gang(Sizes(4, 1, 2), 2));
  const Refusal refusal = Refused(state, Gang(Sizes(8, 1, 1), 2));
  EXPECT_EQ(refusal.reason, RefusalReason::kNotEnoughFree);
  EXPECT_EQ(refusal.sentence,
            "8 GPUs needed in one NVLink domain, best has 6 (rack-0); 10 of its 16 GPUs are taken, broken or "
            "closed");
}

TEST(DenseFabric, LeavesARackInItsUnitThoughThatOfItsFirstTrayIsNotKnown) {
  auto fabric = FabricOf{.units = 1, .nodes = 8, .gpus = 4, .leaves = 4, .racks_per_unit = 2}.Build();
  fabric.nodes[0].unit = topology::kNone;
  fabric.nodes[0].uplinks.assign(4, {});
  fabric.units[0].nodes.erase(fabric.units[0].nodes.begin());
  auto nodes = AllFree(fabric);
  for (const std::size_t n : {0U, 2U, 3U, 5U, 6U, 7U}) nodes[n].free_gpus = 0;
  auto state = Cluster(std::move(fabric), std::move(nodes));
  const DenseFabric& dense = state.dense();
  const std::int32_t unit = dense.cell(Tier::kUnit, 1);
  EXPECT_EQ(unit, dense.cell(Tier::kUnit, 4));
  EXPECT_TRUE(dense.known(Tier::kUnit, unit) && dense.cells_bound());
  EXPECT_EQ(dense.CellName(Tier::kUnit, unit), "su-0");
  EXPECT_EQ(dense.CellName(Tier::kNode, dense.cell(Tier::kNode, 0)), "node-0000");
  auto request = Gang(Sizes(4, 1, 2), 4);
  request.require = {{Axis::kGang, Level::kUnit}};
  Planned(state, request);
}

TEST(Packing, FindsAPlaceIfAndOnlyIfThereIsOne) {
  int found = 0, refused = 0;
  for (const std::uint64_t seed : test::Seeds(1500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Instance instance = MakeInstance(random);
    const ClusterState state = Cluster(std::move(instance.fabric), std::move(instance.nodes));
    const GangRequest& request = instance.request;
    ASSERT_TRUE(state.dense().nested() && WhyBadRequest(state.fabric(), request).empty());
    const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
    const Packing packing = Pack(state, request, classes, kAmple);
    const bool exists = EveryAssignment(state, request).Exists();
    EXPECT_EQ(packing.outcome, exists ? Packing::Outcome::kFound : Packing::Outcome::kImpossible);
    if (packing.outcome == Packing::Outcome::kFound) {
      EXPECT_THAT(Faults(state, request, Plan{packing.pods, {}, {}, {}}), testing::IsEmpty());
    }
    ++(exists ? found : refused);
  }
  EXPECT_TRUE(found + refused == 1 || (found * 5 > refused && refused * 5 > found))
      << found << " and " << refused;
}

GangRequest PodsOf(const Parallelism& parallelism, const std::vector<int>& gpus) {
  GangRequest request;
  request.parallelism = parallelism;
  for (const int count : gpus) {
    PodRequest pod;
    pod.gpus = count;
    request.pods.push_back(pod);
  }
  return request;
}

// Of tools/oracle: --nodes-max 16 --seed 1673.
TEST(Packing, KeepsRoomForPodsThatMayNotGoElsewhere) {
  auto fabric = FabricOf{.units = 9, .nodes = 1, .leaves = 1}.Build();
  auto nodes = AllFree(fabric);
  nodes[7].free_pods = 2;
  ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  GangRequest request = Gang(Sizes(1, 3, 12, 2), 4);
  request.allowed_nodes = {{0, 1, 2, 3, 5, 6, 8}};
  for (const int pod : {0, 1, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16}) request.pods[std::size_t(pod)].allowed = 0;
  Planned(state, request);
  request.pods[2].allowed = request.pods[3].allowed = request.pods[4].allowed = 0;
  EXPECT_EQ(Refused(state, request).reason, RefusalReason::kTooLargeForFabric);
}

// Of tools/oracle: --nodes-max 32 --seed 308.
TEST(Packing, FillsOddRoomsWithUnlikePods) {
  auto fabric = FabricOf{.units = 19, .nodes = 1, .leaves = 1}.Build();
  auto nodes = AllFree(fabric);
  for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].free_gpus = n < 4 ? 0b1111 : 0b11;
  nodes[17].free_pods = 1;
  nodes[18].free_pods = 1;
  ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  std::vector<int> sizes(27, 1);
  sizes.insert(sizes.end(), {2, 3, 2, 3, 2, 3});
  Planned(state, PodsOf(Sizes(1, 1, 42), sizes));
  sizes.insert(sizes.end(), {2, 2, 2});
  EXPECT_EQ(Refused(state, PodsOf(Sizes(1, 1, 48), sizes)).reason, RefusalReason::kNotEnoughFree);
}

// Of tools/oracle: --nodes-max 16 --seed 2365. A cp group over two nodes makes the step three times as long, and no
// single move mends one.
TEST(Packing, KeepsCpGroupsOfUnlikePodsInNodes) {
  auto fabric = FabricOf{.units = 3, .nodes = 4, .leaves = 4}.Build();
  auto nodes = AllFree(fabric);
  const std::array<std::uint32_t, 12> open{0xcf, 0xff, 0x75, 0xff, 0xbe, 0x3d,
                                           0x21, 0x79, 0x68, 0x89, 0xff, 0};
  for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].free_gpus = open[n];
  nodes[1].free_milli_cpu = 7000;
  nodes[8].free_milli_cpu = 6000;
  ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  GangRequest request = PodsOf(Sizes(1, 1, 17, 2), {8, 1, 1, 1, 4, 1, 1, 1, 1, 1, 1, 7, 1, 1, 1, 1, 2});
  for (PodRequest& pod : request.pods) pod.resources.milli_cpu = 1000 * pod.gpus;
  EXPECT_EQ(Planned(state, request).quality.edges[std::size_t(Axis::kCp)], 0);
}

// Sizes that leave rooms of one GPU in nodes by the hundred: nothing that goes pod by pod ends there.
TEST(Packing, DecidesTightGangsOnManyNodes) {
  auto fabric = FabricOf{.units = 50, .nodes = 12}.Build();
  auto nodes = AllFree(fabric);
  int sevens = 0, twos = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int open = 1 + int(n % 7);
    nodes[n].free_gpus = AllGpus(open);
    sevens += open == 7 ? 1 : 0;
    // Every seven takes a five beside a two. A five in a room of five instead costs two twos and wins two.
    twos += open == 7 ? 1 : open / 2;
  }
  const ClusterState state = Cluster(std::move(fabric), std::move(nodes));
  const auto outcome = [&](int more) {
    std::vector<int> sizes(std::size_t(sevens), 5);
    sizes.insert(sizes.end(), std::size_t(twos + more), 2);
    const GangRequest request = PodsOf(Sizes(1, 1, 5 * sevens + 2 * (twos + more)), sizes);
    const Packing packing =
        Pack(state, request, ClassesOf(request, EffectiveRequirements(request)), 4'000'000);
    if (packing.outcome == Packing::Outcome::kFound) {
      EXPECT_THAT(Faults(state, request, Plan{packing.pods, {}, {}, {}}), testing::IsEmpty());
    }
    return packing.outcome;
  };
  EXPECT_EQ(outcome(0), Packing::Outcome::kFound);
  EXPECT_EQ(outcome(1), Packing::Outcome::kImpossible);
}

TEST(Packing, StopsWhereItsBudgetEnds) {
  const ClusterState state = FreeCluster(FabricOf{.units = 4, .nodes = 8}.Build());
  const GangRequest request = PodsOf(Sizes(1, 1, 120), std::vector<int>(40, 3));
  const GangClasses classes = ClassesOf(request, EffectiveRequirements(request));
  EXPECT_EQ(Pack(state, request, classes, 20).outcome, Packing::Outcome::kGaveUp);
  EXPECT_EQ(Pack(state, request, classes, kAmple).outcome, Packing::Outcome::kFound);
}

}  // namespace
}  // namespace heddle::placement
