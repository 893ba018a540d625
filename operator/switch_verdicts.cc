#include "operator/switch_verdicts.h"

#include <algorithm>
#include <chrono>

#include "operator/kept_verdicts.h"

namespace heddle::operators {

bool SayTheSameOfCables(const SwitchVerdicts& a, const SwitchVerdicts& b) {
  const bool of_hosts = std::equal(
      a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), [](const auto& one, const auto& other) {
        return one.first == other.first &&
               (one.second == other.second ||
                (one.second->counts == other.second->counts && one.second->worst == other.second->worst));
      });
  return of_hosts && a.between == b.between;
}

std::chrono::nanoseconds WallAhead(base::Clock& clock) {
  return clock.WallNow().time_since_epoch() - clock.Now().time_since_epoch();
}

base::WallTime AsOf(base::WallTime time, const std::optional<std::chrono::nanoseconds>& then,
                    std::chrono::nanoseconds now) {
  // Whole seconds: both clocks are not read at one moment, and a clock that is slewed is not set.
  return then ? time + std::chrono::round<std::chrono::seconds>(now - *then) : time;
}

base::WallTime StaleAt(const crds::FabricSwitch& object, base::WallTime said) {
  return said + std::chrono::seconds(object.spec.poll_seconds) * kPollsUntilStale;
}

SwitchVerdicts DecideVerdicts(const std::vector<crds::FabricSwitch>& fabric_switches,
                              const SwitchAnswers& answers, const std::vector<CabledNode>& nodes,
                              const Policies<crds::LosslessPolicy>& policies, const Silent& silent,
                              base::WallTime now) {
  return KeptVerdicts().Look(fabric_switches, answers, nodes, policies, silent, now);
}

}  // namespace heddle::operators
