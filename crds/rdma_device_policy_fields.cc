#include "crds/rdma_device_policy_fields.h"

#include <array>
#include <string>
#include <string_view>

#include "crds/codec.h"
#include "crds/keys.h"
#include "crds/rdma_device_policy.h"
#include "crds/spec_fields.h"

namespace heddle::crds {
namespace {

using codec::Field;

// Those of rdmadevicepolicies.yaml.
constexpr std::array<std::string_view, 5> kOfObject{"apiVersion", "kind", "metadata", "spec", "status"};
constexpr std::array<std::string_view, 4> kOfSpec{"nodeSelector", "mode", "plugin", "resources"};
constexpr std::array<std::string_view, 4> kOfResource{"name", "roles", "rails", "slots"};

// What CEL asks of a dash beyond what the plugin itself does: the kubelet takes no name that begins or ends in one.
bool DashesAreWithin(std::string_view name) {
  name.remove_prefix(name.find('/') + 1);
  if (const auto stem = RailStemOf(name)) {
    name = *stem;
    if (name.ends_with('-')) name.remove_suffix(1);
  }
  return !name.empty() && !name.starts_with('-') && !name.ends_with('-') &&
         name.find("--") == std::string_view::npos;
}

}  // namespace

base::Status CheckRdmaDevicePolicyFields(const Json& policy) {
  codec::Problem problem;
  const Field root(policy, problem);
  const Field metadata = root("metadata"), spec = root("spec");
  const Field resources = spec("resources");
  const std::string name = metadata("name").Text(253);
  codec::UnknownFields unknown;
  unknown.LookAt(root, kOfObject);
  unknown.LookAt(spec, kOfSpec);
  unknown.LookAtEach(resources, kOfResource);
  TRY(unknown.Refused(keys::kRdmaDevicePolicy.kind, name));
  if (spec("plugin").Text(64) == DevicePluginName(DevicePlugin::kSriov)) {
    resources.Each(kMaxRdmaResources, [](const Field& item) {
      const Field resource = item("name");
      if (!DashesAreWithin(resource.Text(253)))
        resource.Refuse("the SR-IOV plugin takes letters, digits, _ and - between them after the slash");
    });
  }
  codec::RefuseLabelsOfNoNode(spec("nodeSelector"));
  if (problem.found()) return base::Fail(problem.error().In("RdmaDevicePolicy " + name));
  return {};
}

}  // namespace heddle::crds
