#include "extender/compute_domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "crds/keys.h"
#include "extender/resources.h"
#include "extender/unmodelled.h"
#include "tests/unit/extender/cluster.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cluster;
using test::GatedPod;
using test::JobWords;
using test::RunningExtender;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace keys = crds::keys;

constexpr const char* kTwoRacks = "rack:2 tray:6 gpu:4 nic:4 rail:4 machine:gb200 nvl";
constexpr const char* kServers = "su:2 node:8 gpu:8 nic:8 rail:8 spine:2 rate:400";

TEST(ComputeDomainName, FollowsTheTableThatTheAdmissionPolicyIsHeldAgainst) {
  std::ifstream in(std::string(HEDDLE_SOURCE_DIR) + "/tests/fixtures/compute_domain_names.json");
  const Json table = Json::parse(in);
  ASSERT_GT(table.size(), 20u);
  for (const Json& one : table) {
    Json pod = kube::NewObject(kube::kPods, {"train", "w-0"});
    pod["metadata"]["labels"] = one["labels"];
    pod["metadata"]["ownerReferences"] = one["ownerReferences"];
    EXPECT_EQ(ComputeDomainName(pod).value_or(""), one["name"].get<std::string>())
        << one["of"].get<std::string>();
  }
}

Json Claim(const std::string& name, const std::string& of_template) {
  return {{"name", name}, {"resourceClaimTemplateName", of_template}};
}

TEST(ComputeDomainClaim, IsModelledUnderItsOwnNameAndNoOtherClaimIs) {
  const std::string entry(keys::kComputeDomainClaim), domain = "job-job-uid-heddle";
  Json pod = GatedPod(0);
  pod["spec"]["resourceClaims"] = Json::array({Claim(entry, domain)});
  EXPECT_EQ(UnmodelledConstraint(pod), std::nullopt);
  EXPECT_EQ(ClaimedComputeDomain(pod), domain);
  EXPECT_EQ(ClaimedComputeDomain(SlimPod(pod)), domain);

  pod["spec"]["resourceClaims"] = Json::array({Claim(entry, "somebody-elses")});
  EXPECT_THAT(UnmodelledConstraint(pod).value_or(""), HasSubstr("heddle.dev/compute-domain: \"true\""));
  EXPECT_EQ(ClaimedComputeDomain(pod), "");
  pod["spec"]["resourceClaims"] = Json::array({Claim("gpus", domain)});
  EXPECT_THAT(UnmodelledConstraint(pod).value_or(""), HasSubstr("(gpus) is not modelled"));
  pod["spec"]["resourceClaims"] = Json::array({Claim(entry, domain), Claim("gpus", "mine")});
  EXPECT_THAT(UnmodelledConstraint(pod).value_or(""), HasSubstr("(gpus) is not modelled"));
  pod["spec"]["resourceClaims"] = Json::array({{{"name", entry}, {"resourceClaimName", domain}}});
  EXPECT_NE(UnmodelledConstraint(pod), std::nullopt) << "one claim for all pods is another thing";
}

TEST(ComputeDomainClaim, ThatIsMissingIsRefusedWithWhatToDo) {
  Json pod = GatedPod(0);
  EXPECT_FALSE(MissingClaim(pod));
  pod["metadata"]["annotations"][keys::kComputeDomain] = "false";
  EXPECT_FALSE(MissingClaim(pod));
  pod["metadata"]["annotations"][keys::kComputeDomain] = "true";
  ASSERT_TRUE(MissingClaim(pod));
  EXPECT_EQ(MissingClaim(pod)->reason, "NoComputeDomain");
  EXPECT_THAT(
      MissingClaim(pod)->sentence,
      HasSubstr("computeDomains.enabled=true and without mutatingPolicies=never, and make the pods anew"));
  pod["metadata"].erase("ownerReferences");
  EXPECT_THAT(MissingClaim(pod)->sentence, HasSubstr("its owner gives none a name"));
}

Json Domain(const std::string& uid = "job-uid") {
  crds::Gang gang;
  gang.ns = "train";
  gang.spec.owner = {"batch/v1", "Job", "job", uid};
  return ComputeDomainOf(gang, "job-job-uid-heddle");
}

TEST(ComputeDomain, TakesNodesAsTheirPodsComeAndGoesWithTheGangsOwner) {
  const Json domain = Domain();
  EXPECT_EQ(domain["apiVersion"], "resource.nvidia.com/v1beta1");
  EXPECT_EQ(domain["spec"]["numNodes"], 0);
  EXPECT_EQ(domain["spec"]["channel"]["allocationMode"], "Single");
  EXPECT_EQ(domain["spec"]["channel"]["resourceClaimTemplate"]["name"], "job-job-uid-heddle");
  ASSERT_EQ(domain["metadata"]["ownerReferences"].size(), 1u);
  EXPECT_EQ(domain["metadata"]["ownerReferences"][0]["uid"], "job-uid");
}

TEST(ComputeDomain, IsTheGangsOnlyWhereNothingSpeaksAgainstIt) {
  const auto fault = [](const std::function<void(Json&)>& change) {
    Json there = Domain();
    change(there);
    return ComputeDomainFault(there, Domain()).value_or("");
  };
  EXPECT_EQ(fault([](Json&) {}), "");
  EXPECT_EQ(fault([](Json& there) { there["metadata"]["finalizers"] = {"the.driver/s"}; }), "");
  EXPECT_THAT(fault([](Json& there) { there["metadata"].erase("labels"); }), HasSubstr("is not Heddle's"));
  EXPECT_THAT(fault([](Json& there) { there["metadata"]["labels"][keys::kLabelManagedBy] = "grove"; }),
              HasSubstr("train/job-job-uid-heddle is not Heddle's"));
  EXPECT_THAT(fault([](Json& there) { there["metadata"]["ownerReferences"][0]["uid"] = "before"; }),
              HasSubstr("an earlier job"));
  EXPECT_THAT(fault([](Json& there) { there["metadata"].erase("ownerReferences"); }),
              HasSubstr("an earlier job"));
  EXPECT_THAT(
      fault([](Json& there) { there["spec"]["channel"]["resourceClaimTemplate"]["name"] = "another"; }),
      HasSubstr("another name"));
  EXPECT_THAT(fault([](Json& there) { there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"; }),
              HasSubstr("is being deleted"));
  for (const char* broken : {"null", "[]", R"({"metadata":7})", R"({"metadata":{"ownerReferences":[3]}})"}) {
    EXPECT_NE(ComputeDomainFault(Json::parse(broken), Domain()), std::nullopt) << broken;
  }
}

const JobWords kFiveTrays{
    .pods = 5, .gpus = 4, .parallelism = "tp=4,dp=5", .annotations = {{"heddle.dev/require", "gang=nvlink"}}};

// A Job of whole trays of one rack, as admission leaves its pods.
struct World {
  explicit World(const char* nodes = kTwoRacks, bool served = true) : cluster(nodes) {
    if (!served) return;
    cluster.server.Serve(kComputeDomains);
    cluster.server.Serve(kResourceClaims);
  }
  void Submit(const JobWords& words = kFiveTrays) { PutPods(words, cluster.PutJob(words)); }
  void PutPods(JobWords words, const std::string& uid) {
    domain.name = words.name + "-" + uid.substr(0, 8) + "-heddle";
    words.annotations[std::string(keys::kComputeDomain)] = "true";
    words.pod_spec["resourceClaims"] =
        Json::array({Claim(std::string(keys::kComputeDomainClaim), domain.name)});
    for (int i = 0; i < words.pods; ++i) cluster.PutPod(words, uid, i);
  }
  Json Foreign() const {
    Json object = kube::NewObject(kComputeDomains, domain);
    object["spec"]["channel"]["resourceClaimTemplate"]["name"] = "mine";
    return object;
  }
  bool Runs(RunningExtender& extender, std::chrono::seconds limit = std::chrono::seconds(60)) {
    const auto runs = [this] {
      cluster.BindReleased();
      return cluster.Summary("train").starts_with("Running");
    };
    return extender.Until(runs, limit);
  }
  bool Says(RunningExtender& extender, const std::string& words) {
    return extender.Until([&] {
      const auto gang = cluster.GangOf("train");
      return gang && gang->status.reason == "NoComputeDomain" &&
             gang->status.message.find(words) != std::string::npos;
    });
  }
  std::string Told() const { return cluster.GangOf("train") ? cluster.GangOf("train")->status.message : ""; }
  int Created() const {
    int created = 0;
    for (const auto& write : cluster.server.writes()) created += write.plural == "computedomains" ? 1 : 0;
    return created;
  }

  Cluster cluster;
  kube::ObjectKey domain{"train", ""};
};
class Gang : public testing::Test, protected World {
 protected:
  using World::World;
};

TEST_F(Gang, GetsItsComputeDomainAfterThePlanAndBeforeAnyPodIsLetGo) {
  Submit();
  RunningExtender extender(cluster);
  ASSERT_TRUE(Runs(extender)) << Told();
  std::vector<std::string> steps;
  for (const auto& write : cluster.server.writes()) {
    const bool plan = write.plural == "gangs" && write.body.find("nodeNames") != std::string::npos;
    if (plan && steps.empty()) steps.emplace_back("plan");
    if (write.plural == "computedomains") steps.push_back(write.method);
    if (write.plural == "pods" && steps.back() != "release") steps.emplace_back("release");
  }
  EXPECT_THAT(steps, ElementsAre("plan", "POST", "release"));
  const auto made = cluster.server.Find(kComputeDomains, domain);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)["metadata"]["ownerReferences"][0]["uid"], cluster.GangOf("train")->spec.owner.uid);
}

TEST_F(Gang, ThatAsksForNoneMakesNone) {
  cluster.Submit({.pods = 5, .gpus = 4, .parallelism = "tp=4,dp=5"});
  RunningExtender extender(cluster);
  ASSERT_TRUE(Runs(extender));
  EXPECT_THAT(cluster.server.All(kComputeDomains), IsEmpty());
  for (const auto& request : cluster.server.requests()) EXPECT_NE(request.plural, "computedomains");
}

TEST_F(Gang, HasOneComputeDomainWheneverItsExtenderIsKilled) {
  int kills = 0;
  for (int writes = 1; writes < 40; ++writes) {
    World world;
    world.Submit();
    test::MortalTransport mortal(world.cluster.server, writes);
    {
      RunningExtender doomed(world.cluster, mortal);
      (void)doomed.Until([&] {
        world.cluster.BindReleased();
        return mortal.dead() || world.cluster.Summary("train") == "Running 5/5";
      });
    }
    if (!mortal.dead()) break;
    ++kills;
    RunningExtender extender(world.cluster);
    ASSERT_TRUE(world.Runs(extender)) << writes << ": " << world.Told();
    EXPECT_EQ(world.Created(), 1) << writes;
    EXPECT_THAT(world.cluster.server.All(kComputeDomains), testing::SizeIs(1)) << writes;
    EXPECT_THAT(world.cluster.Violations(), IsEmpty()) << writes;
  }
  EXPECT_GE(kills, 8) << "a Gang, its plan, its ComputeDomain, five pods";
}

TEST_F(Gang, LeavesSomebodyElsesComputeDomainAloneAndSaysWhoseNameIsTaken) {
  Submit();
  const Json before = cluster.server.Put(kComputeDomains, Foreign());
  RunningExtender extender(cluster);
  ASSERT_TRUE(Says(extender, domain.ToString() + " is not Heddle's")) << Told();
  extender.Pass(std::chrono::seconds(30));
  EXPECT_EQ(cluster.Released("train"), 0);
  EXPECT_EQ(cluster.server.Find(kComputeDomains, domain), before);
  cluster.server.Remove(kComputeDomains, domain);
  ASSERT_TRUE(Runs(extender)) << Told();
  EXPECT_EQ(cluster.GangOf("train")->status.reason, "");
}

TEST_F(Gang, WaitsForAComputeDomainThatIsBeingDeleted) {
  Submit();
  Json going = Foreign();
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  going["metadata"]["finalizers"] = {"resource.nvidia.com/computeDomain"};
  cluster.server.Put(kComputeDomains, going);
  RunningExtender extender(cluster);
  ASSERT_TRUE(Says(extender, "is being deleted")) << Told();
  EXPECT_EQ(cluster.Released("train"), 0);
  cluster.server.Remove(kComputeDomains, domain);
  EXPECT_TRUE(Runs(extender)) << Told();
}

TEST_F(Gang, HasItsOldClaimsMadeAnewBeforeItStarts) {
  Submit();
  Json claim = kube::NewObject(kResourceClaims, {"train", "train-0-channel"});
  claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] = keys::kComputeDomainClaim;
  claim["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "v1"},
                                                       {"kind", "Pod"},
                                                       {"name", "train-0"},
                                                       {"uid", kube::Uid(cluster.Pod("train-0"))},
                                                       {"controller", true}}});
  cluster.server.Put(kResourceClaims, claim);
  RunningExtender extender(cluster);
  ASSERT_TRUE(Says(extender, "1 claim of its pods (train-0-channel)")) << Told();
  EXPECT_EQ(Created(), 0);
  cluster.server.Remove(kResourceClaims, kube::KeyOf(claim));
  EXPECT_TRUE(Runs(extender)) << Told();
}

TEST_F(Gang, SaysThatItsExtenderMayMakeNone) {
  Submit();
  cluster.server.FailNext({.path_contains = "computedomains", .status = 403}, 1000);
  RunningExtender extender(cluster);
  ASSERT_TRUE(Says(extender, "computeDomains.enabled=true")) << Told();
  cluster.server.ClearFaults();
  EXPECT_TRUE(Runs(extender)) << Told();
}

TEST_F(Gang, KeepsItsComputeDomainThroughSuspension) {
  Submit();
  RunningExtender extender(cluster);
  ASSERT_TRUE(Runs(extender)) << Told();
  const std::string uid = cluster.GangOf("train")->spec.owner.uid;
  cluster.server.Edit(kube::kJobs, {"train", "train"}, [](Json& job) { job["spec"]["suspend"] = true; });
  for (const Json& pod : cluster.Pods("train")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train") == "Ended: OwnerSuspended"; }));
  cluster.server.Edit(kube::kJobs, {"train", "train"}, [](Json& job) { job["spec"]["suspend"] = false; });
  PutPods(kFiveTrays, uid);
  ASSERT_TRUE(Runs(extender)) << Told();
  EXPECT_EQ(Created(), 1);
}

std::set<std::string> NodesOf(const Cluster& cluster) {
  std::set<std::string> nodes;
  for (const Json& pod : cluster.Pods("train")) nodes.insert(kube::StringAt(pod, {"spec", "nodeName"}));
  return nodes;
}

TEST_F(Gang, PutsOnePodOnANodeWhichHasOneChannel) {
  const JobWords halves{.pods = 4, .gpus = 2, .parallelism = "tp=2,dp=4"};
  {
    World without;
    without.cluster.Submit(halves);
    RunningExtender extender(without.cluster);
    ASSERT_TRUE(without.Runs(extender)) << without.Told();
    EXPECT_LT(NodesOf(without.cluster).size(), 4u) << "who asks for no channel is packed";
  }
  Submit(halves);
  RunningExtender extender(cluster);
  ASSERT_TRUE(Runs(extender)) << Told();
  EXPECT_EQ(NodesOf(cluster).size(), 4u);
}

TEST_F(Gang, WaitsUntilAnotherGangsChannelsAreFree) {
  Submit({.name = "first", .pods = 12, .gpus = 2, .parallelism = "tp=2,dp=12"});
  RunningExtender extender(cluster);
  const auto runs = [this](const char* job) {
    cluster.BindReleased();
    return cluster.Summary(job).starts_with("Running");
  };
  ASSERT_TRUE(extender.Until([&] { return runs("first"); })) << cluster.Summary("first");
  Submit({.pods = 2, .gpus = 2, .parallelism = "tp=2,dp=2"});
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Waiting"); }));
  EXPECT_THAT(Told(), HasSubstr("IMEX channel"));
  cluster.server.Remove(kube::kJobs, {"train", "first"});
  for (const Json& pod : cluster.Pods("first")) cluster.server.Remove(kube::kPods, kube::KeyOf(pod));
  EXPECT_TRUE(Runs(extender)) << Told();
}

class WithoutDriver : public Gang {
 protected:
  WithoutDriver() : Gang(kTwoRacks, false) {}
};
TEST_F(WithoutDriver, AGangSaysWhatToInstall) {
  Submit();
  RunningExtender extender(cluster);
  ASSERT_TRUE(Says(extender, "install NVIDIA's DRA driver")) << Told();
  EXPECT_EQ(cluster.Released("train"), 0);
}

class OnServers : public Gang {
 protected:
  OnServers() : Gang(kServers) {}
};
TEST_F(OnServers, AGangThatAsksForAComputeDomainFindsNoNodeToJoinIt) {
  Submit({.pods = 2, .parallelism = "tp=8,dp=2"});
  RunningExtender extender(cluster);
  ASSERT_TRUE(extender.Until([&] { return cluster.Summary("train").starts_with("Waiting"); }));
  EXPECT_THAT(Told(),
              HasSubstr("the gang asks for a ComputeDomain, and the NVLink domains of 16 nodes end at"));
  EXPECT_THAT(cluster.server.All(kComputeDomains), IsEmpty()) << "without a place it has none";
}

TEST(GangMembers, RefusesAnAnswerAboutItsComputeDomainThatIsNone) {
  for (const char* answer : {"yes", "", "True"}) {
    Json pod = GatedPod(0);
    pod["metadata"]["annotations"][keys::kComputeDomain] = answer;
    const Json job = test::IndexedJob(1);
    const auto members = ReadMembers({"train", "job-uid", 0}, &job, ReadPods({test::Cached(pod)}));
    ASSERT_TRUE(members.refusal);
    EXPECT_EQ(members.refusal->reason, "BadAnnotation");
    EXPECT_THAT(members.refusal->sentence, HasSubstr("heddle.dev/compute-domain"));
  }
}

}  // namespace
}  // namespace heddle::extender
