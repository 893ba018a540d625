#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "crds/node_devices.h"
#include "crds/object_meta.h"
#include "operator/device_rollout.h"

namespace heddle::operators {

// Configuration for k8s-rdma-shared-dev-plugin and sriov-network-device-plugin: what spec.devices says, in their
// words. Nodes with the same configuration are a class; each class has a ConfigMap, a DaemonSet and a label.

struct PluginClass {
  crds::DevicePlugin plugin = crds::DevicePlugin::kRdmaShared;
  std::string hash;                // of `config`, 8 hex digits: the value of the nodes' label
  std::string config;              // config.json
  std::vector<std::string> nodes;  // sorted
  friend bool operator==(const PluginClass&, const PluginClass&) = default;
};

// config.json of that plugin for one node, from what it is told; empty = it has nothing to do there.
std::string ConfigOf(const topology::Node& node, const std::vector<crds::DeviceWish>& wishes,
                     crds::DevicePlugin plugin);

// All classes, sorted by plugin and hash; `rollout` has all of `nodes`. A node runs one of the two plugins: of wishes
// for both, those for the shared one count.
std::vector<PluginClass> PluginClasses(const std::vector<DeviceNode>& nodes, const DeviceRollout& rollout);

// "heddle-rdma-shared-1f2e3d4c": of the ConfigMap and the DaemonSet of a class, and of its pods in kPluginPodLabel.
std::string ObjectName(const PluginClass& plugin_class);
inline constexpr std::string_view kPluginPodLabel = "app.kubernetes.io/name";
crds::Json ConfigMapOf(const PluginClass& plugin_class, std::string_view ns);
// The kubelet's --root-dir where nobody gave another (cmd/kubelet/app/options/options.go).
inline constexpr std::string_view kKubeletRoot = "/var/lib/kubelet";
// What a cluster's rules want of every pod, and so of the plugins', too.
struct PluginPods {
  std::vector<std::string> pull_secrets;  // names of Secrets in their namespace, for the images' registry
  std::vector<std::string> labels, annotations;  // further ones, KEY=VALUE; what selects the pods goes first
};
// Privileged, as both plugins are: they open devices of the host and the kubelet's folder. `kubelet_root`: the
// kubelet's --root-dir.
crds::Json DaemonSetOf(const PluginClass& plugin_class, std::string_view ns, std::string_view image,
                       std::string_view kubelet_root = kKubeletRoot, const PluginPods& pods = {});

}  // namespace heddle::operators
