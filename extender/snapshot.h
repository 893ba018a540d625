#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/shared_list.h"
#include "crds/fabric.h"
#include "crds/gang.h"
#include "crds/node_topology.h"
#include "extender/by_node.h"
#include "extender/given_devices.h"
#include "extender/node_constraints.h"
#include "extender/node_index.h"
#include "extender/pod_facts.h"
#include "placement/cluster_state.h"

namespace heddle::extender {

template <class T>
using Shared = std::shared_ptr<const T>;

// The fabrics as they stand, apart from who uses them: they change seldom and are dear to build.
struct FabricSet {
  std::vector<Shared<topology::Fabric>> fabrics;
  std::vector<Shared<NodeIndex>> indexes;  // of each of them
  std::vector<Shared<placement::DenseFabric>> dense;
  std::map<std::string, std::string>
      unusable;                    // by node: "TopologyContradictory", "Excluded", "NoTopology", "GpusUnread"
  std::set<std::string> faulty;    // nodes with broken hardware, see IsFaulty: few, mostly none
  std::set<std::string> excluded;  // nodes that a Fabric's people keep out of it
};

// What a node's agent has published, beside the machine itself: that stands in the FabricSet, and only there.
struct TopologyFacts {
  std::string name;
  std::string
      content;  // equal for as long as the machine is the same; empty = the agent has published nothing yet
  std::vector<crds::Grant> grants;
};
TopologyFacts FactsOf(const crds::NodeTopology& topology);

// `published`: the machines, each under its Node's name. `silent`: NodeTopologies of which nothing is published.
FabricSet AssembleFabrics(std::vector<topology::Node> published, const std::vector<std::string>& silent,
                          const std::vector<Shared<crds::Fabric>>& declared);

struct SnapshotInputs {
  Shared<FabricSet> fabrics;
  // Each in the order of its keys.
  base::SharedList<Shared<NodeFacts>> nodes;
  base::SharedList<Shared<TopologyFacts>> topologies;
  base::SharedList<Shared<PodFacts>> pods;  // all pods that are bound, gated by us or released by us
  base::SharedList<Shared<crds::Gang>> gangs;
  std::set<std::string> stale_nodes;        // whose agents have stopped to report
  std::map<GangKey, std::set<int>> lapsed;  // ranks that hold their slots no more
  int spares = 0;                           // see Snapshot
  std::map<GangKey, std::set<int>> done;    // ranks that have succeeded by their owner's word
};

// Nodes that the head of the queue has had emptied, and its priority: pods that are worth less stay away.
using KeptNodes = std::map<std::string, int, std::less<>>;

// Somebody's claim on GPUs of a node.
struct Hold {
  enum class Source : std::uint8_t { kGrant, kAnnotation, kAssumed, kReserved };
  std::uint32_t gpus = 0;  // bit = GPU index
  Source source = Source::kReserved;
  std::string pod_uid;                       // empty for a reservation without a pod
  std::string owner_uid;                     // as in GangKey, and nobody's alone: a label may have said it
  std::string ns;                            // of pod or gang; the two together say whose it is
  std::string name;                          // "pod ns/name" or "gang ns/name", for sentences
  placement::Resources resources;            // that go with the GPUs
  std::optional<base::WallTime> planned_at;  // of a reservation
  bool told = false;   // a reservation whose pod is past the gate with these GPUs in its plan
  bool begun = false;  // a reservation of a gang of which any live pod is past the gate
  // Its pod has a plan and is being deleted: if its gang stands, the next pod is to have its place.
  bool leaving = false;
  // Of any attempt.
  bool IsOf(const GangKey& gang) const { return owner_uid == gang.owner_uid && ns == gang.ns; }
  friend bool operator==(const Hold&, const Hold&) = default;
};

// What prioritize answers for every node of a fabric, reckoned when a pod of that many GPUs first asks: thousands of
// names in no order are then looked up in one small table. Thread rule: any thread.
class LonePodScores {
 public:
  // By node, 0 … 100; see placement::ScoreLonePod. `state` and `spares` are the same each time; the table lives as
  // long as this.
  const std::vector<std::int8_t>& Of(const placement::ClusterState& state, int gpus, int spares);

 private:
  std::mutex mutex_;
  std::map<int, std::vector<std::int8_t>> by_gpus_;
};

struct FabricView {
  Shared<topology::Fabric> fabric;
  placement::ClusterState state;  // with all loads; copy it to plan
  // What each gang sends over shared links, by its key's owner_uid.
  std::vector<std::pair<std::string, std::vector<placement::LeafLoad>>> loads;
  Shared<NodeIndex> index;  // null = none was made; Find searches then
  std::shared_ptr<LonePodScores> scores = std::make_shared<LonePodScores>();  // of `state`
  std::vector<char> may_reserve = {};  // by node, see MayReserve; empty = none does

  topology::NodeId Find(std::string_view name) const;  // kNone where it is not in this fabric
  std::vector<topology::NodeId> FindAll(
      const std::vector<std::string_view>& names) const;  // the same of each
  void Prefetch(std::string_view name) const;             // has memory brought near that Find will read
  std::vector<placement::LeafLoad> LoadsWithout(const std::string& owner_uid) const;
};

// Whether any of them is, or may become in the moment in which its pod is gone, for a pod that is not there yet.
bool MayReserve(const std::vector<Hold>& holds);

// Everything that planning reads, frozen. Which GPU is taken: the kubelet's grant, else the annotation of the
// pod that is bound there, else the lowest free indexes; and for what is not bound yet, the annotation of the
// released pod and the slot in its Gang, both while they differ, or the annotation alone once the Gang has ended.
struct Snapshot {
  std::vector<FabricView> fabrics;
  ByNode<Shared<NodeFacts>> nodes;
  ByNode<std::vector<Hold>> holds;      // only of nodes that have some
  std::map<std::string, int> left_out;  // nodes outside of every fabric, by word
  // "ns/owner" of the gangs that hold slots, by namespace and owner_uid.
  std::map<std::pair<std::string, std::string>, std::string> gangs;
  std::set<std::string> silent;            // nodes that are NotReady: few, mostly none
  std::set<std::string> faulty;            // as in FabricSet
  std::set<std::string> excluded;          // as in FabricSet
  GivenByGang given;                       // gangs whose pods' devices can be held against their plans
  ByNode<std::vector<GivenPod>> given_on;  // what `given` is the sum of
  // Wholly free, healthy nodes that new gangs leave in each NVLink domain over several nodes. Repairs may use them.
  int spares = 0;

  // The fabric and place of a node; null and kNone where it is in none.
  const FabricView* FindNode(const std::string& name, topology::NodeId& id) const;
  const topology::Node* Topology(const std::string& name) const;
  // Why a gang's pod cannot run on this node; empty = it can.
  std::string Unusable(const std::string& name) const;
  // What stands between a gang's pod and these GPUs (0 = all): holds of others that overlap, in order.
  std::vector<Hold> Conflicts(const std::string& node, std::uint32_t gpus, const GangKey& gang) const;
  // A claim on that node's GPUs of a pod that is not there yet: of a plan, or of a rank whose pod has gone or is going;
  // null = there is none. Of nodes outside of every fabric none is known.
  const Hold* Reservation(std::string_view node) const;
  bool Reserves() const;                       // whether there may be any
  void Prefetch(std::string_view node) const;  // as FabricView's
  // The indexes among these that are not healthy, or not there.
  std::uint32_t Unhealthy(const std::string& node, std::uint32_t gpus) const;
};

// What gangs send over shared links, kept while neither their placement nor the fabric changes: to price a gang costs
// as much as to place it. Thread rule: one owner.
class KnownLoads {
 public:
  void BeginRound() { ++round_; }
  // `state` is that of the fabric, without anybody's load.
  const std::vector<placement::LeafLoad>& Of(const placement::ClusterState& state,
                                             const Shared<crds::Gang>& gang);
  void ForgetOthers();  // what was not asked for since BeginRound

 private:
  struct Known {
    Shared<topology::Fabric> fabric;  // held, so that its address stays its own
    Shared<crds::Gang> gang;
    std::vector<placement::LeafLoad> load;
    std::uint64_t round = 0;
  };
  std::uint64_t round_ = 0;
  std::map<std::pair<const topology::Fabric*, GangKey>, Known> known_;
};

// `loads`: what is known from the last snapshot; null = nothing.
Snapshot TakeSnapshot(const SnapshotInputs& inputs, KnownLoads* loads = nullptr);

// A gang that holds its slots: it has a plan and has not ended.
bool HoldsSlots(const crds::Gang& gang);

}  // namespace heddle::extender
