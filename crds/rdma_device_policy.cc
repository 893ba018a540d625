#include "crds/rdma_device_policy.h"

#include <algorithm>
#include <charconv>

#include "crds/codec.h"
#include "crds/devices_codec.h"
#include "crds/keys.h"

namespace heddle::crds {
namespace {

using codec::Field;

constexpr std::int64_t kMaxCount = 10'000'000;
// The SR-IOV plugin listens at /var/lib/kubelet/plugins_registry/<domain>_<name>.sock (NewResourceServer of its
// pkg/resources/server.go, v3.11), and sun_path holds 107 characters.
constexpr std::size_t kMaxSriovName = 68;

// A rail as names have it: no sign, no 0 in front; -1 = it is none.
int RailOf(std::string_view digits) {
  if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return -1;
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  int rail = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rail);
  return error == std::errc() && rail <= topology::kMaxRail ? rail : -1;
}

RdmaResource ReadResource(const Field& field) {
  RdmaResource resource;
  const Field name = field("name");
  resource.name = codec::ReadResourceName(name, true);
  if (resource.name == keys::kFabricResource)
    name.Refuse("every node offers heddle.dev/fabric; it cannot be given NICs by a policy");
  resource.roles = field("roles").List(3, [](const Field& item) {
    return item.Word(topology::ParseNicRole, "compute, storage, management", topology::NicRole::kCompute);
  });
  resource.rails = field("rails").Ints<int>(topology::kMaxRail + 1, 0, topology::kMaxRail);
  resource.slots = field("slots").Int(1, kMaxSlots, 1);
  return resource;
}

// What the schema says by CEL, for those who read without a server.
void RefuseContradictions(const RdmaDevicePolicySpec& spec, const Field& field) {
  const Field plugin = field("plugin");
  if (spec.plugin != DevicePlugin::kHeddle && spec.mode != DeviceMode::kNics)
    plugin.Refuse("other plugins know no GPU and no plan: they go with mode Nics");
  const Field resources = field("resources");
  for (std::size_t i = 0; i < spec.resources.size(); ++i) {
    const RdmaResource& resource = spec.resources[i];
    if (i > 0 && spec.resources[i - 1].name == resource.name)
      resources.Refuse(resource.name + " stands twice");
    if (spec.mode != DeviceMode::kNics && resource.slots != 1)
      resources.Refuse(resource.name +
                       ": slots go with mode Nics; a GPU and a whole node are held by one pod");
    if (spec.mode == DeviceMode::kWholeNode && RailStemOf(resource.name))
      resources.Refuse(resource.name + ": a whole node has all of its rails; {rail} goes with other modes");
    // validResourceName of k8s-rdma-shared-dev-plugin, pkg/resources/resources_manager.go: ^[a-zA-Z0-9_]+$, in v1.5.3
    // and on its master of April 2026. ValidResourceName of sriov-network-device-plugin, pkg/utils/utils.go:
    // ^[a-zA-Z0-9_-]+$ since v3.6.0 (May 2023, its pull request 481), on its master of June 2026 as well.
    const std::size_t slash = resource.name.find('/');
    const bool sriov = spec.plugin == DevicePlugin::kSriov;
    if (spec.plugin != DevicePlugin::kHeddle &&
        resource.name.find_first_of(sriov ? "." : "-.", slash == std::string::npos ? 0 : slash) !=
            std::string::npos)
      resources.Refuse(resource.name +
                       (sriov ? ": the SR-IOV plugin takes letters, digits, _ and - after the slash"
                              : ": the shared plugin takes letters, digits and _ after the slash"));
    if (sriov && resource.name.size() > kMaxSriovName)
      resources.Refuse(resource.name +
                       ": the SR-IOV plugin makes a socket of domain and name, whose path would be too long: "
                       "take 68 characters at most");
    if (spec.plugin == DevicePlugin::kSriov && resource.slots != 1)
      resources.Refuse(resource.name + ": the SR-IOV plugin gives a device to one pod only; leave slots out");
  }
}

DeviceCounts ReadCounts(const Field& field) {
  DeviceCounts counts;
  counts.nodes = field("nodes").Int(0, kMaxCount);
  counts.ready = field("ready").Int(0, kMaxCount);
  counts.waiting = field("waiting").Int(0, kMaxCount);
  counts.refused = field("refused").Int(0, kMaxCount);
  counts.conflicting = field("conflicting").Int(0, kMaxCount);
  counts.devices = field("devices").Int(0, kMaxCount);
  counts.unhealthy = field("unhealthy").Int(0, kMaxCount);
  return counts;
}

Json WriteResource(const RdmaResource& resource) {
  Json json{{"name", codec::Clean(resource.name, 253)}};
  codec::PutList(json, "roles", codec::WriteList(resource.roles, 3, [](topology::NicRole role) {
                   return Json(topology::NicRoleName(role));
                 }));
  codec::PutList(json, "rails", Json(resource.rails));
  if (resource.slots != 1) json["slots"] = resource.slots;
  return json;
}

Json WriteSpec(const RdmaDevicePolicySpec& spec) {
  Json json{{"mode", DeviceModeName(spec.mode)}, {"plugin", DevicePluginName(spec.plugin)}};
  for (const auto& [key, value] : spec.node_selector) json["nodeSelector"][key] = codec::Clean(value, 63);
  json["resources"] = codec::WriteList(spec.resources, kMaxRdmaResources, WriteResource);
  return json;
}

Json WriteStatus(const RdmaDevicePolicyStatus& status) {
  const DeviceCounts& counts = status.counts;
  Json json{{"counts",
             {{"nodes", counts.nodes},
              {"ready", counts.ready},
              {"waiting", counts.waiting},
              {"refused", counts.refused},
              {"conflicting", counts.conflicting},
              {"devices", counts.devices},
              {"unhealthy", counts.unhealthy}}}};
  codec::PutPositive(json, "observedGeneration", status.observed_generation);
  json["summary"] = {{"nodes", std::to_string(counts.ready) + "/" + std::to_string(counts.nodes)}};
  codec::PutList(json, "problems", codec::TextList(status.problems, kMaxDeviceProblems, 512));
  codec::PutList(json, "conditions", codec::WriteConditions(status.conditions));
  return json;
}

}  // namespace

bool ComesTo(const RdmaResource& entry, std::string_view resource) {
  const std::optional<std::string_view> stem = RailStemOf(entry.name);
  if (!stem) return entry.name == resource;
  if (!resource.starts_with(*stem)) return false;
  const int rail = RailOf(resource.substr(stem->size()));
  return rail >= 0 && (entry.rails.empty() ||
                       std::find(entry.rails.begin(), entry.rails.end(), rail) != entry.rails.end());
}

base::Result<RdmaDevicePolicy> RdmaDevicePolicyFromJson(const Json& json) {
  codec::Problem problem;
  const Field root(json, problem);
  RdmaDevicePolicy object;
  codec::ReadHead(root, keys::kRdmaDevicePolicy.kind, object);
  const Field spec = root("spec");
  const Field resources = spec("resources");
  spec.Required();
  object.spec.node_selector = spec("nodeSelector").Texts(16, 63);
  object.spec.mode = codec::ReadDeviceMode(spec("mode"));
  object.spec.plugin = codec::ReadDevicePlugin(spec("plugin"));
  object.spec.resources = resources.Required().List(kMaxRdmaResources, ReadResource);
  if (object.spec.resources.empty()) resources.Refuse("names no resource");
  std::sort(object.spec.resources.begin(), object.spec.resources.end(),
            [](const RdmaResource& a, const RdmaResource& b) { return a.name < b.name; });
  RefuseContradictions(object.spec, spec);
  const Field status = root("status");
  object.status.observed_generation = status("observedGeneration").Int64(0, codec::kMaxInt64);
  object.status.counts = ReadCounts(status("counts"));
  object.status.problems = status("problems").Names(kMaxDeviceProblems, 512);
  object.status.conditions = codec::ReadConditions(status("conditions"));
  if (problem.found()) return base::Fail(problem.error().In("RdmaDevicePolicy " + object.name));
  return object;
}

Json ToJson(const RdmaDevicePolicy& object) {
  Json json = codec::WriteHead(keys::kRdmaDevicePolicy.kind, object);
  json["spec"] = WriteSpec(object.spec);
  json["status"] = WriteStatus(object.status);
  return json;
}

Json StatusApplyJson(const RdmaDevicePolicy& object) {
  Json json = codec::ApplyHead(keys::kRdmaDevicePolicy.kind, object, false);
  json["status"] = WriteStatus(object.status);
  return json;
}

}  // namespace heddle::crds
