#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/condition.h"
#include "crds/object_meta.h"
#include "placement/plan.h"

namespace heddle::crds {

// One per owner UID and restart attempt. The extender makes it when it first knows the gang's size; spec
// never changes after that, and status.placement is the commitment that comes before any pod moves.

struct GangOwner {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  friend bool operator==(const GangOwner&, const GangOwner&) = default;
};

// What was read from the owner and its pods.
struct GangSpec {
  GangOwner owner;           // the outermost; of pods that name a gang themselves, one of them
  std::int64_t attempt = 0;  // restart attempt
  // Which of its owner's gangs, "LeaderWorkerSet/serve/0", or of pods that nothing in them ties to an owner's
  // UID, "MPIJob/train", "Pods/train" and "PodGroup/train". Empty = the owner makes one.
  std::string group;
  std::string leader;  // UID of the pod whose successor starts another attempt; empty = none does
  int pods = 0;
  int gpus_per_pod = 0;
  std::string gpu_resource;  // "nvidia.com/gpu"
  int priority = 0;
  std::optional<std::chrono::seconds> wait;  // nothing = not said
  // Nothing where the annotations could not be read or do not multiply: the reason is in status.
  std::optional<placement::Parallelism> parallelism;
  std::vector<placement::Requirement> require;  // one per axis, sorted by axis
  std::vector<placement::Requirement> prefer;
  placement::ModelHints model;
  friend bool operator==(const GangSpec&, const GangSpec&) = default;

  int gpus() const { return pods * gpus_per_pod; }
};

// In the place of a node's name, for a pod without a slot: no Node can be called so. Readers from before there
// were such pods pass over a node that they do not know; an index of -1 they would refuse, and the whole plan with it.
inline constexpr std::string_view kNoNode = "-";

// Where the pods go, as columns by pod index. Names stand once in a table, and pods of one neighbourhood
// share one set of substitutes, so that 16,384 pods fit in an object.
struct Placement {
  // Grows with every plan of this gang, and where one that stands is written once more before its pods are released:
  // by who leads anew, or after an answer that was lost.
  std::int64_t epoch = 0;
  std::vector<std::string> node_names;  // distinct; kNoNode among them where a pod has no slot
  std::vector<std::int32_t> nodes;      // by pod: index into node_names
  std::vector<std::uint32_t> gpus;      // by pod: bit = GPU index; empty = every pod has its node's whole set
  std::vector<std::vector<std::int32_t>> substitute_sets;  // each up to 7 indexes into node_names, best first
  std::vector<std::int32_t>
      substitutes;  // by pod: index into substitute_sets, -1 = none; empty = none at all
  friend bool operator==(const Placement&, const Placement&) = default;
};

// The same placement by rows. A rank that was done when the plan was made has no slot: its row says no node, and holds
// no GPU anywhere.
struct PlacedPod {
  std::string node;                      // empty = no slot
  std::uint32_t gpus = 0;                // bit = GPU index; 0 = the node's whole set, or no slot
  std::vector<std::string> substitutes;  // best first
  friend bool operator==(const PlacedPod&, const PlacedPod&) = default;

  bool has_slot() const { return !node.empty(); }
};
Placement ToColumns(const std::vector<PlacedPod>& pods, std::int64_t epoch);
// Requires: indexes within their tables, as GangFromJson checks.
std::vector<PlacedPod> ToRows(const Placement& placement);

// How many of spec.pods have come how far.
struct GangProgress {
  int seen = 0;
  int released = 0;
  int bound = 0;
  friend bool operator==(const GangProgress&, const GangProgress&) = default;
};

// A rank of a gang that holds slots, and since when it has no pod: its slot is kept for the next one for a while.
struct MissingRank {
  int rank = 0;          // below spec.pods
  base::WallTime since;  // whole seconds
  friend bool operator==(const MissingRank&, const MissingRank&) = default;
};
// 16,384 pods whose nodes have long names leave this much room in an object, and some to spare.
inline constexpr std::size_t kMaxMissing = 1024;

// What mode observe found of a gang that another scheduler placed, once every pod was on its node:
// GangStatus.predicted is where that put them, and this is what Heddle would have done with the same free GPUs.
// Without a GangStatus.predicted it has no price yet, or GangStatus.reason says why not (WasPriced in observation.h).
struct Observed {
  base::WallTime at;                         // when it was priced, or first looked at; whole seconds
  bool assumed_parallelism = false;          // the pods do not say how their ranks are cut
  bool assumed_gpus = false;                 // nobody says which GPUs some pods got
  std::optional<placement::Quality> heddle;  // nothing = it would have made them wait
  std::string refusal;                       // then why
  friend bool operator==(const Observed&, const Observed&) = default;
};

struct GangStatus {
  std::int64_t observed_generation = 0;
  GangProgress progress;
  std::string reason;   // one CamelCase word: why the gang does not run; empty while nothing is wrong
  std::string message;  // the sentence for it
  // While the condition Preempted holds: the Gang that this one makes room for, "ns/name"; itself when it is
  // restarted as a whole.
  std::string preempted_by;
  std::vector<MissingRank> missing;  // the first kMaxMissing of them, sorted by rank
  std::optional<Placement> placement;
  std::optional<base::WallTime> planned_at;  // whole seconds
  std::optional<placement::Quality> predicted;
  std::optional<Observed> observed;
  std::vector<std::string> explanation;  // why here: sentences, most important first
  std::vector<Condition> conditions;
  friend bool operator==(const GangStatus&, const GangStatus&) = default;
};

struct Gang : ObjectMeta {
  GangSpec spec;
  GangStatus status;
  friend bool operator==(const Gang&, const Gang&) = default;
};

// The answer in a few words, read off the conditions: "Running 32/32", "Waiting: NotEnoughFree", "Collecting
// 3/32". Written as status.summary for `kubectl get gangs`; reading back ignores it.
std::string Summarise(const GangSpec& spec, const GangStatus& status);

Json ToJson(const Gang& object);
// Refuses a placement whose columns do not fit spec.pods or point outside their tables.
[[nodiscard]] base::Result<Gang> GangFromJson(const Json& json);
// See node_topology.h. A plan is committed by PUT of ToJson to /status with a resourceVersion, not by apply.
Json SpecApplyJson(const Gang& object);
Json StatusApplyJson(const Gang& object);

// "train", or of one of several gangs "serve/0": the owner, or the group without its kind.
std::string GangTitle(const GangSpec& spec);
// DNS-1123 and stable: "<title>-<first 8 of the owner's UID>-<attempt>", cut to 63 characters. Of pods that
// name their gang, "<title>-pods-<attempt>": which of them is the owner is chance. Of groups, whose titles alone tell
// them apart, one whose title does not fit or is no name ("train_a") has a hash instead of what was cut or changed.
std::string GangName(const GangSpec& spec);

// Groups of pods without an owner that all of them share.
inline constexpr std::string_view kPodsGroup = "Pods/";

}  // namespace heddle::crds
