#include "switches/ecn_marking.h"

#include <fmt/format.h>

#include <array>

#include "lossless/marking.h"

namespace heddle::switches {
namespace {

using lossless::EcnMarking;

std::string TextOf(const EcnMarking& marking) {
  return fmt::format("from {} to {} bytes with up to {} %", marking.min_bytes, marking.max_bytes,
                     marking.probability_percent);
}

constexpr std::array<std::string_view, 3> kReasonNames{"Off", "Thresholds", "OtherThanPolicy"};

}  // namespace

std::string_view MarkingReasonName(MarkingReason reason) {
  return kReasonNames[std::size_t(reason)];
}

std::optional<MarkingFault> FindMarkingFault(const lossless::PortSettings& port,
                                             const std::optional<EcnMarking>& wanted) {
  if (!port.pfc) return std::nullopt;
  if (const lossless::PrioritySet unmarked = lossless::UnmarkedOf(port); !unmarked.empty())
    return MarkingFault{MarkingReason::kOff,
                        fmt::format("lossless priority {} is not marked", unmarked.Members().front())};
  if (!port.marking) return std::nullopt;
  std::optional<MarkingFault> other;
  for (const int priority : port.pfc->Members()) {
    const auto found = port.marking->find(priority);
    if (found == port.marking->end()) continue;
    const EcnMarking& marking = found->second;
    if (lossless::LeavesNoRoom(marking))
      return MarkingFault{MarkingReason::kThresholds,
                          fmt::format("priority {} is marked {}, which leaves it no room to grow", priority,
                                      TextOf(marking))};
    if (wanted && *wanted != marking && !other)
      other = MarkingFault{MarkingReason::kOtherThanPolicy,
                           fmt::format("priority {} is marked {}, and the policy wants {}", priority,
                                       TextOf(marking), TextOf(*wanted))};
  }
  return other;
}

}  // namespace heddle::switches
