#include "operator/page/about.h"

#include <algorithm>
#include <array>

#include "operator/page/text.h"

namespace heddle::operators::page {
namespace {

using kube::Json;
using topology::Nic;

constexpr std::size_t kMaxRows = 256;  // of each list: more is nothing that a person reads
constexpr std::size_t kMaxSentence = 1024;

std::string_view StatusName(crds::ConditionStatus status) {
  constexpr std::array<std::string_view, 3> kNames = {"False", "True", "Unknown"};
  return kNames[std::size_t(status)];
}

Json ConditionsJson(const std::vector<crds::Condition>& conditions) {
  Json list = Json::array();
  for (const crds::Condition& one : conditions) {
    if (list.size() == kMaxRows) break;
    list.push_back({{"type", one.type},
                    {"status", StatusName(one.status)},
                    {"reason", one.reason},
                    {"message", Cut(one.message, kMaxSentence)},
                    {"since", base::FormatTime(one.last_transition)}});
  }
  return list;
}

// A fact, or in its place the word for why there is none.
template <class T>
Json Known(const topology::Fact<T>& fact) {
  if (fact) return *fact;
  return topology::MissingName(fact.missing());
}

Json PortsJson(const Nic& nic) {
  Json ports = Json::array();
  for (const topology::NicPort& port : nic.ports) {
    Json one = {{"port", port.number},
                {"plane", port.plane},
                {"state", topology::LinkStateName(port.state)},
                {"rate", port.rate_gbps},
                {"usable", port.usable_gbps}};
    if (port.leaf_port) {
      one["leaf"] = port.leaf_port->leaf;
      one["leafPort"] = port.leaf_port->port;
    } else {
      one["leafMissing"] = topology::MissingName(port.leaf_port.missing());
    }
    if (port.fault != topology::LinkFault::kNone) one["fault"] = topology::LinkFaultName(port.fault);
    if (!port.reason.empty()) one["reason"] = Cut(port.reason, kMaxSentence);
    ports.push_back(std::move(one));
  }
  return ports;
}

Json NicJson(const Nic& nic) {
  return {{"name", nic.name},
          {"netdev", nic.netdev},
          {"role", topology::NicRoleName(nic.role)},
          {"transport", topology::TransportName(nic.transport)},
          {"rail", Known(nic.rail)},
          {"ports", PortsJson(nic)}};
}

// Empty: nobody knows.
std::string_view DistanceText(const topology::Node& node, int gpu, const std::string& nic) {
  const auto path = std::find_if(node.paths.begin(), node.paths.end(), [&](const topology::GpuNicPath& one) {
    return one.gpu == gpu && one.nic == nic;
  });
  return path == node.paths.end() ? std::string_view() : topology::PciDistanceName(path->distance);
}

Json GpusJson(const topology::Node& node) {
  const std::vector<std::vector<int>> nics = topology::DealNics(node);
  Json gpus = Json::array();
  for (std::size_t i = 0; i < node.gpus.size() && i < kMaxRows; ++i) {
    const topology::Gpu& gpu = node.gpus[i];
    Json one = {
        {"index", gpu.index}, {"model", gpu.model}, {"healthy", gpu.healthy}, {"nics", Json::array()}};
    if (!gpu.unhealthy_reason.empty()) one["reason"] = Cut(gpu.unhealthy_reason, kMaxSentence);
    for (const int nic : i < nics.size() ? nics[i] : std::vector<int>()) {
      one["nics"].push_back({nic, DistanceText(node, gpu.index, node.nics[std::size_t(nic)].name)});
    }
    gpus.push_back(std::move(one));
  }
  return gpus;
}

Json GrantsJson(const std::vector<crds::Grant>& grants) {
  Json list = Json::array();
  for (const crds::Grant& grant : grants) {
    if (list.size() == kMaxRows) break;
    Json gpus = Json::array();
    for (const crds::Grant::GpuRef& gpu : grant.gpus) gpus.push_back(gpu.index);
    list.push_back({{"pod", grant.pod_namespace + "/" + grant.pod_name},
                    {"container", grant.container},
                    {"gpus", std::move(gpus)},
                    {"nics", grant.nics}});
  }
  return list;
}

}  // namespace

std::string AboutNode(const crds::NodeTopology& object) {
  const topology::Node& node = object.status.node;
  const crds::NodeSummary summary = crds::Summarise(node);
  Json json = {{"name", object.name},
               {"machine", summary.machine},
               {"domain", summary.nvlink_domain},
               {"rails", summary.rails},
               {"transport", summary.transport},
               {"site", node.site},
               {"agent", object.status.agent_version},
               {"gpus", GpusJson(node)},
               {"nics", Json::array()},
               {"conditions", ConditionsJson(object.status.conditions)},
               {"grants", GrantsJson(object.status.grants)}};
  if (object.status.observed_at) json["observed"] = base::FormatTime(*object.status.observed_at);
  for (const Nic& nic : node.nics) {
    if (json["nics"].size() < kMaxRows) json["nics"].push_back(NicJson(nic));
  }
  return Dump(json) + "\n";
}

std::string AboutGang(const crds::Gang& gang) {
  Json why = Json::array();
  for (const std::string& sentence : gang.status.explanation) {
    if (why.size() < kMaxRows) why.push_back(Cut(sentence, kMaxSentence));
  }
  return Dump(Json{{"key", gang.ns + "/" + gang.name},
                   {"why", std::move(why)},
                   {"conditions", ConditionsJson(gang.status.conditions)}}) +
         "\n";
}

}  // namespace heddle::operators::page
