#pragma once

#include <map>
#include <set>
#include <string>

#include "tests/sim/actor.h"
#include "tests/sim/pod_row.h"
#include "tests/support/fake_api_server.h"
#include "topology/node.h"

namespace heddle::sim {

// Every node's kubelet and heddle-nodeagent, and what the operator does to NodeTopologies: pods start, run together,
// end; what they were given is published as grants of the NodeTopology, some time later. A dead node is NotReady after
// 40 s; its pods are deleted after a while and stay terminating until it is back. Thread rule: as Simulation.
class Kubelets {
 public:
  Kubelets(Simulation& simulation, test::FakeApiServer& server);

  void Add(const topology::Node& node);
  void Look();
  void Kick() { pace_.Kick(); }

  void KillNode(const std::string& node);
  void ReviveNode(const std::string& node);
  // Somebody deletes the Node: its NodeTopology goes with it, its pods some time later. ReviveNode registers it
  // anew, under another UID.
  void RemoveNode(const std::string& node);
  bool alive(const std::string& node) const { return !dead_.contains(node); }
  // The agent alone: it stops or goes on to renew its Lease and to publish.
  void SetAgent(const std::string& node, bool runs);
  // The program in a pod that runs ends with an error.
  void Crash(const kube::ObjectKey& pod);
  // Marks a GPU as broken or sound.
  void SetHealthy(const std::string& node, int gpu, bool healthy);
  // From now on Jobs that run for ever end like others.
  void LetAllEnd() { all_end_ = true; }

 private:
  void Register(const std::string& node);
  void Start(const kube::Json& pod);
  void Leave(const PodRow& pod);
  void FinishTogether(const std::vector<PodRow>& pods);
  void Finish(const kube::ObjectKey& key, const std::string& uid);
  void LeaveNodes();
  void PublishGrants(const std::string& node);
  void Beat(const std::string& node);
  void Publish(const std::string& node);
  void MakeTopology(const std::string& node);

  Simulation& simulation_;
  test::FakeApiServer& server_;
  base::Random random_;
  std::map<std::string, topology::Node> nodes_;
  std::set<std::string> dead_, removed_, silent_agents_;  // removed_ are dead_, too
  std::map<std::string, std::uint32_t> given_;            // by pod UID: GPU indexes
  std::set<std::string> started_, finishing_, leaving_, publishing_;
  bool all_end_ = false;
  Pace pace_;
};

}  // namespace heddle::sim
