#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/cable_report.h"
#include "crds/condition.h"
#include "crds/object_meta.h"
#include "lossless/cable_compare.h"

namespace heddle::crds {

// A switch that is asked how its ports are set. People write spec; the operator alone writes status, and nobody writes
// to the switch.

enum class SwitchDialect : std::uint8_t { kSonic, kOpenConfig };
enum class SwitchRole : std::uint8_t { kLeaf, kSpine, kCore };
enum class SwitchMode : std::uint8_t {
  kObserve,
  kRender
};  // kRender: what it should have is put into a ConfigMap
std::string_view SwitchDialectName(SwitchDialect dialect);  // "Sonic", "OpenConfig"
std::string_view SwitchRoleName(SwitchRole role);           // "Leaf", "Spine", "Core"
std::string_view SwitchModeName(SwitchMode mode);           // "Observe", "Render"

// A switch always has to prove who it is.
struct SwitchTls {
  std::string server_name;  // that its certificate is for; empty = the host of the address
  std::string ca_secret;    // with ca.crt; empty = the authorities of the image
  friend bool operator==(const SwitchTls&, const SwitchTls&) = default;
};

inline constexpr int kDefaultPollSeconds = 60;

// Secrets are named in Heddle's own namespace and nowhere else.
struct FabricSwitchSpec {
  std::string address;             // host:port of its gNMI server
  std::string credentials_secret;  // a login, a client's certificate or both; empty = none
  SwitchTls tls;
  SwitchDialect dialect = SwitchDialect::kSonic;
  SwitchRole role = SwitchRole::kLeaf;
  SwitchMode mode = SwitchMode::kObserve;
  std::string name;        // as LLDP says it; one of this and chassis_id is there
  std::string chassis_id;  // likewise
  int poll_seconds = kDefaultPollSeconds;
  friend bool operator==(const FabricSwitchSpec&, const FabricSwitchSpec&) = default;
};

struct SwitchCounts {
  int ports = 0;
  CableCounts cables;
  friend bool operator==(const SwitchCounts&, const SwitchCounts&) = default;
};

// One cable with what is worst of it.
struct SwitchCable {
  std::string node;
  std::string port;  // "mlx5_0:1"
  std::string switch_port;
  lossless::LosslessVerdict verdict = lossless::LosslessVerdict::kUnproved;
  std::string setting;
  std::string host;  // its value there
  std::string leaf;  // its value on the switch
  std::string message;
  friend bool operator==(const SwitchCable&, const SwitchCable&) = default;
};
inline constexpr std::size_t kMaxWorstCables = 16;

struct FabricSwitchStatus {
  std::int64_t observed_generation = 0;
  std::string model;                      // empty = not known
  std::string version;                    // likewise
  std::optional<base::WallTime> read_at;  // whole seconds; nothing = it has never answered
  std::string render_config_map;
  SwitchCounts counts;
  std::vector<SwitchCable> worst_cables;
  std::vector<Condition> conditions;
  friend bool operator==(const FabricSwitchStatus&, const FabricSwitchStatus&) = default;
};

struct FabricSwitch : ObjectMeta {
  FabricSwitchSpec spec;
  FabricSwitchStatus status;
  friend bool operator==(const FabricSwitch&, const FabricSwitch&) = default;
};

// Condition types of FabricSwitch.
inline constexpr std::string_view kReachable = "Reachable";  // it answers, and proves who it is
inline constexpr std::string_view kCompared = "Compared";    // what it answered was held against the hosts
inline constexpr std::string_view kCablesLossless = "Lossless";  // every cable to a host is

Json ToJson(const FabricSwitch& object);
// What a switch cannot be is refused by field, with what to write instead.
[[nodiscard]] base::Result<FabricSwitch> FabricSwitchFromJson(const Json& json);
Json StatusApplyJson(const FabricSwitch& object);

}  // namespace heddle::crds
