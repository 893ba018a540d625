#include "extender/cluster_cache.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <thread>

#include "crds/keys.h"
#include "extender/owner_kinds.h"
#include "extender/owner_layout.h"
#include "extender/resources.h"
#include "kube/consistent_read.h"
#include "kube/packed.h"

namespace heddle::extender {
namespace {

// The machine as planning sees it, and its hash: under its Node's name, each cable counted as its two ends say.
base::Result<crds::NodeTopology> ReadTopology(const kube::Json& object) {
  ASSIGN_OR_RETURN(crds::NodeTopology topology, crds::NodeTopologyFromJson(kube::Unpacked(object)));
  crds::CountCables(topology);
  topology.status.node.name = topology.name;
  return topology;
}

// Programs write the status of a Gang, but people can. Where it cannot be read, the plan in it counts if that can,
// or else is one without a slot, to be made anew: were there no Gang, it would be made again and again. The epoch
// stays, because no plan may replace one with a higher.
Shared<crds::Gang> ReadGang(const kube::Json& object) {
  const auto read = [](const kube::Json& one) {
    auto gang = crds::GangFromJson(one);
    return gang ? std::make_shared<crds::Gang>(*std::move(gang)) : nullptr;
  };
  if (auto whole = read(object)) return whole;
  const kube::Json* plan = kube::Find(object, {"status", "placement"});
  kube::Json some = object;
  if (plan != nullptr) {
    some["status"] = {{"placement", *plan}};
    if (auto planned = read(some)) return planned;
    some["status"] = object["status"];
    some["status"].erase("placement");
  }
  auto gang = read(some);
  if (gang == nullptr) {
    some.erase("status");
    gang = read(some);
  }
  if (gang == nullptr || plan == nullptr) return gang;
  gang->status.placement.emplace().epoch =
      std::max<std::int64_t>(0, kube::IntAt(*plan, {"epoch"}).value_or(0));
  return gang;
}

// Null where it is in none of them.
const topology::Node* FindMachine(const FabricSet& set, std::string_view name) {
  for (std::size_t i = 0; i < set.fabrics.size(); ++i) {
    const topology::NodeId id = set.indexes[i]->Find(name);
    if (id != topology::kNone) return &set.fabrics[i]->nodes[std::size_t(id)].node;
  }
  return nullptr;
}

// A pod that holds GPUs of a node now.
bool Holds(const kube::ObjectPtr& pod) {
  if (pod == nullptr || kube::StringAt(*pod, {"spec", "nodeName"}).empty()) return false;
  const std::string phase = kube::StringAt(*pod, {"status", "phase"});
  return phase != "Succeeded" && phase != "Failed";
}

// What it did is not done: another pod comes in its place if its gang stands.
bool LeavesItsSlot(const kube::ObjectPtr& old, const kube::ObjectPtr& current) {
  if (!Holds(old) || !kube::Annotation(*old, crds::keys::kNode)) return false;  // these are read packed
  if (current == nullptr || kube::Uid(*current) != kube::Uid(*old)) return true;
  return kube::StringAt(*current, {"status", "phase"}) == "Failed";
}

kube::ReflectorOptions Watch(Slimming slimming, const CacheCallbacks& callbacks,
                             const std::function<void(const kube::ObjectKey&, const kube::ObjectPtr&,
                                                      const kube::ObjectPtr&)>& on_change) {
  return {.transform = std::move(slimming.transform),
          .pruning = std::move(slimming.pruning),
          .on_change = [on_change](kube::ChangeType, const kube::ObjectKey& key, const kube::ObjectPtr& old,
                                   const kube::ObjectPtr& current) { on_change(key, old, current); },
          .log = callbacks.log};
}

// Of what there are thousands.
kube::ReflectorOptions InPages(kube::ReflectorOptions options) {
  options.in_pages = true;
  return options;
}

}  // namespace

ClusterCache::ClusterCache(kube::Client& client, base::Clock& clock, base::Random random,
                           CacheCallbacks callbacks)
    : client_(client),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      slim_pods_(SlimPods(callbacks_.mode)),
      pods_(client, clock, random.Fork(), kube::kPods,
            InPages(Watch(slim_pods_, callbacks_,
                          [this](const auto& k, const auto& o, const auto& c) { PodChanged(k, o, c); }))),
      nodes_(client, clock, random.Fork(), kube::kNodes,
             InPages(Watch(SlimNodes(), callbacks_,
                           [this](const auto&, const auto& o, const auto& c) { CapacityMayChange(o, c); }))),
      topologies_(client, clock, random.Fork(), kNodeTopologies,
                  InPages(Watch(SlimTopologies(), callbacks_,
                                [this](const auto& k, const auto& o, const auto& c) {
                                  TopologyChanged(topology_view_, k, o, c);
                                }))),
      fabrics_(client, clock, random.Fork(), kFabrics,
               Watch(SlimFabrics(), callbacks_,
                     [this](const auto& k, const auto& o, const auto& c) {
                       TopologyChanged(fabric_view_, k, o, c);
                     })),
      gangs_(client, clock, random.Fork(), kGangs,
             Watch(SlimGangs(), callbacks_,
                   [this](const auto& k, const auto& o, const auto& c) { GangChanged(k, o, c); })),
      parsed_pods_(PodReader()),
      parsed_nodes_([](const kube::Json& node) { return std::make_shared<const NodeFacts>(ReadNode(node)); }),
      parsed_topologies_([this](const kube::Json& object) { return ReadFacts(object); }),
      fabric_reader_(callbacks_.log),
      parsed_fabrics_([this](const kube::Json& object) { return fabric_reader_.Read(object); }),
      parsed_gangs_(ReadGang) {
  for (const OwnerKind& kind : OwnerKinds()) AddOwners(kind.resource, kind.everywhere, random.Fork());
  if (!callbacks_.preemption) return;
  for (const SuspendSwitch& one : SuspendSwitches()) {
    if (one.makes_owners) AddOwners(one.resource, false, random.Fork());
  }
}

Slimming ClusterCache::SlimmingOf(const kube::Resource& resource) const {
  if (&resource == &kube::kPods) return slim_pods_;
  return &resource == &kNodeTopologies ? SlimTopologies() : SlimGangs();
}

void ClusterCache::AddOwners(const kube::Resource& resource, bool everywhere, base::Random random) {
  owners_.push_back({resource, everywhere,
                     std::make_unique<kube::Reflector>(
                         client_, clock_, random, resource,
                         Watch(SlimOwners(), callbacks_,
                               [this](const auto&, const auto& o, const auto& c) { OwnerChanged(o, c); }))});
}

void ClusterCache::Run(const std::stop_token& stop) {
  std::vector<std::jthread> threads;
  for (kube::Reflector* reflector : {&pods_, &nodes_, &topologies_, &fabrics_, &gangs_}) {
    threads.emplace_back([reflector, stop] { reflector->Run(stop); });
  }
  for (std::size_t kind = 0; kind < owners_.size(); ++kind) {
    threads.emplace_back([this, kind, stop] { WatchOwners(kind, stop); });
  }
}

// A reflector on a kind that is not served would complain for ever.
void ClusterCache::WatchOwners(std::size_t kind, const std::stop_token& stop) {
  const Owners& owner = owners_[kind];
  while (!stop.stop_requested()) {
    if (owner.everywhere || client_.List(owner.resource, {.resource_version = "0", .limit = 1}, stop))
      return owner.reflector->Run(stop);
    clock_.SleepFor(std::chrono::seconds(30), stop);
  }
}

bool ClusterCache::synced() const {
  const auto needed = Needed();
  return std::all_of(needed.begin(), needed.end(),
                     [](const kube::Reflector* one) { return one->store().synced(); });
}

std::vector<std::string> ClusterCache::Troubles() const {
  std::vector<std::string> sentences;
  for (const kube::Reflector* reflector : Needed()) {
    if (reflector->healthy()) continue;
    if (const auto error = reflector->last_error()) sentences.push_back(base::ToString(*error));
  }
  return sentences;
}

std::vector<const kube::Reflector*> ClusterCache::Needed() const {
  std::vector<const kube::Reflector*> needed{&pods_, &nodes_, &topologies_, &fabrics_, &gangs_};
  for (const Owners& one : owners_) {
    if (one.everywhere) needed.push_back(one.reflector.get());
  }
  return needed;
}

std::map<std::string, base::MonotonicTime> ClusterCache::HeardAt() const {
  std::map<std::string, base::MonotonicTime> heard;
  const auto add = [&heard](const kube::Reflector& one, const kube::Resource& resource) {
    if (const auto at = one.heard_at()) heard.emplace(resource.plural, *at);
  };
  add(pods_, kube::kPods);
  add(nodes_, kube::kNodes);
  add(topologies_, kNodeTopologies);
  add(fabrics_, kFabrics);
  add(gangs_, kGangs);
  for (const Owners& one : owners_) add(*one.reflector, one.resource);
  return heard;
}

base::Status ClusterCache::ReadInto(const kube::Resource& resource, FreshView& view,
                                    const std::stop_token& stop) {
  kube::ListOptions all;
  Slimming slimming = SlimmingOf(resource);
  all.transform = std::move(slimming.transform);
  all.pruning = std::move(slimming.pruning);
  // Most objects are as the watch told them a moment ago, or as we wrote them since.
  const auto known = [&view](const kube::Json& head) {
    const kube::ObjectPtr there = view.Get(kube::KeyOf(head));
    return there != nullptr && kube::Uid(*there) == kube::Uid(head) &&
           AtLeastAsNew(kube::ResourceVersion(*there), kube::ResourceVersion(head));
  };
  ASSIGN_OR_RETURN(const kube::ObjectChanges read, kube::ReadChanges(client_, resource, all, known, stop),
                   "read consistently");
  if (&resource == &kube::kPods) {
    for (const kube::Json& pod : read.objects) Index(KindOfPod(pod, callbacks_.mode).gang, pod, true);
  }
  for (const kube::ObjectPtr& gone : view.SawAll(read, clock_.Now())) {
    Changed(resource, kube::KeyOf(*gone), gone, nullptr);
  }
  return {};
}

// There are few, so they come whole. Nobody beside us keeps a gang off a node that people excluded, and it would stay
// there.
base::Status ClusterCache::ReadFabrics(const std::stop_token& stop) {
  Slimming slimming = SlimFabrics();
  kube::ListOptions options;
  options.transform = std::move(slimming.transform);
  options.pruning = std::move(slimming.pruning);
  ASSIGN_OR_RETURN(kube::ObjectList all, client_.ListAll(kFabrics, std::move(options), stop),
                   "read consistently");
  const kube::ObjectChanges read{std::move(all.items), {}, std::move(all.resource_version)};
  for (const kube::ObjectPtr& gone : fabric_view_.SawAll(read, clock_.Now())) {
    TopologyChanged(fabric_view_, kube::KeyOf(*gone), gone, nullptr);
  }
  return {};
}

base::Status ClusterCache::ReadAll(const std::stop_token& stop) {
  TRY(ReadFabrics(stop));
  TRY(ReadInto(kNodeTopologies, topology_view_, stop));
  TRY(ReadInto(kube::kPods, pod_view_, stop));
  return ReadInto(kGangs, gang_view_, stop);
}

base::Status ClusterCache::ReadGangs(const std::stop_token& stop) {
  return ReadInto(kGangs, gang_view_, stop);
}

void ClusterCache::Changed(const kube::Resource& resource, const kube::ObjectKey& key,
                           const kube::ObjectPtr& old, const kube::ObjectPtr& current) {
  if (&resource == &kube::kPods) return PodChanged(key, old, current);
  if (&resource == &kNodeTopologies) return TopologyChanged(topology_view_, key, old, current);
  GangChanged(key, old, current);
}

void ClusterCache::SettleOverdue(const std::stop_token& stop) {
  const auto settle = [&](const kube::Resource& resource, FreshView& view) {
    for (const kube::ObjectKey& key : view.Overdue(clock_.Now())) {
      // From before the read: what the cache has got since may be newer than its answer.
      const kube::ObjectPtr cached = view.store().Get(key);
      const kube::ObjectPtr before = view.Get(key);
      auto object = client_.Get(resource, key, stop);
      if (!object && object.error().code != base::Code::kNotFound) return;
      view.Forget(key);
      kube::ObjectPtr after;
      if (object) {
        view.Saw(SlimmingOf(resource).transform(*std::move(object)), clock_.Now());
        after = view.Get(key);
      }
      // The reflector knows less than this read, and may never tell those who wait for it.
      Changed(resource, key, before, after);
      const kube::ObjectPtr still = view.store().Get(key);
      if (after == nullptr && cached != nullptr && still != nullptr &&
          kube::Uid(*still) == kube::Uid(*cached))
        view.Gone(key, kube::Uid(*cached), clock_.Now());
    }
  };
  settle(kube::kPods, pod_view_);
  settle(kGangs, gang_view_);
  settle(kNodeTopologies, topology_view_);
  if (!fabric_view_.Overdue(clock_.Now()).empty()) (void)ReadFabrics(stop);  // or in the next round
}

void ClusterCache::SawPod(kube::Json pod) {
  pod_view_.Saw(slim_pods_.transform(std::move(pod)), clock_.Now());
}

void ClusterCache::Index(const std::optional<GangKey>& gang, const kube::Json& pod, bool there) {
  if (!gang) return;
  const std::lock_guard lock(mutex_);
  if (there) {
    pods_of_[*gang].insert_or_assign(kube::Uid(pod), kube::KeyOf(pod));
    gang_pods_.insert(kube::Uid(pod));
    return;
  }
  gang_pods_.erase(kube::Uid(pod));
  if (const auto found = pods_of_.find(*gang); found != pods_of_.end()) {
    found->second.erase(kube::Uid(pod));
    if (found->second.empty()) pods_of_.erase(found);
  }
}

void ClusterCache::PodChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old,
                              const kube::ObjectPtr& current) {
  const auto kind = [this](const kube::ObjectPtr& pod) {
    return pod == nullptr ? PodKind() : KindOfPod(*pod, callbacks_.mode);
  };
  const PodKind before = kind(old), now = kind(current);
  const bool another = old != nullptr && (current == nullptr || kube::Uid(*old) != kube::Uid(*current));
  if (another) pod_view_.CacheLost(key, kube::Uid(*old));
  // People can take away or change what makes a pod one of a gang.
  if (old != nullptr && (another || before.gang != now.gang)) Index(before.gang, *old, false);
  if (current != nullptr) Index(now.gang, *current, true);
  for (const PodKind* one : {&before, &now}) {
    if (one->gang) callbacks_.gang_changed(*one->gang);
  }
  if (old == nullptr && now.passed_the_gate && callbacks_.passed_the_gate) {
    callbacks_.passed_the_gate(std::make_shared<const kube::Json>(kube::Unpacked(*current)));
  }
  const bool leaves = LeavesItsSlot(old, current);
  if (leaves && callbacks_.slot_left) {
    const PodFacts left = ReadPod(*old);
    if (left.plan) callbacks_.slot_left(left);
  }
  if (leaves || Holds(old) != Holds(current)) callbacks_.capacity_changed();
}

// Of what nobody plans by, as a Fabric's status or congestion that begins on all nodes of a job, nothing is left here.
void ClusterCache::CapacityMayChange(const kube::ObjectPtr& old, const kube::ObjectPtr& current) {
  if (old != nullptr && current != nullptr && kube::SameButVersion(*old, *current)) return;
  callbacks_.capacity_changed();
}

void ClusterCache::OwnerChanged(const kube::ObjectPtr& old, const kube::ObjectPtr& current) {
  for (const kube::ObjectPtr& owner : {old, current}) {
    if (owner == nullptr) continue;
    for (const GangKey& gang : GangsOfOwner(*owner)) callbacks_.gang_changed(gang);
  }
  const std::vector<GangKey> gangs = child_jobs_.Changed(old, current);
  for (const GangKey& gang : gangs) callbacks_.gang_changed(gang);
  const auto completed = [](const kube::ObjectPtr& owner) {
    return owner == nullptr ? "" : kube::StringAt(*owner, {"status", "completedIndexes"});
  };
  if (!gangs.empty() || completed(old) != completed(current)) callbacks_.capacity_changed();
}

void ClusterCache::GangChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old,
                               const kube::ObjectPtr& current) {
  if (old != nullptr && (current == nullptr || kube::Uid(*old) != kube::Uid(*current))) {
    gang_view_.CacheLost(key, kube::Uid(*old));
  }
  for (const kube::ObjectPtr& object : {old, current}) {
    if (object == nullptr) continue;
    callbacks_.gang_changed(KeyOfGangObject(*object));
  }
  const auto places = [](const kube::ObjectPtr& gang) {
    const kube::Json* placement = gang == nullptr ? nullptr : kube::Find(*gang, {"status", "placement"});
    return placement == nullptr ? kube::Json() : *placement;
  };
  const auto ended = [](const kube::ObjectPtr& gang) {
    return gang != nullptr && kube::Condition(*gang, crds::kEnded) != nullptr;
  };
  if (places(old) != places(current) || ended(old) != ended(current)) callbacks_.capacity_changed();
}

void ClusterCache::TopologyChanged(FreshView& view, const kube::ObjectKey& key, const kube::ObjectPtr& old,
                                   const kube::ObjectPtr& current) {
  if (old != nullptr && (current == nullptr || kube::Uid(*old) != kube::Uid(*current))) {
    view.CacheLost(key, kube::Uid(*old));
  }
  CapacityMayChange(old, current);
}

ReadPods ClusterCache::PodsOf(const GangKey& key) {
  std::set<kube::ObjectKey> names;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = pods_of_.find(key); found != pods_of_.end()) {
      for (const auto& [_, name] : found->second) names.insert(name);
    }
  }
  std::vector<kube::ObjectPtr> named;
  for (const kube::ObjectKey& name : names) {
    if (kube::ObjectPtr pod = pod_view_.Get(name)) named.push_back(std::move(pod));
  }
  const std::vector<Shared<PodFacts>> facts = parsed_pods_.Some(named);
  ReadPods pods;
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (facts[i]->gang != key) continue;
    pods.objects.push_back(std::move(named[i]));
    pods.facts.push_back(facts[i]);
  }
  return pods;
}

std::shared_ptr<const crds::Gang> ClusterCache::GangOf(const GangKey& key) {
  for (const auto& gang : Gangs()) {
    if (KeyOfGang(*gang) == key) return gang;
  }
  return nullptr;
}

base::Result<kube::ObjectPtr> ClusterCache::OwnerOf(const GangKey& key, const crds::GangOwner& owner,
                                                    const std::stop_token& stop) {
  if (OwnerKindOf(owner.api_version, owner.kind) == nullptr) return nullptr;
  const auto kind = KindOf(owner.api_version, owner.kind);
  return kind ? Owner(*kind, {key.ns, owner.name}, owner.uid, stop) : nullptr;
}

std::optional<std::size_t> ClusterCache::KindOf(std::string_view api_version, std::string_view kind) const {
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (owners_[i].resource.kind == kind && owners_[i].resource.ApiVersion() == api_version) return i;
  }
  return std::nullopt;
}

base::Result<kube::ObjectPtr> ClusterCache::Owner(std::size_t kind, const kube::ObjectKey& key,
                                                  const std::string& uid, const std::stop_token& stop) {
  const auto is_it = [&uid](const kube::Json& object) { return uid.empty() || kube::Uid(object) == uid; };
  const kube::ObjectPtr cached = owners_[kind].reflector->store().Get(key);
  if (cached != nullptr && is_it(*cached)) return cached;
  // The cache may not have seen it yet, or no longer: an end is too final to be guessed.
  auto object = client_.Get(owners_[kind].resource, key, stop);
  if (object) {
    if (!is_it(*object)) return nullptr;
    return std::make_shared<const kube::Json>(*std::move(object));
  }
  if (object.error().code == base::Code::kNotFound) return nullptr;
  return base::Fail(std::move(object).error());
}

base::Result<OwnerChain> ClusterCache::ChainOf(const GangKey& key, const crds::GangOwner& owner,
                                               const std::stop_token& stop) {
  constexpr std::size_t kLongest = 5;  // TrainJob, JobSet, Job: real ones have three
  OwnerChain chain;
  ASSIGN_OR_RETURN(kube::ObjectPtr object, OwnerOf(key, owner, stop));
  while (object != nullptr && chain.owners.size() < kLongest) {
    chain.owners.push_back(object);
    const auto outer = kube::ControllerOwner(*object);
    if (!outer) break;
    const auto kind = KindOf(outer->api_version, outer->kind);
    if (!kind) {
      chain.unknown = *outer;
      break;
    }
    ASSIGN_OR_RETURN(object, Owner(*kind, {key.ns, outer->name}, outer->uid, stop));
  }
  return chain;
}

std::vector<kube::ObjectPtr> ClusterCache::SuspendedByUs() const {
  std::vector<kube::ObjectPtr> suspended;
  for (const Owners& one : owners_) {
    if (SuspendSwitchOf(one.resource.ApiVersion(), one.resource.kind) == nullptr) continue;
    for (const kube::ObjectPtr& object : one.reflector->store().List()) {
      if (extender::SuspendedByUs(*object)) suspended.push_back(object);
    }
  }
  return suspended;
}

bool ClusterCache::HasPods(const std::string& ns, const std::string& owner_uid) const {
  std::set<kube::ObjectKey> names;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = pods_of_.lower_bound({ns, owner_uid, 0}); it != pods_of_.end(); ++it) {
      if (it->first.ns != ns || it->first.owner_uid != owner_uid) break;
      for (const auto& [_, name] : it->second) names.insert(name);
    }
  }
  return std::any_of(names.begin(), names.end(), [this](const kube::ObjectKey& name) {
    const kube::ObjectPtr pod = pod_view_.Get(name);
    if (pod == nullptr) return false;
    const PodFacts facts = ReadPod(*pod);
    return facts.live() || facts.occupies();
  });
}

bool ClusterCache::KnowsGangPod(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  return gang_pods_.contains(uid);
}

std::set<GangKey> ClusterCache::AllGangs() {
  std::set<GangKey> keys;
  for (const auto& gang : Gangs()) keys.insert(KeyOfGang(*gang));
  const std::lock_guard lock(mutex_);
  for (const auto& [key, pods] : pods_of_) keys.insert(key);
  return keys;
}

base::SharedList<Shared<crds::Gang>> ClusterCache::Gangs() {
  return parsed_gangs_.All(gang_view_.List());
}

void ClusterCache::SetStaleNodes(std::set<std::string> nodes) {
  {
    const std::lock_guard lock(mutex_);
    if (nodes == stale_nodes_) return;
    stale_nodes_ = std::move(nodes);
  }
  callbacks_.capacity_changed();
}

// A machine is mostly read to go into a fabric at once; it waits here until then, so that it is not read twice.
Shared<TopologyFacts> ClusterCache::ReadFacts(const kube::Json& object) {
  auto topology = ReadTopology(object);
  if (!topology) return nullptr;
  auto facts = std::make_shared<const TopologyFacts>(FactsOf(*topology));
  const std::lock_guard lock(machines_mutex_);
  machines_[facts->name] = {facts->content, std::move(topology->status.node)};
  return facts;
}

std::map<std::string, ClusterCache::Machine> ClusterCache::TakeMachines() {
  const std::lock_guard lock(machines_mutex_);
  return std::exchange(machines_, {});
}

// Building a fabric of 5,000 nodes takes far longer than seeing that nothing in it has changed. Machines that stay are
// taken from the fabrics before, so that no second copy of them has to be kept.
Shared<FabricSet> ClusterCache::Fabrics(const kube::SortedObjects& objects,
                                        const base::SharedList<Shared<TopologyFacts>>& topologies) {
  auto declared = parsed_fabrics_.All(fabric_view_.List());
  const std::lock_guard lock(fabric_mutex_);
  std::map<std::string, Machine> read = TakeMachines();
  const auto same = [](const Shared<TopologyFacts>& a, const Shared<TopologyFacts>& b) {
    return a == b || (a->name == b->name && a->content == b->content);
  };
  // What nobody plans by, as a status, changes an object and not what it declares.
  const auto declares_same = [](const Shared<crds::Fabric>& a, const Shared<crds::Fabric>& b) {
    return a == b || (a->name == b->name && a->spec == b->spec);
  };
  if (built_ != nullptr &&
      std::equal(declared.begin(), declared.end(), declared_.begin(), declared_.end(), declares_same) &&
      std::equal(topologies.begin(), topologies.end(), built_from_.begin(), built_from_.end(), same)) {
    return built_;
  }
  std::vector<topology::Node> published;
  published.reserve(topologies.size());
  std::vector<std::string> silent;
  auto object = objects.begin();
  auto before = built_from_.begin();
  for (const auto& facts : topologies) {
    while (kube::Name(**object) != facts->name) ++object;
    if (facts->content.empty()) {
      silent.push_back(facts->name);
      continue;
    }
    while (before != built_from_.end() && (*before)->name < facts->name) ++before;
    const topology::Node* stays =
        before != built_from_.end() && same(*before, facts) ? FindMachine(*built_, facts->name) : nullptr;
    const auto machine = read.find(facts->name);
    if (stays != nullptr) {
      published.push_back(*stays);
    } else if (machine != read.end() && machine->second.content == facts->content) {
      published.push_back(std::move(machine->second.node));
    } else if (auto topology = ReadTopology(**object)) {
      published.push_back(std::move(topology->status.node));
    }
  }
  built_ = std::make_shared<const FabricSet>(AssembleFabrics(std::move(published), silent, declared.items()));
  built_from_ = topologies;
  declared_ = std::move(declared);
  return built_;
}

// By the cache alone: an owner that it has not seen yet, or not as late as the pods, leaves a slot reserved.
std::set<int> ClusterCache::RanksDone(const crds::Gang& gang) const {
  const crds::GangOwner& owner = gang.spec.owner;
  const auto kind = HoldsSlots(gang) ? KindOf(owner.api_version, owner.kind) : std::nullopt;
  if (!kind) return {};
  const auto object = owners_[*kind].reflector->store().Get({gang.ns, owner.name});
  if (object == nullptr || kube::Uid(*object) != owner.uid) return {};
  return ReadRanksDone(*object, gang.spec.pods, JobsDoneOf(KeyOfGang(gang)));
}

SnapshotInputs ClusterCache::Inputs(const std::optional<GangKey>& without) {
  SnapshotInputs inputs;
  const kube::SortedObjects topologies = topology_view_.List();
  inputs.topologies = parsed_topologies_.All(topologies);
  inputs.fabrics = Fabrics(topologies, inputs.topologies);
  inputs.nodes = parsed_nodes_.All(nodes_.store().List());
  inputs.pods = parsed_pods_.All(pod_view_.List());
  inputs.gangs = Gangs();
  if (without) inputs.gangs = inputs.gangs.Without([&](const auto& g) { return KeyOfGang(*g) == *without; });
  for (const auto& gang : inputs.gangs) {
    if (std::set<int> done = RanksDone(*gang); !done.empty()) inputs.done[KeyOfGang(*gang)] = std::move(done);
  }
  const std::lock_guard lock(mutex_);
  inputs.stale_nodes = stale_nodes_;
  return inputs;
}

}  // namespace heddle::extender
