#include "cli/lint_reports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "cli/lint.h"
#include "crds/lossless_policy.h"
#include "crds/node_lossless.h"
#include "lossless/render.h"

namespace heddle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kEarlier =
    "what is reported is of an earlier version of LosslessPolicy roce: whether this one";

// `generation` 0: of a file that no cluster has seen.
std::string Policy(const std::string& spec, int generation = 0) {
  return fmt::format(R"({{"kind": "LosslessPolicy", "metadata": {{"name": "roce"{}}}, "spec": {}}})",
                     generation == 0 ? "" : fmt::format(R"(, "generation": {})", generation), spec);
}

// What a policy of that spec tells a port.
std::string Told(const std::string& spec, int generation, const std::string& name = "roce") {
  const auto policy = crds::LosslessPolicyFromJson(Json::parse(Policy(spec)));
  const auto resolved = lossless::Resolve(policy->spec.policy);
  const auto rendering = lossless::Render(*resolved, {topology::Transport::kRoce, {}, {}});
  return fmt::format(R"({{"ports": ["mlx5_0:1"], "policies": ["{}"], "generation": {}, "mode": "{}",
                          "onDrift": "{}", "settings": {}}})",
                     name, generation, crds::LosslessModeName(policy->spec.mode),
                     crds::OnDriftName(policy->spec.on_drift), crds::ToJson(*rendering.settings).dump());
}

// One port that drifted, or that is in another state. `nics`: of its status.
std::string Node(const std::string& told, int generation, const std::string& state = "Drifted",
                 const std::string& name = "gpu-1", const std::string& nics = "") {
  const std::string drift = state != "Drifted" ? "" : R"(, "drift": [{"setting": "mtu", "want": "9000",
      "have": "4200", "since": "2026-01-31T12:00:00Z"}])";
  return fmt::format(R"({{"kind": "NodeTopology", "metadata": {{"name": "{}"}}, "spec": {{"lossless": [{}]}},
      "status": {{{}"lossless": [{{"ports": ["mlx5_0:1"], "policy": "roce", "generation": {}, "state": "{}",
                               "have": {{"mtu": 9000}}{}}}]}}}})",
                     name, told, nics, generation, state, drift);
}

struct Said {
  std::vector<std::string> rules;
  std::string notes;
};

// As `kubectl get losslesspolicies,nt -o json | kubectl heddle lint - policy.yaml` reads them; a file may be empty.
Said LintOf(const std::vector<std::string>& cluster, const std::string& file = "") {
  const std::string there = fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(cluster, ","));
  std::vector<std::string> files{"-"};
  if (!file.empty()) files.emplace_back("policy.yaml");
  const Output output =
      Lint({.files = files},
           [&](const std::string& path) -> base::Result<std::string> { return path == "-" ? there : file; },
           {.format = Format::kJson});
  Said said{{}, output.err};
  const Json json = Json::parse(output.out);
  for (const Json& finding : json.at("findings")) said.rules.push_back(finding.at("rule"));
  EXPECT_EQ(output.exit_code, said.rules.empty() ? Output::kOk : Output::kRefused) << output.err;
  return said;
}

const std::string kOne = "{}", kOther = R"({"rdma": {"dscp": 34}})";

TEST(LintReports, OfWhatItsNodeWasToldBeforeAreNotPassedOn) {
  for (const char* state : {"Drifted", "Failed", "Conflict", "Compliant"}) {
    SCOPED_TRACE(state);
    const Said said = LintOf({Node(Told(kOne, 2), 1, state)});
    EXPECT_THAT(said.rules, IsEmpty());
    EXPECT_THAT(said.notes, HasSubstr("Note: -: gpu-1 mlx5_0:1: " + kEarlier));
  }
  const Said answered = LintOf({Node(Told(kOne, 2), 2)});
  EXPECT_THAT(answered.rules, ElementsAre("drift"));
  EXPECT_EQ(answered.notes, "");
  EXPECT_THAT(LintOf({Node(Told(kOne, 2), 2, "Failed")}).rules, ElementsAre("not-set"));
}

TEST(LintReports, OfAVersionThatTheOperatorHasNotToldYetAreNotPassedOn) {
  const std::string node = Node(Told(kOne, 2), 2);
  Said said = LintOf({Policy(kOther, 3), node});
  EXPECT_THAT(said.rules, IsEmpty());
  EXPECT_THAT(said.notes, HasSubstr(kEarlier));
  // A version that tells a port nothing new leaves the number as it was.
  said = LintOf({Policy(R"({"canary": 3})", 3), node});
  EXPECT_THAT(said.rules, ElementsAre("drift"));
  EXPECT_EQ(said.notes, "");
}

TEST(LintReports, OfTheClustersVersionAreNotThoseOfAFile) {
  const std::vector<std::string> cluster{Policy(kOne, 2), Node(Told(kOne, 2), 2)};
  EXPECT_THAT(LintOf(cluster).rules, ElementsAre("drift"));
  EXPECT_THAT(LintOf(cluster, Policy(kOne)).rules, ElementsAre("drift")) << "nothing was changed";
  // Kept from the cluster and then edited: its number is that of the version before.
  for (const int generation : {0, 2}) {
    const Said said = LintOf(cluster, Policy(kOther, generation));
    EXPECT_THAT(said.rules, IsEmpty()) << generation;
    EXPECT_THAT(said.notes, HasSubstr(kEarlier)) << generation;
  }
  EXPECT_THAT(LintOf(cluster, Policy(R"({"canary": 3})")).rules, ElementsAre("drift"))
      << "of the same settings";
  EXPECT_THAT(LintOf(cluster, Policy(R"({"mode": "Apply"})")).rules, IsEmpty()) << "the agent only looked";
  EXPECT_THAT(LintOf({cluster[1]}, Policy(kOne)).rules, ElementsAre("drift"))
      << "and no policy from the cluster";
  for (const int generation : {0, 2})
    EXPECT_THAT(LintOf({cluster[1]}, Policy(kOther, generation)).rules, IsEmpty()) << generation;
}

TEST(LintReports, OfAPortThatTheLastVersionNoLongerSelectsAreNotPassedOn) {
  const std::string nics = R"("observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
      "nvlinkDomainMissing": "NotApplicable", "nics": [
        {"name": "mlx5_0", "role": "compute", "rail": 0, "transport": "RoCE",
         "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}], )";
  const std::vector<std::string> cluster{Policy(kOne, 2), Node(Told(kOne, 2), 2, "Drifted", "gpu-1", nics)};
  EXPECT_THAT(LintOf(cluster, Policy(R"({"rails": [0]})")).rules, ElementsAre("drift"));
  const Said said = LintOf(cluster, Policy(R"({"rails": [1]})"));
  EXPECT_THAT(said.rules, IsEmpty());
  EXPECT_THAT(said.notes, HasSubstr(kEarlier));
}

TEST(LintReports, OfAPortThatIsToldNothingAreToldByTheirNumber) {
  EXPECT_THAT(LintOf({Policy(kOne, 2), Node("", 2)}).rules, ElementsAre("drift"));
  const Said said = LintOf({Policy(kOne, 3), Node("", 2), Node("", 2, "Failed", "gpu-2")});
  EXPECT_THAT(said.rules, IsEmpty());
  EXPECT_THAT(said.notes, HasSubstr("gpu-1 mlx5_0:1 and 1 more: " + kEarlier)) << "said once";
}

TEST(LintReports, OfAPolicyThatThePortIsNotToldAnyMoreAreNotPassedOn) {
  const Said said = LintOf({Node(Told(kOne, 1, "other"), 1)});
  EXPECT_THAT(said.rules, IsEmpty());
  EXPECT_THAT(said.notes,
              HasSubstr("what is reported is of LosslessPolicy roce, which is not told there any more"));
}

}  // namespace
}  // namespace heddle::cli
