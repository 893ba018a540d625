// The patched snapshot against the whole: whatever happens to a cluster, step by step, the keeper's snapshot is what
// TakeSnapshot makes of the same inputs. A failure prints its seed; HEDDLE_SEED=<seed> runs only that one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "extender/snapshot_keeper.h"
#include "placement/dense.h"
#include "tests/support/seeds.h"
#include "tests/unit/extender/published.h"
#include "topology/synthetic.h"

namespace heddle::extender {
namespace {

using base::Random;

// What differs between two snapshots, in words; empty = nothing.
std::string Differs(const placement::ClusterState& a, const placement::ClusterState& b) {
  const topology::Fabric& fabric = a.fabric();
  if (a.shared_fabric() != b.shared_fabric() || a.shared_dense() != b.shared_dense()) return "the fabric";
  const placement::Resources pod{900, 1 << 20, {{"rdma/hca", 1}}};
  for (topology::NodeId n = 0; n < topology::NodeId(fabric.nodes.size()); ++n) {
    const std::string& name = fabric.nodes[std::size_t(n)].node.name;
    if (a.node(n) != b.node(n)) return "the state of " + name;
    if (a.open_gpus(n) != b.open_gpus(n) || a.usable(n) != b.usable(n) ||
        a.Copies(n, pod, 100) != b.Copies(n, pod, 100) ||
        a.Copies(n, {1, 1, {}}, 200) != b.Copies(n, {1, 1, {}}, 200))
      return "the room of " + name;
  }
  for (topology::DomainId d = 0; d < topology::DomainId(fabric.domains.size()); ++d) {
    if (a.free_gpus_in_domain(d) != b.free_gpus_in_domain(d) || a.domain_is_whole(d) != b.domain_is_whole(d))
      return "domain " + std::to_string(d);
  }
  for (topology::UnitId u = 0; u < topology::UnitId(fabric.units.size()); ++u) {
    if (a.free_gpus_in_unit(u) != b.free_gpus_in_unit(u)) return "unit " + std::to_string(u);
  }
  if (a.whole_domains() != b.whole_domains()) return "the whole domains";
  return a.link_load_mbps() == b.link_load_mbps() ? "" : "the load of the links";
}

std::string Differs(const FabricView& a, const FabricView& b, int spares) {
  if (a.fabric != b.fabric || a.index != b.index) return "the fabric";
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && std::equal(x.second.begin(), x.second.end(), y.second.begin(),
                                            y.second.end(), [](const auto& one, const auto& other) {
                                              return one.leaf == other.leaf && one.mbps == other.mbps;
                                            });
  };
  if (a.may_reserve != b.may_reserve) return "which nodes may reserve";
  if (!std::equal(a.loads.begin(), a.loads.end(), b.loads.begin(), b.loads.end(), same)) return "the loads";
  for (const int gpus : {1, 8}) {
    if (a.scores->Of(a.state, gpus, spares) != b.scores->Of(b.state, gpus, spares)) return "the scores";
  }
  return Differs(a.state, b.state);
}

std::string Differs(const Snapshot& a, const Snapshot& b) {
  if (a.fabrics.size() != b.fabrics.size()) return "the number of fabrics";
  for (std::size_t i = 0; i < a.fabrics.size(); ++i) {
    if (std::string what = Differs(a.fabrics[i], b.fabrics[i], b.spares); !what.empty()) return what;
  }
  const auto same_facts = [](const auto& x, const auto& y) {
    return x.first == y.first && *x.second == *y.second;
  };
  if (!std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_facts))
    return "the nodes";
  if (a.holds != b.holds) return "the holds";
  if (a.left_out != b.left_out) return "those left out";
  if (a.gangs != b.gangs) return "the gangs";
  if (a.silent != b.silent) return "the silent";
  if (a.faulty != b.faulty) return "the faulty";
  if (a.given != b.given) return "the given";
  if (a.given_on != b.given_on) return "the given, by node";
  return a.spares == b.spares ? "" : "the spares";
}

// A cluster of few nodes, and what can happen to it. Objects are replaced and never changed, as in the caches.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    static const std::vector<std::string> kLines = {"su:1 node:3 gpu:8 nic:8 rail:8",
                                                    "su:2 node:3 gpu:8 nic:8 rail:8 rate:400 transport:ib",
                                                    "rack:2 tray:3 gpu:4 nic:4 rail:4 machine:gb200 nvl"};
    const auto parsed = topology::ParseSynthetic(kLines[random_.Below(kLines.size())]);
    for (const topology::Node& node : parsed->nodes) {
      auto object = std::make_shared<crds::NodeTopology>();
      object->name = node.name;
      object->status.node = node;
      object->status.observed_at = base::WallTime(std::chrono::seconds(1));
      published_.push_back(std::move(object));
      names_.push_back(node.name);
    }
    names_.insert(names_.end(), {"aa-outside", "zz-outside"});
    std::sort(names_.begin(), names_.end());
    if (Chance(2)) Declare();
    Assemble();
    for (const std::string& name : names_) NewNode(name);
    for (int i = 0; i < 4; ++i) GangChanges();
    for (int i = 0; i < 12; ++i) PodChanges();
  }

  // Says what it does.
  std::string Step() {
    struct Kind {
      const char* name;
      int weight;
      void (World::*make)();
    };
    static const std::vector<Kind> kKinds = {
        {"pod", 40, &World::PodChanges},       {"gang", 14, &World::GangChanges},
        {"node", 12, &World::NodeChanges},     {"grants", 20, &World::GrantsChange},
        {"stale", 3, &World::StaleChanges},    {"lapsed", 4, &World::LapsedChange},
        {"done", 4, &World::DoneChange},       {"spares", 1, &World::SparesChange},
        {"machine", 1, &World::MachineChanges}};
    int at = int(random_.Below(99));
    for (const Kind& kind : kKinds) {
      if ((at -= kind.weight) >= 0) continue;
      (this->*kind.make)();
      return kind.name;
    }
    return "";
  }

  const SnapshotInputs& inputs() const { return inputs_; }

 private:
  bool Chance(int of) { return random_.Below(std::uint64_t(of)) == 0; }
  template <class T>
  const T& Any(const std::vector<T>& of) {
    return of[random_.Below(of.size())];
  }
  template <class T>
  const T& Any(const base::SharedList<T>& of) {
    return Any(of.items());
  }
  std::uint32_t Gpus() { return Chance(3) ? 0 : std::uint32_t(random_.Below(256)); }
  std::string Owner() { return "owner-" + std::to_string(random_.Below(4)); }
  GangKey Key() { return {"train", Owner(), std::int64_t(random_.Below(5) / 4)}; }

  // In its place by name, or in place of its like; `value` null takes it away.
  template <class T, class KeyOf>
  static void Put(base::SharedList<Shared<T>>& shared, const T& like, Shared<T> value, KeyOf key) {
    std::vector<Shared<T>> list = shared.items();
    auto at =
        std::lower_bound(list.begin(), list.end(), key(like),
                         [&key](const Shared<T>& one, const auto& wanted) { return key(*one) < wanted; });
    const bool there = at != list.end() && key(**at) == key(like);
    if (there && value != nullptr) {
      *at = std::move(value);
    } else if (there) {
      list.erase(at);
    } else if (value != nullptr) {
      list.insert(at, std::move(value));
    }
    shared = std::move(list);
  }

  void Declare() {
    crds::Fabric declared;
    declared.name = "infiniband";
    declared.spec.oversubscription_percent = 400;
    if (Chance(3)) declared.spec.excluded_nodes.push_back(names_[1]);
    declared_.push_back(std::make_shared<const crds::Fabric>(declared));
  }
  void Assemble() {
    const auto before = inputs_.topologies;
    test::Publish(published_, declared_, inputs_);
    std::vector<Shared<TopologyFacts>> topologies = inputs_.topologies.items();
    for (auto& now : topologies) {
      for (const auto& old : before) {
        if (old->name == now->name) now = old;
      }
    }
    std::sort(topologies.begin(), topologies.end(),
              [](const auto& a, const auto& b) { return a->name < b->name; });
    inputs_.topologies = std::move(topologies);
  }

  void NewNode(const std::string& name) {
    NodeFacts facts;
    facts.name = name;
    facts.ready = !Chance(8);
    facts.cordoned = Chance(8);
    facts.milli_cpu = 64'000;
    facts.memory_bytes = 1LL << 40;
    facts.pods = 110;
    facts.gpus = Chance(8) ? int(random_.Below(9)) : int(published_[0]->status.node.gpus.size());
    if (Chance(2)) facts.extended = {{"heddle.dev/fabric", 8}, {"rdma/hca", 6}};
    Put(inputs_.nodes, facts, std::make_shared<const NodeFacts>(facts),
        [](const NodeFacts& one) { return one.name; });
  }
  void NodeChanges() {
    const std::string name = Any(names_);
    if (!Chance(5)) return NewNode(name);
    NodeFacts gone;
    gone.name = name;
    Put(inputs_.nodes, gone, {}, [](const NodeFacts& one) { return one.name; });
  }

  void PodChanges() {
    PodFacts pod;
    pod.key = {Chance(4) ? "other" : "train", "pod-" + std::to_string(random_.Below(20))};
    const auto key = [](const PodFacts& one) { return one.key; };
    for (const auto& one : inputs_.pods) {
      if (one->key == pod.key) pod = *one;
    }
    const bool fresh = pod.uid.empty() || Chance(12);
    if (fresh) {
      pod.uid = "uid-" + std::to_string(random_.Next());
      pod.gang = Key();
      pod.demand.gpus = int(random_.Below(5));
      pod.demand.resources.milli_cpu = 500 * std::int64_t(random_.Below(4));
      if (Chance(3)) pod.demand.resources.extended = {{"rdma/hca", 1}};
    }
    const auto plan = [&] {
      pod.plan = PodPlan{.rank = int(random_.Below(6)) - 1, .node = Any(names_), .gpus = Gpus()};
      if (!pod.node.empty() && !Chance(4)) pod.plan->node = pod.node;
    };
    const auto bind = [&] { pod.node = pod.plan && !Chance(4) ? pod.plan->node : Any(names_); };
    if (fresh && Chance(2)) plan();
    if (fresh && Chance(2)) bind();
    switch (random_.Below(fresh ? 1 : 11)) {
      case 0:
        pod.gated = pod.node.empty() && Chance(2);
        break;
      case 1:
        pod.terminating = !pod.terminating;
        break;
      case 2:
        pod.finished = pod.succeeded = !pod.finished;
        break;
      case 3:
        pod.finished = !pod.finished;
        break;
      case 4:
        bind();
        break;
      case 5:
        pod.node.clear();
        break;
      case 6:
        plan();
        break;
      case 7:
        pod.plan.reset();
        break;
      case 8:
        pod.gang = Key();
        break;
      case 9:
        pod.demand.resources.milli_cpu += 100;
        break;
      default:
        return Put(inputs_.pods, pod, {}, key);
    }
    Put(inputs_.pods, pod, std::make_shared<const PodFacts>(pod), key);
  }

  void GangChanges() {
    crds::Gang gang;
    const GangKey key = Key();
    gang.ns = key.ns;
    gang.name = "gang-" + key.owner_uid + "-" + std::to_string(key.attempt);
    const auto name = [](const crds::Gang& one) { return std::tie(one.ns, one.name); };
    for (const auto& one : inputs_.gangs) {
      if (one->name == gang.name) gang = *one;
    }
    if (gang.uid.empty()) {
      gang.uid = gang.name + "-uid";
      gang.spec.owner = {"batch/v1", "Job", key.owner_uid, key.owner_uid};
      gang.spec.attempt = key.attempt;
      gang.spec.gpus_per_pod = 8;
    }
    switch (random_.Below(gang.status.placement ? 6 : 1)) {
      case 0:
      case 1:
        Place(gang);
        break;
      case 2:
        gang.status.planned_at = base::WallTime(std::chrono::seconds(random_.Below(9)));
        break;
      case 3:
        crds::SetCondition(gang.status.conditions, {.type = std::string(crds::kEnded),
                                                    .status = Chance(2) ? crds::ConditionStatus::kTrue
                                                                        : crds::ConditionStatus::kFalse});
        break;
      case 4:
        gang.status.placement.reset();
        break;
      default:
        return Put(inputs_.gangs, gang, {}, name);
    }
    Put(inputs_.gangs, gang, std::make_shared<const crds::Gang>(gang), name);
  }
  // One row of an old plan moves, or all are new.
  void Place(crds::Gang& gang) {
    std::vector<crds::PlacedPod> rows;
    if (gang.status.placement && !Chance(3)) {
      rows = crds::ToRows(*gang.status.placement);
      rows[random_.Below(rows.size())] = {Any(names_), Gpus(), {}};
    } else {
      rows.resize(1 + random_.Below(4));
      for (auto& row : rows) row = {Any(names_), Chance(2) ? 0 : Gpus(), {}};
    }
    gang.spec.pods = int(rows.size());
    gang.spec.parallelism =
        placement::Parallelism{.tp = int(published_[0]->status.node.gpus.size()), .dp = int(rows.size())};
    gang.status.placement = crds::ToColumns(rows, 1);
  }

  void GrantsChange() {
    auto facts = std::make_shared<TopologyFacts>(*Any(inputs_.topologies));
    if (!facts->grants.empty() && Chance(3)) {
      facts->grants.erase(facts->grants.begin() + std::ptrdiff_t(random_.Below(facts->grants.size())));
    } else if (!inputs_.pods.empty()) {
      // Mostly one of its own pods.
      Shared<PodFacts> pod = Any(inputs_.pods);
      for (int i = 0; i < 10 && pod->node != facts->name; ++i) pod = Any(inputs_.pods);
      crds::Grant grant{.pod_namespace = pod->key.ns, .pod_name = pod->key.name};
      if (Chance(2)) grant.pod_uid = Chance(5) ? "another" : pod->uid;
      const std::uint32_t gpus = pod->plan && !Chance(3) ? pod->plan->gpus : Gpus();
      for (int i = 0; i < 8; ++i) {
        if ((gpus >> i & 1u) != 0) grant.gpus.push_back({Chance(30) ? -1 : i, ""});
      }
      if (Chance(2)) grant.nics.push_back(Any(published_[0]->status.node.nics).name);
      facts->grants.push_back(std::move(grant));
    }
    Put<TopologyFacts>(inputs_.topologies, *facts, facts, [](const TopologyFacts& one) { return one.name; });
  }

  void StaleChanges() {
    const std::string name = Any(names_);
    if (inputs_.stale_nodes.erase(name) == 0) inputs_.stale_nodes.insert(name);
  }
  void RanksChange(std::map<GangKey, std::set<int>>& ranks) {
    const GangKey key = Key();
    const int rank = int(random_.Below(4));
    std::set<int>& of = ranks[key];
    if (of.erase(rank) == 0) of.insert(rank);
    if (of.empty()) ranks.erase(key);
  }
  void LapsedChange() { RanksChange(inputs_.lapsed); }
  void DoneChange() { RanksChange(inputs_.done); }
  void SparesChange() { inputs_.spares = int(random_.Below(3)); }
  // A GPU of a machine breaks or is mended, or its agent has published nothing.
  void MachineChanges() {
    auto& object = published_[random_.Below(published_.size())];
    object = std::make_shared<crds::NodeTopology>(*object);
    if (Chance(3)) {
      object->status.observed_at.reset();
    } else {
      topology::Gpu& gpu = object->status.node.gpus[random_.Below(object->status.node.gpus.size())];
      gpu.healthy = !gpu.healthy;
      object->status.observed_at = base::WallTime(std::chrono::seconds(1));
    }
    Assemble();
  }

  Random random_;
  std::vector<std::shared_ptr<crds::NodeTopology>> published_;
  std::vector<Shared<crds::Fabric>> declared_;
  std::vector<std::string> names_;
  SnapshotInputs inputs_;
};

TEST(SnapshotPatch, IsTheWholeWhateverHasHappened) {
  constexpr int kSteps = 60;
  std::size_t holds = 0, reserved = 0, given = 0, loads = 0;
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    World world(seed);
    SnapshotKeeper keeper;
    std::string steps;
    for (int step = 0; step < kSteps; ++step) {
      const Shared<Snapshot> kept = keeper.Of(world.inputs());
      const Snapshot whole = TakeSnapshot(world.inputs());
      ASSERT_EQ(Differs(*kept, whole), "") << "after" << steps;
      holds += whole.holds.size();
      given += whole.given.size();
      for (const auto& [node, on_node] : whole.holds)
        reserved += on_node.back().source == Hold::Source::kReserved;
      for (const FabricView& view : whole.fabrics) loads += view.loads.size();
      for (int more = step % 3; more >= 0; --more) steps += " " + world.Step();
    }
  }
  // Over all seeds, the walk comes by what it is for.
  if (test::Seeds(500).size() == 1) return;
  for (const std::size_t times : {holds, reserved, given, loads}) EXPECT_GT(times, 100u);
}

// What was handed out stays as it was.
TEST(SnapshotPatch, LeavesTheSnapshotBeforeAlone) {
  World world(1);
  SnapshotKeeper keeper;
  const Shared<Snapshot> first = keeper.Of(world.inputs());
  const Snapshot then = TakeSnapshot(world.inputs());
  for (int step = 0; step < 100; ++step) {
    world.Step();
    keeper.Of(world.inputs());
  }
  EXPECT_EQ(Differs(*first, then), "");
}

}  // namespace
}  // namespace heddle::extender
