#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "extender/gang_key.h"
#include "extender/gang_members.h"

namespace heddle::extender {

// How an owner numbers its pods: segments of ranks in order, one per replicated job of a JobSet or type of
// replica of a PyTorchJob, one for a Job.
struct RankSegment {
  std::string name;  // that its pods have as `segment_mark`
  std::int64_t jobs = 1;
  std::int64_t pods_per_job = 0;
  std::int64_t first = 0;
};
struct OwnerLayout {
  // Labels or annotations of its pods.
  std::string_view index_mark = kCompletionIndex;
  std::string_view segment_mark;  // empty = there is one segment
  std::string_view job_mark;      // which of the segment's jobs; empty = each segment is one
  std::int64_t first_index = 0;
  std::vector<RankSegment> segments;
  std::int64_t pods = 0;
  std::vector<std::string> notes;  // for the explanation
  std::optional<InputRefusal> refusal;

  // Where a pod stands; nothing when its labels do not say. May lie outside [0, pods).
  std::optional<std::int64_t> RankOf(const kube::Json& pod) const;
};
OwnerLayout LayoutOfJob(const kube::Json& owner);
OwnerLayout LayoutOfJobSet(const kube::Json& owner);
OwnerLayout LayoutOfStatefulSet(const kube::Json& owner);
// In kubeflow_layout.cc.
OwnerLayout LayoutOfPyTorchJob(const kube::Json& owner);
OwnerLayout LayoutOfMpiJob(const kube::Json& owner);

// By the owner's kind, with what no gang of any kind can be.
OwnerLayout ReadLayout(const kube::Json& owner);
OwnerState ReadOwnerState(const kube::Json& owner, const GangKey& key);

}  // namespace heddle::extender
