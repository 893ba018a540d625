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

TEST(Nvue, TurnsPausesOffWithoutAProfileOfThem) {
  const auto lossy = Rendered({.pfc = lossless::PrioritySet{}, .watchdog_ms = lossless::kWatchdogOff}, {});
  const std::string text = NvueLines("x\nnv set system reboot", {{"swp1", lossy}});
  EXPECT_THAT(text, Not(HasSubstr("qos pfc ")));
  EXPECT_THAT(text, Not(HasSubstr("\nnv set system"))) << "no name makes a line of its own";
  EXPECT_THAT(text, HasSubstr("# cableMetres: left as it is"));
}

}  // namespace
}  // namespace heddle::formats
