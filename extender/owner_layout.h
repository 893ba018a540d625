#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "extender/gang_key.h"
#include "extender/gang_members.h"

namespace heddle::extender {

// How an owner numbers its pods: segments of ranks in order, one per replicated job of a JobSet, one for a
// Job.
struct RankSegment {
  std::string replicated_job;  // empty for a Job
  std::int64_t jobs = 1;
  std::int64_t pods_per_job = 0;
  std::int64_t first = 0;
};
struct OwnerLayout {
  std::vector<RankSegment> segments;
  std::int64_t pods = 0;
  std::optional<InputRefusal> refusal;

  // Where a pod stands; nothing when its labels do not say. May lie outside [0, pods).
  std::optional<std::int64_t> RankOf(const kube::Json& pod) const;
};
OwnerLayout ReadLayout(const kube::Json& owner);
OwnerState ReadOwnerState(const kube::Json& owner, const GangKey& key);

}  // namespace heddle::extender
