#include "crds/pod_templates.h"

#include <gmock/gmock.h>

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

const std::string kPod = R"({"spec": {"containers": []}})";

std::vector<std::pair<std::string, std::int64_t>> Found(std::string text) {
  for (std::size_t at; (at = text.find("POD")) != std::string::npos;) text.replace(at, 3, kPod);
  const Json object = Json::parse(text);
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const PodTemplate& one : PodTemplatesOf(object)) found.emplace_back(one.path, one.pods);
  return found;
}

TEST(PodTemplates, OfAPodAreItself) {
  EXPECT_THAT(Found("POD"), ElementsAre(Pair("", 1)));
}

TEST(PodTemplates, OfAJobMakeAsManyPodsAsRunAtATime) {
  EXPECT_THAT(Found(R"({"spec": {"template": POD}})"), ElementsAre(Pair("spec.template", 1)));
  EXPECT_THAT(Found(R"({"spec": {"parallelism": 4, "completions": 16, "template": POD}})"),
              ElementsAre(Pair("spec.template", 4)));
  EXPECT_THAT(Found(R"({"spec": {"parallelism": 16, "completions": 4, "template": POD}})"),
              ElementsAre(Pair("spec.template", 4)));
  EXPECT_THAT(Found(R"({"spec": {"jobTemplate": {"spec": {"parallelism": 3, "template": POD}}}})"),
              ElementsAre(Pair("spec.jobTemplate.spec.template", 3)));
}

TEST(PodTemplates, OfFrameworksAreCountedByWhatStandsAboveThem) {
  EXPECT_THAT(Found(R"({"spec": {"replicatedJobs": [{"replicas": 2, "template": {"spec":
      {"parallelism": 4, "template": POD}}}, {"template": {"spec": {"template": POD}}}]}})"),
              ElementsAre(Pair("spec.replicatedJobs[0].template.spec.template", 8),
                          Pair("spec.replicatedJobs[1].template.spec.template", 1)));
  EXPECT_THAT(Found(R"({"spec": {"pytorchReplicaSpecs": {"Master": {"template": POD},
      "Worker": {"replicas": 7, "template": POD}}}})"),
              ElementsAre(Pair("spec.pytorchReplicaSpecs.Master.template", 1),
                          Pair("spec.pytorchReplicaSpecs.Worker.template", 7)));
  EXPECT_THAT(Found(R"({"spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4,
      "leaderTemplate": POD, "workerTemplate": POD}}})"),
              ElementsAre(Pair("spec.leaderWorkerTemplate.leaderTemplate", 2),
                          Pair("spec.leaderWorkerTemplate.workerTemplate", 6)));
}

TEST(PodTemplates, OfStatusAndOfNonsenseAreNone) {
  EXPECT_THAT(Found(R"({"status": {"template": POD}, "template": POD})"), IsEmpty());
  for (const char* text : {"null", "[]", "7", R"({"spec": 1})", R"({"spec": {"template": []}})",
                           R"({"spec": {"template": {"spec": {"containers": {}}}}})"})
    EXPECT_THAT(Found(text), IsEmpty()) << text;
}

TEST(PodTemplates, HaveBounds) {
  EXPECT_THAT(Found(R"({"spec": {"replicas": -4, "template": POD}})"), ElementsAre(Pair("spec.template", 0)));
  EXPECT_THAT(
      Found(R"({"spec": {"replicas": 18446744073709551615, "a": {"replicas": 1000000, "template": POD}}})"),
      ElementsAre(Pair("spec.a.template", kMaxPodsOfTemplate)));
  std::string many = R"({"spec": {"jobs": [)";
  for (int i = 0; i < 200; ++i) many += std::string(i == 0 ? "" : ",") + R"({"template": POD})";
  EXPECT_THAT(Found(many + "]}}"), SizeIs(kMaxPodTemplates));
  std::string deep = "POD";
  for (int i = 0; i < 40; ++i) deep = R"({"spec": )" + deep + "}";
  EXPECT_THAT(Found(deep), IsEmpty());
}

TEST(Quantities, AreCountedAndMeasured) {
  EXPECT_EQ(CountOf(Json("8")), 8);
  EXPECT_EQ(CountOf(Json(8)), 8);
  for (const Json& none : {Json("8k"), Json("-8"), Json(-8), Json(), Json("99999999999999999999"), Json(1.5)})
    EXPECT_EQ(CountOf(none), 0) << none;
  EXPECT_EQ(BytesOf(Json("2Gi")), std::int64_t{2} << 30);
  EXPECT_EQ(BytesOf(Json("1.5M")), 1'500'000);
  EXPECT_EQ(BytesOf(Json(4096)), 4096);
  EXPECT_EQ(BytesOf(Json("999999Pi")), std::int64_t{1} << 60);
  for (const Json& none : {Json("Gi"), Json("2GiB"), Json("-1Gi"), Json("nan"), Json(), Json::array()})
    EXPECT_EQ(BytesOf(none), -1) << none;
}

}  // namespace
}  // namespace heddle::crds
