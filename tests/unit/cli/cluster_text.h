#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "crds/gang.h"
#include "crds/node_topology.h"
#include "topology/synthetic.h"

namespace heddle::cli {

// Files in memory.
struct Files {
  std::map<std::string, std::string> texts;
  ReadFile read = [this](const std::string& path) -> base::Result<std::string> {
    const auto found = texts.find(path);
    if (found == texts.end()) return base::Fail(base::Code::kNotFound, path + ": No such file or directory");
    return found->second;
  };
};

// As the agents of a synthetic cluster would have published it.
inline Json NodeTopologiesOf(const char* line) {
  Json items = Json::array();
  const auto made = topology::ParseSynthetic(line);
  for (const topology::Node& node : made->nodes) {
    crds::NodeTopology object;
    object.name = node.name;
    object.status.node = node;
    object.status.observed_at = base::WallTime(std::chrono::seconds(1'800'000'000));
    items.push_back(crds::ToJson(object));
  }
  return items;
}

// A gang of pods of 8 GPUs.
inline Json GangOn(const std::vector<crds::PlacedPod>& rows, const std::string& name = "other") {
  crds::Gang gang;
  gang.ns = "train";
  gang.name = name;
  gang.spec.owner = {"batch/v1", "Job", name, "uid"};
  gang.spec.pods = int(rows.size());
  gang.spec.gpus_per_pod = 8;
  gang.status.placement = crds::ToColumns(rows, 1);
  return crds::ToJson(gang);
}

inline std::string ListOf(Json items) {
  return Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}}.dump();
}

}  // namespace heddle::cli
