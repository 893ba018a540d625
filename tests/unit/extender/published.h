#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::test {

// What the caches make of NodeTopologies: the facts of each, and the fabrics of all.
inline void Publish(const std::vector<std::shared_ptr<crds::NodeTopology>>& topologies,
                    const std::vector<extender::Shared<crds::Fabric>>& declared,
                    extender::SnapshotInputs& inputs) {
  std::vector<topology::Node> published;
  std::vector<std::string> silent;
  std::vector<extender::Shared<extender::TopologyFacts>> facts;
  for (const auto& topology : topologies) {
    facts.push_back(std::make_shared<const extender::TopologyFacts>(extender::FactsOf(*topology)));
    if (!topology->status.observed_at) {
      silent.push_back(topology->name);
      continue;
    }
    published.push_back(topology->status.node);
    published.back().name = topology->name;
  }
  inputs.topologies = std::move(facts);
  inputs.fabrics = std::make_shared<const extender::FabricSet>(
      extender::AssembleFabrics(std::move(published), silent, declared));
}

}  // namespace heddle::test
