#include "operator/page/node_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "operator/page/text.h"

namespace heddle::operators::page {
namespace {

using topology::FabricNode;
using topology::Nic;
using topology::NicPort;

constexpr std::size_t kMaxReasons = 4;
constexpr std::size_t kMaxReason = 240;
constexpr std::size_t kMaxLinks = 64;

// False here is work for a person or less for a gang. Of the others (a leaf nobody knows, files that were not written)
// a node is as fast as ever, and they are said without a verdict.
constexpr std::array<std::string_view, 10> kGraveConditions = {
    "Ready",         "GpusHealthy",  "NvlinksUp", "NvlinkHealthy", "NvlinkFabricHealthy",
    "PcieLinksFull", "RdmaMtuEqual", "LinksUp",   "Lossless",      "CablesLossless"};

bool IsGrave(std::string_view type) {
  const bool rail = type.starts_with("Rail") && type.ends_with("Healthy");
  return rail || std::find(kGraveConditions.begin(), kGraveConditions.end(), type) != kGraveConditions.end();
}

struct Verdict {
  NodeState state = NodeState::kOk;
  std::vector<std::string> reasons;

  void Say(std::string_view sentence) {
    if (reasons.size() < kMaxReasons) reasons.push_back(Cut(sentence, kMaxReason));
  }
  void Degrade(std::string_view sentence) {
    if (state == NodeState::kOk) state = NodeState::kDegraded;
    Say(sentence);
  }
};

struct Health {
  int gpus = 0, bad_gpus = 0, links = 0, usable_links = 0;
};

Health HealthOf(const topology::Node& node) {
  Health health{.gpus = int(node.gpus.size())};
  health.bad_gpus = int(std::count_if(node.gpus.begin(), node.gpus.end(),
                                      [](const topology::Gpu& gpu) { return !gpu.healthy; }));
  for (const Nic& nic : node.nics) {
    if (nic.role != topology::NicRole::kCompute) continue;
    for (const NicPort& port : nic.ports) {
      ++health.links;
      if (port.usable_gbps > 0) ++health.usable_links;
    }
  }
  return health;
}

std::string SentenceOf(const Nic& nic, const NicPort& port) {
  std::string where = nic.rail ? fmt::format("rail {}: {}", *nic.rail, nic.name) : nic.name;
  if (nic.ports.size() > 1) where += fmt::format(" port {}", port.number);
  if (!port.reason.empty()) return where + ": " + port.reason;
  if (port.state == topology::LinkState::kDown) return where + " is down";
  if (port.fault != topology::LinkFault::kNone)
    return fmt::format("{} has the fault {}", where, topology::LinkFaultName(port.fault));
  return fmt::format("{} counts for {} of {} Gb/s", where, port.usable_gbps, port.rate_gbps);
}

// What the agent said in conditions it said better; this is for those it has not said.
void Measured(const topology::Node& node, bool links, bool gpus, Verdict& verdict) {
  for (const topology::Gpu& gpu : node.gpus) {
    if (gpus && !gpu.healthy)
      verdict.Degrade(fmt::format("GPU {}: {}", gpu.index,
                                  gpu.unhealthy_reason.empty() ? "unhealthy" : gpu.unhealthy_reason));
  }
  for (const Nic& nic : node.nics) {
    if (!links || nic.role != topology::NicRole::kCompute) continue;
    for (const NicPort& port : nic.ports) {
      const bool bad = port.usable_gbps < port.rate_gbps || port.state == topology::LinkState::kDown ||
                       port.fault != topology::LinkFault::kNone;
      if (bad) verdict.Degrade(SentenceOf(nic, port));
    }
  }
}

void Conditions(const std::string& name, const Assembly& assembly, bool& links, bool& gpus,
                Verdict& verdict) {
  const auto found = assembly.complaints.find(name);
  if (found == assembly.complaints.end()) return;
  for (const bool grave : {true, false}) {
    for (const crds::Condition& one : found->second) {
      if (IsGrave(one.type) != grave) continue;
      const std::string sentence = one.message.empty() ? one.type + ": " + one.reason : one.message;
      grave ? verdict.Degrade(sentence) : verdict.Say(sentence);
      links = links && one.type != "LinksUp" && !one.type.starts_with("Rail");
      gpus = gpus && one.type != "GpusHealthy" && !(one.type == "Ready" && one.reason == "GpusUnreadable");
    }
  }
}

Verdict Judge(const std::string& name, const Seen& seen, const FabricIndex& at, const FabricNode* member) {
  Verdict verdict;
  if (const auto error = seen.assembly.left_out.find(name); error != seen.assembly.left_out.end()) {
    verdict.state = NodeState::kUnknown;
    verdict.Say("its NodeTopology cannot be read: " + error->second);
    return verdict;
  }
  if (member == nullptr) {
    const auto& reporting = seen.assembly.reporting;
    const bool reported = std::binary_search(reporting.begin(), reporting.end(), name);
    verdict.state = NodeState::kUnknown;
    verdict.Say(reported ? "it is in no fabric: excluded by a Fabric's spec.excludedNodes"
                         : "no agent has reported yet: look at its heddle-nodeagent pod");
    return verdict;
  }
  const Health health = HealthOf(member->node);
  if ((health.links > 0 && health.usable_links == 0) || (health.gpus > 0 && health.bad_gpus == health.gpus)) {
    verdict.state = NodeState::kDown;
    verdict.Say(health.usable_links == 0 && health.links > 0 ? "no rail can be used" : "no GPU is healthy");
  }
  if (seen.stale.contains(name)) {
    verdict.state = NodeState::kStale;
    verdict.Say("its agent does not renew its Lease; what is shown may be old");
  }
  bool links = true, gpus = true;
  Conditions(name, seen.assembly, links, gpus, verdict);
  if (const auto faults = at.faults.find(name); faults != at.faults.end()) {
    for (const topology::CablingFault* fault : faults->second)
      fault->ambiguous ? verdict.Say(fault->sentence) : verdict.Degrade(fault->sentence);
  }
  if (const auto said = seen.assembly.contradictions.find(name); said != seen.assembly.contradictions.end())
    verdict.Degrade("it contradicts itself: " + said->second.front());
  Measured(member->node, links, gpus, verdict);
  return verdict;
}

kube::Json LinksOf(const topology::Node& node, const topology::Fabric& fabric) {
  kube::Json links = kube::Json::array();
  for (const Nic& nic : node.nics) {
    if (nic.role != topology::NicRole::kCompute) continue;
    for (const NicPort& port : nic.ports) {
      if (links.size() >= 4 * kMaxLinks) return links;
      links.push_back(nic.rail.value_or(-1));
      links.push_back(port.leaf_port ? fabric.FindLeaf(port.leaf_port->leaf) : -1);
      links.push_back(port.rate_gbps);
      links.push_back(port.usable_gbps);
    }
  }
  return links;
}

}  // namespace

std::string NodePiece(const std::string& name, const Seen& seen, const FabricIndex& at) {
  const FabricNode* member = nullptr;
  if (at.fabric != nullptr) member = &at.fabric->nodes[std::size_t(at.fabric->FindNode(name))];
  const Verdict verdict = Judge(name, seen, at, member);
  kube::Json piece = {name, at.number, int(verdict.state)};
  if (member == nullptr) {
    piece.insert(piece.end(), {-1, -1, 0, 0, kube::Json::array()});
  } else {
    const Health health = HealthOf(member->node);
    const int domain = member->domain < 0 ? -1 : at.domains[std::size_t(member->domain)];
    piece.insert(piece.end(),
                 {member->unit, domain, health.gpus, health.bad_gpus, LinksOf(member->node, *at.fabric)});
  }
  piece.push_back(verdict.reasons);
  return Dump(piece);
}

}  // namespace heddle::operators::page
