#include "extender/release_patch.h"

#include <algorithm>

#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "extender/pod_facts.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;

constexpr const char* kHard = "requiredDuringSchedulingIgnoredDuringExecution";
const std::string kAffinity = "/spec/affinity";
const std::string kNodeAffinity = kAffinity + "/nodeAffinity";
const std::string kRequired = kNodeAffinity + "/" + kHard;
const std::string kTerms = kRequired + "/nodeSelectorTerms";

kube::Json Op(const char* op, std::string path, kube::Json value) {
  return {{"op", op}, {"path", std::move(path)}, {"value", std::move(value)}};
}

// matchFields takes exactly one value per expression, so several nodes are several terms.
kube::Json NameIs(const std::string& node) {
  return {{"key", "metadata.name"}, {"operator", "In"}, {"values", kube::Json::array({node})}};
}

const kube::Json& Terms(const kube::Json& pod) {
  return kube::ArrayAt(pod, {"spec", "affinity", "nodeAffinity", kHard, "nodeSelectorTerms"});
}

bool Present(const kube::Json& pod, kube::Path path) {
  const kube::Json* value = kube::Find(pod, path);
  return value != nullptr && !value->is_null();
}

void NarrowTerms(const kube::Json& terms, const std::string& node, kube::Json& patch) {
  // The terms are addressed by index: if somebody changed them since, the patch must fail.
  patch.push_back(Op("test", kTerms, terms));
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::string path = kTerms + "/" + std::to_string(i) + "/matchFields";
    if (!kube::ArrayAt(terms[i], {"matchFields"}).empty()) {
      patch.push_back(Op("add", path + "/-", NameIs(node)));
    } else if (!kube::ArrayAt(terms[i], {"matchExpressions"}).empty()) {
      patch.push_back(Op("add", path, kube::Json::array({NameIs(node)})));
    }
  }
}

void AddTerms(const kube::Json& pod, const Slot& slot, kube::Json& patch) {
  if (!Present(pod, {"spec", "affinity"})) patch.push_back(Op("add", kAffinity, kube::Json::object()));
  if (!Present(pod, {"spec", "affinity", "nodeAffinity"})) {
    patch.push_back(Op("add", kNodeAffinity, kube::Json::object()));
  }
  kube::Json terms = kube::Json::array({{{"matchFields", kube::Json::array({NameIs(slot.node)})}}});
  if (TakesSubstitutes(pod)) {
    for (const std::string& node : slot.substitutes) {
      terms.push_back({{"matchFields", kube::Json::array({NameIs(node)})}});
    }
  }
  patch.push_back(Op("add", kRequired, {{"nodeSelectorTerms", std::move(terms)}}));
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void Annotate(const kube::Json& pod, const Slot& slot, bool substitutes, kube::Json& patch) {
  if (!Present(pod, {"metadata", "annotations"})) {
    patch.push_back(Op("add", "/metadata/annotations", kube::Json::object()));
  }
  const auto add = [&patch](std::string_view key, std::string value) {
    std::string escaped(key);
    for (std::size_t at = 0; (at = escaped.find('/', at)) != std::string::npos; at += 2)
      escaped.replace(at, 1, "~1");
    patch.push_back(Op("add", "/metadata/annotations/" + escaped, std::move(value)));
  };
  add(keys::kRank, std::to_string(slot.rank));
  add(keys::kGpus, crds::FormatGpuIndexes(slot.gpus));
  add(keys::kNics, Join(slot.nics));
  add(keys::kGangUid, slot.gang_uid);
  add(keys::kEpoch, std::to_string(slot.epoch));
  add(keys::kNode, slot.node);
  add(keys::kSubstitutes, substitutes ? Join(slot.substitutes) : "");
}

}  // namespace

bool TakesSubstitutes(const kube::Json& pod) {
  return Terms(pod).empty() && kube::StringAt(pod, {"spec", "schedulerName"}) == keys::kSchedulerName;
}

std::vector<const topology::Nic*> PlannedNics(const topology::Node& node, std::uint32_t gpus) {
  std::vector<const topology::Nic*> nics;
  const std::vector<std::vector<int>> dealt = topology::DealNics(node);
  for (std::size_t at = 0; at < node.gpus.size(); ++at) {
    const int index = node.gpus[at].index;
    if (index < 0 || index > 31 || (gpus >> unsigned(index) & 1u) == 0 || dealt[at].empty()) continue;
    const topology::Nic* nic = &node.nics[std::size_t(dealt[at].front())];
    if (std::find(nics.begin(), nics.end(), nic) == nics.end()) nics.push_back(nic);
  }
  return nics;
}

base::Result<kube::Json> ReleasePatch(const kube::Json& pod, const Slot& slot) {
  const kube::Json& gates = kube::ArrayAt(pod, {"spec", "schedulingGates"});
  std::size_t gate = 0;
  while (gate < gates.size() && kube::StringAt(gates[gate], {"name"}) != keys::kGangGate) ++gate;
  if (gate == gates.size()) {
    return base::Fail(base::Code::kInvalid,
                      "pod " + kube::Name(pod) + " has no gate " + std::string(keys::kGangGate));
  }
  const std::string path = "/spec/schedulingGates/" + std::to_string(gate);
  kube::Json patch = kube::Json::array();
  patch.push_back(Op("test", "/metadata/uid", kube::Uid(pod)));
  patch.push_back(Op("test", path + "/name", keys::kGangGate));
  if (Terms(pod).empty()) {
    AddTerms(pod, slot, patch);
  } else {
    NarrowTerms(Terms(pod), slot.node, patch);
  }
  Annotate(pod, slot, TakesSubstitutes(pod), patch);
  patch.push_back({{"op", "remove"}, {"path", path}});
  return patch;
}

kube::Json MovePatch(const kube::Json& pod, const Slot& slot) {
  kube::Json patch = kube::Json::array();
  patch.push_back(Op("test", "/metadata/uid", kube::Uid(pod)));
  patch.push_back(Op("test", "/metadata/resourceVersion", kube::ResourceVersion(pod)));
  Annotate(pod, slot, true, patch);
  return patch;
}

}  // namespace heddle::extender
