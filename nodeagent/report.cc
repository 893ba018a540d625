#include "nodeagent/report.h"

#include <algorithm>

#include "nodeagent/conditions.h"

namespace heddle::nodeagent {

crds::NodeTopology Report(const crds::NodeTopology& current, const Observation& seen, base::WallTime now) {
  Observation observation = seen;
  crds::FillLeaves(observation.node, current.spec.labels);
  now = std::chrono::floor<std::chrono::seconds>(now);
  crds::NodeTopology next = current;
  crds::NodeTopologyStatus& status = next.status;
  const std::string hash = topology::ContentHash(observation.node);
  if (status.hash != hash || !status.observed_at) status.observed_at = now;
  status.hash = hash;
  status.node = observation.node;
  status.observed_generation = current.generation;
  status.agent_version = std::string(kAgentVersion);
  std::vector<crds::Condition> conditions;
  for (crds::Condition& condition : ConditionsOf(observation)) {
    if (const auto* old = crds::FindCondition(current.status.conditions, condition.type))
      conditions.push_back(*old);
    condition.observed_generation = current.generation;
    condition.last_transition = now;
    crds::SetCondition(conditions, condition);
  }
  status.conditions = std::move(conditions);
  return next;
}

}  // namespace heddle::nodeagent
