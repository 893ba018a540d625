#include "operator/other_plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::operators {
namespace {

using crds::DevicePlugin;
using crds::DeviceWish;
using crds::Json;
using testing::ElementsAre;
using testing::SizeIs;

topology::Nic NicNamed(std::string name, std::string netdev, int ports = 1) {
  topology::Nic nic;
  nic.name = std::move(name);
  nic.netdev = std::move(netdev);
  nic.pci = "0000:17:00.0";
  for (int port = 1; port <= ports; ++port) nic.ports.push_back({.number = port});
  return nic;
}

DeviceNode NodeNamed(std::string name) {
  DeviceNode node;
  node.name = std::move(name);
  node.observed = true;
  node.node.nics = {NicNamed("mlx5_0", "eth0"), NicNamed("mlx5_1", ""), NicNamed("mlx5_bond_0", "bond0", 2)};
  return node;
}

DeviceWish WishFor(std::string resource, DevicePlugin plugin, std::vector<std::string> ports) {
  DeviceWish wish;
  wish.resource = std::move(resource);
  wish.policies = {"one"};
  wish.plugin = plugin;
  wish.ports = std::move(ports);
  return wish;
}

TEST(OtherPlugins, TheSharedPluginIsToldInterfaces) {
  DeviceWish wish =
      WishFor("rdma/hca", DevicePlugin::kRdmaShared, {"mlx5_0:1", "mlx5_bond_0:1", "mlx5_bond_0:2"});
  wish.slots = 63;
  const Json config = Json::parse(ConfigOf(NodeNamed("a").node, {wish}, DevicePlugin::kRdmaShared));
  EXPECT_EQ(config, (Json{{"configList",
                           {{{"resourcePrefix", "rdma"},
                             {"resourceName", "hca"},
                             {"rdmaHcaMax", 63},
                             {"selectors", {{"ifNames", {"eth0", "bond0"}}}}}}}}));
}

TEST(OtherPlugins, TheSriovPluginIsToldPhysicalFunctionsOrAddresses) {
  const DeviceWish wish = WishFor("nvidia.com/rail", DevicePlugin::kSriov, {"mlx5_0:1", "mlx5_1:1"});
  const Json config = Json::parse(ConfigOf(NodeNamed("a").node, {wish}, DevicePlugin::kSriov));
  EXPECT_EQ(config, (Json{{"resourceList",
                           {{{"resourcePrefix", "nvidia.com"},
                             {"resourceName", "rail"},
                             {"selectors",
                              {{{"pfNames", {"eth0"}}, {"isRdma", true}},
                               {{"pciAddresses", {"0000:17:00.0"}}, {"isRdma", true}}}}}}}}));
}

TEST(OtherPlugins, WhatIsRefusedOrOursIsNotTold) {
  DeviceWish ours = WishFor("heddle.dev/rdma", DevicePlugin::kHeddle, {"mlx5_0:1"});
  DeviceWish refused = WishFor("rdma/hca", DevicePlugin::kRdmaShared, {});
  refused.reason = "two policies";
  EXPECT_EQ(ConfigOf(NodeNamed("a").node, {ours, refused}, DevicePlugin::kRdmaShared), "");
}

TEST(OtherPlugins, NodesWithTheSameInterfacesAreAClass) {
  DeviceNode a = NodeNamed("a"), b = NodeNamed("b"), other = NodeNamed("c"), none = NodeNamed("d");
  other.node.nics[0].netdev = "ens1";
  const std::vector<DeviceWish> wishes{WishFor("rdma/hca", DevicePlugin::kRdmaShared, {"mlx5_0:1"})};
  DeviceRollout rollout;
  rollout.wishes = {{"a", wishes}, {"b", wishes}, {"c", wishes}, {"d", {}}};
  const auto classes = PluginClasses({b, other, a, none}, rollout);
  ASSERT_THAT(classes, SizeIs(2));
  EXPECT_NE(classes[0].hash, classes[1].hash);
  EXPECT_THAT(classes[0].hash, SizeIs(8));
  const auto& both = classes[0].nodes.size() == 2 ? classes[0] : classes[1];
  EXPECT_THAT(both.nodes, ElementsAre("a", "b"));
}

TEST(OtherPlugins, ANodeRunsOneOfThem) {
  DeviceRollout rollout;
  rollout.wishes = {{"a",
                     {WishFor("rdma/hca", DevicePlugin::kRdmaShared, {"mlx5_0:1"}),
                      WishFor("nvidia.com/rail", DevicePlugin::kSriov, {"mlx5_1:1"})}}};
  const auto classes = PluginClasses({NodeNamed("a")}, rollout);
  ASSERT_THAT(classes, SizeIs(1));
  EXPECT_EQ(classes[0].plugin, DevicePlugin::kRdmaShared);
}

TEST(OtherPlugins, TheDaemonSetMountsWhatThePluginReads) {
  PluginClass shared;
  shared.hash = "0123abcd";
  const Json set = DaemonSetOf(shared, "heddle-system", "registry.test/shared:v1");
  EXPECT_EQ(set["metadata"]["name"], "heddle-rdma-shared-0123abcd");
  const Json& pod = set["spec"]["template"]["spec"];
  EXPECT_EQ(pod["automountServiceAccountToken"], false);
  std::vector<std::string> paths;
  for (const Json& mount : pod["containers"][0]["volumeMounts"]) paths.push_back(mount["mountPath"]);
  EXPECT_THAT(paths, ElementsAre("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins_registry",
                                 "/k8s-rdma-shared-dev-plugin", "/dev"));
  shared.plugin = DevicePlugin::kSriov;
  EXPECT_EQ(DaemonSetOf(shared, "heddle-system",
                        "x")["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][2]["mountPath"],
            "/etc/pcidp");
}

TEST(OtherPlugins, TheirImagesArePulledWithTheLoginsThatAreNamed) {
  PluginClass one;
  one.hash = "0123abcd";
  PluginPods pods;
  pods.pull_secrets = {"login", "mirror"};
  const Json with = DaemonSetOf(one, "heddle-system", "x", kKubeletRoot, pods);
  EXPECT_EQ(with["spec"]["template"]["spec"]["imagePullSecrets"],
            Json::parse(R"([{"name": "login"}, {"name": "mirror"}])"));
  const Json without = DaemonSetOf(one, "heddle-system", "x");
  EXPECT_FALSE(without["spec"]["template"]["spec"].contains("imagePullSecrets"));
}

TEST(OtherPlugins, TheirPodsHaveTheLabelsAndAnnotationsThatAClusterAsksForAndAreSelectedAsBefore) {
  PluginClass one;
  one.hash = "0123abcd";
  PluginPods pods;
  pods.labels = {"cost-center=ai", std::string(kPluginPodLabel) + "=another"};
  pods.annotations = {"sidecar.istio.io/inject=false", "a.b/c=d=e", "empty="};
  const Json with = DaemonSetOf(one, "heddle-system", "x", kKubeletRoot, pods);
  const Json without = DaemonSetOf(one, "heddle-system", "x");
  EXPECT_EQ(with["spec"]["selector"], without["spec"]["selector"]);
  Json labels = without["spec"]["template"]["metadata"]["labels"];
  EXPECT_EQ(labels, without["spec"]["selector"]["matchLabels"]);
  labels["cost-center"] = "ai";
  EXPECT_EQ(with["spec"]["template"]["metadata"]["labels"], labels);
  EXPECT_EQ(with["spec"]["template"]["metadata"]["annotations"],
            Json::parse(R"({"sidecar.istio.io/inject": "false", "a.b/c": "d=e", "empty": ""})"));
  EXPECT_FALSE(without["spec"]["template"]["metadata"].contains("annotations"));
}

TEST(OtherPlugins, UnderAnotherRootOfTheKubeletThePluginsRegisterWhereItListensAllTheSame) {
  PluginClass one;
  one.hash = "0123abcd";
  for (const DevicePlugin plugin : {DevicePlugin::kRdmaShared, DevicePlugin::kSriov}) {
    one.plugin = plugin;
    const Json pod =
        DaemonSetOf(one, "heddle-system", "x", "/var/lib/k0s/kubelet")["spec"]["template"]["spec"];
    EXPECT_EQ(pod["volumes"][0]["hostPath"]["path"], "/var/lib/kubelet/device-plugins");
    EXPECT_EQ(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/var/lib/kubelet/device-plugins");
    EXPECT_EQ(pod["volumes"][1]["name"], "config");
    EXPECT_EQ(pod.dump().find("plugins_registry"), std::string::npos) << pod.dump();
    EXPECT_EQ(pod["volumes"].size(), pod["containers"][0]["volumeMounts"].size());
  }
}

}  // namespace
}  // namespace heddle::operators
