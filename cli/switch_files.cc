#include "cli/switch_files.h"

#include <fmt/format.h>

#include <map>

#include "cli/object_documents.h"
#include "crds/keys.h"
#include "kube/object.h"
#include "switches/cables.h"

namespace heddle::cli {

using crds::Json;

base::Status ReadNodes(const std::string& text, SwitchFiles& files) {
  std::map<std::string, int> others;
  const auto take = [&](const Json& object) -> base::Status {
    const std::string kind = kube::StringAt(object, {"kind"});
    if (kind != crds::keys::kNodeTopology.kind) {
      ++others[kind.empty() ? "object without a kind" : kind];
      return {};
    }
    ASSIGN_OR_RETURN(crds::NodeTopology node, crds::NodeTopologyFromJson(object));
    // Each of its cables would count twice.
    if (!files.names.insert(node.name).second) {
      return base::Fail(base::Code::kInvalid,
                        fmt::format("NodeTopology {} stands twice; was a file given twice?", node.name));
    }
    files.nodes.push_back(std::move(node));
    return {};
  };
  TRY(ForEachObject(text, nullptr, take));
  for (const auto& [kind, count] : others)
    files.notes.push_back(fmt::format("{} of kind {} left out", count, kind));
  return {};
}

base::Status ReadSwitchFile(const std::string& path, const std::string& name, const std::string& text,
                            SwitchFiles& files) {
  if (IsJson(text)) {
    ASSIGN_OR_RETURN(const Json json, JsonOf(text));
    if (json.is_object() && !json.contains("kind") && !json.contains("items")) {
      ASSIGN_OR_RETURN(formats::SonicConfig config, formats::ParseSonicConfig(text));
      SwitchFile file{name, std::move(config)};
      if (file.name.empty()) file.name = file.config.hostname.empty() ? path : file.config.hostname;
      for (const std::string& note : file.config.notes)
        files.notes.push_back(fmt::format("{}: {}", path, note));
      files.switches.push_back(std::move(file));
      return {};
    }
  }
  return ReadNodes(text, files);
}

std::set<std::string> PortsOfHosts(const SwitchFiles& files, const formats::SonicConfig& config) {
  std::set<std::string> ports;
  for (const crds::NodeTopology& node : files.nodes) {
    for (const topology::Nic& nic : node.status.node.nics) {
      for (const topology::NicPort& port : nic.ports) {
        if (nic.role != topology::NicRole::kCompute || !port.leaf_port) continue;
        if (config.hostname.empty() || port.leaf_port->leaf != config.hostname) continue;
        const formats::SonicPort* found = switches::PortOf(config, port.leaf_port->port);
        ports.insert(found == nullptr ? port.leaf_port->port : found->name);
      }
    }
  }
  return ports;
}

}  // namespace heddle::cli
