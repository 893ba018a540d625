#include "extender/slimming.h"

#include <gtest/gtest.h>

#include "crds/keys.h"
#include "kube/packed.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;
using kube::Json;
using test::GatedPod;

// Of a pod as it comes and as it is kept, which is to be the same.
PodKind Kind(const Json& pod, Mode mode = Mode::kPlace) {
  const PodKind whole = KindOfPod(pod, mode);
  const Json kept = SlimPods(mode).transform(pod);
  EXPECT_TRUE(kube::IsPacked(kept));
  const PodKind packed = KindOfPod(kept, mode);
  EXPECT_EQ(packed.gang, whole.gang);
  EXPECT_EQ(packed.passed_the_gate, whole.passed_the_gate);
  PodFacts as_kept = ReadPod(kept);
  const PodFacts as_it_came = ReadPod(pod);
  EXPECT_FALSE(*as_kept.terms < *as_it_came.terms || *as_it_came.terms < *as_kept.terms);
  as_kept.terms = as_it_came.terms;  // which are compared as objects
  EXPECT_TRUE(as_kept == as_it_came);
  return packed;
}

Json PastTheGate() {
  Json pod = GatedPod(0);
  pod["spec"].erase("schedulingGates");
  return pod;
}

TEST(KindOfPod, OfAPodOfAGangIsItsGangAlsoPastTheGate) {
  EXPECT_EQ(Kind(GatedPod(0)).gang, (GangKey{"train", "job-uid", 0}));
  Json released = PastTheGate();
  released["metadata"]["annotations"][std::string(keys::kGangUid)] = "gang-uid";
  EXPECT_EQ(Kind(released).gang, (GangKey{"train", "job-uid", 0}));
  EXPECT_FALSE(Kind(released).passed_the_gate);
}

TEST(KindOfPod, NamesGroupsAsTheirPodsDo) {
  Json pod = GatedPod(0);
  pod["metadata"].erase("ownerReferences");
  pod["metadata"]["labels"] = {{std::string(keys::kGangName), "a/b"}};
  EXPECT_EQ(Kind(pod).gang, MembershipOf(pod).key);
  Json attempt = test::GatedPod(0);
  attempt["metadata"]["labels"] = {{std::string(jobset::kUid), "set-uid"},
                                   {std::string(jobset::kAttempt), "3"}};
  EXPECT_EQ(Kind(attempt).gang, (GangKey{"train", "set-uid", 3}));
}

TEST(KindOfPod, APodThatPassedTheGateIsOneAndWhereGangsAreObservedOfItsGangToo) {
  EXPECT_FALSE(Kind(PastTheGate()).gang);
  EXPECT_TRUE(Kind(PastTheGate()).passed_the_gate);
  EXPECT_EQ(Kind(PastTheGate(), Mode::kObserve).gang, (GangKey{"train", "job-uid", 0}));
  EXPECT_TRUE(Kind(PastTheGate(), Mode::kObserve).passed_the_gate);
}

TEST(KindOfPod, OfAnyOtherPodIsNothing) {
  Json pod = PastTheGate();
  pod["metadata"].erase("annotations");
  EXPECT_FALSE(Kind(pod).gang);
  EXPECT_FALSE(Kind(pod).passed_the_gate);
}

}  // namespace
}  // namespace heddle::extender
