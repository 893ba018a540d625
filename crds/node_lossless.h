#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "crds/lossless_policy.h"
#include "crds/object_meta.h"
#include "crds/policy_edition.h"
#include "lossless/cable_compare.h"
#include "lossless/compare.h"
#include "lossless/port_settings.h"
#include "lossless/render.h"

namespace heddle::crds {

// The lossless half of a NodeTopology: in spec what ports should have, in status what they have. Ports are
// "mlx5_0:1" (RDMA device and port, as NCCL writes them). Ports for which the same is true share an entry.

// Either settings or a reason why there are none.
struct LosslessWish {
  std::vector<std::string> ports;     // sorted
  std::vector<std::string> policies;  // one; several = they conflict, and none of them applies
  std::int64_t generation = 0;        // of the policy
  std::string policy_uid;             // whose generation that is; empty = an operator told it that said none
  LosslessMode mode = LosslessMode::kObserve;
  OnDrift on_drift = OnDrift::kReport;
  std::optional<lossless::PortSettings> settings;  // those of hosts
  std::string reason;
  bool refused = false;             // there are none because this NIC cannot have what the policy wants
  lossless::InfiniBand infiniband;  // beside the reason: what NCCL is to do on these ports
  // Read only: what stands in it and this version does not know, as paths or sentences. Whoever sets ports leaves
  // these alone then.
  std::vector<std::string> not_understood;
  friend bool operator==(const LosslessWish&, const LosslessWish&) = default;
};

enum class LosslessState : std::uint8_t {
  kCompliant,
  kDrifted,
  kPending,  // to be set: waits for its turn, or for queue pairs to go
  kFailed,   // setting it failed, or had to be taken back
  kConflict,
  kNotApplicable,
  kUnknown,
};
std::string_view LosslessStateName(LosslessState state);  // "Compliant", …

struct PortDrift {
  lossless::Drift drift;
  base::WallTime since;  // whole seconds
  std::string writer;    // who it probably was: "lldpad", "firmware DCBX", "manual"; empty = no guess
  friend bool operator==(const PortDrift&, const PortDrift&) = default;
};

struct LosslessReport {
  std::vector<std::string> ports;  // sorted
  PolicyEdition edition;           // of the wish that this answers
  LosslessState state = LosslessState::kUnknown;
  std::string reason;  // a sentence; while compliant, what is to be known all the same, or empty
  std::optional<lossless::PortSettings> have;
  // That the link runs with, where the driver says it; not a setting of ours.
  std::optional<lossless::Fec> fec;
  std::vector<PortDrift> drift;     // in the order of the settings
  std::vector<lossless::Gap> gaps;  // settings that could not be read or set, in their order
  friend bool operator==(const LosslessReport&, const LosslessReport&) = default;
};

inline constexpr std::size_t kMaxLosslessEntries = 32;

// Settings of a host's port under the names of the schema; what nobody said has no key. Errors: kInvalid with the
// key.
Json ToJson(const lossless::PortSettings& settings);
[[nodiscard]] base::Result<lossless::PortSettings> PortSettingsFromJson(const Json& json);

// "8/8": ports as their policies want them, of those that have settings; "-" where none has, "?" where
// nobody reported.
std::string LosslessSummary(const std::vector<LosslessReport>& reports);

}  // namespace heddle::crds
