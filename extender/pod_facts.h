#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "extender/gang_key.h"
#include "extender/pod_terms.h"
#include "kube/object.h"
#include "kube/pruning.h"
#include "placement/gang.h"

namespace heddle::extender {

// What a pod asks for in the scheduler's own arithmetic: the sum of its containers and sidecars or its
// largest init container, whichever is more, plus overhead.
struct PodDemand {
  std::string gpu_resource;  // empty = no GPUs
  int gpus = 0;
  placement::Resources resources;
  std::string problem;  // a sentence without a full stop when the quantities cannot be read; empty = fine
  friend bool operator==(const PodDemand&, const PodDemand&) = default;
};
PodDemand ReadDemand(const kube::Json& pod);
inline constexpr std::int64_t kMostGpusOfPod = 1 << 20;  // whatever a pod says

// The plan as it stands on a released pod. Only the extender may write these annotations.
struct PodPlan {
  int rank = -1;
  std::string node;
  std::uint32_t gpus = 0;  // bit = GPU index; 0 = the node's whole set
  std::string gang_uid;
  std::int64_t epoch = 0;
  std::vector<std::string> substitutes;
  friend bool operator==(const PodPlan&, const PodPlan&) = default;
};

// What the extender needs of a pod, read once.
struct PodFacts {
  kube::ObjectKey key;
  std::string uid;
  GangKey gang;      // of its owner, whether or not that is a gang
  std::string node;  // where it is bound; empty = nowhere yet
  std::string scheduler;
  int priority = 0;
  std::optional<base::WallTime> created;
  std::optional<base::WallTime> started;
  bool terminating = false;
  std::optional<base::WallTime> gone_by;  // of a terminating pod: when its grace ends
  bool preempts = true;                   // its preemptionPolicy is not Never
  bool finished = false;                  // Succeeded or Failed
  bool succeeded = false;
  bool gated = false;      // by our gate
  std::string queue_gate;  // Kueue's, while it has not admitted the pod; empty = none
  std::optional<base::WallTime> unschedulable_since;  // the scheduler tried and found no place
  std::string unschedulable_why;                      // in its words
  // Of a failed pod that the kubelet of its node did not admit: why, "UnexpectedAdmissionError: Allocate failed due to
  // …", cut. Empty = admitted, also where it failed later, or not looked at yet.
  std::string not_admitted;
  std::optional<PodPlan> plan;
  PodDemand demand;
  std::shared_ptr<const PodTerms> terms = NoTerms();  // never null; compared as an object, see PodReader
  friend bool operator==(const PodFacts&, const PodFacts&) = default;

  bool live() const { return !terminating && !finished; }
  // Kueue has not let it go; nor do we before that.
  bool waits_for_quota() const { return gated && !queue_gate.empty(); }
  // Holds its node's GPUs: a terminating pod does until the kubelet has stopped it.
  bool occupies() const { return !node.empty() && !finished; }
};
PodFacts ReadPod(const kube::Json& pod);
// ReadPod, for pods of which thousands are kept: equal terms of those that it has read are one object. From any thread.
std::function<std::shared_ptr<const PodFacts>(const kube::Json& pod)> PodReader();

// Pods and what was read of each, in the same order: a gang is looked at with each of its pods that changes, and to
// read all of its thousands again each time takes longer than everything else.
struct ReadPods {
  std::vector<std::shared_ptr<const kube::Json>> objects;  // see Member::kept
  std::vector<std::shared_ptr<const PodFacts>> facts;

  ReadPods() = default;
  explicit ReadPods(std::vector<std::shared_ptr<const kube::Json>> pods);  // reads them
  bool empty() const { return objects.empty(); }
};

bool AsksForGpus(const kube::Json& pod);  // or a pod template

// kPlace: gangs are gated, planned and released. kObserve: no pod is touched; see observing.h.
enum class Mode : std::uint8_t { kPlace, kObserve };

// A pod of a gang: it waits at our gate, or we released it. Others, annotated or not, are not ours to move.
// Observed is every pod with GPUs that an owner of gangs made, or that says itself that it belongs to one.
bool IsGangPod(const kube::Json& pod, Mode mode = Mode::kPlace);
// torchrun's workers of this pod meet by c10d, which ranks them as they come; only what stands in the pod tells.
bool MeetsByC10d(const kube::Json& pod);

// It says how its gang is cut, and yet nothing held it back: made before Heddle was there, outside of its scope,
// or for another scheduler.
bool PassedTheGate(const kube::Json& pod);

// Keeps of a pod what the extender reads, so that the cache of a large cluster stays small; a reflector
// transform.
kube::Json SlimPod(kube::Json pod);
// The most of what SlimPod drops, so that it is not even read.
const kube::Pruning& PodPruning();

}  // namespace heddle::extender
