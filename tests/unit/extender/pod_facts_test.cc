#include "extender/pod_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/unmodelled.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// As the API server has it: with its account's token, and all that a kubelet says.
kube::Json WholePod() {
  kube::Json pod = test::GatedPod(1);
  pod["metadata"]["managedFields"] = kube::Json::array({{{"manager", "kube-controller-manager"}}});
  pod["spec"]["volumes"] =
      kube::Json::array({{{"name", "kube-api-access-x"},
                          {"projected", {{"sources", kube::Json::array({{{"serviceAccountToken", {}}}})}}}},
                         {{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "shared"}}}},
                         {{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}});
  pod["status"] = {{"phase", "Pending"},
                   {"podIP", "10.0.0.1"},
                   {"conditions", kube::Json::array({{{"type", "Ready"}, {"status", "False"}},
                                                     {{"type", "PodScheduled"},
                                                      {"status", "False"},
                                                      {"reason", "Unschedulable"},
                                                      {"message", "0/2 nodes are available"},
                                                      {"lastTransitionTime", "2026-01-01T00:00:00Z"}}})}};
  return pod;
}

TEST(SlimPod, SaysTheSameAsTheWholePod) {
  const kube::Json whole = WholePod(), slim = SlimPod(whole);
  EXPECT_EQ(ReadPod(slim), ReadPod(whole));
  EXPECT_EQ(ReadPod(slim).unschedulable_why, "0/2 nodes are available");
  EXPECT_THAT(ClaimNames(slim), ElementsAre("shared"));
  EXPECT_EQ(UnmodelledConstraint(slim), std::nullopt);
}

TEST(SlimPod, KeepsTheVolumeThatItsGangIsRefusedFor) {
  kube::Json pod = WholePod();
  pod["spec"]["volumes"].push_back({{"name", "scratch"}, {"ephemeral", {{"volumeClaimTemplate", {}}}}});
  EXPECT_EQ(UnmodelledConstraint(SlimPod(pod)), UnmodelledConstraint(pod));
  EXPECT_NE(UnmodelledConstraint(pod), std::nullopt);
}

TEST(SlimPod, DropsTheTokensVolumeAndOtherConditions) {
  const kube::Json slim = SlimPod(WholePod());
  EXPECT_THAT(slim["spec"]["volumes"], SizeIs(1));
  EXPECT_THAT(slim["status"]["conditions"], SizeIs(1));
  EXPECT_FALSE(slim["metadata"].contains("managedFields"));
}

TEST(SlimPod, TakesGarbageForWhatItIs) {
  for (const char* text :
       {R"({})", R"({"spec":7,"status":[]})", R"({"spec":{"volumes":{"a":1}},"metadata":null})",
        R"({"spec":{"volumes":[7,null,[]]},"status":{"conditions":[null,3]}})"}) {
    const kube::Json slim = SlimPod(kube::Json::parse(text));
    EXPECT_TRUE(ClaimNames(slim).empty()) << text;
  }
}

}  // namespace
}  // namespace heddle::extender
