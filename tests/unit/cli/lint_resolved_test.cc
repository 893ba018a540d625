#include "cli/lint_resolved.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/unit/cli/from_disk.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kFixtures = std::string(HEDDLE_SOURCE_DIR) + "/tests/fixtures/lossless/";
const std::string kSamples = std::string(HEDDLE_SOURCE_DIR) + "/tests/cluster/samples/";

Output ResolvedText(const std::string& text, Format format = Format::kText) {
  return Lint({.files = {"-"}, .resolved = true},
              [&](const std::string&) -> base::Result<std::string> { return text; }, {.format = format});
}

std::string Policy(const std::string& name, const std::string& spec) {
  return "apiVersion: heddle.dev/v1alpha1\nkind: LosslessPolicy\nmetadata: {name: " + name +
         "}\nspec: " + spec + "\n";
}

// The row of a field without its padding: "rdma.dscp 34 the policy".
std::string RowOf(const std::string& table, const std::string& field) {
  const std::size_t at = table.find("\n" + field + " ");
  if (at == std::string::npos) return "none";
  std::string row;
  for (const char c : table.substr(at + 1, table.find('\n', at + 1) - at - 1)) {
    if (c != ' ' || (!row.empty() && row.back() != ' ')) row += c;
  }
  return row;
}

TEST(LintResolved, SaysOfEachValueWhereItComesFrom) {
  const Output output = ResolvedText(Policy("roce", "{rdma: {dscp: 34}}"));
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(output.out,
              testing::StartsWith("LosslessPolicy roce with profile generic/v1, as it names none\n\n"));
  EXPECT_EQ(RowOf(output.out, "rdma.dscp"), "rdma.dscp 34 the policy");
  EXPECT_EQ(RowOf(output.out, "tos"), "tos 138 follows rdma.dscp, with ECT(0)");
  EXPECT_EQ(RowOf(output.out, "pfcPriorities"), "pfcPriorities 3 follows rdma.priority");
  EXPECT_THAT(RowOf(output.out, "cnp.dscp"), HasSubstr("cnp.dscp 48 generic/v1: NVIDIA Cumulus Linux"));
  EXPECT_THAT(RowOf(output.out, "watchdog"), HasSubstr("watchdog mode Auto generic/v1: Linux mlx5"));
  EXPECT_EQ(RowOf(output.out, "ets[1]"),
            "ets[1] algorithm ETS, percent 50, priority 3 follows rdma.percent and cnp.priority");
}

// CEL refuses an ETS entry without percent: what is shown can be declared.
TEST(LintResolved, SaysAShareOfNothing) {
  const Output output = ResolvedText(Policy("roce", "{rdma: {percent: 100}}"));
  EXPECT_EQ(RowOf(output.out, "ets[0]"),
            "ets[0] algorithm ETS, percent 0, priority 0 follows rdma.percent and cnp.priority");
  EXPECT_EQ(RowOf(output.out, "ets[2]"),
            "ets[2] algorithm Strict, priority 6 follows rdma.percent and cnp.priority");
}

TEST(LintResolved, SaysWhatANicHasNotGot) {
  const Output output = ResolvedText(Policy("roce", "{profile: thor2/v1}"));
  EXPECT_THAT(output.out, testing::StartsWith("LosslessPolicy roce with profile thor2/v1\n"));
  EXPECT_THAT(RowOf(output.out, "watchdog"), HasSubstr("watchdog none thor2/v1: Linux's bnxt_en has no"));
}

TEST(LintResolved, SaysTheSameForScripts) {
  const Output output = ResolvedText(
      Policy("one", "{mtu: 4200}") + "---\n" + Policy("two", "{profile: thor2/v1}"), Format::kJson);
  const Json json = Json::parse(output.out);
  ASSERT_EQ(json["policies"].size(), 2U);
  EXPECT_EQ(json["policies"][1]["policy"], "two");
  EXPECT_EQ(json["policies"][1]["profile"], "thor2/v1");
  bool mtu = false;
  for (const Json& value : json["policies"][0]["values"]) {
    EXPECT_NE(value["source"], "");
    EXPECT_FALSE(value["value"].is_null()) << value["field"] << " stands nowhere in the resource";
    if (value["field"] == "mtu") mtu = value["value"] == 4200 && value["source"] == "the policy";
  }
  EXPECT_TRUE(mtu);
}

TEST(LintResolved, KnowsEveryFieldThatAPolicyCanSay) {
  const auto text = FromDisk(kSamples + "good/lossless-connectx-7.yaml");
  ASSERT_TRUE(text);
  const Output output = ResolvedText(*text);
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_EQ(RowOf(output.out, "classes[0]"),
            "classes[0] dscps 10,12-14, name nvme-of, priority 1, use Storage the policy");
  EXPECT_EQ(RowOf(output.out, "watchdog"), "watchdog mode Fixed, timeoutMs 200 the policy");
  EXPECT_EQ(RowOf(output.out, "switchMarking"),
            "switchMarking maxBytes 2097152, minBytes 1048576, probabilityPercent 5 the policy");
  EXPECT_THAT(output.out, Not(HasSubstr(" none ")));
}

TEST(LintResolved, LeavesOutWhatHoldsNoPolicyAndIsNoSuccessWhereNothingDoes) {
  const LintOptions both{.files = {kFixtures + "nic-operator.yaml", kFixtures + "sonic-default.json"},
                         .resolved = true};
  const Output output = Lint(both, FromDisk, {});
  EXPECT_EQ(output.exit_code, Output::kOk);
  EXPECT_EQ(output.err, "Note: " + kFixtures + "sonic-default.json: there is no LosslessPolicy in it\n");
  const Output none = Lint({.files = {kFixtures + "sonic-default.json"}, .resolved = true}, FromDisk, {});
  EXPECT_EQ(none.exit_code, Output::kUsage);
  EXPECT_THAT(none.err, HasSubstr("there is none"));
  const Output unread = ResolvedText(Policy("roce", "{profile: connectx-5/v1}"));
  EXPECT_EQ(unread.exit_code, Output::kUsage);
  EXPECT_THAT(unread.err, HasSubstr("there is no profile \"connectx-5/v1\""));
}

}  // namespace
}  // namespace heddle::cli
