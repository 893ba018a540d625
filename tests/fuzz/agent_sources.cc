// What the node agent hears besides files of sysfs: drivers, the kernel, the kubelet, a supplied topology.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "nodeagent/discovery/discovery.h"
#include "nodeagent/gpu/amd_gpus.h"
#include "nodeagent/grants/pod_resources.h"
#include "nodeagent/health/conditions.h"
#include "nodeagent/health/ethtool_answers.h"
#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/health/gpu_health.h"
#include "nodeagent/health/health.h"
#include "nodeagent/health/leaf_end.h"
#include "nodeagent/leaf/leaf_counts.h"
#include "nodeagent/leaf/smp.h"
#include "nodeagent/monitor/kernel_events.h"
#include "nodeagent/nic/storage_nics.h"
#include "nodeagent/nic/uncabled.h"
#include "nodeagent/pci/probe.h"
#include "nodeagent/publish/report.h"
#include "tests/fuzz/records.h"
#include "tests/fuzz/targets.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_file_tree.h"

namespace heddle::fuzz {

using namespace nodeagent;  // NOLINT(google-build-using-namespace): this file is about nothing else

// What is read can be written, and reads the same.
bool VerbsYaml(std::string_view bytes) {
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
  if (rdma.devices.empty()) return false;
  const VerbsFile again = ParseVerbsYaml(FormatVerbsYaml(rdma));
  CHECK(again.problems.empty());
  CHECK(again.ports == file.ports);
  return true;
}

bool EthtoolText(std::string_view bytes) {
  const EthtoolStats stats = ParseEthtoolStats(bytes);
  CHECK(stats.names != nullptr && stats.names->size() == stats.values.size());
  const EthtoolStats again = ParseEthtoolStats(FormatEthtoolStats(stats));
  CHECK(*again.names == *stats.names);
  CHECK(again.values == stats.values);
  return !stats.values.empty();
}

// What the ioctls of one look at an interface's statistics leave in their buffers, behind one another: how many there
// are, their names, their values. What was read can be recorded, and reads the same.
bool EthtoolAnswers(std::string_view bytes) {
  constexpr std::size_t kCountAnswer = 20, kNamesAnswer = 12, kName = 32;
  const auto take = [&bytes](std::size_t size) {
    const std::string_view taken = bytes.substr(0, size);
    bytes.remove_prefix(taken.size());
    return taken;
  };
  const std::size_t count = StatsCountOf(take(kCountAnswer));
  auto names = StatsNamesOf(take(kNamesAnswer + count * kName), count);
  auto values = StatsValuesOf(bytes, count);
  for (const std::size_t other : {count + 1, std::size_t(kMaxEthtoolStats)})
    CHECK(other == count || !values || !StatsValuesOf(bytes, other));
  if (!names || !values) return false;
  CHECK(names->size() == count && values->size() == count);
  EthtoolStats said;  // a name without a letter is not written
  std::vector<std::string> named;
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(names->at(i).size() <= kName);
    if (names->at(i).empty()) continue;
    named.push_back(names->at(i));
    said.values.push_back(values->at(i));
  }
  const EthtoolStats stats{std::make_shared<const std::vector<std::string>>(*std::move(names)),
                           *std::move(values)};
  const EthtoolStats again = ParseEthtoolStats(FormatEthtoolStats(stats));
  CHECK(*again.names == named && again.values == said.values);
  return !named.empty();
}

bool Uevent(std::string_view bytes) {
  const auto event = ParseUevent(bytes);
  if (!event) return false;
  CHECK(event->kind == KernelEvent::Kind::kDevice && event->topology);
  CHECK(!event->subject.empty() && !event->what.empty());
  return true;
}

// Datagrams behind one another as the kernel sends them: the first half is a dump.
bool Rtnetlink(std::string_view bytes) {
  LinkTable table;
  std::vector<KernelEvent> events;
  bool read = false;
  for (const std::string_view datagram : {bytes, bytes.substr(0, bytes.size() / 2), bytes}) {
    const LinkMessages messages = ParseLinkMessages(datagram);
    CHECK(messages.links.size() <= datagram.size());
    read = read || !messages.links.empty();
    for (const LinkMessage& link : messages.links) {
      CHECK(!link.name.empty() && link.mtu >= 0);
      if (auto event = table.Apply(link)) events.push_back(*std::move(event));
    }
    table.EndDump();
  }
  CHECK(Coalesce(std::move(events)).size() <= kMaxEvents);
  return read;
}

// One answer of the kubelet, joined with a node of one GPU and one NIC.
bool PodResources(std::string_view bytes) {
  test::MemoryFileTree files;
  files.Write("proc/driver/nvidia/gpus/0000:1b:00.0/information", "Device Minor: \t 3\n");
  files.Link("sys/class/drm/card1/device", "../../../0000:1b:00.0");
  GrantReadings readings = GrantsOfAnswer(bytes);
  if (readings.state != GrantsState::kRead) {
    CHECK(!readings.problem.empty() && readings.containers.empty());
    return false;
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
  return !joined.grants.empty();
}

// The other end of the cable: datagrams behind one another as somebody sends them, who knows the question where he
// wants to. A byte before each says whether it is one, nothing in time, or an error of the port.
bool Smp(std::string_view bytes) {
  class Line final : public SmpPort {
   public:
    explicit Line(std::string_view bytes) : bytes_(bytes) {}
    base::Status Send(const Mad& question) override {
      asked_ = question;
      ++questions_;
      return {};
    }
    base::Result<Mad> Receive() override {
      ++answers_;
      const std::uint8_t kind = bytes_.empty() ? 0 : std::uint8_t(bytes_.front());
      bytes_.remove_prefix(std::min<std::size_t>(bytes_.size(), 1));
      if (bytes_.empty() || kind % 8 == 0) return base::Fail(base::Code::kTimeout, "nobody answers");
      if (kind % 8 == 1) return base::Fail(base::Code::kUnavailable, "the port is gone");
      Mad answer{};
      const std::size_t size = std::min(bytes_.size(), answer.size());
      std::copy_n(bytes_.begin(), size, answer.begin());
      bytes_.remove_prefix(size);
      if (kind % 8 < 6) {  // to this question, else to whatever stands in it
        std::copy_n(asked_.begin() + 8, 10, answer.begin() + 8);  // transaction and attribute
        answer[1] = 0x81;
        answer[3] = 0x81;
      }
      return answer;
    }
    int questions_ = 0, answers_ = 0;

   private:
    std::string_view bytes_;
    Mad asked_{};
  };
  Line line(bytes);
  std::uint32_t transaction = 0;
  bool told = false;
  for (const SmpAttribute attribute : {SmpAttribute::kNodeInfo, SmpAttribute::kNodeDescription}) {
    const auto answer = Exchange(line, attribute, 1, transaction);
    if (!Read(answer)) continue;
    CHECK(Answers(*answer, AskNeighbour(attribute, 1, transaction)));
    (void)WhyRefused(*answer);
    if (const auto info = ReadNodeInfo(*answer)) {
      CHECK(info->kind != formats::IbNodeKind::kNone && info->guid != 0);
      CHECK(info->port >= 1 && info->port <= 255);
      told = true;
    }
    const std::string said = ReadNodeDescription(*answer);
    CHECK(said.size() <= 64 * 4);
    // As it is kept in a recording, which reads the same.
    const formats::IbNeighbour neighbour{"mlx5_0", 1, 7, formats::IbNodeKind::kSwitch, "0x1", said, "1"};
    const auto read = formats::ParseIbNeighbours(formats::FormatIbNeighbours({neighbour}));
    CHECK(read.problems.empty() && read.entries.size() == 1);
  }
  CHECK(line.questions_ <= 6 && line.answers_ <= 24);
  return told;
}

// A leaf that is asked for its counters, in three passes: datagrams as in Smp, and the class with the transaction.
bool Pma(std::string_view bytes) {
  class Line final : public LeafLine {
   public:
    explicit Line(std::string_view& bytes, int& questions) : bytes_(bytes), questions_(questions) {}
    base::Status Send(const Mad& question, int lid, std::chrono::nanoseconds at_most) override {
      CHECK(question[3] == 0x01 && at_most.count() > 0);
      CHECK(question[1] == 0x81 || (question[1] == 0x04 && lid >= 1 && lid <= 0xbfff && question[65] <= 254));
      asked_ = question;
      ++questions_;
      return {};
    }
    base::Result<Mad> Receive(std::chrono::nanoseconds /*at_most*/) override {
      const std::uint8_t kind = bytes_.empty() ? 0 : std::uint8_t(bytes_.front());
      bytes_.remove_prefix(std::min<std::size_t>(bytes_.size(), 1));
      if (bytes_.empty() || kind % 8 == 0) return base::Fail(base::Code::kTimeout, "nobody answers");
      if (kind % 8 == 1) return base::Fail(base::Code::kUnavailable, "the port is gone");
      Mad answer{};
      const std::size_t size = std::min(bytes_.size(), answer.size());
      std::copy_n(bytes_.begin(), size, answer.begin());
      bytes_.remove_prefix(size);
      if (kind % 8 < 6) {  // to this question, and of its port
        std::copy_n(asked_.begin() + 8, 10, answer.begin() + 8);
        answer[1] = asked_[1];
        answer[3] = 0x81;
        if (asked_[1] == 0x04) answer[65] = asked_[65];
      }
      return answer;
    }

   private:
    std::string_view& bytes_;
    int& questions_;
    Mad asked_{};
  };
  class Lines final : public LeafLines {
   public:
    explicit Lines(std::string_view& bytes, int& questions) : bytes_(bytes), questions_(questions) {}
    base::Result<std::unique_ptr<LeafLine>> Open(const std::string&, int, int) override {
      return std::make_unique<Line>(bytes_, questions_);
    }

   private:
    std::string_view& bytes_;
    int& questions_;
  };
  test::MemoryFileTree files;
  files.Write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  test::FakeClock clock;
  int questions = 0;
  bool counted = false;
  PmaLeafCounts source(files, clock, std::make_unique<Lines>(bytes, questions));
  for (int pass = 0; pass < 3; ++pass) {
    const std::vector<LeafCounts> read = source.Read({{"mlx5_0", 1}});
    CHECK(read.size() <= 1);
    CHECK(ParseLeafCounts(FormatLeafCounts(read)) == read);
    for (const LeafCounts& counts : read) {
      (void)LeafEndOf(counts);
      counted = counted || !counts.counts.empty();
    }
    clock.Advance(std::chrono::seconds(10));
  }
  CHECK(questions <= 3 * 9);
  return counted;
}

// What is read can be written, and reads the same.
bool LeafCounters(std::string_view bytes) {
  const std::vector<LeafCounts> ports = ParseLeafCounts(bytes);
  for (const LeafCounts& port : ports) CHECK(WhyLeafUnread(LeafEndOf(port)).size() < 2'000);
  CHECK(ParseLeafCounts(FormatLeafCounts(ports)) == ports);
  return std::any_of(ports.begin(), ports.end(), [](const LeafCounts& port) { return !port.counts.empty(); });
}

// KFD's files of two GPUs and a processor. Records of one byte that names a file and what it holds, ended by 0x1e.
bool Kfd(std::string_view bytes) {
  const std::string nodes = "sys/class/kfd/kfd/topology/nodes/",
                    devices = "sys/bus/pci/devices/0000:0c:00.0/";
  const std::vector<std::string> paths{nodes + "0/properties",
                                       nodes + "1/properties",
                                       nodes + "2/properties",
                                       nodes + "1/mem_banks/0/properties",
                                       nodes + "1/io_links/0/properties",
                                       nodes + "1/io_links/1/properties",
                                       nodes + "2/io_links/0/properties",
                                       nodes + "77777777777/properties",
                                       devices + "unique_id",
                                       devices + "product_name",
                                       devices + "mem_info_vram_total",
                                       devices + "ras/umc_err_count"};
  test::MemoryFileTree files;
  files.Write(paths[1], "simd_count 1216\nlocation_id 3072\ndomain 0\n");
  files.Write(paths[2], "simd_count 1216\nlocation_id 5376\ndomain 0\n");
  files.Write(paths[4], "type 11\nweight 15\nnode_to 2\nmin_bandwidth 64000\nmax_bandwidth 64000\n");
  WriteRecords(bytes, paths, files);
  PciTree tree;
  for (const char* address : {"0000:0c:00.0", "0000:15:00.0"}) {
    PciDevice& device = tree.devices[address];
    device.address = address;
    device.class_code = 0x120000;
    device.vendor = kVendorAmd;
    device.device = 0x74a1;
  }
  GpuReadings readings;
  AddAmdGpus(files, tree, readings);
  CHECK(readings.gpus.size() == 2);
  std::vector<std::string> problems;
  (void)NvlinkOf(readings.gpus);
  (void)DomainOf(readings.gpus, "node", problems);
  bool read = false;
  for (const GpuReading& gpu : readings.gpus) {
    read = read || gpu.memory_mib > 0;
    CHECK(gpu.memory_mib >= 0 && gpu.nvlinks.size() <= 64 * 16);
    for (const NvlinkReading& link : gpu.nvlinks) CHECK(link.speed_mbps >= 0);
  }
  return read;
}

// proc/driver/nvidia/gpus/*/information of three GPUs, asked for by all numbers that a device plugin and a DRA driver
// may name. Records of one byte that names a file and what it holds, ended by 0x1e.
bool NvidiaProc(std::string_view bytes) {
  std::vector<std::string> paths;
  for (const char* name : {"0000:1b:00.0", "0000:43:00.0", "10001:52:00.0", "no-address"})
    paths.push_back(std::string("proc/driver/nvidia/gpus/") + name + "/information");
  test::MemoryFileTree files;
  WriteRecords(bytes, paths, files);
  DeviceSet plugin{"nvidia.com/gpu", false, {}}, claim{"gpu.nvidia.com", true, {}};
  for (int minor = 0; minor < 64; ++minor) {
    plugin.ids.push_back("nvidia" + std::to_string(minor) + (minor % 2 == 0 ? "" : "/gi1"));
    claim.ids.push_back("gpu-" + std::to_string(minor));
  }
  GrantReadings readings;
  readings.containers.push_back({"team", "train-0", "worker", {plugin}});
  readings.allocatable = std::vector<DeviceSet>{claim};
  FindFunctions(files, readings);
  for (const auto& [device, address] : readings.functions) CHECK(IsPciAddress(address));
  CHECK(readings.functions.size() % 2 == 0);  // both mean the same number
  return !readings.functions.empty();
}

// NCCL's file as the agent's source: alone, and put over a machine that has its own tree.
bool NcclSource(std::string_view bytes) {
  test::MemoryFileTree files;
  files.Write("topo.xml", std::string(bytes));
  auto supplied = ReadSuppliedTopology(files, "topo.xml", "topo.xml");
  if (!Read(supplied)) return false;
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
  return true;
}

// --uncabled and --storage, or what machine.yaml of a recording has in their place.
bool DevicePatterns(std::string_view bytes) {
  const auto ports = UncabledPorts::Parse(bytes);
  if (Read(ports)) {
    const auto again = UncabledPorts::Parse(ports->text());
    CHECK(again && *again == *ports);
    (void)ports->Naming("mlx5_0", 1);
  }
  const auto nics = StorageNics::Parse(bytes);
  if (Read(nics)) {
    const auto again = StorageNics::Parse(nics->text());
    CHECK(again && *again == *nics);
    (void)nics->Naming("rdmap16s27");
  }
  return (ports && !ports->text().empty()) || (nics && !nics->text().empty());
}

// The sentences in a NodeTopology that somebody else may have written: why a GPU is unhealthy, then, behind 0x1e, what
// stands against NVLinks. An agent that starts goes on from them.
bool PublishedHealth(std::string_view bytes) {
  const std::size_t cut = std::min(bytes.find('\x1e'), bytes.size());
  crds::NodeTopologyStatus published;
  topology::Gpu gpu;
  gpu.pci = "0000:1b:00.0";
  gpu.uuid = "GPU-1";
  gpu.healthy = false;
  gpu.unhealthy_reason = bytes.substr(0, cut);
  published.node.gpus.push_back(gpu);
  crds::Condition condition;
  condition.type = std::string(kNvlinkHealthy);
  condition.status = crds::ConditionStatus::kFalse;
  condition.message = bytes.substr(std::min(cut + 1, bytes.size()));
  published.conditions.push_back(condition);
  GpuHealth gpus;
  gpus.Restore(published);
  LinkHealth links;
  NvlinkHealth nvlinks;
  RestoreHealth(published, links, nvlinks);
  Observation seen;
  seen.node = published.node;
  seen.node.gpus[0].healthy = true;
  seen.node.gpus[0].unhealthy_reason.clear();
  gpus.Look(seen, base::MonotonicTime(std::chrono::hours(1)), base::WallTime(std::chrono::hours(500'000)));
  gpus.Apply(seen);
  ApplyHealth({}, &nvlinks, seen);
  CHECK(seen.node.gpus[0].healthy == seen.node.gpus[0].unhealthy_reason.empty());
  for (const crds::Condition& one : ConditionsOf(seen)) CHECK(one.message.size() <= 1024);
  return !seen.node.gpus[0].healthy;
}

}  // namespace heddle::fuzz
