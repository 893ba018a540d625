#include "extender/owner_layout.h"

#include "crds/keys.h"
#include "crds/parallelism.h"

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

bool WantsGang(const kube::Json& replicated_job) {
  return kube::Find(replicated_job, {"template", "spec", "template", "metadata", "annotations",
                                     crds::keys::kParallelism}) != nullptr;
}

void AddSegment(OwnerLayout& layout, std::string name, std::int64_t jobs, const JobSize& size) {
  if (size.refusal && !layout.refusal) layout.refusal = size.refusal;
  layout.segments.push_back({std::move(name), jobs, size.pods, layout.pods});
  layout.pods += jobs * size.pods;
}

OwnerLayout LayoutOfJobSet(const kube::Json& owner) {
  OwnerLayout layout;
  for (const kube::Json& replicated : kube::ArrayAt(owner, {"spec", "replicatedJobs"})) {
    if (!WantsGang(replicated)) continue;
    const std::string name = kube::StringAt(replicated, {"name"});
    const kube::Json* spec = kube::Find(replicated, {"template", "spec"});
    AddSegment(layout, name, kube::IntAt(replicated, {"replicas"}).value_or(1),
               SizeOfJob(*spec, "replicated job " + name));
  }
  return layout;
}

}  // namespace

std::optional<std::int64_t> OwnerLayout::RankOf(const kube::Json& pod) const {
  const auto index = NumberMark(pod, kCompletionIndex);
  if (!index) return std::nullopt;
  const std::string name = kube::Label(pod, jobset::kReplicatedJob).value_or("");
  for (const RankSegment& segment : segments) {
    if (segment.replicated_job != name) continue;
    if (name.empty()) return *index;
    const auto job = NumberMark(pod, jobset::kJobIndex);
    if (!job) return std::nullopt;
    // Outside its own segment it would take another one's rank.
    if (*job >= segment.jobs || *index >= segment.pods_per_job) return pods;
    return segment.first + *job * segment.pods_per_job + *index;
  }
  return std::nullopt;
}

OwnerLayout ReadLayout(const kube::Json& owner) {
  const std::string kind = kube::StringAt(owner, {"kind"}), name = kube::Name(owner);
  OwnerLayout layout;
  if (kind == "JobSet") {
    layout = LayoutOfJobSet(owner);
  } else if (kind == "Job") {
    const kube::Json* spec = kube::Find(owner, {"spec"});
    AddSegment(layout, "", 1, SizeOfJob(spec == nullptr ? kube::Json::object() : *spec, "Job " + name));
  } else {
    layout.refusal = InputRefusal{"UnsupportedOwner", "pods of a " + kind +
                                                          " cannot be ranked by this version; it "
                                                          "plans Indexed Jobs and JobSets"};
  }
  if (!layout.refusal && layout.pods > crds::kMaxPods) {
    layout.refusal =
        InputRefusal{"TooManyPods", kind + " " + name + " makes " + std::to_string(layout.pods) +
                                        " pods; a gang has at most " + std::to_string(crds::kMaxPods)};
  }
  if (!layout.refusal && layout.pods == 0) {
    layout.refusal = InputRefusal{"NoPods", kind + " " + name + " makes no pods"};
  }
  return layout;
}

OwnerState ReadOwnerState(const kube::Json& owner, const GangKey& key) {
  if (kube::Uid(owner) != key.owner_uid) return OwnerState::kGone;
  if (kube::DeletionTimestamp(owner)) return OwnerState::kDeleting;
  for (const std::string_view type :
       {"Complete", "Failed", "Completed", "SuccessCriteriaMet", "FailureTarget"}) {
    if (ConditionTrue(owner, type)) return OwnerState::kFinished;
  }
  if (kube::BoolAt(owner, {"spec", "suspend"}).value_or(false)) return OwnerState::kSuspended;
  if (kube::IntAt(owner, {"status", "restarts"}).value_or(0) > key.attempt) return OwnerState::kNextAttempt;
  return OwnerState::kActive;
}

}  // namespace heddle::extender
