#include "cli/lint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "cli/flags.h"
#include "lossless/lint.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/golden.h"

namespace heddle::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kFixtures = std::string(HEDDLE_SOURCE_DIR) + "/tests/fixtures/lossless/";
const std::string kSamples = std::string(HEDDLE_SOURCE_DIR) + "/tests/cluster/samples/";

Output LintOf(const std::vector<std::string>& files, Format format = Format::kText) {
  return Lint({.files = files}, FromDisk, {.format = format});
}

// Of a text that stands nowhere.
Output LintText(const std::string& text, Format format = Format::kText) {
  return Lint({.files = {"-"}}, [&](const std::string&) -> base::Result<std::string> { return text; },
              {.format = format});
}

std::vector<std::string> RulesOf(const Output& output) {
  std::vector<std::string> rules;
  const Json json = Json::parse(output.out);
  for (const Json& finding : json.at("findings")) rules.push_back(finding.at("rule"));
  return rules;
}

// One operator's defaults against the defaults of the switch that most have: CNPs ride the lossless class,
// and data does not.
TEST(LintCommand, RefusesTheGoldenCaseWithBothFaultsNamed) {
  const Output output = LintOf({kFixtures + "nic-operator.yaml", kFixtures + "sonic-default.json"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              HasSubstr("CNPs are sent with DSCP 4; the switch puts DSCP 4 in priority group 4, which "
                        "has PFC"));
  EXPECT_THAT(
      output.out,
      HasSubstr("data is sent with DSCP 0; the switch puts DSCP 0 in priority group 0, and PFC is on for "
                "3,4 only"));
  ExpectGolden("lint.txt", output.out);
}

TEST(LintCommand, FitsATerminalOf80Columns) {
  const Output output = Lint({.files = {kFixtures + "nic-operator.yaml", kFixtures + "sonic-default.json"}},
                             FromDisk, {.style = {.width = 80}});
  ExpectGolden("lint_80.txt", output.out);
  ExpectFits([](const Style& style) {
    return Lint({.files = {kFixtures + "nic-operator.yaml", kFixtures + "sonic-default.json"}}, FromDisk,
                {.style = style})
        .out;
  });
  ExpectFits([](const Style& style) { return LintRules({.style = style}).out; });
  EXPECT_EQ(WiderThan(80, output.out), std::vector<std::string>{});
  EXPECT_EQ(WiderThan(80, LintRules({.style = {.width = 80}}).out), std::vector<std::string>{});
}

TEST(LintCommand, SaysTheSameForScripts) {
  const Output output =
      LintOf({kFixtures + "nic-operator.yaml", kFixtures + "sonic-default.json"}, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kRefused);
  const Json json = Json::parse(output.out);
  EXPECT_THAT(RulesOf(output), AllOf(Contains("switch-cnp-lossless"), Contains("switch-data-lossy")));
  for (const Json& finding : json["findings"]) {
    for (const char* key : {"rule", "severity", "where", "fact", "contrary", "remedy"}) {
      EXPECT_TRUE(finding.contains(key)) << finding.dump();
    }
  }
  EXPECT_EQ(json["files"][1]["kind"], "config_db.json");
  EXPECT_EQ(json["lookedAt"], 3);
  const Output yaml = LintOf({kFixtures + "nic-operator.yaml"}, Format::kYaml);
  EXPECT_THAT(yaml.out, HasSubstr("rule: rdma-unmarked"));
}

TEST(LintCommand, KnowsEachFileByItsContent) {
  const Output output = LintOf({kFixtures + "mlnx_qos.txt", kFixtures + "dcb.txt", kFixtures + "dcb.json",
                                kSamples + "good/lossless-connectx-7.yaml"},
                               Format::kJson);
  const Json json = Json::parse(output.out);
  std::vector<std::string> kinds;
  for (const Json& file : json["files"]) kinds.push_back(file["kind"]);
  EXPECT_THAT(kinds, ElementsAre("mlnx_qos", "dcb", "dcb", "Kubernetes objects"));
  EXPECT_EQ(json["unreadable"], Json::array());
  // The driver's own map, held against the policy.
  EXPECT_THAT(RulesOf(output), Contains("differs-from-policy"));
}

TEST(LintCommand, FindsNoDscpThatIsLosslessAtBothEnds) {
  const Output output = LintOf({kFixtures + "mlnx_qos.txt", kFixtures + "sonic-default.json"});
  EXPECT_THAT(output.out,
              HasSubstr("the host's lossless DSCPs are 24-31; the switch's lossless DSCPs are 3-4"));
}

TEST(LintCommand, HasNothingAgainstWhatFits) {
  for (const char* name : {"lossless-defaults.yaml", "lossless-connectx-7.yaml", "lossless-no-pfc.yaml"}) {
    const Output output = LintOf({kSamples + "good/" + name});
    EXPECT_EQ(output.exit_code, Output::kOk) << name << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr("nothing was found"));
  }
}

// Whatever the API server refuses of a policy, the linter refuses before.
TEST(LintCommand, RefusesWhatTheApiServerRefuses) {
  const std::map<std::string, std::string> expected{{"pfc-on-two", "pfc-several-classes"},
                                                    {"pfc-elsewhere", "data-lossy"},
                                                    {"no-watchdog", "pfc-without-watchdog"},
                                                    {"ecn-upside-down", "ecn-thresholds"},
                                                    {"ecn-that-marks-nothing", "ecn-thresholds"},
                                                    {"cnp-with-data", "cnp-lossless"},
                                                    {"storage-with-data", "class-lossless"},
                                                    {"rdma-unmarked", "rdma-unmarked"},
                                                    {"one-dscp-for-both", "cnp-lossless"},
                                                    {"tos-of-another-dscp", "tos-elsewhere"},
                                                    {"tos-congested", "tos-congested"},
                                                    {"tos-other-than-nccl", "tos-nccl-differ"},
                                                    {"shares-of-90", "ets-sum"},
                                                    {"data-without-share", "ets-starved"},
                                                    {"rest-without-share", "ets-rest-first"},
                                                    {"other-with-data", "class-lossless"}};
  for (const auto& [file, rule] : expected) {
    const Output output = LintOf({kSamples + "bad/lossless-" + file + ".yaml"}, Format::kJson);
    EXPECT_EQ(output.exit_code, Output::kRefused) << file << output.err;
    EXPECT_THAT(RulesOf(output), Contains(rule)) << file;
  }
}

// What becomes of such a policy breaks no rule, so that only the API server's CEL would refuse it.
TEST(LintCommand, RefusesWhatNoRuleSpeaksOfAndTheApiServerRefuses) {
  struct Case {
    std::string spec, says;
  };
  for (const Case& one :
       std::vector<Case>{{R"({"pfcPriorities": [3, 3]})", "spec.pfcPriorities[1]: stands twice"},
                         {R"({"rdma": {"priority": 6}})", "spec.cnp.priority: profiles send CNPs in 6 or 7"},
                         {R"({"rdma": {"priority": 7}})", "spec.cnp.priority: profiles send CNPs in 6 or 7"},
                         {R"({"pfcPriorities": [], "cnp": {"priority": 3}})", "spec.cnp.priority: is RDMA's"},
                         {R"({"pfcPriorities": [], "rdma": {"priority": 4}, "cnp": {"priority": 4}})",
                          "spec.cnp.priority: is RDMA's"},
                         {R"({"pfcPriorities": [], "cnp": {"dscp": 26}})", "spec.cnp.dscp: is RDMA's"},
                         {R"({"pfcPriorities": [], "rdma": {"dscp": 48}})", "spec.cnp.dscp: is RDMA's"},
                         {R"({"pfcPriorities": [],
                "classes": [{"name": "nvme", "use": "Storage", "dscps": "10", "priority": 3}]})",
                          "spec.classes[0].priority: is RDMA's"},
                         {R"({"ecnPriorities": [],
                "switchMarking": {"minBytes": 5, "maxBytes": 5, "probabilityPercent": 5}})",
                          "spec.switchMarking.minBytes: must be below maxBytes"},
                         {R"({"ecnPriorities": [],
                "switchMarking": {"minBytes": 5, "maxBytes": 6, "probabilityPercent": 0}})",
                          "spec.switchMarking.probabilityPercent: must be 1 or more"}}) {
    const Output output =
        LintText(R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" + one.spec + "}");
    EXPECT_EQ(output.exit_code, Output::kUsage) << one.spec << output.out;
    EXPECT_THAT(output.err, HasSubstr("LosslessPolicy roce: " + one.says)) << one.spec;
  }
  // Beside what it takes: without PFC, and with priorities of their own.
  for (const char* good : {R"({"pfcPriorities": [], "cnp": {"priority": 4, "dscp": 27},
            "classes": [{"name": "nvme", "use": "Storage", "dscps": "10", "priority": 2}]})",
                           R"({"rdma": {"priority": 7}, "cnp": {"priority": 6}})",
                           R"({"pfcPriorities": [], "ecnPriorities": [],
            "switchMarking": {"minBytes": 5, "maxBytes": 6, "probabilityPercent": 1}})"}) {
    const Output output = LintText(R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" +
                                   std::string(good) + "}");
    EXPECT_EQ(output.err, "") << good;
  }
}

// A policy without PFC has no lossless class, and some of the rules speak of that only.
TEST(LintCommand, TheRulesOfTheServerThatHoldWithoutPfcAreFoundWithoutItToo) {
  for (const char* spec :
       {R"("mtu": 4191)", R"("watchdog": {"mode": "Auto", "timeoutMs": 200})", R"("tos": 0)",
        R"("tos": 107, "ncclTrafficClass": 107)", R"("tos": 106, "ncclTrafficClass": 104)",
        R"("ncclTrafficClass": 104)", R"("rdma": {"dscp": 0})", R"("infiniBand": {})",
        R"("switchMarking": {"minBytes": 2, "maxBytes": 1, "probabilityPercent": 5})",
        R"("switchMarking": {"minBytes": 1, "maxBytes": 2, "probabilityPercent": 0})",
        R"("ets": [{"priority": 0, "algorithm": "ETS", "percent": 40},
                   {"priority": 3, "algorithm": "ETS", "percent": 50}])",
        R"("ets": [{"priority": 3, "algorithm": "ETS", "percent": 100}])",
        R"("ets": [{"priority": 0, "algorithm": "Strict", "percent": 100}])"}) {
    const Output output = LintText(
        R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": {"pfcPriorities": [], )" +
        std::string(spec) + "}}");
    EXPECT_NE(output.exit_code, Output::kOk) << spec;
  }
}

TEST(LintCommand, FindsSomethingOfEachBadSampleOfAPolicy) {
  std::size_t tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSamples + "bad")) {
    if (!entry.path().filename().string().starts_with("lossless-")) continue;
    EXPECT_NE(LintOf({entry.path().string()}).exit_code, Output::kOk) << entry.path();
    ++tried;
  }
  EXPECT_GT(tried, 20u);
}

// The API server drops such a field, and the policy is another one than its author takes it for.
TEST(LintCommand, NamesFieldsThatNoPolicyHasAndThoseThatWereMeant) {
  struct Case {
    std::string policy, says;
  };
  for (const Case& one : std::vector<Case>{
           {R"("spec": {"pfcPriority": [3]})", "spec.pfcPriority (is pfcPriorities meant?)"},
           {R"("spec": {"rdma": {"prio": 4}})", "spec.rdma.prio (is priority meant?)"},
           {R"("spec": {"nodeselector": {"pool": "gpu"}})", "spec.nodeselector (is nodeSelector meant?)"},
           {R"("spec": {"dcqcn": {"rpAiRte": 5}})", "spec.dcqcn.rpAiRte (is rpAiRate meant?)"},
           {R"("spec": {"ets": [{"priority": 0, "algorithm": "ETS", "percent": 100, "share": 1}]})",
            "spec.ets[0].share: "},
           {R"("spc": {"mtu": 9000})", "spc (is spec meant?)"},
           {R"("spec": {"mtuu": 9000, "colour": 1})",
            "spec.colour, spec.mtuu (is mtu meant?): the LosslessPolicy"}}) {
    SCOPED_TRACE(one.policy);
    const Output output =
        LintText(R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, )" + one.policy + "}");
    EXPECT_EQ(output.exit_code, Output::kUsage);
    EXPECT_THAT(output.err, HasSubstr("LosslessPolicy roce: " + one.says));
  }
}

TEST(LintCommand, NamesFieldsThatCannotStandSo) {
  const auto refusal = [](const std::string& spec) {
    const Output output =
        LintText(R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" + spec + "}");
    EXPECT_EQ(output.exit_code, Output::kUsage) << spec;
    return output.err;
  };
  EXPECT_THAT(refusal(R"({"infiniBand": {}})"), HasSubstr("spec.infiniBand: says nothing"));
  EXPECT_THAT(refusal(R"({"watchdog": {"mode": "Auto", "timeoutMs": 200}})"),
              HasSubstr("spec.watchdog.timeoutMs: belongs to mode Fixed"));
  EXPECT_THAT(refusal(R"({"ets": [{"priority": 0, "algorithm": "ETS", "percent": 100},
                                  {"priority": 6, "algorithm": "Strict", "percent": 10}]})"),
              HasSubstr("spec.ets[1].percent: belongs to algorithm ETS"));
  EXPECT_THAT(refusal(R"({"ets": [{"priority": 0, "algorithm": "ETS", "percent": 100},
                                  {"priority": 0, "algorithm": "Strict"}]})"),
              HasSubstr("spec.ets[1].priority: stands twice"));
  EXPECT_THAT(refusal(R"({"nodeSelector": {"gpu pool": "a"}})"),
              HasSubstr("spec.nodeSelector: \"gpu pool\" is no key of a label"));
  EXPECT_THAT(refusal(R"({"nodeSelector": {"Example.com/pool": "a"}})"), HasSubstr("is no key of a label"));
  EXPECT_THAT(refusal(R"({"nodeSelector": {"pool": "a "}})"),
              HasSubstr("spec.nodeSelector.pool: \"a \" is no value of a label"));
  for (const char* good :
       {R"({"nodeSelector": {"example.com/Pool_1.a": "B-2", "pool": ""}})",
        R"({"infiniBand": {"serviceLevel": 0}, "watchdog": {"mode": "Fixed", "timeoutMs": 200}})"}) {
    const Output output = LintText(R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" +
                                   std::string(good) + "}");
    EXPECT_EQ(output.exit_code, Output::kOk) << good << output.err << output.out;
  }
}

TEST(LintCommand, PassesOnWhatAgentsAndTheOperatorReport) {
  const Output output = LintOf(
      {kSamples + "good/status-nt-lossless-drift.yaml", kSamples + "good/nt-with-lossless-settings.yaml"});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(output.out,
              HasSubstr("pfc is 3,4 since 2026-01-31T12:00:00Z, probably by lldpad; the policy wants 3"));
  EXPECT_THAT(output.out, HasSubstr("LosslessPolicies roce, roce-2 select it"));
  EXPECT_THAT(output.out, HasSubstr("profile connectx-7/v1 is not for a NIC of PCI id 15b3:101d"));
  EXPECT_THAT(output.err,
              HasSubstr("Note: " + kSamples +
                        "good/status-nt-lossless-drift.yaml: gpu-001 mlx5_0:1: "
                        "watchdogMs could not be read or set: the driver has no pfc-prevention-tout\n"));
}

TEST(LintCommand, PassesOnWhatAgentsCouldNotSetAndTheOperatorRefused) {
  const auto node = [](const std::string& spec, const std::string& state) {
    return R"({"kind": "NodeTopology", "metadata": {"name": "gpu-1"}, "spec": {"lossless": [)" + spec +
           R"(]}, "status": {"lossless": [{"ports": ["mlx5_0:1", "mlx5_1:1"], "policy": "roce", "generation": 1,
             "state": ")" +
           state + R"(", "reason": "link_down grew by 3", "have": {"mtu": 9000}}]}})";
  };
  for (const char* state : {"Failed", "Conflict"}) {
    SCOPED_TRACE(state);
    const Output output = LintText(node("", state), Format::kJson);
    EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
    const Json found = Json::parse(output.out).at("findings");
    ASSERT_EQ(found.size(), 1u) << output.out;
    EXPECT_EQ(found[0]["rule"], "not-set");
    EXPECT_EQ(found[0]["where"], "gpu-1 mlx5_0:1 and 1 more");
    EXPECT_EQ(found[0]["with"], "LosslessPolicy roce");
    EXPECT_EQ(found[0]["fact"], "its agent reports " + std::string(state));
    EXPECT_EQ(found[0]["contrary"], "link_down grew by 3");
  }
  for (const char* state : {"Compliant", "Pending"})
    EXPECT_EQ(LintText(node("", state)).exit_code, Output::kOk) << state;

  // An agent passes a refusal on as a failure: that is one fault, and not two.
  const std::string refused =
      R"({"ports": ["mlx5_0:1", "mlx5_1:1"], "policies": ["roce"], "verdict": "Refused",
                                 "reason": "Linux's idpf takes no DCB settings"})";
  const Json found = Json::parse(LintText(node(refused, "Failed"), Format::kJson).out).at("findings");
  ASSERT_EQ(found.size(), 1u) << found.dump();
  EXPECT_EQ(found[0]["rule"], "nic-unfit");
  EXPECT_EQ(found[0]["where"], "LosslessPolicy roce");
  EXPECT_EQ(found[0]["with"], "gpu-1 mlx5_0:1 and 1 more like it");
  EXPECT_EQ(found[0]["contrary"], "Linux's idpf takes no DCB settings");
  // The policy itself says more than what became of an earlier one.
  const std::string policy = R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": {}})";
  EXPECT_THAT(
      RulesOf(LintText(R"({"kind": "List", "items": [)" + policy + "," + node(refused, "Failed") + "]}",
                       Format::kJson)),
      IsEmpty());
}

// A report says what its own ports have, and nothing of the others of its node.
TEST(LintCommand, LooksAtWhatAPortIsToGetWhereOnlyOthersOfItsNodeAreReported) {
  const auto node = [](const std::string& reported) {
    return R"({"kind": "NodeTopology", "metadata": {"name": "gpu-1"}, "spec": {"lossless": [
        {"ports": ["mlx5_0:1", "mlx5_1:1"], "policies": ["roce"], "generation": 1, "mode": "Apply",
         "settings": {"pfc": [3, 4], "watchdogMs": 0, "mtu": 1500}}]},
      "status": {"lossless": [{"ports": [)" +
           reported + R"(], "policy": "roce", "generation": 1, "state": "Compliant",
         "have": {"pfc": [3], "watchdogMs": 65535, "mtu": 9000}}]}})";
  };
  const Output output = LintText(node(R"("mlx5_0:1")"), Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  EXPECT_THAT(RulesOf(output), AllOf(Contains("pfc-several-classes"), Contains("pfc-without-watchdog"),
                                     Contains("mtu-small")));
  const Json said = Json::parse(output.out);
  for (const Json& finding : said.at("findings")) {
    if (finding.at("rule") == "pfc-several-classes")
      EXPECT_EQ(finding.at("where"), "gpu-1 mlx5_1:1 (wanted)");
  }
  const Output both = LintText(node(R"("mlx5_0:1", "mlx5_1:1")"), Format::kJson);
  EXPECT_EQ(both.exit_code, Output::kOk) << both.out << both.err;
}

TEST(LintCommand, HoldsWhatPoliciesSayForInfiniBandAgainstThePortsOfNodes) {
  const auto nic = [](int rail, const char* transport) {
    return fmt::format(R"({{"name": "mlx5_{0}", "role": "compute", "rail": {0}, "transport": "{1}",
                       "ports": [{{"number": 1, "state": "Active", "leafMissing": "Unknown"}}]}})",
                       rail, transport);
  };
  const auto node = [&nic](const std::string& name, const char* transport) {
    return R"({"kind": "NodeTopology", "metadata": {"name": ")" + name +
           R"("}, "status": {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
           "nvlinkDomainMissing": "NotApplicable", "nics": [)" +
           nic(0, transport) + "," + nic(1, transport) + "]}}";
  };
  const auto policy = [](const std::string& name, const std::string& spec) {
    return R"({"kind": "LosslessPolicy", "metadata": {"name": ")" + name + R"("}, "spec": )" + spec + "}";
  };
  const auto lint = [](const std::vector<std::string>& items) {
    return LintText(fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(items, ",")),
                    Format::kJson);
  };
  const std::string level = R"({"infiniBand": {"serviceLevel": 1}})";
  EXPECT_THAT(RulesOf(lint({policy("ib", level), node("gpu-1", "InfiniBand")})), IsEmpty());
  EXPECT_THAT(RulesOf(lint({policy("ib", level)})), IsEmpty()) << "without nodes nobody knows";
  Json found = Json::parse(lint({policy("ib", level), node("gpu-1", "RoCE")}).out).at("findings");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["rule"], "infiniband-nowhere");
  EXPECT_EQ(found[0]["severity"], "Warning");
  EXPECT_EQ(found[0]["fact"], "infiniBand says service level 1");
  EXPECT_EQ(found[0]["contrary"], "none of the 2 ports it selects here is InfiniBand");

  const std::string one = policy("a", R"({"rails": [0], "infiniBand": {"serviceLevel": 1}})");
  const std::string two = policy("b", R"({"rails": [1], "infiniBand": {"serviceLevel": 2}})");
  found = Json::parse(lint({one, two, node("gpu-1", "InfiniBand"), node("gpu-2", "InfiniBand")}).out)
              .at("findings");
  ASSERT_EQ(found.size(), 1u) << "one for each two policies, and not one for each node";
  EXPECT_EQ(found[0]["rule"], "infiniband-differs");
  EXPECT_EQ(found[0]["severity"], "Error");
  EXPECT_EQ(found[0]["where"], "LosslessPolicy a");
  EXPECT_EQ(found[0]["with"], "LosslessPolicy b");
  EXPECT_EQ(found[0]["fact"], "gpu-1 mlx5_0:1 gets service level 1");
  EXPECT_EQ(found[0]["contrary"], "gpu-1 mlx5_1:1 gets service level 2");
  // What one of both does not say is NCCL's own choice, and contradicts nothing.
  EXPECT_THAT(RulesOf(lint({one, policy("b", R"({"rails": [1], "infiniBand": {"adaptiveRouting": false}})"),
                            node("gpu-1", "InfiniBand")})),
              IsEmpty());
}

TEST(LintCommand, HoldsPoliciesAgainstTheNicsOfNodes) {
  const auto node = [](const std::string& name, const std::string& nic, const std::string& spec = "{}") {
    return R"({"kind": "NodeTopology", "metadata": {"name": ")" + name + R"("}, "spec": )" + spec +
           R"(, "status": {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
           "nvlinkDomainMissing": "NotApplicable", "nics": [{"name": "rdma0", "role": "compute", "rail": 0, )" +
           nic + R"(, "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}]}})";
  };
  const auto policy = [](const std::string& spec) {
    return R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" + spec + "}";
  };
  const auto lint = [](const std::vector<std::string>& documents) {
    std::string items;
    for (const std::string& document : documents) items += (items.empty() ? "" : ",") + document;
    return LintText(R"({"kind": "List", "items": [)" + items + "]}", Format::kJson);
  };
  const std::string connectx = R"("transport": "RoCE", "pciId": "15b3:1021", "driver": "mlx5_core")";
  const std::string thor = R"({"profile": "thor2/v1"})";
  const Output output =
      lint({policy(thor), node("gpu-1", connectx), node("gpu-2", connectx),
            node("gpu-3", R"("transport": "RoCE", "pciId": "14e4:1760", "driver": "bnxt_en")")});
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  const Json found = Json::parse(output.out).at("findings");
  ASSERT_EQ(found.size(), 1u) << output.out;
  EXPECT_EQ(found[0]["rule"], "nic-unfit");
  EXPECT_EQ(found[0]["severity"], "Error");
  EXPECT_EQ(found[0]["where"], "LosslessPolicy roce");
  EXPECT_EQ(found[0]["with"], "gpu-1 rdma0:1 and 1 more like it");
  EXPECT_EQ(found[0]["fact"], "profile thor2/v1 is for NICs of PCI id 14e4:1760");
  EXPECT_EQ(found[0]["contrary"], "this NIC is 15b3:1021, for which there is connectx-7/v1");

  const std::string ionic = R"("transport": "RoCE", "driver": "ionic")";
  EXPECT_THAT(lint({policy("{}"), node("gpu-1", ionic)}).out, HasSubstr("the NIC's driver is ionic"));
  // What it does not select, and what nobody said.
  for (const char* spec : {R"({"rails": [3]})", R"({"roles": ["storage"]})"})
    EXPECT_THAT(RulesOf(lint({policy(spec), node("gpu-1", ionic)})), IsEmpty()) << spec;
  EXPECT_THAT(RulesOf(lint({policy(thor), node("gpu-1", R"("transport": "RoCE")")})), IsEmpty());
  EXPECT_THAT(
      RulesOf(lint({policy(thor), node("gpu-1", R"("transport": "InfiniBand", "pciId": "15b3:1021")")})),
      IsEmpty());
  // Whether a nodeSelector means a node is known where the node was told.
  const std::string pool = R"({"profile": "thor2/v1", "nodeSelector": {"pool": "gpu"}})";
  EXPECT_THAT(RulesOf(lint({policy(pool), node("gpu-1", connectx)})), IsEmpty());
  const std::string told =
      R"({"lossless": [{"ports": ["rdma0:1"], "policies": ["roce"], "generation": 1, "mode": "Apply", "reason": "x"}]})";
  EXPECT_THAT(RulesOf(lint({policy(pool), node("gpu-1", connectx, told)})), ElementsAre("nic-unfit"));
}

TEST(LintCommand, FindsTwoPoliciesOfOneFileThatSelectOnePort) {
  const auto policy = [](const std::string& name, const std::string& spec) {
    return R"({"kind": "LosslessPolicy", "metadata": {"name": ")" + name + R"("}, "spec": )" + spec + "}";
  };
  const auto lint = [](const std::vector<std::string>& items) {
    return LintText(fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(items, ",")),
                    Format::kJson);
  };
  const auto node = [](const std::string& spec) {
    return R"({"kind": "NodeTopology", "metadata": {"name": "gpu-1"}, "spec": )" + spec +
           R"(, "status": {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
           "nvlinkDomainMissing": "NotApplicable", "nics": [
             {"name": "mlx5_0", "role": "compute", "rail": 0, "transport": "RoCE",
              "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]},
             {"name": "mlx5_1", "role": "compute", "rail": 1, "transport": "RoCE",
              "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}]}})";
  };
  const Output output = lint({policy("a", "{}"), policy("b", R"({"rails": [1]})"), node("{}")});
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  Json found = Json::parse(output.out).at("findings");
  ASSERT_EQ(found.size(), 1u) << output.out;
  EXPECT_EQ(found[0]["rule"], "two-policies");
  EXPECT_EQ(found[0]["where"], "LosslessPolicy a");
  EXPECT_EQ(found[0]["with"], "LosslessPolicy b");
  EXPECT_EQ(found[0]["fact"], "both select gpu-1 mlx5_1:1");
  found = Json::parse(lint({policy("a", "{}"), policy("b", "{}"), node("{}")}).out).at("findings");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["fact"], "both select gpu-1 mlx5_0:1 and 1 more ports");
  // Without nodes, where any node that the one selects is one that the other does.
  found = Json::parse(lint({policy("a", R"({"nodeSelector": {"pool": "gpu", "row": "7"}, "rails": [0, 1]})"),
                            policy("b", R"({"nodeSelector": {"pool": "gpu"}, "rails": [1, 2]})")})
                          .out)
              .at("findings");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["fact"], "both select every compute NIC of rail 1 of nodes with pool=gpu, row=7");
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {R"({"rails": [0]})", R"({"rails": [1]})"},
           {R"({"roles": ["storage"]})", "{}"},
           {R"({"nodeSelector": {"pool": "a"}})", R"({"nodeSelector": {"pool": "b"}})"}})
    EXPECT_THAT(RulesOf(lint({policy("a", one), policy("b", other)})), IsEmpty()) << one << other;
  // Labels are known of a node that was told; and what that says itself stands beside it.
  const std::string told = R"({"lossless": [{"ports": ["mlx5_0:1", "mlx5_1:1"], "policies": ["a", "b"],
                              "reason": "narrow one"}]})";
  const std::string pool = R"({"nodeSelector": {"pool": "a"}})", row = R"({"nodeSelector": {"row": "7"}})";
  EXPECT_THAT(RulesOf(lint({policy("a", pool), policy("b", row)})), IsEmpty())
      << "labels of two nodes, or of one";
  found = Json::parse(lint({policy("a", pool), policy("b", row), node(told)}).out).at("findings");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["where"], "gpu-1 mlx5_0:1 and 1 more");
  EXPECT_EQ(found[1]["fact"], "both select gpu-1 mlx5_0:1 and 1 more ports");
  // A node that was the other's, and whose agent has not said anything since.
  const std::string moved = R"({"kind": "NodeTopology", "metadata": {"name": "gpu-2"},
      "spec": {"lossless": [{"ports": ["mlx5_0:1"], "policies": ["b"], "generation": 1, "mode": "Apply"}]},
      "status": {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
        "nvlinkDomainMissing": "NotApplicable", "nics": [
          {"name": "mlx5_0", "role": "compute", "rail": 0, "transport": "RoCE",
           "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}],
        "lossless": [{"ports": ["mlx5_0:1"], "policy": "a", "generation": 1, "state": "Compliant"}]}})";
  EXPECT_THAT(RulesOf(lint({policy("a", pool), policy("b", row), moved})), IsEmpty());
}

TEST(LintCommand, OfTwoVersionsOfAPolicyTheLastIsLookedAt) {
  const auto policy = [](const std::string& name, const std::string& spec) {
    return R"({"kind": "LosslessPolicy", "metadata": {"name": ")" + name + R"("}, "spec": )" + spec + "}";
  };
  // As a cluster has them, and then a file with what `a` is to be.
  const auto found = [&](const std::vector<std::string>& cluster, const std::string& now) {
    const std::string there = fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(cluster, ","));
    const std::string file = policy("a", now);
    const Output output =
        Lint({.files = {"-", "policy.yaml"}},
             [&](const std::string& path) -> base::Result<std::string> { return path == "-" ? there : file; },
             {.format = Format::kJson});
    EXPECT_EQ(output.err, "");
    EXPECT_EQ(Json::parse(output.out).at("lookedAt"), cluster.front() == policy("b", "{}") ? 2 : 1);
    return RulesOf(output);
  };
  const std::string all = "{}", storage = R"({"roles": ["storage"]})", other = policy("b", "{}");
  EXPECT_THAT(found({other, policy("a", all)}, storage), IsEmpty());
  EXPECT_THAT(found({other, policy("a", storage)}, all), ElementsAre("two-policies"));
  // A node whose NIC can have none of it, and that was told of the first: what the last selects labels alone say, unless
  // that is all that the first did.
  const std::string node = R"({"kind": "NodeTopology", "metadata": {"name": "gpu-1"},
      "spec": {"lossless": [{"ports": ["mlx5_0:1"], "policies": ["a"], "generation": 1, "mode": "Apply"}]},
      "status": {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
        "nvlinkDomainMissing": "NotApplicable", "nics": [
          {"name": "mlx5_0", "role": "compute", "rail": 0, "transport": "RoCE", "driver": "ionic",
           "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}]}})";
  const std::vector<std::string> told{policy("a", R"({"nodeSelector": {"pool": "x"}})"), node};
  EXPECT_THAT(found(told, R"({"nodeSelector": {"pool": "x"}, "rails": [0]})"), ElementsAre("nic-unfit"));
  EXPECT_THAT(found(told, R"({"nodeSelector": {"pool": "x", "row": "7"}})"), IsEmpty());
}

TEST(LintCommand, SaysThatNothingEndsAPauseOfNicsWithoutAWatchdog) {
  const auto policy = [](const std::string& spec) {
    return R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" + spec + "}";
  };
  const std::string thor = policy(R"({"profile": "thor2/v1", "mode": "Apply"})");
  const Output output = LintText(thor, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kRefused) << output.err;
  const Json found = Json::parse(output.out).at("findings");
  ASSERT_EQ(found.size(), 1u) << output.out;
  EXPECT_EQ(found[0]["rule"], "watchdog-nowhere");
  EXPECT_EQ(found[0]["severity"], "Warning");
  EXPECT_EQ(found[0]["fact"], "PFC is on for priority 3");
  EXPECT_THAT(found[0]["contrary"].get<std::string>(), testing::StartsWith("thor2/v1: "));
  for (const char* spec :
       {R"({"profile": "thor2/v1"})", R"({"profile": "thor2/v1", "mode": "Apply", "pfcPriorities": []})",
        R"({"profile": "connectx-7/v1", "mode": "Apply"})", R"({"mode": "Apply"})"})
    EXPECT_THAT(RulesOf(LintText(policy(spec), Format::kJson)), Not(Contains("watchdog-nowhere"))) << spec;
  // A switch that says which of its priorities are watched is judged by itself.
  const Output both = Lint({.files = {"-", kFixtures + "sonic-default.json"}},
                           [&](const std::string& path) -> base::Result<std::string> {
                             return path == "-" ? base::Result<std::string>(thor) : FromDisk(path);
                           },
                           {.format = Format::kJson});
  EXPECT_THAT(RulesOf(both), Not(Contains("watchdog-nowhere")));
}

TEST(LintCommand, ReadsListsAndSeveralDocuments) {
  const std::string policy =
      R"({"kind": "LosslessPolicy", "metadata": {"name": "a"}, "spec": {"mtu": 1500}})";
  EXPECT_THAT(RulesOf(LintText(R"({"kind": "List", "items": [)" + policy + "]}", Format::kJson)),
              ElementsAre("mtu-small"));
  EXPECT_THAT(RulesOf(LintText("kind: Pod\nmetadata: {name: p}\n---\n" + policy + "\n", Format::kJson)),
              ElementsAre("mtu-small"));
  EXPECT_THAT(LintText("kind: Pod\nmetadata: {name: p}\n---\n" + policy + "\n").err,
              HasSubstr("1 of kind Pod left out"));
  EXPECT_THAT(LintText(policy).out, HasSubstr(" in 1 file, 1 policy or port looked at\n"));
}

TEST(LintCommand, NamesTheFileAndTheFieldThatItCannotRead) {
  const auto refusal = [](const std::string& text) {
    const Output output = LintText(text);
    EXPECT_EQ(output.exit_code, Output::kUsage) << text;
    return output.err;
  };
  const auto policy = [](const std::string& spec) {
    return R"({"kind": "LosslessPolicy", "metadata": {"name": "a"}, "spec": )" + spec + "}";
  };
  EXPECT_THAT(refusal(policy(R"({"pfcPriorities": [9]})")),
              HasSubstr("Error: -: LosslessPolicy a: spec.pfcPriorities[0]: is 9, must be 0 to 7"));
  EXPECT_THAT(refusal(policy(R"({"profile": "connectx-5/v1"})")), HasSubstr("there is no profile"));
  EXPECT_THAT(refusal(policy(R"({"watchdog": {"mode": "Fixed"}})")),
              HasSubstr("spec.watchdog.timeoutMs: is missing"));
  EXPECT_THAT(
      refusal(policy(R"({"classes": [{"name": "x", "use": "Other", "dscps": "3-1", "priority": 0}]})")),
      HasSubstr("spec.classes[0].dscps: \"3-1\" is no list of DSCPs"));
  EXPECT_THAT(refusal(R"({"kind": "List", "items": [7]})"), HasSubstr("items[0] is no object"));
  EXPECT_THAT(refusal(R"({"kind": "Pod"})"), HasSubstr("no LosslessPolicy, RdmaDevicePolicy or NodeTopology"));
  EXPECT_THAT(refusal("{\n\"PORT\": {\n,"), HasSubstr("line 3"));
  EXPECT_THAT(refusal("dear linter,\n"),
              HasSubstr("none of LosslessPolicy, RdmaDevicePolicy, NodeTopology, config_db.json"));
  EXPECT_THAT(refusal(""), HasSubstr("none of"));
  // Prose that shows an object is none, whatever YAML would make of it.
  EXPECT_THAT(refusal("# Title\n\n**Prose** with an &anchor, and *another*:\n\n```yaml\nkind: Job\n```\n"),
              HasSubstr("none of LosslessPolicy, RdmaDevicePolicy, NodeTopology, config_db.json"));
  EXPECT_THAT(refusal("# a comment\n---\n\nmetadata: {name: p}\nkind: Pod\n"),
              HasSubstr("no LosslessPolicy, RdmaDevicePolicy or NodeTopology"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("nests deeper"));
  EXPECT_THAT(refusal("kind: LosslessPolicy\nspec: [\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal("PFC configuration:\n\tenabled 0 0 5\n"), HasSubstr("line 2: PFC is 0 or 1"));
}

// The bad input of a policy, each with its field; a server refuses the same by its schema.
TEST(LintCommand, NamesTheFieldOfWhatNoPolicyCanSay) {
  struct Case {
    std::string spec, says;
  };
  for (const Case& one : std::vector<Case>{
           {R"({"rdma": {"priority": 9}})", "spec.rdma.priority"},
           {R"({"pfcPriorities": [3, 9]})", "spec.pfcPriorities"},
           {R"({"ets": [{"priority": 9, "algorithm": "ETS", "percent": 100}]})", "spec.ets[0].priority"},
           {R"({"infiniBand": {"serviceLevel": 16}})", "spec.infiniBand.serviceLevel"},
           {R"({"infiniBand": {"adaptiveRouting": 1}})", "spec.infiniBand.adaptiveRouting"},
           {R"({"infiniBand": "fast"})", "spec.infiniBand"},
           {R"({"profile": "connectx-9/v1"})", "there is no profile \"connectx-9/v1\""}}) {
    SCOPED_TRACE(one.spec);
    const Output output =
        LintText(R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": )" + one.spec + "}");
    EXPECT_EQ(output.exit_code, Output::kUsage);
    EXPECT_THAT(output.err, HasSubstr(one.says));
    EXPECT_THAT(output.err, HasSubstr("LosslessPolicy roce"));
  }
  const Output shares = LintText(
      R"({"kind": "LosslessPolicy", "metadata": {"name": "roce"}, "spec": {"ets": [
          {"priority": 0, "algorithm": "ETS", "percent": 40}, {"priority": 3, "algorithm": "ETS", "percent": 50}]}})",
      Format::kJson);
  EXPECT_EQ(shares.exit_code, Output::kRefused);
  EXPECT_THAT(RulesOf(shares), Contains("ets-sum"));
}

TEST(LintCommand, LooksAtTheOtherFilesWhenOneCannotBeRead) {
  const Output output = LintOf({"/nowhere", kFixtures + "nic-operator.yaml"}, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(RulesOf(output), Contains("rdma-unmarked"));
  EXPECT_THAT(output.err, HasSubstr("/nowhere cannot be read"));
  EXPECT_EQ(Json::parse(output.out)["unreadable"][0]["file"], "/nowhere");
  const Output none = LintOf({"/nowhere"});
  EXPECT_EQ(none.exit_code, Output::kUsage);
  EXPECT_EQ(none.out, "") << "nothing was looked at, so nothing is said to have been found";
  EXPECT_EQ(LintOf({}).exit_code, Output::kUsage);
}

// A CI that goes by the exit code would take what nobody looked at for clean.
TEST(LintCommand, SaysWhichPortsOfASwitchCannotBeReadAndCallsNoneOfThemClean) {
  const std::string leaf = R"({"DEVICE_METADATA": {"localhost": {"hostname": "leaf-3"}},
      "DSCP_TO_TC_MAP": {"M": {"26": "3"}}, "PORT": {"Ethernet0": {}, "Ethernet4": {}, "Ethernet8": {}},
      "PORT_QOS_MAP": {"Ethernet0": {"dscp_to_tc_map": "M", "tc_to_pg_map": "ROCE"},
                       "Ethernet4": {"dscp_to_tc_map": "M"}}})";
  const Output output = LintText(leaf);
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.out,
              HasSubstr("1 policy or port looked at: nothing was found; 1 port cannot be read\n"));
  EXPECT_THAT(output.err, HasSubstr("Error: -: leaf-3 Ethernet0: it cannot be read (PORT_QOS_MAP|Ethernet0: "
                                    "tc_to_pg_map names ROCE"));
  EXPECT_THAT(output.err, Not(HasSubstr("Ethernet8:"))) << "nobody asks it to be lossless";
  const Json said = Json::parse(LintText(leaf, Format::kJson).out);
  ASSERT_EQ(said["unreadable"].size(), 1u);
  EXPECT_EQ(said["unreadable"][0]["file"], "-");
  EXPECT_EQ(said["unreadable"][0]["port"], "leaf-3 Ethernet0");

  const auto with_policy = [&](const std::string& path) {
    return path == "-" ? base::Result<std::string>(leaf) : FromDisk(path);
  };
  const Output both =
      Lint({.files = {"-", kFixtures + "nic-operator.yaml"}}, with_policy, {.format = Format::kJson});
  EXPECT_EQ(both.exit_code, Output::kUsage) << "what was found is not all that there may be";
  EXPECT_THAT(RulesOf(both), Contains("switch-data-lossy"));
}

// Without PFC such a port was refused all along; with it the host's data is in class 0, and dropped all the same.
TEST(LintCommand, FindsASwitchWithPfcThatPutsNoDscpInItsClass) {
  const std::string leaf =
      R"({"PORT": {"Ethernet0": {"mtu": "9100"}}, "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}},
      "PFC_WD": {"Ethernet0": {"action": "drop", "detection_time": "200", "restoration_time": "200"}}})";
  const Output output = Lint({.files = {"-", kSamples + "good/lossless-defaults.yaml"}},
                             [&](const std::string& path) -> base::Result<std::string> {
                               return path == "-" ? base::Result<std::string>(leaf) : FromDisk(path);
                             },
                             {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_THAT(RulesOf(output), Contains("switch-data-lossy"));
  EXPECT_THAT(output.out, HasSubstr("the switch puts DSCP 26 in priority group 0, and PFC is on for 3 only"));
}

TEST(LintCommand, SaysWhichPortsOfANodeItsAgentKnowsNothingOf) {
  const auto node = [](const std::string& state, const std::string& have) {
    return R"({"kind": "NodeTopology", "metadata": {"name": "gpu-1"}, "status": {"lossless": [
        {"ports": ["mlx5_0:1", "mlx5_1:1"], "policy": "roce", "generation": 1, "state": ")" +
           state + R"(", "reason": "the interface eth2 is not there")" + have + "}]}}";
  };
  const Output output = LintText(node("Unknown", ""));
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_THAT(output.err, AllOf(HasSubstr("Error: -: gpu-1 mlx5_0:1: the interface eth2 is not there\n"),
                                HasSubstr("Error: -: gpu-1 mlx5_1:1: the interface eth2 is not there\n")));
  EXPECT_THAT(output.out, HasSubstr("2 ports cannot be read"));
  EXPECT_EQ(LintText(node("NotApplicable", "")).exit_code, Output::kOk) << "of it there is nothing to read";
  EXPECT_EQ(LintText(node("Unknown", R"(, "have": {"mtu": 9000})")).exit_code, Output::kOk)
      << "what it has was looked at";
}

TEST(LintCommand, CallsNothingCleanWhereThereIsNothingToLookAt) {
  const auto refusal = [](const std::string& text) {
    const Output output = LintText(text);
    EXPECT_EQ(output.exit_code, Output::kUsage) << text;
    EXPECT_THAT(output.out, Not(HasSubstr("nothing was found"))) << text;
    return output.err;
  };
  EXPECT_THAT(refusal(R"({"kind": "List", "items": []})"), HasSubstr("Error: -: it holds no objects"));
  EXPECT_THAT(refusal("apiVersion: v1\nkind: List\nitems: []\n"), HasSubstr("it holds no objects"));
  EXPECT_THAT(refusal(R"({"PORT": {}})"), HasSubstr("Error: -: it has no ports"));
  const std::string down = R"({"PORT": {"Ethernet0": {"admin_status": "down"}}})";
  EXPECT_THAT(refusal(down), HasSubstr("Error: -: it has no port that is to be looked at\n"));
  EXPECT_EQ(Json::parse(LintText(down, Format::kJson).out)["unreadable"].size(), 1u);
  // A spare switch beside others is no fault.
  const Output both = Lint({.files = {"-", kSamples + "good/lossless-defaults.yaml"}},
                           [&](const std::string& path) -> base::Result<std::string> {
                             return path == "-" ? base::Result<std::string>(down) : FromDisk(path);
                           },
                           {});
  EXPECT_EQ(both.exit_code, Output::kOk) << both.err;
}

TEST(LintCommand, SaysOfACutTextThatNothingIsKnownOfPfc) {
  const auto cut = [](const std::string& fixture, const std::string& before) {
    const auto text = FromDisk(kFixtures + fixture);
    return text->substr(0, text->find(before));
  };
  const Output output = LintText(cut("mlnx_qos.txt", "PFC configuration:"));
  EXPECT_EQ(output.exit_code, Output::kUsage);
  EXPECT_EQ(output.err, "Error: -: it says nothing of PFC: give it all that `mlnx_qos -i DEV` prints\n");
  EXPECT_THAT(output.out, HasSubstr("1 port cannot be read"));
  EXPECT_THAT(LintText(cut("dcb.txt", "prio-pfc")).err, HasSubstr("all that `dcb pfc show dev DEV` prints"));
  const Json said = Json::parse(LintText("default-prio 0 \ndscp-prio AF31:3 \n", Format::kJson).out);
  ASSERT_EQ(said.at("unreadable").size(), 1u);
  EXPECT_EQ(said["unreadable"][0]["file"], "-");
  EXPECT_FALSE(said["unreadable"][0].contains("port"));
}

TEST(LintCommand, ListsItsRules) {
  const Output output = Lint({.files = {}, .rules = true}, FromDisk, {});
  EXPECT_EQ(output.exit_code, Output::kOk);
  for (const lossless::RuleAbout& rule : lossless::Rules())
    EXPECT_THAT(output.out, HasSubstr(std::string(rule.id)));
  const Json json = Json::parse(Lint({.files = {}, .rules = true}, FromDisk, {.format = Format::kJson}).out);
  EXPECT_EQ(json["rules"].size(), lossless::Rules().size());
}

// docs/lossless.md names every rule, and no other.
TEST(LintCommand, IsDescribedRuleByRule) {
  const auto page = FromDisk(std::string(HEDDLE_SOURCE_DIR) + "/docs/lossless.md");
  ASSERT_TRUE(page);
  std::size_t described = 0;
  for (std::size_t at = page->find("\n| `"); at != std::string::npos; at = page->find("\n| `", at + 1)) {
    const std::string name = page->substr(at + 4, page->find('`', at + 4) - at - 4);
    if (lossless::FindRule(name) != nullptr) ++described;
  }
  EXPECT_EQ(described, lossless::Rules().size());
  for (const lossless::RuleAbout& rule : lossless::Rules()) {
    EXPECT_THAT(*page, HasSubstr("\n| `" + std::string(rule.id) + "` |")) << rule.id;
  }
}

}  // namespace
}  // namespace heddle::cli
