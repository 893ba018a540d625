#include "extender/owner_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/keys.h"
#include "crds/parallelism.h"
#include "extender/owner_kinds.h"
#include "kube/completed_indexes.h"

namespace heddle::extender {
namespace {

bool ConditionTrue(const kube::Json& object, std::string_view type) {
  const kube::Json* condition = kube::Condition(object, type);
  return condition != nullptr && kube::StringAt(*condition, {"status"}) == "True";
}

// Pods of one Job spec, or why it is no gang.
struct JobSize {
  std::int64_t pods = 0;
  std::optional<InputRefusal> refusal;
};
JobSize SizeOfJob(const kube::Json& spec, const std::string& title) {
  const auto parallelism = kube::IntAt(spec, {"parallelism"}).value_or(1);
  const auto completions = kube::IntAt(spec, {"completions"});
  if (kube::StringAt(spec, {"completionMode"}) != "Indexed") {
    return {0, InputRefusal{"NotIndexed", title + " is not Indexed, so its pods have no ranks; set "
                                                  "spec.completionMode: Indexed"}};
  }
  if (!completions || *completions != parallelism) {
    const std::string said = completions ? std::to_string(*completions) : "not set";
    return {0, InputRefusal{"CompletionsNotParallelism",
                            title + " has completions " + said + " and parallelism " +
                                std::to_string(parallelism) +
                                "; a gang starts all its pods together, so set both to the same number"}};
  }
  return {parallelism, std::nullopt};
}

void AddSegment(OwnerLayout& layout, std::string name, std::int64_t jobs, const JobSize& size) {
  if (size.refusal && !layout.refusal) layout.refusal = size.refusal;
  layout.Append(std::move(name), jobs, size.pods);
}

void CheckPods(OwnerLayout& layout, const std::string& title) {
  if (layout.refusal) return;
  if (layout.pods > crds::kMaxPods) {
    layout.refusal =
        InputRefusal{"TooManyPods", title + " makes " + std::to_string(layout.pods) +
                                        " pods; a gang has at most " + std::to_string(crds::kMaxPods)};
  } else if (layout.pods <= 0) {
    layout.refusal = InputRefusal{"NoPods", title + " makes no pods"};
  }
}

}  // namespace

OwnerLayout LayoutOfJob(const kube::Json& owner) {
  OwnerLayout layout;
  const kube::Json* spec = kube::Find(owner, {"spec"});
  AddSegment(layout, "", 1,
             SizeOfJob(spec == nullptr ? kube::Json::object() : *spec, "Job " + kube::Name(owner)));
  layout.scales = true;  // Kubernetes lets completions and parallelism be changed together
  return layout;
}

namespace {

// Whether one of the gang's replicated jobs is made only when another is ready or done, whose pods wait at the gate for
// those of all, and so for ever.
std::optional<InputRefusal> StartsInOrder(const kube::Json& owner, const OwnerLayout& layout) {
  if (layout.segments.size() < 2) return std::nullopt;
  const std::string title = "JobSet " + kube::Name(owner);
  if (kube::StringAt(owner, {"spec", "startupPolicy", "startupPolicyOrder"}) == "InOrder") {
    return InputRefusal{"StartsInOrder",
                        title +
                            " makes a replicated job only when the one before it is ready, and a "
                            "gang starts all of them together; set "
                            "spec.startupPolicy.startupPolicyOrder: AnyOrder"};
  }
  const auto has = [&layout](const std::string& name) {
    return std::any_of(layout.segments.begin(), layout.segments.end(),
                       [&name](const RankSegment& one) { return one.name == name; });
  };
  for (const kube::Json& replicated : kube::ArrayAt(owner, {"spec", "replicatedJobs"})) {
    const std::string name = kube::StringAt(replicated, {"name"});
    if (!has(name)) continue;
    for (const kube::Json& before : kube::ArrayAt(replicated, {"dependsOn"})) {
      const std::string other = kube::StringAt(before, {"name"});
      if (!has(other)) continue;
      return InputRefusal{
          "StartsInOrder",
          fmt::format("{} makes replicated job {} only after {}, and a gang starts both "
                      "together; remove its dependsOn, or heddle.dev/parallelism from one of them",
                      title, name, other)};
    }
  }
  return std::nullopt;
}

}  // namespace

OwnerLayout LayoutOfJobSet(const kube::Json& owner) {
  OwnerLayout layout;
  layout.segment_mark = jobset::kReplicatedJob;
  layout.job_mark = jobset::kJobIndex;
  const kube::Json& all = kube::ArrayAt(owner, {"spec", "replicatedJobs"});
  const auto wants = [](const kube::Json& one) { return WantsGang(one, {"template", "spec", "template"}); };
  const bool said = std::any_of(all.begin(), all.end(), wants);
  for (const kube::Json& replicated : all) {
    // Where none says that it is a gang, which happens to jobs that are only observed, GPUs make one.
    const kube::Json* pod = kube::Find(replicated, {"template", "spec", "template"});
    if (said ? !wants(replicated) : pod == nullptr || !AsksForGpus(*pod)) continue;
    const std::string name = kube::StringAt(replicated, {"name"});
    const kube::Json* spec = kube::Find(replicated, {"template", "spec"});
    AddSegment(layout, name, kube::IntAt(replicated, {"replicas"}).value_or(1),
               SizeOfJob(*spec, "replicated job " + name));
  }
  if (said && !layout.refusal) layout.refusal = StartsInOrder(owner, layout);
  return layout;
}

OwnerLayout LayoutOfStatefulSet(const kube::Json& owner) {
  OwnerLayout layout;
  layout.index_mark = "apps.kubernetes.io/pod-index";
  layout.first_index = kube::IntAt(owner, {"spec", "ordinals", "start"}).value_or(0);
  layout.Append("", 1, kube::IntAt(owner, {"spec", "replicas"}).value_or(1));
  layout.scales = true;
  if (kube::StringAt(owner, {"spec", "podManagementPolicy"}) != "Parallel") {
    layout.refusal =
        InputRefusal{"OneByOne", "StatefulSet " + kube::Name(owner) +
                                     " makes a pod only when the one before it runs, and a gang starts "
                                     "all of them together; set spec.podManagementPolicy: Parallel"};
  }
  return layout;
}

bool WantsGang(const kube::Json& object, kube::Path pod_template) {
  const kube::Json* found = kube::Find(object, pod_template);
  return found != nullptr && kube::Annotation(*found, crds::keys::kParallelism).has_value();
}

void OwnerLayout::Append(std::string name, std::int64_t jobs, std::int64_t pods_per_job) {
  segments.push_back({std::move(name), jobs, pods_per_job, pods});
  pods += jobs * pods_per_job;
}

const RankSegment* OwnerLayout::SegmentOf(const kube::Json& pod) const {
  const std::string name = segment_mark.empty() ? "" : kube::Label(pod, segment_mark).value_or("");
  const auto found = std::find_if(segments.begin(), segments.end(),
                                  [&name](const RankSegment& segment) { return segment.name == name; });
  return found == segments.end() ? nullptr : &*found;
}

namespace {

std::optional<std::int64_t> RankAfterLauncher(const kube::Json& pod) {
  if (kube::Label(pod, mpi::kRole) == "launcher") return 0;
  const std::string name = kube::Name(pod);
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const auto index = kube::ReadIndex(std::string_view(name).substr(dash + 1));
  if (!index || *index >= crds::kMaxPods) return std::nullopt;
  return *index + 1;
}

}  // namespace

std::optional<std::int64_t> OwnerLayout::RankOf(const kube::Json& pod) const {
  if (launcher_first) return RankAfterLauncher(pod);
  if (!numbered) return std::nullopt;
  const RankSegment* segment = segment_mark.empty() ? nullptr : SegmentOf(pod);
  if (!segment_mark.empty() && segment == nullptr) return std::nullopt;
  const auto number = [&](std::string_view mark, std::int64_t of) -> std::optional<std::int64_t> {
    if (mark.empty()) return 0;
    const auto said = NumberMark(pod, mark);
    return !said && one_unnumbered && of == 1 ? std::optional<std::int64_t>(0) : said;
  };
  auto index = number(index_mark, segment == nullptr ? 0 : segment->pods_per_job);
  if (!index) return std::nullopt;
  *index -= first_index;
  if (segment == nullptr) return index;
  const auto job = number(job_mark, segment->jobs);
  if (!job) return std::nullopt;
  // Outside its own segment it would take another one's rank.
  if (*index < 0 || *job >= segment->jobs || *index >= segment->pods_per_job) return pods;
  return segment->first + *job * segment->pods_per_job + *index;
}

OwnerLayout ReadLayout(const kube::Json& owner) {
  const std::string kind = kube::StringAt(owner, {"kind"}), name = kube::Name(owner);
  OwnerLayout layout;
  if (const OwnerKind* known = OwnerKindOf(kube::StringAt(owner, {"apiVersion"}), kind)) {
    layout = known->layout(owner);
  } else {
    layout.refusal =
        InputRefusal{"UnsupportedOwner",
                     "pods of a " + kind + " cannot be ranked by this version; it plans " + OwnerKindWords()};
  }
  if (layout.rank_file_for.empty()) layout.rank_file_for = name;
  CheckPods(layout, kind + " " + name);
  return layout;
}

// A mark that cannot be read is as good as none.
void ReadMarks(OwnerLayout& layout, const std::vector<std::shared_ptr<const kube::Json>>& pods) {
  if (layout.refusal) return;
  // Numbers that people, or a controller's gate, may leave out; others always come, and a pod without one is at fault.
  const std::string_view mark = layout.one_unnumbered ? layout.job_mark : layout.index_mark;
  if (layout.one_unnumbered || mark == crds::keys::kGangRank || mark == kueue::kPodIndex) {
    layout.numbered = std::any_of(pods.begin(), pods.end(),
                                  [&mark](const auto& pod) { return NumberMark(*pod, mark).has_value(); });
  }
  if (layout.size_mark.empty()) return;
  for (const auto& pod : pods) {
    const auto size = NumberMark(*pod, layout.size_mark);
    if (!size || layout.segments.size() != 1) continue;
    layout.pods = layout.segments.front().pods_per_job = *size - layout.first_index;
    break;
  }
  CheckPods(layout, "the gang");
}

JobDone ReadJobDone(const kube::Json& job) {
  if (kube::StringAt(job, {"kind"}) != kube::kJobs.kind || kube::DeletionTimestamp(job)) return {};
  return {kube::StringAt(job, {"status", "completedIndexes"}), ConditionTrue(job, "Complete")};
}

namespace {

// As its pods, a Job carries the marks that say which of the owner's it is.
std::set<int> ReadRanksDoneOf(const OwnerLayout& layout, const kube::Json& job) {
  std::set<int> ranks;
  if (layout.segment_mark.empty() || layout.job_mark.empty()) return ranks;
  const RankSegment* segment = layout.SegmentOf(job);
  const auto number = NumberMark(job, layout.job_mark);
  if (segment == nullptr || !number || *number >= segment->jobs) return ranks;
  const JobDone done = ReadJobDone(job);
  const std::string last = std::to_string(std::max<std::int64_t>(segment->pods_per_job - 1, 0));
  for (const int index : kube::ReadIndexes(done.all ? "0-" + last : done.indexes, segment->pods_per_job)) {
    ranks.insert(int(segment->first + *number * segment->pods_per_job + index));
  }
  return ranks;
}

}  // namespace

std::set<int> ReadRanksDone(const kube::Json& owner, std::int64_t pods,
                            const std::vector<std::shared_ptr<const kube::Json>>& jobs) {
  if (kube::StringAt(owner, {"kind"}) == kube::kJobs.kind) {
    return kube::ReadIndexes(kube::StringAt(owner, {"status", "completedIndexes"}), pods);
  }
  std::set<int> ranks;
  if (jobs.empty()) return ranks;
  const OwnerLayout layout = ReadLayout(owner);
  if (layout.refusal) return ranks;
  for (const auto& job : jobs) ranks.merge(ReadRanksDoneOf(layout, *job));
  ranks.erase(ranks.lower_bound(int(std::min<std::int64_t>(pods, crds::kMaxPods))), ranks.end());
  return ranks;
}

OwnerState ReadOwnerState(const kube::Json& owner, const GangKey& key) {
  const bool by_name = key.owner_uid.find('@') != std::string::npos;
  if (!by_name && kube::Uid(owner) != key.owner_uid) return OwnerState::kGone;
  if (kube::DeletionTimestamp(owner)) return OwnerState::kDeleting;
  for (const std::string_view type :
       {"Complete", "Failed", "Completed", "Succeeded", "SuccessCriteriaMet", "FailureTarget"}) {
    if (ConditionTrue(owner, type)) return OwnerState::kFinished;
  }
  if (kube::BoolAt(owner, {"spec", "suspend"}).value_or(false) ||
      kube::BoolAt(owner, {"spec", "runPolicy", "suspend"}).value_or(false)) {
    return OwnerState::kSuspended;
  }
  if (kube::StringAt(owner, {"kind"}) == lws::kKind) {
    const auto groups = GangsOfOwner(owner);
    if (std::find(groups.begin(), groups.end(), key) == groups.end()) return OwnerState::kScaledDown;
  }
  if (kube::IntAt(owner, {"status", "restarts"}).value_or(0) > key.attempt) return OwnerState::kNextAttempt;
  return OwnerState::kActive;
}

}  // namespace heddle::extender
