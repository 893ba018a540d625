#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "crds/node_topology.h"
#include "formats/sonic_config.h"

namespace heddle::cli {

// A switch as its configuration has it.
struct SwitchFile {
  std::string name;  // its hostname, or as the file is called
  formats::SonicConfig config;
};

// What the `switch` commands were given.
struct SwitchFiles {
  std::vector<crds::NodeTopology> nodes;  // no two of one name
  std::set<std::string> names;            // theirs
  std::vector<SwitchFile> switches;
  std::vector<std::string> notes;
};

// Adds the NodeTopologies of a text: YAML, JSON, a List. Errors: kInvalid with the object, also one that
// stands there already.
[[nodiscard]] base::Status ReadNodes(const std::string& text, SwitchFiles& files);

// Adds what a text is by its content, NodeTopologies or a config_db.json. `name`: of the switch, where the file was
// given as NAME=FILE; empty = its hostname, else `path`.
[[nodiscard]] base::Status ReadSwitchFile(const std::string& path, const std::string& name,
                                          const std::string& text, SwitchFiles& files);

// The ports of this switch on which cables of the hosts end, by its hostname.
std::set<std::string> PortsOfHosts(const SwitchFiles& files, const formats::SonicConfig& config);

}  // namespace heddle::cli
