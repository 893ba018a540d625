#include "tests/sim/kubelets.h"

#include <fmt/format.h>

#include <bit>

#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "crds/node_topology.h"
#include "extender/owner_layout.h"
#include "extender/pod_facts.h"
#include "extender/resources.h"
#include "tests/sim/job_controller.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kNotReadyAfter{40};  // kube-controller-manager --node-monitor-grace-period
constexpr seconds kEvictAfter{60};     // the real 300 s only make runs longer
constexpr seconds kGrace{30};          // terminationGracePeriodSeconds

std::string PhaseOf(const Json& pod) {
  return kube::StringAt(pod, {"status", "phase"});
}

std::string UidOf(const test::FakeApiServer& server, const kube::Resource& resource,
                  const std::string& name) {
  const auto object = server.Find(resource, {"", name});
  return object ? kube::Uid(*object) : "";
}

void SetReady(Json& node, bool ready) {
  node["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "Unknown"}}});
  node["spec"]["taints"] =
      ready ? Json::array()
            : Json::array({{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}}});
}

}  // namespace

Kubelets::Kubelets(Simulation& simulation, test::FakeApiServer& server)
    : simulation_(simulation),
      server_(server),
      random_(simulation.Fork()),
      pace_(simulation, milliseconds(500), [this] { Look(); }) {}

void Kubelets::Add(const topology::Node& node) {
  nodes_.emplace(node.name, node);
  Register(node.name);
  Publish(node.name);
  Beat(node.name);
}

void Kubelets::Register(const std::string& node) {
  Json object = kube::NewObject(kube::kNodes, {"", node});
  object["metadata"]["labels"] = {{"kubernetes.io/hostname", node}};
  object["status"]["allocatable"] = {{"cpu", "128"},
                                     {"memory", "2048Gi"},
                                     {"pods", "110"},
                                     {"nvidia.com/gpu", std::to_string(nodes_.at(node).gpus.size())}};
  SetReady(object, true);
  server_.Put(kube::kNodes, object);
}

void Kubelets::Beat(const std::string& node) {
  if (!dead_.contains(node) && !silent_agents_.contains(node)) {
    const std::string name = crds::keys::NodeLease(node);
    server_.Edit(kube::kLeases, {std::string(crds::keys::kNamespace), name}, [&](Json& lease) {
      lease["spec"] = {{"holderIdentity", node},
                       {"leaseDurationSeconds", 240},
                       {"renewTime", base::FormatMicroTime(simulation_.wall())}};
    });
  }
  simulation_.After(seconds(60), [this, node] { Beat(node); });
}

void Kubelets::Publish(const std::string& node) {
  if (dead_.contains(node) || silent_agents_.contains(node)) return;
  crds::NodeTopology topology;
  topology.name = node;
  topology.status.node = nodes_.at(node);
  topology.status.hash = topology::ContentHash(topology.status.node);
  topology.status.observed_at = std::chrono::floor<seconds>(simulation_.wall());
  server_.Visit(kube::kPods, [&](const Json& pod) {
    const auto given = given_.find(kube::Uid(pod));
    if (given == given_.end() || kube::StringAt(pod, {"spec", "nodeName"}) != node) return;
    if (PhaseOf(pod) != "Running") return;
    crds::Grant grant{
        .pod_namespace = kube::Namespace(pod), .pod_name = kube::Name(pod), .container = "main"};
    for (int gpu = 0; gpu < 32; ++gpu) {
      if ((given->second >> gpu & 1u) != 0) grant.gpus.push_back({gpu, ""});
    }
    grant.resources = {"nvidia.com/gpu"};
    topology.status.grants.push_back(std::move(grant));
  });
  Json object = crds::ToJson(topology);
  const kube::ObjectKey key{"", node};
  if (const auto known = server_.Find(extender::kNodeTopologies, key)) {
    Json status = object["status"];
    status["observedAt"] = kube::StringAt(*known, {"status", "observedAt"});
    if (const Json* old = kube::Find(*known, {"status"}); old != nullptr && *old == status) return;
    server_.Edit(extender::kNodeTopologies, key, [&](Json& edited) { edited["status"] = object["status"]; });
  } else {
    server_.Put(extender::kNodeTopologies, object);
  }
}

// The operator's part: a Node has a NodeTopology, which is empty until the agent has looked.
void Kubelets::MakeTopology(const std::string& node) {
  if (removed_.contains(node)) return;
  const kube::ObjectKey key{"", node};
  if (!server_.Find(extender::kNodeTopologies, key))
    server_.Put(extender::kNodeTopologies, kube::NewObject(extender::kNodeTopologies, key));
  simulation_.After(seconds(1) + random_.Jitter(seconds(5)), [this, node] { Publish(node); });
}

void Kubelets::PublishGrants(const std::string& node) {
  if (!publishing_.insert(node).second) return;
  simulation_.After(seconds(1) + random_.Jitter(seconds(15)), [this, node] {
    publishing_.erase(node);
    Publish(node);
  });
}

void Kubelets::SetHealthy(const std::string& node, int gpu, bool healthy) {
  simulation_.Say(fmt::format("GPU {} of {} is {}", gpu, node, healthy ? "sound" : "broken"));
  nodes_.at(node).gpus.at(std::size_t(gpu)).healthy = healthy;
  Publish(node);
}

void Kubelets::SetAgent(const std::string& node, bool runs) {
  simulation_.Say(fmt::format("agent of {} {}", node, runs ? "runs" : "is dead"));
  if (runs) {
    silent_agents_.erase(node);
    Publish(node);
  } else {
    silent_agents_.insert(node);
  }
}

void Kubelets::KillNode(const std::string& node) {
  if (!dead_.insert(node).second) return;
  simulation_.Say("node " + node + " dies");
  simulation_.After(kNotReadyAfter, [this, node] {
    if (!dead_.contains(node) || removed_.contains(node)) return;
    server_.Edit(kube::kNodes, {"", node}, [](Json& edited) { SetReady(edited, false); });
  });
  simulation_.After(kNotReadyAfter + kEvictAfter, [this, node] {
    if (!dead_.contains(node)) return;
    for (const Json& pod : server_.All(kube::kPods)) {
      if (kube::StringAt(pod, {"spec", "nodeName"}) != node || kube::DeletionTimestamp(pod)) continue;
      if (PhaseOf(pod) == "Succeeded" || PhaseOf(pod) == "Failed") continue;
      simulation_.Say("evict pod " + kube::Name(pod) + " of " + node);
      server_.Edit(kube::kPods, kube::KeyOf(pod), [&](Json& edited) {
        edited["metadata"]["deletionTimestamp"] = base::FormatTime(simulation_.wall());
      });
    }
  });
}

void Kubelets::RemoveNode(const std::string& node) {
  if (!removed_.insert(node).second) return;
  simulation_.Say("node " + node + " is deleted");
  dead_.insert(node);
  const std::string topology = UidOf(server_, extender::kNodeTopologies, node);
  server_.Remove(kube::kNodes, {"", node});
  // By its owner's UID, so also where the Node is back by then; the operator makes another.
  simulation_.After(seconds(1) + random_.Jitter(seconds(8)), [this, node, topology] {
    if (UidOf(server_, extender::kNodeTopologies, node) != topology) return;
    server_.Remove(extender::kNodeTopologies, {"", node});
    simulation_.After(seconds(2), [this, node] { MakeTopology(node); });
  });
  // kube-controller-manager's pod garbage collector looks again after 40 s before it believes it.
  simulation_.After(seconds(40) + random_.Jitter(seconds(20)), [this, node] {
    if (!removed_.contains(node)) return;
    for (const PodRow& pod : PodRows(server_)) {
      if (pod.node == node) server_.Remove(kube::kPods, pod.key);
    }
  });
}

void Kubelets::ReviveNode(const std::string& node) {
  if (dead_.erase(node) == 0) return;
  simulation_.Say("node " + node + " is back");
  if (removed_.erase(node) > 0) {
    Register(node);
    MakeTopology(node);
  } else {
    server_.Edit(kube::kNodes, {"", node}, [](Json& edited) { SetReady(edited, true); });
    Publish(node);
  }
  Kick();
}

void Kubelets::Look() {
  const std::vector<PodRow> pods = PodRows(server_);
  for (const PodRow& pod : pods) {
    if (pod.node.empty() || dead_.contains(pod.node)) continue;
    if (pod.terminating && leaving_.insert(pod.uid).second) {
      simulation_.After(random_.Jitter(kGrace), [this, pod] { Leave(pod); });
    } else if (!pod.terminating && pod.phase == "Pending" && started_.insert(pod.uid).second) {
      simulation_.After(milliseconds(200) + random_.Jitter(seconds(5)), [this, pod] {
        started_.erase(pod.uid);
        const auto now = server_.Find(kube::kPods, pod.key);
        if (!now || kube::Uid(*now) != pod.uid || kube::DeletionTimestamp(*now)) return;
        if (!dead_.contains(pod.node)) Start(*now);
      });
    }
  }
  FinishTogether(pods);
}

void Kubelets::Leave(const PodRow& pod) {
  leaving_.erase(pod.uid);
  if (dead_.contains(pod.node)) return;
  const auto last = server_.Find(kube::kPods, pod.key);
  if (last && kube::Uid(*last) == pod.uid) server_.Remove(kube::kPods, pod.key);
  PublishGrants(pod.node);
}

// The device plugin gives what the plan says where it can, else the lowest that are free. What does not fit is refused.
void Kubelets::Start(const Json& object) {
  const extender::PodFacts pod = extender::ReadPod(object);
  const topology::Node& node = nodes_.at(pod.node);
  std::uint32_t taken = 0;
  server_.Visit(kube::kPods, [&](const Json& other) {
    if (kube::StringAt(other, {"spec", "nodeName"}) != pod.node || PhaseOf(other) != "Running") return;
    if (const auto given = given_.find(kube::Uid(other)); given != given_.end()) taken |= given->second;
  });
  const std::uint32_t all = crds::AllIndexes(node);
  std::uint32_t gpus = pod.plan && pod.plan->node == pod.node ? pod.plan->gpus : 0;
  if (gpus == 0 && pod.plan && pod.plan->node == pod.node) gpus = all;
  if ((gpus & taken) != 0) gpus = 0;
  for (int gpu = 0; gpu < 32 && std::popcount(gpus) < pod.demand.gpus; ++gpu) {
    if (((all & ~taken & ~gpus) >> gpu & 1u) != 0) gpus |= 1u << gpu;
  }
  const bool fits = std::popcount(gpus) == pod.demand.gpus;
  if (fits) given_[pod.uid] = gpus;
  if (!fits) simulation_.Say("kubelet of " + pod.node + " refuses pod " + pod.key.name);
  server_.Edit(kube::kPods, pod.key, [&](Json& edited) {
    edited["status"]["phase"] = fits ? "Running" : "Failed";
    if (!fits) edited["status"]["reason"] = "UnexpectedAdmissionError";
  });
  PublishGrants(pod.node);
}

// A training Job makes progress only while all its ranks run.
void Kubelets::FinishTogether(const std::vector<PodRow>& pods) {
  std::map<std::string, std::vector<const PodRow*>> by_owner;
  std::map<std::string, std::set<int>> at_the_gate;
  for (const PodRow& pod : pods) {
    if (!pod.terminating && pod.gated) at_the_gate[pod.owner].insert(pod.index);
    if (!pod.terminating && (pod.phase == "Running" || pod.phase == "Succeeded"))
      by_owner[pod.owner].push_back(&pod);
  }
  server_.Visit(kube::kJobs, [&](const Json& job) {
    const auto found = by_owner.find(kube::Uid(job));
    if (found == by_owner.end() || IsFinished(job)) return;
    const auto wanted = kube::IntAt(job, {"spec", "completions"}).value_or(1);
    // What is done keeps nobody waiting, whether or not its pod is still there.
    std::set<int> together = extender::ReadRanksDone(job, wanted);
    for (const PodRow* pod : found->second) {
      if (pod->index < wanted) together.insert(pod->index);
    }
    // New ranks of an elastic one may wait for room, and those that it has had train on.
    if (IsElastic(job)) together.merge(at_the_gate[kube::Uid(job)]);
    if (std::int64_t(together.size()) < wanted) return;
    const std::string runs = kube::StringAt(job, {"spec", "template", "metadata", "annotations", "sim/runs"});
    if (runs.empty() && !all_end_) return;
    const seconds duration(runs.empty() ? 10 : std::atoi(runs.c_str()));
    for (const PodRow* pod : found->second) {
      if (pod->phase != "Running" || !finishing_.insert(pod->uid).second) continue;
      simulation_.After(duration + random_.Jitter(seconds(2)),
                        [this, key = pod->key, uid = pod->uid] { Finish(key, uid); });
    }
  });
}

void Kubelets::Finish(const kube::ObjectKey& key, const std::string& uid) {
  const auto pod = server_.Find(kube::kPods, key);
  if (!pod || kube::Uid(*pod) != uid || PhaseOf(*pod) != "Running" || kube::DeletionTimestamp(*pod)) return;
  const std::string node = kube::StringAt(*pod, {"spec", "nodeName"});
  if (dead_.contains(node)) {
    simulation_.After(seconds(5), [this, key, uid] { Finish(key, uid); });
    return;
  }
  server_.Edit(kube::kPods, key, [](Json& edited) { edited["status"]["phase"] = "Succeeded"; });
  PublishGrants(node);
}

void Kubelets::Crash(const kube::ObjectKey& key) {
  const auto pod = server_.Find(kube::kPods, key);
  if (!pod || PhaseOf(*pod) != "Running" || kube::DeletionTimestamp(*pod)) return;
  const std::string node = kube::StringAt(*pod, {"spec", "nodeName"});
  if (dead_.contains(node)) return;
  simulation_.Say("the program in pod " + key.name + " fails");
  server_.Edit(kube::kPods, key, [](Json& edited) { edited["status"]["phase"] = "Failed"; });
  PublishGrants(node);
}

}  // namespace heddle::sim
