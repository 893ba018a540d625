#include "tests/unit/crds/samples.h"

#include <fmt/format.h>

namespace heddle::crds::samples {
namespace {

using topology::Missing;

ObjectMeta Meta(std::string name, std::string ns = "") {
  ObjectMeta meta;
  meta.name = std::move(name);
  meta.ns = std::move(ns);
  meta.uid = "2f0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a11";
  meta.resource_version = "12345";
  meta.generation = 2;
  meta.created_at = At(1'800'000'000);
  meta.deleted_at = At(1'800'000'900);
  meta.owners = {{"v1", "Node", meta.name, "0c3ad2a4-90a6-4b0e-8a5e-6dfb1d6d3f22", true}};
  return meta;
}

Condition Ready(std::string type = "Ready") {
  return {std::move(type), ConditionStatus::kTrue, "Observed", "8 of 8 rails are up", 2, At(1'800'000'100)};
}

topology::Nic NicOf(int i, topology::NicRole role) {
  topology::Nic nic;
  nic.name = fmt::format("mlx5_{}", i);
  nic.netdev = fmt::format("ibp{}s0", 24 + i * 8);
  nic.driver = "mlx5_core";
  nic.pci_id = "15b3:1021";
  nic.pci = fmt::format("0000:{:02x}:00.0", 24 + i * 8);
  nic.guid = fmt::format("0x506b4b0300c3b4{:02x}", i);
  nic.transport = topology::Transport::kInfiniBand;
  nic.role = role;
  if (role == topology::NicRole::kCompute) {
    nic.rail = i;
  } else {
    nic.rail = Missing::kNotApplicable;
  }
  nic.numa = i / 4;
  nic.mtu = 4096;
  topology::NicPort port;
  port.state = topology::LinkState::kActive;
  port.rate_gbps = 400;
  port.usable_gbps = 400;
  port.leaf_port =
      topology::LeafPort{fmt::format("leaf-su03-rail{}-ib-switch", i), fmt::format("P{}", 17 + i)};
  nic.ports = {port};
  return nic;
}

}  // namespace

base::WallTime At(std::int64_t second) {
  return base::WallTime(std::chrono::seconds(second));
}

NodeTopology DgxH100() {
  NodeTopology object;
  static_cast<ObjectMeta&>(object) = Meta("dgx-h100-su03-node-0017.cluster.example.com");
  object.deleted_at.reset();
  NodeTopologyStatus& status = object.status;
  topology::Node& node = status.node;
  node.name = object.name;
  node.machine = "NVIDIA DGX H100";
  node.numa_nodes = 2;
  for (int i = 0; i < 8; ++i) {
    topology::Gpu gpu;
    gpu.index = i;
    gpu.uuid = fmt::format("GPU-5a7d2f0{}-1c1b-6a32-8f56-73ab0c1e2d3{}", i, i);
    gpu.model = "NVIDIA H100 80GB HBM3";
    gpu.pci = fmt::format("0000:{:02x}:00.0", 27 + i * 8);
    gpu.numa = i / 4;
    gpu.memory_gib = 80;
    node.gpus.push_back(gpu);
    node.paths.push_back({i, fmt::format("mlx5_{}", i), topology::PciDistance::kPix});
  }
  for (int i = 0; i < 4; ++i) node.nvswitches.push_back({fmt::format("0000:{:02x}:00.0", 5 + i)});
  node.nvlink = {4, 18, 3600, {}};
  node.nvlink_domain = topology::NvlinkMembership{object.name, false};
  for (int i = 0; i < 10; ++i) {
    node.nics.push_back(NicOf(i, i < 8 ? topology::NicRole::kCompute : topology::NicRole::kStorage));
  }
  status.observed_generation = 1;
  status.hash = "0123456789abcdef";
  status.observed_at = At(1'800'000'200);
  status.agent_version = "v0.1.0";
  Grant grant{"training",
              "llama-70b-worker-17-abcde",
              "1f1c1a2b-3333-4444-5555-666677778888",
              "worker",
              {},
              {},
              {"nvidia.com/gpu"},
              {}};
  for (int i = 0; i < 8; ++i) {
    grant.gpus.push_back({i, node.gpus[std::size_t(i)].uuid});
    grant.nics.push_back(node.nics[std::size_t(i)].name);
  }
  status.grants = {grant};
  status.conditions = {Ready()};
  return object;
}

std::vector<NodeTopology> FullNodeTopologies() {
  NodeTopology full = DgxH100();
  full.status.grants[0].unmatched = {{"rdma/hca_shared", "17"}};
  full.status.congestion = {{"mlx5_2", 1, At(1'800'000'100), "70000 CNPs handled in 1 min"},
                            {"mlx5_3", 1, At(1'800'000'160), "61000 CNPs sent in 1 min"}};
  full.deleted_at = At(1'800'000'900);
  full.spec.labels = {{"topology.k8s.aws/network-node-layer-3", "nn-0123456789abcdef0"}};
  full.spec.lossless = FullWishes();
  full.spec.cables = {
      {{"mlx5_0:1"}, lossless::LosslessVerdict::kLossless, 100, ""},
      {{"mlx5_1:1", "mlx5_2:1"}, lossless::LosslessVerdict::kContradiction, 0, "PFC is on 3 and on none"}};
  full.status.lossless = FullReports();
  full.spec.devices = FullDeviceWishes();
  full.status.devices = FullDeviceReports();
  topology::Node& node = full.status.node;
  node.site = "berlin";
  node.gpus[3].healthy = false;
  node.gpus[3].unhealthy_reason = "Xid 79: the GPU fell off the bus";
  node.gpus[4].numa = Missing::kAmbiguous;
  node.nvlink.exceptions = {{3, 17, 3300}, {5, 17}};
  node.nics[2].rail = Missing::kAmbiguous;
  node.nics[2].numa = Missing::kStale;
  node.nics[2].ports[0].plane = 1;
  node.nics[2].ports[0].rdma_mtu = 4096;
  node.nics[2].ports[0].gid_index = 3;
  node.gpus[3].mig = true;
  node.gpus[3].fatal_xid = 79;
  node.gpus[4].nic_gone = topology::LostNic{4, "0000:9b:00.0"};
  node.gpus[5].nic_gone = topology::LostNic{5, ""};
  full.status.boot_id = "6f1c1a2b-3333-4444-8555-666677778888";
  node.nics[2].ports[0].fault = topology::LinkFault::kFlapping;
  node.nics[2].ports[0].reason = "4 link downs in 10 min, since 2026-11-22T01:46:30Z";
  node.nics[2].ports[0].leaf_port = Missing::kStale;
  topology::LeafPort leaf = *node.nics[1].ports[0].leaf_port;
  leaf.chassis_id = "0c:42:a1:00:00:01";
  node.nics[1].ports[0].leaf_port = leaf;
  NodeTopology unlinked = full;
  unlinked.status.node.nvlink_domain = Missing::kNotApplicable;
  return {full, unlinked};
}

std::vector<Fabric> FullFabrics() {
  Fabric full;
  static_cast<ObjectMeta&>(full) = Meta("infiniband");
  full.spec.shape = topology::Shape::kFatTree;
  full.spec.rails = 8;
  full.spec.oversubscription_percent = 200;
  full.spec.switches = {{"leaf-0", {"spine-0", "spine-1"}, 3200, 0}, {"spine-0", {}, 0}};
  full.spec.leaf_names = {"su{unit}-r{rail}"};
  full.spec.first_rail = 1;
  full.spec.excluded_nodes = {"gpu-007"};
  full.spec.groups = {{"group-0", {"leaf-0", "leaf-1"}}};
  full.spec.torus = {{"gpu-001", 0, 1, 2}};
  full.spec.torus_size = {4, 4, 4};
  full.ufm = FabricUfm{"ufm.example:443", "ufm-login", "ufm.example", "ufm-ca", 60};
  FabricStatus& status = full.status;
  status.observed_generation = 2;
  status.transport = topology::Transport::kInfiniBand;
  status.site = "berlin";
  status.shape = topology::Shape::kRailOptimised;
  status.rails = 8;
  status.counts = {32, 256, 2, 16, 2, 32, 1};
  status.units = {{"su-0", 16, {"su0-r0", "su0-r1"}}};
  status.leaves = {{"su0-r0", 0, 1, "su-0", 6400, 3200, 16},
                   {"su0-r1", Missing::kAmbiguous, 0, "", 6400, 0, 16}};
  status.spines = {{"spine-0", 2}};
  status.nvlink_domains = {{"3f2a91c0-0000-0000-0000-000000000000.1", 18, 72}};
  status.faults = {
      {"gpu-017", "mlx5_3", 1, {"su1-r4", "18"}, "su1-r3", "gpu-017 mlx5_3 is cabled to su1-r4 port 18"}};
  status.faults.push_back(status.faults.front());
  status.faults.back().ambiguous = true;
  status.cables = {32, 29, 2, 1};
  status.suspects = {{topology::SuspectKind::kCable, "leaf su1-r3 port Ethernet48 <-> gpu-017 mlx5_3:1",
                      "gpu-017", "mlx5_3:1", "su1-r3", "Ethernet48", topology::Symptom::kErrors, 1, 3, 900,
                      "41 flaps in 10 min", "drain or reseat it"}};
  status.assumptions = {"spine uplinks were not declared: 1:1 is assumed"};
  status.conditions = {Ready("Cabled"), Ready()};
  return {full};
}

std::vector<Gang> FullGangs() {
  Gang full;
  static_cast<ObjectMeta&>(full) = Meta("llama-2f0e6a3c-0", "training");
  GangSpec& spec = full.spec;
  spec.owner = {"batch/v1", "Job", "llama", "2f0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a11"};
  spec.attempt = 1;
  spec.group = "LeaderWorkerSet/serve/0";
  spec.leader = "6e0e6a3c-5b0d-4c58-9a43-0b3c8b5f6a12";
  spec.pods = 4;
  spec.gpus_per_pod = 4;
  spec.gpu_resource = "nvidia.com/gpu";
  spec.priority = 100;
  spec.wait = std::chrono::minutes(30);
  placement::Parallelism parallelism;
  parallelism.tp = 4;
  parallelism.dp = 2;
  parallelism.pp = 2;
  parallelism.ep = 2;
  parallelism.etp = 2;
  parallelism.fsdp = 2;
  spec.parallelism = parallelism;
  spec.require = {{placement::Axis::kTp, placement::Level::kNvlink}};
  spec.prefer = {{placement::Axis::kDp, placement::Level::kLeaf}};
  spec.model = {70e9, 80, 8192, 4096, 1, 16, 400, 13e9, 64, 8, 64, 8};
  GangStatus& status = full.status;
  status.observed_generation = 1;
  status.progress = {4, 4, 3};
  status.reason = "NotEnoughFree";
  status.message = "2 hosts needed in one scalable unit, best has 1 (su-3)";
  status.preempted_by = "training/urgent-3c1e6a3c-0";
  status.placement = ToColumns({{"gpu-0", 0x0f, {"gpu-2"}},
                                {"gpu-0", 0xf0, {"gpu-2"}},
                                {"gpu-1", 0x0f, {}},
                                {"gpu-1", 0xf0, {"gpu-2"}}},
                               7);
  status.missing = {{1, At(1'800'000'500)}, {3, At(1'800'000'790)}};
  status.planned_at = At(1'800'000'300);
  placement::Quality quality;
  quality.tp_groups = 4;
  quality.tp_groups_in_domain = 4;
  quality.leaf_crossings[std::size_t(placement::Axis::kPp)] = 2;
  quality.edges[std::size_t(placement::Axis::kPp)] = 8;
  quality.axis_micros[std::size_t(placement::Axis::kPp)] = 12'345;
  quality.rail_misaligned = 1;
  quality.step_micros = 12'345;
  quality.whole_domains_left = 3;
  status.predicted = quality;
  status.observed = Observed{At(1'800'000'400), true, true, quality, "16 hosts needed, 12 are free"};
  status.explanation = {"both halves of each TP group share gpu-0's NVSwitches"};
  status.conditions = {Ready("Collected"), Ready("Planned")};
  return {full};
}

Gang LargeGang(int pods, std::size_t name_length) {
  Gang gang = FullGangs()[0];
  gang.spec.pods = pods;
  gang.spec.gpus_per_pod = 8;
  gang.spec.parallelism->tp = 8;
  gang.spec.parallelism->dp = pods;
  gang.spec.parallelism->pp = 1;
  const auto name = [&](int i) {
    std::string text = fmt::format("-{:05}", i);
    return std::string(name_length - text.size(), 'n') + text;
  };
  std::vector<PlacedPod> rows;
  for (int i = 0; i < pods; ++i) {
    PlacedPod row{name(i), 0xff, {}};
    // Neighbours share their substitutes: those that are free in their scalable unit.
    for (int j = 0; j < 7; ++j) row.substitutes.push_back(name(i / 32 * 32 + j));
    rows.push_back(row);
  }
  gang.status.placement = ToColumns(rows, 1);
  return gang;
}

}  // namespace heddle::crds::samples
