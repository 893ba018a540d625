// What the samples say of RDMA devices.
#include <fmt/format.h>

#include <set>

#include "tests/unit/crds/samples.h"

namespace heddle::crds::samples {
namespace {

using base::Random;

bool Coin(Random& random) {
  return random.Below(2) == 0;
}
int Number(Random& random, int min, int max) {
  return min + int(random.Below(std::uint64_t(max - min) + 1));
}

// Names of resources, sorted and each once, as the lists are keyed by them.
std::set<std::string> RandomResources(Random& random) {
  std::set<std::string> names;
  for (std::uint64_t i = random.Below(4); i > 0; --i)
    names.insert(fmt::format("heddle.dev/rail{}", random.Below(8)));
  return names;
}

}  // namespace

std::vector<DeviceWish> FullDeviceWishes() {
  DeviceWish rail;
  rail.resource = "heddle.dev/rail0";
  rail.policies = {"dgx"};
  rail.generation = 2;
  rail.policy_uid = "5a7d2f0a-1111-2222-3333-444455556666";
  rail.mode = DeviceMode::kNics;
  rail.plugin = DevicePlugin::kRdmaShared;
  rail.ports = {"mlx5_0:1", "mlx5_1:1"};
  rail.slots = 16;
  DeviceWish refused;
  refused.resource = "heddle.dev/rail1";
  refused.policies = {"dgx", "dgx-2"};
  refused.reason = "RdmaDevicePolicies dgx and dgx-2 both make mlx5_1:1 a device";
  return {rail, refused};
}

std::vector<DeviceReport> FullDeviceReports() {
  return {{"heddle.dev/fabric", {}, DeviceState::kOffered, "", 1, 1},
          {"heddle.dev/rail0",
           {"dgx", 2, "5a7d2f0a-1111-2222-3333-444455556666"},
           DeviceState::kRefused,
           "port mlx5_1:1 is not there",
           1,
           2}};
}

std::vector<DeviceWish> RandomDeviceWishes(Random& random) {
  std::vector<DeviceWish> wishes;
  for (const std::string& resource : RandomResources(random)) {
    DeviceWish wish;
    wish.resource = resource;
    wish.policies = {"dgx"};
    wish.generation = Number(random, 0, 9);
    if (Coin(random)) wish.policy_uid = "5a7d2f0a";
    wish.mode = DeviceMode(random.Below(3));
    wish.plugin = DevicePlugin(random.Below(3));
    wish.slots = Coin(random) ? 1 : Number(random, 1, kMaxSlots);
    if (Coin(random)) {
      wish.ports = {"mlx5_0:1", "mlx5_1:1"};
    } else {
      wish.reason = "no NIC of this node is on rail 3";
    }
    wishes.push_back(wish);
  }
  return wishes;
}

std::vector<DeviceReport> RandomDeviceReports(Random& random) {
  std::vector<DeviceReport> reports;
  for (const std::string& resource : RandomResources(random)) {
    const PolicyEdition edition{Coin(random) ? "" : "dgx", Number(random, 0, 9),
                                Coin(random) ? "" : "5a7d2f0a"};
    reports.push_back({resource, edition, DeviceState(random.Below(4)),
                       Coin(random) ? "" : "the kubelet is away", Number(random, 0, 1024),
                       Number(random, 0, 1024)});
  }
  return reports;
}

std::vector<RdmaDevicePolicy> FullRdmaDevicePolicies() {
  RdmaDevicePolicy full;
  full.name = "dgx";
  full.uid = "5a7d2f0a-1111-2222-3333-444455556666";
  full.resource_version = "17";
  full.generation = 2;
  full.created_at = At(1'800'000'000);
  full.spec.node_selector = {{"pool", "gpu"}};
  full.spec.mode = DeviceMode::kNics;
  full.spec.plugin = DevicePlugin::kRdmaShared;
  full.spec.resources = {{"heddle.dev/rail{rail}", {topology::NicRole::kCompute}, {0, 1, 2, 3}, 16},
                         {"heddle.dev/storage", {topology::NicRole::kStorage}, {}, 1}};
  full.status.observed_generation = 2;
  full.status.counts = {12, 8, 1, 2, 1, 64, 3};
  full.status.problems = {"gpu-017: heddle.dev/rail3: port mlx5_3:1 is down"};
  full.status.conditions = {Condition{std::string(kReady), ConditionStatus::kFalse, "Refused",
                                      "2 of 12 nodes cannot offer what they should", 2, At(1'800'000'100)}};
  RdmaDevicePolicy least;
  least.name = "least";
  least.spec.resources = {{"heddle.dev/rdma", {}, {}, 1}};
  return {full, least};
}

RdmaDevicePolicy RandomRdmaDevicePolicy(Random& random) {
  RdmaDevicePolicy object;
  object.name = fmt::format("policy-{}", random.Below(1000));
  RdmaDevicePolicySpec& spec = object.spec;
  if (Coin(random)) spec.node_selector = {{"pool", "gpu"}};
  spec.mode = DeviceMode(random.Below(3));
  if (spec.mode == DeviceMode::kNics) spec.plugin = DevicePlugin(random.Below(3));
  const bool shared = spec.mode == DeviceMode::kNics && spec.plugin != DevicePlugin::kSriov;
  std::set<std::string> names = RandomResources(random);
  names.insert("heddle.dev/rdma");
  if (spec.mode != DeviceMode::kWholeNode && Coin(random)) names.insert("heddle.dev/rail{rail}");
  for (const std::string& name : names) {
    RdmaResource resource{name, {}, {}, shared ? Number(random, 1, kMaxSlots) : 1};
    if (Coin(random)) resource.roles = {topology::NicRole(random.Below(3))};
    if (Coin(random)) resource.rails = {Number(random, 0, 7), Number(random, 0, 255)};
    spec.resources.push_back(std::move(resource));
  }
  RdmaDevicePolicyStatus& status = object.status;
  status.observed_generation = Number(random, 0, 9);
  status.counts = {Number(random, 0, 9), Number(random, 0, 9),  Number(random, 0, 9), Number(random, 0, 9),
                   Number(random, 0, 9), Number(random, 0, 99), Number(random, 0, 99)};
  if (Coin(random)) status.problems = {"gpu-1: no NIC is there"};
  return object;
}

}  // namespace heddle::crds::samples
