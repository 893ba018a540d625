#include "kube/lease.h"

namespace heddle::kube {

using base::Code;
using base::Fail;
using base::Status;

LeaseObserver::LeaseObserver(Client& client, base::Clock& clock, base::Random random,
                             LeaseObserverOptions options)
    : client_(client.WithRequestTimeout(kObservationTimeout)),
      clock_(clock),
      random_(random),
      options_(std::move(options)) {}

void LeaseObserver::Run(std::stop_token stop) {
  do {
    // A failed read is told by healthy(); the last holder expires by itself.
    (void)ObserveOnce(stop);
  } while (clock_.SleepFor(options_.period + random_.Jitter(options_.period / 10), stop));
}

Status LeaseObserver::ObserveOnce(std::stop_token stop) {
  // From before the request: what a late answer says was so at any time since.
  const base::MonotonicTime started = clock_.Now();
  auto lease = client_.Get(kLeases, options_.lease, std::move(stop));
  const bool absent = !lease && lease.error().code == Code::kNotFound;
  Status failure;
  if (!lease && !absent) failure = Fail(lease.error());
  {
    const std::lock_guard lock(mutex_);
    healthy_ = lease.has_value() || absent;
    if (absent) observed_ = {};
    if (lease) observed_.Observe(*std::move(lease), started);
  }
  const std::string holder = Holder().value_or("");
  const bool changed = holder != reported_;
  reported_ = holder;
  if (changed && options_.on_change) options_.on_change(holder);
  return failure;
}

std::optional<std::string> LeaseObserver::Holder() const {
  const base::MonotonicTime now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (!observed_.ValidAt(now)) return std::nullopt;
  return observed_.Holder();
}

bool LeaseObserver::healthy() const {
  const std::lock_guard lock(mutex_);
  return healthy_;
}

LeaseHeartbeat::LeaseHeartbeat(Client& client, base::Clock& clock, base::Random random,
                               HeartbeatOptions options)
    : client_(client), clock_(clock), random_(random), options_(std::move(options)) {}

void LeaseHeartbeat::Run(std::stop_token stop) {
  bool beaten = false;
  do {
    beaten = BeatOnce(stop).has_value();
    // Four tries fit into a lease's duration even if the first fails.
  } while (clock_.SleepFor(beaten ? options_.period + random_.Jitter(options_.period / 5)
                                  : options_.period / 4 + random_.Jitter(options_.period / 4),
                           stop));
}

Status LeaseHeartbeat::BeatOnce(std::stop_token stop) {
  const std::string why = options_.withheld ? options_.withheld() : "";
  Status beaten = why.empty() ? Write(stop) : Status(Fail(Code::kUnavailable, why));
  if (!beaten && (beaten.error().code == Code::kConflict || beaten.error().code == Code::kNotFound)) {
    known_ = nullptr;
    beaten = Write(stop);
  }
  const std::lock_guard lock(mutex_);
  last_error_ = beaten ? std::nullopt : std::optional(beaten.error());
  return beaten;
}

std::optional<base::Error> LeaseHeartbeat::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

Status LeaseHeartbeat::Write(const std::stop_token& stop) {
  if (known_.is_null()) {
    auto read = client_.Get(kLeases, options_.lease, stop);
    if (!read && read.error().code != Code::kNotFound) return Fail(read.error());
    if (read) known_ = *std::move(read);
  }
  const bool exists = known_.is_object();
  Json lease = exists ? known_ : NewObject(kLeases, options_.lease);
  if (!lease["spec"].is_object()) lease["spec"] = Json::object();
  lease["spec"]["holderIdentity"] = options_.identity;
  lease["spec"]["leaseDurationSeconds"] = std::chrono::ceil<std::chrono::seconds>(options_.duration).count();
  lease["spec"]["renewTime"] = base::FormatMicroTime(clock_.WallNow());
  if (options_.owner) lease["metadata"]["ownerReferences"] = Json::array({ToJson(*options_.owner)});
  ASSIGN_OR_RETURN(known_,
                   exists ? client_.Update(kLeases, lease, stop) : client_.Create(kLeases, lease, stop));
  return {};
}

}  // namespace heddle::kube
