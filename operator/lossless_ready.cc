#include "operator/lossless_ready.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace heddle::operators {
namespace {

using crds::LosslessState;

// Nobody knows how those stand, so it is not well with all of them.
void AddUnread(const LosslessTally& tally, crds::Condition& ready) {
  if (ready.reason == "Compliant" || ready.reason == "NothingSelected") ready.reason = "Waiting";
  ready.message += fmt::format(
      "; nobody knows what {} more nodes have, because they cannot be read (bring their agents and "
      "the operator to one version), first {}",
      tally.unread, tally.illegible);
}

// Of canaries, for whom all others wait: who has said nothing yet, and who will not. Those stand behind what to do, and
// what others say of themselves behind all of it: a condition cuts off what is too long for it at the end.
std::string UnheardOf(const LosslessTally& tally) {
  std::string text;
  if (!tally.unreported.empty()) text = fmt::format("; {} has not been reported yet", tally.unreported);
  if (tally.silent.empty()) return text;
  constexpr std::size_t kShown = 4;
  const auto end = tally.silent.begin() + std::ptrdiff_t(std::min(tally.silent.size(), kShown));
  text += fmt::format(
      "; nothing is heard of {} of them, and `kubectl heddle doctor` says why; to go on without, leave them "
      "out by nodeSelector, or set canary: 0; they are {}",
      tally.silent.size(), fmt::join(tally.silent.begin(), end, ", "));
  if (tally.silent.size() > kShown) text += fmt::format(" and {} more", tally.silent.size() - kShown);
  return text;
}

// Reason and message of the worst that there is to say. A canary that failed is said before what it failed of:
// nothing goes on until somebody looks at it.
std::pair<std::string, std::string> Worst(const crds::LosslessPolicy& policy,
                                          const LosslessSoundness& soundness, const LosslessTally& tally) {
  const crds::LosslessCounts& counts = tally.counts;
  const auto of = [&tally](LosslessState state) {
    const auto first = tally.first.find(state);
    return first == tally.first.end() ? std::string() : first->second;
  };
  if (!soundness.resolved) return {"Refused", soundness.refusal};
  if (counts.ports == 0)
    return {"NothingSelected", "no port of any node is selected: see nodeSelector, roles and rails"};
  if (tally.of_policies > 0) {
    return {"Conflict", fmt::format("{} ports are selected by other LosslessPolicies too, and none of them "
                                    "applies there{}",
                                    tally.of_policies, tally.rivalry)};
  }
  if (tally.kept > 0) {
    return {"Conflict",
            fmt::format("{} ports keep what another LosslessPolicy told them, which cannot be read{}: "
                        "correct that one, or narrow nodeSelector, roles or rails of this one",
                        tally.kept, tally.keeper)};
  }
  const std::string trouble = of(LosslessState::kConflict) + of(LosslessState::kFailed);
  const int known = counts.nodes - tally.unread;
  if (tally.admitted < known) {
    const std::string drifted = of(LosslessState::kDrifted);
    if (trouble.empty() && drifted.empty()) {
      return {"Canary", fmt::format("{} of {} nodes have it; the others wait until every port of these is "
                                    "compliant{}{}{}",
                                    tally.admitted, known, UnheardOf(tally), of(LosslessState::kPending),
                                    of(LosslessState::kUnknown))};
    }
    return {"CanaryStopped",
            fmt::format("{} of {} nodes have it and went no further: it is not well with one of "
                        "these; mend it or change the policy{}{}",
                        tally.admitted, known, trouble, drifted)};
  }
  if (counts.conflicting > 0)
    return {"Conflict",
            fmt::format("{} ports are written by somebody else, too{}", counts.conflicting, trouble)};
  if (tally.refused > 0) {
    return {"Refused", fmt::format("{} ports are told nothing, because their NICs cannot have it{}",
                                   tally.refused, tally.refusal)};
  }
  if (counts.failed > 0)
    return {"Failed", fmt::format("{} ports could not be set{}", counts.failed, trouble)};
  if (counts.drifted > 0) {
    return {"Drifted",
            fmt::format("{} ports are not as they should be{}", counts.drifted, of(LosslessState::kDrifted))};
  }
  if (counts.pending > 0) {
    return {"Applying", fmt::format("{} ports are to be set, one of a node at a time{}", counts.pending,
                                    of(LosslessState::kPending))};
  }
  if (counts.unknown > 0) {
    const std::string unknown = of(LosslessState::kUnknown);
    if (!unknown.empty())
      return {"Waiting", fmt::format("{} ports are not known to be well{}", counts.unknown, unknown)};
    return {"Waiting",
            fmt::format("{} ports have not been reported yet, first {}: `kubectl heddle doctor` says "
                        "whether its agent runs and may write its NodeTopology",
                        counts.unknown, tally.unreported)};
  }
  if (counts.compliant == 0 && counts.not_applicable > 0) {
    return {"Compliant",
            fmt::format("nothing is to be set on the hosts of its {} ports: they are InfiniBand, EFA or "
                        "without RDMA{}",
                        counts.not_applicable,
                        policy.spec.policy.infiniband.empty()
                            ? ""
                            : "; what infiniBand says goes into NCCL's configuration of their nodes")};
  }
  return {"Compliant",
          fmt::format("{} ports are as they should be{}", counts.compliant, of(LosslessState::kCompliant))};
}

}  // namespace

void CountPort(LosslessState state, crds::LosslessCounts& counts) {
  switch (state) {
    case LosslessState::kCompliant:
      ++counts.compliant;
      break;
    case LosslessState::kDrifted:
      ++counts.drifted;
      break;
    case LosslessState::kFailed:
      ++counts.failed;
      break;
    case LosslessState::kNotApplicable:
      ++counts.not_applicable;
      break;
    case LosslessState::kConflict:
      ++counts.conflicting;
      break;
    case LosslessState::kPending:
      ++counts.pending;
      break;
    case LosslessState::kUnknown:
      ++counts.unknown;
      break;
  }
}

crds::Condition LosslessReady(const crds::LosslessPolicy& policy, const LosslessSoundness& soundness,
                              const LosslessTally& tally, base::WallTime now) {
  crds::Condition ready;
  ready.type = std::string(crds::kReady);
  ready.status = crds::ConditionStatus::kFalse;
  ready.observed_generation = policy.generation;
  ready.last_transition = now;
  std::tie(ready.reason, ready.message) = Worst(policy, soundness, tally);
  if (tally.unread > 0) AddUnread(tally, ready);
  if (ready.reason == "Compliant") ready.status = crds::ConditionStatus::kTrue;
  return ready;
}

}  // namespace heddle::operators
