#include "extender/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace heddle::extender {
namespace {

using ::testing::HasSubstr;

// All families, with a value in each.
std::string EverythingSaid() {
  Metrics metrics;
  metrics.Verb("filter", 200, std::chrono::milliseconds(1));
  metrics.Planned(true, std::chrono::milliseconds(1));
  metrics.Refused("NotEnoughFree");
  metrics.Released(1);
  metrics.WriteFailed("Conflict");
  metrics.Leading(true);
  metrics.Waiting(1);
  placement::Quality quality{.step_micros = 2500};
  quality.edges[std::size_t(placement::Axis::kDp)] = 8;
  quality.leaf_crossings[std::size_t(placement::Axis::kDp)] = 3;
  metrics.Observed(quality, quality);
  crds::Gang gang;
  crds::GangStatus status;
  status.placement = crds::ToColumns({{"a", 1, {}}}, 1);
  status.predicted = quality;
  for (const auto type : {crds::kCollected, crds::kRunning}) {
    crds::SetCondition(status.conditions,
                       {.type = std::string(type), .status = crds::ConditionStatus::kTrue, .reason = "Word"});
  }
  metrics.Moved(gang, status, base::WallTime(std::chrono::seconds(5)));
  metrics.Gangs({});
  Census census{.free = 10, .free_on_shared_nodes = 4};
  census.unusable_nodes["NotReady"] = 2;
  census.whole_domains = {{8, 5}, {72, 1}};
  metrics.Stands(census);
  census = {};
  census.whole_domains = {{8, 4}};
  metrics.Stands(census);
  metrics.Heard("pods", std::chrono::seconds(3));
  metrics.QueueDepth(7);
  metrics.Reconciled(base::WallTime(std::chrono::seconds(1'800'000'000)));
  return metrics.Text();
}

std::set<std::string> NamesIn(const std::string& text, const char* pattern) {
  std::set<std::string> names;
  const std::regex name(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) names.insert((*it)[1]);
  return names;
}

TEST(Metrics, AreAllInTheTableOfTheDocsAndThatNamesNoOther) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/docs/operations.md");
  ASSERT_TRUE(file);
  std::stringstream page;
  page << file.rdbuf();
  const auto shown = NamesIn(EverythingSaid(), "# TYPE (heddle_extender_[a-z_]+)");
  EXPECT_GE(shown.size(), 25U);
  std::set<std::string> told = NamesIn(page.str(), "`(heddle_extender_[a-z_]+)`");
  for (const std::string& rest : NamesIn(page.str(), "`(_observed_[a-z_]+)`"))
    told.insert("heddle_extender" + rest);
  EXPECT_EQ(shown, told);
}

TEST(Metrics, SayWaitsAndEdgesByTheirLabels) {
  const std::string text = EverythingSaid();
  EXPECT_THAT(text, HasSubstr("heddle_extender_gang_plan_wait_seconds_count{at_once=\"true\"} 1"));
  EXPECT_THAT(text, HasSubstr("heddle_extender_planned_edges_total{axis=\"dp\",crosses=\"true\"} 3"));
  EXPECT_THAT(text, HasSubstr("heddle_extender_planned_edges_total{axis=\"dp\",crosses=\"false\"} 5"));
  EXPECT_THAT(text, HasSubstr("heddle_extender_planned_step_seconds_sum{for=\"start\"} 0.0025"));
  EXPECT_THAT(text, HasSubstr("heddle_extender_watch_age_seconds{resource=\"pods\"} 3"));
}

TEST(Metrics, ForgetNoReasonThatHasGone) {
  EXPECT_THAT(EverythingSaid(), HasSubstr("heddle_extender_unusable_nodes{reason=\"NotReady\"} 0"));
}

TEST(Metrics, TellRacksFromServersAndForgetNoSizeThatHasGone) {
  const std::string text = EverythingSaid();
  EXPECT_THAT(text, HasSubstr("heddle_extender_whole_domains_free{gpus=\"8\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("heddle_extender_whole_domains_free{gpus=\"72\"} 0\n"));
}

TEST(Metrics, AnswerZeroFragmentsWhereNothingIsFree) {
  EXPECT_THAT(EverythingSaid(), HasSubstr("heddle_extender_fragmentation_ratio 0\n"));
}

}  // namespace
}  // namespace heddle::extender
