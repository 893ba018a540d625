// What the node agent hears besides files of sysfs: drivers, the kernel, the kubelet, a supplied topology.
#include <string>
#include <string_view>

#include "base/check.h"
#include "nodeagent/discovery/discovery.h"
#include "nodeagent/grants/pod_resources.h"
#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/monitor/kernel_events.h"
#include "nodeagent/publish/report.h"
#include "tests/fuzz/targets.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::fuzz {

using namespace nodeagent;  // NOLINT(google-build-using-namespace): this file is about nothing else

// What is read can be written, and reads the same.
void VerbsYaml(std::string_view bytes) {
  const VerbsFile file = ParseVerbsYaml(bytes);
  for (const std::string& problem : file.problems) CHECK(!problem.empty());
  RdmaReadings rdma;
  for (const auto& [port, told] : file.ports) {
    RdmaDevice& device = rdma.devices.emplace_back();
    device.name = port.first;
    device.ports.emplace_back();
    device.ports[0].number = port.second;
    device.ports[0].link_layer = told.link_layer;
    device.ports[0].active_mtu = told.active_mtu;
  }
  if (rdma.devices.empty()) return;
  const VerbsFile again = ParseVerbsYaml(FormatVerbsYaml(rdma));
  CHECK(again.problems.empty());
  CHECK(again.ports == file.ports);
}

void EthtoolText(std::string_view bytes) {
  const EthtoolStats stats = ParseEthtoolStats(bytes);
  CHECK(stats.names != nullptr && stats.names->size() == stats.values.size());
  const EthtoolStats again = ParseEthtoolStats(FormatEthtoolStats(stats));
  CHECK(*again.names == *stats.names);
  CHECK(again.values == stats.values);
}

void Uevent(std::string_view bytes) {
  const auto event = ParseUevent(bytes);
  if (!event) return;
  CHECK(event->kind == KernelEvent::Kind::kDevice && event->topology);
  CHECK(!event->subject.empty() && !event->what.empty());
}

// Datagrams behind one another as the kernel sends them: the first half is a dump.
void Rtnetlink(std::string_view bytes) {
  LinkTable table;
  std::vector<KernelEvent> events;
  for (const std::string_view datagram : {bytes, bytes.substr(0, bytes.size() / 2), bytes}) {
    const LinkMessages messages = ParseLinkMessages(datagram);
    CHECK(messages.links.size() <= datagram.size());
    for (const LinkMessage& link : messages.links) {
      CHECK(!link.name.empty() && link.mtu >= 0);
      if (auto event = table.Apply(link)) events.push_back(*std::move(event));
    }
    table.EndDump();
  }
  CHECK(Coalesce(std::move(events)).size() <= kMaxEvents);
}

// One answer of the kubelet, joined with a node of one GPU and one NIC.
void PodResources(std::string_view bytes) {
  test::MemoryFileTree files;
  files.Write("proc/driver/nvidia/gpus/0000:1b:00.0/information", "Device Minor: \t 3\n");
  files.Link("sys/class/drm/card1/device", "../../../0000:1b:00.0");
  GrantReadings readings = GrantsOfAnswer(bytes);
  if (readings.state != GrantsState::kRead) {
    CHECK(!readings.problem.empty() && readings.containers.empty());
    return;
  }
  FindFunctions(files, readings);
  topology::Node node;
  node.name = "node-00";
  node.gpus.push_back(
      {0, "GPU-89abcdef-1111-2222-3333-444455556666", "H100", "0000:1b:00.0", 0, true, {}, 80});
  topology::Nic& nic = node.nics.emplace_back();
  nic.name = "mlx5_0";
  nic.pci = "0000:18:00.0";
  nic.ports.emplace_back();
  const JoinedGrants joined = JoinGrants(readings, node);
  CHECK(joined.grants.size() <= kMaxGrants);
  const auto condition = GrantsCondition(readings, joined, node);
  CHECK(condition && condition->message.size() <= 1024);
  crds::NodeTopology object;
  object.name = node.name;
  object.status.node = node;
  object.status.grants = joined.grants;
  (void)crds::ToJson(object).dump();  // throws on bad UTF-8
}

// NCCL's file as the agent's source: alone, and put over a machine that has its own tree.
void NcclSource(std::string_view bytes) {
  test::MemoryFileTree files;
  files.Write("topo.xml", std::string(bytes));
  auto supplied = ReadSuppliedTopology(files, "topo.xml", "topo.xml");
  if (!Read(supplied)) return;
  for (const bool alone : {false, true}) {
    supplied->alone = alone;
    Readings readings;
    readings.identity.node = "node-00";
    for (const char* address : {"0000:02:00.0", "0000:04:00.0"}) {
      PciDevice device;
      device.address = address;
      device.root = "pci0000:00";
      device.vendor = kVendorNvidia;
      device.class_code = 0x030200;
      if (!alone) readings.pci.devices[address] = device;
    }
    Supply(*supplied, readings);
    const Observation seen = Assemble(readings);
    crds::NodeTopology object;
    object.name = "node-00";
    const auto json = crds::ToJson(Report(object, seen, {}));
    CHECK(Read(crds::NodeTopologyFromJson(json)));
    (void)json.dump();
  }
}

}  // namespace heddle::fuzz
