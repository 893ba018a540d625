#include "kube/lease.h"

#include <fmt/format.h>

#include "base/check.h"

namespace heddle::kube {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr double kJitter = 1.2;  // client-go leaderelection.JitterFactor

std::int64_t WholeSeconds(std::chrono::nanoseconds duration) {
  return std::max<std::int64_t>(1, std::chrono::ceil<seconds>(duration).count());
}

}  // namespace

std::string ObservedLease::Holder() const {
  return StringAt(object, {"spec", "holderIdentity"});
}

seconds ObservedLease::Duration() const {
  return seconds(IntAt(object, {"spec", "leaseDurationSeconds"}).value_or(0));
}

bool ObservedLease::ValidAt(base::MonotonicTime now) const {
  return !Holder().empty() && now < observed + Duration();
}

void ObservedLease::Observe(Json fresh, base::MonotonicTime now) {
  const Json* known = Find(object, {"spec"});
  const Json* spec = Find(fresh, {"spec"});
  const bool same = known != nullptr && spec != nullptr && *known == *spec && Uid(object) == Uid(fresh);
  if (!same) observed = now;
  object = std::move(fresh);
}

LeaseElector::LeaseElector(Client& client, base::Clock& clock, base::Random random, LeaseOptions options,
                           LeaseCallbacks callbacks)
    : client_(
          client.WithRequestTimeout(std::chrono::duration_cast<milliseconds>(options.renew_deadline / 2))),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)) {
  CHECK(!options_.identity.empty());
  CHECK(options_.duration > options_.renew_deadline);
  CHECK(double(options_.renew_deadline.count()) > kJitter * double(options_.retry_period.count()));
}

Status LeaseElector::Run(std::stop_token stop) {
  if (!Acquire(stop)) return {};
  Say(fmt::format("Leads {} as {}", options_.lease.ToString(), options_.identity));
  if (callbacks_.started) callbacks_.started();
  Status ended = Renew(stop);
  {
    const std::lock_guard lock(mutex_);
    leading_ = false;
  }
  if (callbacks_.stopped) callbacks_.stopped();
  // After the work has stopped, or two would work at once.
  if (ended && options_.release_on_exit) Release();
  return ended;
}

bool LeaseElector::IsLeader() const {
  const base::MonotonicTime now = clock_.Now();
  const std::lock_guard lock(mutex_);
  return leading_ && now < last_renewed_ + options_.renew_deadline;
}

std::string LeaseElector::Holder() const {
  const std::lock_guard lock(mutex_);
  return observed_.Holder();
}

bool LeaseElector::Acquire(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto acquired = TryAcquireOrRenew(stop);
    if (acquired && *acquired) return true;
    if (!acquired && !stop.stop_requested()) Say(base::ToString(acquired.error()));
    const auto spread =
        std::chrono::nanoseconds(std::int64_t(double(options_.retry_period.count()) * kJitter));
    clock_.SleepFor(options_.retry_period + random_.Jitter(spread), stop);
  }
  return false;
}

// Returns OK after stop, or why the lease is lost.
Status LeaseElector::Renew(const std::stop_token& stop) {
  std::string last_failure = "no answer";
  while (clock_.SleepFor(options_.retry_period, stop)) {
    const auto renewed = TryAcquireOrRenew(stop);
    if (stop.stop_requested()) break;
    if (renewed && !*renewed) {
      return Fail(Code::kConflict,
                  fmt::format("lease {} was taken by {}", options_.lease.ToString(), Holder()));
    }
    if (!renewed) {
      last_failure = renewed.error().message;
      Say(base::ToString(renewed.error()));
    }
    if (!IsLeader()) {
      return Fail(Code::kTimeout, fmt::format("lease {} could not be renewed in time: {}",
                                              options_.lease.ToString(), last_failure));
    }
  }
  return {};
}

// True: we hold it. False: somebody else does.
Result<bool> LeaseElector::TryAcquireOrRenew(const std::stop_token& stop) {
  bool newest_known = false;
  {
    const std::lock_guard lock(mutex_);
    // None is known after a Lease that had gone could not be made anew: a PUT that names none is refused each time, or
    // goes past whoever made it since.
    newest_known = leading_ && !ResourceVersion(observed_.object).empty();
  }
  if (newest_known) {
    // As we alone write it while we lead, the version we know is most likely the newest: one request instead
    // of two.
    const base::MonotonicTime started = clock_.Now();
    auto renewed = WriteLease(ComposeLease(), started, stop);
    if (renewed || renewed.error().code != Code::kConflict) return renewed;
  }
  const base::MonotonicTime started = clock_.Now();
  auto lease = client_.Get(kLeases, options_.lease, stop);
  if (!lease && lease.error().code == Code::kNotFound) return CreateLease(stop);
  if (!lease) return Fail(lease.error());
  Observed(*std::move(lease));
  bool others = false;
  {
    const std::lock_guard lock(mutex_);
    others = observed_.Holder() != options_.identity && observed_.ValidAt(clock_.Now());
  }
  if (others) return false;
  return WriteLease(ComposeLease(), started, stop);
}

Result<bool> LeaseElector::CreateLease(const std::stop_token& stop) {
  const base::MonotonicTime started = clock_.Now();
  {
    const std::lock_guard lock(mutex_);
    observed_ = {};
  }
  ASSIGN_OR_RETURN(Json created, client_.Create(kLeases, ComposeLease(), stop));
  Observed(std::move(created));
  const std::lock_guard lock(mutex_);
  leading_ = true;
  last_renewed_ = started;
  return true;
}

Result<bool> LeaseElector::WriteLease(const Json& lease, base::MonotonicTime started,
                                      const std::stop_token& stop) {
  ASSIGN_OR_RETURN(Json written, client_.Update(kLeases, lease, stop));
  Observed(std::move(written));
  const std::lock_guard lock(mutex_);
  leading_ = true;
  // From before the request: the server may have taken it at any time since.
  last_renewed_ = started;
  return true;
}

// The known object with our claim in it; fields that we do not know stay.
Json LeaseElector::ComposeLease() const {
  const std::string now = base::FormatMicroTime(clock_.WallNow());
  const std::lock_guard lock(mutex_);
  Json lease = observed_.object.is_object() ? observed_.object : NewObject(kLeases, options_.lease);
  Json& spec = lease["spec"];
  if (!spec.is_object()) spec = Json::object();
  if (observed_.Holder() != options_.identity) {
    const std::int64_t transitions = IntAt(lease, {"spec", "leaseTransitions"}).value_or(-1);
    spec["leaseTransitions"] = transitions + 1;
    spec["acquireTime"] = now;
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = WholeSeconds(options_.duration);
  spec["renewTime"] = now;
  return lease;
}

void LeaseElector::Release() {
  // Stop may have come right after a read that saw it taken.
  if (Holder() != options_.identity) return;
  // stop was asked already; the requests' own timeout bounds this last word. Stop may have cut a renewal that
  // the server did take, so a conflict is read again once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    Json lease = ComposeLease();
    if (ResourceVersion(lease).empty()) return;
    lease["spec"]["holderIdentity"] = "";
    lease["spec"]["leaseDurationSeconds"] = 1;
    auto released = client_.Update(kLeases, lease, std::stop_token{});
    if (released) return Observed(*std::move(released));
    Say(base::ToString(released.error()));
    if (released.error().code != Code::kConflict) return;
    auto newest = client_.Get(kLeases, options_.lease, std::stop_token{});
    if (!newest) return;
    Observed(*std::move(newest));
    if (Holder() != options_.identity) return;
  }
}

void LeaseElector::Observed(Json lease) {
  const base::MonotonicTime now = clock_.Now();
  std::string holder;
  {
    const std::lock_guard lock(mutex_);
    observed_.Observe(std::move(lease), now);
    holder = observed_.Holder();
    if (holder == reported_holder_) return;
    reported_holder_ = holder;
  }
  if (callbacks_.new_leader) callbacks_.new_leader(holder);
}

void LeaseElector::Say(const std::string& line) const {
  if (options_.log) options_.log(line);
}

}  // namespace heddle::kube
