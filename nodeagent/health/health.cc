#include "nodeagent/health/health.h"

#include <algorithm>
#include <map>

#include "nodeagent/health/conditions.h"
#include "nodeagent/health/link_rules.h"
#include "nodeagent/nic/heard.h"

namespace heddle::nodeagent {
namespace {

using topology::LinkState;
using topology::NicPort;
using Exception = topology::NvLink::Exception;

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

// "and 5 more", as which ConditionsOf ends a list that is too long.
bool CountsTheRest(std::string_view sentence) {
  constexpr std::string_view kStart = "and ", kEnd = " more";
  if (!sentence.starts_with(kStart) || !sentence.ends_with(kEnd)) return false;
  if (sentence.size() <= kStart.size() + kEnd.size()) return false;
  sentence.remove_prefix(kStart.size());
  sentence.remove_suffix(kEnd.size());
  return sentence.find_first_not_of("0123456789") == std::string_view::npos;
}

// The sentences of a condition's message, as ConditionsOf joined them.
std::vector<std::string> Sentences(std::string_view message) {
  std::vector<std::string> sentences;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find("; "), message.size());
    sentences.emplace_back(message.substr(0, end));
    message.remove_prefix(std::min(message.size(), end + 2));
  }
  // Nobody knows any more which these were, and their number is no fault of its own.
  if (!sentences.empty() && CountsTheRest(sentences.back())) sentences.pop_back();
  return sentences;
}

// A switch that died takes one link of every GPU: then the best of them is no measure. A link of which nobody knows
// whether it is up is no evidence for that.
void ExpectLinks(int expected, const std::map<int, int>& untold, topology::Node& node) {
  topology::NvLink& nvlink = node.nvlink;
  if (nvlink.links_per_gpu <= 0 || expected <= nvlink.links_per_gpu) return;
  const int up = nvlink.links_per_gpu, gbps = nvlink.gbps_per_gpu;
  nvlink.gbps_per_gpu = int(std::int64_t(gbps) * expected / up);
  nvlink.links_per_gpu = expected;
  std::vector<Exception> exceptions;
  for (const topology::Gpu& gpu : node.gpus) {
    const auto known = std::find_if(nvlink.exceptions.begin(), nvlink.exceptions.end(),
                                    [&gpu](const Exception& one) { return one.gpu == gpu.index; });
    Exception odd = known == nvlink.exceptions.end() ? Exception{gpu.index, up} : *known;
    if (const auto more = untold.find(gpu.index); more != untold.end()) {
      const int maybe = std::min(more->second, expected - up);
      odd.links_up += maybe;
      if (odd.usable_gbps) *odd.usable_gbps += int(std::int64_t(gbps) * maybe / up);
    }
    if (odd.links_up < expected || odd.usable_gbps) exceptions.push_back(odd);
  }
  nvlink.exceptions = std::move(exceptions);
}

// A link that counted errors counts as much of its rate as a port with errors, one that was down a short while ago
// as if it still were: a ring runs at the pace of its slowest GPU, and a node with all of its links sound must win.
void LowerNvlinks(const std::vector<NvlinkDoubt>& doubts, topology::Node& node) {
  topology::NvLink& nvlink = node.nvlink;
  const std::int64_t all = nvlink.gbps_per_gpu, links = nvlink.links_per_gpu;
  if (all <= 0 || links <= 0) return;  // nobody knows a speed that could be lowered
  const int lost_percent = 100 - UsablePercent(topology::LinkFault::kErrors);
  for (const NvlinkDoubt& doubt : doubts) {
    const bool here = std::any_of(node.gpus.begin(), node.gpus.end(),
                                  [&doubt](const topology::Gpu& gpu) { return gpu.index == doubt.gpu; });
    if (!here) continue;
    const std::int64_t before = nvlink.usable_gbps(doubt.gpu);
    const std::int64_t up = std::max<std::int64_t>(0, links - doubt.gone);
    std::int64_t usable = std::min(before, all * up / links);
    usable -= all * doubt.broken * lost_percent / (100 * links);
    if (doubt.published_gbps) usable = std::min<std::int64_t>(usable, *doubt.published_gbps);
    usable = std::max<std::int64_t>(0, usable);
    if (usable >= before) continue;
    auto odd = std::lower_bound(nvlink.exceptions.begin(), nvlink.exceptions.end(), doubt.gpu,
                                [](const Exception& one, int gpu) { return one.gpu < gpu; });
    if (odd == nvlink.exceptions.end() || odd->gpu != doubt.gpu)
      odd = nvlink.exceptions.insert(odd, Exception{doubt.gpu, nvlink.links_per_gpu});
    odd->usable_gbps = int(usable);
  }
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
  ExpectLinks(nvlinks->ExpectedLinks(), seen.untold_nvlinks, seen.node);
  LowerNvlinks(nvlinks->Doubts(), seen.node);
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
