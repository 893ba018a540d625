#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "crds/node_topology.h"
#include "nodeagent/assembly/assemble.h"

namespace heddle::nodeagent {

// When a GPU is believed again. All our own: NVML has no word for it, and nobody else's agent waits.
//   kGpuQuiet      as long as five looks: a GPU that the driver loses twice within minutes was not well between
//   kGpuGoodLooks  and so many looks at least, where somebody has them further apart
//   kGpuFlaps*     a third failure within an hour is no accident; then it stays away for half an hour
inline constexpr std::chrono::minutes kGpuQuiet(5);
inline constexpr int kGpuGoodLooks = 3;
inline constexpr std::size_t kGpuFlapFailures = 3;
inline constexpr std::chrono::hours kGpuFlapWindow(1);
inline constexpr std::chrono::minutes kGpuFlapQuiet(30);

// How the reason of a GPU begins that flaps: "it flaps, 3 failures in 1 h, since 2026-11-22T01:46:30Z, the last: …".
inline constexpr std::string_view kGpuFlaps = "it flaps, ";
inline bool Flaps(const topology::Gpu& gpu) {
  return gpu.unhealthy_reason.starts_with(kGpuFlaps);
}

// Who a GPU is, as it is published or as the driver tells of it. By its place: the UUID is the driver's to tell, and
// the bus shows the GPU before the driver does.
template <class AnyGpu>
const std::string& GpuKey(const AnyGpu& gpu) {
  return gpu.pci.empty() ? gpu.uuid : gpu.pci;
}

// How often the same may be said anew of one GPU: six times in a row, and one in ten minutes after that. A value.
class GpuAllowance {
 public:
  // Takes one, if one is left. `now` never goes back.
  bool Take(base::MonotonicTime now);

 private:
  static constexpr int kInARow = 6;
  static constexpr std::chrono::minutes kRefill{10};
  int left_ = kInARow;
  base::MonotonicTime from_{};  // since when it fills again
};

// Whether a GPU may be used, from look to look: unhealthy with the first look that has evidence against it, healthy
// only after kGpuQuiet without any, so that one which comes and goes is not given to a pod in between and is not
// written to the API server with each look. A GPU that the driver or the bus no longer shows has failed, too.
//
// A driver that could not be asked at all and a GPU that is cut by MIG are no evidence against the GPU: it is unhealthy
// while that lasts, and healthy at once after it, unless it flaps by that. Another card in the slot begins anew, and so
// does each GPU when the node boots. A value: no clock, no I/O. Thread rule: one thread.
class GpuHealth {
 public:
  // What was published before this agent started: who was unhealthy stays so until a quiet time has passed. Late, what
  // this agent has found itself outranks it.
  void Restore(const crds::NodeTopologyStatus& published);

  // One look at the machine, with what is remembered of XIDs. `now` never goes back.
  void Look(const Observation& seen, base::MonotonicTime now, base::WallTime wall);

  // Puts health and reason into that look, or into one with the same GPUs. A reason stays as it was while a GPU flaps,
  // until that is twice as bad, and changes no more often than GpuAllowance says.
  void Apply(Observation& seen) const;

 private:
  struct State {
    std::string uuid;      // empty = never told
    bool faulty = false;   // in the last look
    bool bad = false;      // until its quiet time is over
    bool evident = false;  // with evidence against the GPU itself, so that there is a quiet time
    bool flaps = false;
    std::string fault;  // of the last failure, as it is told
    GpuAllowance changes;
    std::deque<base::MonotonicTime> failures;  // of the last hour
    std::size_t reported = 0;                  // of them, as told
    base::WallTime since;                      // when it began to flap
    std::optional<base::MonotonicTime> good_since;
    base::WallTime good_from;  // the same, for people
    int good_looks = 0;
  };
  static void Fail(State& state, const std::string& why, bool evident, base::MonotonicTime now,
                   base::WallTime wall);
  static void Pass(State& state, base::MonotonicTime now, base::WallTime wall);
  static std::string Reason(const State& state);

  std::string boot_id_;                  // of what is known; empty = not told
  std::map<std::string, State> states_;  // by GpuKey
};

}  // namespace heddle::nodeagent
