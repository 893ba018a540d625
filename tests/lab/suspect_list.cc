// Reads NodeTopologies, one JSON object a line, and prints whom the operator suspects of them, the worst first: what
// agents of tests/lab say goes the operator's own way without a cluster.

#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "crds/fabric_assembly.h"
#include "crds/node_topology.h"
#include "operator/fabric_suspects.h"
#include "topology/suspects.h"

int main() {
  using namespace heddle;
  std::vector<topology::Node> nodes;
  for (std::string line; std::getline(std::cin, line);) {
    const auto json = crds::Json::parse(line, nullptr, false);
    const auto object = crds::NodeTopologyFromJson(json);
    if (!object) {
      std::fprintf(stderr, "%s\n", object.error().message.c_str());
      return 1;
    }
    nodes.push_back(object->status.node);
  }
  const auto none = [] { return std::vector<crds::Gang>{}; };
  for (const auto& [name, fabric] : crds::AssembleFabrics(nodes, {})) {
    for (const topology::Suspect& suspect : operators::SuspectsOf(fabric, {}, none))
      std::printf("%s: %s\n", name.c_str(), topology::SentenceOf(suspect).c_str());
  }
  return 0;
}
