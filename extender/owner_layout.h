#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
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
  // A name that the pods of one job have together, for where its number is missing.
  std::string_view unit_mark;
  std::string_view size_mark;  // of the gang, where its pods know better than the owner; empty = none
  std::int64_t first_index = 0;
  std::vector<RankSegment> segments;
  std::int64_t pods = 0;
  bool one_unnumbered = false;  // where there is one job, or a job of one pod, that has no number
  bool numbered = true;         // false: nothing numbers its pods, and Heddle gives the ranks out
  bool elastic = false;         // the owner says that the number of pods may change while they run
  bool scales = false;          // it may, without a word of the owner's: see GangMembers::elastic
  bool launcher_first =
      false;               // the launcher has rank 0, the others follow by the number that ends their names
  bool own_ranks = false;  // its processes are ranked at run time, whatever their pods' numbers are
  std::string rank_file_for;       // the name that people know the owner by
  std::vector<std::string> notes;  // for the explanation
  std::optional<InputRefusal> refusal;

  // The next ranks: `jobs` times `pods_per_job` pods.
  void Append(std::string name, std::int64_t jobs, std::int64_t pods_per_job);
  // Where a pod stands, which may be packed; nothing when its labels do not say. May lie outside [0, pods).
  std::optional<std::int64_t> RankOf(const kube::Json& pod) const;
  const RankSegment* SegmentOf(const kube::Json& pod) const;  // null where the pod fits none
};
OwnerLayout LayoutOfJob(const kube::Json& owner);
OwnerLayout LayoutOfJobSet(const kube::Json& owner);
OwnerLayout LayoutOfStatefulSet(const kube::Json& owner);
// In group_layout.cc.
OwnerLayout LayoutOfLeaderWorkerSet(const kube::Json& owner);
OwnerLayout LayoutOfPodGroup(const kube::Json& owner);
OwnerLayout LayoutOfPods(const std::vector<std::shared_ptr<const kube::Json>>& pods);
// In ray_layout.cc.
OwnerLayout LayoutOfRayCluster(const kube::Json& owner);
// In kubeflow_layout.cc.
OwnerLayout LayoutOfPyTorchJob(const kube::Json& owner);
OwnerLayout LayoutOfMpiJob(const kube::Json& owner);

// By the owner's kind, with what no gang of any kind can be.
OwnerLayout ReadLayout(const kube::Json& owner);
// The same for what the pods say themselves: the size, where they know better than the owner, and whether they
// are numbered at all.
void ReadMarks(OwnerLayout& layout, const std::vector<std::shared_ptr<const kube::Json>>& pods);
// Whether a template of the owner's, at this path, makes pods of the gang.
bool WantsGang(const kube::Json& object, kube::Path pod_template);
OwnerState ReadOwnerState(const kube::Json& owner, const GangKey& key);

// What a Job says of its pods that have succeeded: status.completedIndexes ("0-3,7"), which lasts through suspension. A
// Job that is complete makes no pods any more, also where its successPolicy was content with some of them. Nothing of a
// Job that is being deleted: who made it makes it anew, with all its pods.
struct JobDone {
  std::string indexes;
  bool all = false;
  bool any() const { return all || !indexes.empty(); }
  friend bool operator==(const JobDone&, const JobDone&) = default;
};
JobDone ReadJobDone(const kube::Json& job);
// Ranks below `pods` that have succeeded by the word of their owner, whether or not their pods are still there: of a
// Job by its own, of a JobSet by that of the Jobs that it made in this attempt, `jobs`. No other owner says it. What
// cannot be read is left out: a rank that is not known to be done keeps its slot.
std::set<int> ReadRanksDone(const kube::Json& owner, std::int64_t pods,
                            const std::vector<std::shared_ptr<const kube::Json>>& jobs = {});

}  // namespace heddle::extender
