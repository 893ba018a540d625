#include "extender/release_patch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::GatedPod;

Slot TheSlot() {
  return {.rank = 3,
          .node = "a1",
          .gpus = 0b1100,
          .nics = {"mlx5_2", "mlx5_3"},
          .substitutes = {"a2", "a3"},
          .gang_uid = "gang-uid",
          .epoch = 2};
}

Json Released(const Json& pod) {
  const auto patch = ReleasePatch(pod, TheSlot());
  EXPECT_TRUE(patch);
  return patch ? pod.patch(*patch) : Json();
}

const Json& TermsOf(const Json& pod) {
  return kube::ArrayAt(pod, {"spec", "affinity", "nodeAffinity",
                             "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
}

Json WithTerms(const char* terms) {
  Json pod = GatedPod(3);
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
     ["nodeSelectorTerms"] = Json::parse(terms);
  return pod;
}

TEST(ReleasePatch, PinsAPodWithoutTermsToItsNodeAndItsSubstitutes) {
  const Json terms = TermsOf(Released(GatedPod(3)));
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms[0],
            Json::parse(R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["a1"]}]})"));
  EXPECT_EQ(terms[2]["matchFields"][0]["values"][0], "a3");
}

TEST(ReleasePatch, PinsToOneNodeWhenAnotherSchedulerPlacesThePod) {
  Json pod = GatedPod(3);
  pod["spec"]["schedulerName"] = "default-scheduler";
  const Json released = Released(pod);
  EXPECT_EQ(TermsOf(released).size(), 1u);
  EXPECT_EQ(kube::Annotation(released, "heddle.dev/substitutes"), "");
}

TEST(ReleasePatch, NarrowsEachTermThatIsThereAndLeavesEmptyOnesEmpty) {
  const Json terms = TermsOf(Released(WithTerms(
      R"([{"matchExpressions":[{"key":"zone","operator":"In","values":["a"]}]},{},
          {"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["b"]}]}])")));
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms[0]["matchExpressions"][0]["key"], "zone");
  EXPECT_EQ(terms[0]["matchFields"][0]["values"][0], "a1");
  EXPECT_EQ(terms[1], Json::object());
  ASSERT_EQ(terms[2]["matchFields"].size(), 2u);
  EXPECT_EQ(terms[2]["matchFields"][0]["operator"], "NotIn");
  EXPECT_EQ(terms[2]["matchFields"][1]["values"][0], "a1");
}

TEST(ReleasePatch, KeepsPreferencesAndOtherAffinity) {
  Json pod = GatedPod(3);
  pod["spec"]["affinity"] = Json::parse(R"({"podAffinity":{"x":1},"nodeAffinity":{
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}]}})");
  const Json released = Released(pod);
  EXPECT_EQ(released["spec"]["affinity"]["podAffinity"]["x"], 1);
  EXPECT_EQ(released["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
                    ["weight"],
            1);
  EXPECT_EQ(TermsOf(released).size(), 3u);
}

TEST(ReleasePatch, RemovesOurGateOnly) {
  Json pod = GatedPod(3);
  pod["spec"]["schedulingGates"] =
      Json::parse(R"([{"name":"a.io/x"},{"name":"heddle.dev/gang"},{"name":"b.io/y"}])");
  EXPECT_EQ(Released(pod)["spec"]["schedulingGates"],
            Json::parse(R"([{"name":"a.io/x"},{"name":"b.io/y"}])"));
}

TEST(ReleasePatch, TellsThePodItsPlan) {
  const Json pod = Released(GatedPod(3));
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/rank"), "3");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/gpus"), "2,3");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/nics"), "mlx5_2,mlx5_3");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/gang-uid"), "gang-uid");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/epoch"), "2");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/node"), "a1");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/substitutes"), "a2,a3");
  EXPECT_EQ(kube::Annotation(pod, "heddle.dev/parallelism"), "tp=8,dp=2");
}

TEST(ReleasePatch, MakesTheAnnotationsOfAPodThatHasNone) {
  Json pod = GatedPod(3);
  pod["metadata"].erase("annotations");
  EXPECT_EQ(kube::Annotation(Released(pod), "heddle.dev/rank"), "3");
}

TEST(ReleasePatch, FailsOnAPodThatWasMadeAnewOrChangedOrLetGo) {
  const Json pod = WithTerms(R"([{"matchExpressions":[{"key":"zone","operator":"Exists"}]}])");
  const auto patch = ReleasePatch(pod, TheSlot());
  ASSERT_TRUE(patch);
  Json remade = pod;
  remade["metadata"]["uid"] = "other";
  EXPECT_THROW((void)remade.patch(*patch), Json::exception);
  Json let_go = pod;
  let_go["spec"]["schedulingGates"] = Json::parse(R"([{"name":"somebody.else/gate"}])");
  EXPECT_THROW((void)let_go.patch(*patch), Json::exception);
  Json narrowed = pod;
  narrowed["spec"]["affinity"] = WithTerms(R"([{},{}])")["spec"]["affinity"];
  EXPECT_THROW((void)narrowed.patch(*patch), Json::exception);
  let_go["spec"].erase("schedulingGates");
  EXPECT_FALSE(ReleasePatch(let_go, TheSlot()));
}

TEST(MovePatch, ChangesAnnotationsOnlyAndOnlyOfThePodThatWasRead) {
  const Json pod = Released(GatedPod(3));
  Slot slot = TheSlot();
  slot.node = "a2";
  slot.epoch = 3;
  const Json moved = pod.patch(MovePatch(pod, slot));
  EXPECT_EQ(kube::Annotation(moved, "heddle.dev/node"), "a2");
  EXPECT_EQ(kube::Annotation(moved, "heddle.dev/epoch"), "3");
  EXPECT_EQ(moved["spec"], pod["spec"]);
  Json bound = pod;
  bound["metadata"]["resourceVersion"] = "8";
  EXPECT_THROW((void)bound.patch(MovePatch(pod, slot)), Json::exception);
}

}  // namespace
}  // namespace heddle::extender
