#include "crds/codec.h"
#include "crds/devices_codec.h"
#include "crds/lossless_codec.h"
#include "crds/node_topology.h"

namespace heddle::crds {
namespace {

using codec::Clean;
using codec::PutList;
using codec::PutPositive;
using codec::PutText;
using codec::WriteList;

// Unknown is what absence says already, so it costs no bytes.
void PutNuma(Json& json, const topology::Fact<int>& numa) {
  if (numa || numa.missing() != topology::Missing::kUnknown)
    codec::PutFact(json, "numa", "numaMissing", numa);
}

Json WriteGpu(const topology::Gpu& gpu) {
  Json json{{"index", gpu.index}, {"health", gpu.healthy ? "Healthy" : "Unhealthy"}};
  PutText(json, "uuid", gpu.uuid, 96);
  PutText(json, "model", gpu.model, 96);
  PutText(json, "pci", gpu.pci, 32);
  PutNuma(json, gpu.numa);
  PutText(json, "reason", gpu.unhealthy_reason, 256);
  if (!gpu.healthy && gpu.unhealthy_reason.empty()) json["reason"] = "no reason was given";
  PutPositive(json, "memoryGib", gpu.memory_gib);
  if (gpu.mig) json["mig"] = true;
  PutPositive(json, "fatalXid", gpu.fatal_xid);
  if (gpu.nic_gone) {
    Json gone = Json::object();
    gone["rail"] = gpu.nic_gone->rail;
    PutText(gone, "pci", gpu.nic_gone->pci, 32);
    json["nicGone"] = std::move(gone);
  }
  return json;
}

Json WritePort(const topology::NicPort& port) {
  Json json{{"number", port.number}, {"state", topology::LinkStateName(port.state)}};
  // A zero is said of what is known to carry nothing; what nobody knows is absent.
  const bool known = port.rate_gbps > 0 || port.state == topology::LinkState::kDown;
  if (known) json["rateGbps"] = port.rate_gbps;
  if (known || port.usable_gbps > 0) json["usableGbps"] = port.usable_gbps;
  PutPositive(json, "plane", port.plane);
  PutPositive(json, "rdmaMtu", port.rdma_mtu);
  if (port.gid_index) json["gidIndex"] = *port.gid_index;
  if (port.fault != topology::LinkFault::kNone) {
    json["fault"] = topology::LinkFaultName(port.fault);
    PutText(json, "reason", port.reason, 256);
    if (port.reason.empty()) json["reason"] = "no reason was given";
  }
  if (port.leaf_port) {
    json["leaf"] = Clean(port.leaf_port->leaf, 128);
    PutText(json, "leafPort", port.leaf_port->port, 64);
    PutText(json, "leafChassisId", port.leaf_port->chassis_id, 255);
  } else {
    json["leafMissing"] = topology::MissingName(port.leaf_port.missing());
  }
  return json;
}

Json WriteNic(const topology::Nic& nic) {
  Json json{{"name", Clean(nic.name, 64)},
            {"transport", topology::TransportName(nic.transport)},
            {"role", topology::NicRoleName(nic.role)},
            {"ports", WriteList(nic.ports, 8, WritePort)}};
  PutText(json, "netdev", nic.netdev, 64);
  PutText(json, "driver", nic.driver, 64);
  PutText(json, "pci", nic.pci, 32);
  PutText(json, "pciId", nic.pci_id, 9);
  PutText(json, "guid", nic.guid, 32);
  codec::PutFact(json, "rail", "railMissing", nic.rail);
  PutNuma(json, nic.numa);
  PutPositive(json, "mtu", nic.mtu);
  return json;
}

Json WriteNvlink(const topology::NvLink& nvlink) {
  Json json = Json::object();
  json["linksPerGpu"] = nvlink.links_per_gpu;
  PutPositive(json, "generation", nvlink.generation);
  PutPositive(json, "gbpsPerGpu", nvlink.gbps_per_gpu);
  PutList(json, "exceptions",
          WriteList(nvlink.exceptions, 32, [](const topology::NvLink::Exception& exception) {
            Json one{{"gpu", exception.gpu}, {"linksUp", exception.links_up}};
            if (exception.usable_gbps) one["usableGbps"] = *exception.usable_gbps;
            return one;
          }));
  return json;
}

Json WriteGrant(const Grant& grant) {
  Json json{{"namespace", Clean(grant.pod_namespace, 63)},
            {"pod", Clean(grant.pod_name, 253)},
            {"uid", Clean(grant.pod_uid, 64)},
            {"container", Clean(grant.container, 63)}};
  PutList(json, "gpus", WriteList(grant.gpus, 32, [](const Grant::GpuRef& gpu) {
            Json ref{{"index", gpu.index}};
            PutText(ref, "uuid", gpu.uuid, 96);
            return ref;
          }));
  PutList(json, "nics", codec::TextList(grant.nics, 128, 64));
  PutList(json, "resources", codec::TextList(grant.resources, 16, 317));
  PutList(json, "unmatched", WriteList(grant.unmatched, 32, [](const Grant::DeviceRef& device) {
            return Json{{"resource", Clean(device.resource, 317)}, {"id", Clean(device.id, 253)}};
          }));
  return json;
}

Json WriteCongestedPort(const CongestedPort& port) {
  Json json{{"nic", Clean(port.nic, 64)}, {"port", port.port}, {"evidence", Clean(port.evidence, 512)}};
  codec::PutTime(json, "since", port.since);
  return json;
}

Json WriteSummary(const topology::Node& node) {
  const NodeSummary summary = Summarise(node);
  Json json = Json::object();
  PutText(json, "machine", summary.machine, 128);
  PutText(json, "gpus", summary.gpus, 16);
  PutText(json, "nvlinkDomain", summary.nvlink_domain, 128);
  PutText(json, "rails", summary.rails, 16);
  PutText(json, "leaf", summary.leaf, 256);
  PutText(json, "transport", summary.transport, 16);
  return json;
}

void PutNode(Json& json, const topology::Node& node) {
  PutText(json, "machine", node.machine, 128);
  PutText(json, "site", node.site, 63);
  PutPositive(json, "numaNodes", node.numa_nodes);
  PutList(json, "gpus", WriteList(node.gpus, 32, WriteGpu));
  PutList(json, "nvSwitches", WriteList(node.nvswitches, 32, [](const topology::NvSwitch& nvswitch) {
            return Clean(nvswitch.pci, 32);
          }));
  if (node.nvlink != topology::NvLink{}) json["nvlink"] = WriteNvlink(node.nvlink);
  if (node.nvlink_domain) {
    json["nvlinkDomain"] = Json{{"id", Clean(node.nvlink_domain->id, 253)},
                                {"scope", node.nvlink_domain->spans_nodes ? "MultiNode" : "Node"}};
  } else {
    json["nvlinkDomainMissing"] = topology::MissingName(node.nvlink_domain.missing());
  }
  PutList(json, "nics", WriteList(node.nics, 128, WriteNic));
  PutList(json, "paths", WriteList(node.paths, 1024, [](const topology::GpuNicPath& path) {
            return Json{{"gpu", path.gpu},
                        {"nic", Clean(path.nic, 64)},
                        {"distance", topology::PciDistanceName(path.distance)}};
          }));
}

Json WriteSpec(const NodeTopologySpec& spec) {
  Json json = Json::object();
  for (const auto& [key, value] : spec.labels) json["labels"][key] = codec::Clean(value, 63);
  PutList(json, "lossless", WriteList(spec.lossless, kMaxLosslessEntries, codec::WriteWish));
  PutList(json, "devices", WriteList(spec.devices, kMaxDeviceEntries, codec::WriteDeviceWish));
  PutList(json, "cables", WriteList(spec.cables, kMaxCableEntries, codec::WriteCableReport));
  return json;
}

Json WriteStatus(const NodeTopologyStatus& status) {
  Json json = Json::object();
  PutPositive(json, "observedGeneration", status.observed_generation);
  codec::PutTime(json, "observedAt", status.observed_at);
  PutText(json, "hash", status.hash, 16);
  PutText(json, "agentVersion", status.agent_version, 64);
  PutText(json, "bootId", status.boot_id, 64);
  if (status.observed_at) json["summary"] = WriteSummary(status.node);
  if (!status.lossless.empty()) json["summary"]["lossless"] = LosslessSummary(status.lossless);
  if (!status.devices.empty()) json["summary"]["devices"] = DevicesSummary(status.devices);
  PutNode(json, status.node);
  PutList(json, "grants", WriteList(status.grants, 128, WriteGrant));
  PutList(json, "lossless", WriteList(status.lossless, kMaxLosslessEntries, codec::WriteReport));
  PutList(json, "devices", WriteList(status.devices, kMaxDeviceEntries, codec::WriteDeviceReport));
  PutList(json, "congestion", WriteList(status.congestion, kMaxCongestedPorts, WriteCongestedPort));
  PutList(json, "conditions", codec::WriteConditions(status.conditions, kMaxConditions));
  return json;
}

}  // namespace

Json ToJson(const NodeTopology& object) {
  Json json = codec::WriteHead(keys::kNodeTopology.kind, object);
  json["spec"] = WriteSpec(object.spec);
  json["status"] = WriteStatus(object.status);
  return json;
}

Json SpecApplyJson(const NodeTopology& object) {
  Json json = codec::ApplyHead(keys::kNodeTopology.kind, object, true);
  json["spec"] = WriteSpec(object.spec);
  return json;
}

Json StatusApplyJson(const NodeTopology& object) {
  Json json = codec::ApplyHead(keys::kNodeTopology.kind, object, false);
  json["status"] = WriteStatus(object.status);
  return json;
}

}  // namespace heddle::crds
