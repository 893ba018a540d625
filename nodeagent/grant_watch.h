#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "base/clock.h"
#include "kube/work_queue.h"
#include "nodeagent/grants.h"

namespace heddle::nodeagent {

struct GrantWatchOptions {
  // Between two questions. The API has no watch.
  std::chrono::nanoseconds interval = std::chrono::seconds(30);
  // From Wake to a question: the devices of one pod, and pods that come together, are one change then.
  std::chrono::nanoseconds settle = std::chrono::seconds(1);
};

// Asks a source for the grants, every interval and soon after Wake, and passes each answer on. One question without
// an answer after an answer is passed over: a kubelet is away for seconds when it restarts.
// Thread rule: Run on a thread of its own; Wake from any.
class GrantWatch {
 public:
  GrantWatch(GrantSource& source, base::Clock& clock, GrantWatchOptions options,
             std::function<void(const GrantReadings&)> on_answer);

  void Run(std::stop_token stop);  // blocks until stop
  // Asks if it is time to, without blocking; returns whether it was.
  bool RunOnce(std::stop_token stop);
  void Wake();

 private:
  void Ask(const std::string& key, std::stop_token stop);

  GrantSource& source_;
  const GrantWatchOptions options_;
  const std::function<void(const GrantReadings&)> on_answer_;
  kube::WorkQueue queue_;
  bool answered_ = false;  // the last question
};

}  // namespace heddle::nodeagent
