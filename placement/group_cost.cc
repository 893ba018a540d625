#include "placement/group_cost.h"

#include <algorithm>

#include "placement/constants.h"

namespace heddle::placement {

GroupCost::GroupCost(const Parallelism& parallelism, const ModelHints& model)
    : bytes_(BytesPerStep(parallelism, model)) {}

double GroupCost::Micros(Axis axis, int size, const GroupTally& tally) {
  Known& known = known_[std::size_t(axis)];
  if (known.micros < 0 || !(known.tally == tally)) known = {tally, Compute(axis, size, tally)};
  return known.micros;
}

// A ring collective passes every edge but one in each pass; the chain's slowest pair sets its pace.
double GroupCost::Compute(Axis axis, int size, const GroupTally& tally) const {
  const auto a = std::size_t(axis);
  const std::int64_t mbps = std::min(tally.near_mbps, tally.net_mbps);
  const double latency = axis != Axis::kPp ? double(tally.tenths_us) * (size - 1) / size + kRingBaseTenths
                                           : double(tally.tenths_us) / (size - 1);
  return bytes_.bytes[a] * 8 / double(mbps) + double(bytes_.messages[a]) * latency / 10;
}

}  // namespace heddle::placement
