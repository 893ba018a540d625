#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <vector>

#include "extender/child_jobs.h"
#include "extender/fabric_reader.h"
#include "extender/fresh_view.h"
#include "extender/gang_members.h"
#include "extender/parsed.h"
#include "extender/slimming.h"
#include "extender/snapshot.h"
#include "extender/yielding.h"
#include "kube/reflector.h"

namespace heddle::extender {

struct CacheCallbacks {
  // On a reflector's thread; must not block.
  std::function<void(const GangKey& key)> gang_changed;
  std::function<void(const kube::ObjectPtr& pod)> passed_the_gate;  // a pod of a gang that nothing held back
  std::function<void()> capacity_changed;                           // GPUs may have become free, or nodes fit
  // A pod with a plan has no GPUs of its node any more, and has not succeeded. As it was, before capacity_changed.
  std::function<void(const PodFacts& pod)> slot_left;
  Mode mode = Mode::kPlace;
  bool preemption = false;  // also watch what makes the owners of gangs
  kube::Log log;
};

// Everything the extender watches, as one picture of the cluster: Pods, Nodes, what makes gangs of pods where it
// is served, NodeTopologies, Fabrics and Gangs. Newer than its reflectors where we wrote or read something
// ourselves. Thread rule: Run on one thread, the rest from any.
class ClusterCache {
 public:
  ClusterCache(kube::Client& client, base::Clock& clock, base::Random random, CacheCallbacks callbacks);

  void Run(const std::stop_token& stop);  // blocks
  bool synced() const;
  std::vector<std::string> Troubles() const;  // what cannot be watched, as sentences

  // When each watched resource was last heard of, by its plural; only those that have been heard of.
  std::map<std::string, base::MonotonicTime> HeardAt() const;

  // Consistent reads of what decides over slots and is kept by nobody else; for the moment that leadership begins, and
  // the Gangs alone before a first release. Not of Nodes, of which a plan may know as little as the watch does:
  // kube-scheduler keeps its pods off a node that was just cordoned or tainted, and they get other slots once the watch
  // has told. That is so whoever leads, and would not be worth the names and versions of 10,000 Nodes at each start.
  [[nodiscard]] base::Status ReadAll(const std::stop_token& stop);
  [[nodiscard]] base::Status ReadGangs(const std::stop_token& stop);
  // Reads again what the reflectors have not settled in half a minute.
  void SettleOverdue(const std::stop_token& stop);

  ReadPods PodsOf(const GangKey& key);
  std::shared_ptr<const crds::Gang> GangOf(const GangKey& key);
  // The Job, JobSet …; null when a read of the server says that there is none, and for kinds that make no gangs.
  // Without a UID, whichever has the name.
  [[nodiscard]] base::Result<kube::ObjectPtr> OwnerOf(const GangKey& key, const crds::GangOwner& owner,
                                                      const std::stop_token& stop);
  // That owner and what owns it, outward; empty when it does not exist.
  [[nodiscard]] base::Result<OwnerChain> ChainOf(const GangKey& key, const crds::GangOwner& owner,
                                                 const std::stop_token& stop);
  // The Jobs that the gang's JobSet made, as far as they say of a pod that it has succeeded; by the cache alone.
  std::vector<kube::ObjectPtr> JobsDoneOf(const GangKey& key) const { return child_jobs_.DoneOf(key); }
  std::vector<kube::ObjectPtr> SuspendedByUs() const;  // as last seen
  // Whether a pod of any gang of this owner, by GangKey::owner_uid, is live or still holds its node's GPUs.
  bool HasPods(const std::string& ns, const std::string& owner_uid) const;
  bool KnowsGangPod(const std::string& uid) const;
  std::set<GangKey> AllGangs();                  // those with pods and those with an object
  base::SharedList<Shared<crds::Gang>> Gangs();  // those with an object
  // `without`: a gang whose own reservation is to be left out.
  SnapshotInputs Inputs(const std::optional<GangKey>& without);
  void SetStaleNodes(std::set<std::string> nodes);

  FreshView& pods() { return pod_view_; }
  void SawPod(kube::Json pod);  // as the server has just answered with it
  FreshView& gangs() { return gang_view_; }

 private:
  using Change = kube::ChangeType;
  void PodChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old, const kube::ObjectPtr& current);
  void CapacityMayChange(const kube::ObjectPtr& old, const kube::ObjectPtr& current);
  void OwnerChanged(const kube::ObjectPtr& old, const kube::ObjectPtr& current);
  void GangChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old, const kube::ObjectPtr& current);
  void TopologyChanged(FreshView& view, const kube::ObjectKey& key, const kube::ObjectPtr& old,
                       const kube::ObjectPtr& current);  // a NodeTopology or a Fabric
  // One of the three kinds that are read object by object.
  void Changed(const kube::Resource& resource, const kube::ObjectKey& key, const kube::ObjectPtr& old,
               const kube::ObjectPtr& current);
  void Index(const std::optional<GangKey>& gang, const kube::Json& pod, bool there);  // nothing of no gang
  void WatchOwners(std::size_t kind, const std::stop_token& stop);
  void AddOwners(const kube::Resource& resource, bool everywhere, base::Random random);
  // Of that kind and name; null when a read of the server says that there is none of that UID.
  base::Result<kube::ObjectPtr> Owner(std::size_t kind, const kube::ObjectKey& key, const std::string& uid,
                                      const std::stop_token& stop);
  std::optional<std::size_t> KindOf(std::string_view api_version, std::string_view kind) const;
  std::vector<const kube::Reflector*> Needed() const;  // without which nothing can be decided
  std::set<int> RanksDone(const crds::Gang& gang) const;
  base::Status ReadInto(const kube::Resource& resource, FreshView& view, const std::stop_token& stop);
  base::Status ReadFabrics(const std::stop_token& stop);
  struct Machine {
    std::string content;  // see TopologyFacts
    topology::Node node;
  };
  Shared<TopologyFacts> ReadFacts(const kube::Json& object);
  std::map<std::string, Machine> TakeMachines();
  // `topologies` is what could be read of `objects`; both in the order of their names.
  Shared<FabricSet> Fabrics(const kube::SortedObjects& objects,
                            const base::SharedList<Shared<TopologyFacts>>& topologies);
  Slimming SlimmingOf(const kube::Resource& resource) const;

  kube::Client& client_;
  base::Clock& clock_;
  const CacheCallbacks callbacks_;
  const Slimming slim_pods_;
  kube::Reflector pods_, nodes_, topologies_, fabrics_, gangs_;
  struct Owners {
    kube::Resource resource;
    bool everywhere = false;
    std::unique_ptr<kube::Reflector> reflector;
  };
  std::vector<Owners> owners_;
  ChildJobs child_jobs_;
  FreshView pod_view_{pods_.store()}, gang_view_{gangs_.store()}, topology_view_{topologies_.store()},
      fabric_view_{fabrics_.store()};
  Parsed<PodFacts> parsed_pods_;
  Parsed<NodeFacts> parsed_nodes_;
  Parsed<TopologyFacts> parsed_topologies_;
  FabricReader fabric_reader_;  // under the lock of what follows
  Parsed<crds::Fabric> parsed_fabrics_;
  Parsed<crds::Gang> parsed_gangs_;
  mutable std::mutex mutex_;
  // By UID: a name may be another pod's already when the end of its last one is told.
  std::map<GangKey, std::map<std::string, kube::ObjectKey>> pods_of_;
  std::unordered_set<std::string> gang_pods_;  // their UIDs
  std::set<std::string> stale_nodes_;
  std::mutex machines_mutex_;
  std::map<std::string, Machine> machines_;
  std::mutex fabric_mutex_;
  base::SharedList<Shared<TopologyFacts>> built_from_;
  base::SharedList<Shared<crds::Fabric>> declared_;
  Shared<FabricSet> built_;
};

}  // namespace heddle::extender
