#include "cli/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/object_documents.h"
#include "crds/keys.h"
#include "crds/pod_templates.h"
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

bool PrepareTemplate(Json& pod, const std::vector<std::string>& gpu_resources) {
  if (!pod.contains("spec") || !pod["spec"].is_object()) return false;
  Json& spec = pod["spec"];
  Json* worker = FirstWithGpu(spec, "containers", gpu_resources);
  const bool asks = worker != nullptr || FirstWithGpu(spec, "initContainers", gpu_resources) != nullptr;
  if (!asks || !IsRouted(spec)) return false;
  const Json before = pod;
  spec["schedulerName"] = std::string(keys::kSchedulerName);
  if (kube::Annotation(pod, keys::kParallelism)) {
    AddGate(spec);
    for (const char* list : {"limits", "requests"}) {
      if (worker == nullptr) break;
      (*worker)["resources"][list][std::string(keys::kFabricResource)] = "1";
    }
  }
  return pod != before;
}

}  // namespace

std::size_t PrepareObject(Json& object, const std::vector<std::string>& gpu_resources) {
  std::size_t changed = 0;
  for (const crds::PodTemplate& one : crds::PodTemplatesOf(object)) {
    // They point into `object`, which is ours to change; the vector is not looked at by position again.
    if (PrepareTemplate(const_cast<Json&>(*one.pod), gpu_resources)) ++changed;  // NOLINT
  }
  return changed;
}

Output Prepare(const PrepareOptions& options, const ReadFile& read, const OutputOptions& look) {
  std::vector<Json> objects;
  std::size_t changed = 0;
  for (const std::string& file : options.files) {
    const auto text = read(file);
    if (!text) return Failure({base::Code::kInvalid, text.error().message, std::nullopt});
    const auto done = ForEachObject(*text, nullptr, [&](const Json& object) -> base::Status {
      Json copy = object;
      changed += PrepareObject(copy, options.gpu_resources);
      objects.push_back(std::move(copy));
      return {};
    });
    if (!done) {
      return Failure({base::Code::kInvalid, file + ": " + done.error().message, std::nullopt});
    }
  }
  Output output;
  if (look.format == Format::kJson) {
    output.out = Printed({{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}, look.format);
  } else {
    for (const Json& object : objects) {
      output.out += (output.out.empty() ? "" : "---\n") + Printed(object, Format::kYaml);
    }
  }
  output.err =
      changed > 0
          ? fmt::format("Prepared {} pod template{}.\n", changed, changed == 1 ? "" : "s")
          : "Note: nothing was changed: no pod template asks for a GPU and is for Heddle's scheduler, or "
            "all were prepared already\n";
  return output;
}

}  // namespace heddle::cli
