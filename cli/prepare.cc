#include "cli/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/lower_case.h"
#include "base/nearest_word.h"
#include "cli/object_documents.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "crds/pod_annotations.h"
#include "crds/pod_templates.h"
#include "crds/train_job.h"
#include "crds/yaml.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using crds::Json;

bool AsksForGpu(const Json& container, const std::vector<std::string>& gpu_resources) {
  for (const char* list : {"limits", "requests"}) {
    const Json* amounts = kube::Find(container, {"resources", list});
    if (amounts == nullptr || !amounts->is_object()) continue;
    for (const std::string& name : gpu_resources) {
      if (amounts->contains(name) && crds::CountOf((*amounts)[name]) > 0) return true;
    }
  }
  return false;
}

Json* FirstWithGpu(Json& spec, const char* list, const std::vector<std::string>& gpu_resources) {
  if (!spec.contains(list) || !spec[list].is_array()) return nullptr;
  for (Json& container : spec[list]) {
    if (AsksForGpu(container, gpu_resources)) return &container;
  }
  return nullptr;
}

// As the match conditions of heddle-gang have it.
bool IsRouted(const Json& spec) {
  const std::string scheduler = kube::StringAt(spec, {"schedulerName"});
  return (scheduler.empty() || scheduler == "default-scheduler" || scheduler == keys::kSchedulerName) &&
         kube::StringAt(spec, {"nodeName"}).empty();
}

void AddGate(Json& spec) {
  if (!spec.contains("schedulingGates") || !spec["schedulingGates"].is_array())
    spec["schedulingGates"] = Json::array();
  Json& gates = spec["schedulingGates"];
  const bool there = std::any_of(gates.begin(), gates.end(), [](const Json& gate) {
    return kube::StringAt(gate, {"name"}) == keys::kGangGate;
  });
  if (!there) gates.push_back({{"name", std::string(keys::kGangGate)}});
}

void AskForFabric(Json& resources) {
  for (const char* list : {"limits", "requests"}) {
    if (!resources[list].is_object()) resources[list] = Json::object();
    resources[list][std::string(keys::kFabricResource)] = "1";
  }
}

bool PrepareTemplate(Json& pod, const std::vector<std::string>& gpu_resources, bool without_fabric) {
  if (!pod.contains("spec") || !pod["spec"].is_object()) return false;
  Json& spec = pod["spec"];
  Json* worker = FirstWithGpu(spec, "containers", gpu_resources);
  const bool asks = worker != nullptr || FirstWithGpu(spec, "initContainers", gpu_resources) != nullptr;
  if (!asks || !IsRouted(spec)) return false;
  const Json before = pod;
  spec["schedulerName"] = std::string(keys::kSchedulerName);
  if (kube::Annotation(pod, keys::kParallelism)) {
    AddGate(spec);
    if (worker != nullptr && !without_fabric) AskForFabric((*worker)["resources"]);
  }
  return pod != before;
}

// What is found in an object of ours is ours to change; null = there is none.
Json* FindOurs(Json& object, kube::Path path) {
  return const_cast<Json*>(kube::Find(object, path));  // NOLINT
}

// The gate goes where the annotation stands: another TrainJob of the runtime may have none, and waits for nothing.
void AddGateBeside(Json& train_job, const std::string& job, Json& pod) {
  if (kube::Annotation(pod, keys::kParallelism)) return AddGate(pod["spec"]);
  for (const Json* patch : crds::PodPatchesOf(train_job, job)) {
    if (!kube::Annotation(*patch, keys::kParallelism)) continue;
    Json& spec = const_cast<Json&>(*patch)["spec"];  // NOLINT: it is in `train_job`
    if (!spec.is_object()) spec = Json::object();
    return AddGate(spec);
  }
}

// The resource goes where the GPUs stand.
void AskForFabricBeside(Json& train_job, const Json& runtime, const Json& job, const std::string& container,
                        Json& pod) {
  if (container == crds::kTrainerContainer && crds::TakesTrainerResources(train_job, runtime, job))
    return AskForFabric(train_job["spec"]["trainer"]["resourcesPerNode"]);
  Json* containers = FindOurs(pod, {"spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return;
  for (Json& one : *containers) {
    Json* resources = FindOurs(one, {"resources"});
    if (resources != nullptr && resources->is_object() && kube::StringAt(one, {"name"}) == container)
      AskForFabric(*resources);
  }
}

}  // namespace

std::size_t PrepareObject(Json& object, const std::vector<std::string>& gpu_resources, bool without_fabric) {
  std::size_t changed = 0;
  for (const crds::PodTemplate& one : crds::PodTemplatesOf(object)) {
    // They point into `object`, which is ours to change; the vector is not looked at by position again.
    if (PrepareTemplate(const_cast<Json&>(*one.pod), gpu_resources, without_fabric)) ++changed;  // NOLINT
  }
  return changed;
}

std::size_t PrepareTrainJob(Json& train_job, Json& runtime, const std::vector<std::string>& gpu_resources,
                            bool without_fabric) {
  const Json made = crds::JobSetOf(train_job, runtime);
  const Json& jobs = kube::ArrayAt(made, {"spec", "replicatedJobs"});
  std::size_t changed = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    // Job for job as the runtime has them.
    Json* pod = FindOurs((*FindOurs(runtime, {"spec", "template", "spec", "replicatedJobs"}))[i],
                         {"template", "spec", "template"});
    const Json* merged = kube::Find(jobs[i], {"template", "spec", "template"});
    if (pod == nullptr || merged == nullptr || kube::Find(*pod, {"spec"}) == nullptr) continue;
    Json wanted = *merged;
    if (!(*pod)["spec"].is_object() || !PrepareTemplate(wanted, gpu_resources, without_fabric)) continue;
    ++changed;
    (*pod)["spec"]["schedulerName"] = std::string(keys::kSchedulerName);
    if (!kube::Annotation(wanted, keys::kParallelism)) continue;
    AddGateBeside(train_job, kube::StringAt(jobs[i], {"name"}), *pod);
    const Json* worker = FirstWithGpu(wanted["spec"], "containers", gpu_resources);
    if (worker != nullptr && !without_fabric)
      AskForFabricBeside(train_job, runtime, jobs[i], kube::StringAt(*worker, {"name"}), *pod);
  }
  return changed;
}

namespace {

// A manifest is prepared whatever its annotations are; Heddle refuses those that it does not know later, at the gang.
void NoteUnknownAnnotations(const Json& object, const Json& pod, std::set<std::string>& misspelt) {
  for (const auto& [name, value] : kube::Annotations(pod)) {
    const auto unknown = crds::UnknownAnnotation(name);
    if (!unknown) continue;
    misspelt.insert(WithoutControls(fmt::format("Note: {} {}: {}", kube::StringAt(object, {"kind"}),
                                                kube::KeyOf(object).ToString(), *unknown)) +
                    "\n");
  }
}

void NoteUnknownAnnotations(const std::vector<Json>& objects, std::set<std::string>& misspelt) {
  for (const Json& object : objects) {
    for (const crds::PodTemplate& one : crds::PodTemplatesOf(object))
      NoteUnknownAnnotations(object, *one.pod, misspelt);
    if (!crds::IsTrainJob(object)) continue;
    for (const Json& runtime : objects) {
      if (!crds::IsTrainingRuntime(runtime) || !crds::Names(object, runtime)) continue;
      for (const Json& job : kube::ArrayAt(runtime, {"spec", "template", "spec", "replicatedJobs"})) {
        for (const Json* patch : crds::PodPatchesOf(object, kube::StringAt(job, {"name"})))
          NoteUnknownAnnotations(object, *patch, misspelt);
      }
    }
  }
}

// Of the TrainJobs whose runtime is among the objects; a note for each of the others.
std::size_t PrepareTrainJobs(std::vector<Json>& objects, const PrepareOptions& options, std::string& notes) {
  std::size_t changed = 0;
  for (Json& object : objects) {
    if (!crds::IsTrainJob(object)) continue;
    const auto runtime = std::find_if(objects.begin(), objects.end(), [&object](const Json& one) {
      return crds::IsTrainingRuntime(one) && crds::Names(object, one);
    });
    if (runtime != objects.end()) {
      changed += PrepareTrainJob(object, *runtime, options.gpu_resources, options.without_fabric);
      continue;
    }
    const crds::RuntimeRef ref = crds::RuntimeOf(object);
    notes +=
        WithoutControls(fmt::format(
            "Note: TrainJob {} stays as it is: its pods are made from {} {}, which is not here; give that as "
            "well (kubectl get {} {}{} -o yaml)",
            kube::KeyOf(object).ToString(), ref.kind, ref.name, base::LowerCase(ref.kind), ref.name,
            ref.ns.empty() ? "" : " -n " + ref.ns)) +
        "\n";
  }
  return changed;
}

}  // namespace

base::Status CheckWords(const PrepareOptions& options) {
  for (const std::string& name : options.gpu_resources) {
    if (crds::IsGpuResource(name)) continue;
    return base::Fail(
        base::Code::kInvalid,
        fmt::format("--gpu-resource \"{}\": write {}, as it stands in a container's limits; Heddle "
                    "takes nothing else for a GPU, and a gang that asks for it would wait for ever",
                    name, base::OneOf({crds::kGpuResources.begin(), crds::kGpuResources.end()})));
  }
  return {};
}

Output Prepare(const PrepareOptions& options, const ReadFile& read, const OutputOptions& look) {
  if (const base::Status known = CheckWords(options); !known) return Failure(known.error());
  std::vector<Json> objects;
  std::size_t changed = 0;
  for (const std::string& file : options.files) {
    const auto text = read(file);
    if (!text) return Failure({base::Code::kInvalid, text.error().message, std::nullopt});
    if (const base::Status readable = IsText(file, *text, "Kubernetes objects"); !readable)
      return Failure(readable.error());
    const auto done = ForEachObject(*text, nullptr, [&](const Json& object) -> base::Status {
      Json copy = object;
      changed += PrepareObject(copy, options.gpu_resources, options.without_fabric);
      objects.push_back(std::move(copy));
      return {};
    });
    if (!done) {
      return Failure({base::Code::kInvalid, InputName(file) + ": " + done.error().message, std::nullopt});
    }
  }
  std::string notes;
  changed += PrepareTrainJobs(objects, options, notes);
  std::set<std::string> misspelt;
  NoteUnknownAnnotations(objects, misspelt);
  Output output;
  if (look.format == Format::kJson) {
    output.out = Printed({{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}, look.format);
  } else {
    for (const Json& object : objects) {
      output.out += (output.out.empty() ? "" : "---\n") + Printed(object, Format::kYaml);
    }
  }
  for (const std::string& note : misspelt) output.err += note;
  output.err += notes;
  if (changed > 0) {
    output.err += "Prepared " + base::Counted(changed, "pod template") + ".\n";
  } else if (notes.empty()) {
    output.err +=
        "Note: nothing was changed: no pod template asks for a GPU and is for Heddle's scheduler, or "
        "all were prepared already\n";
  }
  return output;
}

}  // namespace heddle::cli
