#include "operator/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <condition_variable>
#include <thread>
#include <vector>

#include "base/process.h"
#include "crds/keys.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/heartbeats.h"
#include "kube/lease.h"
#include "kube/reflector.h"
#include "kube/work_queue.h"
#include "operator/advice.h"
#include "operator/device_reconciler.h"
#include "operator/fabric_reconciler.h"
#include "operator/lossless_reconciler.h"
#include "operator/metrics.h"
#include "operator/node_label_reconciler.h"
#include "operator/pace.h"
#include "operator/page/feed.h"
#include "operator/page/page.h"
#include "operator/resources.h"
#include "operator/switch_endpoint.h"
#include "operator/switch_reconciler.h"
#include "operator/switch_watch.h"
#include "operator/ufm_watch.h"

namespace heddle::operators {
namespace {

constexpr std::string_view kFabricKey = "fabric";
constexpr std::string_view kLosslessKey = "lossless";
constexpr std::string_view kDevicesKey = "devices";
constexpr std::string_view kSwitchesKey = "switches";
constexpr std::string_view kTopologyPrefix = "topology/";
constexpr std::string_view kLabelsPrefix = "labels/";

std::string TopologyKey(const std::string& node) {
  return std::string(kTopologyPrefix) + node;
}
std::string LabelsKey(const std::string& node) {
  return std::string(kLabelsPrefix) + node;
}

kube::ClientOptions ClientOf(std::string_view manager) {
  return {.user_agent = "heddle-operator", .field_manager = std::string(manager)};
}

// Node status changes with every kubelet heartbeat; only this much of a Node is ever read here.
kube::Json KeepWhatIsRead(const kube::Json& node) {
  kube::Json kept = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", kube::Json::object()}};
  for (const char* field : {"name", "uid", "resourceVersion", "deletionTimestamp", "labels"}) {
    if (const kube::Json* value = kube::Find(node, {"metadata", field})) kept["metadata"][field] = *value;
  }
  if (const kube::Json* allocatable = kube::Find(node, {"status", "allocatable"})) {
    kept["status"]["allocatable"] = *allocatable;
  }
  if (const kube::Json* ready = kube::Condition(node, "Ready")) {
    kept["status"]["conditions"] =
        kube::Json::array({{{"type", "Ready"}, {"status", kube::StringAt(*ready, {"status"})}}});
  }
  return kept;
}

// Whether both have the same there, or nothing.
bool SameAt(kube::Path path, const kube::Json& a, const kube::Json& b) {
  const kube::Json* one = kube::Find(a, path);
  const kube::Json* other = kube::Find(b, path);
  return one == nullptr || other == nullptr ? one == other : *one == *other;
}

bool SameButVersion(const kube::Json& a, const kube::Json& b) {
  return SameAt({"spec"}, a, b) && kube::Uid(a) == kube::Uid(b) && kube::Labels(a) == kube::Labels(b) &&
         kube::ArrayAt(a, {"metadata", "ownerReferences"}) ==
             kube::ArrayAt(b, {"metadata", "ownerReferences"});
}

void LogLine(std::string_view line) {
  spdlog::info("{}", line);
}

}  // namespace

class Daemon::Impl {
 public:
  Impl(kube::HttpTransport& transport, gnmi::Dialer& dialer, base::Clock& clock, base::Random random,
       Metrics& metrics, DaemonOptions options);
  void Run(const std::stop_token& stop);
  bool ready() const;
  kube::ServedAnswer AnswerPage(const kube::ServedRequest& request) { return page_.Answer(request); }

 private:
  page::Feed::Reads PageReads();
  void NodeChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old, const kube::ObjectPtr& current);
  void TopologyChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old,
                       const kube::ObjectPtr& current);
  void Settle() { queue_.AddAfter(std::string(kFabricKey), options_.settle); }
  void SettleLossless() { queue_.AddAfter(std::string(kLosslessKey), options_.settle); }
  void SettleDevices() { queue_.AddAfter(std::string(kDevicesKey), options_.settle); }
  void SettleSwitches() { queue_.AddAfter(std::string(kSwitchesKey), options_.settle); }
  void SettlePolicies() {
    SettleLossless();
    SettleDevices();
    SettleSwitches();
  }
  base::Result<Outcome> ReconcileSwitches(const std::stop_token& stop);

  void LeadOnce(const std::stop_token& stop);
  void Work(const std::stop_token& stop);      // everything that only the leader does
  void WorkKeys(const std::stop_token& stop);  // one worker
  void DoKey(const std::string& key, const std::stop_token& stop);
  Pace* PaceOf(const std::string& key);  // null: a key of one node
  base::Result<Outcome> ReconcileFabrics(const std::stop_token& stop);
  void LookAtLeases(const std::stop_token& stop);
  void ReadLeases(const Assembly& assembly, const std::stop_token& stop);
  void Complain(const std::stop_token& stop);  // says what is wrong with the API server, and what to do

  base::Clock& clock_;
  base::Random random_;
  Metrics& metrics_;
  const DaemonOptions options_;
  kube::Client client_;
  kube::Client labels_client_;
  kube::WorkQueue queue_;
  kube::EventRecorder events_;
  kube::Reflector nodes_;
  kube::Reflector topologies_;
  kube::Reflector fabrics_;
  kube::Reflector policies_;
  kube::Reflector device_policies_;
  kube::Reflector fabric_switches_;
  kube::Reflector gangs_;
  StoreView node_view_{nodes_.store()};
  StoreView topology_view_{topologies_.store()};
  StoreView fabric_view_{fabrics_.store()};
  StoreView policy_view_{policies_.store()};
  StoreView device_policy_view_{device_policies_.store()};
  StoreView fabric_switch_view_{fabric_switches_.store()};
  StoreView gang_view_{gangs_.store()};
  // A look may be that much later than the renewal it finds, and the server's cache a little more.
  kube::Heartbeats heartbeats_{{.prefix = std::string(crds::keys::kNodeLeasePrefix),
                                .slack = options_.lease_period + std::chrono::seconds(5)}};
  CurrentAssembly assembly_;
  CurrentVerdicts verdicts_;
  NodeTopologyReconciler topology_reconciler_;
  FabricReconciler fabric_reconciler_;
  NodeLabelReconciler label_reconciler_;
  LosslessReconciler lossless_reconciler_;
  DeviceReconciler device_reconciler_;
  SwitchReconciler switch_reconciler_;
  SwitchWatch switch_watch_;
  UfmWatch ufm_watch_;
  Pace fabric_pace_, lossless_pace_, device_pace_, switch_pace_;
  std::atomic<bool> leading_{false};
  page::Page page_;
  page::Feed feed_;
};

Daemon::Impl::Impl(kube::HttpTransport& transport, gnmi::Dialer& dialer, base::Clock& clock,
                   base::Random random, Metrics& metrics, DaemonOptions options)
    : clock_(clock),
      random_(random),
      metrics_(metrics),
      options_(std::move(options)),
      client_(transport, clock, ClientOf(crds::keys::kOperatorManager)),
      labels_client_(transport, clock, ClientOf(crds::keys::kOperatorLabelsManager)),
      queue_(clock),
      events_(client_, clock, random_.Fork(),
              {.component = "heddle-operator", .instance = options_.identity, .log = LogLine}),
      nodes_(client_, clock, random_.Fork(), kube::kNodes,
             {.transform = KeepWhatIsRead,
              .on_change = [this](kube::ChangeType, const kube::ObjectKey& key, const kube::ObjectPtr& old,
                                  const kube::ObjectPtr& current) { NodeChanged(key, old, current); }}),
      topologies_(
          client_, clock, random_.Fork(), kNodeTopologies,
          {.transform = [](kube::Json one) { return crds::Packed(kube::DropManagedFields(std::move(one))); },
           .on_change = [this](kube::ChangeType, const kube::ObjectKey& key, const kube::ObjectPtr& old,
                               const kube::ObjectPtr& current) { TopologyChanged(key, old, current); }}),
      fabrics_(client_, clock, random_.Fork(), kFabrics,
               {.on_change =
                    [this](kube::ChangeType, const kube::ObjectKey& key, const kube::ObjectPtr&,
                           const kube::ObjectPtr&) {
                      if (options_.ufm_transport) ufm_watch_.Changed(key.name);
                      feed_.Changed();
                      Settle();
                    }}),
      policies_(client_, clock, random_.Fork(), kLosslessPolicies,
                {.on_change =
                     [this](kube::ChangeType, const kube::ObjectKey&, const kube::ObjectPtr&,
                            const kube::ObjectPtr&) {
                       SettleLossless();
                       SettleSwitches();
                     },
                 .on_synced = [this] { SettlePolicies(); }}),
      device_policies_(client_, clock, random_.Fork(), kRdmaDevicePolicies,
                       {.on_change = [this](kube::ChangeType, const kube::ObjectKey&, const kube::ObjectPtr&,
                                            const kube::ObjectPtr&) { SettleDevices(); },
                        .on_synced = [this] { SettleDevices(); }}),
      fabric_switches_(client_, clock, random_.Fork(), kFabricSwitches,
                       {.transform = kube::DropManagedFields,
                        .on_change =
                            [this](kube::ChangeType, const kube::ObjectKey& key, const kube::ObjectPtr&,
                                   const kube::ObjectPtr&) {
                              switch_watch_.Changed(key.name);
                              SettleSwitches();
                            },
                        .on_synced = [this] { SettleSwitches(); }}),
      gangs_(client_, clock, random_.Fork(), kGangs,
             {.transform = kube::DropManagedFields,
              .on_change = [this](kube::ChangeType, const kube::ObjectKey&, const kube::ObjectPtr&,
                                  const kube::ObjectPtr&) { feed_.Changed(); },
              .on_synced = [this] { feed_.Changed(); }}),
      topology_reconciler_(client_, {.nodes = node_view_, .topologies = topology_view_}, options_.selection),
      fabric_reconciler_(client_, clock,
                         {.nodes = node_view_,
                          .topologies = topology_view_,
                          .fabrics = fabric_view_,
                          .heartbeats = heartbeats_,
                          .gangs = &gang_view_,
                          .verdicts = &verdicts_,
                          .sightings = [this] { return switch_watch_.Sightings(); },
                          .unprimed = [this] { return switch_watch_.Unprimed(); },
                          .ufm = [this](const std::string& fabric) { return ufm_watch_.Of(fabric); }},
                         assembly_, events_),
      label_reconciler_(labels_client_, node_view_, assembly_),
      lossless_reconciler_(client_, clock,
                           {.nodes = node_view_,
                            .topologies = topology_view_,
                            .policies = policy_view_,
                            .late = [this] { return heartbeats_.Late(); }},
                           events_),
      device_reconciler_(client_, labels_client_, clock,
                         {.nodes = node_view_, .topologies = topology_view_, .policies = device_policy_view_},
                         {.ns = options_.ns,
                          .images = options_.plugins.images,
                          .kubelet_root = options_.plugins.kubelet_root,
                          .pods = options_.plugins.pods},
                         events_),
      switch_reconciler_(client_, clock,
                         {.nodes = node_view_,
                          .topologies = topology_view_,
                          .policies = policy_view_,
                          .fabric_switches = fabric_switch_view_,
                          .answers = [this] { return switch_watch_.Answers(); },
                          .late = [this] { return heartbeats_.Late(); }},
                         verdicts_, events_, options_.ns),
      switch_watch_(clock, random_.Fork(),
                    {.dialer = dialer,
                     .fabric_switches = fabric_switch_view_,
                     .endpoint =
                         [this](const crds::FabricSwitch& object, const std::stop_token& stop) {
                           return ReadEndpoint(client_, options_.ns, object, stop);
                         },
                     .on_answers = [this] { SettleSwitches(); },
                     .on_sightings = [this] { Settle(); }}),
      ufm_watch_(clock, random_.Fork(),
                 {.fabrics = fabric_view_,
                  .endpoint =
                      [this](const crds::FabricUfm& ufm, const std::stop_token& stop) {
                        return ReadUfmEndpoint(client_, options_.ns, ufm, stop);
                      },
                  .transport = options_.ufm_transport,
                  .on_answers = [this] { Settle(); }}),
      // An identity may be given, and outlives the process whose revisions these are.
      page_(clock, {.topologies = topology_view_, .gangs = gang_view_},
            fmt::format("{}-{:x}", options_.identity, random_.Next())),
      feed_(clock, PageReads(), page_) {}

page::Feed::Reads Daemon::Impl::PageReads() {
  return {.topologies = topology_view_,
          .fabrics = fabric_view_,
          .gangs = gang_view_,
          .assembly = [this] { return leading_ ? assembly_.Get() : nullptr; },
          .late = [this] { return heartbeats_.Late(); },
          .look_at_leases = [this](const Assembly& assembly,
                                   const std::stop_token& stop) { ReadLeases(assembly, stop); },
          .sources = {{"NodeTopology", &topologies_}, {"Fabric", &fabrics_}, {"Gang", &gangs_}},
          .lease_period = options_.lease_period};
}

bool Daemon::Impl::ready() const {
  return nodes_.store().synced() && topologies_.store().synced() && fabrics_.store().synced();
}

void Daemon::Impl::NodeChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old,
                               const kube::ObjectPtr& current) {
  if (old != nullptr && current != nullptr && *old == *current) return;
  queue_.Add(TopologyKey(key.name));
  // Labels only where they, or the Node itself, changed: a heartbeat is no reason.
  if (old == nullptr || current == nullptr || !SameButVersion(*old, *current)) {
    queue_.Add(LabelsKey(key.name));
    SettlePolicies();
  } else if (!SameAt({"status", "conditions"}, *old, *current)) {
    SettleLossless();  // says whom a rollout waits for
  }
}

void Daemon::Impl::TopologyChanged(const kube::ObjectKey& key, const kube::ObjectPtr& old,
                                   const kube::ObjectPtr& current) {
  if (old == nullptr || current == nullptr || !SameButVersion(*old, *current))
    queue_.Add(TopologyKey(key.name));
  // Each look at all nodes reads the status and one field of the spec: what another wrote there is no reason for it.
  const bool all = old == nullptr || current == nullptr || kube::Uid(*old) != kube::Uid(*current) ||
                   !SameAt({"metadata", "deletionTimestamp"}, *old, *current) ||
                   !SameAt({"status"}, *old, *current);
  if (all) feed_.Changed();
  if (all || !SameAt({"spec", "labels"}, *old, *current)) Settle();
  if (all || !SameAt({"spec", "lossless"}, *old, *current)) SettleLossless();
  if (all || !SameAt({"spec", "lossless"}, *old, *current) || !SameAt({"spec", "cables"}, *old, *current))
    SettleSwitches();
  if (all || !SameAt({"spec", "devices"}, *old, *current)) SettleDevices();
}

void Daemon::Impl::Run(const std::stop_token& stop) {
  std::vector<std::jthread> caches;
  for (kube::Reflector* reflector :
       {&nodes_, &topologies_, &fabrics_, &policies_, &device_policies_, &fabric_switches_, &gangs_}) {
    caches.emplace_back([reflector, stop] { reflector->Run(stop); });
  }
  if (options_.page) caches.emplace_back([this, stop] { feed_.Run(stop); });
  caches.emplace_back([this, stop] { Complain(stop); });
  while (!stop.stop_requested()) {
    if (options_.leader_elect) {
      LeadOnce(stop);
    } else {
      metrics_.Leading(true);
      Work(stop);
    }
  }
}

void Daemon::Impl::LeadOnce(const std::stop_token& stop) {
  std::jthread work;
  std::stop_source lost;
  const std::stop_callback also_stop(stop, [&lost] { lost.request_stop(); });
  kube::LeaseElector elector(
      client_, clock_, random_.Fork(),
      {.lease = {options_.ns, std::string(crds::keys::kOperatorLease)},
       .identity = options_.identity,
       .log = LogLine},
      {.started =
           [&] {
             spdlog::info("Started leading identity={}", options_.identity);
             metrics_.Leading(true);
             work = std::jthread([this, &lost] { Work(lost.get_token()); });
           },
       .stopped = [&] { lost.request_stop(); },
       .new_leader = [](const std::string& holder) { spdlog::info("Saw leader identity=\"{}\"", holder); }});
  const base::Status ended = elector.Run(stop);
  lost.request_stop();
  if (work.joinable()) work.join();
  metrics_.Leading(false);
  if (ended || stop.stop_requested()) return;
  spdlog::warn("Lost the lease identity={} error=\"{}\"", options_.identity, base::ToString(ended.error()));
  clock_.SleepFor(std::chrono::seconds(1), stop);
}

void Daemon::Impl::Work(const std::stop_token& stop) {
  for (kube::Reflector* reflector : {&nodes_, &topologies_, &fabrics_}) {
    // Deciding on half a cache would make objects that exist and unlabel nodes that are right.
    while (!stop.stop_requested() && !reflector->WaitForSync(stop, std::chrono::minutes(1))) {
    }
  }
  if (stop.stop_requested()) return;
  device_reconciler_.LeadingBegins();
  // What changed while another led was worked off by nobody here.
  for (const kube::ObjectPtr& node : node_view_.List()) queue_.Add(TopologyKey(kube::Name(*node)));
  Settle();
  SettlePolicies();
  std::vector<std::jthread> threads;
  threads.emplace_back([this, stop] { events_.Run(stop); });
  threads.emplace_back([this, stop] { LookAtLeases(stop); });
  threads.emplace_back([this, stop] { switch_watch_.Run(stop); });
  if (options_.ufm_transport) threads.emplace_back([this, stop] { ufm_watch_.Run(stop); });
  for (int i = 0; i < options_.workers; ++i) threads.emplace_back([this, stop] { WorkKeys(stop); });
  leading_ = true;
  threads.clear();  // waits for them
  leading_ = false;
  feed_.Changed();
}

void Daemon::Impl::WorkKeys(const std::stop_token& stop) {
  while (const std::optional<std::string> key = queue_.Get(stop)) {
    metrics_.QueueDepth(queue_.size());
    DoKey(*key, stop);
    queue_.Done(*key);
  }
}

Pace* Daemon::Impl::PaceOf(const std::string& key) {
  if (key.starts_with(kTopologyPrefix) || key.starts_with(kLabelsPrefix)) return nullptr;
  if (key == kLosslessKey) return &lossless_pace_;
  if (key == kSwitchesKey) return &switch_pace_;
  return key == kDevicesKey ? &device_pace_ : &fabric_pace_;
}

void Daemon::Impl::DoKey(const std::string& key, const std::stop_token& stop) {
  Pace* const pace = PaceOf(key);
  const base::MonotonicTime started = clock_.Now();
  if (pace != nullptr && pace->Wait(started) > std::chrono::nanoseconds(0))
    return queue_.AddAfter(key, pace->Wait(started));
  std::string_view name = "fabric";
  base::Result<Outcome> outcome;
  if (key.starts_with(kTopologyPrefix)) {
    name = "node_topology";
    outcome = topology_reconciler_.Reconcile(key.substr(kTopologyPrefix.size()), stop);
  } else if (key.starts_with(kLabelsPrefix)) {
    name = "node_label";
    outcome = label_reconciler_.Reconcile(key.substr(kLabelsPrefix.size()), stop);
  } else if (key == kLosslessKey) {
    name = "lossless";
    // Without all policies every port would seem to be told nothing; their list brings the key back. No other
    // work waits for it: a cluster may be without the kind.
    outcome = policies_.store().synced() ? lossless_reconciler_.Reconcile(stop) : Outcome{};
  } else if (key == kDevicesKey) {
    name = "devices";
    outcome = device_policies_.store().synced() ? device_reconciler_.Reconcile(stop) : Outcome{};
  } else if (key == kSwitchesKey) {
    name = "switches";
    outcome = ReconcileSwitches(stop);
  } else {
    outcome = ReconcileFabrics(stop);
  }
  if (pace != nullptr) pace->Took(started, clock_.Now());
  if (!outcome) {
    metrics_.Reconciled(name, base::CodeName(outcome.error().code));
    if (stop.stop_requested()) return;
    spdlog::warn("Failed to reconcile key={} error=\"{}\" advice=\"{}\"", key,
                 base::ToString(outcome.error()), Advice(outcome.error()));
    if (outcome.error().retry_after) return queue_.AddAfter(key, *outcome.error().retry_after);
    return queue_.AddRateLimited(key);
  }
  metrics_.Reconciled(name, "ok");
  metrics_.Wrote(name, outcome->writes);
  queue_.Forget(key);
  if (outcome->again) queue_.AddAfter(key, *outcome->again);
}

base::Result<Outcome> Daemon::Impl::ReconcileFabrics(const std::stop_token& stop) {
  const AssemblyPtr before = assembly_.Get();
  base::Result<Outcome> outcome = fabric_reconciler_.Reconcile(stop);
  const AssemblyPtr after = assembly_.Get();
  if (after == nullptr) return outcome;
  feed_.Changed();
  for (const auto& [name, suspects] : fabric_reconciler_.suspects()) metrics_.Suspects(name, suspects);
  metrics_.Ufms(ufm_watch_.Answers());
  metrics_.Assembled(after->fabrics, heartbeats_.Late().size(), after->left_out.size());
  if (before == nullptr || before->fabrics != after->fabrics) {
    for (const kube::ObjectPtr& node : node_view_.List()) {
      if (LabelPatch(*node, after->LabelsOf(kube::Name(*node)))) queue_.Add(LabelsKey(kube::Name(*node)));
    }
  }
  return outcome;
}

base::Result<Outcome> Daemon::Impl::ReconcileSwitches(const std::stop_token& stop) {
  if (!policies_.store().synced() || !fabric_switches_.store().synced()) return Outcome{};
  const SwitchVerdictsPtr before = verdicts_.Get();
  base::Result<Outcome> outcome = switch_reconciler_.Reconcile(stop);
  const SwitchVerdictsPtr after = verdicts_.Get();
  if (after == nullptr) return outcome;
  metrics_.Switches(switch_watch_.Answers(), *after);
  // Fabrics say what their cables are together.
  if (before == nullptr || !SayTheSameOfCables(*before, *after)) Settle();
  return outcome;
}

void Daemon::Impl::LookAtLeases(const std::stop_token& stop) {
  do {
    if (const AssemblyPtr assembly = assembly_.Get()) ReadLeases(*assembly, stop);
    base::ReturnFreeMemory();
  } while (clock_.SleepFor(options_.lease_period, stop));
}

void Daemon::Impl::ReadLeases(const Assembly& assembly, const std::stop_token& stop) {
  // Polled, not watched: 10,000 agents renew 167 times a second, and one look in half a minute is all we need.
  const auto leases = client_.List(kube::kLeases, {.ns = options_.ns, .resource_version = "0"}, stop);
  if (!leases && stop.stop_requested()) return;
  if (!leases) {
    spdlog::warn("Failed to list agents' leases error=\"{}\" advice=\"{}\"", base::ToString(leases.error()),
                 Advice(leases.error()));
  } else if (heartbeats_.Observe(leases->items, assembly.reporting, clock_.Now())) {
    Settle();
    SettleSwitches();  // what a silent agent said of its end proves nothing
    SettleLossless();  // and a rollout does not begin with it
  }
}

void Daemon::Impl::Complain(const std::stop_token& stop) {
  struct Cache {
    const kube::Reflector* reflector;
    std::string_view kind;
    bool complained = false;
  };
  std::vector<Cache> caches{Cache{&nodes_, "Node"},
                            Cache{&topologies_, "NodeTopology"},
                            Cache{&fabrics_, "Fabric"},
                            Cache{&policies_, "LosslessPolicy"},
                            Cache{&device_policies_, "RdmaDevicePolicy"},
                            Cache{&fabric_switches_, "FabricSwitch"},
                            Cache{&gangs_, "Gang"}};
  for (std::chrono::seconds wait(2); clock_.SleepFor(wait, stop); wait = std::chrono::seconds(15)) {
    for (Cache& cache : caches) {
      const std::optional<base::Error> error = cache.reflector->last_error();
      if (error) {
        spdlog::warn("Cannot watch kind={} error=\"{}\" advice=\"{}\"", cache.kind, base::ToString(*error),
                     Advice(*error));
      } else if (cache.complained) {
        spdlog::info("Watches again kind={}", cache.kind);
      }
      cache.complained = error.has_value();
    }
  }
}

Daemon::Daemon(kube::HttpTransport& transport, gnmi::Dialer& dialer, base::Clock& clock, base::Random random,
               Metrics& metrics, DaemonOptions options)
    : impl_(std::make_unique<Impl>(transport, dialer, clock, random, metrics, std::move(options))) {}
Daemon::~Daemon() = default;
void Daemon::Run(const std::stop_token& stop) {
  impl_->Run(stop);
}
bool Daemon::ready() const {
  return impl_->ready();
}
kube::ServedAnswer Daemon::AnswerPage(const kube::ServedRequest& request) {
  return impl_->AnswerPage(request);
}

}  // namespace heddle::operators
