#include "operator/other_plugins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "crds/keys.h"
#include "crds/port_name.h"

namespace heddle::operators {
namespace {

using crds::DevicePlugin;
using crds::DeviceWish;
using crds::Json;

// What sets one plugin apart from the other.
struct PluginFacts {
  std::string_view name;         // in the names of its objects
  std::string_view config_path;  // where it looks for config.json
  bool needs_devices = false;    // mounts /dev
  // Leaves its findings there for Multus; empty = it leaves none.
  std::string_view device_info;
};
// k8s-rdma-shared-dev-plugin: pkg/resources/resources_manager.go and deployment/k8s/base/daemonset.yaml, v1.5.
// sriov-network-device-plugin: cmd/sriovdp/main.go and deployments/sriovdp-daemonset.yaml, v3.11.
PluginFacts FactsOf(DevicePlugin plugin) {
  if (plugin == DevicePlugin::kSriov)
    return {"sriov", "/etc/pcidp", false, "/var/run/k8s.cni.cncf.io/devinfo/dp"};
  return {"rdma-shared", "/k8s-rdma-shared-dev-plugin", true, ""};
}

// A constant of the kubelet's, whatever its --root-dir (DevicePluginPath in k8s.io/kubelet; kubernetes#120626).
constexpr std::string_view kDevicePlugins = "/var/lib/kubelet/device-plugins";
// This one the kubelet looks for under its --root-dir (getPluginsRegistrationDir), while both plugins take it for a
// constant and tell the kubelet to dial their socket there. Under another root they are not found whatever is mounted
// (k8snetworkplumbingwg/sriov-network-device-plugin#586). Where the folder is not there they register at kDevicePlugins
// instead (detectPluginWatchMode in both).
constexpr std::string_view kPluginsRegistry = "/var/lib/kubelet/plugins_registry";

// FNV-1a, as everywhere where a name stands for a text.
std::string HashOf(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 16777619U;
  return fmt::format("{:08x}", hash);
}

const topology::Nic* NicOfPort(const topology::Node& node, const std::string& port) {
  for (const topology::Nic& nic : node.nics) {
    for (const topology::NicPort& nic_port : nic.ports) {
      if (crds::PortName(nic, nic_port) == port) return &nic;
    }
  }
  return nullptr;
}

// Each NIC of the wish once, in the order of its ports.
std::vector<const topology::Nic*> NicsOf(const topology::Node& node, const DeviceWish& wish) {
  std::vector<const topology::Nic*> nics;
  for (const std::string& port : wish.ports) {
    const topology::Nic* nic = NicOfPort(node, port);
    if (nic != nullptr && std::find(nics.begin(), nics.end(), nic) == nics.end()) nics.push_back(nic);
  }
  return nics;
}

Json SharedEntry(const topology::Node& node, const DeviceWish& wish) {
  Json names = Json::array();
  for (const topology::Nic* nic : NicsOf(node, wish)) names.push_back(nic->netdev);
  const std::size_t slash = wish.resource.find('/');
  return {{"resourcePrefix", wish.resource.substr(0, slash)},
          {"resourceName", wish.resource.substr(slash + 1)},
          {"rdmaHcaMax", wish.slots},
          {"selectors", {{"ifNames", names}}}};
}

// Virtual functions belong to their physical one; a port without any is a device itself.
Json SriovEntry(const topology::Node& node, const DeviceWish& wish) {
  Json names = Json::array(), addresses = Json::array(), selectors = Json::array();
  for (const topology::Nic* nic : NicsOf(node, wish)) {
    if (!nic->netdev.empty()) {
      names.push_back(nic->netdev);
    } else {
      addresses.push_back(nic->pci);
    }
  }
  if (!names.empty()) selectors.push_back({{"pfNames", names}, {"isRdma", true}});
  if (!addresses.empty()) selectors.push_back({{"pciAddresses", addresses}, {"isRdma", true}});
  const std::size_t slash = wish.resource.find('/');
  return {{"resourcePrefix", wish.resource.substr(0, slash)},
          {"resourceName", wish.resource.substr(slash + 1)},
          {"selectors", selectors}};
}

Json MetaOf(const PluginClass& plugin_class, std::string_view ns) {
  return {{"name", ObjectName(plugin_class)},
          {"namespace", ns},
          {"labels",
           {{"app.kubernetes.io/part-of", "heddle"},
            {"app.kubernetes.io/managed-by", crds::keys::kOperatorManager},
            {crds::keys::kLabelRdmaClass, plugin_class.hash}}}};
}

Json HostFolder(std::string_view name, std::string_view path) {
  return {{"name", name}, {"hostPath", {{"path", path}, {"type", "DirectoryOrCreate"}}}};
}
Json MountAt(std::string_view name, std::string_view path, bool read_only = false) {
  Json mount{{"name", name}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  return mount;
}
// Of KEY=VALUE each; a value may have further =.
Json JsonOf(const std::vector<std::string>& words) {
  Json map = Json::object();
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    map[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  return map;
}

}  // namespace

std::string ConfigOf(const topology::Node& node, const std::vector<DeviceWish>& wishes, DevicePlugin plugin) {
  Json entries = Json::array();
  for (const DeviceWish& wish : wishes) {
    if (wish.plugin != plugin || !wish.reason.empty() || wish.ports.empty()) continue;
    entries.push_back(plugin == DevicePlugin::kSriov ? SriovEntry(node, wish) : SharedEntry(node, wish));
  }
  if (entries.empty()) return "";
  constexpr int kIndent = 2;
  return Json{{plugin == DevicePlugin::kSriov ? "resourceList" : "configList", entries}}.dump(kIndent) + "\n";
}

std::vector<PluginClass> PluginClasses(const std::vector<DeviceNode>& nodes, const DeviceRollout& rollout) {
  std::map<std::pair<DevicePlugin, std::string>, PluginClass> classes;
  for (const DeviceNode& node : nodes) {
    if (!node.observed) continue;
    for (const DevicePlugin plugin : {DevicePlugin::kRdmaShared, DevicePlugin::kSriov}) {
      std::string config = ConfigOf(node.node, rollout.wishes.at(node.name), plugin);
      if (config.empty()) continue;
      std::string hash = HashOf(config);
      PluginClass& one = classes[{plugin, hash}];
      one.plugin = plugin;
      one.hash = std::move(hash);
      one.config = std::move(config);
      one.nodes.push_back(node.name);
      break;
    }
  }
  std::vector<PluginClass> all;
  all.reserve(classes.size());
  for (auto& [key, one] : classes) all.push_back(std::move(one));
  for (PluginClass& one : all) std::sort(one.nodes.begin(), one.nodes.end());
  return all;
}

std::string ObjectName(const PluginClass& plugin_class) {
  return fmt::format("heddle-{}-{}", FactsOf(plugin_class.plugin).name, plugin_class.hash);
}

Json ConfigMapOf(const PluginClass& plugin_class, std::string_view ns) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", MetaOf(plugin_class, ns)},
          {"data", {{"config.json", plugin_class.config}}}};
}

Json DaemonSetOf(const PluginClass& plugin_class, std::string_view ns, std::string_view image,
                 std::string_view kubelet_root, const PluginPods& pods) {
  const PluginFacts facts = FactsOf(plugin_class.plugin);
  const Json labels{{kPluginPodLabel, ObjectName(plugin_class)}};
  Json volumes = Json::array({HostFolder("device-plugins", kDevicePlugins)});
  Json mounts = Json::array({MountAt("device-plugins", kDevicePlugins)});
  if (kubelet_root == kKubeletRoot) {
    volumes.push_back(HostFolder("plugins-registry", kPluginsRegistry));
    mounts.push_back(MountAt("plugins-registry", kPluginsRegistry));
  }
  volumes.push_back(Json{{"name", "config"}, {"configMap", {{"name", ObjectName(plugin_class)}}}});
  mounts.push_back(MountAt("config", facts.config_path, true));
  if (facts.needs_devices) {
    volumes.push_back(HostFolder("devices", "/dev"));
    mounts.push_back(MountAt("devices", "/dev"));
  }
  if (!facts.device_info.empty()) {
    volumes.push_back(HostFolder("device-info", facts.device_info));
    mounts.push_back(MountAt("device-info", facts.device_info));
  }
  const Json container{
      {"name", facts.name},
      {"image", image},
      {"securityContext", {{"privileged", true}}},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "40Mi"}}}, {"limits", {{"memory", "200Mi"}}}}},
      {"volumeMounts", mounts}};
  Json pod{{"hostNetwork", true},
           {"automountServiceAccountToken", false},
           {"priorityClassName", "system-node-critical"},
           {"nodeSelector", {{crds::keys::kLabelRdmaClass, plugin_class.hash}}},
           {"tolerations", {{{"operator", "Exists"}}}},
           {"containers", {container}},
           {"volumes", volumes}};
  for (const std::string& secret : pods.pull_secrets) {
    const Json reference{{"name", secret}};
    pod["imagePullSecrets"].push_back(reference);
  }
  Json about{{"labels", JsonOf(pods.labels)}};
  about["labels"].update(labels);
  if (!pods.annotations.empty()) about["annotations"] = JsonOf(pods.annotations);
  return {{"apiVersion", "apps/v1"},
          {"kind", "DaemonSet"},
          {"metadata", MetaOf(plugin_class, ns)},
          {"spec",
           {{"selector", {{"matchLabels", labels}}}, {"template", {{"metadata", about}, {"spec", pod}}}}}};
}

}  // namespace heddle::operators
