#include "nodeagent/health/gpu_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "nodeagent/gpu/probe.h"

namespace heddle::nodeagent {
namespace {

using base::MonotonicTime;
using topology::Gpu;

constexpr std::string_view kNoFaultSince = " (no fault since ";
constexpr std::string_view kSince = ", since ";
constexpr std::string_view kTheLast = ", the last: ";
constexpr std::size_t kTimeSize = 20;        // 2026-11-22T01:46:30Z
constexpr std::size_t kMaxFailures = 1'000;  // looks are five seconds apart, so an hour has 360
constexpr std::size_t kMaxStates = 128;      // a node has 32 GPUs at most; they may move

// Another card in the same slot.
bool IsAnother(const std::string& uuid, const Gpu& gpu) {
  return !uuid.empty() && !gpu.uuid.empty() && uuid != gpu.uuid;
}

bool IsEvidence(const Observation& seen, const Gpu& gpu) {
  const bool unasked = seen.gpus_unreadable && gpu.uuid.empty();
  return !unasked && gpu.unhealthy_reason != kMigIsOn;
}

// On purpose, and nobody's failure.
bool IsLeftOut(const Observation& seen, const std::string& address) {
  return std::any_of(seen.excluded.begin(), seen.excluded.end(),
                     [&address](const Exclusion& excluded) { return excluded.device == address; });
}

}  // namespace

bool GpuAllowance::Take(MonotonicTime now) {
  if (left_ == kInARow) from_ = now;
  const std::int64_t more = (now - from_) / kRefill;
  left_ = int(std::min<std::int64_t>(kInARow, left_ + more));
  from_ += more * kRefill;
  if (left_ == 0) return false;
  --left_;
  return true;
}

void GpuHealth::Restore(const crds::NodeTopologyStatus& published) {
  if (!boot_id_.empty() && !published.boot_id.empty() && boot_id_ != published.boot_id) return;
  if (boot_id_.empty()) boot_id_ = published.boot_id;
  for (const Gpu& gpu : published.node.gpus) {
    if (GpuKey(gpu).empty()) continue;
    State& state = states_[GpuKey(gpu)];
    if (state.bad || IsAnother(state.uuid, gpu)) continue;
    if (state.uuid.empty()) state.uuid = gpu.uuid;
    // One without a UUID is the bus's: its driver could not be asked.
    const bool evident = !gpu.uuid.empty() && gpu.unhealthy_reason != kMigIsOn;
    if (gpu.healthy || (!evident && !Flaps(gpu))) continue;
    state.bad = state.evident = true;
    state.fault = gpu.unhealthy_reason;
    if (const std::size_t good = state.fault.rfind(kNoFaultSince); good != std::string::npos) {
      state.fault.resize(good);
    } else {
      state.faulty = true;
    }
    if (!Flaps(gpu)) continue;
    state.flaps = true;
    state.reported = kGpuFlapFailures;
    if (const std::size_t since = state.fault.find(kSince); since != std::string::npos) {
      state.since = base::ParseTime(std::string_view(state.fault).substr(since + kSince.size(), kTimeSize))
                        .value_or(base::WallTime());
    }
  }
}

void GpuHealth::Look(const Observation& seen, MonotonicTime now, base::WallTime wall) {
  wall = std::chrono::floor<std::chrono::seconds>(wall);
  if (!boot_id_.empty() && !seen.boot_id.empty() && boot_id_ != seen.boot_id) states_.clear();
  if (!seen.boot_id.empty()) boot_id_ = seen.boot_id;
  std::set<std::string> here;
  for (const Gpu& gpu : seen.node.gpus) {
    const std::string& key = GpuKey(gpu);
    here.insert(key);
    // Neither a place nor a UUID: nobody can tell it from another.
    if (key.empty() || (states_.size() >= kMaxStates && !states_.contains(key))) continue;
    State& state = states_[key];
    if (IsAnother(state.uuid, gpu)) state = State();
    if (!gpu.uuid.empty()) state.uuid = gpu.uuid;
    if (gpu.healthy) {
      Pass(state, now, wall);
    } else {
      Fail(state, gpu.unhealthy_reason, IsEvidence(seen, gpu), now, wall);
    }
  }
  // Who could not be asked says of nobody that he is gone.
  const bool asked = !seen.gpus_unreadable && !seen.bus_unread && seen.no_driver.empty();
  for (auto known = states_.begin(); known != states_.end();) {
    if (here.contains(known->first)) {
      ++known;
    } else if (IsLeftOut(seen, known->first)) {
      known = states_.erase(known);
    } else {
      if (asked) Fail(known->second, "it was no longer found: see dmesg", true, now, wall);
      ++known;
    }
  }
}

void GpuHealth::Apply(Observation& seen) const {
  for (Gpu& gpu : seen.node.gpus) {
    const auto known = states_.find(GpuKey(gpu));
    if (known == states_.end() || !known->second.bad || IsAnother(known->second.uuid, gpu)) continue;
    gpu.healthy = false;
    gpu.unhealthy_reason = Reason(known->second);
    if (known->second.evident || known->second.flaps) seen.unasked_gpus.erase(gpu.index);
  }
}

void GpuHealth::Fail(State& state, const std::string& why, bool evident, MonotonicTime now,
                     base::WallTime wall) {
  if (!state.faulty) state.failures.push_back(now);
  while (state.failures.size() > kMaxFailures ||
         (!state.failures.empty() && now - state.failures.front() > kGpuFlapWindow))
    state.failures.pop_front();
  state.faulty = state.bad = true;
  state.evident = state.evident || evident;
  state.good_since.reset();
  state.good_looks = 0;
  // A flapping GPU that was published before a restart has its whole sentence here, which names the fault of then.
  const bool same = state.fault == why || (state.fault.starts_with(kGpuFlaps) && state.fault.ends_with(why));
  if (state.fault.empty() || (!same && state.changes.Take(now))) state.fault = why;
  const std::size_t count = state.failures.size();
  if (count < kGpuFlapFailures || count / 2 < state.reported) return;
  if (!state.flaps) state.since = wall;
  state.flaps = true;
  state.reported = count;
  state.fault = why;
}

void GpuHealth::Pass(State& state, MonotonicTime now, base::WallTime wall) {
  state.faulty = false;
  if (!state.bad) return;
  if (!state.good_since) {
    state.good_since = now;
    state.good_from = wall;
  }
  ++state.good_looks;
  const bool waits = state.flaps || state.evident;
  const std::chrono::minutes quiet = state.flaps ? kGpuFlapQuiet : kGpuQuiet;
  if (waits && (state.good_looks < kGpuGoodLooks || now - *state.good_since < quiet)) return;
  State good;
  good.uuid = state.uuid;
  good.changes = state.changes;
  if (!state.flaps) good.failures = std::move(state.failures);
  state = std::move(good);
}

std::string GpuHealth::Reason(const State& state) {
  if (state.flaps) {
    if (state.fault.starts_with(kGpuFlaps)) return state.fault;
    return fmt::format("{}{} failures in 1 h{}{}{}{}", kGpuFlaps, state.reported, kSince,
                       base::FormatTime(state.since), kTheLast, state.fault);
  }
  if (!state.good_since) return state.fault;
  return fmt::format("{}{}{}: healthy again after {} min of that)", state.fault, kNoFaultSince,
                     base::FormatTime(state.good_from), kGpuQuiet.count());
}

}  // namespace heddle::nodeagent
