#include "crds/workload_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/counted.h"
#include "base/lower_case.h"
#include "crds/at_once.h"
#include "crds/gpu_indexes.h"
#include "crds/json_at.h"
#include "crds/keys.h"
#include "crds/parallelism.h"
#include "crds/pod_annotations.h"
#include "crds/pod_templates.h"
#include "crds/rdma_pod.h"
#include "crds/train_job.h"

namespace heddle::crds {
namespace {

// NVIDIA's containers of PyTorch ask for --shm-size=1g or more; a runtime's own /dev/shm has 64 MiB.
constexpr std::int64_t kEnoughShm = std::int64_t{1} << 30;

constexpr std::array kRules{
    WorkloadRule{"no-rdma", true, "GPUs of several nodes without RDMA devices",
                 "NCCL finds no NIC in the pod and goes through TCP, at a tenth of the rate or less",
                 "ask for the resource that brings the NICs (`kubectl get rdmadevicepolicies`)"},
    WorkloadRule{"rail-not-offered", true, "an RDMA resource of a rail that no policy is for",
                 "no node offers it, and the pod is never scheduled",
                 "a rail that an RdmaDevicePolicy is for, or the rail in its rails"},
    WorkloadRule{"no-interface", true, "RDMA devices without a network interface, on RoCE",
                 "a RoCE device has its addresses from the interface, and without one in the pod it has none",
                 "hostNetwork, a Multus attachment, or a claim of a DRA driver"},
    WorkloadRule{"may-not-pin", true, "RDMA devices without the right to pin memory",
                 "registering memory fails (ibv_reg_mr: Cannot allocate memory)",
                 "add the capability IPC_LOCK"},
    WorkloadRule{
        "shm-small", true, "several GPUs in a container with a small /dev/shm",
        "ranks of one node and data loaders meet there, and NCCL ends with \"No space left on device\"",
        "mount an emptyDir of medium Memory at /dev/shm"},
    WorkloadRule{"larger-than-node", true, "more GPUs in a pod than any node has",
                 "the pod is never scheduled", "more pods with fewer GPUs"},
    WorkloadRule{"not-its-gpus", true, "a parallelism that does not make the workload's GPUs",
                 "Heddle refuses the gang, and its pods wait", "make both the same"},
    WorkloadRule{"no-gang", true, "a PodGroup that asks for no gang",
                 "its pods may start one by one, so Heddle refuses them, and they wait",
                 "spec.schedulingPolicy.gang.minCount of the PodGroup"},
    WorkloadRule{"no-ranks", true, "a Job of a gang that is not Indexed",
                 "its pods have no ranks, so Heddle refuses the gang, and they wait",
                 "spec.completionMode: Indexed"},
    WorkloadRule{
        "not-at-once", true, "a Job of a gang with other completions than parallelism",
        "a gang's pods start together and end together, so Heddle refuses this one, and its pods wait",
        "set both to the number of pods"},
    WorkloadRule{"annotation-unread", true, "an annotation of Heddle that makes no sense",
                 "Heddle refuses the gang, and its pods wait", "what the message says"},
    WorkloadRule{
        "unknown-key", true, "an annotation heddle.dev/… that is none of Heddle's",
        "Heddle refuses the gang, and its pods wait; a misspelt parallelism alone makes no gang at all",
        "the key that the message names"},
    WorkloadRule{
        "no-retry", false, "backoffLimit 0 where pods can be replaced",
        "the first pod that a node loses, or a kubelet refuses, ends the whole job: nothing is left to "
        "repair",
        "a backoffLimit, or a podFailurePolicy that ignores disruptions"},
    WorkloadRule{"no-nccl-file", false, "GPUs of several nodes without heddle.dev/fabric",
                 "NCCL is not told which NIC is on which rail, and guesses",
                 "ask for heddle.dev/fabric: 1; pods with heddle.dev/parallelism get it by themselves"},
    WorkloadRule{
        "does-not-tile", false, "GPUs of a pod that do not divide those of a node",
        "the rest of each node's GPUs is of use to nobody with the same shape, and rails are left over",
        "a number of GPUs that divides the node's"},
    WorkloadRule{"not-looked-at", false, "a TrainJob without its runtime", "what they lack is not known",
                 "the runtime beside it, or `kubectl heddle check trainjob/NAME` once it is created"},
};

const WorkloadRule* RuleOf(std::string_view id) {
  const auto found =
      std::find_if(kRules.begin(), kRules.end(), [id](const WorkloadRule& rule) { return rule.id == id; });
  CHECK(found != kRules.end());
  return &*found;
}

constexpr std::string_view kKueueGroupSize = "kueue.x-k8s.io/pod-group-total-count";

std::int64_t GpusOf(const Json& container) {
  std::int64_t gpus = 0;
  const Json& limits = At(container, {"resources", "limits"});
  for (const std::string_view resource : kGpuResources) gpus += CountOf(At(limits, resource));
  return gpus;
}

std::string NameOf(const Json& object) {
  const std::string kind = TextOf(At(object, "kind")), name = TextOf(At(object, {"metadata", "name"})),
                    ns = TextOf(At(object, {"metadata", "namespace"}));
  std::string text = kind.empty() ? "object" : kind;
  if (!name.empty()) text += " " + (ns.empty() ? name : ns + "/" + name);
  return text;
}

std::optional<std::string> Annotation(const Json& pod, std::string_view key) {
  const Json& value = At(pod, {"metadata", "annotations", key});
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

// One template with GPUs.
struct Seen {
  const PodTemplate* from = nullptr;
  WorkloadTemplate facts;
  std::vector<const Json*> gpu_containers;
};

class Checking {
 public:
  Checking(const Json& object, const WorkloadGround& ground, const PodGroupFacts& group)
      : object_(object), ground_(ground), group_(group) {}

  CheckedWorkload Run() {
    out_.name = NameOf(object_);
    templates_ = PodTemplatesOf(object_);
    for (const PodTemplate& one : templates_) {
      Seen seen = See(one);
      if (seen.facts.gpus > 0 && seen.facts.pods > 0) seen_.push_back(std::move(seen));
    }
    for (const Seen& seen : seen_) {
      pods_ += seen.facts.pods;
      gpus_ += seen.facts.pods * seen.facts.gpus;
      out_.templates.push_back(seen.facts);
    }
    if (!seen_.empty() && IsPod()) CountGangOfPod();
    for (const Seen& seen : seen_) {
      CheckNode(seen);
      CheckRdma(seen);
      CheckRails(seen);
      CheckShm(seen);
      CheckAnnotations(seen);
    }
    CheckJobs();
    CheckParallelism();
    CheckRetries();
    CheckRuntime();
    std::stable_sort(
        out_.findings.begin(), out_.findings.end(),
        [](const WorkloadFinding& a, const WorkloadFinding& b) { return a.rule->error > b.rule->error; });
    return std::move(out_);
  }

 private:
  void Find(std::string_view rule, std::string where, std::string fact, std::string remedy) {
    out_.findings.push_back({RuleOf(rule), std::move(where), std::move(fact), std::move(remedy)});
  }

  // Of whichever rail: that nobody offers that one is another finding.
  bool BringsRdma(const std::string& resource) const {
    return IsRdmaResource(resource) || IsOfAPolicy(resource, false);
  }

  bool IsOfAPolicy(const std::string& resource, bool on_its_rail) const {
    const auto& entries = ground_.rdma_resources;
    return std::any_of(entries.begin(), entries.end(), [&](const RdmaResource& entry) {
      return ComesTo(on_its_rail ? entry : RdmaResource{.name = entry.name}, resource);
    });
  }

  void CheckRails(const Seen& seen) {
    std::vector<std::string> others;
    for (const std::string& resource : seen.facts.rdma) {
      if (IsOfAPolicy(resource, false) && !IsOfAPolicy(resource, true)) others.push_back(resource);
    }
    if (others.empty()) return;
    Find(
        "rail-not-offered", seen.facts.where,
        fmt::format("a pod asks for {}, and the RdmaDevicePolicies that have such resources have other rails",
                    fmt::join(others, ", ")),
        "ask for rails that they have, or add these to `rails` (`kubectl get rdmadevicepolicies -o yaml`); "
        "where "
        "another plugin offers them, --rdma-resource says so");
  }

  Seen See(const PodTemplate& from) const {
    Seen seen;
    seen.from = &from;
    seen.facts.where = from.path;
    seen.facts.pods = from.pods;
    std::set<std::string> rdma;
    AtOnce<CountAtOnce> all;
    for (const char* list : {"initContainers", "containers"}) {
      for (const Json& container : ListOf(At(*from.pod, {"spec", list}))) {
        const std::int64_t gpus = GpusOf(container);
        const bool main = std::string_view(list) == "containers";
        if (main) {
          all.AddMain({gpus});
        } else {
          all.AddInit({gpus}, TextOf(At(container, "restartPolicy")) == "Always");
        }
        if (main && gpus > 0) seen.gpu_containers.push_back(&container);
        const Json& limits = At(container, {"resources", "limits"});
        for (auto limit = limits.begin(); limits.is_object() && limit != limits.end(); ++limit) {
          if (BringsRdma(limit.key()) && CountOf(*limit) > 0) rdma.insert(limit.key());
        }
      }
    }
    seen.facts.gpus = all.Most().count;
    seen.facts.rdma.assign(rdma.begin(), rdma.end());
    return seen;
  }

  // On one node there is NVLink, and no NIC is needed.
  bool SpansNodes() const { return pods_ > 1 && gpus_ > ground_.gpus_per_node; }

  void CheckNode(const Seen& seen) {
    const std::int64_t node = ground_.gpus_per_node, gpus = seen.facts.gpus;
    if (gpus > node) {
      Find("larger-than-node", seen.facts.where,
           fmt::format("a pod asks for {} GPUs, and the largest node has {}", gpus, node),
           fmt::format(
               "ask for at most {} a pod and run more pods; --gpus-per-node says it where nodes have more",
               node));
    } else if (node % gpus != 0) {
      Find(
          "does-not-tile", seen.facts.where,
          fmt::format("a pod asks for {} GPUs, and {} of a node's {} are left over", gpus, node % gpus, node),
          fmt::format("ask for a number that divides {}", node));
    }
  }

  // Devices that come without a resource: claims of a DRA driver, or all of the host's.
  static bool HasThemOtherwise(const Seen& seen) {
    const Json& spec = At(*seen.from->pod, "spec");
    if (ClaimsOtherDevices(spec)) return true;
    for (const Json& volume : ListOf(At(spec, "volumes"))) {
      const std::string path = TextOf(At(volume, {"hostPath", "path"}));
      if (path == "/dev" || path.starts_with("/dev/infiniband")) return true;
    }
    return std::any_of(seen.gpu_containers.begin(), seen.gpu_containers.end(), [](const Json* container) {
      return IsTrue(At(*container, {"securityContext", "privileged"}));
    });
  }

  void CheckRdma(const Seen& seen) {
    const auto& rdma = seen.facts.rdma;
    if (rdma.empty() && SpansNodes() && !HasThemOtherwise(seen)) {
      Find(
          "no-rdma", seen.facts.where,
          fmt::format(
              "{} with {} GPUs in all do not fit a node of {}, and no container of this template asks for "
              "an RDMA device",
              base::Counted(pods_, "pod"), gpus_, ground_.gpus_per_node),
          "add heddle.dev/rdma: \"1\" to the GPU container's limits, or what your RdmaDevicePolicy or device "
          "plugin calls it");
    }
    const bool needs_interface =
        ground_.roce && std::any_of(rdma.begin(), rdma.end(),
                                    [](const std::string& name) { return name != "vpc.amazonaws.com/efa"; });
    for (RdmaPodFault& fault : FindRdmaPodFaults(*seen.from->pod, rdma, needs_interface)) {
      const bool pin = fault.kind == RdmaPodFault::Kind::kMayNotPin;
      Find(pin ? "may-not-pin" : "no-interface", seen.facts.where,
           pin ? std::move(fault.fact) : std::string("no network interface of the NICs is in the pod"),
           std::move(fault.remedy));
    }
    if (!SpansNodes() || Annotation(*seen.from->pod, keys::kParallelism)) return;
    for (const Json* container : seen.gpu_containers) {
      if (CountOf(At(*container, {"resources", "limits", keys::kFabricResource})) > 0) continue;
      Find("no-nccl-file", seen.facts.where,
           fmt::format("container {} has no {}", TextOf(At(*container, "name")), keys::kFabricResource),
           fmt::format("add {}: \"1\" to its limits, or the annotation {} to the template, which brings it",
                       keys::kFabricResource, keys::kParallelism));
    }
  }

  // What is wrong with a container's /dev/shm; empty = nothing.
  static std::string ShmFault(const Json& spec, const Json& container) {
    for (const Json& mount : ListOf(At(container, "volumeMounts"))) {
      if (TextOf(At(mount, "mountPath")) != "/dev/shm") continue;
      for (const Json& volume : ListOf(At(spec, "volumes"))) {
        if (TextOf(At(volume, "name")) != TextOf(At(mount, "name"))) continue;
        const Json& folder = At(volume, "emptyDir");
        if (folder.is_null()) return {};  // the host's, or somebody's own
        if (TextOf(At(folder, "medium")) != "Memory") return "is an emptyDir on disk";
        const std::int64_t limit = BytesOf(At(folder, "sizeLimit"));
        if (limit >= 0 && limit < kEnoughShm) return fmt::format("is limited to {} MiB", limit >> 20);
        return {};
      }
    }
    return "is the runtime's own, of 64 MiB";
  }

  void CheckShm(const Seen& seen) {
    const Json& spec = At(*seen.from->pod, "spec");
    if (IsTrue(At(spec, "hostIPC"))) return;
    for (const Json* container : seen.gpu_containers) {
      if (GpusOf(*container) < 2) continue;
      const std::string fault = ShmFault(spec, *container);
      if (fault.empty()) continue;
      Find("shm-small", seen.facts.where,
           fmt::format("/dev/shm of container {} {}, for {} GPUs", TextOf(At(*container, "name")), fault,
                       GpusOf(*container)),
           "mount an emptyDir {medium: Memory} at /dev/shm, with a sizeLimit of 1Gi or more or none");
    }
  }

  void CheckAnnotations(const Seen& seen) {
    const auto check = [&](std::string_view key, const auto& parse) {
      const auto text = Annotation(*seen.from->pod, key);
      if (!text) return;
      if (const auto parsed = parse(*text); !parsed) {
        Find("annotation-unread", seen.facts.where, fmt::format("{}: {}", key, parsed.error().message),
             fmt::format("mend the annotation {}", key));
      }
    };
    check(keys::kParallelism, [](const std::string& text) { return ParseParallelism(text); });
    check(keys::kModel, [](const std::string& text) { return ParseModel(text); });
    check(keys::kRequire, [](const std::string& text) { return ParseConstraints(text); });
    check(keys::kPrefer, [](const std::string& text) { return ParseConstraints(text); });
    check(keys::kWait, [](const std::string& text) { return ParseWait(text); });
    check(keys::kOnDegraded, [](const std::string& text) { return ParseOnDegraded(text); });
    check(keys::kComputeDomain, [](const std::string& text) { return ParseComputeDomain(text); });
    const Json& annotations = At(*seen.from->pod, {"metadata", "annotations"});
    if (!annotations.is_object()) return;
    for (auto one = annotations.begin(); one != annotations.end(); ++one) {
      if (auto unknown = UnknownAnnotation(one.key()))
        Find("unknown-key", seen.facts.where, *std::move(unknown), "mend its name, or take it away");
    }
  }

  bool IsPod() const { return TextOf(At(object_, "kind")) == "Pod"; }

  // What a pod lacks depends on how far its gang reaches, and not on itself alone.
  void CountGangOfPod() {
    out_.gang_pods = PodsOfGangOfPod();
    pods_ = std::max<std::int64_t>(out_.gang_pods, 1);
    gpus_ = pods_ * seen_.front().facts.gpus;
  }

  // In the order in which the extender asks; 0 where nothing says it.
  std::int64_t PodsOfGangOfPod() const {
    if (PodGroupOf(object_)) return group_.pods;
    for (const char* marks : {"labels", "annotations"}) {
      const std::int64_t said = CountOf(At(object_, {"metadata", marks, keys::kGangSize}));
      if (said > 0) return said;
    }
    return CountOf(At(object_, {"metadata", "annotations", kKueueGroupSize}));
  }

  // A pod that a controller made and that does not say of how many it is one: its Job, which is not here, says that.
  bool IsOfSomebodyElsesGang() const {
    if (!IsPod() || out_.gang_pods > 0) return false;
    const Json& owners = ListOf(At(object_, {"metadata", "ownerReferences"}));
    return std::any_of(owners.begin(), owners.end(),
                       [](const Json& owner) { return IsTrue(At(owner, "controller")); });
  }

  // Most objects are one gang; a LeaderWorkerSet has one for each replica, and of a pod pods_ has its gang's.
  std::int64_t PodsOfGang() const {
    if (TextOf(At(object_, "kind")) != "LeaderWorkerSet") return pods_;
    const std::int64_t said = pods_ / std::max<std::int64_t>(CountOf(At(object_, {"spec", "replicas"})), 1);
    return said > 0 ? said : pods_;
  }

  // What the extender refuses of the Jobs that make a gang. A JobSet's are Indexed by themselves where they do not say
  // it (its defaulting webhook), others are not (batch/v1).
  void CheckJobs() {
    const std::string kind = TextOf(At(object_, "kind"));
    const Json& spec = At(object_, "spec");
    if (kind == "Job") CheckJob("spec.template", spec, false);
    if (kind != "JobSet") return;
    const Json& jobs = ListOf(At(spec, "replicatedJobs"));
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      CheckJob(fmt::format("spec.replicatedJobs[{}].template.spec.template", i),
               At(jobs[i], {"template", "spec"}), true);
    }
  }

  void CheckJob(const std::string& path, const Json& spec, bool indexed_by_itself) {
    const auto seen = std::find_if(seen_.begin(), seen_.end(),
                                   [&path](const Seen& one) { return one.facts.where == path; });
    if (seen == seen_.end() || !Annotation(*seen->from->pod, keys::kParallelism)) return;
    const std::string mode = TextOf(At(spec, "completionMode"));
    if (mode.empty() ? !indexed_by_itself : mode != "Indexed") {
      Find("no-ranks", path,
           mode.empty() ? std::string("completionMode is not set, which is NonIndexed")
                        : fmt::format("completionMode is {}", mode),
           "set completionMode: Indexed beside its parallelism");
    }
    const Json &completions = At(spec, "completions"), &parallelism = At(spec, "parallelism");
    if (completions.is_null() && parallelism.is_null()) return;  // one pod
    const std::int64_t at_a_time = parallelism.is_null() ? 1 : CountOf(parallelism);
    if (!completions.is_null() && CountOf(completions) == at_a_time) return;
    unequal_ = true;
    Find("not-at-once", path,
         fmt::format("completions is {} and parallelism {}",
                     completions.is_null() ? "not set" : std::to_string(CountOf(completions)), at_a_time),
         "set both to the number of pods of the gang");
  }

  // The pods of an owner are one gang, whatever its templates: the first annotation speaks for it.
  void CheckParallelism() {
    if (unequal_) return;  // how many pods it is to have, nobody knows
    for (const Seen& seen : seen_) {
      const auto text = Annotation(*seen.from->pod, keys::kParallelism);
      const auto parallelism =
          text ? ParseParallelism(*text)
               : base::Result<placement::Parallelism>(base::Fail(base::Code::kNotFound, ""));
      if (!parallelism) continue;
      const bool equal = std::all_of(seen_.begin(), seen_.end(), [&seen](const Seen& other) {
        return other.facts.gpus == seen.facts.gpus;
      });
      if (!equal) {
        Find("not-its-gpus", seen.facts.where, "its pods ask for different numbers of GPUs",
             "give each pod of a gang the same number");
      } else if (const auto group = PodGroupOf(object_); group && !group_.asks_for_gang) {
        Find("no-gang", seen.facts.where,
             fmt::format("PodGroup {} has no spec.schedulingPolicy.gang", group->name),
             "set spec.schedulingPolicy.gang.minCount to the number of its pods");
      } else if (group ? group_.pods == 0 : IsOfSomebodyElsesGang()) {
        return;
      } else if (const std::int64_t pods = PodsOfGang();
                 pods > kMaxPods || seen.facts.gpus > kMaxGpusPerPod) {
        Find("not-its-gpus", seen.facts.where,
             fmt::format("a gang has at most {} pods of {} GPUs", kMaxPods, kMaxGpusPerPod),
             "make it smaller, or several gangs");
      } else if (const auto fits = CheckWorld(*parallelism, int(pods), int(seen.facts.gpus)); !fits) {
        Find("not-its-gpus", seen.facts.where, fits.error().message,
             fmt::format("change {}, the number of pods, or the GPUs of a pod", keys::kParallelism));
      }
      return;
    }
  }

  void CheckRetries() {
    if (seen_.empty() || pods_ < 2) return;
    const std::string kind = TextOf(At(object_, "kind"));
    const Json& spec = At(object_, "spec");
    if (kind == "JobSet") return CheckRestarts(spec);
    const std::string path = kind == "Job" ? "spec.backoffLimit" : "spec.runPolicy.backoffLimit";
    const Json& limit = kind == "Job" ? At(spec, "backoffLimit") : At(spec, {"runPolicy", "backoffLimit"});
    if (limit != 0) return;
    for (const Json& rule : ListOf(At(spec, {"podFailurePolicy", "rules"}))) {
      if (TextOf(At(rule, "action")) == "Ignore" && !ListOf(At(rule, "onPodConditions")).empty()) return;
    }
    Find("no-retry", "", fmt::format("{} is 0, and it has {} pods", path, pods_),
         kind == "Job" ? "set a backoffLimit, or a podFailurePolicy with action: Ignore for DisruptionTarget"
                       : "set a backoffLimit");
  }

  // A JobSet starts all of its Jobs again where one has failed.
  void CheckRestarts(const Json& spec) {
    if (CountOf(At(spec, {"failurePolicy", "maxRestarts"})) > 0) return;
    const Json& jobs = ListOf(At(spec, "replicatedJobs"));
    const bool fails_at_once = std::any_of(jobs.begin(), jobs.end(), [](const Json& job) {
      return At(job, {"template", "spec", "backoffLimit"}) == 0;
    });
    if (!fails_at_once) return;
    Find("no-retry", "",
         fmt::format(
             "a Job of it has backoffLimit 0 and it has no restarts: the first of its {} pods that is lost "
             "ends it",
             pods_),
         "set spec.failurePolicy.maxRestarts, or a backoffLimit");
  }

  // What a TrainJob's pods are like stands in its runtime, and only that they have no GPUs may stand in it alone.
  void CheckRuntime() {
    if (!IsTrainJob(object_)) return;
    const Json& resources = At(object_, {"spec", "trainer", "resourcesPerNode"});
    if (At(resources, "limits").is_object() && GpusOf(Json{{"resources", resources}}) == 0) return;
    const RuntimeRef runtime = RuntimeOf(object_);
    const std::string ns = TextOf(At(object_, {"metadata", "namespace"})),
                      name = TextOf(At(object_, {"metadata", "name"}));
    Find("not-looked-at", "",
         fmt::format("its pods are made from {} {}, which is not here", runtime.kind, runtime.name),
         fmt::format("give the runtime as well (`kubectl get {} {}{} -o yaml`), or create the TrainJob: then "
                     "`kubectl heddle check trainjob/{}{}` looks at it",
                     base::LowerCase(runtime.kind), runtime.name, InNamespace(runtime.ns), name,
                     InNamespace(ns)));
  }

  static std::string InNamespace(const std::string& ns) { return ns.empty() ? "" : " -n " + ns; }

  const Json& object_;
  const WorkloadGround& ground_;
  const PodGroupFacts& group_;  // of a Pod that names one
  std::vector<PodTemplate> templates_;
  std::vector<Seen> seen_;
  std::int64_t pods_ = 0, gpus_ = 0;  // of all templates; of a Pod those of its gang
  bool unequal_ = false;              // a Job of the gang has other completions than parallelism
  CheckedWorkload out_;
};

}  // namespace

std::span<const WorkloadRule> WorkloadRules() {
  return kRules;
}

bool IsRdmaResource(std::string_view name) {
  if (name == keys::kFabricResource) return false;
  for (const std::string_view prefix : {"heddle.dev/", "rdma/", "vpc.amazonaws.com/efa",
                                        "networking.gke.io.networks/", "openshift.io/", "mellanox.com/"}) {
    if (name.starts_with(prefix)) return true;
  }
  if (!name.starts_with("nvidia.com/") && !name.starts_with("intel.com/")) return false;
  for (const std::string_view part : {"hostdev", "rdma", "roce", "sriov", "mlnx"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

CheckedWorkload CheckWorkload(const Json& object, const WorkloadGround& ground, const PodGroupFacts& group) {
  return Checking(object, ground, group).Run();
}

}  // namespace heddle::crds
