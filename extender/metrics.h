#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "placement/plan.h"

namespace heddle::extender {

// What /metrics shows. Thread rule: every member may be called from any thread.
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
  std::string Text() const;  // Prometheus' text format

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace heddle::extender
