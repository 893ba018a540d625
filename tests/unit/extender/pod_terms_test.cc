#include "extender/pod_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/pod_facts.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::GatedPod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;

Json Ungated(Json pod) {
  pod["spec"].erase("schedulingGates");
  return pod;
}

TEST(PodTerms, AreWhatAPodSaysOfItsGangAndOfWhatIsNotModelled) {
  Json pod = GatedPod(0);
  pod["metadata"]["annotations"]["heddle.dev/rank"] = "3";
  pod["metadata"]["annotations"]["team"] = "red";
  pod["spec"]["volumes"] =
      Json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "dataset"}}}},
                   {{"name", "scratch"}, {"ephemeral", Json::object()}}});
  const PodTerms terms = ReadTerms(pod, true);
  EXPECT_THAT(terms.said, ElementsAre(Pair("heddle.dev/parallelism", "tp=8,dp=2")));
  EXPECT_THAT(terms.unmodelled, Optional(HasSubstr("scratch")));
  EXPECT_THAT(terms.claims, ElementsAre("dataset"));
  EXPECT_THAT(terms.compute_domain, IsEmpty());
  ASSERT_TRUE(terms.constraints);
  EXPECT_TRUE(terms.constraints->Admit(NodeFacts{}));
}

TEST(PodTerms, ConfineAPodToNodesOnlyWhileItWaitsAtTheGate) {
  EXPECT_FALSE(ReadTerms(GatedPod(0), false).constraints);
}

TEST(PodTerms, OfOneTemplateAreOneObject) {
  const auto read = PodReader();
  const auto first = read(GatedPod(0)), second = read(GatedPod(1));
  EXPECT_NE(first->uid, second->uid);
  EXPECT_EQ(first->terms, second->terms);
  const auto third = read(Ungated(GatedPod(2))), fourth = read(Ungated(GatedPod(3)));
  EXPECT_NE(first->terms, third->terms);
  EXPECT_EQ(third->terms, fourth->terms);
}

TEST(PodTerms, ThatDifferInAnythingAreObjectsOfTheirOwn) {
  const auto read = PodReader();
  const auto like = read(GatedPod(0));
  const auto other = [&](const char* pointer, Json value) {
    Json pod = GatedPod(0);
    pod[Json::json_pointer(pointer)] = std::move(value);
    return read(pod);
  };
  const Json claim = Json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "dataset"}}}}});
  for (const auto& pod : {
           other("/metadata/annotations/heddle.dev~1parallelism", "tp=4,dp=4"),
           other("/metadata/annotations/heddle.dev~1wait", "5m"),
           other("/spec/nodeSelector", {{"pool", "a"}}),
           other("/spec/tolerations", Json::array({{{"operator", "Exists"}}})),
           other("/spec/volumes", claim),
           other("/spec/resourceClaims", Json::array({{{"name", "gpu"}}})),
       }) {
    EXPECT_NE(pod->terms, like->terms);
  }
  EXPECT_EQ(other("/metadata/annotations/team", "red")->terms, like->terms);
}

}  // namespace
}  // namespace heddle::extender
