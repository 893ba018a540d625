#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "crds/codec.h"
#include "crds/devices_codec.h"
#include "crds/lossless_codec.h"
#include "crds/node_topology.h"

namespace heddle::crds {
namespace {

using codec::Field;

constexpr int kMaxGpuIndex = 31;
constexpr std::int64_t kMaxGbps = 1'000'000;

std::optional<bool> ParseHealth(std::string_view text) {
  if (text == "Healthy") return true;
  if (text == "Unhealthy") return false;
  return std::nullopt;
}

std::optional<bool> ParseSpansNodes(std::string_view text) {
  if (text == "MultiNode") return true;
  if (text == "Node") return false;
  return std::nullopt;
}

// No fault is no word: the key is absent.
std::optional<topology::LinkFault> ParseFault(std::string_view text) {
  const auto fault = topology::ParseLinkFault(text);
  return fault == topology::LinkFault::kNone ? std::nullopt : fault;
}

topology::Gpu ReadGpu(const Field& field) {
  topology::Gpu gpu;
  gpu.index = field("index").Required().Int(0, kMaxGpuIndex);
  gpu.uuid = field("uuid").Text(96);
  gpu.model = field("model").Text(96);
  gpu.pci = field("pci").Text(32);
  gpu.numa = codec::ReadFact(field, "numa", "numaMissing", 1023);
  gpu.healthy = field("health").Required().Word(ParseHealth, "Healthy, Unhealthy", true);
  gpu.unhealthy_reason = field("reason").Text(256);
  gpu.memory_gib = field("memoryGib").Int(0, 65535);
  gpu.mig = field("mig").Bool();
  gpu.fatal_xid = field("fatalXid").Int(1, 999);
  if (const Field gone = field("nicGone"); gone.present())
    gpu.nic_gone = topology::LostNic{gone("rail").Required().Int(0, 255), gone("pci").Text(32)};
  return gpu;
}

topology::Fact<topology::LeafPort> ReadLeafPort(const Field& field) {
  const Field leaf = field("leaf");
  const Field missing = field("leafMissing");
  if (leaf.present() && missing.present()) missing.Refuse("stands beside leaf: remove one");
  if (leaf.present())
    return topology::LeafPort{leaf.Text(128), field("leafPort").Text(64), field("leafChassisId").Text(255)};
  return missing.Word(topology::ParseMissing, codec::kMissingWords, topology::Missing::kUnknown);
}

topology::NicPort ReadPort(const Field& field) {
  topology::NicPort port;
  port.number = field("number").Required().Int(0, 255);
  port.plane = field("plane").Int(0, 63);
  port.state = field("state").Required().Word(topology::ParseLinkState, "Active, Down, Unknown",
                                              topology::LinkState::kUnknown);
  port.rate_gbps = field("rateGbps").Int(0, kMaxGbps);
  port.usable_gbps = field("usableGbps").Int(0, kMaxGbps);
  port.leaf_port = ReadLeafPort(field);
  port.fault =
      field("fault").Word(ParseFault, "Flapping, Errors, PauseStorm, PathLoss", topology::LinkFault::kNone);
  port.reason = field("reason").Text(256);
  port.rdma_mtu = field("rdmaMtu").Int(1, 4096);
  if (field("gidIndex").present()) port.gid_index = field("gidIndex").Int(0, 65535);
  return port;
}

std::string ReadPciId(const Field& field) {
  std::string id = field.Text(9);
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool good = id.size() == 9 && id[4] == ':' && std::count_if(id.begin(), id.end(), hex) == 8;
  if (field.present() && !good) field.Refuse("must be vendor and device in lower case, as 15b3:1021");
  return id;
}

topology::Nic ReadNic(const Field& field) {
  topology::Nic nic;
  nic.name = field("name").Name(64);
  nic.netdev = field("netdev").Text(64);
  nic.driver = field("driver").Text(64);
  nic.pci = field("pci").Text(32);
  nic.pci_id = ReadPciId(field("pciId"));
  nic.guid = field("guid").Text(32);
  nic.transport =
      field("transport")
          .Required()
          .Word(topology::ParseTransport, codec::TransportWords(), topology::Transport::kEthernet);
  nic.role = field("role").Required().Word(topology::ParseNicRole, "compute, storage, management",
                                           topology::NicRole::kManagement);
  nic.rail = codec::ReadFact(field, "rail", "railMissing", 255);
  nic.numa = codec::ReadFact(field, "numa", "numaMissing", 1023);
  nic.mtu = field("mtu").Int(1, 65536);
  const Field ports = field("ports");
  nic.ports = ports.Required().List(8, ReadPort);
  if (nic.ports.empty()) ports.Refuse("a NIC has at least one port");
  std::stable_sort(nic.ports.begin(), nic.ports.end(),
                   [](const auto& a, const auto& b) { return a.number < b.number; });
  return nic;
}

topology::NvLink ReadNvlink(const Field& field) {
  topology::NvLink nvlink;
  nvlink.generation = field("generation").Int(0, 64);
  nvlink.links_per_gpu = field("linksPerGpu").Int(0, 256);
  nvlink.gbps_per_gpu = field("gbpsPerGpu").Int(0, kMaxGbps);
  nvlink.exceptions = field("exceptions").List(32, [](const Field& item) {
    topology::NvLink::Exception exception{item("gpu").Required().Int(0, kMaxGpuIndex),
                                          item("linksUp").Required().Int(0, 256)};
    if (item("usableGbps").present()) exception.usable_gbps = item("usableGbps").Int(0, kMaxGbps);
    return exception;
  });
  std::stable_sort(nvlink.exceptions.begin(), nvlink.exceptions.end(),
                   [](const auto& a, const auto& b) { return a.gpu < b.gpu; });
  return nvlink;
}

topology::Fact<topology::NvlinkMembership> ReadDomain(const Field& status) {
  const Field domain = status("nvlinkDomain");
  const Field missing = status("nvlinkDomainMissing");
  if (domain.present() && missing.present()) missing.Refuse("stands beside nvlinkDomain: remove one");
  if (!domain.present()) {
    return missing.Word(topology::ParseMissing, codec::kMissingWords, topology::Missing::kUnknown);
  }
  return topology::NvlinkMembership{
      domain("id").Required().Text(253),
      domain("scope").Required().Word(ParseSpansNodes, "Node, MultiNode", false)};
}

topology::Node ReadNode(const Field& status, std::string name) {
  topology::Node node;
  node.name = std::move(name);
  node.machine = status("machine").Text(128);
  node.site = status("site").Text(63);
  node.numa_nodes = status("numaNodes").Int(0, 1024);
  node.gpus = status("gpus").List(32, ReadGpu);
  node.nvswitches =
      status("nvSwitches").List(32, [](const Field& item) { return topology::NvSwitch{item.Text(32)}; });
  node.nvlink = ReadNvlink(status("nvlink"));
  node.nvlink_domain = ReadDomain(status);
  node.nics = status("nics").List(128, ReadNic);
  node.paths = status("paths").List(1024, [](const Field& item) {
    return topology::GpuNicPath{
        item("gpu").Required().Int(0, kMaxGpuIndex), item("nic").Name(64),
        item("distance")
            .Required()
            .Word(topology::ParsePciDistance, "PIX, PXB, PHB, NODE, SYS", topology::PciDistance::kSys)};
  });
  // Values are sorted; JSON may come from people. What stands twice is left for topology::Check to name.
  const auto sort = [](auto& values, auto key) {
    std::stable_sort(values.begin(), values.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
  };
  sort(node.gpus, [](const topology::Gpu& gpu) { return gpu.index; });
  sort(node.nvswitches, [](const topology::NvSwitch& nvswitch) { return std::string_view(nvswitch.pci); });
  sort(node.nics, [](const topology::Nic& nic) { return std::string_view(nic.name); });
  sort(node.paths, [](const topology::GpuNicPath& path) {
    return std::tuple(path.gpu, path.distance, std::string_view(path.nic));
  });
  return node;
}

Grant ReadGrant(const Field& field) {
  Grant grant;
  grant.pod_namespace = field("namespace").Name(63);
  grant.pod_name = field("pod").Name(253);
  grant.pod_uid = field("uid").Required().Text(64);
  grant.container = field("container").Required().Text(63);
  grant.gpus = field("gpus").List(32, [](const Field& item) {
    return Grant::GpuRef{item("index").Required().Int(0, kMaxGpuIndex), item("uuid").Text(96)};
  });
  grant.nics = field("nics").Names(128, 64);
  grant.resources = field("resources").Names(16, 317);
  grant.unmatched = field("unmatched").List(32, [](const Field& item) {
    return Grant::DeviceRef{item("resource").Required().Text(317), item("id").Required().Text(253)};
  });
  std::stable_sort(grant.gpus.begin(), grant.gpus.end(),
                   [](const auto& a, const auto& b) { return a.index < b.index; });
  std::sort(grant.nics.begin(), grant.nics.end());
  std::sort(grant.resources.begin(), grant.resources.end());
  std::stable_sort(grant.unmatched.begin(), grant.unmatched.end(), [](const auto& a, const auto& b) {
    return std::tie(a.resource, a.id) < std::tie(b.resource, b.id);
  });
  return grant;
}

std::vector<Grant> ReadGrants(const Field& field) {
  auto grants = field.List(128, ReadGrant);
  std::stable_sort(grants.begin(), grants.end(), [](const Grant& a, const Grant& b) {
    return std::tie(a.pod_namespace, a.pod_name, a.container) <
           std::tie(b.pod_namespace, b.pod_name, b.container);
  });
  return grants;
}

std::vector<CongestedPort> ReadCongestion(const Field& field) {
  auto ports = field.List(kMaxCongestedPorts, [](const Field& item) {
    return CongestedPort{item("nic").Name(64), item("port").Required().Int(0, 255),
                         item("since").Required().Time().value_or(base::WallTime()),
                         item("evidence").Required().Text(512)};
  });
  std::stable_sort(ports.begin(), ports.end(), [](const CongestedPort& a, const CongestedPort& b) {
    return std::tie(a.nic, a.port) < std::tie(b.nic, b.port);
  });
  return ports;
}

std::string ReadHash(const Field& field) {
  std::string hash = field.Text(16);
  const bool hex = std::all_of(hash.begin(), hash.end(),
                               [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (field.present() && (hash.size() != 16 || !hex)) field.Refuse("must be 16 hex digits in lower case");
  return hash;
}

}  // namespace

Json Packed(Json node_topology) {
  const auto status = node_topology.find("status");
  if (status == node_topology.end() || !status->is_object()) return node_topology;
  std::vector<std::uint8_t> bytes = Json::to_cbor(*status);
  bytes.shrink_to_fit();  // it grew by doubling, and stays
  *status = Json::binary(std::move(bytes));
  return node_topology;
}

base::Result<NodeTopology> NodeTopologyFromJson(const Json& json) {
  if (const auto packed = json.find("status"); packed != json.end() && packed->is_binary()) {
    Json whole = json;
    whole["status"] = Json::from_cbor(packed->get_binary(), true, false);
    return NodeTopologyFromJson(whole);
  }
  codec::Problem problem;
  const Field root(json, problem);
  NodeTopology object;
  codec::ReadHead(root, keys::kNodeTopology.kind, object);
  const Field spec = root("spec");
  object.spec.labels = spec("labels").Texts(kMaxLabels, 63);
  object.spec.lossless = spec("lossless").List(kMaxLosslessEntries, codec::ReadWish);
  object.spec.cables = spec("cables").List(kMaxCableEntries, codec::ReadCableReport);
  object.spec.devices = spec("devices").List(kMaxDeviceEntries, codec::ReadDeviceWish);
  const Field status = root("status");
  NodeTopologyStatus& to = object.status;
  to.observed_generation = status("observedGeneration").Int64(0, codec::kMaxInt64);
  to.observed_at = status("observedAt").Time();
  to.hash = ReadHash(status("hash"));
  to.agent_version = status("agentVersion").Text(64);
  to.boot_id = status("bootId").Text(64);
  to.node = ReadNode(status, object.name);
  to.grants = ReadGrants(status("grants"));
  to.lossless = status("lossless").List(kMaxLosslessEntries, codec::ReadReport);
  to.devices = status("devices").List(kMaxDeviceEntries, codec::ReadDeviceReport);
  to.congestion = ReadCongestion(status("congestion"));
  to.conditions = codec::ReadConditions(status("conditions"), kMaxConditions);
  if (problem.found()) return base::Fail(problem.error().In("NodeTopology " + object.name));
  return object;
}

}  // namespace heddle::crds
