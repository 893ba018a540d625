#include "topology/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topology/synthetic_line.h"

namespace heddle::topology {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

// Where a node stands; numbers go on over sites.
struct Place {
  int number = 0;  // over all nodes
  int site = 0;
  int unit = kNone, rack = kNone, tor = kNone;
  int tray = 0;  // in its rack
};

class Builder {
 public:
  explicit Builder(SyntheticLine line) : line_(std::move(line)), machine_(MachineNamed(line_.machine)) {}

  // Names in faults become whole names, so that "node-3" and "node-03" are one.
  Result<SyntheticLine> Resolved() {
    Build();
    for (SyntheticFault& fault : line_.faults) {
      ASSIGN_OR_RETURN(fault.node, FullName(fault, fault.node));
      if (!fault.other_node.empty()) {
        ASSIGN_OR_RETURN(fault.other_node, FullName(fault, fault.other_node));
      }
      TRY(CheckNumbers(fault));
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
    return line_;
  }

  // Requires: Resolved() succeeded.
  Synthetic Make() && {
    for (const SyntheticFault& fault : line_.faults) Apply(fault);
    MakeDeclaration();
    return std::move(made_);
  }

 private:
  int node_count() const { return line_.sites * line_.nodes_per_site(); }

  Place PlaceOf(int number) const {
    Place place;
    place.number = number;
    place.site = number / line_.nodes_per_site();
    const int group_of_hosts = number / line_.hosts;  // racks, ToRs or units so far
    switch (line_.layout) {
      case Layout::kUnits:
        place.unit = group_of_hosts;
        break;
      case Layout::kRacks:
        place.rack = group_of_hosts;
        place.tray = number % line_.hosts;
        place.unit = line_.units_given ? place.rack / line_.racks : place.rack;
        break;
      case Layout::kTor:
      case Layout::kDragonfly:
        place.tor = group_of_hosts;
        break;
      case Layout::kTorus:
        break;
    }
    return place;
  }

  // At least two digits, and as many as the last number has, so that names sort as numbers do.
  static std::string Padded(int number, int count) {
    return fmt::format("{:0{}}", number, std::max<int>(2, int(fmt::format_int(count - 1).size())));
  }

  std::string NameOf(const Place& place) const {
    if (line_.layout != Layout::kRacks) return "node-" + Padded(place.number, node_count());
    return fmt::format("rack-{}-tray-{}", place.rack, Padded(place.tray, line_.hosts));
  }

  void Build() {
    made_.nodes.reserve(std::size_t(node_count()));
    for (int number = 0; number < node_count(); ++number) {
      const Place place = PlaceOf(number);
      position_.emplace(NameOf(place), made_.nodes.size());
      made_.nodes.push_back(MakeNode(place));
    }
  }

  Node MakeNode(const Place& place) {
    Node node;
    node.name = NameOf(place);
    node.machine = machine_.product;
    node.numa_nodes = 2;
    node.nvlink = line_.gpus > 0 ? machine_.nvlink : NvLink{};
    if (line_.sites > 1) node.site = fmt::format("site-{}", place.site);
    for (int g = 0; g < line_.gpus; ++g) {
      node.gpus.push_back(Gpu{g, fmt::format("GPU-{}-{}", node.name, g), std::string(machine_.gpu),
                              fmt::format("{:04x}:1b:00.0", g), NumaOf(g, line_.gpus), true, "",
                              machine_.memory_gib});
    }
    if (line_.gpus == 0 || machine_.nvlink.generation == 0) {
      node.nvlink_domain = Missing::kNotApplicable;
    } else if (line_.nvlink_over_nodes) {
      const int domain = place.rack == kNone ? place.unit : place.rack;
      node.nvlink_domain = NvlinkMembership{fmt::format("5eed5eed-0000-4000-8000-{:012}.1", domain), true};
    } else {
      node.nvlink_domain = NvlinkMembership{node.name, false};
    }
    for (int i = 0; i < line_.nics; ++i) node.nics.push_back(MakeNic(place, i));
    std::sort(node.nics.begin(), node.nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
    AddPaths(node);
    return node;
  }

  static int NumaOf(int index, int count) { return index * 2 / count; }

  std::string NicName(int index) const {
    if (line_.transport == Transport::kEthernet) return fmt::format("eth{}", Padded(index, line_.nics));
    return line_.transport == Transport::kEfa ? fmt::format("rdmap{}s0", Padded(index, line_.nics))
                                              : fmt::format("mlx5_{}", index);
  }

  Nic MakeNic(const Place& place, int index) {
    Nic nic;
    nic.name = NicName(index);
    nic.netdev = fmt::format("eth{}", index);
    nic.pci = fmt::format("{:04x}:18:00.0", index);
    nic.guid = line_.transport == Transport::kInfiniBand
                   ? fmt::format("0x506b4b03{:06x}{:02x}", place.number, index)
                   : "";
    nic.transport = line_.transport;
    nic.role = NicRole::kCompute;
    nic.rail = index * line_.rails / line_.nics;
    nic.numa = NumaOf(index, line_.nics);
    nic.mtu = line_.transport == Transport::kInfiniBand ? 4092 : 9000;
    const int ports = line_.dual_tor ? 2 : line_.planes;
    for (int p = 0; p < ports; ++p) {
      const int rate = line_.rate_gbps / ports;
      nic.ports.push_back(NicPort{p + 1, line_.dual_tor ? 0 : p, LinkState::kActive, rate, rate,
                                  LeafPortOf(place, *nic.rail, p)});
    }
    return nic;
  }

  // Ports of a leaf are numbered from 1 in node order.
  Fact<LeafPort> LeafPortOf(const Place& place, int rail, int port) {
    if (line_.layout == Layout::kTorus || line_.transport == Transport::kEfa) return Missing::kNotApplicable;
    std::string leaf;
    if (place.tor != kNone) {
      leaf = fmt::format("tor-{}{}", place.tor, !line_.dual_tor ? "" : port == 0 ? "a" : "b");
    } else {
      leaf = fmt::format("su{}-r{}{}", place.unit, rail, line_.planes > 1 ? fmt::format("-p{}", port) : "");
    }
    LeafUse& use = leaves_[leaf];
    use.plane = line_.dual_tor ? 0 : port;
    use.tor = place.tor;
    use.rail = rail;
    return LeafPort{leaf, fmt::format("{}", ++use.ports)};
  }

  // NIC i belongs to GPU i where there is one each; neighbours share, or have several, otherwise.
  void AddPaths(Node& node) const {
    if (line_.nics == 0) return;
    for (int g = 0; g < line_.gpus; ++g) {
      const int each = std::max(1, line_.nics / line_.gpus);
      const int first = line_.nics >= line_.gpus ? g * each : g * line_.nics / line_.gpus;
      for (int i = first; i < first + each; ++i) {
        node.paths.push_back(GpuNicPath{g, NicName(i), PciDistance::kPix});
      }
    }
    std::sort(node.paths.begin(), node.paths.end(), [](const GpuNicPath& a, const GpuNicPath& b) {
      return std::tie(a.gpu, a.distance, a.nic) < std::tie(b.gpu, b.distance, b.nic);
    });
  }

  // The node that a fault means; leading zeros of its numbers may be left out.
  Result<std::string> FullName(const SyntheticFault& fault, const std::string& said) const {
    if (position_.contains(said)) return said;
    const std::size_t dash = said.rfind('-');
    const std::string head = dash == std::string::npos ? "" : said.substr(0, dash + 1);
    const std::string tail = dash == std::string::npos ? "" : said.substr(dash + 1);
    const std::size_t width =
        made_.nodes.empty() ? 0 : made_.nodes.front().name.size() - made_.nodes.front().name.rfind('-') - 1;
    if (!tail.empty() && tail.size() < width) {
      std::string full = head + std::string(width - tail.size(), '0') + tail;
      if (position_.contains(full)) return full;
    }
    return Fail(Code::kInvalid,
                fmt::format("synthetic cluster: {}:{}: there is no such node; they are {} to {}", fault.word,
                            said, made_.nodes.front().name, made_.nodes.back().name));
  }

  Status CheckNumbers(const SyntheticFault& fault) const {
    const bool gpu = fault.word == "badgpu";
    const int count = gpu ? line_.gpus : line_.rails;
    if (fault.word == "swap" && fault.node == fault.other_node && fault.number == fault.other) {
      return Fail(Code::kInvalid,
                  fmt::format("synthetic cluster: swap:{}: rail {} with itself", fault.node, fault.number));
    }
    if (fault.number < count && (fault.word != "swap" || fault.other < count)) return {};
    return Fail(Code::kInvalid,
                fmt::format("synthetic cluster: {}:{}: {}", fault.word, fault.node,
                            count == 0 ? fmt::format("there are no {}s", gpu ? "GPU" : "rail")
                                       : fmt::format("{}s are 0 to {}", gpu ? "GPU" : "rail", count - 1)));
  }

  Node& NodeNamed(const std::string& name) { return made_.nodes[position_.at(name)]; }

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

  void MakeDeclaration() {
    Declaration& declaration = made_.declaration;
    declaration.oversubscription_percent = line_.oversubscription_percent;
    if (line_.rail_only) declaration.shape = Shape::kRailOnly;
    if (line_.layout == Layout::kTor) declaration.shape = Shape::kToR;
    for (const auto& [name, use] : leaves_) {
      if (line_.spines == 0) break;
      SwitchDeclaration leaf{name, {}, 0};
      for (int s = 0; s < line_.spines; ++s) {
        leaf.uplinks.push_back(
            fmt::format("spine-{}{}", s, line_.planes > 1 ? fmt::format("-p{}", use.plane) : ""));
      }
      declaration.switches.push_back(std::move(leaf));
    }
    if (line_.layout == Layout::kDragonfly) {
      declaration.shape = Shape::kDragonfly;
      const int groups = line_.sites * line_.groups;
      declaration.groups.resize(std::size_t(groups));
      for (std::size_t g = 0; g < declaration.groups.size(); ++g) {
        declaration.groups[g].name = fmt::format("group-{}", g);
      }
      for (const auto& [name, use] : leaves_) {
        declaration.groups[std::size_t(use.tor / line_.tors)].leaves.push_back(name);
      }
    }
    if (line_.layout != Layout::kTorus) return;
    declaration.shape = Shape::kTorus3d;
    declaration.torus_size = line_.torus;
    for (std::size_t n = 0; n < made_.nodes.size(); ++n) {
      const int at = int(n) % line_.nodes_per_site();
      const auto [x, y, z] = line_.torus;
      declaration.torus.push_back({made_.nodes[n].name, at / (y * z) % x, at / z % y, at % z});
    }
  }

  struct LeafUse {
    int plane = 0, tor = kNone, rail = 0;
    int ports = 0;  // given out
  };

  SyntheticLine line_;
  const SyntheticMachine& machine_;
  Synthetic made_;
  std::map<std::string, std::size_t> position_;  // of a node by name
  std::map<std::string, LeafUse> leaves_;
};

}  // namespace

Result<Synthetic> ParseSynthetic(std::string_view line) {
  ASSIGN_OR_RETURN(SyntheticLine read, ReadSyntheticLine(line));
  Builder builder(std::move(read));
  TRY(builder.Resolved());
  return std::move(builder).Make();
}

Result<std::string> CanonicalSynthetic(std::string_view line) {
  ASSIGN_OR_RETURN(SyntheticLine read, ReadSyntheticLine(line));
  Builder builder(std::move(read));
  ASSIGN_OR_RETURN(const SyntheticLine resolved, builder.Resolved());
  return WriteSyntheticLine(resolved);
}

}  // namespace heddle::topology
