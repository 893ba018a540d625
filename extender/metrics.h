#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "extender/census.h"
#include "placement/plan.h"

namespace heddle::extender {

// What /metrics shows; docs/operations.md has a line for each. No label's values grow with the cluster's users: no pod,
// Job, Gang or node is named. Thread rule: every member may be called from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void Verb(const std::string& verb, int status, std::chrono::nanoseconds took);
  void Planned(bool found, std::chrono::nanoseconds took);
  void Refused(const std::string& reason);
  void Released(int pods);
  void WriteFailed(const std::string& code);
  void Leading(bool leading);
  void Waiting(int gangs);
  // A gang that mode observe has priced: the cluster's side, and Heddle's where it would not have made it wait.
  void Observed(const placement::Quality& cluster, const std::optional<placement::Quality>& heddle);
  // A Gang's status was written over `before`'s.
  void Moved(const crds::Gang& before, const crds::GangStatus& after, base::WallTime now);
  void Gangs(const GangCount& gangs);
  void DevicesDiffer(int gangs);
  void Stands(const Census& census);
  void Heard(const std::string& resource, std::chrono::nanoseconds ago);
  void QueueDepth(std::size_t keys);
  void Reconciled(base::WallTime now);  // a key of the queue was worked off without an error
  std::string Text() const;             // Prometheus' text format

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace heddle::extender
