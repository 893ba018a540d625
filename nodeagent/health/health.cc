#include "nodeagent/health/health.h"

#include <algorithm>

#include "nodeagent/health/conditions.h"
#include "nodeagent/nic/heard.h"

namespace heddle::nodeagent {
namespace {

using topology::LinkState;
using topology::NicPort;

NicPort* FindPort(topology::Node& node, const WatchedPort& watched) {
  for (topology::Nic& nic : node.nics) {
    if (nic.name != watched.nic) continue;
    for (NicPort& port : nic.ports) {
      // Renamed since: what was seen of one card is not said of another.
      if (port.number == watched.number && PortKey(nic, port.number) == watched.key) return &port;
    }
  }
  return nullptr;
}

// The sentences of a condition's message, as ConditionsOf joined them.
std::vector<std::string> Sentences(std::string_view message) {
  std::vector<std::string> sentences;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find("; "), message.size());
    sentences.emplace_back(message.substr(0, end));
    message.remove_prefix(std::min(message.size(), end + 2));
  }
  return sentences;
}

}  // namespace

void ApplyHealth(const std::vector<PortHealth>& ports, const NvlinkHealth* nvlinks, Observation& seen) {
  seen.unread_ports.clear();
  seen.leaf_ends.clear();
  seen.congestion.clear();
  for (const PortHealth& health : ports) {
    NicPort* port = FindPort(seen.node, health.port);
    if (port == nullptr) continue;
    // What a port trained to only the look tells: one that came up since waits for it.
    int counted =
        port->usable_gbps;  // as the look has it: the rate, or what is assumed where that is unknown
    const bool was_unread = port->state == LinkState::kUnknown && counted > 0;
    if (port->state == LinkState::kActive || health.state != LinkState::kActive || was_unread) {
      port->state = health.state;
      port->rate_gbps = CountedGbps(health.state, health.state_unread, port->rate_gbps);
      counted = CountedGbps(health.state, health.state_unread, counted);
    }
    port->fault = health.fault;
    port->reason = health.evidence;
    port->usable_gbps = UsableGbps(counted, port->fault);
    if (health.verdict == Verdict::kUnknown)
      seen.unread_ports[{health.port.nic, health.port.number}] = health.unread;
    if (health.leaf_unread) seen.leaf_ends[{health.port.nic, health.port.number}] = *health.leaf_unread;
    if (health.congestion) seen.congestion[{health.port.nic, health.port.number}] = *health.congestion;
  }
  seen.nvlink_faults.reset();
  if (nvlinks == nullptr || !nvlinks->Judges()) return;
  seen.nvlink_faults = nvlinks->Faults();
  // A switch that died takes one link of every GPU: then the best of them is no measure.
  topology::NvLink& nvlink = seen.node.nvlink;
  if (nvlink.links_per_gpu <= 0 || nvlinks->ExpectedLinks() <= nvlink.links_per_gpu) return;
  const int up = nvlink.links_per_gpu;
  nvlink.gbps_per_gpu = int(std::int64_t(nvlink.gbps_per_gpu) * nvlinks->ExpectedLinks() / up);
  nvlink.links_per_gpu = nvlinks->ExpectedLinks();
  std::vector<topology::NvLink::Exception> exceptions;
  for (const topology::Gpu& gpu : seen.node.gpus) {
    const auto known = std::find_if(nvlink.exceptions.begin(), nvlink.exceptions.end(),
                                    [&gpu](const auto& one) { return one.gpu == gpu.index; });
    exceptions.push_back({gpu.index, known == nvlink.exceptions.end() ? up : known->links_up});
  }
  nvlink.exceptions = std::move(exceptions);
}

void RestoreHealth(const crds::NodeTopologyStatus& published, LinkHealth& links, NvlinkHealth& nvlinks) {
  links.Restore(published.node, published.congestion);
  std::vector<std::string> faults;
  const auto* condition = crds::FindCondition(published.conditions, kNvlinkHealthy);
  if (condition != nullptr && condition->status == crds::ConditionStatus::kFalse)
    faults = Sentences(condition->message);
  nvlinks.Restore(published.node, std::move(faults));
}

}  // namespace heddle::nodeagent
