#include "crds/pod_group.h"

#include <gtest/gtest.h>

namespace heddle::crds {
namespace {

Json Pod() {
  return Json::parse(R"({"kind": "Pod", "metadata": {"name": "pair-0", "namespace": "train"},
                         "spec": {"schedulingGroup": {"podGroupName": "pair"}, "containers": []}})");
}
Json Group(const char* api_version, const char* ns = "train") {
  Json group = Json::parse(R"({"kind": "PodGroup", "metadata": {"name": "pair"},
                               "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}})");
  group["apiVersion"] = api_version;
  if (*ns != '\0') group["metadata"]["namespace"] = ns;
  return group;
}

TEST(PodGroup, IsNamedByItsPods) {
  const auto ref = PodGroupOf(Pod());
  ASSERT_TRUE(ref);
  EXPECT_EQ(ref->ns, "train");
  EXPECT_EQ(ref->name, "pair");
  Json other = Pod();
  other["metadata"]["labels"]["heddle.dev/gang-name"] = "ours";
  EXPECT_FALSE(PodGroupOf(other)) << "the extender asks this label first";
  other = Pod();
  other["kind"] = "Job";
  EXPECT_FALSE(PodGroupOf(other)) << "a Job numbers its pods itself";
  other = Pod();
  other["spec"]["schedulingGroup"] = Json::object();
  EXPECT_FALSE(PodGroupOf(other));
  EXPECT_FALSE(PodGroupOf(Json()));
}

TEST(PodGroup, IsKubernetesOwnAndNoneOfOtherSchedulers) {
  for (const char* version : {"scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1"})
    EXPECT_TRUE(IsPodGroup(Group(version))) << version;
  for (const char* version :
       {"scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1", "scheduling.run.ai/v2alpha2"})
    EXPECT_FALSE(IsPodGroup(Group(version))) << version;
  EXPECT_FALSE(IsPodGroup(Pod()));
}

TEST(PodGroup, IsOfTheNamespaceOfItsPods) {
  const PodGroupRef ref{"train", "pair"};
  const char* const version = "scheduling.k8s.io/v1alpha2";
  EXPECT_TRUE(IsNamed(Group(version), ref));
  EXPECT_FALSE(IsNamed(Group(version, "other"), ref));
  EXPECT_TRUE(IsNamed(Group(version, ""), ref));
  EXPECT_TRUE(IsNamed(Group(version, "other"), {"", "pair"}));
  EXPECT_FALSE(IsNamed(Group(version), {"train", "single"}));
}

TEST(PodGroup, SaysHowManyPodsItsGangHas) {
  Json group = Group("scheduling.k8s.io/v1beta1");
  EXPECT_EQ(FactsOf(group).pods, 2);
  EXPECT_TRUE(FactsOf(group).asks_for_gang);
  group["spec"]["schedulingPolicy"]["gang"]["minCount"] = "many";
  EXPECT_EQ(FactsOf(group).pods, 0);
  EXPECT_TRUE(FactsOf(group).asks_for_gang);
  group["spec"]["schedulingPolicy"] = {{"basic", Json::object()}};
  EXPECT_FALSE(FactsOf(group).asks_for_gang);
  EXPECT_FALSE(FactsOf(Json()).asks_for_gang);
}

}  // namespace
}  // namespace heddle::crds
