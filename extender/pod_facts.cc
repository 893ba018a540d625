#include "extender/pod_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>

#include "base/cut_utf8.h"
#include "base/interned.h"
#include "crds/at_once.h"
#include "crds/gang_gate.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "crds/quantity.h"
#include "extender/compute_domain.h"
#include "extender/owner_kinds.h"
#include "kube/packed.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;

std::int64_t AddCapped(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

// Sums by resource name; cpu in thousandths.
struct Amounts {
  std::map<std::string, std::int64_t> by_name;

  void Add(const Amounts& more) {
    for (const auto& [name, amount] : more.by_name) by_name[name] = AddCapped(by_name[name], amount);
  }
  void Raise(const Amounts& least) {
    for (const auto& [name, amount] : least.by_name) by_name[name] = std::max(by_name[name], amount);
  }
};

void Read(const kube::Json* list, Amounts& into, std::string& problem) {
  if (list == nullptr || !list->is_object()) return;
  for (const auto& [name, value] : list->items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const auto amount = name == "cpu" ? crds::ParseMilliQuantity(text) : crds::ParseQuantity(text);
    if (!amount) {
      problem = fmt::format("the quantity {} of {} cannot be read", text, name);
      continue;
    }
    into.by_name[name] = *amount;
  }
}

// A request that is not said is the limit.
Amounts ContainerAmounts(const kube::Json& container, std::string& problem) {
  Amounts amounts;
  Read(kube::Find(container, {"resources", "limits"}), amounts, problem);
  Read(kube::Find(container, {"resources", "requests"}), amounts, problem);
  return amounts;
}

Amounts Effective(const kube::Json& pod, std::string& problem) {
  crds::AtOnce<Amounts> containers;
  for (const kube::Json& container : kube::ArrayAt(pod, {"spec", "initContainers"})) {
    containers.AddInit(ContainerAmounts(container, problem),
                       kube::StringAt(container, {"restartPolicy"}) == "Always");
  }
  for (const kube::Json& container : kube::ArrayAt(pod, {"spec", "containers"}))
    containers.AddMain(ContainerAmounts(container, problem));
  Amounts all = containers.Most();
  // What is said of the whole pod goes before what its containers say.
  Read(kube::Find(pod, {"spec", "resources", "requests"}), all, problem);
  Amounts overhead;
  Read(kube::Find(pod, {"spec", "overhead"}), overhead, problem);
  all.Add(overhead);
  return all;
}

template <class Number>
std::optional<Number> ToNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> SplitNames(const std::string& text) {
  std::vector<std::string> names;
  std::stringstream stream(text);
  for (std::string name; std::getline(stream, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

std::optional<PodPlan> ReadPlan(const kube::Json& pod) {
  const auto rank = kube::Annotation(pod, keys::kRank);
  const auto node = kube::Annotation(pod, keys::kNode);
  if (!rank || !node) return std::nullopt;
  PodPlan plan;
  plan.rank = ToNumber<int>(*rank).value_or(-1);
  plan.node = *node;
  plan.gpus = crds::ParseGpuIndexes(kube::Annotation(pod, keys::kGpus).value_or("")).value_or(0);
  plan.gang_uid = kube::Annotation(pod, keys::kGangUid).value_or("");
  plan.epoch = ToNumber<std::int64_t>(kube::Annotation(pod, keys::kEpoch).value_or("0")).value_or(0);
  plan.substitutes = SplitNames(kube::Annotation(pod, keys::kSubstitutes).value_or(""));
  return plan;
}

// kueue.x-k8s.io/admission and /topology; others may come.
std::string QueueGate(const kube::Json& pod) {
  for (const kube::Json& gate : kube::ArrayAt(pod, {"spec", "schedulingGates"})) {
    std::string name = kube::StringAt(gate, {"name"});
    if (name.starts_with("kueue.x-k8s.io/")) return name;
  }
  return "";
}

// A kubelet that does not admit a pod has it fail with a reason. A program that ends badly leaves none, and what ends a
// pod that runs (Evicted, DeadlineExceeded) is none of these. The message of a kubelet's rejectPod tells a refusal
// whatever its reason; the reasons (kubernetes/pkg/kubelet/lifecycle/predicate.go and cm) are for one that words it
// otherwise.
std::string NotAdmitted(const kube::Json& pod) {
  constexpr std::string_view kRejected = "Pod was rejected: ";
  constexpr std::string_view kOutOf = "OutOf";  // OutOfcpu, OutOfpods, OutOfnvidia.com/gpu
  constexpr std::array<std::string_view, 7> kReasons{
      "UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "NodeName", "NodePorts",
      "TaintToleration",          "InvalidNodeInfo"};
  // Bytes of the message: the sentence around it has to fit in a condition.
  constexpr std::size_t kWords = 200;
  const std::string reason = kube::StringAt(pod, {"status", "reason"});
  std::string message = kube::StringAt(pod, {"status", "message"});
  const bool rejected = message.starts_with(kRejected);
  const bool known =
      reason.starts_with(kOutOf) || std::find(kReasons.begin(), kReasons.end(), reason) != kReasons.end();
  if (reason.empty() || !(rejected || known)) return "";
  if (rejected) message.erase(0, kRejected.size());
  if (message.size() > kWords) message = base::CutUtf8(message, kWords) + "…";
  return message.empty() ? reason : reason + ": " + message;
}

void Keep(kube::Json& from, kube::Json& to, std::initializer_list<const char*> names) {
  if (!from.is_object()) return;
  for (const char* name : names) {
    if (const auto it = from.find(name); it != from.end()) to[name] = std::move(*it);
  }
}

constexpr const char* kRendezvous = "PET_RDZV_BACKEND";  // torchrun's --rdzv-backend

bool UsesC10d(const kube::Json& container) {
  for (const kube::Json& variable : kube::ArrayAt(container, {"env"})) {
    if (kube::StringAt(variable, {"name"}) == kRendezvous && kube::StringAt(variable, {"value"}) == "c10d")
      return true;
  }
  for (const char* list : {"command", "args"}) {
    for (const kube::Json& word : kube::ArrayAt(container, {list})) {
      const std::string text = word.is_string() ? word.get<std::string>() : "";
      const bool backend =
          text.find("rdzv-backend") != std::string::npos || text.find("rdzv_backend") != std::string::npos;
      if (text == "c10d" || (backend && text.find("c10d") != std::string::npos)) return true;
    }
  }
  return false;
}

kube::Json SlimContainers(kube::Json& containers) {
  kube::Json kept = kube::Json::array();
  for (kube::Json& container : containers) {
    kube::Json slim = kube::Json::object();
    // Words of a training command are long, and this is all that matters of them.
    const bool c10d = UsesC10d(container);
    Keep(container, slim, {"name", "resources", "ports", "restartPolicy"});
    if (c10d) slim["env"] = kube::Json::array({{{"name", kRendezvous}, {"value", "c10d"}}});
    kept.push_back(std::move(slim));
  }
  return kept;
}

}  // namespace

bool AsksForGpus(const kube::Json& pod) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const kube::Json& container : kube::ArrayAt(pod, {"spec", list})) {
      const kube::Json* limits = kube::Find(container, {"resources", "limits"});
      if (limits == nullptr || !limits->is_object()) continue;
      for (const auto& [name, amount] : limits->items()) {
        if (crds::IsGpuResource(name) && amount != "0" && amount != 0) return true;
      }
    }
  }
  return false;
}

PodDemand ReadDemand(const kube::Json& pod) {
  PodDemand demand;
  auto amounts = Effective(pod, demand.problem).by_name;
  if (!ClaimedComputeDomain(pod).empty()) amounts[std::string(kImexChannel)] = 1;
  for (const auto& [name, amount] : amounts) {
    if (amount == 0) continue;
    if (name == "cpu") {
      demand.resources.milli_cpu = amount;
    } else if (name == "memory") {
      demand.resources.memory_bytes = amount;
    } else if (crds::IsGpuResource(name)) {
      if (!demand.gpu_resource.empty())
        demand.problem = "the pod asks for " + demand.gpu_resource + " and " + name;
      demand.gpu_resource = name;
      demand.gpus = int(std::min(amount, kMostGpusOfPod));
    } else if (name != "ephemeral-storage") {
      demand.resources.extended.emplace_back(name, amount);
    }
  }
  return demand;
}

PodFacts ReadPod(const kube::Json& pod) {
  if (kube::IsPacked(pod)) return ReadPod(kube::Unpacked(pod));
  PodFacts facts;
  facts.key = kube::KeyOf(pod);
  facts.uid = kube::Uid(pod);
  facts.gang = MembershipOf(pod).key;
  facts.node = kube::StringAt(pod, {"spec", "nodeName"});
  facts.scheduler = kube::StringAt(pod, {"spec", "schedulerName"});
  const auto priority = kube::IntAt(pod, {"spec", "priority"}).value_or(0);
  facts.priority = int(std::clamp<std::int64_t>(priority, INT32_MIN, INT32_MAX));
  facts.created = kube::CreationTimestamp(pod);
  facts.started = base::ParseTime(kube::StringAt(pod, {"status", "startTime"}));
  facts.gone_by = kube::DeletionTimestamp(pod);
  facts.terminating = facts.gone_by.has_value();
  facts.preempts = kube::StringAt(pod, {"spec", "preemptionPolicy"}) != "Never";
  const std::string phase = kube::StringAt(pod, {"status", "phase"});
  facts.succeeded = phase == "Succeeded";
  facts.finished = facts.succeeded || phase == "Failed";
  if (phase == "Failed") facts.not_admitted = NotAdmitted(pod);
  facts.gated = crds::HasGangGate(pod);
  facts.queue_gate = QueueGate(pod);
  if (const kube::Json* scheduled = kube::Condition(pod, "PodScheduled");
      scheduled != nullptr && kube::StringAt(*scheduled, {"reason"}) == "Unschedulable") {
    facts.unschedulable_since = base::ParseTime(kube::StringAt(*scheduled, {"lastTransitionTime"}));
    facts.unschedulable_why = kube::StringAt(*scheduled, {"message"});
  }
  facts.plan = ReadPlan(pod);
  facts.demand = ReadDemand(pod);
  facts.terms = std::make_shared<const PodTerms>(ReadTerms(pod, facts.gated));
  return facts;
}

std::function<std::shared_ptr<const PodFacts>(const kube::Json& pod)> PodReader() {
  return [terms = std::make_shared<base::Interned<PodTerms>>()](const kube::Json& pod) {
    PodFacts facts = ReadPod(pod);
    facts.terms = terms->Of(std::move(facts.terms));
    return std::make_shared<const PodFacts>(std::move(facts));
  };
}

ReadPods::ReadPods(std::vector<std::shared_ptr<const kube::Json>> pods) : objects(std::move(pods)) {
  facts.reserve(objects.size());
  for (const auto& pod : objects) facts.push_back(std::make_shared<const PodFacts>(ReadPod(*pod)));
}

bool IsGangPod(const kube::Json& pod, Mode mode) {
  if (mode == Mode::kPlace)
    return crds::HasGangGate(pod) || kube::Annotation(pod, keys::kGangUid).has_value();
  if (!AsksForGpus(pod)) return false;
  if (kube::Annotation(pod, keys::kParallelism)) return true;
  const Membership membership = MembershipOf(pod);
  return !membership.group.empty() ||
         OwnerKindOf(membership.owner.api_version, membership.owner.kind) != nullptr;
}

bool MeetsByC10d(const kube::Json& pod) {
  const kube::Json& containers = kube::ArrayAt(pod, {"spec", "containers"});
  return std::any_of(containers.begin(), containers.end(), UsesC10d);
}

bool PassedTheGate(const kube::Json& pod) {
  return kube::Annotation(pod, keys::kParallelism) && !IsGangPod(pod) && AsksForGpus(pod);
}

namespace {

// Every pod has the volume of its account's token; only what may tie a pod to a place is read.
void KeepVolumes(const kube::Json& volumes, kube::Json& spec) {
  if (!volumes.is_array()) return;
  for (const kube::Json& volume : volumes) {
    const bool read =
        volume.is_object() && (volume.contains("persistentVolumeClaim") || volume.contains("ephemeral"));
    if (read) spec["volumes"].push_back(volume);
  }
}

}  // namespace

kube::Json SlimPod(kube::Json pod) {
  kube::Json slim = kube::Json::object();
  Keep(pod, slim, {"apiVersion", "kind"});
  kube::Json conditions = kube::Json::array();
  if (const kube::Json* scheduled = kube::Condition(pod, "PodScheduled")) conditions.push_back(*scheduled);
  const auto part = [&pod](const char* name) {
    return pod.contains(name) ? std::move(pod[name]) : kube::Json::object();
  };
  kube::Json metadata = part("metadata"), spec = part("spec"), status = part("status");
  Keep(metadata, slim["metadata"],
       {"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences",
        "creationTimestamp", "deletionTimestamp"});
  Keep(spec, slim["spec"],
       {"nodeName", "schedulerName", "schedulingGates", "nodeSelector", "affinity", "tolerations", "priority",
        "preemptionPolicy", "schedulingGroup", "hostname", "subdomain", "topologySpreadConstraints",
        "resourceClaims", "resources", "overhead", "hostNetwork"});
  if (spec.is_object() && spec.contains("volumes")) KeepVolumes(spec["volumes"], slim["spec"]);
  for (const char* name : {"containers", "initContainers"}) {
    if (spec.is_object() && spec.contains(name)) slim["spec"][name] = SlimContainers(spec[name]);
  }
  Keep(status, slim["status"], {"phase", "startTime"});
  if (kube::StringAt(slim, {"status", "phase"}) == "Failed")
    Keep(status, slim["status"], {"reason", "message"});
  if (!conditions.empty()) slim["status"]["conditions"] = std::move(conditions);
  return slim;
}

const kube::Pruning& PodPruning() {
  static const kube::Pruning pruning({"metadata.generateName",
                                      "metadata.finalizers",
                                      "spec.containers.image",
                                      "spec.containers.imagePullPolicy",
                                      "spec.containers.envFrom",
                                      "spec.containers.volumeMounts",
                                      "spec.containers.volumeDevices",
                                      "spec.containers.livenessProbe",
                                      "spec.containers.readinessProbe",
                                      "spec.containers.startupProbe",
                                      "spec.containers.lifecycle",
                                      "spec.containers.securityContext",
                                      "spec.containers.terminationMessagePath",
                                      "spec.containers.terminationMessagePolicy",
                                      "spec.initContainers.image",
                                      "spec.initContainers.imagePullPolicy",
                                      "spec.initContainers.envFrom",
                                      "spec.initContainers.volumeMounts",
                                      "spec.initContainers.securityContext",
                                      "spec.ephemeralContainers",
                                      "spec.securityContext",
                                      "spec.imagePullSecrets",
                                      "spec.hostAliases",
                                      "spec.dnsConfig",
                                      "spec.readinessGates",
                                      "status.containerStatuses",
                                      "status.initContainerStatuses",
                                      "status.ephemeralContainerStatuses",
                                      "status.podIPs",
                                      "status.hostIPs"},
                                     {{"spec.containers.env", "name", kRendezvous},
                                      {"spec.initContainers.env", "name", kRendezvous},
                                      {"status.conditions", "type", "PodScheduled"}});
  return pruning;
}

}  // namespace heddle::extender
