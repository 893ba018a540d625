#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "crds/fabric.h"
#include "kube/http.h"
#include "kube/work_queue.h"
#include "operator/switch_verdicts.h"
#include "operator/ufm_client.h"
#include "operator/view.h"
#include "switches/counter_window.h"
#include "switches/ufm.h"

namespace heddle::operators {

// What is known of one fabric by asking its UFM.
struct UfmAnswer {
  std::optional<SwitchTrouble> trouble;   // of the last try; nothing = it answered
  std::optional<base::WallTime> read_at;  // when it last answered; nothing = never
  bool connecting = true;                 // nothing has come of any try yet
  SwitchCounting counting;
  std::shared_ptr<const std::vector<switches::UfmPort>> ports;  // of its switches; null = never heard
  // What its switches count against their ports, by GUID.
  std::map<std::string, std::vector<switches::PortSightings>> sightings;
  // Whether it has been counted for long enough that silence means that nothing stands against a port: what stood
  // before must not be called well by who has just begun.
  bool primed = false;
  friend bool operator==(const UfmAnswer&, const UfmAnswer&) = default;
};

// Asks the UFM of every Fabric that names one: its ports and who is at their other ends once a minute, its counters
// once in spec.ufm.pollSeconds. One that cannot be reached is tried again after two seconds, doubling to a minute, with
// its Secrets read anew; what it said stays until it is old. Counters that UFM itself has not taken anew are no sample.
//
// Thread rule: Run on one thread; the rest from any. What is passed must outlive it.
class UfmWatch {
 public:
  struct Options {
    std::chrono::seconds ports_every{60};
    std::chrono::milliseconds call_timeout{20'000};
    std::chrono::seconds least_retry{2}, most_retry{60};
    // UFM takes counters about every 30 s; what it has not taken for so long is old.
    std::chrono::seconds stands_still{300};
    int workers = 2;  // so that one that hangs does not hold up the next
  };
  struct Ways {
    const View& fabrics;
    // With its Secrets; may block. Errors: as ReadUfmEndpoint.
    std::function<base::Result<UfmEndpoint>(const crds::FabricUfm&, const std::stop_token&)> endpoint;
    std::function<std::unique_ptr<kube::HttpTransport>(const UfmEndpoint&)> transport;
    std::function<void()> on_answers;  // what Of() says has changed, times aside
  };
  UfmWatch(base::Clock& clock, base::Random random, Ways ways)
      : UfmWatch(clock, random, std::move(ways), Options{}) {}
  UfmWatch(base::Clock& clock, base::Random random, Ways ways, Options options);
  ~UfmWatch();
  UfmWatch(const UfmWatch&) = delete;
  UfmWatch& operator=(const UfmWatch&) = delete;

  void Changed(const std::string& fabric);  // the object, or that it is gone
  void Run(const std::stop_token& stop);    // asks until stop, then forgets everything
  // Works off what is due now; returns whether anything was. For tests, in place of Run.
  bool RunOnce(const std::stop_token& stop);

  // Nothing where the Fabric names no UFM, or nobody has looked yet.
  std::optional<UfmAnswer> Of(const std::string& fabric) const;
  std::map<std::string, UfmAnswer> Answers() const;  // by Fabric

 private:
  struct Session;
  void Handle(const std::string& fabric, const std::stop_token& stop);
  base::Status Ask(Session& session, const std::stop_token& stop);
  void TakeCounters(Session& session, switches::UfmCounters counters);
  void Judge(Session& session);
  void Publish(const std::string& fabric, const Session& session);
  std::chrono::nanoseconds Jittered(std::chrono::nanoseconds span);

  base::Clock& clock_;
  const Ways ways_;
  const Options options_;
  kube::WorkQueue queue_;

  mutable std::mutex mutex_;
  base::Random random_;
  // A key of the queue is with one worker at a time, and so is its session; the map is under the lock.
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::map<std::string, UfmAnswer> answers_;
};

}  // namespace heddle::operators
