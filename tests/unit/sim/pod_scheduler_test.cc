// The scheduler of the simulation takes what an extender answers as kube-scheduler would.
#include "tests/sim/pod_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::seconds;

class PodSchedulerTest : public testing::Test {
 protected:
  PodSchedulerTest() {
    for (const char* name : {"node-0", "node-1", "node-2"}) {
      Json node = kube::NewObject(kube::kNodes, {"", name});
      node["status"]["allocatable"] = {{"nvidia.com/gpu", "8"}};
      node["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "True"}}});
      server_.Put(kube::kNodes, node);
    }
  }

  void Pod(const std::string& name, int gpus, int priority, const std::string& node = "") {
    Json pod = kube::NewObject(kube::kPods, {"others", name});
    pod["spec"] = {
        {"priority", priority},
        {"containers",
         Json::array(
             {{{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}})}};
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    pod["status"] = {{"phase", node.empty() ? "Pending" : "Running"}};
    server_.Put(kube::kPods, pod);
  }

  std::string NodeOf(const std::string& name) const {
    return kube::StringAt(*server_.Find(kube::kPods, {"others", name}), {"spec", "nodeName"});
  }
  bool Leaves(const std::string& name) const {
    return kube::DeletionTimestamp(*server_.Find(kube::kPods, {"others", name})).has_value();
  }

  std::optional<Json> Answer(const std::string& path, const Json& body) {
    asked_.push_back(path);
    if (const auto told = answers_.find(path); told != answers_.end()) return told->second(body);
    if (path == "/filter") return Json::object({{"NodeNames", body["NodeNames"]}});
    if (path == "/preempt") return Json::object({{"NodeNameToMetaVictims", body["NodeNameToMetaVictims"]}});
    return std::nullopt;
  }

  void Pass(seconds duration) {
    bool reached = false;
    simulation_.After(duration, [&reached] { reached = true; });
    scheduler_.Kick();
    while (!reached && simulation_.Step()) {
    }
  }

  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Simulation simulation_{1};
  std::map<std::string, std::function<std::optional<Json>(const Json& body)>> answers_;
  std::vector<std::string> asked_, wrong_;
  PodScheduler scheduler_{
      simulation_,
      server_,
      {"host-a"},
      [this](const std::string&, const std::string& path, const Json& body) { return Answer(path, body); },
      [this](const std::string& sentence) { wrong_.push_back(sentence); }};
};

Json Scores(const Json& body, const std::string& best, int score) {
  Json scores = Json::array();
  for (const Json& name : body["NodeNames"]) {
    scores.push_back({{"Host", name}, {"Score", name == best ? score : 1}});
  }
  return scores;
}

TEST_F(PodSchedulerTest, GoesWhereTheExtenderScoresHighest) {
  answers_["/prioritize"] = [](const Json& body) { return Scores(body, "node-2", 10); };
  for (int i = 0; i < 4; ++i) Pod("lone-" + std::to_string(i), 2, 0);
  Pass(seconds(5));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(NodeOf("lone-" + std::to_string(i)), "node-2");
  EXPECT_THAT(wrong_, testing::IsEmpty());
}

TEST_F(PodSchedulerTest, BindsWithoutScoresWhereTheExtenderHasNone) {
  Pod("lone", 2, 0);
  Pass(seconds(5));
  EXPECT_NE(NodeOf("lone"), "");
  EXPECT_THAT(asked_, testing::ElementsAre("/filter", "/prioritize"));
}

TEST_F(PodSchedulerTest, SaysWhatKubeSchedulerWouldStumbleOver) {
  answers_["/prioritize"] = [](const Json& body) { return Scores(body, "node-2", 11); };
  Pod("lone", 2, 0);
  Pass(seconds(5));
  EXPECT_THAT(wrong_, testing::ElementsAre(testing::HasSubstr("no score from 0 to 10")));
}

TEST_F(PodSchedulerTest, TakesANodeThatIsNotToldForOneWithoutAScore) {
  answers_["/prioritize"] = [](const Json&) { return Json::array({{{"Host", "node-1"}, {"Score", 1}}}); };
  Pod("lone", 2, 0);
  Pass(seconds(5));
  EXPECT_EQ(NodeOf("lone"), "node-1");
  EXPECT_THAT(wrong_, testing::IsEmpty());
}

TEST_F(PodSchedulerTest, PreemptsTheFewestOfLessPriorityAndOnlyWhatTheExtenderLeavesOnTheList) {
  Pod("small", 4, 0, "node-0");
  Pod("small-too", 4, 0, "node-0");
  Pod("large", 8, 0, "node-1");
  Pod("dear", 8, 500, "node-2");
  answers_["/preempt"] = [](const Json&) {
    return Json::object({{"NodeNameToMetaVictims", Json::object()}});
  };
  Pod("urgent", 8, 150);
  Pass(seconds(5));
  EXPECT_FALSE(Leaves("large")) << "the extender let no node pass";
  answers_.clear();
  Pass(seconds(15));
  EXPECT_TRUE(Leaves("large"));
  EXPECT_FALSE(Leaves("small") || Leaves("small-too") || Leaves("dear"));
  EXPECT_THAT(wrong_, testing::IsEmpty());
  answers_["/preempt"] = [](const Json& body) {
    Json answer = Json::object({{"NodeNameToMetaVictims", body["NodeNameToMetaVictims"]}});
    for (auto& victims : answer["NodeNameToMetaVictims"])
      victims["Pods"] = Json::array({{{"UID", "another"}}});
    return answer;
  };
  Pod("urgent-too", 8, 150);
  Pass(seconds(5));
  EXPECT_THAT(wrong_, testing::Contains(testing::HasSubstr("other victims")));
}

TEST_F(PodSchedulerTest, ForgetsWhatItAssumedWhenItRestartsAndWaitsForItsLease) {
  Pod("before", 2, 0);
  Pass(seconds(2));
  EXPECT_NE(NodeOf("before"), "");
  scheduler_.Restart();
  Pod("after", 2, 0);
  Pass(seconds(10));
  EXPECT_EQ(NodeOf("after"), "");
  Pass(seconds(10));
  EXPECT_NE(NodeOf("after"), "");
}

}  // namespace
}  // namespace heddle::sim
