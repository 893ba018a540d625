#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "tests/unit/crds/samples.h"

namespace heddle::crds::samples {
namespace {

using base::Random;
using topology::Missing;

int Number(Random& random, int min, int max) {
  return min + int(random.Below(std::uint64_t(max - min) + 1));
}
bool Coin(Random& random) {
  return random.Below(2) == 0;
}

std::string Text(Random& random, std::size_t max_characters, std::size_t min = 0) {
  static constexpr std::string_view kCharacters[] = {"a",  "Z",  "0", "-", " ", "\"",
                                                     "\\", "\n", "é", "…", "𝄞", "/"};
  std::string text;
  const std::size_t length = min + random.Below(std::min<std::size_t>(max_characters, 40) - min + 1);
  for (std::size_t i = 0; i < length; ++i) text += kCharacters[random.Below(std::size(kCharacters))];
  return text;
}

topology::Fact<int> FactOf(Random& random, int max) {
  if (Coin(random)) return Number(random, 0, max);
  return Missing(random.Below(4));
}

template <class Make>
auto Many(Random& random, std::size_t max, Make make) {
  std::vector<decltype(make())> values;
  for (std::size_t i = random.Below(max + 1); i > 0; --i) values.push_back(make());
  return values;
}

template <class T, class Key>
void Sort(std::vector<T>& values, Key key) {
  std::stable_sort(values.begin(), values.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
}

ObjectMeta RandomMeta(Random& random) {
  ObjectMeta meta;
  meta.name = fmt::format("object-{}", random.Below(1000));
  meta.uid = Text(random, 40);
  meta.resource_version = Text(random, 20);
  meta.generation = Number(random, 0, 1'000'000);
  if (Coin(random)) meta.created_at = At(Number(random, 0, 2'000'000'000));
  if (Coin(random)) meta.deleted_at = At(Number(random, 0, 2'000'000'000));
  meta.owners = Many(random, 2, [&] {
    return OwnerReference{Text(random, 9), Text(random, 9), Text(random, 9), Text(random, 9), Coin(random)};
  });
  return meta;
}

std::vector<Condition> RandomConditions(Random& random) {
  std::vector<Condition> conditions;
  for (const std::string_view type : {kCabled, kCollected, kPlanned, kReady, kReleased, kRunning}) {
    if (Coin(random)) continue;
    conditions.push_back({std::string(type), ConditionStatus(random.Below(3)), "Because", Text(random, 1024),
                          Number(random, 0, 9), At(Number(random, 0, 2'000'000'000))});
  }
  return conditions;
}

topology::NicPort RandomPort(Random& random) {
  topology::NicPort port;
  port.number = Number(random, 0, 255);
  port.plane = Number(random, 0, 3);
  port.rdma_mtu = Number(random, 0, 4096);
  if (random.Below(2) == 0) port.gid_index = Number(random, 0, 65535);
  port.state = topology::LinkState(random.Below(3));
  port.rate_gbps = Number(random, 0, 800);
  port.usable_gbps = Number(random, 0, 800);
  if (Coin(random)) {
    port.leaf_port = topology::LeafPort{Text(random, 128), Text(random, 64), Text(random, 255)};
  } else {
    port.leaf_port = Missing(random.Below(4));
  }
  port.fault = topology::LinkFault(random.Below(5));
  if (port.fault != topology::LinkFault::kNone) port.reason = Text(random, 256, 1);
  return port;
}

topology::Nic RandomNic(Random& random) {
  topology::Nic nic;
  nic.name = Text(random, 64, 1);
  nic.netdev = Text(random, 64);
  nic.driver = Text(random, 64);
  if (Coin(random)) nic.pci_id = fmt::format("15b3:{:04x}", random.Below(0x10000));
  nic.pci = Text(random, 32);
  nic.guid = Text(random, 32);
  nic.transport = topology::Transport(random.Below(4));
  nic.role = topology::NicRole(random.Below(3));
  nic.rail = FactOf(random, 255);
  nic.numa = FactOf(random, 1023);
  nic.mtu = Number(random, 0, 65536);
  nic.ports = Many(random, 2, [&] { return RandomPort(random); });
  nic.ports.push_back(RandomPort(random));
  Sort(nic.ports, [](const auto& port) { return port.number; });
  return nic;
}

topology::Gpu RandomGpu(Random& random) {
  topology::Gpu gpu{Number(random, 0, 31),
                    Text(random, 96),
                    Text(random, 96),
                    Text(random, 32),
                    FactOf(random, 1023),
                    true,
                    "",
                    Number(random, 0, 65535),
                    Coin(random),
                    Number(random, 0, 999)};
  if (Coin(random)) {
    gpu.healthy = false;
    gpu.unhealthy_reason = Text(random, 256, 1);
  }
  return gpu;
}

topology::Node RandomNode(Random& random, const std::string& name) {
  topology::Node node;
  node.name = name;
  node.machine = Text(random, 128);
  node.site = Text(random, 63);
  node.numa_nodes = Number(random, 0, 1024);
  node.gpus = Many(random, 8, [&] { return RandomGpu(random); });
  node.nvswitches = Many(random, 4, [&] { return topology::NvSwitch{Text(random, 32)}; });
  node.nvlink = {Number(random, 0, 6), Number(random, 0, 18), Number(random, 0, 7200), {}};
  node.nvlink.exceptions = Many(random, 2, [&] {
    topology::NvLink::Exception odd{Number(random, 0, 31), Number(random, 0, 18)};
    if (Coin(random)) odd.usable_gbps = Number(random, 0, 7200);
    return odd;
  });
  if (Coin(random)) {
    node.nvlink_domain = topology::NvlinkMembership{Text(random, 253), Coin(random)};
  } else {
    node.nvlink_domain = Missing(random.Below(4));
  }
  node.nics = Many(random, 10, [&] { return RandomNic(random); });
  node.paths = Many(random, 10, [&] {
    return topology::GpuNicPath{Number(random, 0, 31), Text(random, 64, 1),
                                topology::PciDistance(random.Below(5))};
  });
  Sort(node.gpus, [](const auto& gpu) { return gpu.index; });
  Sort(node.nvswitches, [](const auto& nvswitch) { return nvswitch.pci; });
  Sort(node.nvlink.exceptions, [](const auto& exception) { return exception.gpu; });
  Sort(node.nics, [](const auto& nic) { return nic.name; });
  Sort(node.paths, [](const auto& path) { return std::tuple(path.gpu, path.distance, path.nic); });
  return node;
}

Grant RandomGrant(Random& random) {
  Grant grant{Text(random, 63, 1), Text(random, 253, 1), Text(random, 64), Text(random, 63), {}, {}, {}, {}};
  grant.gpus = Many(random, 8, [&] { return Grant::GpuRef{Number(random, 0, 31), Text(random, 96)}; });
  grant.nics = Many(random, 8, [&] { return Text(random, 64, 1); });
  Sort(grant.gpus, [](const auto& gpu) { return gpu.index; });
  std::sort(grant.nics.begin(), grant.nics.end());
  grant.resources = Many(random, 4, [&] { return Text(random, 317, 1); });
  std::sort(grant.resources.begin(), grant.resources.end());
  grant.unmatched = Many(random, 4, [&] { return Grant::DeviceRef{Text(random, 317), Text(random, 253)}; });
  Sort(grant.unmatched, [](const auto& device) { return std::tie(device.resource, device.id); });
  return grant;
}

std::vector<placement::Requirement> RandomRequirements(Random& random) {
  std::vector<placement::Requirement> requirements;
  for (int axis = 0; axis < placement::kAxisCount; ++axis) {
    if (Coin(random)) requirements.push_back({placement::Axis(axis), placement::Level(random.Below(6))});
  }
  return requirements;
}

topology::CablingFault RandomFault(Random& random) {
  return {Text(random, 253, 1),
          Text(random, 64),
          Number(random, 0, 255),
          {Text(random, 128), Text(random, 64)},
          Text(random, 128),
          Text(random, 512, 1),
          Coin(random)};
}

topology::Declaration RandomDeclaration(Random& random) {
  topology::Declaration declaration;
  if (Coin(random)) declaration.shape = topology::Shape(random.Below(6));
  declaration.rails = Number(random, 0, 256);
  declaration.oversubscription_percent = Coin(random) ? 0 : Number(random, 10, 10000);
  declaration.switches = Many(random, 5, [&] {
    return topology::SwitchDeclaration{Text(random, 128, 1),
                                       Many(random, 4, [&] { return Text(random, 128, 1); }),
                                       Number(random, 0, 51200), Number(random, -1, 255)};
  });
  if (Coin(random)) declaration.leaf_names = {"su{unit}-r{rail}", "{rail}"};
  declaration.first_rail = Number(random, 0, 255);
  declaration.excluded_nodes = Many(random, 3, [&] { return Text(random, 253, 1); });
  declaration.groups = Many(random, 3, [&] {
    topology::DragonflyGroup group{Text(random, 128, 1),
                                   Many(random, 4, [&] { return Text(random, 128, 1); })};
    group.leaves.push_back("leaf-0");
    return group;
  });
  if (Coin(random)) {
    declaration.torus_size = {Number(random, 1, 16), Number(random, 1, 16), Number(random, 1, 16)};
    declaration.torus = Many(random, 5, [&] {
      return topology::TorusPosition{Text(random, 253, 1), Number(random, 0, 15), Number(random, 0, 15),
                                     Number(random, 0, 15)};
    });
  }
  return declaration;
}

}  // namespace

NodeTopology RandomNodeTopology(Random& random) {
  NodeTopology object;
  static_cast<ObjectMeta&>(object) = RandomMeta(random);
  if (Coin(random)) object.spec.labels = {{Text(random, 60, 1), Text(random, 63)}};
  object.spec.lossless = RandomWishes(random);
  object.status.lossless = RandomReports(random);
  object.spec.devices = RandomDeviceWishes(random);
  object.status.devices = RandomDeviceReports(random);
  NodeTopologyStatus& status = object.status;
  status.observed_generation = Number(random, 0, 9);
  status.node = RandomNode(random, object.name);
  status.hash = Coin(random) ? "" : topology::ContentHash(status.node);
  if (Coin(random)) status.observed_at = At(Number(random, 0, 2'000'000'000));
  status.agent_version = Text(random, 64);
  status.boot_id = Text(random, 64);
  status.grants = Many(random, 4, [&] { return RandomGrant(random); });
  Sort(status.grants,
       [](const Grant& grant) { return std::tie(grant.pod_namespace, grant.pod_name, grant.container); });
  // NIC and port are the key.
  const int congested = Number(random, 0, 3);
  for (int port = 0; port < congested; ++port)
    status.congestion.push_back({"mlx5_0", port, At(Number(random, 0, 2'000'000'000)), Text(random, 512)});
  status.conditions = RandomConditions(random);
  return object;
}

Fabric RandomFabric(Random& random) {
  Fabric object;
  static_cast<ObjectMeta&>(object) = RandomMeta(random);
  object.spec = RandomDeclaration(random);
  FabricStatus& status = object.status;
  const auto count = [&] { return Number(random, 0, 2'000'000'000); };
  status.observed_generation = Number(random, 0, 9);
  status.transport = topology::Transport(random.Below(4));
  status.site = Text(random, 63);
  status.shape = topology::Shape(random.Below(6));
  status.rails = Number(random, 0, 256);
  status.counts = {count(), count(), count(), count(), count(), count(), count()};
  status.units = Many(random, 4, [&] {
    return UnitSummary{Text(random, 128, 1), count(), Many(random, 4, [&] { return Text(random, 128); })};
  });
  status.leaves = Many(random, 8, [&] {
    return LeafSummary{Text(random, 128, 1),
                       FactOf(random, 255),
                       Number(random, 0, 63),
                       Text(random, 128),
                       Number(random, 0, 51200),
                       Number(random, 0, 51200),
                       count()};
  });
  status.spines = Many(random, 4, [&] { return SpineSummary{Text(random, 128, 1), Number(random, 2, 8)}; });
  status.nvlink_domains = Many(random, 4, [&] {
    return NvlinkDomainSummary{Text(random, 253, 1), count(), count()};
  });
  status.faults = Many(random, 4, [&] { return RandomFault(random); });
  status.cables = {count(), count(), count(), count()};
  status.suspects = Many(random, 3, [&] {
    return topology::Suspect{topology::SuspectKind(Number(random, 0, 3)),
                             Text(random, 512, 1),
                             Text(random, 253),
                             Text(random, 72),
                             Text(random, 128),
                             Text(random, 64),
                             topology::Symptom(Number(random, 0, 4)),
                             Number(random, 1, 1000),
                             count(),
                             Number(random, 0, 1000),
                             Text(random, 512),
                             Text(random, 256)};
  });
  status.assumptions = Many(random, 3, [&] { return Text(random, 512); });
  status.conditions = RandomConditions(random);
  return object;
}

Gang RandomGang(Random& random) {
  Gang object;
  static_cast<ObjectMeta&>(object) = RandomMeta(random);
  object.ns = "training";
  GangSpec& spec = object.spec;
  spec.owner = {Text(random, 128, 1), Text(random, 63, 1), Text(random, 253, 1), Text(random, 64, 1)};
  spec.attempt = Number(random, 0, 9);
  if (Coin(random)) spec.group = Text(random, 320, 1);
  if (Coin(random)) spec.leader = Text(random, 64, 1);
  spec.pods = Number(random, 1, 64);
  spec.gpus_per_pod = Number(random, 0, 32);
  spec.gpu_resource = Text(random, 253);
  spec.priority = Number(random, -1'000'000'000, 1'000'000'000);
  if (Coin(random)) spec.wait = std::chrono::seconds(Number(random, 0, 31'536'000));
  if (Coin(random)) {
    placement::Parallelism parallelism;
    for (int* size : {&parallelism.tp, &parallelism.cp, &parallelism.dp, &parallelism.pp, &parallelism.ep}) {
      *size = Number(random, 1, 64);
    }
    parallelism.etp = Number(random, 0, 8);
    parallelism.fsdp = Number(random, 0, 8);
    std::swap(parallelism.order[random.Below(4)], parallelism.order[random.Below(4)]);
    spec.parallelism = parallelism;
  }
  spec.require = RandomRequirements(random);
  spec.prefer = RandomRequirements(random);
  spec.model = {double(random.Below(1'000'000'000'000'000)),
                Number(random, 0, 1000),
                Number(random, 0, 10000),
                Number(random, 0, 1'000'000),
                Number(random, 0, 64),
                Number(random, 0, 64),
                Number(random, 0, 2000),
                double(random.Below(1'000'000'000'000)),
                Number(random, 0, 512),
                Number(random, 0, 64),
                Number(random, 0, 128),
                Number(random, 0, 128)};
  GangStatus& status = object.status;
  status.observed_generation = Number(random, 0, 9);
  status.progress = {Number(random, 0, 64), Number(random, 0, 64), Number(random, 0, 64)};
  status.reason = Coin(random) ? "" : "NotEnoughFree";
  status.message = Text(random, 1024);
  if (Coin(random)) status.preempted_by = fmt::format("training/gang-{}", random.Below(100));
  for (int rank = 0; rank < spec.pods; ++rank) {
    if (random.Below(8) == 0) status.missing.push_back({rank, At(Number(random, 0, 2'000'000'000))});
  }
  if (Coin(random)) status.planned_at = At(Number(random, 0, 2'000'000'000));
  if (Coin(random)) {
    std::vector<PlacedPod> rows;
    for (int i = 0; i < spec.pods; ++i) {
      if (random.Below(8) == 0) {
        rows.emplace_back();  // no slot
        continue;
      }
      rows.push_back({fmt::format("node-{}", random.Below(40)), std::uint32_t(random.Next()), {}});
      for (std::uint64_t j = random.Below(8); j > 0; --j) {
        rows.back().substitutes.push_back(fmt::format("node-{}", random.Below(40)));
      }
    }
    status.placement = ToColumns(rows, Number(random, 0, 99));
  }
  if (Coin(random)) {
    placement::Quality quality;
    quality.tp_groups = Number(random, 0, 100);
    quality.tp_groups_in_domain = Number(random, 0, 100);
    for (std::size_t axis = 0; axis < placement::kAxisCount; ++axis) {
      if (Coin(random)) continue;
      quality.axis_micros[axis] = Number(random, 0, 1'000'000);
      quality.leaf_crossings[axis] = Number(random, 0, 1'000'000);
      quality.edges[axis] = Number(random, 0, 1'000'000);
    }
    quality.rail_misaligned = Number(random, 0, 100);
    quality.step_micros = Number(random, 0, 1'000'000'000);
    quality.whole_domains_left = Number(random, 0, 100);
    status.predicted = quality;
    if (Coin(random)) {
      quality.step_micros = Number(random, 0, 1'000'000'000);
      status.observed = Observed{At(Number(random, 0, 2'000'000'000)), Coin(random), Coin(random), quality,
                                 Text(random, 1024)};
    }
  }
  status.explanation = Many(random, 3, [&] { return Text(random, 512); });
  status.conditions = RandomConditions(random);
  return object;
}

}  // namespace heddle::crds::samples
