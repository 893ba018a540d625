#include "lossless/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lossless/profiles.h"
#include "lossless/render.h"

namespace heddle::lossless {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string SourceOf(const ResolvedPolicy& policy, std::string_view field) {
  for (const Provenance& one : policy.provenance) {
    if (one.field == field) return one.source;
  }
  return "";
}

TEST(Policy, OfNothingIsTheGenericProfile) {
  const auto resolved = Resolve({});
  ASSERT_TRUE(resolved);
  const Policy& policy = resolved->policy;
  EXPECT_EQ(resolved->profile, "generic/v1");
  EXPECT_EQ(policy.rdma_dscp, 26);
  EXPECT_EQ(policy.rdma_priority, 3);
  EXPECT_EQ(policy.cnp_dscp, 48);
  EXPECT_EQ(policy.cnp_priority, 6);
  EXPECT_EQ(policy.pfc, PrioritySet{3});
  EXPECT_EQ(policy.ecn, PrioritySet{3});
  EXPECT_EQ(policy.tos, 106);
  EXPECT_EQ(policy.traffic_class, 106);
  EXPECT_EQ(policy.watchdog_ms, kWatchdogAuto);
  EXPECT_EQ(policy.ets, (std::vector<EtsShare>{
                            {0, Algorithm::kEts, 50}, {3, Algorithm::kEts, 50}, {6, Algorithm::kStrict, 0}}));
  EXPECT_THAT(SourceOf(*resolved, "rdma.dscp"), HasSubstr("generic/v1: NVIDIA Cumulus Linux"));
  EXPECT_EQ(SourceOf(*resolved, "pfcPriorities"), "follows rdma.priority");
}

TEST(Policy, FollowsWhatIsDeclared) {
  Policy declared;
  declared.rdma_dscp = 34;
  declared.rdma_priority = 4;
  const auto resolved = Resolve(declared);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->policy.pfc, PrioritySet{4});
  EXPECT_EQ(resolved->policy.ecn, PrioritySet{4});
  EXPECT_EQ(resolved->policy.tos, 138);
  EXPECT_EQ(resolved->policy.traffic_class, 138);
  EXPECT_EQ(resolved->policy.ets[1].priority, 4);
  EXPECT_EQ(SourceOf(*resolved, "rdma.dscp"), "the policy");
  EXPECT_EQ(SourceOf(*resolved, "classes"), "") << "there is none";
  declared.classes = {{"nvme", ClassUse::kStorage, {10}, 1}};
  EXPECT_EQ(SourceOf(*Resolve(declared), "classes"), "the policy");
}

TEST(Policy, SaysOfInfiniBandWhatItWasGivenAndOnlyToInfiniBand) {
  Policy declared;
  EXPECT_TRUE(Resolve(declared)->policy.infiniband.empty())
      << "no profile knows the levels of a subnet manager";
  declared.infiniband = {5, true};
  const auto resolved = Resolve(declared);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(SourceOf(*resolved, "infiniBand.serviceLevel"), "the policy");
  EXPECT_EQ(SourceOf(*resolved, "infiniBand.adaptiveRouting"), "the policy");
  EXPECT_EQ(Render(*resolved, {topology::Transport::kInfiniBand, ""}).infiniband, declared.infiniband);
  for (const auto transport :
       {topology::Transport::kRoce, topology::Transport::kEfa, topology::Transport::kEthernet})
    EXPECT_TRUE(Render(*resolved, {transport, ""}).infiniband.empty());
  EXPECT_EQ(Text(declared.infiniband), "service level 5, adaptive routing on");
  EXPECT_EQ(Text({std::nullopt, false}), "adaptive routing off");
  EXPECT_EQ(Text(InfiniBand{}), "nothing");
}

TEST(Policy, KeepsWhatIsDeclaredEvenIfItContradicts) {
  Policy declared;
  declared.tos = 0;
  declared.pfc = PrioritySet{3, 4};
  declared.ets = {{3, Algorithm::kEts, 60}};
  const auto resolved = Resolve(declared);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(resolved->policy.tos, 0);
  EXPECT_EQ(resolved->policy.traffic_class, 0) << "NCCL's follows rdma_cm's";
  EXPECT_EQ(resolved->policy.pfc, (PrioritySet{3, 4}));
  EXPECT_EQ(resolved->policy.ets.size(), 1u);
}

TEST(Policy, NamesTheProfilesThatThereAre) {
  Policy declared;
  declared.profile = "connectx-7";
  const auto resolved = Resolve(declared);
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().code, base::Code::kNotFound);
  EXPECT_THAT(resolved.error().message, HasSubstr("connectx-7/v1"));
}

TEST(Profiles, HaveASourceForEachValueAndAValueForEachSource) {
  std::set<std::string> names;
  for (const Profile& profile : Profiles()) {
    SCOPED_TRACE(profile.name);
    EXPECT_TRUE(names.insert(profile.name).second);
    EXPECT_THAT(profile.name, HasSubstr("/v"));
    Policy named;
    named.profile = profile.name;
    const auto resolved = Resolve(named);
    ASSERT_TRUE(resolved);
    std::set<std::string_view> sourced;
    for (const ProfileValue& value : profile.sources) {
      EXPECT_FALSE(value.source.empty());
      EXPECT_TRUE(sourced.insert(value.field).second) << value.field;
      EXPECT_EQ(SourceOf(*resolved, value.field), profile.name + ": " + std::string(value.source));
    }
    for (const Provenance& one : resolved->provenance) {
      EXPECT_FALSE(one.source.empty());
      EXPECT_FALSE(one.source == profile.name + ": ") << one.field << " has no source";
    }
    EXPECT_EQ(profile.no_watchdog.empty(), resolved->policy.watchdog_ms.has_value());
  }
  for (const char* name : {"connectx-6/v1", "connectx-7/v1", "connectx-8/v1", "bluefield-3/v1", "thor2/v1"}) {
    EXPECT_NE(FindProfile(name), nullptr) << name;
  }
  EXPECT_EQ(FindProfile("thor2/v1")->values.cnp_priority, 7);
}

PortSettings Rendered(const Policy& declared) {
  const auto resolved = Resolve(declared);
  EXPECT_TRUE(resolved);
  const Rendering rendering = Render(*resolved, {topology::Transport::kRoce, ""});
  EXPECT_TRUE(rendering.settings) << rendering.reason;
  return *rendering.settings;
}

TEST(Render, MapsEveryDscpAndOnlyRdmaToTheLosslessPriority) {
  Policy declared;
  declared.classes = {{"nvme", ClassUse::kStorage, {10, 12}, 4}};
  const PortSettings port = Rendered(declared);
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 3), "26");
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 4), "10,12");
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 6), "48");
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 0), "0-9,11,13-25,27-47,49-63");
}

// NCCL's priority in the tag is read off the map, which no port is held against.
TEST(Render, MapsDscpsWhereTheTagIsTrustedToo) {
  const PortSettings port = Rendered({.trust = Trust::kPcp, .pfc = PrioritySet{}});
  EXPECT_EQ(PriorityOf(port, *DataDscp(port)), 3);
  EXPECT_EQ(WithWhatFollows(port).trust, Trust::kPcp);
  EXPECT_FALSE(WithWhatFollows(port).dscp_to_priority);
  EXPECT_TRUE(WithWhatFollows(Rendered({})).dscp_to_priority);
}

TEST(Render, GivesEachNamedPriorityItsTrafficClass) {
  const PortSettings port = Rendered({});
  EXPECT_EQ(*port.priority_to_class, (PriorityTable{0, 0, 0, 3, 0, 0, 6, 0}));
  EXPECT_EQ((*port.class_algorithm)[6], Algorithm::kStrict);
  EXPECT_EQ((*port.class_algorithm)[3], Algorithm::kEts);
  EXPECT_EQ((*port.class_algorithm)[1], Algorithm::kAny);
  EXPECT_EQ(*port.class_percent, (Numbers{50, -1, -1, 50, -1, -1, -1, -1}));
}

TEST(Render, LeavesOutWhatNobodyAskedFor) {
  const PortSettings port = Rendered({});
  EXPECT_FALSE(port.buffer_bytes);
  EXPECT_FALSE(port.cable_metres);
  EXPECT_FALSE(port.dcqcn);
  EXPECT_FALSE(port.marking) << "switches mark, hosts do not";
}

TEST(Render, SaysWhyATransportHasNothingToSet) {
  const auto resolved = Resolve({});
  for (const auto transport :
       {topology::Transport::kInfiniBand, topology::Transport::kEfa, topology::Transport::kEthernet}) {
    const Rendering rendering = Render(*resolved, {transport, ""});
    EXPECT_FALSE(rendering.settings);
    EXPECT_FALSE(rendering.reason.empty());
  }
  EXPECT_THAT(Render(*resolved, {topology::Transport::kInfiniBand, ""}).reason, HasSubstr("link credits"));
}

TEST(Render, RefusesAProfileForAnotherNic) {
  Policy declared;
  declared.profile = "connectx-7/v1";
  const auto resolved = Resolve(declared);
  EXPECT_TRUE(Render(*resolved, {topology::Transport::kRoce, "15b3:1021"}).settings);
  EXPECT_TRUE(Render(*resolved, {topology::Transport::kRoce, ""}).settings);
  const Rendering other = Render(*resolved, {topology::Transport::kRoce, "14e4:1760"});
  EXPECT_FALSE(other.settings);
  EXPECT_TRUE(other.refused);
  EXPECT_THAT(other.reason, HasSubstr("not for a NIC of PCI id 14e4:1760: name thor2/v1"));
  EXPECT_THAT(Render(*resolved, {topology::Transport::kRoce, "ffff:0001"}).reason,
              HasSubstr("another profile"));
  EXPECT_FALSE(Render(*resolved, {topology::Transport::kInfiniBand, "14e4:1760"}).refused)
      << "not applicable";
}

TEST(Render, RefusesADriverThatCannotBeTold) {
  const auto resolved = Resolve({});
  for (const char* driver : {"ice", "idpf", "ionic", "mana", "mlx4_core"}) {
    const Rendering rendering = Render(*resolved, {topology::Transport::kRoce, "", driver});
    EXPECT_TRUE(rendering.refused) << driver;
    EXPECT_FALSE(rendering.settings);
    EXPECT_THAT(rendering.reason, HasSubstr("leave this NIC out of the policy")) << driver;
  }
  for (const char* driver : {"mlx5_core", "bnxt_en", "hns3", ""})
    EXPECT_TRUE(Render(*resolved, {topology::Transport::kRoce, "", driver}).settings) << driver;
}

TEST(Render, LeavesOutWhatADriverDoesWithout) {
  Policy declared;
  declared.cable_metres = 7;
  declared.dcqcn = Dcqcn{{DcqcnParameter::kRpAiRate, 5}};
  const auto gaps = [](const Policy& policy, const char* driver) {
    std::vector<Setting> settings;
    for (const Gap& gap : Render(*Resolve(policy), {topology::Transport::kRoce, "", driver}).gaps)
      settings.push_back(gap.setting);
    return settings;
  };
  EXPECT_THAT(gaps(declared, "mlx5_core"), IsEmpty());
  EXPECT_THAT(gaps(declared, ""), IsEmpty());
  EXPECT_THAT(gaps(declared, "bnxt_en"),
              testing::ElementsAre(Setting::kWatchdogMs, Setting::kCableMetres, Setting::kDcqcn));
  EXPECT_THAT(gaps({.pfc = PrioritySet{}}, "bnxt_en"), IsEmpty()) << "nothing pauses";
}

TEST(Render, NamesTheWatchdogThatANicLacks) {
  Policy declared;
  declared.profile = "thor2/v1";
  const Rendering rendering = Render(*Resolve(declared), {topology::Transport::kRoce, "14e4:1760"});
  ASSERT_EQ(rendering.gaps.size(), 1u);
  EXPECT_EQ(rendering.gaps[0].setting, Setting::kWatchdogMs);
  EXPECT_THAT(rendering.gaps[0].reason, HasSubstr("bnxt_en"));
  EXPECT_THAT(Render(*Resolve({}), {topology::Transport::kRoce, ""}).gaps, IsEmpty());
}

}  // namespace
}  // namespace heddle::lossless
