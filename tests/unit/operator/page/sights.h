#pragma once

#include <string>
#include <vector>

#include "crds/fabric_assembly.h"
#include "operator/page/fabric_view.h"
#include "topology/synthetic.h"

namespace heddle::operators::page {

// A cluster as the operator has assembled it, to be changed before it is shown.
struct Sight {
  explicit Sight(std::string_view line) {
    const auto synthetic = topology::ParseSynthetic(line);
    if (!synthetic) std::abort();
    assembly.fabrics = crds::AssembleFabrics(synthetic->nodes, {{"infiniband", synthetic->declaration}});
    for (const topology::Node& node : synthetic->nodes) {
      topologies.push_back(node.name);
      assembly.reporting.push_back(node.name);
    }
  }
  Pieces Shown() const { return Show({assembly, topologies, stale, gangs, sources, suspects, unread_gangs}); }
  kube::Json Node(const std::string& name) const { return kube::Json::parse(Shown().nodes.at(name)); }
  kube::Json Gang(const std::string& key) const { return kube::Json::parse(Shown().gangs.at(key)); }

  Assembly assembly;
  std::vector<std::string> topologies;
  std::set<std::string> stale;
  std::vector<crds::Gang> gangs;
  std::vector<Source> sources{{.kind = "NodeTopology"}, {.kind = "Fabric"}, {.kind = "Gang"}};
  std::map<std::string, std::vector<topology::Suspect>> suspects;
  std::map<kube::ObjectKey, std::string> unread_gangs;
};

inline constexpr const char* kFourNodes =
    "su:2 node:2 gpu:2 nic:2 rail:2 spine:2 rate:400 transport:ib machine:h100";

// Eight ranks, tp=2 in each of its four nodes.
inline crds::Gang RunningGang(const std::vector<std::string>& nodes) {
  crds::Gang gang;
  gang.ns = "team";
  gang.name = "train-12345678-0";
  gang.spec.owner = {.api_version = "batch/v1", .kind = "Job", .name = "train", .uid = "12345678-0"};
  gang.spec.pods = int(nodes.size());
  gang.spec.gpus_per_pod = 2;
  gang.spec.parallelism = placement::Parallelism{.tp = 2, .dp = int(nodes.size())};
  gang.status.progress = {
      .seen = int(nodes.size()), .released = int(nodes.size()), .bound = int(nodes.size())};
  std::vector<crds::PlacedPod> pods;
  for (const std::string& node : nodes) pods.push_back({.node = node});
  gang.status.placement = crds::ToColumns(pods, 1);
  gang.status.planned_at = base::WallTime{std::chrono::seconds(1'800'000'000)};
  placement::Quality quality{.tp_groups = int(nodes.size()), .tp_groups_in_domain = int(nodes.size())};
  quality.edges[std::size_t(placement::Axis::kDp)] = 8;
  quality.leaf_crossings[std::size_t(placement::Axis::kDp)] = 4;
  quality.axis_micros[std::size_t(placement::Axis::kTp)] = 900;
  quality.axis_micros[std::size_t(placement::Axis::kDp)] = 1500;
  quality.step_micros = 2400;
  gang.status.predicted = quality;
  for (const std::string_view type : {crds::kCollected, crds::kPlanned, crds::kReleased, crds::kRunning}) {
    crds::SetCondition(gang.status.conditions,
                       {.type = std::string(type), .status = crds::ConditionStatus::kTrue, .reason = "Done"});
  }
  return gang;
}

}  // namespace heddle::operators::page
