#include "cli/lint_device_reports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "cli/lint.h"

namespace heddle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kEarlier =
    "what is reported is of an earlier version of RdmaDevicePolicy a: whether this one is in force there is "
    "not known until agents report of it\n";

const std::string kNic = R"({"name": "heddle.dev/nic", "rails": [0]})";
const std::string kOtherNic = R"({"name": "heddle.dev/nic", "rails": [1]})";

// Policy a. `generation` 0: of a file that no cluster has seen.
std::string Policy(const std::string& resources, int generation = 0, const std::string& labels = "") {
  return fmt::format(R"({{"kind": "RdmaDevicePolicy", "metadata": {{"name": "a"{}}},
                          "spec": {{"nodeSelector": {{{}}}, "mode": "Nics", "resources": [{}]}}}})",
                     generation == 0 ? "" : fmt::format(R"(, "generation": {})", generation), labels,
                     resources);
}

// As the operator makes it of kNic.
std::string Told(int generation, const std::string& policies = R"("a")", const std::string& reason = "") {
  return fmt::format(R"({{"resource": "heddle.dev/nic", "policies": [{}], "generation": {}, "mode": "Nics",
                          "plugin": "Heddle", "ports": ["mlx5_0:1"], "reason": "{}"}})",
                     policies, generation, reason);
}

// Compute NICs on rails 0 and 1; its agent reports heddle.dev/nic of policy a.
std::string Node(const std::string& told, int generation, const std::string& state = "Refused",
                 const std::string& name = "gpu-1") {
  return fmt::format(R"({{"kind": "NodeTopology", "metadata": {{"name": "{}"}}, "spec": {{"devices": [{}]}},
      "status": {{"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
        "nvlinkDomainMissing": "NotApplicable",
        "devices": [{{"resource": "heddle.dev/nic", "policy": "a", "generation": {}, "state": "{}",
                      "reason": "GPU 3 is offered twice"}}],
        "nics": [
          {{"name": "mlx5_0", "role": "compute", "rail": 0, "transport": "RoCE",
            "ports": [{{"number": 1, "state": "Active", "leafMissing": "Unknown"}}]}},
          {{"name": "mlx5_1", "role": "compute", "rail": 1, "transport": "RoCE",
            "ports": [{{"number": 1, "state": "Active", "leafMissing": "Unknown"}}]}}]}}}})",
                     name, told, generation, state);
}

struct Said {
  std::vector<std::string> facts;
  std::string notes;
};

// As `kubectl get rdmadevicepolicies,nt -o json | kubectl heddle lint - devices.yaml` reads them; a file may be empty.
Said LintOf(const std::vector<std::string>& cluster, const std::string& file = "") {
  const std::string there = fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(cluster, ","));
  std::vector<std::string> files{"-"};
  if (!file.empty()) files.emplace_back("devices.yaml");
  const Output output =
      Lint({.files = files},
           [&](const std::string& path) -> base::Result<std::string> { return path == "-" ? there : file; },
           {.format = Format::kJson});
  Said said{{}, output.err};
  const Json json = Json::parse(output.out);
  for (const Json& finding : json.at("findings")) said.facts.push_back(finding.at("fact"));
  EXPECT_EQ(output.exit_code, said.facts.empty() ? Output::kOk : Output::kRefused) << output.err;
  return said;
}

const std::string kRefused = "heddle.dev/nic is not offered, by its agent";

void ExpectPassedOn(const Said& said, const std::string& which) {
  EXPECT_THAT(said.facts, ElementsAre(kRefused)) << which;
  EXPECT_EQ(said.notes, "") << which;
}
void ExpectNoted(const Said& said, const std::string& which) {
  EXPECT_THAT(said.facts, IsEmpty()) << which;
  EXPECT_EQ(said.notes, "Note: -: gpu-1 heddle.dev/nic: " + kEarlier) << which;
}

TEST(LintDeviceReports, OfWhatItsNodeWasToldBeforeAreNotPassedOn) {
  for (const char* state : {"Refused", "Elsewhere", "Pending", "Offered"})
    ExpectNoted(LintOf({Node(Told(2), 1, state)}), state);
  ExpectNoted(LintOf({Node(Told(2), 0)}), "of policies that were in conflict, which have no number");
  ExpectPassedOn(LintOf({Node(Told(2), 2)}), "answered");
  ExpectPassedOn(LintOf({Policy(kNic, 2), Node(Told(2), 2)}), "and its policy is there");
}

TEST(LintDeviceReports, OfAVersionThatTheOperatorHasNotToldYetAreNotPassedOn) {
  ExpectNoted(LintOf({Policy(kOtherNic, 3), Node(Told(2), 2)}), "another NIC");
  // A version that tells a node nothing new leaves the number as it was.
  ExpectPassedOn(
      LintOf({Policy(kNic + R"(, {"name": "heddle.dev/other", "rails": [1]})", 3), Node(Told(2), 2)}),
      "one resource more");
}

TEST(LintDeviceReports, OfTheClustersVersionAreNotThoseOfAFile) {
  const std::vector<std::string> cluster{Policy(kNic, 2), Node(Told(2), 2)};
  ExpectPassedOn(LintOf(cluster, Policy(kNic)), "nothing was changed");
  ExpectPassedOn(LintOf({cluster[1]}, Policy(kNic)), "and no policy from the cluster");
  ExpectPassedOn(LintOf(cluster, Policy(kNic + R"(, {"name": "heddle.dev/other", "rails": [1]})")),
                 "the same of this resource");
  // Kept from the cluster and then edited: its number is that of the version before.
  for (const int generation : {0, 2}) {
    ExpectNoted(LintOf(cluster, Policy(kOtherNic, generation)), std::to_string(generation));
    ExpectNoted(LintOf({cluster[1]}, Policy(kOtherNic, generation)), std::to_string(generation));
  }
}

TEST(LintDeviceReports, OfANodeThatTheLastVersionNeedNotSelectAreNotPassedOn) {
  const std::vector<std::string> cluster{Policy(kNic, 2, R"("pool": "x")"), Node(Told(2), 2)};
  ExpectPassedOn(LintOf(cluster, Policy(kNic)), "widened");
  ExpectNoted(LintOf(cluster, Policy(kNic, 0, R"("pool": "y")")), "other nodes");
}

TEST(LintDeviceReports, OfAResourceThatIsNotToldAreToldByTheirNumber) {
  ExpectPassedOn(LintOf({Policy(kNic, 2), Node("", 2)}), "of this version");
  ExpectNoted(LintOf({Policy(kNic, 2), Node("", 2)}, Policy(kOtherNic)), "changed in a file");
  const Said said = LintOf({Policy(kNic, 3), Node("", 2), Node("", 2, "Refused", "gpu-2")});
  EXPECT_THAT(said.facts, IsEmpty());
  EXPECT_EQ(said.notes, "Note: -: gpu-1 heddle.dev/nic and 1 more: " + kEarlier) << "said once";
}

TEST(LintDeviceReports, OfAPolicyThatTheNodeIsNotToldAnyMoreAreNotPassedOn) {
  const Said said = LintOf({Node(Told(1, R"("other")"), 1)});
  EXPECT_THAT(said.facts, IsEmpty());
  EXPECT_THAT(
      said.notes,
      HasSubstr("gpu-1 heddle.dev/nic: what is reported is of RdmaDevicePolicy a, which is not told there "
                "any more"));
}

// The other policy may be in no file, so this one alone would tell the node another thing than the operator does.
TEST(LintDeviceReports, OfWhatTheOperatorRefusesThereIsNoNote) {
  const Said said = LintOf({Policy(kNic, 2), Node(Told(0, R"("a", "b")", "both name it"), 0)});
  EXPECT_THAT(said.facts, IsEmpty());
  EXPECT_EQ(said.notes, "");
}

}  // namespace
}  // namespace heddle::cli
