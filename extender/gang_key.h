#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/gang.h"
#include "kube/object.h"

namespace heddle::extender {

// Which gang: the UID of the outermost owner (names are used again) and its restart attempt. Where a pod does
// not tell that UID, or its owner makes several gangs, "<group>@<namespace>" takes its place: see
// crds::GangSpec.
struct GangKey {
  std::string ns;
  std::string owner_uid;
  std::int64_t attempt = 0;

  std::string ToString() const;  // "train/<uid>/0"
  static std::optional<GangKey> Parse(std::string_view text);
  friend auto operator<=>(const GangKey&,
                          const GangKey&) = default;  // NOLINT(modernize-use-nullptr): its own 0
};

// Where a pod belongs, from the pod alone. The owner of a pod that no controller made is the pod. The
// owner's UID is empty where only its name stands on the pod.
struct Membership {
  GangKey key;
  crds::GangOwner owner;
  std::string group;  // as in crds::GangSpec
};
Membership MembershipOf(const kube::Json& pod);

// The gang that an owner makes in its present attempt; nothing for one that another owner made, as a Job of a
// JobSet, which is no gang alone.
std::optional<GangKey> GangOfOwner(const kube::Json& owner);
// The same, also of owners that make several gangs.
std::vector<GangKey> GangsOfOwner(const kube::Json& owner);
// The gang of a JobSet that such a Job makes pods of, in the attempt that the Job belongs to; nothing for any other
// object.
std::optional<GangKey> GangOfChildJob(const kube::Json& job);
GangKey KeyOfGang(const crds::Gang& gang);
GangKey KeyOfGangObject(const kube::Json& object);  // the same, of one that nobody has checked

// Labels that JobSet puts on its Jobs and pods.
namespace jobset {
inline constexpr std::string_view kUid = "jobset.sigs.k8s.io/jobset-uid";
inline constexpr std::string_view kName = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kAttempt = "jobset.sigs.k8s.io/restart-attempt";
inline constexpr std::string_view kReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kJobIndex = "jobset.sigs.k8s.io/job-index";
inline constexpr std::string_view kApiVersion = "jobset.x-k8s.io/v1alpha2";
}  // namespace jobset
// What LeaderWorkerSet puts on its pods.
namespace lws {
inline constexpr std::string_view kName = "leaderworkerset.sigs.k8s.io/name";
inline constexpr std::string_view kGroupIndex = "leaderworkerset.sigs.k8s.io/group-index";
inline constexpr std::string_view kWorkerIndex = "leaderworkerset.sigs.k8s.io/worker-index";
inline constexpr std::string_view kSize = "leaderworkerset.sigs.k8s.io/size";
inline constexpr std::string_view kApiVersion = "leaderworkerset.x-k8s.io/v1";
inline constexpr std::string_view kKind = "LeaderWorkerSet";
}  // namespace lws
// What mpi-operator puts on its pods. The MPIJob owns its workers, and its launcher is made by a Job of its own.
namespace mpi {
inline constexpr std::string_view kJobName = "training.kubeflow.org/job-name";
inline constexpr std::string_view kRole = "training.kubeflow.org/job-role";  // "launcher", "worker"
inline constexpr std::string_view kApiVersion = "kubeflow.org/v2beta1";
inline constexpr std::string_view kKind = "MPIJob";
}  // namespace mpi
// What Kueue reads of pods that form a group by themselves.
namespace kueue {
inline constexpr std::string_view kGroupName = "kueue.x-k8s.io/pod-group-name";
inline constexpr std::string_view kGroupSize = "kueue.x-k8s.io/pod-group-total-count";
inline constexpr std::string_view kPodIndex = "kueue.x-k8s.io/pod-group-pod-index";
}  // namespace kueue
// Kubernetes' own gangs, behind the gate GenericWorkload: 1.36 serves this version, 1.37 v1beta1. A pod names none.
inline constexpr std::string_view kPodGroup = "PodGroup";
inline constexpr std::string_view kPodGroupApiVersion = "scheduling.k8s.io/v1alpha2";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

// A label or, where there is none, an annotation as a whole number from 0 up.
std::optional<std::int64_t> NumberMark(const kube::Json& object, std::string_view key);

}  // namespace heddle::extender
