#include "nodeagent/devices/preference.h"

#include <gmock/gmock.h>

#include "tests/support/seeds.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kResource = "heddle.dev/gpu";

// Eight pairs, four on each of two NUMA nodes: "g0" is GPU 0 with nic0.
Offer Pairs() {
  Offer offer;
  offer.resource = kResource;
  for (int i = 0; i < 8; ++i) {
    OfferedDevice device;
    device.id = "g" + std::to_string(i);
    device.gpu = i;
    device.numa = i / 4;
    device.nics = {"nic" + std::to_string(i)};
    offer.devices.push_back(device);
  }
  return offer;
}

std::vector<std::string> Ids(int from, int to) {
  std::vector<std::string> ids;
  for (int i = from; i <= to; ++i) ids.push_back("g" + std::to_string(i));
  return ids;
}

PlannedPod Pod(const std::string& name, int asks, std::optional<std::uint32_t> gpus, int second = 0) {
  PlannedPod pod;
  pod.ns = "train";
  pod.name = name;
  pod.created = base::WallTime{std::chrono::seconds(second)};
  pod.containers = {{{kResource, asks}}};
  pod.gpus = gpus;
  return pod;
}

PlannedPod Bound(PlannedPod pod, std::uint64_t version) {
  pod.version = version;
  return pod;
}

// The NICs of the same node, which pods get without their GPUs.
Offer Nics() {
  Offer offer = Pairs();
  offer.mode = crds::DeviceMode::kNics;
  for (OfferedDevice& device : offer.devices) device.gpu.reset();
  return offer;
}

PlannedPod PodOfNics(const std::string& name, const std::vector<std::string>& nics, std::uint64_t version,
                     int second) {
  PlannedPod pod = Bound(Pod(name, int(nics.size()), 0U, second), version);
  pod.nics = nics;
  return pod;
}

GrantReadings Held(const std::vector<std::string>& pods) {
  GrantReadings readings;
  readings.state = GrantsState::kRead;
  for (const std::string& pod : pods)
    readings.containers.push_back({"train", pod, "w", {{kResource, false, {"g"}}}});
  return readings;
}

TEST(Choose, FollowsThePlanOfThePodThatWaits) {
  const Choice choice = Choose(Pairs(), {Ids(0, 7), {}, 4}, {Pod("a", 4, 0b11110000U)}, {});
  EXPECT_EQ(choice.ids, Ids(4, 7));
  EXPECT_EQ(choice.pod, "train/a");
  EXPECT_THAT(choice.rivals, IsEmpty());
}

TEST(Choose, PassesOverPodsThatHoldTheirsOrAskForAnotherNumber) {
  const std::vector<PlannedPod> pods{Pod("a", 4, 0b1111U), Pod("b", 4, 0b11110000U), Pod("c", 2, 0b11U)};
  const Choice choice = Choose(Pairs(), {Ids(4, 7), {}, 4}, pods, Held({"a"}));
  EXPECT_EQ(choice.pod, "train/b");
  EXPECT_THAT(choice.rivals, IsEmpty());
}

TEST(Choose, OfEqualPodsTheFirstMadeIsTakenAndTheOthersAreNamed) {
  const std::vector<PlannedPod> pods{Pod("late", 4, 0b1111U, 9), Pod("early", 4, 0b11110000U, 3)};
  const Choice choice = Choose(Pairs(), {Ids(0, 7), {}, 4}, pods, {});
  EXPECT_EQ(choice.pod, "train/early");
  EXPECT_EQ(choice.ids, Ids(4, 7));
  EXPECT_THAT(choice.rivals, ElementsAre("train/late"));
  // Once that one holds them there is no doubt about the other.
  const Choice next = Choose(Pairs(), {Ids(0, 3), {}, 4}, pods, Held({"early"}));
  EXPECT_EQ(next.pod, "train/late");
  EXPECT_THAT(next.rivals, IsEmpty());
}

TEST(Choose, APodWithoutAPlanIsARival) {
  const std::vector<PlannedPod> pods{Pod("free", 4, std::nullopt, 1), Pod("planned", 4, 0b1111U, 2)};
  const Choice choice = Choose(Pairs(), {Ids(0, 7), {}, 4}, pods, {});
  EXPECT_EQ(choice.ids, Ids(4, 7)) << "what the planned one is to have is left to it";
  EXPECT_EQ(choice.pod, "");
  EXPECT_THAT(choice.rivals, ElementsAre("train/planned"));
}

TEST(Choose, APlanWhoseDevicesAreTakenIsNotFollowed) {
  const Choice choice = Choose(Pairs(), {Ids(2, 7), {}, 4}, {Pod("a", 4, 0b1111U)}, {});
  EXPECT_EQ(choice.pod, "");
  EXPECT_THAT(choice.ids, testing::SizeIs(4));
}

TEST(Choose, WithoutAPlanOneNumaNodeIsFilledAndNoPlanIsCrossed) {
  EXPECT_EQ(Choose(Pairs(), {Ids(0, 7), {}, 4}, {}, {}).ids, Ids(0, 3));
  // The node with the least room that suffices.
  EXPECT_EQ(Choose(Pairs(), {Ids(2, 7), {}, 2}, {}, {}).ids, Ids(2, 3));
  EXPECT_EQ(Choose(Pairs(), {Ids(0, 7), {}, 2}, {Pod("a", 4, 0b1111U)}, {}).ids, Ids(4, 5));
  // Nowhere enough: the larger part together.
  EXPECT_THAT(Choose(Pairs(), {Ids(1, 7), {}, 5}, {}, {}).ids, testing::IsSupersetOf(Ids(4, 7)));
}

TEST(Choose, WhatMustBeIncludedIs) {
  EXPECT_THAT(Choose(Pairs(), {Ids(0, 7), {"g6"}, 2}, {}, {}).ids, testing::Contains("g6"));
  const std::vector<PlannedPod> pods{Pod("a", 2, 0b11U)};
  const Choice choice = Choose(Pairs(), {Ids(0, 7), {"g6"}, 2}, pods, {});
  EXPECT_EQ(choice.pod, "") << "its plan does not have g6";
}

TEST(Choose, SharesAreSpreadOverDevices) {
  Offer offer = Pairs();
  offer.devices.resize(2);
  offer.slots = 2;
  EXPECT_EQ(Choose(offer, {{"g0::0", "g0::1", "g1::0", "g1::1"}, {}, 2}, {}, {}).ids,
            (std::vector<std::string>{"g0::0", "g1::0"}));
  EXPECT_EQ(Choose(offer, {{"g0::1", "g1::0", "g1::1"}, {}, 1}, {}, {}).ids,
            (std::vector<std::string>{"g1::0"}));
}

TEST(Choose, NicsFollowThePlannedNames) {
  Offer offer = Pairs();
  for (OfferedDevice& device : offer.devices) device.gpu.reset();
  PlannedPod pod = Pod("a", 2, 0b1100U);
  pod.nics = {"nic2", "nic3"};
  EXPECT_EQ(Choose(offer, {Ids(0, 7), {}, 2}, {pod}, {}).ids, Ids(2, 3));
}

TEST(Choose, OfTwoPodsTheOneThatWasBoundFirstIsMeantWithoutADoubt) {
  // Their times have whole seconds, so those of a gang are mostly equal.
  for (const int second : {5, 6}) {
    const std::vector<PlannedPod> pods{PodOfNics("a", {"nic0", "nic1"}, 9, second),
                                       PodOfNics("b", {"nic6", "nic7"}, 8, 5)};
    const Choice choice = Choose(Nics(), {Ids(0, 7), {}, 2}, pods, {});
    EXPECT_EQ(choice.pod, "train/b");
    EXPECT_EQ(choice.ids, Ids(6, 7));
    EXPECT_THAT(choice.rivals, IsEmpty());
    EXPECT_EQ(choice.refusal, "");
  }
  const std::vector<PlannedPod> pairs{Bound(Pod("a", 4, 0b1111U), 9), Bound(Pod("b", 4, 0b11110000U), 8)};
  const Choice choice = Choose(Pairs(), {Ids(0, 7), {}, 4}, pairs, {});
  EXPECT_EQ(choice.pod, "train/b");
  EXPECT_THAT(choice.rivals, IsEmpty());
}

TEST(Choose, OfNicsNoPlanIsFollowedWhereTheOrderOfThePodsIsInDoubt) {
  const std::vector<PlannedPod> pods{PodOfNics("made-first", {"nic0", "nic1"}, 9, 1),
                                     PodOfNics("bound-first", {"nic6", "nic7"}, 8, 2)};
  const Choice choice = Choose(Nics(), {Ids(0, 7), {}, 2}, pods, {});
  EXPECT_EQ(choice.refusal, "train/bound-first was bound before train/made-first and made after it");
  EXPECT_EQ(choice.pod, "");
  EXPECT_THAT(choice.rivals, ElementsAre("train/bound-first", "train/made-first"));
  EXPECT_EQ(choice.ids, Ids(2, 3)) << "neither's, so that the plan of the other can still be followed";
  const Choice next =
      Choose(Nics(), {{"g0", "g1", "g4", "g5", "g6", "g7"}, {}, 2}, pods, Held({"bound-first"}));
  EXPECT_EQ(next.pod, "train/made-first");
  EXPECT_EQ(next.ids, Ids(0, 1));
  EXPECT_EQ(next.refusal, "");
}

TEST(Choose, OfNicsNoPlanIsFollowedWhereNobodyKnowsWhichPodWasBoundFirst) {
  std::vector<PlannedPod> pods{PodOfNics("a", {"nic0"}, 3, 1), PodOfNics("b", {"nic1"}, 4, 2)};
  pods[1].version.reset();
  const Choice choice = Choose(Nics(), {Ids(0, 7), {}, 1}, pods, {});
  EXPECT_EQ(choice.refusal, "nobody knows which of train/a and train/b was bound first");
  EXPECT_THAT(choice.rivals, ElementsAre("train/a", "train/b"));
  EXPECT_EQ(choice.pod, "");
  // Where nothing else is left some are given all the same: the kubelet gives some in any case.
  EXPECT_THAT(Choose(Nics(), {Ids(0, 1), {}, 1}, pods, {}).ids, testing::SizeIs(1));
}

TEST(Choose, EqualPodsAreNoDoubtWhateverTheirOrder) {
  const std::vector<PlannedPod> pods{PodOfNics("a", {"nic4", "nic5"}, 9, 1),
                                     PodOfNics("b", {"nic4", "nic5"}, 8, 2)};
  Offer shared = Nics();
  shared.slots = 2;
  const Choice choice = Choose(shared, {{"g0::0", "g4::0", "g4::1", "g5::0", "g5::1"}, {}, 2}, pods, {});
  EXPECT_EQ(choice.ids, (std::vector<std::string>{"g4::0", "g5::0"}));
  EXPECT_EQ(choice.refusal, "");
  EXPECT_THAT(choice.rivals, IsEmpty());
}

TEST(Choose, OfPairsInDoubtTheOneThatWasBoundFirstIsTaken) {
  const std::vector<PlannedPod> pods{Bound(Pod("made-first", 4, 0b1111U, 1), 9),
                                     Bound(Pod("bound-first", 4, 0b11110000U, 2), 8)};
  Offer pairs = Pairs();
  pairs.mode = crds::DeviceMode::kPairs;
  const Choice choice = Choose(pairs, {Ids(0, 7), {}, 4}, pods, {});
  EXPECT_EQ(choice.pod, "train/bound-first");
  EXPECT_THAT(choice.rivals, ElementsAre("train/made-first"));
  EXPECT_EQ(choice.refusal, "");
}

TEST(Choose, AnswersAnythingWithWhatWasAvailable) {
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Offer offer = random.Below(2) == 0 ? Nics() : Pairs();
    offer.slots = int(1 + random.Below(3));
    std::vector<std::string> all;
    for (const OfferedDevice& device : offer.devices) {
      for (const std::string& id : IdsOf(offer, device)) all.push_back(id);
    }
    all.push_back("nonsense");
    PreferenceQuestion question;
    for (const std::string& id : all) {
      if (random.Below(2) == 0) question.available.push_back(id);
    }
    if (!question.available.empty() && random.Below(3) == 0)
      question.must_include = {question.available.front()};
    question.size = int(random.Below(12)) - 1;
    std::vector<PlannedPod> pods;
    for (int i = 0; i < int(random.Below(4)); ++i) {
      pods.push_back(Pod("p" + std::to_string(i), int(random.Below(5)), std::uint32_t(random.Below(256)), i));
      for (int nic = 0; nic < 8; ++nic) {
        if (random.Below(2) == 0) pods.back().nics.push_back("nic" + std::to_string(nic));
      }
      if (random.Below(4) != 0) pods.back().version = random.Below(3);
    }
    const Choice choice =
        Choose(offer, question, pods,
               Held(random.Below(2) == 0 ? std::vector<std::string>{"p0"} : std::vector<std::string>{}));
    EXPECT_TRUE(choice.ids.empty() || int(choice.ids.size()) == question.size);
    EXPECT_TRUE(choice.refusal.empty() || (choice.pod.empty() && choice.rivals.size() > 1));
    std::set<std::string> once(choice.ids.begin(), choice.ids.end());
    EXPECT_EQ(once.size(), choice.ids.size());
    for (const std::string& id : choice.ids) {
      EXPECT_THAT(question.available, testing::Contains(id));
      EXPECT_NE(id, "nonsense");
    }
  }
}

TEST(PlannedPods, AreReadFromWhatTheExtenderWrote) {
  const auto pod = PlannedPodOf(kube::Json::parse(R"({
    "metadata": {"name": "a", "namespace": "train", "creationTimestamp": "2026-11-22T08:00:00Z",
                 "resourceVersion": "4711",
                 "annotations": {"heddle.dev/gpus": "4,5", "heddle.dev/nics": "mlx5_5,mlx5_4"}},
    "spec": {"containers": [{"name": "w", "resources": {"limits": {"heddle.dev/gpu": "2", "cpu": "8", "x/y": 0}}}]},
    "status": {"phase": "Pending"}})"));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->version, 4711U);
  EXPECT_EQ(pod->gpus, 0b110000U);
  EXPECT_THAT(pod->nics, ElementsAre("mlx5_4", "mlx5_5"));
  EXPECT_THAT(pod->containers, ElementsAre(std::map<std::string, int>{{"heddle.dev/gpu", 2}}));
}

TEST(PlannedPods, ThatEndedOrMakeNoSenseAreNone) {
  EXPECT_FALSE(
      PlannedPodOf(kube::Json::parse(R"({"metadata": {"name": "a"}, "status": {"phase": "Failed"}})")));
  EXPECT_FALSE(PlannedPodOf(kube::Json()));
  EXPECT_FALSE(PlannedPodOf(kube::Json::parse(R"([1])")));
  const auto odd = PlannedPodOf(kube::Json::parse(
      R"({"metadata": {"name": "a", "resourceVersion": "7 or so",
                       "annotations": {"heddle.dev/gpus": "x", "heddle.dev/nics": ",,"}},
          "spec": {"containers": [7, {"resources": {"limits": {"a/b": "1k", "a/c": -3, "a/d": 1e30}}}]}})"));
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->version);
  EXPECT_FALSE(odd->gpus);
  EXPECT_THAT(odd->nics, IsEmpty());
  for (const auto& container : odd->containers) EXPECT_THAT(container, IsEmpty());
}

TEST(PlanCondition, SaysBothWhereTheyDiffer) {
  crds::Grant grant;
  grant.pod_namespace = "train";
  grant.pod_name = "a";
  grant.gpus = {{4, "GPU-4"}, {5, "GPU-5"}};
  grant.nics = {"nic4", "nic5"};
  PlannedPod pod = Pod("a", 2, 0b110000U);
  pod.nics = {"nic4", "nic5"};
  auto condition = PlanCondition({grant}, {pod});
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->status, crds::ConditionStatus::kTrue);
  pod.gpus = 0b11U;
  pod.nics = {"nic0", "nic1"};
  condition = PlanCondition({grant}, {pod});
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->status, crds::ConditionStatus::kFalse);
  EXPECT_THAT(condition->message,
              HasSubstr("train/a holds GPU 4,5 where its plan says GPU 0,1; train/a holds nic4,nic5 "
                        "where its plan says nic0,nic1"));
  EXPECT_FALSE(PlanCondition({}, {pod}));
  EXPECT_FALSE(PlanCondition({grant}, {Pod("b", 2, 0b11U)}));
}

TEST(PlanCondition, SaysNothingAgainstGpusThatNobodyCanCountByIndex) {
  crds::Grant grant;
  grant.pod_namespace = "train";
  grant.pod_name = "a";
  grant.gpus = {{-1, "GPU-gone"}, {5, "GPU-5"}};
  EXPECT_FALSE(PlanCondition({grant}, {Pod("a", 2, 0b11U)}));
}

}  // namespace
}  // namespace heddle::nodeagent
