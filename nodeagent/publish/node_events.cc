#include "nodeagent/publish/node_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace heddle::nodeagent {
namespace {

using kube::Severity;
using topology::Gpu;
using topology::Nic;

constexpr std::size_t kNamed = 8;  // of several GPUs with one fault; a node has as many

template <class AnyGpu>
std::string NameOf(const AnyGpu& gpu) {
  return fmt::format("GPU {} ({})", gpu.index, gpu.pci);
}

const std::string& NicKey(const Nic& nic) {
  return nic.pci.empty() ? nic.name : nic.pci;
}

std::string NameOf(const Nic& nic) {
  const std::string place = nic.pci.empty() ? nic.name : fmt::format("{} ({})", nic.name, nic.pci);
  return nic.rail.known() ? fmt::format("{} on rail {}", place, *nic.rail) : place;
}

// Its port is published by another device now: both ports of a card became one bond.
bool IsOfABond(const topology::Node& node, const Nic& nic) {
  if (nic.pci.empty() || nic.transport != topology::Transport::kRoce) return false;
  const std::string card = nic.pci.substr(0, nic.pci.find('.') + 1);
  return std::any_of(node.nics.begin(), node.nics.end(), [&card](const Nic& other) {
    return other.ports.size() > 1 && other.pci.starts_with(card);
  });
}

bool IsLeftOut(const Observation& seen, const Nic& nic) {
  return std::any_of(seen.excluded.begin(), seen.excluded.end(), [&nic](const Exclusion& excluded) {
    return excluded.device == nic.name || (!nic.pci.empty() && excluded.pci == nic.pci);
  });
}

std::string_view ReasonOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFlapping:
      return kLinkFlapping;
    case Verdict::kDown:
      return kLinkDown;
    case Verdict::kDegraded:
      return kLinkDegraded;
    default:
      return kLinkHealthy;
  }
}

// One event for all GPUs with the same to say: a driver that hangs is one thing, not eight.
void Tell(const std::map<std::string, std::vector<std::string>>& by_fault, Severity severity,
          std::string_view reason, std::vector<NodeEvent>& events) {
  for (const auto& [fault, names] : by_fault) {
    if (names.empty()) continue;
    std::string who;
    for (std::size_t i = 0; i < names.size() && i < kNamed; ++i) who += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kNamed) who += fmt::format(" and {} more", names.size() - kNamed);
    events.push_back({severity, reason, fault.empty() ? who : fmt::format("{}: {}", who, fault)});
  }
}

}  // namespace

void NodeEvents::Restore(const topology::Node& published, std::string boot_id) {
  compares_ = true;
  restored_boot_ = std::move(boot_id);
  for (const Nic& nic : published.nics) {
    for (const topology::NicPort& port : nic.ports) {
      if (port.leaf_port.known()) leaves_[PortKey(nic, port.number)] = *port.leaf_port;
    }
    if (nic.transport != topology::Transport::kEthernet) nics_[NicKey(nic)] = nic;
  }
  for (const Gpu& gpu : published.gpus) gpus_[GpuKey(gpu)] = gpu;
}

std::vector<NodeEvent> NodeEvents::Look(const Sight& sight) {
  std::vector<NodeEvent> events;
  LookAtLinks(sight, events);
  LookAtLeaves(sight, events);
  LookAtNics(sight, events);
  LookAtGpus(sight, events);
  LookAtXids(sight, events);
  for (const NvlinkChange& change : sight.nvlink_changes) {
    events.push_back({change.over ? Severity::kNormal : Severity::kWarning,
                      change.over ? kNvlinkRecovered : kNvlinkFault, SayChange(change)});
  }
  compares_ = looked_ = true;
  return events;
}

// Where the network tells no leaf the Node's labels may, and those the agent reads in its own object.
std::string NodeEvents::LeafByLabels(const WatchedPort& watched, const Sight& sight) const {
  if (!watched.leaf.empty() || labels_.empty()) return {};
  topology::Node node = sight.seen.node;
  crds::FillLeaves(node, labels_);
  const Nic* nic = node.FindNic(watched.nic);
  if (nic == nullptr) return {};
  for (const topology::NicPort& port : nic->ports) {
    if (port.number == watched.number && port.leaf_port.known()) return port.leaf_port->leaf;
  }
  return {};
}

// A state that cannot be read for a while is between two verdicts and none of its own.
void NodeEvents::LookAtLinks(const Sight& sight, std::vector<NodeEvent>& events) {
  for (const HealthChange& change : sight.changes) {
    if (change.before != Verdict::kUnknown) verdicts_.try_emplace(change.port.key, change.before);
    if (change.after == Verdict::kUnknown) continue;
    const auto [known, fresh] = verdicts_.try_emplace(change.port.key, Verdict::kHealthy);
    if (known->second == change.after) continue;
    known->second = change.after;
    const bool good = change.after == Verdict::kHealthy;
    const std::string leaf = LeafByLabels(change.port, sight);
    events.push_back(
        {good ? Severity::kNormal : Severity::kWarning, ReasonOf(change.after),
         leaf.empty() ? change.sentence : fmt::format("{}: {}", NameOf(change.port, leaf), change.what)});
  }
}

void NodeEvents::LookAtLeaves(const Sight& sight, std::vector<NodeEvent>& events) {
  for (const Nic& nic : sight.seen.node.nics) {
    for (const topology::NicPort& port : nic.ports) {
      if (!port.leaf_port.known()) continue;
      const topology::LeafPort& now = *port.leaf_port;
      const auto [known, fresh] = leaves_.try_emplace(PortKey(nic, port.number), now);
      // Its chassis id alone says no other place: an older agent published none.
      if (fresh || (known->second.leaf == now.leaf && known->second.port == now.port)) continue;
      events.push_back({Severity::kWarning, kLeafChanged,
                        fmt::format("{} port {} ends at {} port {}; it was {} port {}", nic.name, port.number,
                                    now.leaf, now.port, known->second.leaf, known->second.port)});
      known->second = now;
    }
  }
}

void NodeEvents::Add(const std::string& key, std::string name, base::MonotonicTime at,
                     std::vector<std::string>& names) {
  Told& told = told_[key];
  if (!told.allowance.Take(at)) {
    ++told.left_out;
    return;
  }
  const int left_out = std::exchange(told.left_out, 0);
  names.push_back(std::move(name));
  if (left_out > 0) names.back() += fmt::format(" [{} more events about it were left out]", left_out);
}

template <class AnyGpu>
void NodeEvents::AddGpu(const AnyGpu& gpu, base::MonotonicTime at, std::vector<std::string>& names) {
  Add(GpuKey(gpu), NameOf(gpu), at, names);
}

// One that a look leaves out is there. A folder that cannot be listed shows none, which is a problem and no loss:
// SteadyFileTree keeps it.
void NodeEvents::LookAtNics(const Sight& sight, std::vector<NodeEvent>& events) {
  std::map<std::string, std::vector<std::string>> gone;
  std::set<std::string> here;
  // A machine that boots has its NICs when their drivers are loaded, EFA's after minutes. The conditions speak of those
  // that stay away.
  const std::string before = std::exchange(restored_boot_, {});
  if (!before.empty() && !sight.seen.boot_id.empty() && before != sight.seen.boot_id) nics_.clear();
  for (const Nic& nic : sight.seen.node.nics) {
    if (nic.transport == topology::Transport::kEthernet) continue;
    here.insert(NicKey(nic));
    nics_[NicKey(nic)] = nic;
  }
  for (auto known = nics_.begin(); known != nics_.end();) {
    if (here.contains(known->first)) {
      ++known;
      continue;
    }
    if (!IsLeftOut(sight.seen, known->second) && !IsOfABond(sight.seen.node, known->second))
      Add(known->first, NameOf(known->second), sight.at, gone["it is no longer found"]);
    known = nics_.erase(known);
  }
  Tell(gone, Severity::kWarning, kNicGone, events);
}

void NodeEvents::LookAtGpus(const Sight& sight, std::vector<NodeEvent>& events) {
  std::map<std::string, std::vector<std::string>> faulty, sound, gone;
  std::set<std::string> here;
  for (const Gpu& gpu : sight.seen.node.gpus) {
    here.insert(GpuKey(gpu));
    const auto [known, fresh] = gpus_.try_emplace(GpuKey(gpu), gpu);
    const bool was_healthy = fresh ? !compares_ || gpu.healthy : known->second.healthy;
    const bool begins_to_flap = !fresh && Flaps(gpu) && !Flaps(known->second);
    if (!fresh) known->second = gpu;
    // Another fault of a GPU that has one is told by the condition.
    if (begins_to_flap || (was_healthy && !gpu.healthy && (compares_ || !fresh)))
      AddGpu(gpu, sight.at, faulty[gpu.unhealthy_reason]);
    if (!was_healthy && gpu.healthy) AddGpu(gpu, sight.at, sound["no evidence against it any more"]);
  }
  // Without the bus nothing is known to be gone.
  const bool seen_all = !sight.seen.gpus_unreadable;
  for (auto known = gpus_.begin(); seen_all && known != gpus_.end();) {
    if (here.contains(known->first)) {
      ++known;
      continue;
    }
    AddGpu(known->second, sight.at, gone["it is no longer found"]);
    known = gpus_.erase(known);
  }
  Tell(faulty, Severity::kWarning, kGpuUnhealthy, events);
  Tell(sound, Severity::kNormal, kGpuHealthy, events);
  Tell(gone, Severity::kWarning, kGpuGone, events);
}

void NodeEvents::LookAtXids(const Sight& sight, std::vector<NodeEvent>& events) {
  std::map<std::string, std::vector<std::string>> heard;
  for (const GpuReading& gpu : sight.gpus) {
    const auto [known, fresh] = xids_.try_emplace(GpuKey(gpu), gpu.last_xid);
    // A new child of the driver has heard of none yet.
    if (gpu.last_xid == 0) continue;
    const bool told = fresh ? !looked_ : known->second == gpu.last_xid;
    known->second = gpu.last_xid;
    if (told) continue;
    std::vector<std::string>& names = heard[SayXid(gpu.last_xid)];
    if (IsFatalXid(gpu.last_xid)) {
      names.push_back(NameOf(gpu));
    } else {
      AddGpu(gpu, sight.at, names);
    }
  }
  Tell(heard, Severity::kWarning, kGpuXid, events);
}

kube::ObjectReference NodeReference(const std::string& node) {
  return {"v1", "Node", "", node, node};
}

}  // namespace heddle::nodeagent
