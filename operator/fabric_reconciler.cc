#include "operator/fabric_reconciler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "crds/kept_text.h"
#include "crds/keys.h"
#include "operator/fabric_status.h"
#include "operator/fabric_suspects.h"
#include "operator/kept_suspects.h"
#include "operator/policy_reads.h"
#include "operator/policy_writes.h"
#include "operator/resources.h"
#include "operator/ufm_seen.h"

namespace heddle::operators {
namespace {

// More events of one write than this help nobody; the condition counts them all.
constexpr std::size_t kMaxEvents = 10;

void AddUp(Outcome& total, const Outcome& one) {
  total.writes += one.writes;
  if (one.again) total.again = total.again ? std::min(*total.again, *one.again) : *one.again;
}

// Somebody waits for it: what makes jobs slow or stops them.
bool IsUrgent(const crds::FabricStatus& before, const crds::FabricStatus& after) {
  const auto contradicts = [](const crds::FabricStatus& status) {
    const crds::Condition* lossless = crds::FindCondition(status.conditions, kConditionLossless);
    return lossless != nullptr && lossless->status == crds::ConditionStatus::kFalse;
  };
  return !CompareSuspects(before, after).found.empty() || (contradicts(after) && !contradicts(before));
}

// Whether a fault that left the status is still one: the status keeps the first of many, and a new one before them
// pushes the last off.
bool StillThere(const topology::CablingFault& gone, const std::string& fabric, const AssemblyPtr& assembly) {
  if (assembly == nullptr) return false;
  const auto found = assembly->fabrics.find(fabric);
  if (found == assembly->fabrics.end()) return false;
  const std::vector<topology::CablingFault>& faults = found->second.faults;
  return std::any_of(faults.begin(), faults.end(), [&](const topology::CablingFault& one) {
    return one.node == gone.node && one.nic == gone.nic && one.port == gone.port &&
           crds::KeptText(one.sentence, crds::kMaxKeptFault) == gone.sentence;
  });
}

// What else one says whose spec cannot be read: without its status each look would write all of it as news.
crds::Fabric WithoutSpec(kube::Json object) {
  object["spec"] = kube::Json::object();
  auto known = ReadBySpec(object, &crds::FabricFromJson);
  return known ? *std::move(known) : crds::Fabric{};
}

}  // namespace

FabricReconciler::FabricReconciler(kube::Client& client, base::Clock& clock, Reads reads,
                                   CurrentAssembly& assembly, kube::EventRecorder& events, Options options)
    : client_(client),
      clock_(clock),
      reads_(std::move(reads)),
      current_(assembly),
      events_(events),
      options_(options) {}

base::Result<Outcome> FabricReconciler::Reconcile(const std::stop_token& stop) {
  const kube::SortedObjects objects = reads_.fabrics.List();
  const AssemblyPtr assembly = assembler_.Assemble(reads_.topologies.List(), objects);
  current_.Set(assembly);
  std::set<std::string> names;
  for (const auto& [name, fabric] : assembly->fabrics) names.insert(name);
  for (const kube::ObjectPtr& object : objects) names.insert(kube::Name(*object));

  ufm_unprimed_ = false;
  Outcome total;
  std::optional<base::Error> failed;
  for (const std::string& name : names) {
    const base::Result<Outcome> one = ReconcileOne(name, *assembly, stop);
    if (one) {
      AddUp(total, *one);
    } else if (!failed) {
      failed = one.error();
    }
  }
  if (failed) return base::Fail(*failed);
  // What is kept for their sake goes once they are primed, and nothing else happens then.
  if (ufm_unprimed_ || (reads_.unprimed && !reads_.unprimed().empty()))
    AddUp(total, {.again = std::chrono::minutes(1)});
  return total;
}

base::Result<Outcome> FabricReconciler::ReconcileOne(const std::string& name, const Assembly& assembly,
                                                     const std::stop_token& stop) {
  Outcome outcome;
  kube::ObjectPtr object = reads_.fabrics.Get({"", name});
  if (object == nullptr) {
    base::Result<kube::Json> made = Make(name, stop);
    ++outcome.writes;
    if (!made && made.error().code == base::Code::kAlreadyExists) {
      outcome.again = std::chrono::seconds(1);  // the cache will show it
      return outcome;
    }
    if (!made) return base::Fail(made.error().In("create Fabric " + name));
    object = std::make_shared<const kube::Json>(std::move(*made));
  }
  if (kube::DeletionTimestamp(*object)) return outcome;

  const auto read = ReadBySpec(*object, &crds::FabricFromJson);
  const crds::Fabric last = read ? *read : WithoutSpec(*object);
  const crds::FabricStatus& before = last.status;
  crds::Fabric wanted;
  wanted.name = name;
  wanted.uid = kube::Uid(*object);
  wanted.status = Desired(name, assembly, last, kube::Generation(*object));
  if (wanted.status == before) {
    const bool unwanted =
        read && !assembly.fabrics.contains(name) && read->spec == topology::Declaration{} && !read->ufm;
    return unwanted ? Retire(*read, stop) : outcome;
  }
  const std::chrono::nanoseconds wait =
      status_pace_.UntilWrite(name, IsUrgent(before, wanted.status), clock_.Now());
  if (wait > wait.zero()) {
    outcome.again = wait;
    return outcome;
  }
  const kube::ApplyOptions options{
      .field_manager = std::string(crds::keys::kOperatorManager), .force = true, .subresource = "status"};
  const auto applied = client_.Apply(kFabrics, crds::StatusApplyJson(wanted), options, stop);
  const bool refused = !applied && IsRefusal(applied.error());
  status_pace_.Answered(name, refused);
  if (!applied) {
    const base::Error error = applied.error().In("write the status of Fabric " + name);
    if (refused) TellStatusNotWritten(events_, kube::ReferenceTo(*object), error);
    return base::Fail(error);
  }
  ++outcome.writes;
  Tell(*applied, before, wanted.status);
  return outcome;
}

std::vector<crds::Gang> FabricReconciler::ReadGangs() const {
  std::vector<crds::Gang> gangs;
  if (reads_.gangs == nullptr) return gangs;
  for (const kube::ObjectPtr& object : reads_.gangs->List()) {
    // One that cannot be read is not named; the extender says so.
    if (auto gang = crds::GangFromJson(*object)) gangs.push_back(*std::move(gang));
  }
  return gangs;
}

crds::FabricStatus FabricReconciler::Desired(const std::string& name, const Assembly& assembly,
                                             const crds::Fabric& before, std::int64_t generation) {
  const std::set<std::string> stale = reads_.heartbeats.Late();
  FabricView view{.name = name, .assembly = assembly, .stale_nodes = stale};
  const SwitchVerdictsPtr verdicts = reads_.verdicts == nullptr ? nullptr : reads_.verdicts->Get();
  view.verdicts = verdicts.get();
  view.asks_ufm = before.ufm.has_value();
  const std::optional<UfmAnswer> ufm = view.asks_ufm && reads_.ufm ? reads_.ufm(name) : std::nullopt;
  view.ufm = ufm ? &*ufm : nullptr;
  if (const auto fabric = assembly.fabrics.find(name); fabric != assembly.fabrics.end()) {
    const base::MonotonicTime time = clock_.Now();
    if (!suspects_.contains(name)) cables_.Restore(before.status.suspects, time);
    cables_.Look(fabric->second, time);
    view.suspects = Suspected(fabric->second, view, before);
  }
  suspects_[name] = view.suspects;
  return DesiredStatus(view, before.status, generation, clock_.WallNow());
}

std::vector<topology::Suspect> FabricReconciler::Suspected(const topology::Fabric& fabric,
                                                           const FabricView& view,
                                                           const crds::Fabric& before) {
  const UfmAnswer* const ufm = view.ufm;
  SeenOfCables seen{.memory = &cables_, .congested = &view.assembly.congested};
  if (reads_.sightings) seen.sightings = reads_.sightings();
  std::vector<switches::SwitchLink> between;
  if (view.verdicts != nullptr) between = view.verdicts->between;
  std::set<std::string> unprimed;
  if (reads_.unprimed) unprimed = reads_.unprimed();
  if (ufm != nullptr) {
    UfmSeen by_ufm = SeenByUfm(*ufm, fabric);
    for (auto& [name, ports] : by_ufm.sightings) seen.sightings[name].merge(ports);
    between.insert(between.end(), by_ufm.between.begin(), by_ufm.between.end());
  }
  // Any switch may be one that it sees: before it answers nobody knows which.
  if (before.ufm && (ufm == nullptr || !ufm->primed)) {
    ufm_unprimed_ = true;
    for (const topology::Leaf& leaf : fabric.leaves) unprimed.insert(leaf.name);
    for (const topology::Suspect& suspect : before.status.suspects)
      unprimed.insert({suspect.leaf, suspect.node});
    unprimed.erase("");
  }
  seen.between = between;
  auto suspects = SuspectsOf(fabric, seen, [this] { return ReadGangs(); });
  return WithKept(std::move(suspects), before.status.suspects, fabric, unprimed);
}

base::Result<Outcome> FabricReconciler::Retire(const crds::Fabric& empty, const std::stop_token& stop) {
  const crds::Condition* ready = crds::FindCondition(empty.status.conditions, crds::kReady);
  if (ready == nullptr || ready->reason != kReasonNoNodes) return Outcome{};
  const auto age = clock_.WallNow() - ready->last_transition;
  if (age < options_.keep_empty) return Outcome{.again = options_.keep_empty - age};
  // Only this very state of it: a declaration made meanwhile saves it.
  const kube::DeleteOptions options{.uid = empty.uid, .resource_version = empty.resource_version};
  const auto deleted = client_.Delete(kFabrics, {"", empty.name}, options, stop);
  if (!deleted && deleted.error().code != base::Code::kNotFound &&
      deleted.error().code != base::Code::kConflict) {
    return base::Fail(deleted.error().In("delete the empty Fabric " + empty.name));
  }
  if (deleted) spdlog::info("Deleted Fabric without nodes and declaration name={}", empty.name);
  return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
}

base::Result<kube::Json> FabricReconciler::Make(const std::string& name, const std::stop_token& stop) {
  kube::Json object = kube::NewObject(kFabrics, {"", name});
  object["spec"] = kube::Json::object();
  auto made = client_.Create(kFabrics, object, stop);
  if (made) spdlog::info("Created Fabric name={}", name);
  return made;
}

void FabricReconciler::Tell(const kube::Json& object, const crds::FabricStatus& before,
                            const crds::FabricStatus& after) {
  spdlog::info("Wrote Fabric status name={} nodes={} gpus={} leaves={} faults={}", kube::Name(object),
               after.counts.nodes, after.counts.gpus, after.counts.leaves, after.counts.cabling_faults);
  const kube::ObjectReference about = kube::ReferenceTo(object);
  TellSuspects(about, before, after);
  const FaultChanges changes = CompareFaults(before, after);
  std::size_t told = 0;
  for (const topology::CablingFault& fault : changes.found) {
    if (++told > kMaxEvents) break;
    const auto severity = fault.ambiguous ? kube::Severity::kNormal : kube::Severity::kWarning;
    const std::string_view reason = fault.ambiguous ? "CablingAmbiguous" : "CablingFault";
    events_.Record(about, severity, reason, fault.sentence);
    TellNode(fault.node, severity, reason, fault.sentence);
  }
  const AssemblyPtr assembly = current_.Get();
  for (const topology::CablingFault& fault : changes.gone) {
    if (StillThere(fault, kube::Name(object), assembly)) continue;
    if (++told > kMaxEvents) break;
    const std::string sentence = "No longer so: " + fault.sentence;
    events_.Record(about, kube::Severity::kNormal, "CablingRepaired", sentence);
    TellNode(fault.node, kube::Severity::kNormal, "CablingRepaired", sentence);
  }
}

void FabricReconciler::TellSuspects(const kube::ObjectReference& about, const crds::FabricStatus& before,
                                    const crds::FabricStatus& after) {
  const SuspectChanges changes = CompareSuspects(before, after);
  for (const topology::Suspect& suspect : changes.found) {
    const std::string sentence = topology::SentenceOf(suspect);
    events_.Record(about, kube::Severity::kWarning, "LinkSuspected", sentence);
    if (!suspect.node.empty()) TellNode(suspect.node, kube::Severity::kWarning, "LinkSuspected", sentence);
  }
  // The worst are named, and no more: one that a worse one pushed off has not recovered.
  if (after.suspects.size() >= topology::kMaxSuspects) return;
  for (const topology::Suspect& suspect : changes.gone) {
    const std::string sentence = "Nothing stands against it any longer: " + suspect.name;
    events_.Record(about, kube::Severity::kNormal, "LinkRecovered", sentence);
    if (!suspect.node.empty()) TellNode(suspect.node, kube::Severity::kNormal, "LinkRecovered", sentence);
  }
}

void FabricReconciler::TellNode(const std::string& name, kube::Severity severity, std::string_view reason,
                                const std::string& sentence) {
  const kube::ObjectPtr node = reads_.nodes.Get({"", name});
  if (node == nullptr) return;
  events_.Record({"v1", "Node", "", name, kube::Uid(*node)}, severity, reason, sentence);
}

}  // namespace heddle::operators
