#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/commands.h"
#include "crds/fabric.h"
#include "crds/gang.h"
#include "crds/keys.h"
#include "crds/node_topology.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"
#include "topology/synthetic.h"

namespace heddle::cli {

namespace keys = crds::keys;

inline kube::Resource ResourceOf(keys::Kind kind, bool namespaced = false) {
  return kube::CustomResource(std::string(keys::kGroup), std::string(keys::kVersion),
                              std::string(kind.plural), std::string(kind.kind), namespaced);
}

// A cluster to ask: nodes by synthetic line, a Job and its bound pods.
class Stage : public testing::Test {
 protected:
  Stage() {
    server.Serve(ResourceOf(keys::kNodeTopology));
    server.Serve(ResourceOf(keys::kFabric));
    server.Serve(ResourceOf(keys::kGang, true));
  }

  void AddCluster(const std::string& line) {
    const auto synthetic = topology::ParseSynthetic(line);
    ASSERT_TRUE(synthetic) << line;
    for (const topology::Node& node : synthetic->nodes) {
      crds::NodeTopology object;
      object.name = node.name;
      object.status.node = node;
      object.status.hash = topology::ContentHash(node);
      object.status.observed_at = std::chrono::floor<std::chrono::seconds>(clock.WallNow());
      crds::SetCondition(object.status.conditions, {.type = std::string(crds::kReady),
                                                    .status = crds::ConditionStatus::kTrue,
                                                    .reason = "Discovered",
                                                    .message = "ok",
                                                    .last_transition = *object.status.observed_at});
      server.Put(ResourceOf(keys::kNodeTopology), crds::ToJson(object));
    }
  }

  Json AddJob(const std::string& name, int completions, const std::string& parallelism) {
    Json job = kube::NewObject(kube::kJobs, {"train", name});
    job["spec"] = {{"completions", completions}, {"parallelism", completions}, {"completionMode", "Indexed"}};
    if (!parallelism.empty()) {
      job["spec"]["template"]["metadata"]["annotations"][std::string(keys::kParallelism)] = parallelism;
    }
    return server.Put(kube::kJobs, job);
  }

  // node "" leaves the pod unbound; gpu_list "" leaves its GPUs unsaid.
  Json AddPod(const std::string& job, int index, const std::string& node, int gpus,
              const std::string& gpu_list = "") {
    Json pod = kube::NewObject(kube::kPods, {"train", job + "-" + std::to_string(index)});
    pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-name", job},
                                 {"batch.kubernetes.io/job-completion-index", std::to_string(index)}};
    if (!gpu_list.empty()) pod["metadata"]["annotations"][std::string(keys::kGpus)] = gpu_list;
    pod["spec"]["containers"] = Json::array(
        {{{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}});
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = node.empty() ? "Pending" : "Running";
    return server.Put(kube::kPods, pod);
  }

  // The Lease of the node's agent, as it was renewed then.
  void Beat(const std::string& node, std::chrono::seconds ago) {
    Json lease = kube::NewObject(kube::kLeases, {std::string(keys::kNamespace), keys::NodeLease(node)});
    lease["spec"] = {{"holderIdentity", node},
                     {"leaseDurationSeconds", 240},
                     {"renewTime", base::FormatMicroTime(clock.WallNow() - ago)}};
    server.Put(kube::kLeases, lease);
  }

  Output ExplainJob(const std::string& target, Format format = Format::kText, ParallelismFlags flags = {}) {
    return RunExplain(client, clock, {.target = target, .ns = "train", .flags = std::move(flags)},
                      {.format = format}, {});
  }

  test::FakeClock clock;
  test::FakeApiServer server{clock};
  kube::Client client{server, clock};
};

}  // namespace heddle::cli
