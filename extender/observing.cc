#include "extender/observing.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "base/clock.h"
#include "base/counted.h"
#include "crds/observation.h"
#include "extender/gang_status.h"

namespace heddle::extender {
namespace {

// Where the pods are, and with which GPUs; nothing where that is not known of one of them.
struct Whereabouts {
  std::vector<crds::PlacedPod> rows;
  bool assumed = false;
  std::string unknown;
};

Whereabouts Find(const Snapshot& snapshot, const GangMembers& members) {
  Whereabouts found;
  for (const auto& rank : members.ranks) {
    crds::PlacedPod row{rank->facts->node, 0, {}};
    if (const auto held = snapshot.holds.find(row.node); held != snapshot.holds.end()) {
      for (const Hold& hold : held->second) {
        if (hold.pod_uid != rank->facts->uid) continue;
        row.gpus |= hold.gpus;
        found.assumed = found.assumed || hold.source == Hold::Source::kAssumed;
      }
    }
    if (row.gpus == 0 && found.unknown.empty()) {
      found.unknown = "nobody knows the GPUs of pod " + rank->facts->key.name + " on node " + row.node +
                      ": does heddle-nodeagent run there?";
    }
    found.rows.push_back(std::move(row));
  }
  return found;
}

// The cluster as it would be without the gang, and the gang as it came.
SnapshotInputs Without(SnapshotInputs inputs, const GangKey& key) {
  inputs.pods = inputs.pods.Without([&key](const auto& pod) { return pod->gang == key; });
  return inputs;
}

GangMembers Unplaced(GangMembers members) {
  for (auto& rank : members.ranks) {
    PodFacts& facts = rank->OwnFacts();
    facts.gated = true;
    facts.node.clear();
    facts.plan.reset();
  }
  return members;
}

std::string OwnerEnded(const GangInput& input) {
  switch (input.members.owner_state) {
    case OwnerState::kActive:
      return "";
    case OwnerState::kFinished:
      return "OwnerFinished";
    default:
      return "OwnerGone";
  }
}

bool AllBound(const GangMembers& members) {
  return std::all_of(members.ranks.begin(), members.ranks.end(),
                     [](const auto& rank) { return rank && !rank->facts->node.empty(); });
}

// A pod alone has no ring, and what says nothing of Heddle and cannot be read is none of its business.
bool WorthALook(const GangMembers& members) {
  if (members.seen() == 0 && members.unranked.empty()) return false;
  return !members.assumed_parallelism || (!members.refusal && members.spec.pods > 1);
}

Action Create(const GangInput& input) {
  crds::Gang gang;
  gang.spec = StorableSpec(input.members);
  gang.ns = input.members.key.ns;
  gang.name = crds::GangName(gang.spec);
  return CreateGang{std::move(gang)};
}

// At Heddle's gate, from when it was told to place: these do wait for it.
bool AnyGated(const GangMembers& members) {
  return std::any_of(members.ranks.begin(), members.ranks.end(),
                     [](const auto& rank) { return rank && rank->facts->gated; }) ||
         std::any_of(members.unranked.begin(), members.unranked.end(),
                     [](const Member& member) { return member.facts->gated; });
}

// Of a gang without a price, so that nobody takes it for one that waits for Heddle: it may run all the while, whatever
// Heddle would have refused. Where nobody can tell its ranks, neither can this tell whether all of them run.
void SayWithoutAPrice(const GangInput& input, crds::GangStatus& status) {
  const GangMembers& members = input.members;
  if (AnyGated(members)) return;
  if (!status.observed)
    status.observed = crds::Observed{.at = std::chrono::floor<std::chrono::seconds>(input.now)};
  const bool runs = !members.ranks.empty() && members.bound() == int(members.ranks.size());
  if (runs) {
    Say(input, status, crds::kRunning, true, "AllBound", "another scheduler put every pod on a node");
  } else if (crds::FindCondition(status.conditions, crds::kRunning) != nullptr) {
    Say(input, status, crds::kRunning, false, "WaitingForBinding", "not every pod is on a node");
  }
}

Action Progress(const GangInput& input) {
  crds::GangStatus status = StatusOf(input);
  status.progress = ProgressOf(input.members);
  Blame(status, "", "");  // what it was refused for has been put right
  SayWithoutAPrice(input, status);
  if (status == input.gang->status) return Nothing{};
  return UpdateStatus{std::move(status), std::nullopt, false};
}

Action Refuse(const GangInput& input, const std::string& reason, const std::string& sentence) {
  crds::GangStatus status = RefusedStatus(input, reason, sentence);
  SayWithoutAPrice(input, status);
  if (status == input.gang->status) return Nothing{};
  const bool told = status.reason == input.gang->status.reason;
  return UpdateStatus{std::move(status), told ? std::nullopt : std::optional(Note{true, reason, sentence}),
                      true};
}

// It runs, so nothing of its own may happen for weeks; and an agent that is slower than its pods, as when Heddle is
// installed beside them, changes no pod.
Action RefuseForNow(const GangInput& input, const std::string& why) {
  Action refused = Refuse(input, "NotPriced", why);
  if (std::holds_alternative<Nothing>(refused)) return Nothing{std::chrono::seconds(30)};
  return refused;
}

// Ready Nodes with GPUs of which no agent has published anything. One that is excluded is nobody's to wait for.
int StillToReport(const SnapshotInputs& inputs) {
  std::set<std::string_view> known(inputs.fabrics->excluded.begin(), inputs.fabrics->excluded.end());
  for (const auto& topology : inputs.topologies) {
    if (!topology->content.empty()) known.insert(topology->name);
  }
  return int(std::count_if(inputs.nodes.begin(), inputs.nodes.end(), [&known](const auto& node) {
    return node->gpus > 0 && node->ready && !known.contains(node->name);
  }));
}

// Since when it waits is in the Gang, so that a crash starts no new wait; and the sentence stays the same, so that it
// is written once, however many nodes report meanwhile.
std::optional<std::string> WaitsForReports(const GangInput& input, int still_to_report) {
  if (still_to_report == 0 || AnyGated(input.members)) return std::nullopt;
  const auto& observed = input.gang->status.observed;
  base::WallTime until = std::chrono::floor<std::chrono::seconds>(input.now);
  if (observed) until = observed->at;
  until += kReportsAwaited;
  if (input.now >= until) return std::nullopt;
  return "some nodes with GPUs have not reported yet, and Heddle might have used them: it is priced once all "
         "have, or without them from " +
         base::FormatTime(until) + " on";
}

Action Price(const GangInput& input, const SnapshotInputs& inputs) {
  const int still_to_report = StillToReport(inputs);
  if (const auto why = WaitsForReports(input, still_to_report)) return RefuseForNow(input, *why);
  auto compared = Compare(inputs, input.members);
  if (const auto* why = std::get_if<std::string>(&compared)) return RefuseForNow(input, *why);
  const auto& comparison = std::get<Comparison>(compared);
  crds::GangStatus status = StatusOf(input);
  status.progress = ProgressOf(input.members);
  Blame(status, "", "");
  status.predicted = comparison.actual;
  crds::Observed observed{.at = std::chrono::floor<std::chrono::seconds>(input.now),
                          .assumed_parallelism = input.members.assumed_parallelism,
                          .assumed_gpus = comparison.assumed_gpus};
  if (const auto* quality = std::get_if<placement::Quality>(&comparison.heddle)) {
    observed.heddle = *quality;
  } else {
    observed.refusal = std::get<placement::Refusal>(comparison.heddle).sentence;
  }
  status.observed = std::move(observed);
  const std::string sentence = crds::ObservedSentence(status);
  status.explanation = {sentence};
  if (still_to_report > 0) {
    status.explanation.push_back("priced without " + base::Counted(still_to_report, "node") +
                                 " with GPUs that had not reported");
  }
  const std::string pods = base::Counted(input.members.spec.pods, "pod");
  Say(input, status, crds::kCollected, true, "AllPodsSeen", pods + " seen");
  Say(input, status, crds::kRunning, true, "AllBound", "another scheduler put every pod on a node");
  return UpdateStatus{std::move(status), Note{false, "Observed", sentence}, true};
}

}  // namespace

std::variant<Comparison, std::string> Compare(const SnapshotInputs& inputs, const GangMembers& members) {
  Whereabouts found = Find(TakeSnapshot(inputs), members);
  if (!found.unknown.empty()) return found.unknown;
  const Snapshot without = TakeSnapshot(Without(inputs, members.key));
  const GangMembers unplaced = Unplaced(members);
  auto actual = EvaluateMembers(without, unplaced, found.rows);
  if (const auto* why = std::get_if<std::string>(&actual)) return *why;
  Comparison comparison{std::get<placement::Quality>(actual), found.assumed, {}};
  PlanAnswer answer = PlanMembers(without, unplaced, {});
  if (auto* plan = std::get_if<PlannedGang>(&answer)) {
    comparison.heddle = plan->quality;
  } else {
    comparison.heddle = std::get<placement::Refusal>(std::move(answer));
  }
  return comparison;
}

Action DecideObserved(const GangInput& input, const SnapshotInputs& inputs) {
  const GangMembers& members = input.members;
  const std::string ended = OwnerEnded(input);
  if (input.gang == nullptr) {
    if (!ended.empty() || !WorthALook(members)) return Nothing{};
    return Create(input);
  }
  // One that Heddle planned before it was told to observe keeps what it says.
  if (input.gang->status.placement) return Nothing{};
  const bool is_ended = crds::IsTrue(input.gang->status.conditions, crds::kEnded);
  const bool priced = crds::WasPriced(input.gang->status);
  if (!ended.empty()) {
    if (!priced) return DeleteGang{"it ended before it could be priced"};
    if (is_ended) return Nothing{};
    crds::GangStatus status = StatusOf(input);
    Say(input, status, crds::kEnded, true, ended, "the owner has ended; what was observed stays");
    return UpdateStatus{std::move(status), std::nullopt, true};
  }
  if (is_ended) return DeleteGang{"its owner is active again"};
  if (priced) return Nothing{};
  if (members.refusal) return Refuse(input, members.refusal->reason, members.refusal->sentence);
  if (!AllBound(members)) return Progress(input);
  return Price(input, inputs);
}

std::vector<crds::Gang> SurplusObservations(const std::vector<Shared<crds::Gang>>& gangs, std::size_t kept) {
  std::vector<const crds::Gang*> ended;
  for (const auto& gang : gangs) {
    if (gang->status.observed && crds::IsTrue(gang->status.conditions, crds::kEnded))
      ended.push_back(gang.get());
  }
  std::sort(ended.begin(), ended.end(), [](const crds::Gang* a, const crds::Gang* b) {
    return std::tie(b->status.observed->at, a->ns, a->name) <
           std::tie(a->status.observed->at, b->ns, b->name);
  });
  std::vector<crds::Gang> surplus;
  for (std::size_t i = kept; i < ended.size(); ++i) surplus.push_back(*ended[i]);
  return surplus;
}

}  // namespace heddle::extender
