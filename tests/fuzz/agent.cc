// What the node agent reads: the driver's answers, recordings, and every file of a machine.
#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "base/check.h"
#include "nodeagent/discovery/discovery.h"
#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/health/health.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/recording/scrub.h"
#include "tests/fuzz/targets.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::fuzz {
namespace {

using namespace nodeagent;  // NOLINT(google-build-using-namespace): this file is about nothing else

// A host with a GPU and a NIC behind one switch, a bond, and all that a recording has beside sysfs.
constexpr std::array<std::pair<std::string_view, std::string_view>, 49> kFiles{{
    {"nvml.yaml", "gpus:\n- {index: 0, pci: \"0000:1b:00.0\"}\n"},
    {"lldp.json", "{}"},
    {"ib.txt", "mlx5_0 1 7 switch 0xfc6a1ce29eeb9602 \"leaf-r0\" 1\n"},
    {"labels.txt", "topology.k8s.aws/network-node-layer-3=nn-1\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/class", "0x030200\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/vendor", "0x10de\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/device", "0x2330\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/numa_node", "0\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/class", "0x020700\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/vendor", "0x15b3\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/device", "0x1021\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/numa_node", "-1\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/vpd", "x"},
    {"sys/class/infiniband/mlx5_0/node_guid", "506b:4b03:00c3:b4a2\n"},
    {"sys/class/infiniband/mlx5_0/board_id", "MT_0000000838\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/lid", "0x7\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n"},
    {"sys/class/net/eth0/operstate", "up\n"},
    {"sys/class/net/eth0/speed", "100000\n"},
    {"sys/class/net/eth0/mtu", "9000\n"},
    {"sys/class/net/eth0/type", "1\n"},
    {"sys/class/net/bond0/bonding/slaves", "eth0 eth1\n"},
    {"sys/class/net/bond0/operstate", "up\n"},
    {"sys/class/net/bond0/speed", "-1\n"},
    {"sys/class/net/bond0/mtu", "1500\n"},
    {"sys/class/net/bond0/type", "1\n"},
    {"verbs.yaml", "- {device: mlx5_0, port: 1, link_layer: InfiniBand, active_mtu: 4096}\n"},
    // Links, by what they say.
    {"sys/bus/pci/devices/0000:1b:00.0",
     "../../../devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0"},
    {"sys/bus/pci/devices/0000:18:00.0",
     "../../../devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0"},
    // Behind them, so that the numbers of the corpus stay what they are.
    {"sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "0\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "254\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors", "65535\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/counters/VL15_dropped", "N/A (no PMA)\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "1\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err", "4294967295\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent", "18446744073709551615\n"},
    {"ethtool/eth0", "NIC statistics:\n     rx_prio3_pause: 7\n     rx_prio3_pause_duration: 9\n"},
    {"sys/class/net/eth0/carrier_changes", "3\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/current_link_speed", "2.5 GT/s PCIe\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/current_link_width", "16\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:1b:00.0/max_link_width", "16\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/current_link_speed", "32.0 GT/s PCIe\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/current_link_width", "8\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/max_link_speed", "32.0 GT/s PCIe\n"},
    {"sys/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0/max_link_width", "16\n"},
}};
constexpr std::size_t kFirstLink = 31, kLinks = 2;
constexpr std::string_view kNic = "/devices/pci0000:15/0000:15:01.0/0000:1a:00.0/0000:18:00.0";

void Put(test::MemoryFileTree& files, std::size_t which, std::string_view content) {
  if (which >= kFirstLink && which < kFirstLink + kLinks) {
    files.Link(kFiles[which].first, std::string(content));
  } else {
    files.Write(kFiles[which].first, std::string(content));
  }
}

}  // namespace

// What is read can be written, and reads the same.
bool NvmlYaml(std::string_view bytes) {
  const GpuReadings readings = ParseNvmlYaml(bytes);
  if (!readings.absent.empty()) return false;
  std::vector<std::string> problems;
  (void)NvlinkOf(readings.gpus);
  (void)FabricFaults(readings.gpus);
  (void)DomainOf(readings.gpus, "node", problems);
  CHECK(ParseNvmlYaml(FormatNvmlYaml(readings)).gpus == readings.gpus);
  return !readings.gpus.empty();
}

bool MachineYaml(std::string_view bytes) {
  const auto identity = ParseMachineYaml(bytes);
  if (!Read(identity)) return false;
  (void)WhyNotNodeName(identity->node);
  CHECK(Read(ParseMachineYaml(FormatMachineYaml(*identity))));
  return true;
}

// A recording that a stranger sent, under other names. Records of one byte that names a file and what it holds, ended by
// 0x1e. What comes out is read as what went in, and once more.
bool Scrub(std::string_view bytes) {
  static const std::array<std::string, 15> paths{"machine.yaml",
                                                 "nvml.yaml",
                                                 "lldp.json",
                                                 "ib.txt",
                                                 "labels.txt",
                                                 "leaf-counters.txt",
                                                 "qos.yaml",
                                                 "sys/devices/pci0000:15/0000:18:00.0/vpd",
                                                 "sys/devices/pci0000:15/0000:18:00.0/config",
                                                 "sys/devices/pci0000:15/0000:0c:00.0/unique_id",
                                                 "sys/class/infiniband/mlx5_0/node_desc",
                                                 "sys/class/infiniband/mlx5_0/board_id",
                                                 "sys/class/net/eth0/address",
                                                 "sys/class/kfd/kfd/topology/nodes/1/properties",
                                                 "proc/sys/kernel/random/boot_id"};
  nodeagent::RecordedFiles recorded;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\x1e');
    const std::string_view record = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (record.empty()) continue;
    const std::string content(record.substr(1));
    recorded.files[paths[std::uint8_t(record.front()) % paths.size()]] = content;
    recorded.links["sys/class/net/eth0/device"] = content;
  }
  const nodeagent::RecordedFiles clean = nodeagent::Scrub(recorded);
  CHECK(clean.files.size() == recorded.files.size() && clean.links.size() == recorded.links.size());
  bool read = false;
  for (const auto& [path, content] : clean.files) {
    CHECK(recorded.files.contains(path));
    read = read || !content.empty();
    if (path.ends_with("/vpd")) CHECK(content.empty() || content == "SW_MNG");
    if (path.ends_with("/config")) CHECK(content.size() <= 256);
    if (path == "machine.yaml" && !content.empty()) CHECK(Read(ParseMachineYaml(content)));
    if (path == "nvml.yaml")
      CHECK(ParseNvmlYaml(FormatNvmlYaml(ParseNvmlYaml(content))).gpus == ParseNvmlYaml(content).gpus);
  }
  (void)nodeagent::Scrub(clean);
  return read;
}

// Records of one byte that names a file and what it holds from now on, ended by 0x1e; a byte above 0x7f makes it fail.
// Two ends in a row are a look and a pass over the counters, 5 s after the last, and so is the end: later ones have the
// answers of the first to fall back on.
bool Sysfs(std::string_view bytes) {
  test::MemoryFileTree files;
  for (std::size_t i = 0; i < kFiles.size(); ++i) Put(files, i, kFiles[i].second);
  files.Link("sys/class/infiniband/mlx5_0/device", "../../.." + std::string(kNic));
  RecordedGpus gpus(files);
  Discovery discovery(files, gpus, RecordedLeaves(files), {"node-00", "", ""}, {});
  discovery.Ask(std::make_unique<RecordedMtus>(files));
  RecordedEthtool ethtool(files);
  CounterReader counters(files, ethtool);
  LinkHealth health;
  base::MonotonicTime now{};
  bool counted = false;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\x1e');
    const std::string_view record = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (record.empty()) continue;
    const std::size_t which = std::uint8_t(record.front()) % kFiles.size();
    if (std::uint8_t(record.front()) >= 0x80) {
      files.FailReads(kFiles[which].first, {base::Code::kUnavailable, "Input/output error", std::nullopt});
    } else {
      Put(files, which, record.substr(1));
    }
    if (!bytes.empty() && bytes.front() != '\x1e') continue;
    const Readings readings = discovery.Read();
    Observation seen = discovery.Put(readings);
    counters.Watch(WatchedPorts(readings, seen.node));
    now += std::chrono::seconds(5);
    (void)health.Look(counters.Read(Ask::kFilesAndEthtool), now,
                      base::WallTime(std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch())));
    for (const PortHealth& port : health.ports()) {
      counted = counted || !port.totals.empty();
      if (port.fault != topology::LinkFault::kNone) CHECK(!port.evidence.empty());
    }
    ApplyHealth(health.ports(), nullptr, seen);
    (void)topology::Check(seen.node);
    crds::NodeTopology object;
    object.name = "node-00";
    const auto json = crds::ToJson(Report(object, seen, {}));
    CHECK(Read(crds::NodeTopologyFromJson(json)));
    const std::string said = json.dump();
    CHECK(said.size() < 200'000);
  }
  return counted;
}

}  // namespace heddle::fuzz
