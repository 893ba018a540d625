#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "crds/gang.h"
#include "kube/object.h"

namespace heddle::extender {

// Which gang: the UID of the outermost owner (names are used again) and its restart attempt.
struct GangKey {
  std::string ns;
  std::string owner_uid;
  std::int64_t attempt = 0;

  std::string ToString() const;  // "train/<uid>/0"
  static std::optional<GangKey> Parse(std::string_view text);
  friend auto operator<=>(const GangKey&,
                          const GangKey&) = default;  // NOLINT(modernize-use-nullptr): its own 0
};

// Where a pod belongs, from the pod alone. The owner of a pod that no controller made is the pod.
struct Membership {
  GangKey key;
  crds::GangOwner owner;
};
Membership MembershipOf(const kube::Json& pod);

// The gang that an owner makes in its present attempt; nothing for one that another owner made, as a Job of a
// JobSet, which is no gang alone.
std::optional<GangKey> GangOfOwner(const kube::Json& owner);
GangKey KeyOfGang(const crds::Gang& gang);

// Labels that JobSet puts on its Jobs and pods.
namespace jobset {
inline constexpr std::string_view kUid = "jobset.sigs.k8s.io/jobset-uid";
inline constexpr std::string_view kName = "jobset.sigs.k8s.io/jobset-name";
inline constexpr std::string_view kAttempt = "jobset.sigs.k8s.io/restart-attempt";
inline constexpr std::string_view kReplicatedJob = "jobset.sigs.k8s.io/replicatedjob-name";
inline constexpr std::string_view kJobIndex = "jobset.sigs.k8s.io/job-index";
inline constexpr std::string_view kApiVersion = "jobset.x-k8s.io/v1alpha2";
}  // namespace jobset
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

// A label or, where there is none, an annotation as a whole number from 0 up.
std::optional<std::int64_t> NumberMark(const kube::Json& object, std::string_view key);

}  // namespace heddle::extender
