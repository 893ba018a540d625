#include "formats/nvue.h"

#include <gmock/gmock.h>

namespace heddle::formats {
namespace {

using lossless::PortFacing;
using testing::HasSubstr;
using testing::Not;

lossless::SwitchRendering Rendered(const lossless::Policy& policy, const lossless::SwitchPortFacts& facts) {
  return lossless::RenderSwitchPort(*lossless::Resolve(policy), *lossless::FindSwitchProfile("spectrum/v1"),
                                    facts);
}

TEST(Nvue, SaysInCommandsWhatItCanAndInCommentsWhatItCannot) {
  const auto host = Rendered({.cable_metres = 3}, {PortFacing::kHost, 400'000, {}});
  const auto fabric = Rendered({}, {PortFacing::kFabric, 400'000, 40});
  const std::string text = NvueLines("roce", {{"swp1", host}, {"swp2", host}, {"swp64", fabric}});
  for (const char* line :
       {"nv set qos mapping heddle-roce trust l3\n",
        "nv set qos mapping heddle-roce dscp 26 switch-priority 3\n",
        "nv set qos mapping heddle-roce dscp 48 switch-priority 6\n",
        "nv set interface swp1,swp2 qos mapping profile heddle-roce\n",
        "nv set qos pfc heddle-roce switch-priority 3\n", "nv set qos pfc heddle-roce cable-length 3\n",
        "nv set qos pfc heddle-roce-2 cable-length 40\n",
        "nv set interface swp64 qos pfc profile heddle-roce-2\n",
        "nv set qos egress-scheduler heddle-roce traffic-class 6 mode strict\n",
        "nv set qos egress-scheduler heddle-roce traffic-class 3 bw-percent 50\n",
        "nv set qos congestion-control heddle-roce traffic-class 3 min-threshold 150000\n",
        "nv set interface swp1,swp2 link mtu 9216\n",
        "nv set qos egress-queue-mapping default-global switch-priority 3 traffic-class 3\n",
        "nv set qos pfc-watchdog robustness 3\n", "# for ALL ports",
        "# priorityToGroup, pauseToQueue: NVUE has no command", "# bufferBytes: left to cable-length"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("\nnv config apply")));
  // Nothing but commands, comments and blank lines.
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    EXPECT_TRUE(line.empty() || line.starts_with("# ") || line.starts_with("nv set ")) << line;
    rest.remove_prefix(line.size() + 1);
  }
}

// A comment with its source in brackets stands above each block.
void ExpectASourceOfEachLine(const std::string& text) {
  bool sourced = false;
  int commands = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.empty()) {
      sourced = false;
    } else if (line.starts_with("# ")) {
      sourced = line.find(" (") != std::string_view::npos && line.ends_with(")");
    } else {
      EXPECT_TRUE(sourced) << line;
      ++commands;
    }
    rest.remove_prefix(line.size() + 1);
  }
  EXPECT_GT(commands, 0);
}

TEST(Nvue, SaysOfEachLineWhoSaysSo) {
  for (const lossless::SwitchProfile& profile : lossless::SwitchProfiles()) {
    for (const lossless::Policy& policy : {lossless::Policy{}, lossless::Policy{.cable_metres = 3},
                                           lossless::Policy{.pfc = lossless::PrioritySet{}},
                                           lossless::Policy{.trust = lossless::Trust::kPcp}}) {
      SCOPED_TRACE(profile.name);
      const auto rendering =
          lossless::RenderSwitchPort(*lossless::Resolve(policy), profile, {PortFacing::kHost, 400'000, {}});
      ExpectASourceOfEachLine(NvueLines("roce", {{"swp1", rendering}}));
    }
  }
  const std::string text = NvueLines("roce", {{"swp1", Rendered({}, {})}});
  EXPECT_THAT(text,
              HasSubstr("paused for ever stops no fabric (follows pfcPriorities)\nnv set interface swp1 qos "
                        "pfc-watchdog state enable\n"));
  EXPECT_THAT(text,
              HasSubstr("# hosts' packets fit (spectrum/v1: what Cumulus Linux gives a port by itself"));
}

TEST(Nvue, TurnsPausesOffWithoutAProfileOfThem) {
  const auto lossy = Rendered({.pfc = lossless::PrioritySet{}, .watchdog_ms = lossless::kWatchdogOff}, {});
  const std::string text = NvueLines("x\nnv set system reboot", {{"swp1", lossy}});
  EXPECT_THAT(text, Not(HasSubstr("qos pfc ")));
  EXPECT_THAT(text, Not(HasSubstr("\nnv set system"))) << "no name makes a line of its own";
  EXPECT_THAT(text, HasSubstr("# cableMetres: left as it is"));
}

}  // namespace
}  // namespace heddle::formats
