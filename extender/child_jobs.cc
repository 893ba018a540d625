#include "extender/child_jobs.h"

#include <optional>

#include "extender/owner_layout.h"

namespace heddle::extender {
namespace {

struct Said {
  std::optional<GangKey> gang;  // nothing where no pod of the Job is done
  JobDone done;
};
Said Read(const kube::ObjectPtr& job) {
  if (job == nullptr) return {};
  JobDone done = ReadJobDone(*job);
  if (!done.any()) return {};
  return {GangOfChildJob(*job), std::move(done)};
}

}  // namespace

std::vector<GangKey> ChildJobs::Changed(const kube::ObjectPtr& old, const kube::ObjectPtr& current) {
  const Said was = Read(old), is = Read(current);
  if (!was.gang && !is.gang) return {};
  const std::lock_guard lock(mutex_);
  if (was.gang) {
    const auto found = done_.find(*was.gang);
    if (found != done_.end()) {
      found->second.erase(kube::KeyOf(*old));
      if (found->second.empty()) done_.erase(found);
    }
  }
  if (is.gang) done_[*is.gang].insert_or_assign(kube::KeyOf(*current), current);
  if (was.gang == is.gang && was.done == is.done) return {};
  std::vector<GangKey> gangs;
  if (was.gang) gangs.push_back(*was.gang);
  if (is.gang && is.gang != was.gang) gangs.push_back(*is.gang);
  return gangs;
}

std::vector<kube::ObjectPtr> ChildJobs::DoneOf(const GangKey& gang) const {
  std::vector<kube::ObjectPtr> jobs;
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(gang);
  if (found == done_.end()) return jobs;
  jobs.reserve(found->second.size());
  for (const auto& [_, job] : found->second) jobs.push_back(job);
  return jobs;
}

}  // namespace heddle::extender
