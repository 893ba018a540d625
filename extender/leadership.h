#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client.h"

namespace heddle::extender {

struct LeadershipOptions {
  // The kube-scheduler beside us: it holds the Lease heddle-scheduler as "<host name>_<uuid>".
  std::string scheduler_identity;
  // No scheduler beside us: take that Lease ourselves, under this identity.
  bool own_lease = false;
  std::string identity;
  std::string ns;
  kube::Log log;
};

// One planner exists in a cluster. It leads while its own kube-scheduler does, or while it holds that Lease
// itself. Thread rule: Run on one thread; `lead` is called there.
class Leadership {
 public:
  Leadership(kube::Client& client, base::Clock& clock, base::Random random, LeadershipOptions options,
             std::function<void(bool leading)> lead);

  void Run(const std::stop_token& stop);

 private:
  void Follow(const std::stop_token& stop);  // the scheduler's Lease
  void Elect(const std::stop_token& stop);   // our own
  void Set(bool leading, const std::string& why);

  kube::Client& client_;
  base::Clock& clock_;
  base::Random random_;
  const LeadershipOptions options_;
  const std::function<void(bool)> lead_;
  bool leading_ = false;
};

// Whether a Lease's holder is the scheduler of that name: the name itself or "<name>_<uuid>".
bool IsHeldBy(const std::string& holder, const std::string& scheduler);

}  // namespace heddle::extender
