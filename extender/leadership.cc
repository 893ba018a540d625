#include "extender/leadership.h"

#include "crds/keys.h"
#include "kube/lease.h"

namespace heddle::extender {

bool IsHeldBy(const std::string& holder, const std::string& scheduler) {
  if (scheduler.empty() || !holder.starts_with(scheduler)) return false;
  return holder.size() == scheduler.size() || holder[scheduler.size()] == '_';
}

Leadership::Leadership(kube::Client& client, base::Clock& clock, base::Random random,
                       LeadershipOptions options, std::function<void(bool leading)> lead)
    : client_(client), clock_(clock), random_(random), options_(std::move(options)), lead_(std::move(lead)) {}

void Leadership::Run(const std::stop_token& stop) {
  if (options_.own_lease) {
    Elect(stop);
  } else {
    Follow(stop);
  }
  Set(false, "stopping");
}

void Leadership::Set(bool leading, const std::string& why) {
  if (leading == leading_) return;
  leading_ = leading;
  if (options_.log)
    options_.log(std::string(leading ? "Leads" : "Leads no more") + " reason=\"" + why + "\"");
  lead_(leading);
}

void Leadership::Follow(const std::stop_token& stop) {
  kube::LeaseObserver observer(client_, clock_, random_.Fork(),
                               {.lease = {options_.ns, std::string(crds::keys::kSchedulerLease)}});
  const auto judge = [&] {
    const auto holder = observer.Holder();
    Set(holder && IsHeldBy(*holder, options_.scheduler_identity),
        holder ? "the Lease heddle-scheduler is held by " + *holder
               : "nobody holds the Lease heddle-scheduler");
  };
  std::string last_error;
  while (!stop.stop_requested()) {
    // Also before the read, which may wait for an answer while the Lease has run out already.
    judge();
    const base::Status read = observer.ObserveOnce(stop);
    const std::string error = read ? "" : base::ToString(read.error());
    if (error != last_error && !error.empty() && options_.log) {
      options_.log("Failed to read the Lease of the scheduler error=\"" + error + "\"");
    }
    last_error = error;
    judge();
    if (!clock_.SleepFor(std::chrono::seconds(2), stop)) return;
  }
}

void Leadership::Elect(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    kube::LeaseElector elector(client_, clock_, random_.Fork(),
                               {.lease = {options_.ns, std::string(crds::keys::kSchedulerLease)},
                                .identity = options_.identity,
                                .log = options_.log},
                               {.started = [this] { Set(true, "holds the Lease heddle-scheduler"); },
                                .stopped = [this] { Set(false, "lost the Lease heddle-scheduler"); }});
    (void)elector.Run(stop);
    Set(false, "lost the Lease heddle-scheduler");
    if (!clock_.SleepFor(std::chrono::seconds(1), stop)) return;
  }
}

}  // namespace heddle::extender
