#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "crds/lossless_policy.h"
#include "crds/node_topology.h"
#include "lossless/policy.h"
#include "switches/sonic_answers.h"

namespace heddle::operators {

// What SONiC has of one port that takes DSCP 26 into priority 3 and keeps it lossless, and 48 into 6; else 26 into 0.
inline std::map<std::string, crds::Json> SonicTables(const std::string& hostname, bool lossless) {
  crds::Json map = crds::Json::object();
  for (int dscp = 0; dscp < 64; ++dscp) map[std::to_string(dscp)] = "0";
  if (lossless) map["26"] = "3";
  map["48"] = "6";
  crds::Json identity = crds::Json::object();
  for (int i = 0; i < 8; ++i) identity[std::to_string(i)] = std::to_string(i);
  std::map<std::string, crds::Json> tables;
  for (const std::string& table : switches::SonicConfigTables()) tables[table] = crds::Json::object();
  tables["DEVICE_METADATA"] = {{"localhost", {{"hostname", hostname}, {"hwsku", "Force10-S6000"}}}};
  tables["PORT"] = {
      {"Ethernet0", {{"alias", "etp1"}, {"mtu", "9216"}, {"speed", "100000"}, {"admin_status", "up"}}}};
  tables["DSCP_TO_TC_MAP"] = {{"M", map}};
  tables["TC_TO_PRIORITY_GROUP_MAP"] = tables["TC_TO_QUEUE_MAP"] = {{"M", identity}};
  tables["MAP_PFC_PRIORITY_TO_QUEUE"] = {{"M", identity}};
  tables["PORT_QOS_MAP"] = {{"Ethernet0",
                             {{"dscp_to_tc_map", "M"},
                              {"tc_to_pg_map", "M"},
                              {"tc_to_queue_map", "M"},
                              {"pfc_to_queue_map", "M"},
                              {"pfc_enable", "3"},
                              {"pfcwd_sw_enable", "3"}}}};
  tables["PFC_WD"] = {
      {"GLOBAL", {{"POLL_INTERVAL", "200"}}},
      {"Ethernet0", {{"action", "drop"}, {"detection_time", "200"}, {"restoration_time", "200"}}}};
  tables["WRED_PROFILE"] = {{"W",
                             {{"ecn", "ecn_all"},
                              {"green_min_threshold", "1048576"},
                              {"wred_green_enable", "true"},
                              {"green_max_threshold", "2097152"},
                              {"green_drop_probability", "5"}}}};
  tables["QUEUE"] = {{"Ethernet0|3", {{"wred_profile", "W"}}}};
  tables["BUFFER_POOL"] = {
      {"ingress_lossless_pool", {{"type", "ingress"}, {"mode", "dynamic"}, {"size", "10875072"}}},
      {"egress_lossless_pool", {{"type", "egress"}, {"mode", "static"}, {"size", "15982720"}}},
      {"egress_lossy_pool", {{"type", "egress"}, {"mode", "dynamic"}, {"size", "9243812"}}}};
  tables["BUFFER_PROFILE"] = {
      {"pg_lossless_100000_5m_profile",
       {{"pool", "ingress_lossless_pool"},
        {"size", "79728"},
        {"xon", "18432"},
        {"xoff", "61296"},
        {"dynamic_th", "0"}}},
      {"egress_lossless_profile",
       {{"pool", "egress_lossless_pool"}, {"size", "1518"}, {"static_th", "3995680"}}},
      {"egress_lossy_profile", {{"pool", "egress_lossy_pool"}, {"size", "1518"}, {"dynamic_th", "3"}}}};
  tables["BUFFER_PG"] = {{"Ethernet0|3", {{"profile", "pg_lossless_100000_5m_profile"}}}};
  tables["BUFFER_QUEUE"] = {{"Ethernet0|0-2", {{"profile", "egress_lossy_profile"}}},
                            {"Ethernet0|3", {{"profile", "egress_lossless_profile"}}}};
  return tables;
}

inline std::shared_ptr<const switches::SonicAnswer> SonicAnswerOf(const std::string& hostname,
                                                                  bool lossless) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, table] : SonicTables(hostname, lossless)) texts[name] = table.dump();
  auto answer = switches::ReadSonicText(switches::SonicConfigText(texts).value());
  EXPECT_TRUE(answer) << answer.error().message;
  return std::make_shared<const switches::SonicAnswer>(*std::move(answer));
}

// A node of one NIC that LosslessPolicy roce has set, with its cable on leaf-3's etp1.
inline crds::NodeTopology CabledTopology(const std::string& name) {
  crds::NodeTopology node;
  node.name = name;
  node.status.node.name = name;
  topology::Nic nic;
  nic.name = "mlx5_0";
  nic.transport = topology::Transport::kRoce;
  nic.role = topology::NicRole::kCompute;
  nic.rail = 0;
  nic.mtu = 9000;
  nic.ports.push_back({.number = 1,
                       .state = topology::LinkState::kActive,
                       .rate_gbps = 100,
                       .usable_gbps = 100,
                       .leaf_port = topology::LeafPort{"leaf-3", "etp1"}});
  node.status.node.nics.push_back(nic);
  const auto resolved = lossless::Resolve({});
  EXPECT_TRUE(resolved);
  lossless::PortSettings have =
      *lossless::Render(*resolved, {.transport = topology::Transport::kRoce}).settings;
  have.watchdog_ms = 100;
  node.spec.lossless = {{.ports = {"mlx5_0:1"}, .policies = {"roce"}, .settings = have}};
  node.status.lossless = {{.ports = {"mlx5_0:1"},
                           .edition = {.policy = "roce"},
                           .state = crds::LosslessState::kCompliant,
                           .have = have}};
  return node;
}

}  // namespace heddle::operators
