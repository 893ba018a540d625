#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "extender/snapshot.h"
#include "tests/unit/extender/published.h"
#include "topology/synthetic.h"

namespace heddle::test {

using extender::FabricSet;
using extender::FabricView;
using extender::NodeFacts;
using extender::PodFacts;
using extender::Shared;
using extender::Snapshot;
using extender::SnapshotInputs;

// Nodes of a synthetic line, each with eight healthy GPUs and a Node object that agrees.
class Stage {
 public:
  explicit Stage(std::string_view line = "su:1 node:2 gpu:8 nic:8 rail:8") {
    const auto parsed = topology::ParseSynthetic(line);
    for (const topology::Node& node : parsed->nodes) Add(node);
  }
  void Add(const topology::Node& node) {
    auto object = std::make_shared<crds::NodeTopology>();
    object->name = node.name;
    object->status.node = node;
    object->status.observed_at = base::WallTime(std::chrono::seconds(1));
    topologies.push_back(object);
    auto facts = std::make_shared<NodeFacts>();
    facts->name = node.name;
    facts->ready = true;
    facts->milli_cpu = 64'000;
    facts->memory_bytes = 1LL << 40;
    facts->pods = 110;
    facts->gpus = int(node.gpus.size());
    facts->gpu_resource = "nvidia.com/gpu";
    facts->extended = {{"heddle.dev/fabric", 8}};
    nodes.push_back(facts);
  }
  PodFacts& Bound(const std::string& name, const std::string& node, int gpus) {
    auto pod = std::make_shared<PodFacts>();
    pod->key = {"other", name};
    pod->uid = name + "-uid";
    pod->gang = {"other", name + "-owner", 0};
    pod->node = node;
    pod->demand.gpus = gpus;
    pod->demand.gpu_resource = "nvidia.com/gpu";
    pod->demand.resources.milli_cpu = 1000;
    pods.push_back(pod);
    return *pod;
  }
  crds::Gang& Gang(const std::string& owner, const std::vector<crds::PlacedPod>& rows) {
    auto gang = std::make_shared<crds::Gang>();
    gang->ns = "train";
    gang->name = owner;
    gang->uid = owner + "-gang";
    gang->spec.owner.uid = owner;
    gang->spec.pods = int(rows.size());
    gang->status.placement = crds::ToColumns(rows, 1);
    gangs.push_back(gang);
    return *gang;
  }
  // Objects of their own, so that what changes on the stage later does not change in them.
  SnapshotInputs Inputs() const {
    SnapshotInputs inputs;
    Publish(topologies, declared, inputs);
    inputs.nodes = Copies(nodes);
    inputs.pods = Copies(pods);
    inputs.gangs = Copies(gangs);
    inputs.stale_nodes = stale;
    inputs.done = done;
    return inputs;
  }
  Snapshot Take() const { return extender::TakeSnapshot(Inputs()); }
  std::uint32_t Free(const std::string& node) const {
    const Snapshot snapshot = Take();
    topology::NodeId id = topology::kNone;
    const FabricView* view = snapshot.FindNode(node, id);
    return view == nullptr ? 0 : view->state.node(id).free_gpus;
  }

  std::vector<std::shared_ptr<crds::NodeTopology>> topologies;
  std::vector<std::shared_ptr<NodeFacts>> nodes;
  std::vector<std::shared_ptr<PodFacts>> pods;
  std::vector<std::shared_ptr<crds::Gang>> gangs;
  std::vector<Shared<crds::Fabric>> declared;
  std::set<std::string> stale;
  std::map<extender::GangKey, std::set<int>> done;

 private:
  template <class T>
  static std::vector<Shared<T>> Copies(const std::vector<std::shared_ptr<T>>& originals) {
    std::vector<Shared<T>> copies;
    for (const auto& one : originals) copies.push_back(std::make_shared<const T>(*one));
    return copies;
  }
};

}  // namespace heddle::test
