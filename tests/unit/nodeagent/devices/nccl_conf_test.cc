#include "nodeagent/devices/nccl_conf.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nodeagent/devices/device_files.h"
#include "nodeagent/devices/offer.h"
#include "recorded_machine.h"

namespace heddle::nodeagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using topology::Nic;
using topology::NicPort;

void ExpectGolden(const std::string& machine, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(HEDDLE_SOURCE_DIR) / "tests/golden/nodeagent/nccl" / (machine + ".conf");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(golden.str(), text) << "run with UPDATE_GOLDEN=1 if this is meant";
}

// NCCL's own way with a file (setEnvFile of src/misc/param.cc).
std::map<std::string, std::string> AsNcclReads(const std::string& text) {
  std::map<std::string, std::string> variables;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t sign = line.find('=');
    if (line.empty() || line[0] == '#' || sign == std::string::npos) continue;
    variables.emplace(line.substr(0, sign), line.substr(sign + 1, 1023));
  }
  return variables;
}

topology::Node RoceNode(int nics) {
  topology::Node node;
  for (int i = 0; i < nics; ++i) {
    Nic nic;
    nic.name = "mlx5_" + std::to_string(i);
    nic.transport = topology::Transport::kRoce;
    nic.role = topology::NicRole::kCompute;
    nic.rail = i;
    NicPort port;
    port.gid_index = 3;
    port.leaf_port = topology::LeafPort{"r" + std::to_string(i), "1"};
    nic.ports = {port};
    node.nics.push_back(nic);
  }
  return node;
}

crds::LosslessWish Applied(std::vector<std::string> ports, int tos) {
  crds::LosslessWish wish;
  wish.ports = std::move(ports);
  wish.policies = {"fabric"};
  wish.mode = crds::LosslessMode::kApply;
  wish.settings.emplace();
  wish.settings->traffic_class = tos;
  wish.settings->dscp_to_priority = lossless::AllDscps(0);
  (*wish.settings->dscp_to_priority)[26] = 3;
  return wish;
}

// As the agent read them back: each port as its policy says.
std::vector<crds::LosslessReport> ReadBack(const std::vector<crds::LosslessWish>& wishes) {
  std::vector<crds::LosslessReport> reports;
  for (const crds::LosslessWish& wish : wishes) {
    crds::LosslessReport report;
    report.ports = wish.ports;
    report.edition = crds::EditionOf(wish);
    report.state = crds::LosslessState::kCompliant;
    reports.push_back(report);
  }
  return reports;
}

TEST(NcclConf, IsWhatItWasForEachMachineOfTheFleet) {
  // Those whose files other tests change are all H100s.
  const std::set<std::string> changed{"hgx-no-driver", "hgx-lost-gpu", "hgx-bad-files", "hgx-pulled",
                                      "hgx-watched"};
  for (const std::string& name : test::FleetNames()) {
    SCOPED_TRACE(name);
    if (changed.contains(name)) continue;
    const Observation seen = test::RecordedMachine(name).Look();
    NcclFacts facts;
    if (!seen.pci_source.empty()) facts.topology_file = "/etc/heddle/nccl/topology.xml";
    const NcclConf conf = NcclConfOf(seen.node, facts);
    EXPECT_THAT(conf.text, Not(HasSubstr("COLLNET")));
    EXPECT_THAT(conf.notes, IsEmpty());
    ExpectGolden(name, conf.text);
  }
}

TEST(NcclConf, ListsPortsByRailInExactForm) {
  const auto variables = AsNcclReads(NcclConfOf(test::RecordedMachine("hgx-h100").Look().node, {}).text);
  EXPECT_THAT(variables.at("NCCL_IB_HCA"), testing::StartsWith("=mlx5_"));
  EXPECT_THAT(variables.at("NCCL_IB_HCA"), testing::ContainsRegex(":1:0,mlx5_[0-9]+:1:1,"));
  EXPECT_EQ(variables.at("NCCL_CROSS_NIC"), "0");
  EXPECT_FALSE(variables.contains("NCCL_IB_ROCE_VERSION_NUM"));
  EXPECT_FALSE(variables.contains("NCCL_IB_TC"));
}

TEST(NcclConf, APortThatIsDownStays) {
  EXPECT_EQ(NcclConfOf(test::RecordedMachine("hgx-down").Look().node, {}).text,
            NcclConfOf(test::RecordedMachine("hgx-h100").Look().node, {}).text);
}

TEST(NcclConf, ARailThatNobodyKnowsIsLeftOut) {
  topology::Node node = RoceNode(2);
  node.nics[0].rail = topology::Missing::kUnknown;
  const auto variables = AsNcclReads(NcclConfOf(node, {}).text);
  EXPECT_EQ(variables.at("NCCL_IB_HCA"), "=mlx5_1:1:1,mlx5_0:1");
  EXPECT_FALSE(variables.contains("NCCL_CROSS_NIC"));
}

TEST(NcclConf, PlanesFollowRails) {
  topology::Node node = RoceNode(1);
  node.nics[0].ports.push_back(node.nics[0].ports[0]);
  node.nics[0].ports[1].number = 2;
  node.nics[0].ports[1].plane = 1;
  EXPECT_EQ(AsNcclReads(NcclConfOf(node, {}).text).at("NCCL_IB_HCA"), "=mlx5_0:1:0:0,mlx5_0:2:0:1");
}

TEST(NcclConf, RailsOfOneSwitchNeedNotStayOnTheirs) {
  topology::Node node = RoceNode(2);
  for (Nic& nic : node.nics) nic.ports[0].leaf_port = topology::LeafPort{"tor", nic.name};
  EXPECT_EQ(AsNcclReads(NcclConfOf(node, {}).text).at("NCCL_CROSS_NIC"), "1");
  node = RoceNode(3);
  node.nics[2].ports[0].leaf_port = topology::LeafPort{"r0", "9"};  // neither the one nor the other
  EXPECT_FALSE(AsNcclReads(NcclConfOf(node, {}).text).contains("NCCL_CROSS_NIC"));
}

TEST(NcclConf, RoceIsFoundByVersionAndFamilyAndNeverByIndex) {
  NcclFacts facts;
  auto variables = AsNcclReads(NcclConfOf(RoceNode(2), facts).text);
  EXPECT_EQ(variables.at("NCCL_IB_ROCE_VERSION_NUM"), "2");
  EXPECT_EQ(variables.at("NCCL_IB_ADDR_FAMILY"), "AF_INET");
  EXPECT_FALSE(variables.contains("NCCL_IB_GID_INDEX"));
  facts.without_ipv4 = {{"mlx5_0", 1}, {"mlx5_1", 1}};
  EXPECT_EQ(AsNcclReads(NcclConfOf(RoceNode(2), facts).text).at("NCCL_IB_ADDR_FAMILY"), "AF_INET6");
  facts.without_ipv4 = {{"mlx5_1", 1}};
  const NcclConf mixed = NcclConfOf(RoceNode(2), facts);
  EXPECT_EQ(AsNcclReads(mixed.text).at("NCCL_IB_ADDR_FAMILY"), "AF_INET");
  EXPECT_THAT(mixed.notes, ElementsAre(HasSubstr("mlx5_1:1 have no IPv4 address")));
}

// As where pods get addresses from Multus: AF_INET6 would keep NCCL at entry 0 of the GIDs, which is of RoCE v1.
TEST(NcclConf, LinkLocalAddressesTellNoFamily) {
  NcclFacts facts;
  facts.unnumbered = {{"mlx5_0", 1}, {"mlx5_1", 1}};
  const NcclConf conf = NcclConfOf(RoceNode(2), facts);
  EXPECT_FALSE(AsNcclReads(conf.text).contains("NCCL_IB_ADDR_FAMILY"));
  EXPECT_EQ(AsNcclReads(conf.text).at("NCCL_IB_ROCE_VERSION_NUM"), "2");
  EXPECT_THAT(conf.text, HasSubstr("# NCCL_IB_ADDR_FAMILY is left out: the ports have only link-local"));
  EXPECT_THAT(conf.notes, IsEmpty()) << "it is usual";
  facts.unnumbered = {{"mlx5_1", 1}};
  const NcclConf beside_ipv4 = NcclConfOf(RoceNode(2), facts);
  EXPECT_EQ(AsNcclReads(beside_ipv4.text).at("NCCL_IB_ADDR_FAMILY"), "AF_INET");
  EXPECT_THAT(beside_ipv4.notes,
              ElementsAre("mlx5_1:1 have no IPv4 address and mlx5_0:1 have one: NCCL is told "
                          "to look for IPv4"));
  facts.without_ipv4 = {{"mlx5_0", 1}};
  const NcclConf beside_ipv6 = NcclConfOf(RoceNode(2), facts);
  EXPECT_EQ(AsNcclReads(beside_ipv6.text).at("NCCL_IB_ADDR_FAMILY"), "AF_INET6");
  EXPECT_THAT(beside_ipv6.notes,
              ElementsAre("mlx5_1:1 have no global IPv6 address and mlx5_0:1 have one: NCCL is "
                          "told to look for IPv6"));
}

TEST(NcclConf, VirtualFunctionsAreOnTheRailAndPlaneOfTheirPhysicalOne) {
  NcclFacts facts;
  facts.functions = {{"mlx5_0", {"mlx5_2", "mlx5_3"}}, {"mlx5_9", {"mlx5_10"}}};
  const NcclConf conf = NcclConfOf(RoceNode(2), facts);
  EXPECT_EQ(AsNcclReads(conf.text).at("NCCL_IB_HCA"), "=mlx5_0:1:0,mlx5_2:1:0,mlx5_3:1:0,mlx5_1:1:1");
  EXPECT_THAT(conf.notes, IsEmpty());
  ExpectGolden("roce-functions", conf.text);
  topology::Node planes = RoceNode(1);
  planes.nics[0].ports.push_back(planes.nics[0].ports[0]);
  planes.nics[0].ports[1].number = 2;
  planes.nics[0].ports[1].plane = 1;
  EXPECT_EQ(AsNcclReads(NcclConfOf(planes, facts).text).at("NCCL_IB_HCA"),
            "=mlx5_0:1:0:0,mlx5_2:1:0:0,mlx5_3:1:0:0,mlx5_0:2:0:1,mlx5_2:2:0:1,mlx5_3:2:0:1");
}

// The pod that has one would find no device on an exact list, and go through TCP.
TEST(NcclConf, WithoutTheNamesOfAllVirtualFunctionsThereIsNoList) {
  NcclFacts facts;
  facts.functions = {{"mlx5_0", {"mlx5_2"}}};
  facts.hidden_functions = {"mlx5_1", "mlx5_9"};
  const NcclConf conf = NcclConfOf(RoceNode(2), facts);
  EXPECT_FALSE(AsNcclReads(conf.text).contains("NCCL_IB_HCA"));
  EXPECT_TRUE(AsNcclReads(conf.text).contains("NCCL_CROSS_NIC"));
  EXPECT_THAT(
      conf.notes,
      ElementsAre("NCCL_IB_HCA is left out: mlx5_1 has virtual functions whose RDMA devices are not seen on "
                  "the host, and a list without them would keep pods that hold them from RDMA"));
  EXPECT_THAT(conf.text, HasSubstr("# " + conf.notes[0] + ".\n"));
  facts.hidden_functions = {"mlx5_0", "mlx5_1"};
  EXPECT_THAT(NcclConfOf(RoceNode(2), facts).notes,
              ElementsAre(HasSubstr("on the host, as has 1 more, and")));
  facts.hidden_functions = {"mlx5_9"};  // no NIC of GPUs
  EXPECT_TRUE(AsNcclReads(NcclConfOf(RoceNode(2), facts).text).contains("NCCL_IB_HCA"));
}

TEST(NcclConf, MoreVirtualFunctionsThanNcclTakesAreLeftToNccl) {
  NcclFacts facts;
  for (int nic = 0; nic < 8; ++nic) {
    for (int function = 0; function < 3; ++function)
      facts.functions[fmt::format("mlx5_{}", nic)].push_back(fmt::format("mlx5_{}", 8 + 3 * nic + function));
  }
  EXPECT_TRUE(AsNcclReads(NcclConfOf(RoceNode(8), facts).text).contains("NCCL_IB_HCA")) << "32 fit";
  facts.functions["mlx5_7"].push_back("mlx5_32");
  const NcclConf conf = NcclConfOf(RoceNode(8), facts);
  EXPECT_FALSE(AsNcclReads(conf.text).contains("NCCL_IB_HCA"));
  EXPECT_THAT(conf.notes, ElementsAre(testing::ContainsRegex(
                              "NCCL takes 32 ports and 1023 bytes, and there are 33 and [0-9]+, 25 of them "
                              "virtual functions'")));
}

TEST(NcclConf, MarksAsThePolicySaysWhoeverSetThePorts) {
  NcclFacts facts;
  facts.topology_file = "/etc/heddle/nccl/topology.xml";
  facts.lossless = {Applied({"mlx5_0:1", "mlx5_1:1"}, 106)};
  for (const auto mode : {crds::LosslessMode::kApply, crds::LosslessMode::kObserve}) {
    facts.lossless[0].mode = mode;
    facts.reports = ReadBack(facts.lossless);
    const NcclConf conf = NcclConfOf(RoceNode(2), facts);
    const auto variables = AsNcclReads(conf.text);
    EXPECT_EQ(variables.at("NCCL_IB_TC"), "106");
    EXPECT_EQ(variables.at("NCCL_IB_SL"), "3");
    EXPECT_THAT(conf.notes, IsEmpty());
    ExpectGolden("roce-marked", conf.text);  // NCCL itself reads it in tests/nccl
  }
}

// It is what such a policy is for, and its report says it: no doubt of the file.
TEST(NcclConf, SaysInTheFileAloneWhyAPolicyThatObservesDoesNotMark) {
  NcclFacts facts;
  facts.lossless = {Applied({"mlx5_0:1", "mlx5_1:1"}, 106)};
  facts.lossless[0].mode = crds::LosslessMode::kObserve;
  facts.reports = ReadBack(facts.lossless);
  facts.reports->front().state = crds::LosslessState::kDrifted;
  facts.reports->front().drift = {{{lossless::Setting::kPfc, "3", "none"}, {}, {}}};
  const NcclConf conf = NcclConfOf(RoceNode(2), facts);
  EXPECT_FALSE(AsNcclReads(conf.text).contains("NCCL_IB_TC"));
  EXPECT_THAT(conf.text,
              HasSubstr("# NCCL_IB_TC is left out: LosslessPolicy fabric marks data with 106, and mlx5_0:1 "
                        "has another pfc than that, as 1 more.\n"));
  EXPECT_THAT(conf.notes, IsEmpty());
}

// The policy wants it and the port is not so: packets that NCCL marks would be dropped like any other.
TEST(NcclConf, MarksOnlyWhatThePortsWereReadBackAs) {
  NcclFacts facts;
  facts.lossless = {Applied({"mlx5_0:1", "mlx5_1:1"}, 106)};
  const auto why = [&facts] {
    const NcclConf conf = NcclConfOf(RoceNode(2), facts);
    const auto variables = AsNcclReads(conf.text);
    EXPECT_FALSE(variables.contains("NCCL_IB_TC"));
    EXPECT_FALSE(variables.contains("NCCL_IB_SL"));
    EXPECT_EQ(conf.notes.size(), 1u);
    const std::string note = conf.notes.empty() ? "" : conf.notes[0];
    EXPECT_THAT(conf.text, HasSubstr("# " + note + ".\n"));
    return note;
  };
  const std::string policy = "NCCL_IB_TC is left out: LosslessPolicy fabric marks data with 106, and ";
  EXPECT_EQ(why(), policy + "mlx5_0:1 has not been read yet, as 1 more");
  facts.reports = ReadBack(facts.lossless);
  facts.reports->front().edition.generation = 7;
  EXPECT_EQ(why(), policy + "mlx5_0:1 has not been read since that was told, as 1 more");
  facts.reports = ReadBack({Applied({"mlx5_0:1"}, 106), Applied({"mlx5_1:1"}, 106)});
  crds::LosslessReport& second = facts.reports->back();
  using enum lossless::Setting;
  for (const auto setting : {kTrust, kDscpToPriority, kPfc}) {
    second.state = crds::LosslessState::kDrifted;
    second.drift = {{{setting, "a", "b"}, {}, {}}};
    EXPECT_EQ(why(),
              policy + fmt::format("mlx5_1:1 has another {} than that", lossless::SettingName(setting)));
    second.state = crds::LosslessState::kPending;
    EXPECT_THAT(why(), HasSubstr("mlx5_1:1")) << "it is about to be set, and is not yet";
  }
  second.drift.clear();
  second.gaps = {{kTrust, "no such file"}};
  EXPECT_EQ(why(), policy + "mlx5_1:1 does not tell its trust");
  second.gaps.clear();
  second.state = crds::LosslessState::kUnknown;
  EXPECT_EQ(why(), policy + "mlx5_1:1 cannot be read");
  // What has no part in where marked packets go.
  second.state = crds::LosslessState::kDrifted;
  second.drift = {{{kWatchdogMs, "65535", "0"}, {}, {}}};
  EXPECT_EQ(AsNcclReads(NcclConfOf(RoceNode(2), facts).text).at("NCCL_IB_TC"), "106");
}

TEST(NcclConf, TwoMarkingsAreNone) {
  NcclFacts facts;
  facts.lossless = {Applied({"mlx5_0:1"}, 104), Applied({"mlx5_1:1"}, 96)};
  facts.reports = ReadBack(facts.lossless);
  const NcclConf conf = NcclConfOf(RoceNode(2), facts);
  EXPECT_FALSE(AsNcclReads(conf.text).contains("NCCL_IB_TC"));
  EXPECT_THAT(conf.notes,
              ElementsAre("NCCL_IB_TC is left out: mlx5_0:1 should have 104 and mlx5_1:1 96, and NCCL has "
                          "one for all; make the LosslessPolicies of this node agree"));
}

TEST(NcclConf, APortWithoutPolicyBesideOneIsSaid) {
  NcclFacts facts;
  facts.lossless = {Applied({"mlx5_0:1"}, 104)};
  facts.reports = ReadBack(facts.lossless);
  const NcclConf conf = NcclConfOf(RoceNode(2), facts);
  EXPECT_EQ(AsNcclReads(conf.text).at("NCCL_IB_TC"), "104");
  EXPECT_THAT(conf.notes, ElementsAre(HasSubstr("mlx5_1:1 carry marked packets too")));
}

topology::Node InfiniBandNode(int nics) {
  topology::Node node = RoceNode(nics);
  for (Nic& nic : node.nics) {
    nic.transport = topology::Transport::kInfiniBand;
    nic.ports[0].gid_index.reset();
  }
  return node;
}

crds::LosslessWish SaysOfInfiniBand(std::vector<std::string> ports, std::string policy,
                                    lossless::InfiniBand infiniband) {
  crds::LosslessWish wish;
  wish.ports = std::move(ports);
  wish.policies = {std::move(policy)};
  wish.reason = "InfiniBand is lossless by link credits";
  wish.infiniband = infiniband;
  return wish;
}

TEST(NcclConf, HasServiceLevelAndAdaptiveRoutingOfInfiniBandAsThePolicySays) {
  NcclFacts facts;
  facts.lossless = {SaysOfInfiniBand({"mlx5_0:1", "mlx5_1:1"}, "ib", {1, false})};
  NcclConf conf = NcclConfOf(InfiniBandNode(2), facts);
  auto variables = AsNcclReads(conf.text);
  EXPECT_EQ(variables.at("NCCL_IB_SL"), "1");
  EXPECT_EQ(variables.at("NCCL_IB_ADAPTIVE_ROUTING"), "0");
  EXPECT_FALSE(variables.contains("NCCL_IB_TC")) << "InfiniBand has no traffic class to be marked with";
  EXPECT_THAT(conf.text, HasSubstr("# What LosslessPolicy ib says of InfiniBand: the service level"));
  EXPECT_THAT(conf.notes, IsEmpty());
  ExpectGolden("infiniband-policy", conf.text);  // NCCL itself reads it in tests/nccl
  facts.lossless[0].infiniband = {0, true};      // 0 is said, and not nothing
  variables = AsNcclReads(NcclConfOf(InfiniBandNode(2), facts).text);
  EXPECT_EQ(variables.at("NCCL_IB_SL"), "0");
  EXPECT_EQ(variables.at("NCCL_IB_ADAPTIVE_ROUTING"), "1");
}

TEST(NcclConf, LeavesNcclItsOwnDefaultsWhereNoPolicySpeaksOfInfiniBand) {
  NcclFacts facts;
  facts.lossless = {SaysOfInfiniBand({"mlx5_0:1", "mlx5_1:1"}, "ib", {})};
  EXPECT_EQ(NcclConfOf(InfiniBandNode(2), facts), NcclConfOf(InfiniBandNode(2), {}));
  facts.lossless[0].infiniband.service_level = 2;
  const auto variables = AsNcclReads(NcclConfOf(InfiniBandNode(2), facts).text);
  EXPECT_EQ(variables.at("NCCL_IB_SL"), "2");
  EXPECT_FALSE(variables.contains("NCCL_IB_ADAPTIVE_ROUTING"));
}

// What would be said of a port that another policy selects as well is in force for neither.
TEST(NcclConf, TakesNothingForInfiniBandFromAPortInConflictNorForARocePort) {
  NcclFacts facts;
  facts.lossless = {SaysOfInfiniBand({"mlx5_0:1", "mlx5_1:1"}, "ib", {3, false})};
  EXPECT_EQ(NcclConfOf(RoceNode(2), facts), NcclConfOf(RoceNode(2), {}));
  facts.lossless[0].policies = {"ib", "other"};
  EXPECT_EQ(NcclConfOf(InfiniBandNode(2), facts), NcclConfOf(InfiniBandNode(2), {}));
}

TEST(NcclConf, TwoServiceLevelsOfOneNodeAreNoneAndTheRestIsWritten) {
  NcclFacts facts;
  facts.lossless = {SaysOfInfiniBand({"mlx5_0:1"}, "a", {1, false}),
                    SaysOfInfiniBand({"mlx5_1:1"}, "b", {2, false})};
  const NcclConf conf = NcclConfOf(InfiniBandNode(2), facts);
  const auto variables = AsNcclReads(conf.text);
  EXPECT_FALSE(variables.contains("NCCL_IB_SL"));
  EXPECT_EQ(variables.at("NCCL_IB_ADAPTIVE_ROUTING"), "0");
  EXPECT_THAT(conf.notes,
              ElementsAre("NCCL_IB_SL is left out: mlx5_0:1 should have 1 and mlx5_1:1 2, and NCCL "
                          "has one for all; make infiniBand of the LosslessPolicies of this node "
                          "agree"));
  EXPECT_THAT(conf.text, HasSubstr("# " + conf.notes[0] + ".\n"));
}

TEST(NcclConf, AnInfiniBandPortOfWhichNobodySaysItIsSaid) {
  NcclFacts facts;
  facts.lossless = {SaysOfInfiniBand({"mlx5_0:1"}, "a", {1, std::nullopt})};
  const NcclConf conf = NcclConfOf(InfiniBandNode(2), facts);
  EXPECT_EQ(AsNcclReads(conf.text).at("NCCL_IB_SL"), "1");
  EXPECT_THAT(conf.notes, ElementsAre("NCCL_IB_SL of LosslessPolicy a is used on mlx5_1:1, too, of which no "
                                      "LosslessPolicy says it"));
}

TEST(NcclConf, OfTwoLinkTypesTheMoreFrequentIsUsed) {
  topology::Node node = RoceNode(3);
  node.nics[0].transport = topology::Transport::kInfiniBand;
  const NcclConf conf = NcclConfOf(node, {});
  EXPECT_EQ(AsNcclReads(conf.text).at("NCCL_IB_HCA"), "=mlx5_1:1:1,mlx5_2:1:2");
  EXPECT_THAT(conf.notes, ElementsAre(HasSubstr("NCCL uses one of both, here RoCE")));
}

TEST(NcclConf, MoreThanNcclTakesIsLeftToNccl) {
  const NcclConf conf = NcclConfOf(RoceNode(33), {});
  EXPECT_FALSE(AsNcclReads(conf.text).contains("NCCL_IB_HCA"));
  EXPECT_THAT(conf.notes, ElementsAre(HasSubstr("NCCL takes 32 ports")));
  EXPECT_THAT(conf.text, HasSubstr("# " + conf.notes[0] + ".\n"));
  topology::Node two_ports = RoceNode(17);  // of what NCCL calls a device, these are 34
  for (Nic& nic : two_ports.nics) {
    nic.ports.push_back(nic.ports[0]);
    nic.ports[1].number = 2;
  }
  EXPECT_FALSE(AsNcclReads(NcclConfOf(two_ports, {}).text).contains("NCCL_IB_HCA"));
  two_ports.nics.pop_back();
  EXPECT_TRUE(AsNcclReads(NcclConfOf(two_ports, {}).text).contains("NCCL_IB_HCA"));
  topology::Node long_names = RoceNode(32);
  for (Nic& nic : long_names.nics) nic.name = "rocep123s0f0np0_" + std::string(9, 'x') + nic.name;
  const auto variables = AsNcclReads(NcclConfOf(long_names, {}).text);
  EXPECT_LE(variables.contains("NCCL_IB_HCA") ? variables.at("NCCL_IB_HCA").size() : 0, 1023U);
}

TEST(NcclConf, PointsToATopologyFileWhereThereIsOne) {
  NcclFacts facts;
  EXPECT_THAT(NcclConfOf(RoceNode(1), facts).text, Not(HasSubstr("NCCL_TOPO_FILE")));
  facts.topology_file = "/etc/heddle/nccl/topology.xml";
  EXPECT_EQ(AsNcclReads(NcclConfOf(RoceNode(1), facts).text).at("NCCL_TOPO_FILE"), facts.topology_file);
}

TEST(NcclConf, EfaIsForLibfabricAndHasNoVerbsVariables) {
  const NcclConf conf = NcclConfOf(test::RecordedMachine("p5-48xlarge").Look().node, {});
  EXPECT_TRUE(conf.efa);
  EXPECT_THAT(conf.text, Not(HasSubstr("NCCL_IB_")));
}

TEST(NcclConf, ADomainOverNodesIsUsedWhereAllRanksCan) {
  const auto variables =
      AsNcclReads(NcclConfOf(test::RecordedMachine("gb200-nvl72-tray").Look().node, {}).text);
  EXPECT_EQ(variables.at("NCCL_MNNVL_ENABLE"), "2");
  EXPECT_FALSE(AsNcclReads(NcclConfOf(test::RecordedMachine("hgx-h100").Look().node, {}).text)
                   .contains("NCCL_MNNVL_ENABLE"));
}

TEST(DeviceFiles, AreReadAndNamesThatAreNoneAreNot) {
  test::MemoryFileTree files;
  files.Write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  files.Write("sys/class/infiniband_verbs/uverbs11/ibdev", "mlx5_1\n");
  files.Write("sys/class/infiniband_verbs/uverbs..x/ibdev", "mlx5_2\n");
  files.Write("sys/class/infiniband_verbs/abi_version", "6\n");
  files.Write("sys/class/misc/rdma_cm/dev", "10:58\n");
  files.Write("sys/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  files.Write("sys/class/infiniband/mlx5_1/ports/1/gids/3", "fd00:0000:0000:0000:0000:0000:0000:0001\n");
  files.Write("sys/class/infiniband/mlx5_2/ports/1/gids/3", "fe80:0000:0000:0000:0e42:a1ff:feda:09b6\n");
  const DeviceFiles found = ReadDeviceFiles(files, RoceNode(3));
  EXPECT_THAT(found.verbs, ElementsAre(std::pair<const std::string, std::string>("mlx5_0", "uverbs0"),
                                       std::pair<const std::string, std::string>("mlx5_1", "uverbs11")));
  EXPECT_TRUE(found.rdma_cm);
  EXPECT_THAT(found.without_ipv4, ElementsAre(std::pair<std::string, int>("mlx5_1", 1)));
  EXPECT_THAT(found.unnumbered, ElementsAre(std::pair<std::string, int>("mlx5_2", 1)));
  EXPECT_FALSE(ReadDeviceFiles(test::MemoryFileTree(), RoceNode(1)).rdma_cm);
}

TEST(DeviceFiles, HaveTheVirtualFunctionsOfTheNicsThatNcclDrives) {
  test::MemoryFileTree files;
  const std::string pci = "sys/bus/pci/devices/";
  files.Link(pci + "0000:18:00.0/virtfn0", "../0000:18:00.2");
  files.MakeFolder(pci + "0000:18:00.2/infiniband/mlx5_3");
  files.Link(pci + "0000:29:00.0/virtfn0", "../0000:29:00.2");
  files.Link(pci + "0000:29:00.2/driver", "../../../bus/pci/drivers/mlx5_core");
  files.Write("sys/module/ib_core/parameters/netns_mode", "N\n");
  topology::Node node = RoceNode(2);
  node.nics[0].pci = "0000:18:00.0";
  node.nics[1].pci = "0000:29:00.0";
  const DeviceFiles found = ReadDeviceFiles(files, node);
  using Functions = std::pair<const std::string, std::vector<std::string>>;
  EXPECT_THAT(found.functions, ElementsAre(Functions("mlx5_0", {"mlx5_3"})));
  EXPECT_THAT(found.hidden_functions, ElementsAre("mlx5_1"));
  for (Nic& nic : node.nics) nic.role = topology::NicRole::kStorage;
  EXPECT_THAT(ReadDeviceFiles(files, node).functions, IsEmpty());
  EXPECT_THAT(ReadDeviceFiles(files, node).hidden_functions, IsEmpty());
}

}  // namespace
}  // namespace heddle::nodeagent
