#include "tests/support/fake_api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/client.h"
#include "tests/support/fake_clock.h"

namespace heddle::test {
namespace {

using base::Code;
using kube::Json;
using kube::NewObject;
using kube::PatchType;
using testing::ElementsAre;

const kube::Resource kGangs = kube::CustomResource("heddle.dev", "v1alpha1", "gangs", "Gang", true);

class FakeApiServerTest : public testing::Test {
 protected:
  FakeApiServerTest() {
    server_.Serve(kGangs);
    clock_.set_auto_advance(true);
  }
  Json Gang(int value = 1) {
    Json gang = NewObject(kGangs, {"train", "g"});
    gang["spec"]["value"] = value;
    return gang;
  }
  Json Stored() { return server_.Find(kGangs, {"train", "g"}).value_or(Json()); }
  kube::Client As(const std::string& manager) {
    return kube::Client(server_, clock_, {.field_manager = manager});
  }

  FakeClock clock_;
  FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_, {.field_manager = "tester"}};
};

TEST_F(FakeApiServerTest, SeparatesStatusFromTheRest) {
  Json gang = Gang();
  gang["status"]["state"] = "x";
  gang = *client_.Create(kGangs, gang, {});
  EXPECT_FALSE(gang.contains("status"));
  EXPECT_EQ(kube::Generation(gang), 1);
  gang["status"]["state"] = "Planned";
  gang["spec"]["value"] = 2;
  gang = *client_.UpdateStatus(kGangs, gang, {});
  EXPECT_EQ(gang["status"]["state"], "Planned");
  EXPECT_EQ(gang["spec"]["value"], 1);
  EXPECT_EQ(kube::Generation(gang), 1);
  gang["status"]["state"] = "Lost";
  gang["spec"]["value"] = 3;
  gang = *client_.Update(kGangs, gang, {});
  EXPECT_EQ(gang["status"]["state"], "Planned");
  EXPECT_EQ(kube::Generation(gang), 2);
}

TEST_F(FakeApiServerTest, KeepsTheVersionWhereNothingChanges) {
  const Json gang = *client_.Create(kGangs, Gang(), {});
  const auto same =
      client_.Patch(kGangs, {"train", "g"}, PatchType::kMerge, {{"spec", {{"value", 1}}}}, {}, {});
  EXPECT_EQ(kube::ResourceVersion(*same), kube::ResourceVersion(gang));
}

TEST_F(FakeApiServerTest, AnswersWithTheServersCodes) {
  EXPECT_EQ(client_.Get(kGangs, {"train", "g"}, {}).error().code, Code::kNotFound);
  ASSERT_TRUE(client_.Create(kGangs, Gang(), {}));
  EXPECT_EQ(client_.Create(kGangs, Gang(), {}).error().code, Code::kAlreadyExists);
  const Json failing = Json::parse(R"([{"op":"test","path":"/spec/value","value":7}])");
  EXPECT_EQ(client_.Patch(kGangs, {"train", "g"}, PatchType::kJson, failing, {}, {}).error().code,
            Code::kInvalid);
  EXPECT_EQ(client_.Patch(kGangs, {"train", "g"}, PatchType::kStrategic, {}, {}, {}).error().code,
            Code::kUnimplemented);
  EXPECT_EQ(client_.Delete(kGangs, {"train", "g"}, {.uid = "other"}, {}).error().code, Code::kConflict);
  ASSERT_TRUE(client_.Delete(kGangs, {"train", "g"}, {.uid = kube::Uid(Stored())}, {}));
  EXPECT_EQ(client_.List(kube::CustomResource("odd.dev", "v1", "odds", "Odd", true), {}, {}).error().code,
            Code::kNotFound);
}

TEST_F(FakeApiServerTest, HoldsAnObjectWithFinalizersUntilTheLastIsGone) {
  Json gang = Gang();
  gang["metadata"]["finalizers"] = {"heddle.dev/x"};
  ASSERT_TRUE(client_.Create(kGangs, gang, {}));
  ASSERT_TRUE(client_.Delete(kGangs, {"train", "g"}, {}, {}));
  EXPECT_TRUE(kube::DeletionTimestamp(Stored()));
  ASSERT_TRUE(client_.Patch(kGangs, {"train", "g"}, PatchType::kMerge,
                            {{"metadata", {{"finalizers", nullptr}}}}, {}, {}));
  EXPECT_TRUE(Stored().is_null());
}

TEST_F(FakeApiServerTest, AppliesByOwners) {
  const auto apply = [&](const std::string& manager, Json spec, bool force = false) {
    Json gang = NewObject(kGangs, {"train", "g"});
    gang["spec"] = std::move(spec);
    return client_.Apply(kGangs, gang, {.field_manager = manager, .force = force}, {});
  };
  ASSERT_TRUE(apply("a", {{"x", 1}, {"y", 1}}));
  ASSERT_TRUE(apply("b", {{"x", 1}, {"z", 1}})) << "the same value is shared";
  EXPECT_EQ(apply("b", {{"x", 2}}).error().code, Code::kConflict);
  ASSERT_TRUE(apply("b", {{"x", 2}}, true));
  EXPECT_EQ(Stored()["spec"], Json::parse(R"({"x":2,"y":1})")) << "z was given up";
  ASSERT_TRUE(apply("a", {{"y", 1}}));
  EXPECT_EQ(Stored()["spec"], Json::parse(R"({"x":2,"y":1})")) << "x belongs to b now";
}

TEST_F(FakeApiServerTest, TakesAPlainWriteForOwnership) {
  ASSERT_TRUE(As("kubectl").Create(kGangs, Gang(1), {}));
  EXPECT_EQ(client_.Apply(kGangs, Gang(2), {.field_manager = "heddle"}, {}).error().code, Code::kConflict);
}

TEST_F(FakeApiServerTest, AppliesConditionsByType) {
  ASSERT_TRUE(client_.Create(kGangs, Gang(), {}));
  const auto apply = [&](const std::string& manager, const std::string& type, const std::string& status) {
    Json gang = NewObject(kGangs, {"train", "g"});
    gang["status"]["conditions"] = Json::array({{{"type", type}, {"status", status}}});
    return client_.Apply(kGangs, gang, {.field_manager = manager, .subresource = "status"}, {});
  };
  ASSERT_TRUE(apply("a", "Ready", "True"));
  ASSERT_TRUE(apply("b", "Drifted", "False"));
  ASSERT_TRUE(apply("a", "Ready", "False"));
  ASSERT_EQ(Stored()["status"]["conditions"].size(), 2u);
  EXPECT_EQ(kube::StringAt(*kube::Condition(Stored(), "Ready"), {"status"}), "False");
  EXPECT_EQ(kube::StringAt(*kube::Condition(Stored(), "Drifted"), {"status"}), "False");
}

TEST_F(FakeApiServerTest, MergesStrategicallyByKey) {
  Json pod = NewObject(kube::kPods, {"train", "w-0"});
  pod["spec"]["containers"] = Json::parse(R"([{"name":"a","image":"x"},{"name":"b","image":"y"}])");
  ASSERT_TRUE(client_.Create(kube::kPods, pod, {}));
  const Json patch = Json::parse(R"({"spec":{"containers":[{"name":"b","image":"z"},{"name":"c"}]}})");
  const auto patched = client_.Patch(kube::kPods, {"train", "w-0"}, PatchType::kStrategic, patch, {}, {});
  ASSERT_TRUE(patched);
  EXPECT_EQ((*patched)["spec"]["containers"],
            Json::parse(R"([{"name":"a","image":"x"},{"name":"b","image":"z"},{"name":"c"}])"));
}

TEST_F(FakeApiServerTest, SelectsByLabelsAndFields) {
  const auto pod = [&](const std::string& name, const std::string& node, const Json& labels) {
    Json object = NewObject(kube::kPods, {"train", name});
    object["spec"]["nodeName"] = node;
    object["metadata"]["labels"] = labels;
    server_.Put(kube::kPods, object);
  };
  pod("a", "n1", {{"job", "x"}, {"tier", "1"}});
  pod("b", "n1", {{"job", "y"}});
  pod("c", "n2", {{"job", "x"}});
  const auto names = [&](const std::string& labels, const std::string& fields) {
    std::vector<std::string> found;
    const auto list = client_.List(kube::kPods, {.label_selector = labels, .field_selector = fields}, {});
    for (const Json& item : list->items) found.push_back(kube::Name(item));
    return found;
  };
  EXPECT_THAT(names("job=x", ""), ElementsAre("a", "c"));
  EXPECT_THAT(names("job==x,tier", ""), ElementsAre("a"));
  EXPECT_THAT(names("!tier", ""), ElementsAre("b", "c"));
  EXPECT_THAT(names("job!=x", ""), ElementsAre("b"));
  EXPECT_THAT(names("job in (x, z)", ""), ElementsAre("a", "c"));
  EXPECT_THAT(names("job notin (x),job", ""), ElementsAre("b"));
  EXPECT_THAT(names("", "spec.nodeName=n1,metadata.name!=a"), ElementsAre("b"));
}

TEST_F(FakeApiServerTest, BindsAndEvictsPods) {
  ASSERT_TRUE(client_.Create(kube::kPods, NewObject(kube::kPods, {"train", "w-0"}), {}));
  const Json binding{{"target", {{"name", "n1"}}}};
  ASSERT_TRUE(client_.CreateSubresource(kube::kPods, {"train", "w-0"}, "binding", binding, {}));
  EXPECT_EQ(server_.Find(kube::kPods, {"train", "w-0"})->at("spec").at("nodeName"), "n1");
  EXPECT_EQ(client_.CreateSubresource(kube::kPods, {"train", "w-0"}, "binding", binding, {}).error().code,
            Code::kConflict);
  ASSERT_TRUE(client_.CreateSubresource(kube::kPods, {"train", "w-0"}, "eviction", Json::object(), {}));
  EXPECT_FALSE(server_.Find(kube::kPods, {"train", "w-0"}));
}

TEST_F(FakeApiServerTest, FailsAsItIsTold) {
  server_.FailNext({.method = "POST"});
  EXPECT_EQ(client_.Create(kGangs, Gang(), {}).error().code, Code::kUnavailable);
  EXPECT_TRUE(Stored().is_null());
  server_.FailNext({.method = "POST", .after_the_fact = true});
  EXPECT_EQ(client_.Create(kGangs, Gang(), {}).error().code, Code::kUnavailable);
  EXPECT_FALSE(Stored().is_null()) << "the answer was lost, the write was not";
  server_.FailNext({.path_contains = "/gangs/g", .status = 429, .retry_after_seconds = 1});
  EXPECT_TRUE(client_.Get(kGangs, {"train", "g"}, {})) << "repeated after Retry-After";
  EXPECT_THAT(server_.lines(),
              ElementsAre("POST gangs train", "POST gangs train", "GET gangs train/g", "GET gangs train/g"));
}

}  // namespace
}  // namespace heddle::test
