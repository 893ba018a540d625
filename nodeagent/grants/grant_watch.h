#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "base/clock.h"
#include "kube/work_queue.h"
#include "nodeagent/grants/grants.h"

namespace heddle::nodeagent {

struct GrantWatchOptions {
  // Between two questions. The API has no watch.
  std::chrono::nanoseconds interval = std::chrono::seconds(30);
  // From Wake to a question: the devices of one pod, and pods that come together, are one change then.
  std::chrono::nanoseconds settle = std::chrono::seconds(1);
  // How long an answer without any container must hold after one that had some. A kubelet that has just started
  // lists no pods until it has heard of them from the API server, which takes it seconds; and to free devices that
  // are in use is worse than to free them late.
  std::chrono::nanoseconds disbelief = std::chrono::seconds(20);
  std::chrono::nanoseconds doubt_interval = std::chrono::seconds(5);  // between two questions until then
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
  // Whether the answer may be that of a kubelet which does not know its pods yet.
  bool Doubts(const GrantReadings& readings);

  GrantSource& source_;
  const GrantWatchOptions options_;
  const std::function<void(const GrantReadings&)> on_answer_;
  base::Clock& clock_;
  kube::WorkQueue queue_;
  bool answered_ = false;  // the last question
  bool granted_ = false;   // the last answer that was believed had containers
  std::optional<base::MonotonicTime> doubted_since_;
};

}  // namespace heddle::nodeagent
