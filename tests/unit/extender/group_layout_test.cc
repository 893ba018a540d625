// LeaderWorkerSets, PodGroups, pods by themselves and Ray's, whose gangs are not told by an owner's UID or whose
// pods have no numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "extender/owner_layout.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cached;
using test::GatedPod;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLws = "leaderworkerset.sigs.k8s.io/";

Json Set(Json spec) {
  return {{"apiVersion", "leaderworkerset.x-k8s.io/v1"},
          {"kind", "LeaderWorkerSet"},
          {"metadata", {{"name", "serve"}, {"namespace", "train"}, {"uid", "lws-uid"}}},
          {"spec", std::move(spec)}};
}

Json SetOf(int groups, int size) {
  return Set({{"replicas", groups}, {"leaderWorkerTemplate", {{"size", size}}}});
}

// As the StatefulSets of LeaderWorkerSet and its webhook make them.
Json SetPod(int group, int worker, const char* created = "2026-01-01T00:00:00Z") {
  Json pod = GatedPod(worker);
  const std::string leader = "serve-" + std::to_string(group);
  auto& metadata = pod["metadata"];
  metadata["name"] = worker == 0 ? leader : leader + "-" + std::to_string(worker);
  metadata["uid"] = metadata["name"].get<std::string>() + "-uid";
  metadata["creationTimestamp"] = created;
  metadata["labels"] = {{kLws + std::string("name"), "serve"},
                        {kLws + std::string("group-index"), std::to_string(group)},
                        {kLws + std::string("worker-index"), std::to_string(worker)}};
  metadata["annotations"][kLws + std::string("size")] = "2";
  metadata["ownerReferences"][0] = {{"apiVersion", "apps/v1"},
                                    {"kind", "StatefulSet"},
                                    {"name", worker == 0 ? "serve" : leader},
                                    {"uid", "set-uid"},
                                    {"controller", true}};
  return pod;
}

GangMembers Read(const Json* owner, const std::vector<Json>& pods) {
  std::vector<std::shared_ptr<const Json>> shared;
  for (const Json& pod : pods) shared.push_back(Cached(pod));
  return ReadMembers(MembershipOf(pods.front()).key, owner, ReadPods(shared));
}

TEST(LeaderWorkerSet, EachGroupIsAGangOfItsLeaderAndWorkers) {
  const Json owner = SetOf(2, 2);
  const GangMembers members = Read(&owner, {SetPod(1, 1), SetPod(1, 0)});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.spec.group, "LeaderWorkerSet/serve/1");
  EXPECT_EQ(members.spec.owner,
            (crds::GangOwner{"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve", "lws-uid"}));
  EXPECT_EQ(members.spec.leader, "serve-1-uid");
  EXPECT_EQ(members.owner_state, OwnerState::kActive);
  ASSERT_EQ(members.ranks.size(), 2u);
  EXPECT_EQ(members.ranks[1]->facts->key.name, "serve-1-1");
  EXPECT_NE(MembershipOf(SetPod(0, 0)).key, MembershipOf(SetPod(1, 0)).key);
  EXPECT_THAT(GangsOfOwner(owner),
              ElementsAre(MembershipOf(SetPod(0, 1)).key, MembershipOf(SetPod(1, 0)).key));
}

TEST(LeaderWorkerSet, TheSameNameInTwoNamespacesIsTwoGangs) {
  Json there = SetPod(0, 0);
  there["metadata"]["namespace"] = "other";
  EXPECT_NE(MembershipOf(there).key.owner_uid, MembershipOf(SetPod(0, 0)).key.owner_uid)
      << "as the UIDs of two owners are";
}

TEST(LeaderWorkerSet, ThePodsKnowTheSizeOfTheirOwnRevision) {
  const Json owner = SetOf(1, 4);
  EXPECT_EQ(Read(&owner, {SetPod(0, 0)}).spec.pods, 2);
}

TEST(LeaderWorkerSet, ALeaderWithoutAPlaceInTheGangIsALauncher) {
  const Json owner =
      Set({{"leaderWorkerTemplate", {{"size", 2}, {"leaderTemplate", {{"spec", Json::object()}}}}}});
  const OwnerLayout layout = ReadLayout(owner);
  EXPECT_EQ(layout.pods, 1);
  EXPECT_EQ(layout.RankOf(SetPod(0, 1)), 0);
}

TEST(LeaderWorkerSet, OneThatMakesItsWorkersLaterIsRefusedWithWhatToSet) {
  Json owner = SetOf(1, 2);
  owner["spec"]["startupPolicy"] = "LeaderReady";
  const OwnerLayout layout = ReadLayout(owner);
  ASSERT_TRUE(layout.refusal);
  EXPECT_THAT(layout.refusal->sentence, HasSubstr("startupPolicy: LeaderCreated"));
}

TEST(LeaderWorkerSet, WorkersOlderThanTheirLeaderBelongToTheAttemptBefore) {
  const Json owner = SetOf(1, 2);
  const GangMembers members =
      Read(&owner, {SetPod(0, 0, "2026-01-01T00:01:00Z"), SetPod(0, 1, "2026-01-01T00:00:00Z")});
  EXPECT_EQ(members.seen(), 1);
  EXPECT_EQ(members.leaving.size(), 1u);
  EXPECT_FALSE(members.refusal);
}

TEST(LeaderWorkerSet, AGroupThatWasScaledAwayHasEndedOnceItsPodsAreGone) {
  const Json owner = SetOf(1, 2);
  EXPECT_EQ(Read(&owner, {SetPod(1, 0)}).owner_state, OwnerState::kActive) << "a rolling update surges";
  EXPECT_EQ(ReadMembers(MembershipOf(SetPod(1, 0)).key, &owner, {}).owner_state, OwnerState::kScaledDown);
}

TEST(LeaderWorkerSet, NumbersBeyondAllBoundsAreRefusedAndOverflowNothing) {
  EXPECT_EQ(ReadLayout(SetOf(1, 2'000'000'000)).refusal->reason, "TooManyPods");
  EXPECT_EQ(ReadLayout(SetOf(1, -5)).refusal->reason, "NoPods");
  EXPECT_LE(GangsOfOwner(SetOf(2'000'000'000, 2)).size(), 16384u);
}

constexpr const char* kKubeflow = "training.kubeflow.org/";

Json MpiOwner(const char* created = "2026-01-01T00:00:00Z") {
  const Json said = {{"metadata", {{"annotations", {{"heddle.dev/parallelism", "tp=8,dp=2"}}}}}};
  return {{"apiVersion", "kubeflow.org/v2beta1"},
          {"kind", "MPIJob"},
          {"metadata",
           {{"name", "mpi"}, {"namespace", "train"}, {"uid", "mpi-uid"}, {"creationTimestamp", created}}},
          {"spec",
           {{"runLauncherAsWorker", true},
            {"mpiReplicaSpecs",
             {{"Launcher", {{"template", said}}}, {"Worker", {{"replicas", 1}, {"template", said}}}}}}}};
}

// As mpi-operator makes them after v0.6.0: workers by itself, the launcher by a Job.
Json MpiPod(const std::string& role, int index, const char* created = "2026-01-01T00:00:01Z") {
  Json pod = GatedPod(index);
  const bool launcher = role == "launcher";
  auto& metadata = pod["metadata"];
  metadata["name"] = launcher ? "mpi-launcher-x7" : "mpi-worker-" + std::to_string(index - 1);
  metadata["uid"] = metadata["name"].get<std::string>() + "-uid";
  metadata["creationTimestamp"] = created;
  metadata["labels"] = {{kKubeflow + std::string("job-name"), "mpi"},
                        {kKubeflow + std::string("job-role"), role},
                        {kKubeflow + std::string("replica-index"), std::to_string(index)}};
  metadata["ownerReferences"][0] = {{"apiVersion", launcher ? "batch/v1" : "kubeflow.org/v2beta1"},
                                    {"kind", launcher ? "Job" : "MPIJob"},
                                    {"name", launcher ? "mpi-launcher" : "mpi"},
                                    {"uid", launcher ? "launcher-uid" : "mpi-uid"},
                                    {"controller", true}};
  return pod;
}

TEST(MpiJob, ALauncherThatWorksAndItsWorkersAreOneGang) {
  const Json owner = MpiOwner();
  EXPECT_EQ(MembershipOf(MpiPod("launcher", 0)).key, MembershipOf(MpiPod("worker", 1)).key);
  EXPECT_THAT(GangsOfOwner(owner), ElementsAre(MembershipOf(MpiPod("worker", 1)).key));
  const GangMembers members = Read(&owner, {MpiPod("worker", 1), MpiPod("launcher", 0)});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.spec.group, "MPIJob/mpi");
  EXPECT_EQ(members.spec.owner, (crds::GangOwner{"kubeflow.org/v2beta1", "MPIJob", "mpi", "mpi-uid"}));
  ASSERT_EQ(members.seen(), 2);
  EXPECT_EQ(members.ranks[0]->facts->key.name, "mpi-launcher-x7");
  EXPECT_EQ(members.rank_file, "mpi-heddle-ranks");
}

TEST(MpiJob, WhoseLauncherHasNoIndexAndWhoseWorkersCountFromZeroIsInTheSameOrder) {
  // v0.6.0; tests/frameworks has the operator itself.
  Json owner = MpiOwner();
  owner["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2;
  const std::string index = kKubeflow + std::string("replica-index");
  Json launcher = MpiPod("launcher", 0), first = MpiPod("worker", 1), second = MpiPod("worker", 2);
  launcher["metadata"]["labels"].erase(index);
  first["metadata"]["labels"][index] = "0";
  second["metadata"]["labels"][index] = "1";
  for (Json* pod : {&launcher, &first, &second}) {
    (*pod)["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=3";
  }
  const GangMembers members = Read(&owner, {second, launcher, first});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  ASSERT_EQ(members.seen(), 3);
  EXPECT_EQ(members.ranks[0]->facts->key.name, "mpi-launcher-x7");
  EXPECT_EQ(members.ranks[1]->facts->key.name, "mpi-worker-0");
  EXPECT_EQ(members.ranks[2]->facts->key.name, "mpi-worker-1");
}

TEST(MpiJob, PodsOlderThanTheirJobAreThoseOfAnotherOneOfItsName) {
  const Json owner = MpiOwner("2026-01-01T00:05:00Z");
  const GangMembers members =
      Read(&owner, {MpiPod("worker", 1), MpiPod("launcher", 0, "2026-01-01T00:05:00Z")});
  EXPECT_EQ(members.seen(), 1);
  EXPECT_EQ(members.leaving.size(), 1u);
  EXPECT_FALSE(members.refusal);
}

TEST(MpiJob, ALauncherOfNobodyOrOfAnotherControllerIsNoMember) {
  Json pod = MpiPod("launcher", 0);
  pod["metadata"]["labels"].erase(kKubeflow + std::string("job-name"));
  EXPECT_EQ(MembershipOf(pod).key.owner_uid, "launcher-uid");
  pod = MpiPod("launcher", 0);
  pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet";
  EXPECT_EQ(MembershipOf(pod).key.owner_uid, "launcher-uid");
}

Json Lone(const std::string& name, const std::string& size, const std::string& rank,
          const char* label = "heddle.dev/gang-") {
  Json pod = GatedPod(0);
  pod["metadata"].erase("ownerReferences");
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = name + "-uid";
  pod["metadata"]["labels"] = {{label + std::string("name"), "train"}};
  if (!size.empty()) pod["metadata"]["labels"][label + std::string("size")] = size;
  if (!rank.empty()) pod["metadata"]["labels"][label + std::string("rank")] = rank;
  return pod;
}

TEST(PodsByThemselves, NameTheirGangItsSizeAndTheirRank) {
  const GangMembers members = Read(nullptr, {Lone("b", "2", "0"), Lone("a", "2", "1")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.spec.group, "Pods/train");
  EXPECT_EQ(members.spec.owner, (crds::GangOwner{"v1", "Pod", "a", "a-uid"}))
      << "whoever comes first by name";
  EXPECT_EQ(members.ranks[0]->facts->key.name, "b");
  EXPECT_EQ(members.rank_file, "");
}

TEST(PodsByThemselves, WithoutRanksGetThemByName) {
  const GangMembers members = Read(nullptr, {Lone("b", "2", ""), Lone("a", "2", "")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.ranks[0]->facts->key.name, "a");
  EXPECT_EQ(members.rank_file, "train-heddle-ranks");
  EXPECT_THAT(members.notes, ElementsAre(HasSubstr("nothing numbers the pods")));
}

TEST(PodsByThemselves, ThatDoNotAgreeOnTheirSizeAreTold) {
  EXPECT_THAT(Read(nullptr, {Lone("a", "2", "0"), Lone("b", "3", "1")}).refusal->sentence,
              HasSubstr("pod b"));
  EXPECT_THAT(Read(nullptr, {Lone("a", "", "0")}).refusal->sentence, HasSubstr("heddle.dev/gang-size"));
  EXPECT_EQ(Read(nullptr, {Lone("a", "0", "0")}).refusal->reason, "NoPods");
}

TEST(PodsByThemselves, OfAGroupThatKueueKnowsAreOneToo) {
  Json pod = Lone("a", "", "");
  pod["metadata"]["labels"] = {{"kueue.x-k8s.io/pod-group-name", "queued"},
                               {"kueue.x-k8s.io/pod-group-pod-index", "1"}};
  pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = "2";
  const GangMembers members = Read(nullptr, {pod});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.spec.group, "Pods/queued");
  EXPECT_TRUE(members.ranks[1]);
}

TEST(PodsByThemselves, EndWithTheLastOfThem) {
  Json done = Lone("a", "1", "0");
  done["status"]["phase"] = "Succeeded";
  EXPECT_EQ(Read(nullptr, {done}).owner_state, OwnerState::kFinished);
  EXPECT_EQ(ReadMembers(MembershipOf(done).key, nullptr, {}).owner_state, OwnerState::kGone);
}

Json LetGoBy(Json pod, const std::string& gang_uid, int rank) {
  pod["spec"].erase("schedulingGates");
  auto& annotations = pod["metadata"]["annotations"];
  annotations["heddle.dev/gang-uid"] = gang_uid;
  annotations["heddle.dev/rank"] = std::to_string(rank);
  annotations["heddle.dev/node"] = "node-00";
  annotations["heddle.dev/gpus"] = "0,1,2,3,4,5,6,7";
  annotations["heddle.dev/epoch"] = "1";
  return pod;
}

Json SucceededOf(Json pod) {
  pod["status"]["phase"] = "Succeeded";
  return pod;
}

TEST(PodsByThemselves, ThatUseTheNameAgainAreNotDoneWithThoseOfTheRunBefore) {
  for (const auto& [first, second] : {std::pair("0", "1"), std::pair("", "")}) {
    const Json old_first = SucceededOf(LetGoBy(Lone("old-a", "2", first), "gang-1", 0));
    const Json old_second = SucceededOf(LetGoBy(Lone("old-b", "2", second), "gang-1", 1));
    const Json again = Lone("new-a", "2", first);
    EXPECT_EQ(Read(nullptr, {again, old_first, old_second}).seen(), 1) << "the other one is still to come";
    const Json last = LetGoBy(Lone("new-b", "2", second), "gang-2", 1);
    EXPECT_EQ(Read(nullptr, {old_first, old_second, last}).seen(), 1);
    const Json done = SucceededOf(LetGoBy(again, "gang-2", 0));
    EXPECT_EQ(Read(nullptr, {old_first, old_second, done, last}).seen(), 2) << "of this run it counts";
  }
}

TEST(PodsByThemselves, OneThatIsMadeAgainFindsTheOthersOfItsRunDone) {
  const Json done = SucceededOf(LetGoBy(Lone("a", "2", "0"), "gang-1", 0));
  EXPECT_EQ(Read(nullptr, {done, Lone("b", "2", "1")}).seen(), 2);
}

TEST(PodsByThemselves, ThatWereDoneWhenTheirGangWasMadeAnewStayDone) {
  const Json done = SucceededOf(LetGoBy(Lone("a", "2", "0"), "gang-1", 0));
  const Json rest = LetGoBy(Lone("b", "2", "1"), "gang-2", 1);
  crds::Gang gang;
  gang.uid = "gang-2";
  gang.status.placement = crds::ToColumns({{"", 0, {}}, {"node-00", 0xFF, {}}}, 1);
  const auto seen = [&] {
    return ReadMembers(MembershipOf(rest).key, nullptr, ReadPods({Cached(done), Cached(rest)}), Mode::kPlace,
                       &gang)
        .seen();
  };
  EXPECT_EQ(seen(), 2);
  gang.status.placement = crds::ToColumns({{"node-01", 0xFF, {}}, {"node-00", 0xFF, {}}}, 1);
  EXPECT_EQ(seen(), 1) << "of a run before: this one has a slot for it";
}

TEST(PodsByThemselves, OfAControllerThatNumbersThemAreItsGang) {
  Json pod = GatedPod(0);
  pod["metadata"]["labels"]["heddle.dev/gang-name"] = "mine";
  EXPECT_EQ(MembershipOf(pod).key.owner_uid, "job-uid");
  pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet";
  EXPECT_EQ(MembershipOf(pod).group, "Pods/mine");
}

Json InPodGroup(const std::string& name) {
  Json pod = Lone(name, "", "");
  pod["metadata"]["labels"] = Json::object();
  pod["spec"]["schedulingGroup"]["podGroupName"] = "native";
  return pod;
}

Json PodGroup(Json policy) {
  return {{"apiVersion", "scheduling.k8s.io/v1alpha2"},
          {"kind", "PodGroup"},
          {"metadata", {{"name", "native"}, {"namespace", "train"}, {"uid", "group-uid"}}},
          {"spec", {{"schedulingPolicy", std::move(policy)}}}};
}

TEST(PodGroup, SaysHowManyPodsItsGangHas) {
  const Json owner = PodGroup({{"gang", {{"minCount", 2}}}});
  const GangMembers members = Read(&owner, {InPodGroup("x"), InPodGroup("w")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_EQ(members.spec.group, "PodGroup/native");
  EXPECT_EQ(members.spec.owner.uid, "group-uid");
  EXPECT_EQ(members.ranks[0]->facts->key.name, "w");
}

TEST(PodGroup, WithoutAGangOrNotThereIsRefusedWithWhatToDo) {
  const Json basic = PodGroup({{"basic", Json::object()}});
  EXPECT_THAT(Read(&basic, {InPodGroup("x")}).refusal->sentence, HasSubstr("gang.minCount"));
  const GangMembers missing = Read(nullptr, {InPodGroup("x")});
  EXPECT_THAT(missing.refusal->sentence, HasSubstr("PodGroup native, which does not exist"));
  EXPECT_EQ(missing.spec.owner.kind, "Pod") << "somebody has to be told";
  EXPECT_EQ(missing.owner_state, OwnerState::kActive);
}

Json RayGroup(const std::string& name, int replicas, int hosts, bool gang = true) {
  Json group = {
      {"groupName", name}, {"replicas", replicas}, {"numOfHosts", hosts}, {"template", Json::object()}};
  if (gang) group["template"]["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=8,dp=2";
  return group;
}

Json RayCluster(Json groups) {
  return {
      {"apiVersion", "ray.io/v1"},
      {"kind", "RayCluster"},
      {"metadata", {{"name", "ray-x7z"}, {"namespace", "train"}, {"uid", "ray-uid"}}},
      {"spec", {{"headGroupSpec", {{"template", Json::object()}}}, {"workerGroupSpecs", std::move(groups)}}}};
}

Json RayPod(const std::string& name, const std::string& group) {
  Json pod = GatedPod(0);
  pod["metadata"]["name"] = name;
  pod["metadata"]["labels"] = {
      {"ray.io/cluster", "ray-x7z"}, {"ray.io/group", group}, {"ray.io/node-type", "worker"}};
  pod["metadata"]["ownerReferences"][0] = {{"apiVersion", "ray.io/v1"},
                                           {"kind", "RayCluster"},
                                           {"name", "ray-x7z"},
                                           {"uid", "ray-uid"},
                                           {"controller", true}};
  return pod;
}

TEST(RayCluster, IsTheGangOfItsWorkersWithoutTheHead) {
  const Json owner =
      RayCluster({RayGroup("small", 1, 1), RayGroup("idle", 4, 1, false), RayGroup("big", 1, 2)});
  const GangMembers members = Read(&owner, {RayPod("z", "small"), RayPod("b", "big"), RayPod("a", "big")});
  ASSERT_EQ(members.spec.pods, 3);
  EXPECT_EQ(members.ranks[0]->facts->key.name, "z") << "each group has ranks of its own";
  EXPECT_EQ(members.ranks[1]->facts->key.name, "a");
  EXPECT_EQ(members.ranks[2]->facts->key.name, "b");
  EXPECT_EQ(members.rank_file, "ray-x7z-heddle-ranks");
}

// As KubeRay's gate RayMultiHostIndexing makes them.
Json RayHost(const std::string& name, int replica, int host, const std::string& unit) {
  Json pod = RayPod(name, "w");
  pod["metadata"]["annotations"]["heddle.dev/parallelism"] = "tp=16,dp=2";
  pod["metadata"]["labels"]["ray.io/worker-group-replica-index"] = std::to_string(replica);
  pod["metadata"]["labels"]["ray.io/replica-host-index"] = std::to_string(host);
  pod["metadata"]["labels"]["ray.io/worker-group-replica-name"] = unit;
  return pod;
}

std::vector<std::string> NamesByRank(const GangMembers& members) {
  std::vector<std::string> names;
  for (const auto& rank : members.ranks) names.push_back(rank ? rank->facts->key.name : "");
  return names;
}

TEST(RayCluster, RanksTheHostsOfItsReplicasByTheirNumbers) {
  const Json owner = RayCluster(Json::array({RayGroup("w", 2, 2)}));
  const GangMembers members = Read(&owner, {RayHost("a", 1, 1, "w-x"), RayHost("b", 0, 1, "w-y"),
                                            RayHost("c", 1, 0, "w-x"), RayHost("d", 0, 0, "w-y")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_THAT(NamesByRank(members), ElementsAre("d", "b", "c", "a"));
  EXPECT_EQ(members.rank_file, "ray-x7z-heddle-ranks") << "Ray does not go by the numbers";
  EXPECT_THAT(members.notes, testing::Contains(HasSubstr("order of ranks is advice")));
}

TEST(RayCluster, NeedsNoNumberOfTheOnlyHostOfAReplicaNorOfTheHead) {
  Json owner = RayCluster(Json::array({RayGroup("w", 2, 1)}));
  owner["spec"]["headGroupSpec"]["template"]["metadata"]["annotations"]["heddle.dev/parallelism"] =
      "tp=8,dp=3";
  const auto worker = [](const std::string& name, const char* replica) {
    Json pod = RayPod(name, "w");
    pod["metadata"]["labels"]["ray.io/worker-group-replica-index"] = replica;
    return pod;
  };
  const GangMembers members = Read(&owner, {RayPod("z", "headgroup"), worker("a", "1"), worker("b", "0")});
  EXPECT_THAT(NamesByRank(members), ElementsAre("z", "b", "a"));
}

// Of three replicas the second was removed: the third keeps its number until it is made again.
TEST(RayCluster, KeepsTheHostsOfAReplicaTogetherWhereNumbersHaveAGap) {
  Json owner = RayCluster(Json::array({RayGroup("w", 2, 2)}));
  owner["spec"]["enableInTreeAutoscaling"] = true;
  const GangMembers members = Read(&owner, {RayHost("a", 2, 1, "w-b"), RayHost("b", 0, 1, "w-a"),
                                            RayHost("c", 0, 0, "w-a"), RayHost("d", 2, 0, "w-b")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_THAT(NamesByRank(members), ElementsAre("c", "b", "d", "a"));
  EXPECT_THAT(members.notes, testing::Contains(HasSubstr("stands outside the ranks 0 to 3")));
}

TEST(RayCluster, OfARayJobHasItsRanksUnderTheJobsName) {
  Json owner = RayCluster(Json::array({RayGroup("w", 1, 1)}));
  owner["metadata"]["labels"]["ray.io/originated-from-cr-name"] = "train";
  owner["metadata"]["labels"]["ray.io/originated-from-crd"] = "RayJob";
  EXPECT_EQ(Read(&owner, {RayPod("a", "w")}).rank_file, "train-heddle-ranks");
  owner["metadata"]["labels"]["ray.io/originated-from-crd"] = "RayService";
  EXPECT_EQ(Read(&owner, {RayPod("a", "w")}).rank_file, "ray-x7z-heddle-ranks")
      << "two clusters of one RayService run side by side while it is upgraded";
}

TEST(RayCluster, HasNoPlaceForMorePodsThanItsGroupsHave) {
  const Json owner = RayCluster({RayGroup("w", 1, 1), RayGroup("v", 1, 1)});
  const GangMembers members = Read(&owner, {RayPod("a", "w"), RayPod("b", "w")});
  ASSERT_TRUE(members.refusal);
  EXPECT_EQ(members.refusal->reason, "ExtraPods");
  EXPECT_THAT(members.refusal->sentence, HasSubstr("pod b"));
}

TEST(RayCluster, OneThatScalesItselfTrainsWithAsManyReplicasAsFit) {
  Json owner = RayCluster(Json::array({RayGroup("w", 3, 1)}));
  owner["spec"]["enableInTreeAutoscaling"] = true;
  const GangMembers members = Read(&owner, {RayPod("a", "w"), RayPod("b", "w"), RayPod("c", "w")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_TRUE(members.elastic);
  EXPECT_EQ(members.spec.parallelism->dp, 3);
  EXPECT_THAT(members.notes, testing::Contains(HasSubstr("dp is 3 and not 2")));
}

TEST(RayCluster, SeatsThePodsOfAGroupBehindOneThatHasGrownAmongTheirOwn) {
  Json owner = RayCluster(Json::array({RayGroup("v", 3, 1), RayGroup("w", 2, 1)}));
  owner["spec"]["enableInTreeAutoscaling"] = true;
  const auto told = [](const std::string& name, const std::string& group, const std::string& rank) {
    Json pod = RayPod(name, group);
    pod["metadata"]["annotations"]["heddle.dev/rank"] = rank;
    pod["metadata"]["annotations"]["heddle.dev/node"] = "node-" + rank;
    pod["spec"].erase("schedulingGates");
    pod["spec"]["nodeName"] = "node-" + rank;
    return pod;
  };
  const GangMembers members = Read(&owner, {told("a", "v", "0"), told("b", "v", "1"), told("c", "w", "2"),
                                            told("d", "w", "3"), RayPod("e", "v")});
  ASSERT_FALSE(members.refusal) << members.refusal->sentence;
  EXPECT_THAT(NamesByRank(members), ElementsAre("a", "b", "e", "d", "c"));
}

TEST(RayCluster, NumbersBeyondAllBoundsAreRefusedAndOverflowNothing) {
  Json group = RayGroup("w", 1, 1);
  group["replicas"] = INT64_MAX;
  group["numOfHosts"] = INT64_MAX;
  EXPECT_EQ(ReadLayout(RayCluster(Json::array({group}))).refusal->reason, "TooManyPods");
}

}  // namespace
}  // namespace heddle::extender
