#include "cli/lint_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "cli/lint.h"
#include "tests/unit/cli/from_disk.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSamples = std::string(HEDDLE_SOURCE_DIR) + "/tests/cluster/samples/";

Output LintText(const std::string& text) {
  return Lint({.files = {"-"}}, [&](const std::string&) -> base::Result<std::string> { return text; },
              {.format = Format::kJson});
}

std::string Policy(const std::string& name, const std::string& spec) {
  return fmt::format(R"({{"kind": "RdmaDevicePolicy", "metadata": {{"name": "{}"}}, "spec": {}}})", name,
                     spec);
}

Output LintItems(const std::vector<std::string>& items) {
  return LintText(fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(items, ",")));
}

Json FoundIn(const std::vector<std::string>& items) {
  const Output output = LintItems(items);
  EXPECT_EQ(output.err, "");
  const Json found = Json::parse(output.out).at("findings");
  EXPECT_EQ(output.exit_code, found.empty() ? Output::kOk : Output::kRefused);
  return found;
}

// Two compute NICs on rails 0 and 1. `told`: what its spec says.
std::string Node(const std::string& name, const std::string& told = "{}", const std::string& reports = "[]") {
  return R"({"kind": "NodeTopology", "metadata": {"name": ")" + name + R"("}, "spec": )" + told +
         R"(, "status": {"observedAt": "2026-01-31T12:00:00Z", "hash": "0123456789abcdef",
         "nvlinkDomainMissing": "NotApplicable", "devices": )" +
         reports + R"(, "nics": [
           {"name": "mlx5_0", "role": "compute", "rail": 0, "transport": "RoCE",
            "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]},
           {"name": "mlx5_1", "role": "compute", "rail": 1, "transport": "RoCE",
            "ports": [{"number": 1, "state": "Active", "leafMissing": "Unknown"}]}]}})";
}

TEST(LintDevices, RefusesEachBadSampleAndTakesTheGoodOnes) {
  std::size_t tried = 0;
  for (const std::string folder : {"bad", "good"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kSamples + folder)) {
      if (!entry.path().filename().string().starts_with("devices-")) continue;
      const Output output = Lint({.files = {entry.path().string()}}, FromDisk, {});
      EXPECT_EQ(output.exit_code, folder == "bad" ? Output::kUsage : Output::kOk)
          << entry.path() << output.out << output.err;
      ++tried;
    }
  }
  EXPECT_GT(tried, 11u);
}

TEST(LintDevices, NamesUnknownFieldsAndWhatTheServerRefuses) {
  const auto refusal = [](const std::string& spec) {
    const Output output = LintItems({Policy("dgx", spec)});
    EXPECT_EQ(output.exit_code, Output::kUsage) << spec;
    return output.err;
  };
  EXPECT_THAT(refusal(R"({"resource": [], "resources": [{"name": "heddle.dev/nic", "role": ["compute"]}]})"),
              HasSubstr("RdmaDevicePolicy dgx: spec.resource (is resources meant?), spec.resources[0].role "
                        "(is roles meant?): the RdmaDevicePolicy"));
  EXPECT_THAT(refusal(R"({"mode": "Nics", "plugin": "Sriov", "resources": [{"name": "rdma/vf-"}]})"),
              HasSubstr("spec.resources[0].name: the SR-IOV plugin takes"));
  EXPECT_THAT(refusal(R"({"resources": []})"), HasSubstr("spec.resources: names no resource"));
}

TEST(LintDevices, FindsANicInTwoResourcesOfAPolicyWithoutAnyNode) {
  const Json found = FoundIn({Policy("dgx", R"({"mode": "Nics", "resources": [
      {"name": "heddle.dev/a", "rails": [2, 3]}, {"name": "heddle.dev/b", "rails": [3, 4]}]})")});
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["rule"], "devices-conflict");
  EXPECT_EQ(found[0]["where"], "RdmaDevicePolicy dgx");
  EXPECT_EQ(found[0]["fact"], "heddle.dev/a is not offered");
  EXPECT_EQ(
      found[0]["contrary"],
      "the compute NIC of rail 3 is in several resources, and a NIC can be in one: narrow roles or rails of "
      "all but one of heddle.dev/a, heddle.dev/b");
  EXPECT_THAT(FoundIn({Policy("dgx", R"({"mode": "Nics", "resources": [
      {"name": "heddle.dev/a", "rails": [2]}, {"name": "heddle.dev/b", "rails": [3]},
      {"name": "heddle.dev/c", "rails": [2], "roles": ["storage"]}]})")}),
              IsEmpty());
}

TEST(LintDevices, FindsANameThatTwoEntriesOfAPolicyComeToAndSaysItOnce) {
  const std::string policy = Policy("dgx", R"({"mode": "Nics", "resources": [
      {"name": "heddle.dev/rail{rail}"}, {"name": "heddle.dev/rail1", "roles": ["storage"]}]})");
  const std::vector<std::vector<std::string>> beside{{policy}, {policy, Node("gpu-1"), Node("gpu-2")}};
  for (const std::vector<std::string>& items : beside) {
    const Json found = FoundIn(items);
    ASSERT_EQ(found.size(), 1u) << found;
    EXPECT_EQ(found[0]["rule"], "devices-conflict");
    EXPECT_EQ(found[0]["where"], "RdmaDevicePolicy dgx");
    EXPECT_EQ(found[0]["fact"], "heddle.dev/rail1 is not offered where both have NICs");
    EXPECT_EQ(found[0]["contrary"],
              "several entries of one policy come to this name; rename one, or give one with {rail} a list "
              "of rails that "
              "leaves this name out: heddle.dev/rail1 and heddle.dev/rail{rail}");
  }
  EXPECT_THAT(FoundIn({Policy("dgx", R"({"mode": "Nics", "resources": [
      {"name": "heddle.dev/rail{rail}", "rails": [0, 2]}, {"name": "heddle.dev/rail1", "roles": ["storage"]}]})")}),
              IsEmpty());
}

TEST(LintDevices, FindsPoliciesThatGetInEachOthersWay) {
  const auto two = [](const std::string& one, const std::string& other) {
    return FoundIn({Policy("a", one), Policy("b", other)});
  };
  const std::string nic = R"("mode": "Nics", "resources": [{"name": "heddle.dev/nic"}])";
  Json found = two("{" + nic + "}", R"({"nodeSelector": {"pool": "x"}, )" + nic + "}");
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["where"], "RdmaDevicePolicy a");
  EXPECT_EQ(found[0]["with"], "RdmaDevicePolicy b");
  EXPECT_EQ(
      found[0]["contrary"],
      "several policies name this resource: narrow nodeSelector of all but one of RdmaDevicePolicies a, b");
  // Whether a node has both labels stands in no file.
  EXPECT_THAT(two(R"({"nodeSelector": {"pool": "x"}, )" + nic + "}",
                  R"({"nodeSelector": {"row": "7"}, )" + nic + "}"),
              IsEmpty());
  found = two("{" + nic + "}", R"({"mode": "Nics", "resources": [{"name": "heddle.dev/other"}]})");
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["contrary"],
            "a compute NIC is in several resources, and a NIC can be in one: narrow roles or rails of all "
            "but one of "
            "heddle.dev/nic, heddle.dev/other");
  found =
      two(R"({"mode": "Nics", "plugin": "RdmaShared", "resources": [{"name": "rdma/a"}]})",
          R"({"mode": "Nics", "plugin": "Sriov", "resources": [{"name": "rdma/b", "roles": ["storage"]}]})");
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["contrary"],
            "another policy runs k8s-rdma-shared-dev-plugin on this node: one plugin for each node");
  found = two(
      R"({"mode": "Nics", "plugin": "RdmaShared", "resources": [{"name": "one/a"}]})",
      R"({"mode": "Nics", "plugin": "RdmaShared", "resources": [{"name": "two/a", "roles": ["storage"]}]})");
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_THAT(found[0]["contrary"].get<std::string>(), HasSubstr("differ by their domains only"));
}

TEST(LintDevices, HoldsPoliciesAgainstTheNicsOfNodes) {
  const std::string storage =
      R"({"mode": "Nics", "resources": [{"name": "heddle.dev/s", "roles": ["storage"]}]})";
  Json found = FoundIn({Policy("a", storage), Node("gpu-1"), Node("gpu-2")});
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["rule"], "devices-refused");
  EXPECT_EQ(found[0]["where"], "RdmaDevicePolicy a");
  EXPECT_EQ(found[0]["with"], "gpu-1 and 1 more like it");
  EXPECT_EQ(found[0]["fact"], "heddle.dev/s is not offered");
  EXPECT_EQ(found[0]["contrary"], "no RDMA device of this node has the roles and rails that it asks for");
  // A plugin that finds NICs by interfaces, where there are none.
  found =
      FoundIn({Policy("a", R"({"mode": "Nics", "plugin": "RdmaShared", "resources": [{"name": "rdma/a"}]})"),
               Node("gpu-1")});
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_THAT(found[0]["contrary"].get<std::string>(), HasSubstr("mlx5_0 has no interface"));
  // Two that depend on labels, on a node that was told of both.
  const std::string nic = R"("mode": "Nics", "resources": [{"name": "heddle.dev/nic"}])";
  const std::string a = Policy("a", R"({"nodeSelector": {"pool": "x"}, )" + nic + "}");
  const std::string b = Policy("b", R"({"nodeSelector": {"row": "7"}, )" + nic + "}");
  const std::string told =
      R"({"devices": [{"resource": "heddle.dev/nic", "policies": ["a", "b"], "mode": "Nics",
                               "plugin": "Heddle", "reason": "both name it"}]})";
  EXPECT_THAT(FoundIn({a, b, Node("gpu-1")}), IsEmpty());
  found = FoundIn({a, b, Node("gpu-1", told)});
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["rule"], "devices-conflict");
  EXPECT_EQ(found[0]["with"], "gpu-1");
}

TEST(LintDevices, PassesOnWhatTheOperatorAndAgentsRefused) {
  const std::string told = R"({"devices": [{"resource": "heddle.dev/nic", "policies": ["a"], "mode": "Nics",
                               "plugin": "Heddle", "reason": "no NIC is like that"}]})";
  const std::string reports = R"([
      {"resource": "heddle.dev/nic", "policy": "a", "state": "Refused", "reason": "no NIC is like that"},
      {"resource": "heddle.dev/pair", "policy": "c", "state": "Refused", "reason": "GPU 3 is offered twice"}])";
  const Json found = FoundIn({Node("gpu-1", told, reports)});
  ASSERT_EQ(found.size(), 2u) << found;
  EXPECT_EQ(found[0]["where"], "RdmaDevicePolicy a");
  EXPECT_EQ(found[0]["fact"], "heddle.dev/nic is not offered, by the operator");
  EXPECT_EQ(found[0]["contrary"], "no NIC is like that");
  EXPECT_EQ(found[1]["where"], "RdmaDevicePolicy c");
  EXPECT_EQ(found[1]["fact"], "heddle.dev/pair is not offered, by its agent");
}

// As `kubectl get rdmadevicepolicies,nt -o json | kubectl heddle lint - devices.yaml` reads them: exit code 3 where
// anything was found of the two. `notes`: what is noted beside it.
Json FoundBeside(const std::vector<std::string>& cluster, const std::vector<std::string>& file,
                 const std::string& notes = "") {
  const auto list = [](const std::vector<std::string>& items) {
    return fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(items, ","));
  };
  const std::string there = list(cluster), here = list(file);
  const Output output =
      Lint({.files = {"-", "devices.yaml"}},
           [&](const std::string& path) -> base::Result<std::string> { return path == "-" ? there : here; },
           {.format = Format::kJson});
  EXPECT_EQ(output.err, notes);
  const Json found = Json::parse(output.out).at("findings");
  EXPECT_EQ(output.exit_code, found.empty() ? Output::kOk : Output::kRefused);
  return found;
}

TEST(LintDevices, OfTwoVersionsOfAPolicyTheLastIsLookedAt) {
  const std::string good = Policy("dgx", R"({"mode": "Nics", "resources": [
      {"name": "heddle.dev/a", "rails": [2]}, {"name": "heddle.dev/b", "rails": [3]}]})");
  const std::string bad = Policy("dgx", R"({"mode": "Nics", "resources": [
      {"name": "heddle.dev/a", "rails": [2, 3]}, {"name": "heddle.dev/b", "rails": [3]}]})");
  const Json found = FoundBeside({good}, {bad});
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["rule"], "devices-conflict");
  EXPECT_EQ(found[0]["where"], "RdmaDevicePolicy dgx");
  EXPECT_THAT(FoundBeside({bad}, {good}), IsEmpty());
}

TEST(LintDevices, WhatAgentsRefusedOfAnEarlierVersionIsNotSaidOfTheLast) {
  const std::string told = R"({"devices": [{"resource": "heddle.dev/nic", "policies": ["a"], "mode": "Nics",
                               "plugin": "Heddle", "ports": ["mlx5_0:1"]}]})";
  const std::string reports = R"([{"resource": "heddle.dev/nic", "policy": "a", "state": "Refused",
                                   "reason": "GPU 3 is offered twice"}])";
  const std::string before =
      Policy("a", R"({"mode": "Nics", "resources": [{"name": "heddle.dev/nic", "rails": [0]}]})");
  const std::string now =
      Policy("a", R"({"mode": "Nics", "resources": [{"name": "heddle.dev/nic", "rails": [1]}]})");
  EXPECT_THAT(FoundBeside({before, Node("gpu-1", told, reports)}, {now},
                          "Note: -: gpu-1 heddle.dev/nic: what is reported is of an earlier version of "
                          "RdmaDevicePolicy a: whether this one is in force there is not known until agents "
                          "report of it\n"),
              IsEmpty());
  EXPECT_EQ(FoundBeside({before, Node("gpu-1", told, reports)}, {before}).size(), 1u)
      << "nothing was changed";
}

TEST(LintDevices, AChangedPolicyIsHeldAgainstNodesThatItStillSelects) {
  const std::string told = R"({"devices": [{"resource": "heddle.dev/nic", "policies": ["a"], "mode": "Nics",
                               "plugin": "Heddle", "ports": ["mlx5_0:1"]}]})";
  const auto policy = [](const std::string& labels, const std::string& role) {
    return Policy("a", fmt::format(R"({{"nodeSelector": {{{}}}, "mode": "Nics",
                                        "resources": [{{"name": "heddle.dev/nic", "roles": ["{}"]}}]}})",
                                   labels, role));
  };
  const std::string before = policy(R"("pool": "x", "row": "7")", "compute");
  const auto found = [&](const std::string& labels) {
    return FoundBeside({before, Node("gpu-1", told)}, {policy(labels, "storage")});
  };
  // No node here has a storage NIC; of which nodes the last selects its labels alone say nothing.
  EXPECT_EQ(found(R"("pool": "x", "row": "7")").size(), 1u);
  EXPECT_EQ(found(R"("pool": "x")").size(), 1u) << "widened";
  EXPECT_THAT(found(R"("pool": "x", "row": "7", "nics": "storage")"), IsEmpty()) << "narrowed";
  EXPECT_THAT(found(R"("pool": "y")"), IsEmpty()) << "other nodes";
}

// The operator calls it Waiting.
TEST(LintDevices, AnAgentThatDoesNotLookForAnotherPluginHasRefusedNothing) {
  const auto told = [](const std::string& plugin) {
    return fmt::format(R"({{"devices": [{{"resource": "rdma/hca", "policies": ["a"], "mode": "Nics",
                                          "plugin": "{}", "ports": ["mlx5_0:1"]}}]}})",
                       plugin);
  };
  const std::string reports = R"([{"resource": "rdma/hca", "policy": "a", "state": "Elsewhere",
                                   "reason": "another plugin offers it"}])";
  EXPECT_THAT(FoundIn({Node("gpu-1", told("RdmaShared"), reports)}), IsEmpty());
  const Json found = FoundIn({Node("gpu-1", told("Heddle"), reports)});
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["rule"], "devices-refused");
  EXPECT_EQ(found[0]["fact"], "rdma/hca is not offered, by its agent");
}

}  // namespace
}  // namespace heddle::cli
