// The lossless half of the samples.
#include <fmt/format.h>

#include "tests/unit/crds/samples.h"

namespace heddle::crds::samples {
namespace {

using base::Random;

int Number(Random& random, int min, int max) {
  return min + int(random.Below(std::uint64_t(max - min) + 1));
}
bool Coin(Random& random) {
  return random.Below(2) == 0;
}
template <class Make>
auto Many(Random& random, std::size_t max, Make make) {
  std::vector<decltype(make())> values;
  for (std::size_t i = random.Below(max + 1); i > 0; --i) values.push_back(make());
  return values;
}

lossless::PrioritySet RandomPriorities(Random& random) {
  lossless::PrioritySet set;
  for (int priority = 0; priority < 8; ++priority) {
    if (Coin(random)) set.Insert(priority);
  }
  return set;
}

lossless::Dcqcn RandomDcqcn(Random& random) {
  lossless::Dcqcn dcqcn;
  for (int i = 0; i < lossless::kDcqcnParameters; ++i) {
    if (Coin(random)) dcqcn[lossless::DcqcnParameter(i)] = Number(random, 0, 2'000'000'000);
  }
  return dcqcn;
}

template <class Table>
Table RandomTable(Random& random, int max) {
  Table table;
  for (auto& entry : table) entry = typename Table::value_type(Number(random, -1, max));
  return table;
}

// Everything that a host can have.
lossless::PortSettings FullSettings() {
  lossless::PortSettings settings;
  settings.dcbx = lossless::Dcbx::kHost;
  settings.trust = lossless::Trust::kDscp;
  settings.dscp_to_priority = lossless::AllDscps(0);
  (*settings.dscp_to_priority)[26] = 3;
  settings.pfc = settings.ecn = lossless::PrioritySet{3};
  settings.watchdog_ms = 100;
  settings.cable_metres = 7;
  settings.priority_to_class = settings.priority_to_buffer = lossless::Identity();
  settings.class_algorithm.emplace().fill(lossless::Algorithm::kEts);
  settings.class_percent.emplace().fill(12);
  settings.buffer_bytes.emplace().fill(130'944);
  settings.mtu = 9000;
  settings.cnp_dscp = 48;
  settings.cnp_priority = 6;
  settings.tos = settings.traffic_class = 106;
  settings.global_pause = lossless::GlobalPause::kNone;
  settings.dcqcn.emplace();
  for (int i = 0; i < lossless::kDcqcnParameters; ++i) (*settings.dcqcn)[lossless::DcqcnParameter(i)] = 5;
  return settings;
}

lossless::PortSettings RandomSettings(Random& random) {
  lossless::PortSettings settings = FullSettings();
  settings.dcbx = lossless::Dcbx(random.Below(2));
  settings.trust = lossless::Trust(random.Below(2));
  for (auto& priority : *settings.dscp_to_priority) priority = std::int8_t(Number(random, -1, 2));
  settings.pfc = RandomPriorities(random);
  settings.watchdog_ms = Number(random, 0, 65535);
  settings.cable_metres = Number(random, 0, 1000);
  settings.priority_to_class = RandomTable<lossless::PriorityTable>(random, 7);
  for (auto& algorithm : *settings.class_algorithm) algorithm = lossless::Algorithm(random.Below(5));
  settings.class_percent = RandomTable<lossless::Numbers>(random, 100);
  settings.priority_to_buffer = RandomTable<lossless::PriorityTable>(random, 7);
  settings.buffer_bytes = RandomTable<lossless::Numbers>(random, 1 << 30);
  settings.mtu = Number(random, 68, 65535);
  settings.ecn = RandomPriorities(random);
  settings.cnp_dscp = Number(random, 0, 63);
  settings.cnp_priority = Number(random, 0, 7);
  settings.tos = Number(random, 0, 255);
  settings.traffic_class = Number(random, 0, 255);
  settings.dcqcn = RandomDcqcn(random);
  settings.global_pause = lossless::GlobalPause(random.Below(4));
  lossless::ForEachHostSetting([&](lossless::Setting, auto member) {
    if (Coin(random)) (settings.*member).reset();
  });
  return settings;
}

std::vector<std::string> RandomPorts(Random& random) {
  std::vector<std::string> ports;
  for (int i = Number(random, 1, 8); i > 0; --i) ports.push_back(fmt::format("mlx5_{}:{}", 10 - i, 1));
  return ports;
}

lossless::InfiniBand RandomInfiniBand(Random& random) {
  lossless::InfiniBand infiniband;
  if (Coin(random)) infiniband.service_level = Number(random, 0, 15);
  if (Coin(random)) infiniband.adaptive_routing = Coin(random);
  return infiniband;
}

lossless::Policy RandomPolicy(Random& random) {
  lossless::Policy policy;
  const auto maybe = [&](std::optional<int>& value, int min, int max) {
    if (Coin(random)) value = Number(random, min, max);
  };
  if (Coin(random)) policy.profile = "connectx-7/v1";
  if (Coin(random)) policy.trust = lossless::Trust(random.Below(2));
  maybe(policy.rdma_dscp, 0, 63);
  maybe(policy.rdma_priority, 0, 7);
  maybe(policy.rdma_percent, 1, 100);
  maybe(policy.cnp_dscp, 0, 63);
  maybe(policy.cnp_priority, 0, 7);
  if (Coin(random)) policy.pfc = RandomPriorities(random);
  if (Coin(random)) policy.ecn = RandomPriorities(random);
  policy.classes = Many(random, 3, [&] {
    return lossless::OtherClass{
        "nvme", lossless::ClassUse(random.Below(3)), {10, 12, 13}, Number(random, 0, 7)};
  });
  policy.ets = Many(random, 8, [&] {
    return lossless::EtsShare{Number(random, 0, 7), lossless::Algorithm(random.Below(2)),
                              Number(random, 0, 100)};
  });
  maybe(policy.cable_metres, 1, 1000);
  if (Coin(random)) policy.priority_to_buffer = RandomTable<lossless::PriorityTable>(random, 7);
  if (Coin(random)) policy.buffer_bytes = RandomTable<lossless::Numbers>(random, 1 << 30);
  maybe(policy.mtu, 68, 65535);
  if (Coin(random)) policy.watchdog_ms = Coin(random) ? lossless::kWatchdogOff : Number(random, 80, 8000);
  if (Coin(random)) policy.dcqcn = RandomDcqcn(random);
  maybe(policy.tos, 0, 255);
  maybe(policy.traffic_class, 0, 255);
  if (Coin(random)) policy.marking = lossless::EcnMarking{Number(random, 0, 9), Number(random, 0, 9), 5};
  policy.infiniband = RandomInfiniBand(random);
  return policy;
}

}  // namespace

std::vector<LosslessWish> FullWishes() {
  LosslessWish wish;
  wish.ports = {"mlx5_0:1", "mlx5_1:1"};
  wish.policies = {"roce"};
  wish.generation = 3;
  wish.policy_uid = "2f0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a11";
  wish.mode = LosslessMode::kApply;
  wish.on_drift = OnDrift::kRepair;
  wish.settings = FullSettings();
  LosslessWish conflict;
  conflict.ports = {"mlx5_2:1"};
  conflict.policies = {"roce", "roce-2"};
  conflict.reason = "LosslessPolicies roce and roce-2 both select this port";
  LosslessWish refused;
  refused.ports = {"mlx5_3:1"};
  refused.policies = {"roce"};
  refused.generation = 3;
  refused.reason = "profile connectx-7/v1 is not for a NIC of PCI id 15b3:101d";
  refused.refused = true;
  LosslessWish infiniband;
  infiniband.ports = {"mlx5_4:1"};
  infiniband.policies = {"roce"};
  infiniband.generation = 3;
  infiniband.reason = "InfiniBand is lossless by link credits";
  infiniband.infiniband = {1, false};
  return {wish, conflict, refused, infiniband};
}

std::vector<LosslessReport> FullReports() {
  LosslessReport drifted;
  drifted.ports = {"mlx5_0:1"};
  drifted.edition = {"roce", 3, "2f0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a11"};
  drifted.state = LosslessState::kDrifted;
  drifted.reason = "PFC was changed";
  drifted.have = FullSettings();
  drifted.fec = lossless::Fec::kReedSolomon;
  drifted.drift = {{{lossless::Setting::kPfc, "3", "3,4"}, At(1'800'000'400), "lldpad"}};
  drifted.gaps = {{lossless::Setting::kWatchdogMs, "the driver has no pfc-prevention-tout"}};
  return {drifted};
}

std::vector<LosslessPolicy> FullLosslessPolicies() {
  LosslessPolicy full;
  full.name = "roce";
  full.uid = "2f0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a11";
  full.generation = 3;
  LosslessPolicySpec& spec = full.spec;
  spec.node_selector = {{"node.kubernetes.io/instance-type", "dgx-h100"}};
  spec.roles = {topology::NicRole::kCompute, topology::NicRole::kStorage};
  spec.rails = {0, 7};
  spec.mode = LosslessMode::kApply;
  spec.on_drift = OnDrift::kRepair;
  spec.canary = 2;
  spec.counted = CountedCables::kLosslessOnly;
  lossless::Policy& policy = spec.policy;
  policy.profile = "connectx-7/v1";
  policy.trust = lossless::Trust::kDscp;
  policy.rdma_dscp = 26;
  policy.rdma_priority = 3;
  policy.rdma_percent = 80;
  policy.cnp_dscp = 48;
  policy.cnp_priority = 6;
  policy.pfc = policy.ecn = lossless::PrioritySet{3};
  policy.classes = {{"nvme-of", lossless::ClassUse::kStorage, {10, 12, 13}, 1}};
  policy.ets = {{0, lossless::Algorithm::kEts, 20}, {6, lossless::Algorithm::kStrict, 5}};
  policy.cable_metres = 7;
  policy.priority_to_buffer = lossless::Identity();
  policy.buffer_bytes.emplace().fill(130'944);
  policy.mtu = 9000;
  policy.watchdog_ms = 200;
  policy.dcqcn = FullSettings().dcqcn;
  policy.tos = policy.traffic_class = 106;
  policy.marking = lossless::EcnMarking{1'048'576, 2'097'152, 5};
  policy.infiniband = {1, false};
  LosslessPolicyStatus& status = full.status;
  status.observed_generation = 3;
  status.profile = "connectx-7/v1";
  status.counts = {16, 128, 116, 4, 2, 1, 1, 3, 1};
  status.findings = {"mtu-small: the MTU is 1500; RDMA packets carry 1024 bytes there, of 4096"};
  status.conditions = {
      {"Ready", ConditionStatus::kTrue, "Written", "all nodes have it", 3, At(1'800'000'100)}};
  return {full};
}

std::vector<LosslessWish> RandomWishes(Random& random) {
  return Many(random, 2, [&] {
    LosslessWish wish;
    wish.ports = RandomPorts(random);
    wish.policies = {"roce"};
    wish.generation = Number(random, 0, 9);
    if (Coin(random)) wish.policy_uid = "2f0e6a3c";
    wish.mode = LosslessMode(random.Below(2));
    wish.on_drift = OnDrift(random.Below(2));
    if (Coin(random)) {
      wish.settings = RandomSettings(random);
    } else {
      wish.reason = "InfiniBand";
      wish.refused = Coin(random);
      wish.infiniband = RandomInfiniBand(random);
    }
    return wish;
  });
}

std::vector<LosslessReport> RandomReports(Random& random) {
  return Many(random, 2, [&] {
    LosslessReport report;
    report.ports = RandomPorts(random);
    report.edition.policy = "roce";
    report.edition.generation = Number(random, 0, 9);
    if (Coin(random)) report.edition.uid = "2f0e6a3c";
    report.state = LosslessState(random.Below(7));
    if (Coin(random)) report.reason = "waits for 3 queue pairs";
    if (Coin(random)) report.have = RandomSettings(random);
    if (Coin(random)) report.fec = lossless::Fec(random.Below(3));
    report.drift = Many(random, 3, [&] {
      return PortDrift{
          {lossless::Setting(random.Below(lossless::kHostSettings)), "3", Coin(random) ? "" : "4"},
          At(Number(random, 0, 2'000'000'000)),
          Coin(random) ? "" : "manual"};
    });
    report.gaps = Many(random, 2, [&] {
      return lossless::Gap{lossless::Setting(random.Below(lossless::kHostSettings)), "not supported"};
    });
    return report;
  });
}

LosslessPolicy RandomLosslessPolicy(Random& random) {
  LosslessPolicy object;
  object.name = fmt::format("policy-{}", random.Below(1000));
  LosslessPolicySpec& spec = object.spec;
  if (Coin(random)) spec.node_selector = {{"pool", "gpu"}};
  spec.roles = Many(random, 3, [&] { return topology::NicRole(random.Below(3)); });
  spec.rails = Many(random, 8, [&] { return Number(random, 0, 255); });
  spec.mode = LosslessMode(random.Below(2));
  spec.on_drift = OnDrift(random.Below(2));
  spec.canary = Number(random, 0, 1000);
  spec.counted = CountedCables(Number(random, 0, 3));
  spec.policy = RandomPolicy(random);
  LosslessPolicyStatus& status = object.status;
  status.observed_generation = Number(random, 0, 9);
  if (Coin(random)) status.profile = "generic/v1";
  const auto count = [&] { return Number(random, 0, 10'000'000); };
  status.counts = {count(), count(), count(), count(), count(), count(), count(), count(), count()};
  status.findings = Many(random, 3, [] { return std::string("ets-sum: they sum to 90"); });
  return object;
}

}  // namespace heddle::crds::samples
