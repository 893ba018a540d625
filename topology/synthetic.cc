#include "topology/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "topology/synthetic_line.h"
#include "topology/synthetic_names.h"
#include "topology/synthetic_switches.h"

namespace heddle::topology {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

// Makes the names in a line's faults whole, so that "node-3" and "node-03" are one.
class Resolver {
 public:
  Resolver(SyntheticLine& line, const SyntheticTree& tree)
      : line_(line), names_(line, tree), last_(tree.nodes - 1) {}

  Status Resolve() {
    for (SyntheticFault& fault : line_.faults) {
      ASSIGN_OR_RETURN(const int node, Find(fault, fault.node));
      fault.node = names_.Of(node);
      int other = node;
      if (!fault.other_node.empty()) {
        ASSIGN_OR_RETURN(other, Find(fault, fault.other_node));
        fault.other_node = names_.Of(other);
      }
      TRY(CheckNumber(fault, node, fault.number));
      if (fault.word == "swap") TRY(CheckNumber(fault, other, fault.other));
      // A swap has no direction.
      if (fault.word == "swap" &&
          std::tie(fault.other_node, fault.other) < std::tie(fault.node, fault.number)) {
        std::swap(fault.node, fault.other_node);
        std::swap(fault.number, fault.other);
      }
    }
    std::sort(line_.faults.begin(), line_.faults.end());
    const auto twice = std::adjacent_find(line_.faults.begin(), line_.faults.end());
    if (twice != line_.faults.end()) {
      return Fail(Code::kInvalid, fmt::format("synthetic cluster: {}:{}/{}: said twice", twice->word,
                                              twice->node, twice->number));
    }
    return {};
  }

 private:
  Result<int> Find(const SyntheticFault& fault, const std::string& said) const {
    if (const std::optional<int> node = names_.Find(said)) return *node;
    return Fail(Code::kInvalid,
                fmt::format("synthetic cluster: {}:{}: there is no such node; they are {} to {}", fault.word,
                            said.substr(0, 60), names_.Of(0), names_.Of(last_)));
  }

  Status CheckNumber(const SyntheticFault& fault, int node, int number) const {
    const HostKind kind = line_.KindOf(names_.GroupOf(node)[LevelKind::kUnit]);
    const bool gpu = fault.word == "badgpu";
    const int count = gpu ? kind.gpus : kind.rails;
    if (fault.word == "swap" && fault.node == fault.other_node && fault.number == fault.other) {
      return Fail(Code::kInvalid,
                  fmt::format("synthetic cluster: swap:{}: rail {} with itself", fault.node, fault.number));
    }
    if (number < count) return {};
    return Fail(Code::kInvalid,
                fmt::format("synthetic cluster: {}:{}: {}", fault.word, names_.Of(node),
                            count == 0 ? fmt::format("there are no {}s", gpu ? "GPU" : "rail")
                                       : fmt::format("{}s are 0 to {}", gpu ? "GPU" : "rail", count - 1)));
  }

  SyntheticLine& line_;
  SyntheticNames names_;
  int last_;
};

class Builder {
 public:
  // Requires: a line whose faults are resolved.
  Builder(const SyntheticLine& line, const SyntheticTree& tree)
      : line_(line), tree_(tree), names_(line, tree) {}

  std::vector<Node> Nodes() && {
    if (line_.nvlink_nodes != 0) domains_ = NvlinkDomainsOf(line_, tree_);
    nodes_.reserve(std::size_t(tree_.nodes));
    for (const HostGroup& group : tree_.groups) {
      if (group[LevelKind::kUnit] != unit_) EnterUnit(group);
      for (int host = 0; host < group.hosts; ++host) AddNode(group, host);
    }
    for (const SyntheticFault& fault : line_.faults) Apply(fault);
    return std::move(nodes_);
  }

 private:
  // Ports of a leaf are numbered from 1 in node order.
  struct LeafUse {
    std::string name;
    int ports = 0;  // given out
  };

  void EnterUnit(const HostGroup& group) {
    unit_ = group[LevelKind::kUnit];
    kind_ = line_.KindOf(unit_);
    leaves_.clear();
    for (SyntheticLeaf& leaf : LeavesOfUnit(line_, group)) leaves_.push_back({std::move(leaf.name), 0});
    order_.resize(std::size_t(kind_.nics));
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = int(i);
    // A node has its NICs by name: mlx5_10 stands before mlx5_2.
    std::sort(order_.begin(), order_.end(), [this](int a, int b) { return NicName(a) < NicName(b); });
    position_.resize(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) position_[std::size_t(order_[i])] = i;
  }

  void AddNode(const HostGroup& group, int host) {
    const SyntheticMachine* const machine = FindMachine(kind_.machine);
    CHECK(machine != nullptr);
    const int number = group.first + host;
    Node& node = nodes_.emplace_back();
    node.name = names_.Of(group, host);
    node.machine = machine->product;
    node.numa_nodes = 2;
    if (line_.levels.front().counts.front() > 1) node.site = fmt::format("site-{}", group[LevelKind::kSite]);
    const bool nvlink = kind_.gpus > 0 && machine->nvlink.links_per_gpu > 0 && line_.nvlink_nodes != 0;
    if (nvlink) node.nvlink = machine->nvlink;
    if (!nvlink) {
      node.nvlink_domain = Missing::kNotApplicable;
    } else if (line_.nvlink_nodes == 1) {
      node.nvlink_domain = NvlinkMembership{node.name, false};
    } else {
      node.nvlink_domain = NvlinkMembership{
          fmt::format("5eed5eed-0000-4000-8000-{:012}.1", domains_[std::size_t(number)]), true};
    }
    node.gpus.reserve(std::size_t(kind_.gpus));
    for (int g = 0; g < kind_.gpus; ++g) {
      node.gpus.push_back(Gpu{g, fmt::format("GPU-{}-{}", node.name, g), std::string(machine->gpu),
                              fmt::format("{:04x}:1b:00.0", g), NumaOf(g, kind_.gpus), true, "",
                              machine->memory_gib});
    }
    node.nics.resize(position_.size());
    for (int nic = 0; nic < kind_.nics; ++nic) {
      node.nics[position_[std::size_t(nic)]] = MakeNic(number, nic);
    }
    AddPaths(node);
  }

  static int NumaOf(int index, int count) { return index * 2 / count; }

  std::string NicName(int index) const {
    if (line_.transport == Transport::kEthernet)
      return fmt::format("eth{}", SyntheticNames::Padded(index, kind_.nics));
    return line_.transport == Transport::kEfa
               ? fmt::format("rdmap{}s0", SyntheticNames::Padded(index, kind_.nics))
               : fmt::format("mlx5_{}", index);
  }

  Nic MakeNic(int node, int index) {
    Nic nic;
    nic.name = NicName(index);
    nic.netdev = fmt::format("eth{}", index);
    nic.pci = fmt::format("{:04x}:18:00.0", index);
    nic.guid =
        line_.transport == Transport::kInfiniBand ? fmt::format("0x506b4b03{:06x}{:02x}", node, index) : "";
    nic.transport = line_.transport;
    nic.role = NicRole::kCompute;
    nic.rail = index * kind_.rails / kind_.nics;
    nic.numa = NumaOf(index, kind_.nics);
    nic.mtu = line_.transport == Transport::kInfiniBand ? 4092 : 9000;
    const int ports = line_.ports_per_nic();
    for (int p = 0; p < ports; ++p) {
      const int rate = kind_.rate_gbps / ports;
      nic.ports.push_back(
          NicPort{p + 1, line_.dual_tor ? 0 : p, LinkState::kActive, rate, rate, LeafPortOf(*nic.rail, p)});
    }
    return nic;
  }

  Fact<LeafPort> LeafPortOf(int rail, int port) {
    if (leaves_.empty()) return Missing::kNotApplicable;
    const bool tor = line_.layout == Layout::kTor || line_.layout == Layout::kDragonfly;
    LeafUse& leaf = leaves_[std::size_t(tor ? port : rail * line_.planes + port)];
    return LeafPort{leaf.name, fmt::format_int(++leaf.ports).str()};
  }

  // NIC i belongs to GPU i where there is one each; neighbours share, or have several, otherwise.
  void AddPaths(Node& node) const {
    if (kind_.nics == 0) return;
    for (int g = 0; g < kind_.gpus; ++g) {
      const int each = std::max(1, kind_.nics / kind_.gpus);
      const int first = kind_.nics >= kind_.gpus ? g * each : g * kind_.nics / kind_.gpus;
      for (int i = first; i < first + each; ++i) {
        node.paths.push_back(GpuNicPath{g, NicName(i), PciDistance::kPix});
      }
    }
    std::sort(node.paths.begin(), node.paths.end(), [](const GpuNicPath& a, const GpuNicPath& b) {
      return std::tie(a.gpu, a.distance, a.nic) < std::tie(b.gpu, b.distance, b.nic);
    });
  }

  Node& NodeNamed(const std::string& name) {
    const std::optional<int> number = names_.Find(name);
    CHECK(number.has_value());
    return nodes_[std::size_t(*number)];
  }

  static std::vector<Nic*> OnRail(Node& node, int rail) {
    std::vector<Nic*> found;
    for (Nic& nic : node.nics) {
      if (nic.rail && *nic.rail == rail) found.push_back(&nic);
    }
    return found;
  }

  void Apply(const SyntheticFault& fault) {
    Node& node = NodeNamed(fault.node);
    if (fault.word == "badgpu") {
      node.gpus[std::size_t(fault.number)].healthy = false;
      node.gpus[std::size_t(fault.number)].unhealthy_reason = "the synthetic line says that it is bad";
      return;
    }
    const std::vector<Nic*> nics = OnRail(node, fault.number);
    if (fault.word == "swap") {
      const std::vector<Nic*> others = OnRail(NodeNamed(fault.other_node), fault.other);
      for (std::size_t i = 0; i < std::min(nics.size(), others.size()); ++i) {
        auto &a = nics[i]->ports, &b = others[i]->ports;
        for (std::size_t p = 0; p < std::min(a.size(), b.size()); ++p) {
          std::swap(a[p].leaf_port, b[p].leaf_port);
        }
      }
      return;
    }
    for (Nic* const nic : nics) {
      for (NicPort& port : nic->ports) {
        const bool down = fault.word == "down";
        port.rate_gbps = down ? 0 : port.rate_gbps / 2;
        port.usable_gbps = port.rate_gbps;
        if (!down) continue;
        port.state = LinkState::kDown;
        if (port.leaf_port) port.leaf_port = Missing::kUnknown;
      }
    }
  }

  const SyntheticLine& line_;
  const SyntheticTree& tree_;
  SyntheticNames names_;
  std::vector<int> domains_;  // by node
  std::vector<Node> nodes_;
  // Of the unit whose nodes are being made.
  int unit_ = kNone;
  HostKind kind_;
  std::vector<LeafUse> leaves_;
  std::vector<int> order_;             // NICs by name
  std::vector<std::size_t> position_;  // of a NIC among a node's NICs
};

struct ResolvedLine {
  SyntheticLine line;
  SyntheticTree tree;
};

Result<ResolvedLine> Resolve(std::string_view text) {
  ResolvedLine resolved;
  ASSIGN_OR_RETURN(resolved.line, ReadSyntheticLine(text));
  ASSIGN_OR_RETURN(resolved.tree, GrowSyntheticTree(resolved.line));
  TRY(Resolver(resolved.line, resolved.tree).Resolve());
  return resolved;
}

}  // namespace

Result<Synthetic> ParseSynthetic(std::string_view line) {
  ASSIGN_OR_RETURN(const ResolvedLine resolved, Resolve(line));
  return Synthetic{Builder(resolved.line, resolved.tree).Nodes(),
                   DeclareSwitches(resolved.line, resolved.tree)};
}

Result<std::string> CanonicalSynthetic(std::string_view line) {
  ASSIGN_OR_RETURN(const ResolvedLine resolved, Resolve(line));
  return WriteSyntheticLine(resolved.line);
}

}  // namespace heddle::topology
