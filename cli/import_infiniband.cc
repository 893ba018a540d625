#include "cli/import_infiniband.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/import_hosts.h"

namespace heddle::cli {
namespace {

using formats::IbAdapterKind;
using formats::IbLink;
using formats::IbNode;
using formats::IbNodeKind;
using topology::LinkState;

constexpr std::size_t kMaxPorts = 8;   // of one NIC, as the schema of NodeTopology has it
constexpr std::size_t kMaxNics = 128;  // of one node
// Descriptions have 64 bytes; with a GUID behind it the name still fits the 128 of the schema.
constexpr std::size_t kMaxSwitchName = 64;

class Hosts {
 public:
  Hosts(const IbGraph& graph, ImportFindings& findings) : graph_(graph), findings_(findings) {}

  std::vector<topology::Node> Run() {
    for (const IbNode& node : graph_.nodes()) {
      if (node.kind == IbNodeKind::kRouter) ++routers_;
      if (node.kind == IbNodeKind::kChannelAdapter) Adapter(node);
    }
    Report();
    std::vector<topology::Node> nodes;
    for (auto& [name, node] : hosts_) nodes.push_back(std::move(node));
    return nodes;
  }

 private:
  void Adapter(const IbNode& node) {
    const formats::IbAdapterName name = formats::ParseIbAdapterName(node.description);
    if (name.kind == IbAdapterKind::kAggregation) {
      for (const IbLink& link : node.links) sharp_.insert(link.remote_id);
      ++aggregation_;
      return;
    }
    if (name.kind == IbAdapterKind::kNameless) nameless_.push_back("ib-" + node.guid.substr(2));
    const std::string host = name.kind == IbAdapterKind::kNameless ? nameless_.back() : name.host;
    topology::Node& to = hosts_[host];
    to.name = host;
    topology::Nic nic = NicOf(node, name.device.empty() ? "HCA-1" : name.device);
    if (const topology::Nic* other = to.FindNic(nic.name)) {
      findings_.warnings.push_back(
          fmt::format("{} and {} both call themselves `{} {}`: two hosts of one name, or one with a wrong "
                      "description; the first counts",
                      other->guid, nic.guid, host, nic.name));
      return;
    }
    if (to.nics.size() == kMaxNics) {
      findings_.warnings.push_back(
          fmt::format("{} has more than {} HCAs: {} is left out", host, kMaxNics, nic.guid));
      return;
    }
    to.nics.push_back(std::move(nic));
  }

  topology::Nic NicOf(const IbNode& node, const std::string& device) {
    topology::Nic nic;
    nic.name = device;
    nic.guid = node.guid;
    nic.transport = topology::Transport::kInfiniBand;
    nic.role = topology::NicRole::kCompute;
    std::set<int> seen;
    for (const IbLink& link : node.links) {
      if (!seen.insert(link.port).second) continue;  // the dump's own warning names it
      if (nic.ports.size() == kMaxPorts) {
        findings_.warnings.push_back(
            fmt::format("{} has more than {} ports in use: the first count", node.id, kMaxPorts));
        break;
      }
      nic.ports.push_back(PortOf(node, link));
    }
    std::sort(nic.ports.begin(), nic.ports.end(),
              [](const auto& a, const auto& b) { return a.number < b.number; });
    if (nic.ports.empty()) {
      nic.ports.push_back({});
      nic.ports.front().state = LinkState::kDown;
      findings_.warnings.push_back(fmt::format("{} \"{}\" is cabled to nothing", node.id, node.description));
    }
    return nic;
  }

  topology::NicPort PortOf(const IbNode& node, const IbLink& link) {
    topology::NicPort port;
    port.number = link.port;
    port.state = LinkState::kActive;
    port.rate_gbps = port.usable_gbps = formats::IbLinkGbps(link);
    const int other = graph_.Find(link.remote_id);
    if (other < 0) return port;
    if (graph_.nodes()[std::size_t(other)].kind != IbNodeKind::kSwitch) {
      findings_.warnings.push_back(
          fmt::format("{} \"{}\" port {} is cabled to {} port {}, which is no switch", node.id,
                      node.description, link.port, link.remote_id, link.remote_port));
    } else if (!graph_.Answered(node, link)) {
      port.leaf_port = topology::Missing::kAmbiguous;
    } else {
      port.leaf_port = topology::LeafPort{graph_.Name(std::size_t(other)), std::to_string(link.remote_port)};
    }
    return port;
  }

  void Report() {
    if (aggregation_ > 0) {
      findings_.notes.push_back(
          fmt::format("{} SHARP aggregation nodes, in {} switches: no hosts", aggregation_, sharp_.size()));
    }
    if (routers_ > 0) findings_.notes.push_back(fmt::format("{} InfiniBand routers: left out", routers_));
    if (!nameless_.empty()) {
      findings_.warnings.push_back(
          fmt::format("{} adapters carry their maker's name instead of a host's (is rdma-ndd running "
                      "there?): each is taken for a "
                      "host of its own: {}",
                      nameless_.size(), SomeOf(nameless_)));
    }
  }

  const IbGraph& graph_;
  ImportFindings& findings_;
  std::map<std::string, topology::Node> hosts_;
  std::vector<std::string> nameless_;
  std::set<std::string> sharp_;
  std::size_t aggregation_ = 0, routers_ = 0;
};

}  // namespace

void IbGraph::Add(const std::string& path, formats::IbNetwork network, ImportFindings& findings) {
  constexpr std::size_t kShown = 20;  // they must not bury what is said of the fabric
  for (std::size_t i = 0; i < std::min(network.problems.size(), kShown); ++i) {
    findings.warnings.push_back(path + ": " + network.problems[i]);
  }
  if (network.problems.size() > kShown) {
    findings.warnings.push_back(
        fmt::format("{}: and {} more of these", path, network.problems.size() - kShown));
  }
  std::set<std::string_view> own;
  for (IbNode& node : network.nodes) {
    const auto [known, fresh] = by_id_.emplace(node.id, int(nodes_.size()));
    if (fresh) {
      own.insert(known->first);
      nodes_.push_back(std::move(node));
    } else if (!own.contains(node.id)) {
      findings.warnings.push_back(fmt::format("{}: {} \"{}\" is in an earlier file too: the first counts",
                                              path, node.id, node.description));
    }
  }
}

void IbGraph::Finish(ImportFindings& findings) {
  names_.assign(nodes_.size(), {});
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind != IbNodeKind::kSwitch) continue;
    names_[i] = formats::IbSwitchName(nodes_[i].description, nodes_[i].guid).substr(0, kMaxSwitchName);
    by_name[names_[i]].push_back(i);
  }
  for (const auto& [name, nodes] : by_name) {
    if (nodes.size() == 1) continue;
    findings.warnings.push_back(
        fmt::format("{} switches are called {}: their GUIDs are added", nodes.size(), name));
    for (const std::size_t i : nodes) names_[i] += "/" + nodes_[i].guid.substr(0, 63);
  }
}

int IbGraph::Find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? -1 : found->second;
}

bool IbGraph::Answered(const IbNode& node, const IbLink& link) const {
  const int other = Find(link.remote_id);
  if (other < 0) return false;
  const auto& back = nodes_[std::size_t(other)].links;
  return std::any_of(back.begin(), back.end(), [&](const IbLink& theirs) {
    return theirs.port == link.remote_port && theirs.remote_id == node.id && theirs.remote_port == link.port;
  });
}

std::vector<topology::Node> IbHosts(const IbGraph& graph, ImportFindings& findings) {
  return Hosts(graph, findings).Run();
}

}  // namespace heddle::cli
