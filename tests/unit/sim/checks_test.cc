// Each check fires when its promise is broken, and only then.
#include "tests/sim/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "crds/keys.h"
#include "crds/node_topology.h"
#include "extender/compute_domain.h"
#include "extender/resources.h"
#include "tests/sim/run.h"
#include "tests/sim/world.h"
#include "tests/support/fake_clock.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::seconds;
namespace keys = crds::keys;

class ChecksTest : public testing::Test {
 protected:
  ChecksTest() {
    server_.Serve(extender::kGangs);
    server_.Serve(extender::kNodeTopologies);
    server_.OnChange([this](const kube::Resource& resource, const Json& before, const Json& after) {
      checks_.Changed(resource, before, after);
    });
    Json node = kube::NewObject(kube::kNodes, {"", "node-0"});
    node["status"]["allocatable"] = {{"nvidia.com/gpu", "8"}};
    server_.Put(kube::kNodes, node);
  }

  // A gang's pod past the gate, told to be rank 0 on node-0.
  Json PodOf(const std::string& gang, const std::string& gpus, int count) {
    Json pod = kube::NewObject(kube::kPods, {"team", gang + "-0"});
    pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                       {"kind", "Job"},
                                                       {"name", gang},
                                                       {"uid", "job-" + gang},
                                                       {"controller", true}}});
    pod["metadata"]["annotations"] = {{keys::kRank, "0"},      {keys::kNode, "node-0"},
                                      {keys::kGpus, gpus},     {keys::kGangUid, "gang-" + gang},
                                      {keys::kEpoch, "1"},     {keys::kNics, ""},
                                      {keys::kSubstitutes, ""}};
    pod["spec"]["containers"] = Json::array(
        {{{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(count)}}}}}}});
    pod["status"] = {{"phase", "Pending"}};
    return pod;
  }

  void Commit(const std::string& name, std::uint32_t gpus, int per_pod) {
    crds::Gang gang;
    gang.ns = "team";
    gang.name = name;
    gang.uid = "gang-" + name;
    gang.spec.owner = {"batch/v1", "Job", name, "job-" + name};
    gang.spec.pods = 1;
    gang.spec.gpus_per_pod = per_pod;
    gang.spec.gpu_resource = "nvidia.com/gpu";
    gang.status.placement = crds::ToColumns({{"node-0", gpus, {}}}, 1);
    server_.Put(extender::kGangs, crds::ToJson(gang));
  }

  void Bind(const std::string& pod) {
    server_.Edit(kube::kPods, {"team", pod}, [](Json& edited) { edited["spec"]["nodeName"] = "node-0"; });
  }

  std::vector<std::string> Broken() const {
    std::vector<std::string> rules;
    for (const Violation& violation : checks_.violations()) rules.push_back(violation.rule);
    return rules;
  }

  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Simulation simulation_{1};
  Checks checks_{simulation_};
};

TEST_F(ChecksTest, SayNothingOfGangsSideBySide) {
  Commit("a", 0x0f, 4);
  Commit("b", 0xf0, 4);
  server_.Put(kube::kPods, PodOf("a", "0,1,2,3", 4));
  server_.Put(kube::kPods, PodOf("b", "4,5,6,7", 4));
  Bind("a-0");
  Bind("b-0");
  EXPECT_THAT(Broken(), testing::IsEmpty());
}

TEST_F(ChecksTest, SeeTwoPodsOnOneGpu) {
  Commit("a", 0x0f, 4);
  Commit("b", 0x0f, 4);
  server_.Put(kube::kPods, PodOf("a", "0,1,2,3", 4));
  Bind("a-0");
  server_.Put(kube::kPods, PodOf("b", "0,1,2,3", 4));
  Bind("b-0");
  EXPECT_THAT(Broken(), testing::ElementsAre("NoOverlap", "NoGpuTwice"));
}

// Its kubelet had given GPUs 0 and 1 away when the first was admitted, and has them again for the second.
TEST_F(ChecksTest, LetRanksOfOneGangHaveEachOthersGpusAndNobodyElse) {
  for (const char* name : {"a", "b"}) Commit(name, 0x0c, 2);
  server_.Put(kube::kPods, PodOf("a", "0,1", 2));
  Bind("a-0");
  crds::NodeTopology topology;
  topology.name = "node-0";
  crds::Grant grant;
  grant.pod_namespace = "team";
  grant.pod_name = "a-0";
  grant.gpus = {{2, ""}, {3, ""}};
  topology.status.grants = {grant};
  server_.Put(extender::kNodeTopologies, crds::ToJson(topology));
  Json second = PodOf("a", "2,3", 2);
  second["metadata"]["name"] = "a-1";
  server_.Put(kube::kPods, second);
  Bind("a-1");
  const auto twice = [this] {
    const auto broken = Broken();
    return std::count(broken.begin(), broken.end(), "NoGpuTwice");
  };
  EXPECT_EQ(twice(), 0);
  server_.Put(kube::kPods, PodOf("b", "2,3", 2));
  Bind("b-0");
  EXPECT_GT(twice(), 0);
}

TEST_F(ChecksTest, SeeMoreGpusInUseThanThereAre) {
  for (const char* name : {"a", "b"}) {
    Json pod = kube::NewObject(kube::kPods, {"team", name});
    pod["spec"] = {{"containers", Json::array({{{"name", "main"},
                                                {"resources", {{"limits", {{"nvidia.com/gpu", "5"}}}}}}})}};
    server_.Put(kube::kPods, pod);
    Bind(name);
  }
  EXPECT_THAT(Broken(), testing::ElementsAre("NoGpuTwice"));
}

TEST_F(ChecksTest, SeeANewGangOnASpareAndLetOneThatHasBegunUseIt) {
  checks_.KeepSpares({{"node-0", "rack-0"}, {"node-1", "rack-0"}}, 1);
  const auto commit_both = [this](const std::string& name) {
    crds::Gang gang;
    gang.ns = "team";
    gang.name = name;
    gang.uid = "another-" + name;
    gang.spec.owner = {"batch/v1", "Job", name, "job-" + name};
    gang.spec.pods = 2;
    gang.spec.gpus_per_pod = 8;
    gang.spec.gpu_resource = "nvidia.com/gpu";
    gang.status.placement = crds::ToColumns({{"node-0", 0xff, {}}, {"node-1", 0xff, {}}}, 1);
    server_.Put(extender::kGangs, crds::ToJson(gang));
  };
  Commit("a", 0xff, 8);
  server_.Put(kube::kPods, PodOf("a", "0,1,2,3,4,5,6,7", 8));
  server_.Remove(extender::kGangs, {"team", "a"});
  commit_both("a");
  EXPECT_THAT(Broken(), testing::IsEmpty());
  commit_both("b");
  EXPECT_THAT(Broken(), testing::ElementsAre("SparesStay"));
}

TEST_F(ChecksTest, SeeAPodThatWasToldWhatNoGangSays) {
  Commit("a", 0x0f, 4);
  server_.Put(kube::kPods, PodOf("a", "4,5,6,7", 4));
  EXPECT_THAT(Broken(), testing::ElementsAre("PlanBeforePod"));
}

TEST_F(ChecksTest, SeeAPodThatIsLetGoBeforeItsComputeDomainIsMade) {
  server_.Serve(extender::kComputeDomains);
  Commit("a", 0x0f, 4);
  Commit("b", 0xf0, 4);
  const auto with_claim = [](Json pod) {
    pod["spec"]["resourceClaims"] =
        Json::array({{{"name", keys::kComputeDomainClaim},
                      {"resourceClaimTemplateName", extender::ComputeDomainName(pod).value_or("")}}});
    return pod;
  };
  const Json early = with_claim(PodOf("a", "0,1,2,3", 4)), late = with_claim(PodOf("b", "4,5,6,7", 4));
  server_.Put(extender::kComputeDomains,
              kube::NewObject(extender::kComputeDomains, {"team", extender::ClaimedComputeDomain(late)}));
  server_.Put(kube::kPods, late);
  EXPECT_THAT(Broken(), testing::IsEmpty());
  server_.Put(kube::kPods, early);
  EXPECT_THAT(Broken(), testing::ElementsAre("DomainBeforePod"));
}

TEST_F(ChecksTest, SeeASpecThatChanges) {
  Commit("a", 0x0f, 4);
  server_.Put(kube::kPods, PodOf("a", "0,1,2,3", 4));
  server_.Edit(kube::kPods, {"team", "a-0"}, [](Json& pod) { pod["spec"]["nodeSelector"] = {{"x", "y"}}; });
  server_.Edit(extender::kGangs, {"team", "a"}, [](Json& gang) { gang["spec"]["pods"] = 1; });
  EXPECT_THAT(Broken(), testing::ElementsAre("SpecStays"));
  server_.Edit(extender::kGangs, {"team", "a"}, [](Json& gang) { gang["spec"]["priority"] = 7; });
  EXPECT_THAT(Broken(), testing::ElementsAre("SpecStays", "SpecStays"));
}

TEST_F(ChecksTest, SeeAJobThatFailsOfWhatAnExtenderDeleted) {
  const Json job = server_.Put(kube::kJobs, [] {
    Json object = kube::NewObject(kube::kJobs, {"team", "a"});
    object["metadata"]["uid"] = "job-a";
    return object;
  }());
  Commit("a", 0x0f, 4);
  server_.Put(kube::kPods, PodOf("a", "0,1,2,3", 4));
  const auto fail = [this] {
    server_.Edit(kube::kJobs, {"team", "a"}, [](Json& edited) {
      edited["status"]["conditions"] = Json::array({{{"type", "Failed"}, {"status", "True"}}});
    });
  };
  fail();
  EXPECT_THAT(Broken(), testing::IsEmpty());
  Process process(simulation_, "ext");
  test::ApiRequest request;
  request.method = "DELETE";
  request.plural = "pods";
  request.key = {"team", "a-0"};
  checks_.Requested(process, request, {200, {}, "{}"});
  fail();
  EXPECT_THAT(Broken(), testing::ElementsAre("NoJobFailedByUs"));
}

TEST_F(ChecksTest, SeeAJobThatFailsOfWhatAnExtenderEvicted) {
  const Json job = server_.Put(kube::kJobs, [] {
    Json object = kube::NewObject(kube::kJobs, {"team", "a"});
    object["metadata"]["uid"] = "job-a";
    return object;
  }());
  Commit("a", 0x0f, 4);
  server_.Put(kube::kPods, PodOf("a", "0,1,2,3", 4));
  Process process(simulation_, "ext");
  test::ApiRequest request;
  request.method = "POST";
  request.plural = "pods";
  request.subresource = "eviction";
  request.key = {"team", "a-0"};
  checks_.Requested(process, request, {201, {}, "{}"});
  server_.Edit(kube::kJobs, {"team", "a"}, [](Json& edited) {
    edited["status"]["conditions"] = Json::array({{{"type", "Failed"}, {"status", "True"}}});
  });
  EXPECT_THAT(Broken(), testing::ElementsAre("NoJobFailedByUs"));
}

TEST_F(ChecksTest, SeeAPodOfAGangThatMayBeStoppedAlone) {
  Commit("a", 0x0f, 4);
  const Json pod = server_.Put(kube::kPods, PodOf("a", "0,1,2,3", 4));
  Process process(simulation_, "ext");
  Process other(simulation_, "other");
  test::ApiRequest request;
  request.method = "PATCH";
  request.plural = "pods";
  request.key = {"team", "a-0"};
  checks_.Requested(process, request, {200, {}, pod.dump()});
  Json victims;
  victims["Pods"] = Json::array({{{"UID", kube::Uid(pod)}}});
  Json answer;
  answer["NodeNameToMetaVictims"]["node-0"] = victims;
  checks_.Preempted(other, answer);
  EXPECT_THAT(Broken(), testing::IsEmpty()) << "that one may not have heard of it";
  checks_.Preempted(process, answer);
  EXPECT_THAT(Broken(), testing::ElementsAre("NoGangTorn"));
}

// What is judged at rest: a whole run on a world in which something is broken.
std::vector<std::string> RulesBroken(const std::function<void(World&)>& sabotage,
                                     const std::vector<std::uint64_t>& seeds = {1, 2, 3}) {
  std::set<std::string> rules;
  for (const std::uint64_t seed : seeds) {
    const Outcome outcome = RunSeed({.seed = seed, .sabotage = sabotage});
    for (const Violation& violation : outcome.violations) rules.insert(violation.rule);
  }
  return {rules.begin(), rules.end()};
}

TEST(ChecksAtRest, SeeAGangThatIsNeverLetGo) {
  EXPECT_THAT(
      RulesBroken([](World& world) {
        world.server().Intercept([](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
          if (request.method != "PATCH" || request.plural != "pods") return std::nullopt;
          return test::StatusResponse(403, "", "forbidden by the test");
        });
      }),
      testing::Contains("AllOrNothing"));
}

TEST(ChecksAtRest, SeeExtendersThatAreGone) {
  EXPECT_THAT(RulesBroken([](World& world) {
                for (Machine& machine : world.machines()) machine.wanted = false;
                world.simulation().After(seconds(100), [&world] {
                  for (Machine& machine : world.machines()) world.simulation().Kill(*machine.process);
                });
              }),
              testing::Contains("AllOrNothing"));
}

// Every gang waits and says why, and there is nothing more that could happen: only the end can tell that no Job has run.
TEST(ChecksAtRest, SeeAGangThatCouldRunAndNeverDoes) {
  EXPECT_THAT(RulesBroken([](World& world) {
                for (const std::string& node : world.nodes()) {
                  for (int gpu = 0; gpu < world.gpus_per_node(); ++gpu)
                    world.kubelets().SetHealthy(node, gpu, false);
                }
              }),
              testing::Contains("FeasibleRuns"));
}

TEST(ChecksAtRest, SeeWhatNobodyCollects) {
  EXPECT_THAT(RulesBroken([](World& world) { world.collector().Stop(); }),
              testing::Contains("NothingLeaked"));
}

// Somebody who takes back what was written, for ever.
void TakeBack(World& world) {
  for (const Json& gang : world.server().All(extender::kGangs)) {
    world.server().Edit(extender::kGangs, kube::KeyOf(gang), [](Json& edited) {
      if (edited.contains("status")) edited["status"].erase("progress");
    });
  }
  world.simulation().After(seconds(20), [&world] { TakeBack(world); });
}

TEST(ChecksAtRest, SeeAStatusThatNeverSettles) {
  // In these a gang runs on while nothing else happens.
  EXPECT_THAT(RulesBroken([](World& world) { TakeBack(world); }, {4, 5, 6}),
              testing::Contains("StatusSettles"));
}

TEST(ChecksAtRest, SeeAProcessThatAsksWithoutEnd) {
  EXPECT_THAT(RulesBroken([](World& world) {
                world.simulation().Start("eager", {}, [&world](Process& process) {
                  Link link(world.network(), process);
                  kube::Client client(link, process);
                  while (!process.stop().stop_requested()) {
                    (void)client.Get(kube::kNodes, {"", "node-0"}, process.stop());
                  }
                });
              }),
              testing::Contains("NoHotLoop"));
}

}  // namespace
}  // namespace heddle::sim
