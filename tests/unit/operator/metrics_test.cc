#include "operator/metrics.h"

#include <gmock/gmock.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace heddle::operators {
namespace {

using testing::HasSubstr;
using testing::Not;

std::map<std::string, topology::Fabric> TwoFabrics() {
  std::map<std::string, topology::Fabric> fabrics;
  fabrics["infiniband"].faults.resize(2);
  fabrics["roce"].nodes.resize(3);
  return fabrics;
}

// All families, with a value in each.
void SayEverything(Metrics& metrics) {
  metrics.Leading(true);
  metrics.Reconciled("fabrics", "ok");
  metrics.Wrote("fabrics", 1);
  metrics.QueueDepth(7);
  SwitchAnswers answers;
  answers["leaf-1"].connecting = false;
  answers["leaf-2"].trouble = SwitchTrouble{"Unreachable", "leaf-2:8080: nobody listens there"};
  SwitchVerdicts verdicts;
  verdicts.statuses["leaf-1"] = verdicts.statuses["leaf-2"] = {};
  NodeVerdict verdict;
  verdict.counts.Add(lossless::LosslessVerdict::kContradiction);
  verdicts.nodes["gpu-017"] = std::make_shared<const NodeVerdict>(verdict);
  metrics.Switches(answers, verdicts);
  UfmAnswer ufm;
  ufm.connecting = false;
  ufm.counting.ports = 128;
  metrics.Ufms({{"infiniband", ufm}});
  topology::Suspect suspect;
  suspect.symptom = topology::Symptom::kPauseStorm;
  metrics.Suspects("roce", {suspect, suspect});
  metrics.Assembled(TwoFabrics(), 4, 5);
}

std::set<std::string> NamesIn(const std::string& text, const char* pattern) {
  std::set<std::string> names;
  const std::regex name(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) names.insert((*it)[1]);
  return names;
}

TEST(Metrics, OfTheOperatorAreAllInTheTableOfTheDocsAndThatNamesNoOther) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/docs/operations.md");
  ASSERT_TRUE(file);
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const std::size_t begin = text.find("## Metrics of the operator"), end = text.find("## Scraping");
  ASSERT_LT(begin, end);
  ASSERT_NE(end, std::string::npos);
  Metrics metrics;
  SayEverything(metrics);
  const auto shown = NamesIn(metrics.Text(), "# TYPE (heddle_[a-z_]+)");
  EXPECT_GE(shown.size(), 12U);
  EXPECT_EQ(shown, NamesIn(text.substr(begin, end - begin), "`(heddle_[a-z_]+)`"));
}

TEST(Metrics, OfTheOperatorSayWhatIsWrongByItsLabels) {
  Metrics metrics;
  SayEverything(metrics);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("heddle_switches{answers=\"true\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_switches{answers=\"false\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_cables{verdict=\"Contradiction\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_fabric_suspects{fabric=\"roce\",symptom=\"PauseStorm\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("heddle_fabric_suspects{fabric=\"roce\",symptom=\"Flap\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("heddle_fabric_cabling_faults{fabric=\"infiniband\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("heddle_ufm_answers{fabric=\"infiniband\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("heddle_ufm_ports_counted{fabric=\"infiniband\"} 128\n"));
  // A Fabric that names it no longer is no alert; what else is said of it stays.
  metrics.Ufms({});
  EXPECT_THAT(metrics.Text(), testing::Not(HasSubstr("heddle_ufm_answers{")));
  EXPECT_THAT(metrics.Text(), HasSubstr("heddle_fabric_cabling_faults{fabric=\"infiniband\"} 2\n"));
}

TEST(Metrics, OfTheOperatorCountEachCableBetweenSwitchesOnceBesideThoseOfHosts) {
  SwitchVerdicts verdicts;
  NodeVerdict host;
  host.counts.Add(lossless::LosslessVerdict::kLossless);
  verdicts.nodes["gpu-017"] = std::make_shared<const NodeVerdict>(host);
  for (const auto verdict :
       {lossless::LosslessVerdict::kContradiction, lossless::LosslessVerdict::kContradiction,
        lossless::LosslessVerdict::kLossless, lossless::LosslessVerdict::kUnproved}) {
    switches::SwitchLink link;
    link.outcome.verdict = verdict;
    verdicts.between.push_back(link);
  }
  Metrics metrics;
  metrics.Switches({}, verdicts);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("heddle_cables{verdict=\"Lossless\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("heddle_cables{verdict=\"Contradiction\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("heddle_cables{verdict=\"Unproved\"} 1\n"));
}

// An alert that asks for the most of all replicas would never end.
TEST(Metrics, OfAnOperatorThatLeadsNoLongerSayNothingOfTheCluster) {
  Metrics metrics;
  SayEverything(metrics);
  metrics.Leading(false);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("heddle_operator_leading 0\n"));
  EXPECT_THAT(text, HasSubstr("heddle_operator_reconciles_total{"));
  for (const char* name : {"heddle_switches", "heddle_cables", "heddle_fabric_", "heddle_nodes_"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
  SayEverything(metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("heddle_nodes_stale 4\n"));
}

TEST(Metrics, OfTheOperatorForgetAFabricThatIsGone) {
  Metrics metrics;
  SayEverything(metrics);
  auto fabrics = TwoFabrics();
  fabrics.erase("roce");
  metrics.Assembled(fabrics, 0, 0);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("fabric=\"roce\"")));
  EXPECT_THAT(metrics.Text(), HasSubstr("heddle_fabric_nodes{fabric=\"infiniband\"} 0\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("heddle_nodes_stale 0\n"));
}

// An alert on a UFM that does not answer must not wait for the first node.
TEST(Metrics, OfTheOperatorKeepAUfmOfAFabricWithoutNodesUntilItIsAskedNoLonger) {
  Metrics metrics;
  metrics.Ufms({{"empty", UfmAnswer{}}});
  metrics.Assembled(TwoFabrics(), 0, 0);
  EXPECT_THAT(metrics.Text(), HasSubstr("heddle_ufm_answers{fabric=\"empty\"} 0\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("heddle_ufm_ports_counted{fabric=\"empty\"} 0\n"));
  metrics.Ufms({});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("fabric=\"empty\"")));
}

}  // namespace
}  // namespace heddle::operators
