#include "lossless/switch_render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lossless/lint.h"

namespace heddle::lossless {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

SwitchRendering Rendered(const Policy& policy = {}, std::string_view profile = "sonic/v1",
                         const SwitchPortFacts& port = {}) {
  return RenderSwitchPort(*Resolve(policy), *FindSwitchProfile(profile), port);
}
std::string SourceOf(const SwitchRendering& rendering, Setting setting) {
  for (const SettingSource& source : rendering.sources) {
    if (source.setting == setting) return source.source;
  }
  return "";
}
std::string GapOf(const SwitchRendering& rendering, Setting setting) {
  for (const Gap& gap : rendering.gaps) {
    if (gap.setting == setting) return gap.reason;
  }
  return "";
}

TEST(SwitchRendering, HasTheClassesOfThePolicy) {
  const SwitchRendering rendering = Rendered();
  const PortSettings& port = rendering.settings;
  EXPECT_EQ(port.trust, Trust::kDscp);
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 3), "26");
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 6), "48");
  EXPECT_EQ(DscpRanges(*port.dscp_to_priority, 0), "0-25,27-47,49-63");
  EXPECT_EQ(port.priority_to_group, (PriorityTable{0, 0, 0, 3, 0, 0, 0, 0}));
  EXPECT_EQ(port.priority_to_queue, (PriorityTable{0, 0, 0, 3, 0, 0, 6, 0}));
  EXPECT_EQ(port.pause_to_queue, Identity());
  EXPECT_EQ(port.pfc, PrioritySet{3});
  EXPECT_EQ(port.watched, PrioritySet{3});
  EXPECT_EQ(port.watchdog_ms, 200);
  EXPECT_EQ(port.ecn, PrioritySet{3});
  EXPECT_EQ(port.marking, (EcnMarkings{{3, {1'048'576, 2'097'152, 5}}}));
  EXPECT_EQ((*port.class_algorithm)[6], Algorithm::kStrict);
  EXPECT_EQ((*port.class_percent)[3], 50);
  EXPECT_EQ(port.mtu, 9216);
}

// Missing is never a default: each setting has its source, or is a gap with a reason.
TEST(SwitchRendering, SaysWhereEachValueComesFromOrWhyItIsMissing) {
  for (const SwitchProfile& profile : SwitchProfiles()) {
    for (const PortFacing facing : {PortFacing::kHost, PortFacing::kFabric}) {
      const SwitchRendering rendering = Rendered({}, profile.name, {facing, 400'000, std::nullopt});
      ForEachSetting([&](Setting setting, auto member) {
        const bool there = (rendering.settings.*member).has_value();
        EXPECT_EQ(there, !SourceOf(rendering, setting).empty())
            << profile.name << " " << SettingName(setting);
        if (!GapOf(rendering, setting).empty()) {
          EXPECT_FALSE(there) << SettingName(setting);
        }
      });
      EXPECT_NE(GapOf(rendering, Setting::kCableMetres), "");
      EXPECT_NE(GapOf(rendering, Setting::kBufferBytes), "");
    }
    for (const ProfileValue& value : profile.sources) EXPECT_FALSE(value.source.empty());
  }
  EXPECT_EQ(FindSwitchProfile("sonic/v0"), nullptr);
}

TEST(SwitchRendering, PassesTheLinterBesideTheHostOfItsPolicy) {
  for (const SwitchProfile& profile : SwitchProfiles()) {
    const auto resolved = *Resolve({});
    Subject leaf{"leaf", End::kSwitch, Rendered({}, profile.name).settings, std::nullopt, {}, ""};
    EXPECT_THAT(Lint({SubjectOf("LosslessPolicy roce", resolved), leaf}), IsEmpty()) << profile.name;
  }
}

TEST(SwitchRendering, SizesHeadroomByCableAndSpeedWhereTheChipIsKnown) {
  const SwitchRendering host = Rendered({.cable_metres = 3}, "spectrum/v1", {PortFacing::kHost, 400'000, {}});
  const SwitchRendering fabric =
      Rendered({.cable_metres = 3}, "spectrum/v1", {PortFacing::kFabric, 400'000, 40});
  ASSERT_TRUE(host.headroom && fabric.headroom);
  EXPECT_EQ(host.settings.cable_metres, 3);
  EXPECT_EQ(fabric.settings.cable_metres, 40);
  EXPECT_GT(fabric.headroom->xoff_bytes, host.headroom->xoff_bytes);
  EXPECT_EQ((*host.settings.buffer_bytes)[3], host.headroom->xoff_bytes);
  EXPECT_EQ((*host.settings.buffer_bytes)[0], kNotSaid);
  EXPECT_THAT(SourceOf(fabric, Setting::kBufferBytes), HasSubstr("40 m at 400 Gb/s with an MTU of 9216"));
  EXPECT_EQ(SourceOf(fabric, Setting::kCableMetres), "said of this fabric port");
  // The policy's length is of hosts' cables, and of no others.
  EXPECT_THAT(GapOf(Rendered({.cable_metres = 3}, "spectrum/v1", {PortFacing::kFabric, 400'000, {}}),
                    Setting::kCableMetres),
              HasSubstr("between switches"));
  EXPECT_THAT(GapOf(Rendered({}, "tomahawk/v1", {PortFacing::kHost, 400'000, 3}), Setting::kBufferBytes),
              HasSubstr("pg_profile_lookup.ini"));
  EXPECT_THAT(GapOf(Rendered({}, "spectrum/v1", {PortFacing::kHost, 1'600'000, 3}), Setting::kBufferBytes),
              HasSubstr("1600000 Mb/s"));
}

TEST(SwitchRendering, PutsThePolicysThresholdsBeforeTheSwitchs) {
  EXPECT_EQ(Rendered({}, "spectrum/v1").settings.marking, (EcnMarkings{{3, {150'000, 1'500'000, 100}}}));
  const SwitchRendering declared = Rendered({.marking = EcnMarking{1, 2, 3}}, "spectrum/v1");
  EXPECT_EQ(declared.settings.marking, (EcnMarkings{{3, {1, 2, 3}}}));
  EXPECT_EQ(SourceOf(declared, Setting::kMarking), "the policy");
}

TEST(SwitchRendering, TakesAnotherPriorityAndOtherClasses) {
  Policy policy;
  policy.rdma_priority = 5;
  policy.classes = {{"nvme", ClassUse::kStorage, {10}, 1}};
  policy.ets = {{0, Algorithm::kEts, 20},
                {1, Algorithm::kEts, 30},
                {5, Algorithm::kEts, 50},
                {6, Algorithm::kStrict, 0}};
  const PortSettings port = Rendered(policy).settings;
  EXPECT_EQ(port.priority_to_group, (PriorityTable{0, 0, 0, 0, 0, 5, 0, 0}));
  EXPECT_EQ(port.priority_to_queue, (PriorityTable{0, 1, 0, 0, 0, 5, 6, 0}));
  EXPECT_EQ((*port.dscp_to_priority)[10], 1);
  EXPECT_EQ(port.pfc, PrioritySet{5});
}

TEST(SwitchRendering, GivesLossyPacketsAGroupThatIsNotPaused) {
  Policy policy;
  policy.rdma_priority = 0;
  const PortSettings port = Rendered(policy).settings;
  EXPECT_EQ(port.priority_to_group, (PriorityTable{0, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(SwitchRendering, WatchesNothingWhereNothingIsPaused) {
  const SwitchRendering rendering = Rendered({.pfc = PrioritySet{}, .watchdog_ms = kWatchdogOff});
  EXPECT_EQ(rendering.settings.watchdog_ms, kWatchdogOff);
  EXPECT_EQ(rendering.settings.watched, PrioritySet{});
  EXPECT_FALSE(rendering.settings.buffer_bytes);
  EXPECT_EQ(rendering.settings.priority_to_group, (PriorityTable{0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(SwitchRendering, LeavesAGapWhereThePolicyTrustsTheTagOrWantsMoreThanASwitchTakes) {
  const SwitchRendering tag = Rendered({.trust = Trust::kPcp});
  EXPECT_FALSE(tag.settings.dscp_to_priority || tag.settings.pfc);
  EXPECT_THAT(GapOf(tag, Setting::kDscpToPriority), HasSubstr("set trust to DSCP"));
  const SwitchRendering large = Rendered({.mtu = 9500});
  EXPECT_FALSE(large.settings.mtu);
  EXPECT_THAT(GapOf(large, Setting::kMtu),
              HasSubstr("hosts' MTU of 9500 is more than the switch takes, 9216"));
}

}  // namespace
}  // namespace heddle::lossless
