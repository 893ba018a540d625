#include "lossless/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "lossless/lint_rules.h"
#include "lossless/profiles.h"

namespace heddle::lossless {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> RulesOf(const std::vector<Finding>& findings) {
  std::vector<std::string> rules;
  for (const Finding& finding : findings) rules.push_back(finding.rule);
  return rules;
}

Subject GoodPolicy(const Policy& declared = {}) {
  return SubjectOf("LosslessPolicy roce", *Resolve(declared));
}

Subject GoodHost() {
  Subject host = GoodPolicy();
  host.name = "gpu-017 eth2";
  host.end = End::kHost;
  host.rdma_dscp.reset();
  host.settings.marking.reset();
  host.settings.buffer_bytes = Numbers{100'000, 200'000, 0, 0, 0, 0, 0, 0};
  host.settings.priority_to_buffer = PriorityTable{0, 0, 0, 1, 0, 0, 0, 0};
  return host;
}

// A switch made for the generic profile.
Subject GoodSwitch() {
  Subject leaf;
  leaf.name = "leaf Ethernet0";
  leaf.end = End::kSwitch;
  PortSettings& port = leaf.settings;
  port.trust = Trust::kDscp;
  port.dscp_to_priority = AllDscps(0);
  (*port.dscp_to_priority)[26] = 3;
  (*port.dscp_to_priority)[48] = 6;
  port.pfc = port.watched = port.ecn = PrioritySet{3};
  port.priority_to_group = PriorityTable{0, 0, 0, 3, 4, 0, 0, 7};
  port.priority_to_queue = port.pause_to_queue = Identity();
  port.watchdog_ms = 200;
  port.mtu = 9100;
  port.marking = EcnMarkings{{3, {1'048'576, 2'097'152, 5}}};
  return leaf;
}

TEST(Lint, HasNothingAgainstWhatFitsTogether) {
  for (const Profile& profile : Profiles()) {
    Policy declared;
    declared.profile = profile.name;
    EXPECT_THAT(Lint({GoodPolicy(declared)}), IsEmpty()) << profile.name;
  }
  EXPECT_THAT(Lint({GoodHost()}), IsEmpty());
  EXPECT_THAT(Lint({GoodSwitch()}), IsEmpty());
  EXPECT_THAT(Lint({GoodPolicy(), GoodHost(), GoodSwitch()}), IsEmpty());
  EXPECT_THAT(Lint({}), IsEmpty());
}

TEST(Lint, SaysNothingOfWhatNobodyRead) {
  Subject host;
  Subject leaf;
  leaf.end = End::kSwitch;
  EXPECT_THAT(Lint({host, leaf}), IsEmpty());
}

TEST(Lint, GlobalPauseIsAFaultOnlyBesidePfc) {
  Subject host = GoodHost();
  host.settings.global_pause = GlobalPause::kNone;
  EXPECT_THAT(Lint({host}), IsEmpty());
  host.settings.global_pause = GlobalPause::kBoth;
  const auto findings = Lint({host});
  ASSERT_EQ(RulesOf(findings), std::vector<std::string>{"global-pause"});
  EXPECT_EQ(findings[0].fact, "global pause is RXTX");
  EXPECT_EQ(findings[0].contrary, "PFC is on for priority 3");
  Subject lossy;
  lossy.settings.pfc = PrioritySet{};
  lossy.settings.global_pause = GlobalPause::kBoth;
  EXPECT_THAT(Lint({lossy}), IsEmpty()) << "who wants no PFC may want this";
}

struct Case {
  std::string rule;
  std::function<void(Subject& policy, Subject& host, Subject& leaf)> spoil;
};

// One fault each. `Alone`: the policy, the host or the switch by itself shows it.
std::vector<Case> Cases() {
  using S = Subject&;
  return {
      {"trust-not-dscp", [](S, S host, S) { host.settings.trust = Trust::kPcp; }},
      {"rdma-unmarked", [](S policy, S, S) { policy = GoodPolicy({.rdma_dscp = 0}); }},
      {"tos-elsewhere", [](S policy, S, S) { policy.settings.tos = 0; }},
      {"tos-nccl-differ", [](S, S host, S) { host.settings.traffic_class = 104; }},
      {"tos-congested", [](S, S host, S) { host.settings.tos = host.settings.traffic_class = 107; }},
      {"data-lossy", [](S, S host, S) { (*host.settings.dscp_to_priority)[26] = 0; }},
      {"pfc-several-classes",
       [](S, S, S leaf) {
         leaf.settings.pfc = leaf.settings.watched = PrioritySet{3, 4};
       }},
      {"pfc-without-watchdog", [](S, S host, S) { host.settings.watchdog_ms = kWatchdogOff; }},
      {"global-pause", [](S, S host, S) { host.settings.global_pause = GlobalPause::kReceive; }},
      {"watchdog-range", [](S, S host, S) { host.settings.watchdog_ms = 79; }},
      {"cnp-lossless", [](S, S host, S) { (*host.settings.dscp_to_priority)[48] = 3; }},
      {"class-lossless",
       [](S policy, S, S) {
         policy.classes = {{"nvme", ClassUse::kStorage, {26}, 0}};
       }},
      {"class-elsewhere",
       [](S policy, S, S) {
         policy.classes = {{"nvme", ClassUse::kStorage, {48}, 1}};
       }},
      {"class-with-cnps",
       [](S policy, S, S) {
         policy.classes = {{"nvme", ClassUse::kStorage, {10}, 6}};
       }},
      {"lossless-shared", [](S, S host, S) { (*host.settings.dscp_to_priority)[24] = 3; }},
      {"class-shared", [](S, S host, S) { (*host.settings.priority_to_class)[4] = 3; }},
      {"queue-differs", [](S, S, S leaf) { (*leaf.settings.pause_to_queue)[3] = 2; }},
      {"buffer-shared", [](S, S host, S) { (*host.settings.priority_to_buffer)[5] = 1; }},
      {"buffer-empty", [](S, S host, S) { (*host.settings.buffer_bytes)[1] = 0; }},
      {"queue-lossy", [](S, S, S leaf) { leaf.settings.lossy_queues = PrioritySet{3}; }},
      {"ets-sum", [](S, S host, S) { (*host.settings.class_percent)[0] = 40; }},
      {"ets-starved", [](S, S host, S) { host.settings.class_percent = Numbers{100, 0, 0, 0, 0, 0, 0, 0}; }},
      {"ets-strict-data", [](S, S host, S) { (*host.settings.class_algorithm)[3] = Algorithm::kStrict; }},
      {"ets-rest-first",
       [](S policy, S, S) {
         policy = GoodPolicy({.ets = {{3, Algorithm::kEts, 100}}});
       }},
      {"ets-rest-starved", [](S policy, S, S) { policy = GoodPolicy({.rdma_percent = 100}); }},
      {"cnp-waits", [](S, S host, S) { (*host.settings.class_algorithm)[6] = Algorithm::kEts; }},
      {"cnp-two-priorities", [](S, S host, S) { host.settings.cnp_priority = 7; }},
      {"ecn-off", [](S, S, S leaf) { leaf.settings.ecn = PrioritySet{}; }},
      {"ecn-thresholds",
       [](S, S, S leaf) {
         leaf.settings.marking = EcnMarkings{{3, {2000, 2000, 5}}};
       }},
      {"mtu-small", [](S, S, S leaf) { leaf.settings.mtu = 4191; }},
      {"mtu-above-switch", [](S, S, S leaf) { leaf.settings.mtu = 8999; }},
      {"mtu-below-switch", [](S, S host, S) { host.settings.mtu = 4191; }},
      {"mtu-peers", [](S, S host, S) { host.settings.mtu = 4000; }},
      {"mtu-uneven", [](S, S host, S) { host.settings.mtu = 8000; }},
      {"dcbx-firmware", [](S, S host, S) { host.settings.dcbx = Dcbx::kFirmware; }},
      {"switch-data-lossy", [](S, S, S leaf) { (*leaf.settings.dscp_to_priority)[26] = 1; }},
      {"switch-cnp-lossless", [](S, S, S leaf) { (*leaf.settings.dscp_to_priority)[48] = 3; }},
      {"switch-cnp-waits",
       [](S, S, S leaf) { leaf.settings.class_algorithm.emplace().fill(Algorithm::kEts); }},
      {"switch-pauses-other",
       [](S, S, S leaf) {
         (*leaf.settings.dscp_to_priority)[26] = 4;
         leaf.settings.pfc = leaf.settings.watched = leaf.settings.ecn = PrioritySet{4};
       }},
      {"lossless-dscps-differ",
       [](S, S host, S leaf) {
         host.settings.tos.reset();
         host.settings.traffic_class.reset();
         (*leaf.settings.dscp_to_priority)[26] = 1;
         (*leaf.settings.dscp_to_priority)[3] = 3;
       }},
      {"differs-from-policy", [](S, S host, S) { host.settings.cnp_dscp = 49; }},
  };
}

TEST(Lint, FindsEachFaultByItsRuleAndSaysBothFactsAndWhatToDo) {
  std::set<std::string> tried;
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.rule);
    Subject policy = GoodPolicy(), host = GoodHost(), leaf = GoodSwitch(), peer = GoodHost();
    peer.name = "gpu-018 eth2";
    one.spoil(policy, host, leaf);
    const auto findings = Lint({policy, host, peer, leaf});
    EXPECT_THAT(RulesOf(findings), Contains(one.rule));
    for (const Finding& finding : findings) {
      const RuleAbout* about = FindRule(finding.rule);
      ASSERT_NE(about, nullptr);
      EXPECT_EQ(finding.severity, about->severity);
      EXPECT_FALSE(finding.where.empty() || finding.fact.empty() || finding.contrary.empty());
      EXPECT_FALSE(finding.remedy.empty());
    }
    tried.insert(one.rule);
  }
  // Agents report these; the linter passes them on.
  tried.insert({"drift", "not-set", "two-policies", "nic-unfit", "watchdog-nowhere", "infiniband-nowhere",
                "infiniband-differs", "devices-conflict", "devices-refused"});
  for (const RuleAbout& rule : Rules()) EXPECT_THAT(tried, Contains(std::string(rule.id)));
  EXPECT_EQ(Rules().size(), tried.size());
}

// nic-configuration-operator sets ToS 0, CNP DSCP 4, PFC on 3; SONiC's template is what a switch starts with.
TEST(Lint, RefusesTheTwoDefaultsThatContradictEachOther) {
  Subject host;
  host.name = "nic-configuration-operator";
  host.settings.trust = Trust::kDscp;
  host.settings.dscp_to_priority = AllDscps(0);
  for (std::size_t dscp = 0; dscp < kDscps; ++dscp)
    (*host.settings.dscp_to_priority)[dscp] = std::int8_t(dscp / 8);
  host.settings.pfc = PrioritySet{3};
  host.settings.tos = 0;
  host.settings.cnp_dscp = 4;
  host.settings.cnp_priority = 6;
  Subject leaf = GoodSwitch();
  leaf.settings.dscp_to_priority = AllDscps(1);
  for (const auto& [dscp, tc] : {std::pair(3, 3), {4, 4}, {5, 2}, {8, 0}, {46, 5}, {48, 6}}) {
    (*leaf.settings.dscp_to_priority)[std::size_t(dscp)] = std::int8_t(tc);
  }
  leaf.settings.pfc = PrioritySet{3, 4};
  const auto findings = Lint({host, leaf});
  const auto find = [&](std::string_view rule) {
    for (const Finding& finding : findings) {
      if (finding.rule == rule) return finding;
    }
    ADD_FAILURE() << rule;
    return Finding{};
  };
  const Finding cnp = find("switch-cnp-lossless"), data = find("switch-data-lossy");
  EXPECT_EQ(cnp.fact, "CNPs are sent with DSCP 4");
  EXPECT_THAT(cnp.contrary, HasSubstr("DSCP 4 in priority group 4, which has PFC"));
  EXPECT_EQ(cnp.with, "leaf Ethernet0");
  EXPECT_EQ(data.fact, "data is sent with DSCP 0");
  EXPECT_THAT(data.contrary, HasSubstr("priority group 0, and PFC is on for 3,4 only"));
  EXPECT_EQ(find("data-lossy").contrary, "PFC is on for priority 3 only");
  // The right ToS alone does not help on that switch.
  host.settings.tos = 106;
  EXPECT_THAT(Lint({host, leaf}),
              Contains(testing::AllOf(Field(&Finding::rule, "switch-data-lossy"),
                                      Field(&Finding::fact, "data is sent with DSCP 26"))));
}

TEST(Lint, SaysOfASwitchWithoutPfcThatItIsOff) {
  Subject bare;
  bare.name = "leaf Ethernet0";
  bare.end = End::kSwitch;
  bare.settings.pfc = PrioritySet{};
  Subject mapped = GoodSwitch();
  mapped.settings.pfc = mapped.settings.watched = PrioritySet{};
  for (const Subject& leaf : {bare, mapped}) {
    const auto findings = Lint({GoodHost(), leaf});
    ASSERT_THAT(RulesOf(findings), Contains("switch-data-lossy"));
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [](const Finding& one) { return one.rule == "switch-data-lossy"; });
    EXPECT_EQ(found->fact, "data is sent with DSCP 26");
    EXPECT_EQ(found->contrary, "PFC is off on the switch");
  }
}

TEST(Lint, FindsALosslessGroupOfASwitchWithoutRoomAndNoLossyOne) {
  Subject leaf = GoodSwitch();
  leaf.settings.buffer_bytes = Numbers{0, 0, 0, 100'000, 0, 0, 0, 0};
  leaf.settings.lossy_queues = PrioritySet{0, 1, 2};
  EXPECT_THAT(Lint({leaf}), IsEmpty());
  (*leaf.settings.buffer_bytes)[3] = 0;
  const auto findings = Lint({leaf});
  ASSERT_EQ(RulesOf(findings), std::vector<std::string>{"buffer-empty"});
  EXPECT_EQ(findings[0].fact, "priority 3 has PFC");
  EXPECT_EQ(findings[0].remedy, "give that priority group a profile with xoff");
}

TEST(Lint, TakesAWatchdogThatOnlyTellsForNone) {
  Subject leaf = GoodSwitch();
  leaf.settings.watchdog_ms = kWatchdogAlerts;
  const auto findings = Lint({leaf});
  ASSERT_EQ(RulesOf(findings), std::vector<std::string>{"pfc-without-watchdog"});
  EXPECT_EQ(findings[0].contrary, "the watchdog's action is alert, which tells of a storm and stops none");
  EXPECT_THAT(findings[0].remedy, HasSubstr("action to drop"));
}

TEST(Lint, LooksOnceAtPortsThatAreAlike) {
  std::vector<Subject> subjects;
  for (int i = 0; i < 32; ++i) {
    subjects.push_back(GoodSwitch());
    subjects.back().name = "leaf Ethernet" + std::to_string(i * 4);
    subjects.back().settings.mtu = 1500;
  }
  subjects.push_back(GoodSwitch());
  const auto findings = Lint(subjects);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].where, "leaf Ethernet0 and 31 more like it");
  EXPECT_EQ(findings[0].contrary, "RDMA packets carry 1024 bytes there, of 4096");
}

TEST(Lint, ComparesHostsWithAPolicyOnlyWhereThereIsOne) {
  Subject host = GoodHost(), other = GoodPolicy({.mtu = 8900});
  host.settings.mtu = 8000;
  other.name = "LosslessPolicy other";
  EXPECT_THAT(RulesOf(Lint({GoodPolicy(), host})), Contains("differs-from-policy"));
  EXPECT_THAT(RulesOf(Lint({GoodPolicy(), other, host})), testing::Not(Contains("differs-from-policy")));
}

TEST(Lint, HoldsNoMapOfDscpsAgainstAHostThatIsToTrustTheTag) {
  const Subject policy = GoodPolicy({.trust = Trust::kPcp, .pfc = PrioritySet{}});
  Subject host = policy;
  host.name = "gpu-017 eth2";
  host.end = End::kHost;
  host.settings.dscp_to_priority = AllDscps(3);
  EXPECT_THAT(RulesOf(Lint({policy, host})), testing::Not(Contains("differs-from-policy")));
  host.settings.trust = Trust::kDscp;
  EXPECT_THAT(RulesOf(Lint({policy, host})), Contains("differs-from-policy"));
}

TEST(Lint, ComparesReportedHostsWithThoseOfTheirPolicyOnly) {
  Subject compute = GoodHost(), peer = GoodHost(), storage = GoodHost();
  compute.reported_for = peer.reported_for = "roce";
  storage.reported_for = "nvme";
  peer.name = "gpu-018 eth2";
  storage.name = "gpu-017 eth9";
  storage.settings.mtu = 4200;
  EXPECT_THAT(Lint({GoodPolicy(), compute, peer, storage}), IsEmpty());
  peer.settings.mtu = 8000;
  EXPECT_THAT(RulesOf(Lint({GoodPolicy(), compute, peer, storage})), testing::ElementsAre("mtu-uneven"));
}

// 9000 and 9216 are both usual, and 4096 bytes of RDMA fit either.
TEST(Lint, OnlyWarnsOfMtusThatAreTheSameToRdma) {
  Subject host = GoodHost(), peer = GoodHost();
  peer.name = "gpu-018 eth2";
  peer.settings.mtu = 9216;
  auto findings = Lint({host, peer});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "mtu-uneven");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_EQ(findings[0].contrary, "its peer's is 9216; RDMA packets carry 4096 bytes at both");
  host.settings.mtu = 4191;
  findings = Lint({host, peer});
  EXPECT_THAT(RulesOf(findings), Contains("mtu-peers"));
  EXPECT_THAT(RulesOf(findings), testing::Not(Contains("mtu-uneven")));
}

TEST(Lint, WarnsOfADscpThatTwoClassesNameAndOfNoneThatOneHas) {
  Policy declared;
  declared.classes = {{"nvme", ClassUse::kStorage, {10, 11}, 1}, {"ssh", ClassUse::kManagement, {12}, 2}};
  EXPECT_THAT(Lint({GoodPolicy(declared)}), IsEmpty());
  declared.classes[1].dscps = {11, 12};
  const auto findings = Lint({GoodPolicy(declared)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, "class-elsewhere");
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_THAT(findings[0].fact, HasSubstr("(nvme) wants priority 1 for DSCP 11"));
  EXPECT_EQ(findings[0].contrary, "DSCP 11 is priority 2");
}

// Priority 0 has all that no other class takes. What a driver is told of a class without a share is: strictly first.
TEST(Lint, SendsNoOrdinaryTrafficBeforeRdmaAndNoneBehindAllOfIt) {
  const auto findings = [](std::vector<EtsShare> ets) {
    Policy declared;
    declared.ets = std::move(ets);
    return Lint({GoodPolicy(declared)});
  };
  auto found = findings({{3, Algorithm::kEts, 100}, {6, Algorithm::kStrict, 0}});
  ASSERT_EQ(RulesOf(found), std::vector<std::string>{"ets-rest-first"});
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[0].fact, "class 3 has 100 % by ETS");
  EXPECT_EQ(found[0].contrary, "ets does not name priority 0, which has no share and goes first");
  found = findings({{0, Algorithm::kStrict, 0}, {3, Algorithm::kEts, 100}, {6, Algorithm::kStrict, 0}});
  ASSERT_EQ(RulesOf(found), std::vector<std::string>{"ets-rest-first"});
  EXPECT_EQ(found[0].contrary, "priority 0 is strict, and goes first");
  found = findings({{0, Algorithm::kEts, 0}, {3, Algorithm::kEts, 100}, {6, Algorithm::kStrict, 0}});
  ASSERT_EQ(RulesOf(found), std::vector<std::string>{"ets-rest-starved"});
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_THAT(findings({{0, Algorithm::kEts, 10}, {3, Algorithm::kEts, 90}, {6, Algorithm::kStrict, 0}}),
              IsEmpty());
  EXPECT_THAT(RulesOf(Lint({GoodPolicy({.rdma_percent = 100})})), testing::ElementsAre("ets-rest-starved"));
  EXPECT_THAT(Lint({GoodPolicy({.rdma_percent = 99})}), IsEmpty());
}

TEST(Lint, WarnsOfStorageBesideCnps) {
  Policy declared;
  declared.classes = {{"nvme", ClassUse::kStorage, {10}, 6}};
  const auto findings = Lint({GoodPolicy(declared)});
  ASSERT_EQ(RulesOf(findings), std::vector<std::string>{"class-with-cnps"});
  EXPECT_EQ(findings[0].fact, "Storage (nvme) is sent in priority 6");
  EXPECT_EQ(findings[0].contrary, "CNPs are sent in priority 6");
  declared.classes = {{"nvme", ClassUse::kStorage, {10}, 5}, {"ssh", ClassUse::kManagement, {12}, 6}};
  EXPECT_THAT(Lint({GoodPolicy(declared)}), IsEmpty());
}

TEST(Lint, LetsAPolicyDoWithoutPfc) {
  EXPECT_THAT(Lint({GoodPolicy({.pfc = PrioritySet{}, .watchdog_ms = kWatchdogOff})}), IsEmpty());
}

TEST(Lint, PutsErrorsFirst) {
  Subject host = GoodHost();
  host.settings.dcbx = Dcbx::kFirmware;  // a warning
  host.settings.mtu = 1500;
  const auto findings = Lint({host});
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].rule, "mtu-small");
  EXPECT_EQ(findings[1].severity, Severity::kWarning);
}

TEST(RdmaMtu, IsThePowerOfTwoThatFits) {
  EXPECT_EQ(rules::RdmaMtu(9000), 4096);
  EXPECT_EQ(rules::RdmaMtu(4192), 4096);
  EXPECT_EQ(rules::RdmaMtu(4191), 2048);
  EXPECT_EQ(rules::RdmaMtu(1500), 1024);
  EXPECT_EQ(rules::RdmaMtu(351), 0);
}

TEST(Rules, AreWordedForPeople) {
  std::set<std::string_view> ids;
  for (const RuleAbout& rule : Rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_FALSE(rule.forbids.empty() || rule.why.empty() || rule.remedy.empty()) << rule.id;
    EXPECT_EQ(rule.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string_view::npos);
  }
  EXPECT_EQ(FindRule("no-such-rule"), nullptr);
}

}  // namespace
}  // namespace heddle::lossless
