#include "crds/train_job.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "crds/json_at.h"

namespace heddle::crds {
namespace {

constexpr std::string_view kStep = "trainer.kubeflow.org/trainjob-ancestor-step";
constexpr std::string_view kNodeJob = "node";  // with MPI, the job of the workers

// An object there, made where there is none.
Json& ObjectAt(Json& json, std::initializer_list<const char*> path) {
  Json* at = &json;
  for (const char* key : path) {
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[key];
  }
  if (!at->is_object()) *at = Json::object();
  return *at;
}

// By what the items of a list are told apart, as core/v1 has it (patchMergeKey); empty = the list is replaced whole.
std::string_view MergeKey(std::string_view list) {
  if (list == "volumeMounts") return "mountPath";
  for (const std::string_view one :
       {"volumes", "initContainers", "containers", "env", "schedulingGates", "imagePullSecrets"}) {
    if (list == one) return "name";
  }
  return "";
}

// A strategic merge patch of Kubernetes, as far as a TrainJob may change a pod template.
void Merge(Json& into, const Json& patch, std::string_view field) {
  const std::string_view key = MergeKey(field);
  if (patch.is_object()) {
    if (!into.is_object()) into = Json::object();
    for (auto one = patch.begin(); one != patch.end(); ++one) {
      if (!one->is_null()) Merge(into[one.key()], *one, one.key());
    }
  } else if (patch.is_array() && into.is_array() && !key.empty()) {
    for (const Json& item : patch) {
      const std::string name = TextOf(At(item, key));
      const auto same = std::find_if(into.begin(), into.end(),
                                     [&](const Json& one) { return TextOf(At(one, key)) == name; });
      if (name.empty() || same == into.end()) {
        into.push_back(item);
      } else {
        Merge(*same, item, "");
      }
    }
  } else {
    into = patch;
  }
}

void MergePod(Json& pod, const Json& patch) {
  for (const char* field : {"labels", "annotations"}) {
    const Json& more = At(patch, {"metadata", field});
    if (more.is_object()) Merge(ObjectAt(pod, {"metadata", field}), more, field);
  }
  const Json& spec = At(patch, "spec");
  if (spec.is_object()) Merge(ObjectAt(pod, {"spec"}), spec, "spec");
}

std::int64_t Number(const Json& value, std::int64_t absent) {
  return value.is_number_integer() ? value.get<std::int64_t>() : absent;
}

bool IsOfTrainer(const Json& job) {
  return TextOf(At(job, {"template", "metadata", "labels", kStep})) == "trainer";
}

bool LauncherIsNode(const Json& runtime) {
  return IsTrue(At(runtime, {"spec", "mlPolicy", "mpi", "runLauncherAsNode"}));
}

// How many pods a job of the runtime has. `first`: no job of the trainer's came before it.
std::int64_t PodsOf(const Json& train_job, const Json& runtime, const Json& job, bool first) {
  const Json& policy = At(runtime, {"spec", "mlPolicy"});
  const bool trains = IsOfTrainer(job);
  const Json& usual =
      trains && policy.is_object() ? At(policy, "numNodes") : At(job, {"template", "spec", "parallelism"});
  const bool mpi = At(policy, "mpi").is_object();
  const Json& nodes = At(train_job, {"spec", "trainer", "numNodes"});
  const bool says =
      nodes.is_number_integer() && (mpi ? TextOf(At(job, "name")) == kNodeJob : trains && first);
  if (!says) return std::max<std::int64_t>(Number(usual, 1), 1);
  // The launcher is one of the nodes then.
  return mpi && LauncherIsNode(runtime) ? std::max<std::int64_t>(Number(nodes, 1), 2) - 1 : Number(nodes, 1);
}

}  // namespace

bool IsTrainJob(const Json& object) {
  return TextOf(At(object, "kind")) == "TrainJob";
}

bool IsTrainingRuntime(const Json& object) {
  const std::string kind = TextOf(At(object, "kind"));
  return kind == "TrainingRuntime" || kind == "ClusterTrainingRuntime";
}

RuntimeRef RuntimeOf(const Json& train_job) {
  RuntimeRef ref{TextOf(At(train_job, {"spec", "runtimeRef", "kind"})),
                 TextOf(At(train_job, {"spec", "runtimeRef", "name"})), ""};
  if (ref.kind.empty()) ref.kind = "ClusterTrainingRuntime";
  if (ref.kind == "TrainingRuntime") ref.ns = TextOf(At(train_job, {"metadata", "namespace"}));
  return ref;
}

bool Names(const Json& train_job, const Json& runtime) {
  const RuntimeRef ref = RuntimeOf(train_job);
  if (TextOf(At(runtime, "kind")) != ref.kind || TextOf(At(runtime, {"metadata", "name"})) != ref.name)
    return false;
  const std::string ns = TextOf(At(runtime, {"metadata", "namespace"}));
  return ref.ns.empty() || ns.empty() || ref.ns == ns;
}

Json JobSetOf(const Json& train_job, const Json& runtime) {
  Json set{{"apiVersion", "jobset.x-k8s.io/v1alpha2"}, {"kind", "JobSet"}};
  for (const char* field : {"name", "namespace"}) {
    const Json& said = At(train_job, {"metadata", field});
    if (said.is_string()) set["metadata"][field] = said;
  }
  set["spec"] = At(runtime, {"spec", "template", "spec"});
  if (!At(set, {"spec", "replicatedJobs"}).is_array()) return set;
  const Json& resources = At(train_job, {"spec", "trainer", "resourcesPerNode"});
  bool first = true;
  for (Json& job : set["spec"]["replicatedJobs"]) {
    if (!job.is_object()) continue;
    const bool trains = IsOfTrainer(job);
    const std::int64_t pods = PodsOf(train_job, runtime, job, first);
    const bool takes = TakesTrainerResources(train_job, runtime, job);
    Json& pod = ObjectAt(job, {"template", "spec", "template"});
    for (const Json* patch : PodPatchesOf(train_job, TextOf(At(job, "name")))) MergePod(pod, *patch);
    Json& containers = ObjectAt(pod, {"spec"})["containers"];
    for (std::size_t i = 0; takes && containers.is_array() && i < containers.size(); ++i) {
      if (TextOf(At(containers[i], "name")) == kTrainerContainer) containers[i]["resources"] = resources;
    }
    Json& spec = ObjectAt(job, {"template", "spec"});
    spec["parallelism"] = pods;
    spec["completions"] = pods;
    if (trains) job["replicas"] = 1;
    first = first && !trains;
  }
  return set;
}

std::vector<const Json*> PodPatchesOf(const Json& train_job, const std::string& job) {
  std::vector<const Json*> patches;
  for (const Json& one : ListOf(At(train_job, {"spec", "podTemplateOverrides"}))) {
    const Json& targets = ListOf(At(one, "targetJobs"));
    const bool meant = std::any_of(targets.begin(), targets.end(),
                                   [&job](const Json& target) { return TextOf(At(target, "name")) == job; });
    if (meant) patches.push_back(&one);
  }
  for (const Json& one : ListOf(At(train_job, {"spec", "runtimePatches"}))) {
    const Json& jobs = ListOf(At(one, {"trainingRuntimeSpec", "template", "spec", "replicatedJobs"}));
    for (const Json& target : jobs) {
      const Json& pod = At(target, {"template", "spec", "template"});
      if (TextOf(At(target, "name")) == job && pod.is_object()) patches.push_back(&pod);
    }
  }
  return patches;
}

bool TakesTrainerResources(const Json& train_job, const Json& runtime, const Json& job) {
  const Json& resources = At(train_job, {"spec", "trainer", "resourcesPerNode"});
  if (!At(resources, "limits").is_object() && !At(resources, "requests").is_object()) return false;
  return IsOfTrainer(job) || (LauncherIsNode(runtime) && TextOf(At(job, "name")) == kNodeJob);
}

}  // namespace heddle::crds
