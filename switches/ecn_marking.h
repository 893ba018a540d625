#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lossless/policy.h"
#include "lossless/port_settings.h"

namespace heddle::switches {

// How a switch's port tells senders to slow down (ECN, WRED) before it pauses them. No packet is lost where it does
// not, so that contradicts no cable (where nobody says it, the cable is unproved); but then PFC alone holds senders
// back, and it stops whole ports.
enum class MarkingReason : std::uint8_t { kOff, kThresholds, kOtherThanPolicy };  // the gravest first
std::string_view MarkingReasonName(MarkingReason reason);                         // "Off", "Thresholds", …

struct MarkingFault {
  MarkingReason reason = MarkingReason::kOff;  // the gravest that is so
  std::string sentence;                        // what is so, without naming the port
  friend bool operator==(const MarkingFault&, const MarkingFault&) = default;
};

// Of the queues that the port's PFC protects; nothing where they are marked in good time, as the policy wants it where
// it says so, or where nobody says how they are marked. Pure and total.
std::optional<MarkingFault> FindMarkingFault(const lossless::PortSettings& port,
                                             const std::optional<lossless::EcnMarking>& wanted);

}  // namespace heddle::switches
