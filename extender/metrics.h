#pragma once

#include <chrono>
#include <memory>
#include <string>

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
  std::string Text() const;  // Prometheus' text format

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace heddle::extender
