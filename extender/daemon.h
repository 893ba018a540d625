#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "extender/leadership.h"
#include "extender/pod_facts.h"
#include "kube/http.h"
#include "kube/http_server.h"

namespace heddle::extender {

struct DaemonOptions {
  std::string listen = "127.0.0.1:8010";  // in mode observe without the verbs
  // Where /metrics, /healthz and /readyz are served, and no verb: what is on loopback nobody scrapes. Empty = nowhere.
  std::string metrics_listen;
  Mode mode = Mode::kPlace;
  bool preemption = true;  // see ControllerOptions
  int spares = 0;          // see Snapshot
  std::string identity;    // unique; in the Lease and in events
  LeadershipOptions leadership;
  std::function<void(const std::string& address)> listening;  // called once requests are served
  kube::Log log;
};

// The extender without its server, so that a simulation can run it: the gang controller, leadership, the agents'
// heartbeats, and what the scheduler is answered. Thread rule: Run on one thread, Answer from any. Transport and
// clock must outlive it.
class Daemon {
 public:
  Daemon(kube::HttpTransport& transport, base::Clock& clock, base::Random random, DaemonOptions options);
  ~Daemon();

  kube::ServedAnswer Answer(const kube::ServedRequest& request);        // in mode observe as AnswerStatus
  kube::ServedAnswer AnswerStatus(const kube::ServedRequest& request);  // no verbs
  void Run(const std::stop_token& stop);                                // blocks until stop

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The extender without its main: the server, the gang controller, leadership and the agents' heartbeats.
// Blocks until stop; fails only when it cannot listen. An API server that cannot be reached is said so and
// waited for.
[[nodiscard]] base::Status RunDaemon(kube::HttpTransport& transport, base::Clock& clock, base::Random random,
                                     const DaemonOptions& options, const std::stop_token& stop);

}  // namespace heddle::extender
