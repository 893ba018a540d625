#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "extender/gang_key.h"
#include "kube/store.h"

namespace heddle::extender {

// The Jobs of JobSets that say of a pod that it has succeeded, by gang: a JobSet says how many of its Jobs are complete
// and not which of their pods are done. Most Jobs say nothing yet, and are not kept. Thread rule: from any.
class ChildJobs {
 public:
  // As a reflector tells, of any object that makes pods. Returns the gangs of which other ranks are done now.
  std::vector<GangKey> Changed(const kube::ObjectPtr& old, const kube::ObjectPtr& current);
  // In the order of their names.
  std::vector<kube::ObjectPtr> DoneOf(const GangKey& gang) const;

 private:
  mutable std::mutex mutex_;
  std::map<GangKey, std::map<kube::ObjectKey, kube::ObjectPtr>> done_;
};

}  // namespace heddle::extender
