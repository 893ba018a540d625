#include "extender/pod_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/unmodelled.h"
#include "kube/json_reader.h"
#include "kube/packed.h"
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
  const auto read = PodReader();
  EXPECT_EQ(*read(slim), *read(whole));
  EXPECT_EQ(ReadPod(slim).unschedulable_why, "0/2 nodes are available");
  EXPECT_THAT(ClaimNames(slim), ElementsAre("shared"));
  EXPECT_EQ(UnmodelledConstraint(slim), std::nullopt);
}

TEST(SlimPod, PackedItSaysTheSame) {
  kube::Json slim = SlimPod(WholePod());
  slim["spec"]["nodeName"] = "n1";
  const auto read = PodReader();
  EXPECT_EQ(*read(kube::Packed(slim)), *read(slim));
  EXPECT_EQ(ReadPod(kube::Packed(slim)).node, "n1");
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

TEST(SlimPod, MissesNothingOfWhatIsNotEvenRead) {
  kube::Json pod = WholePod();
  for (const char* name : {"containers", "initContainers"}) {
    pod["spec"][name].push_back(
        {{"name", "torch"},
         {"image", "train"},
         {"restartPolicy", "Always"},
         {"ports", kube::Json::array({{{"hostPort", 7}}})},
         {"env", kube::Json::array(
                     {{{"name", "A"}, {"value", "1"}}, {{"name", "PET_RDZV_BACKEND"}, {"value", "c10d"}}})},
         {"resources", {{"limits", {{"nvidia.com/gpu", "8"}}}}},
         {"volumeMounts", kube::Json::array({{{"name", "data"}}})},
         {"livenessProbe", {{"httpGet", {{"port", 1}}}}}});
  }
  pod["status"]["containerStatuses"] = kube::Json::array({{{"name", "torch"}}});
  const kube::Json read = kube::JsonReader().Read(pod.dump(), &PodPruning());
  EXPECT_LT(read.dump().size(), pod.dump().size() - 200);
  EXPECT_EQ(SlimPod(read).dump(), SlimPod(pod).dump());
  EXPECT_TRUE(MeetsByC10d(SlimPod(read)));
}

// As a kubelet or the Job controller leaves it.
kube::Json Failed(const std::string& reason, const std::string& message) {
  kube::Json pod = WholePod();
  pod["status"]["phase"] = "Failed";
  if (!reason.empty()) pod["status"]["reason"] = reason;
  if (!message.empty()) pod["status"]["message"] = message;
  return pod;
}

TEST(ReadPod, TellsAPodThatItsKubeletDidNotAdmitFromOneThatFailedLater) {
  const auto why = [](const std::string& reason, const std::string& message) {
    return ReadPod(SlimPod(Failed(reason, message))).not_admitted;
  };
  EXPECT_EQ(why("UnexpectedAdmissionError", "Pod was rejected: Allocate failed"),
            "UnexpectedAdmissionError: Allocate failed");
  EXPECT_EQ(why("OutOfnvidia.com/gpu", "Node didn't have enough resource"),
            "OutOfnvidia.com/gpu: Node didn't have enough resource");
  EXPECT_EQ(why("NodePorts", ""), "NodePorts");
  EXPECT_EQ(why("SomethingNew", "Pod was rejected: no"), "SomethingNew: no");
  EXPECT_EQ(why("", ""), "") << "a program that ended badly";
  EXPECT_EQ(why("", "Pod was rejected: no"), "");
  EXPECT_EQ(why("Evicted", "The node was low on resource: memory."), "");
  EXPECT_EQ(why("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), "");
  kube::Json runs = Failed("NodeAffinity", "");
  runs["status"]["phase"] = "Running";
  EXPECT_EQ(ReadPod(runs).not_admitted, "");
}

TEST(ReadPod, CutsWhatAKubeletSays) {
  const std::string why =
      ReadPod(Failed("TopologyAffinityError", "Pod was rejected: " + std::string(5000, 'x'))).not_admitted;
  EXPECT_LT(why.size(), 300u);
  EXPECT_EQ(why.substr(0, 24), "TopologyAffinityError: x");
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
