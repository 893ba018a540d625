// Switches, for the other suites of this folder.
#include <fmt/format.h>

#include "tests/unit/crds/samples.h"

namespace heddle::crds::samples {
namespace {

using base::Random;
using lossless::LosslessVerdict;

int Number(Random& random, int min, int max) {
  return min + int(random.Below(std::uint64_t(max - min) + 1));
}
bool Coin(Random& random) {
  return random.Below(2) == 0;
}

}  // namespace

std::vector<FabricSwitch> FullFabricSwitches() {
  FabricSwitch full;
  full.name = "su0-r3";
  full.uid = "7c0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a22";
  full.resource_version = "21";
  full.generation = 2;
  full.created_at = At(1'800'000'000);
  FabricSwitchSpec& spec = full.spec;
  spec.address = "su0-r3.fabric.example:8080";
  spec.credentials_secret = "switches";
  spec.tls = {"su0-r3.fabric.example", "switch-authority"};
  spec.mode = SwitchMode::kRender;
  spec.name = "su0-r3";
  spec.chassis_id = "1c:34:da:00:00:03";
  spec.poll_seconds = 30;
  FabricSwitchStatus& status = full.status;
  status.observed_generation = 2;
  status.model = "SN5600";
  status.version = "SONiC-OS-202505";
  status.read_at = At(1'800'000'100);
  status.render_config_map = "heddle-render-su0-r3";
  status.counts = {64, {32, 29, 2, 1}};
  status.worst_cables = {{"gpu-017", "mlx5_3:1", "Ethernet48", LosslessVerdict::kContradiction,
                          "dscpToPriority", "DSCP 26: priority 3, PFC 3", "DSCP 26: priority 0, PFC 3,4",
                          "data is sent with DSCP 26; the switch puts DSCP 26 in priority group 0"}};
  status.conditions = {Condition{std::string(kCablesLossless), ConditionStatus::kFalse, "Contradiction",
                                 "2 of 32 cables contradict themselves", 2, At(1'800'000'100)}};
  FabricSwitch least;
  least.name = "spine-0";
  least.spec.address = "[fd00::1]:50051";
  least.spec.dialect = SwitchDialect::kOpenConfig;
  least.spec.role = SwitchRole::kSpine;
  least.spec.chassis_id = "1c:34:da:00:00:09";
  return {full, least};
}

FabricSwitch RandomFabricSwitch(Random& random) {
  FabricSwitch object;
  object.name = fmt::format("leaf-{}", random.Below(1000));
  FabricSwitchSpec& spec = object.spec;
  spec.address = fmt::format("10.0.0.{}:{}", random.Below(256), Number(random, 1, 65535));
  if (Coin(random)) spec.credentials_secret = "switches";
  if (Coin(random)) spec.tls.server_name = "leaf.example";
  if (Coin(random)) spec.tls.ca_secret = "authority";
  spec.dialect = SwitchDialect(random.Below(2));
  spec.role = SwitchRole(random.Below(3));
  if (spec.dialect == SwitchDialect::kSonic) spec.mode = SwitchMode(random.Below(2));
  spec.name = object.name;
  if (Coin(random)) spec.chassis_id = "1c:34:da:00:00:01";
  spec.poll_seconds = Number(random, 10, 3600);
  FabricSwitchStatus& status = object.status;
  status.observed_generation = Number(random, 0, 9);
  if (Coin(random)) status.model = "AS9716";
  if (Coin(random)) status.version = "202411";
  if (Coin(random)) status.read_at = At(Number(random, 0, 2'000'000'000));
  if (Coin(random)) status.render_config_map = "render";
  const auto count = [&] { return Number(random, 0, 4096); };
  status.counts = {count(), {count(), count(), count(), count()}};
  for (std::uint64_t i = random.Below(kMaxWorstCables + 1); i > 0; --i) {
    status.worst_cables.push_back({fmt::format("gpu-{}", i), "mlx5_0:1", fmt::format("Ethernet{}", i),
                                   LosslessVerdict(random.Below(3)), Coin(random) ? "" : "mtu",
                                   Coin(random) ? "" : "9000", Coin(random) ? "" : "1500", "raise the MTU"});
  }
  return object;
}

}  // namespace heddle::crds::samples
