// Rules about a sender (a host, or what a policy makes of one) and the switch that it is cabled to.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "lossless/lint_rules.h"

namespace heddle::lossless::rules {
namespace {

DscpMap LosslessDscps(const PortSettings& settings) {
  DscpMap map = AllDscps(kNotSaid);
  for (int dscp = 0; dscp < kDscps; ++dscp) {
    if (IsLossless(settings, dscp) == std::optional(true)) map[std::size_t(dscp)] = 0;
  }
  return map;
}

// What one end does with a DSCP: "DSCP 26: priority 3, PFC 3".
std::string OfDscp(const PortSettings& settings, int dscp) {
  const int priority = PriorityOf(settings, dscp);
  return fmt::format(
      "DSCP {}: {}, {}", dscp,
      priority == kNotSaid ? std::string("priority not known") : fmt::format("priority {}", priority),
      settings.pfc ? "PFC " + Text(*settings.pfc) : std::string("PFC not known"));
}

void SwitchProtectsData(const Subject& sender, const Subject& leaf, Report& report) {
  const auto dscp = DataDscp(sender.settings);
  if (!dscp || IsLossless(leaf.settings, *dscp) != std::optional(false)) return;
  std::string contrary = "PFC is off on the switch";
  if (!leaf.settings.pfc->empty()) {
    contrary = fmt::format("the switch puts DSCP {} in priority group {}, and PFC is on for {} only", *dscp,
                           PriorityOf(leaf.settings, *dscp), Text(*leaf.settings.pfc));
  }
  report.FindBetween("switch-data-lossy", Setting::kDscpToPriority, OfDscp(sender.settings, *dscp),
                     OfDscp(leaf.settings, *dscp), fmt::format("data is sent with DSCP {}", *dscp),
                     std::move(contrary));
}

void SwitchLetsCnpsPass(const Subject& sender, const Subject& leaf, Report& report) {
  const auto& dscp = sender.settings.cnp_dscp;
  if (!dscp || IsLossless(leaf.settings, *dscp) != std::optional(true)) return;
  report.FindBetween("switch-cnp-lossless", Setting::kCnpDscp, OfDscp(sender.settings, *dscp),
                     OfDscp(leaf.settings, *dscp), fmt::format("CNPs are sent with DSCP {}", *dscp),
                     fmt::format("the switch puts DSCP {} in priority group {}, which has PFC", *dscp,
                                 PriorityOf(leaf.settings, *dscp)));
}

// By the queue of the DSCP's traffic class.
void SwitchSendsCnpsFirst(const Subject& sender, const Subject& leaf, Report& report) {
  const auto& dscp = sender.settings.cnp_dscp;
  const PortSettings& settings = leaf.settings;
  if (!dscp || !settings.dscp_to_priority || !settings.priority_to_queue || !settings.class_algorithm) return;
  const int tc = (*settings.dscp_to_priority)[std::size_t(*dscp)];
  const int queue = tc == kNotSaid ? kNotSaid : (*settings.priority_to_queue)[std::size_t(tc)];
  if (queue == kNotSaid || (*settings.class_algorithm)[std::size_t(queue)] != Algorithm::kEts) return;
  report.FindBetween(
      "switch-cnp-waits", Setting::kClassAlgorithm, fmt::format("CNP DSCP {}", *dscp),
      fmt::format("DSCP {}: queue {}, ETS", *dscp, queue), fmt::format("CNPs are sent with DSCP {}", *dscp),
      fmt::format("the switch has DSCP {} in queue {}, which waits for its share", *dscp, queue));
}

void BothPauseTheSame(const Subject& sender, const Subject& leaf, Report& report) {
  const auto dscp = DataDscp(sender.settings);
  if (!dscp || IsLossless(sender.settings, *dscp) != std::optional(true) ||
      IsLossless(leaf.settings, *dscp) != std::optional(true)) {
    return;
  }
  const int here = PriorityOf(sender.settings, *dscp), there = PriorityOf(leaf.settings, *dscp);
  if (here == there) return;
  report.FindBetween("switch-pauses-other", Setting::kPfc, OfDscp(sender.settings, *dscp),
                     OfDscp(leaf.settings, *dscp),
                     fmt::format("the host sends DSCP {} in priority {}", *dscp, here),
                     fmt::format("the switch pauses priority {} for it", there));
}

// Where nobody says which DSCP data has.
void SomeDscpIsLossless(const Subject& sender, const Subject& leaf, Report& report) {
  if (DataDscp(sender.settings)) return;
  const DscpMap here = LosslessDscps(sender.settings), there = LosslessDscps(leaf.settings);
  const std::string ours = DscpRanges(here, 0), theirs = DscpRanges(there, 0);
  if (ours.empty() || theirs.empty()) return;
  for (std::size_t dscp = 0; dscp < here.size(); ++dscp) {
    if (here[dscp] == 0 && there[dscp] == 0) return;
  }
  report.FindBetween("lossless-dscps-differ", Setting::kDscpToPriority, "lossless DSCPs " + ours,
                     "lossless DSCPs " + theirs, "the host's lossless DSCPs are " + ours,
                     "the switch's lossless DSCPs are " + theirs);
}

void PacketsFit(const Subject& sender, const Subject& leaf, Report& report) {
  const auto &here = sender.settings.mtu, &there = leaf.settings.mtu;
  if (!here || !there) return;
  if (*here > *there) {
    report.FindBetween("mtu-above-switch", Setting::kMtu, std::to_string(*here), std::to_string(*there),
                       fmt::format("the host's MTU is {}", *here), fmt::format("the switch's is {}", *there));
  } else if (RdmaMtu(*here) < RdmaMtu(*there)) {
    report.FindBetween("mtu-below-switch", Setting::kMtu, std::to_string(*here), std::to_string(*there),
                       fmt::format("the host's MTU is {}: {} bytes of RDMA", *here, RdmaMtu(*here)),
                       fmt::format("the switch's is {}: {} bytes", *there, RdmaMtu(*there)));
  }
}

constexpr std::array<PairRule, 6> kOfTwoEnds{SwitchProtectsData, SwitchLetsCnpsPass, SwitchSendsCnpsFirst,
                                             BothPauseTheSame,   SomeDscpIsLossless, PacketsFit};

}  // namespace

std::span<const PairRule> OfTwoEnds() {
  return kOfTwoEnds;
}

}  // namespace heddle::lossless::rules
