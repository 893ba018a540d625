#include "nodeagent/devices/nccl_conf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "crds/port_name.h"
#include "lossless/port_settings.h"

namespace heddle::nodeagent {
namespace {

using topology::Nic;
using topology::NicPort;
using topology::Transport;

constexpr std::size_t kMaxValue = 1023;  // src/misc/param.cc
constexpr std::size_t kMaxEntries = 32;  // MAX_IB_DEVS of net_ib/common.h

struct Port {
  const Nic* nic = nullptr;
  const NicPort* port = nullptr;
  std::string Name() const { return crds::PortName(*nic, *port); }
};

std::size_t CountOf(const topology::Node& node, Transport transport) {
  return std::size_t(std::count_if(node.nics.begin(), node.nics.end(), [&](const Nic& nic) {
    return nic.role == topology::NicRole::kCompute && nic.transport == transport;
  }));
}

// Of compute NICs that NCCL drives by verbs. It refuses to mix link types, so the more frequent one is taken.
std::vector<Port> VerbsPorts(const topology::Node& node, std::vector<std::string>& notes) {
  const std::size_t infiniband = CountOf(node, Transport::kInfiniBand),
                    roce = CountOf(node, Transport::kRoce);
  const Transport transport = infiniband >= roce ? Transport::kInfiniBand : Transport::kRoce;
  if (infiniband > 0 && roce > 0) {
    notes.push_back(
        fmt::format("{} compute NICs speak InfiniBand and {} RoCE; NCCL uses one of both, here {}",
                    infiniband, roce, topology::TransportName(transport)));
  }
  std::vector<Port> ports;
  for (const Nic& nic : node.nics) {
    if (nic.role != topology::NicRole::kCompute || nic.transport != transport) continue;
    for (const NicPort& port : nic.ports) ports.push_back({&nic, &port});
  }
  const auto order = [](const Port& port) {
    return std::tuple(!port.nic->rail.known(), port.nic->rail.value_or(0), port.port->plane,
                      std::tie(port.nic->name, port.port->number));
  };
  std::sort(ports.begin(), ports.end(), [&](const Port& a, const Port& b) { return order(a) < order(b); });
  return ports;
}

// Entries of the list: each port, and after it the same port of its virtual functions.
std::vector<std::string> HcaEntries(const std::vector<Port>& ports, const NcclFacts& facts, bool rails) {
  const bool planes =
      std::any_of(ports.begin(), ports.end(), [](const Port& port) { return port.port->plane != 0; });
  std::vector<std::string> entries;
  for (const Port& port : ports) {
    std::string place;
    if (rails && port.nic->rail) {
      place = fmt::format(":{}", *port.nic->rail);
      if (planes) place += fmt::format(":{}", port.port->plane);
    }
    entries.push_back(port.Name() + place);
    const auto functions = facts.functions.find(port.nic->name);
    if (functions == facts.functions.end()) continue;
    for (const std::string& function : functions->second)
      entries.push_back(fmt::format("{}:{}{}", function, port.port->number, place));
  }
  return entries;
}

class Lines {
 public:
  void Say(std::string_view comment) { text_ += fmt::format("# {}\n", comment); }
  void Set(std::string_view name, std::string_view value) { text_ += fmt::format("{}={}\n", name, value); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// Why there can be no list of virtual functions too; empty = there can.
std::string WhyHidden(const std::vector<Port>& ports, const NcclFacts& facts) {
  std::set<std::string> nics;
  for (const Port& port : ports) {
    if (facts.hidden_functions.contains(port.nic->name)) nics.insert(port.nic->name);
  }
  if (nics.empty()) return {};
  const std::string others = nics.size() == 1 ? "" : fmt::format(", as has {} more", nics.size() - 1);
  return fmt::format(
      "{} has virtual functions whose RDMA devices are not seen on the host{}, and a list "
      "without them would keep pods that hold them from RDMA",
      *nics.begin(), others);
}

void SetHcas(const std::vector<Port>& ports, const NcclFacts& facts, Lines& lines,
             std::vector<std::string>& notes) {
  const std::vector<std::string> entries = HcaEntries(ports, facts, true);
  std::string list = fmt::format("={}", fmt::join(entries, ","));
  if (list.size() > kMaxValue) list = fmt::format("={}", fmt::join(HcaEntries(ports, facts, false), ","));
  std::string why = WhyHidden(ports, facts);
  if (why.empty() && (entries.size() > kMaxEntries || list.size() > kMaxValue)) {
    why = fmt::format("NCCL takes {} ports and {} bytes, and there are {} and {}", kMaxEntries, kMaxValue,
                      entries.size(), list.size());
    if (entries.size() > ports.size())
      why += fmt::format(", {} of them virtual functions'", entries.size() - ports.size());
  }
  if (!why.empty()) {
    notes.push_back("NCCL_IB_HCA is left out: " + why);
    lines.Say(notes.back() + ".");
    return;
  }
  lines.Say("The NICs of this node that serve its GPUs, each as device:port:rail[:plane].");
  if (entries.size() > ports.size())
    lines.Say("After each its virtual functions: a pod can open those only that it was given.");
  lines.Set("NCCL_IB_HCA", list);
}

// 0 where each rail has leaves of its own, 1 where all rails end on the same, nothing where nobody knows. A port that
// is down tells no leaf, and is no reason to think otherwise of the rest.
std::optional<int> CrossNic(const std::vector<Port>& ports) {
  std::map<int, std::set<std::string>> leaves;  // by rail
  for (const Port& port : ports) {
    if (!port.port->leaf_port && port.port->state == topology::LinkState::kDown) continue;
    if (!port.nic->rail || !port.port->leaf_port) return std::nullopt;
    leaves[*port.nic->rail].insert(port.port->leaf_port->leaf);
  }
  if (leaves.size() < 2) return std::nullopt;
  std::set<std::string> all;
  std::size_t sum = 0;
  for (const auto& [rail, own] : leaves) {
    all.insert(own.begin(), own.end());
    sum += own.size();
  }
  if (all.size() == sum) return 0;
  return all.size() == leaves.begin()->second.size() ? std::optional(1) : std::nullopt;
}

void SetCrossNic(const std::vector<Port>& ports, Lines& lines) {
  const std::optional<int> cross = CrossNic(ports);
  if (!cross) return;
  lines.Say(*cross == 0 ? "Each rail has leaves of its own: rings stay on theirs."
                        : "All rails end on the same leaves: nothing is gained by staying on one.");
  lines.Set("NCCL_CROSS_NIC", std::to_string(*cross));
}

void SetRoce(const std::vector<Port>& ports, const NcclFacts& facts, Lines& lines,
             std::vector<std::string>& notes) {
  std::vector<std::string> ipv4, not_ipv4, ipv6, unnumbered;
  for (const Port& port : ports) {
    if (!port.port->gid_index) continue;
    const std::pair<std::string, int> key{port.nic->name, port.port->number};
    const bool has_none = facts.unnumbered.contains(key), has_ipv6 = facts.without_ipv4.contains(key);
    (has_none || has_ipv6 ? not_ipv4 : ipv4).push_back(port.Name());
    if (has_none || has_ipv6) (has_none ? unnumbered : ipv6).push_back(port.Name());
  }
  lines.Say("The GID by what it is and not by its index, which differs between network namespaces.");
  lines.Set("NCCL_IB_ROCE_VERSION_NUM", "2");
  if (ipv4.empty() && ipv6.empty()) {
    if (!unnumbered.empty())
      lines.Say(
          "NCCL_IB_ADDR_FAMILY is left out: the ports have only link-local addresses on the host, which do "
          "not tell the family of those that pods get. NCCL looks for IPv4 by itself: pods that get IPv6 "
          "addresses set NCCL_IB_ADDR_FAMILY=AF_INET6 themselves.");
    return;
  }
  lines.Set("NCCL_IB_ADDR_FAMILY", ipv4.empty() ? "AF_INET6" : "AF_INET");
  const auto& others = ipv4.empty() ? unnumbered : not_ipv4;
  if (others.empty()) return;
  const std::string_view family = ipv4.empty() ? "IPv6" : "IPv4";
  notes.push_back(fmt::format("{} have no {}{} address and {} have one: NCCL is told to look for {}",
                              fmt::join(others, ", "), ipv4.empty() ? "global " : "", family,
                              fmt::join(ipv4.empty() ? ipv6 : ipv4, ", "), family));
}

// How a policy marks data, as two numbers of NCCL.
struct Marking {
  int traffic_class = 0;
  int service_level = lossless::kNotSaid;
  friend bool operator==(const Marking&, const Marking&) = default;
};

// What a marked packet meets at a port.
bool IsOfMarking(lossless::Setting setting) {
  using enum lossless::Setting;
  return setting == kTrust || setting == kDscpToPriority || setting == kPfc;
}

// Why a port is not known to treat marked packets as its policy says; empty = it was read back, and does.
std::string WhyUnproved(const std::string& port, const crds::LosslessWish& wish, const NcclFacts& facts) {
  if (!facts.reports) return "has not been read yet";
  const crds::PolicyEdition edition = crds::EditionOf(wish);
  for (const crds::LosslessReport& one : *facts.reports) {
    if (std::find(one.ports.begin(), one.ports.end(), port) == one.ports.end()) continue;
    if (one.edition != edition) continue;
    if (one.state == crds::LosslessState::kUnknown) return "cannot be read";
    for (const crds::PortDrift& drift : one.drift) {
      if (IsOfMarking(drift.drift.setting))
        return fmt::format("has another {} than that", lossless::SettingName(drift.drift.setting));
    }
    for (const lossless::Gap& gap : one.gaps) {
      if (IsOfMarking(gap.setting))
        return fmt::format("does not tell its {}", lossless::SettingName(gap.setting));
    }
    return {};
  }
  return "has not been read since that was told";
}

// What policies mark data with, by port, and the ports of which that is not proved.
struct Markings {
  std::map<std::string, Marking> by_port;
  std::string policy;
  std::string unproved;  // the first such port, and why
  int unproved_ports = 0;
  bool applies = false;  // a policy of such a port is to set it, and not only to look
};

Markings MarkingsOf(const std::vector<Port>& ports, const NcclFacts& facts) {
  Markings markings;
  for (const crds::LosslessWish& wish : facts.lossless) {
    if (!wish.settings || !wish.settings->traffic_class) continue;
    const std::string policy = wish.policies.empty() ? std::string() : wish.policies.front();
    markings.policy = policy;
    const int traffic_class = *wish.settings->traffic_class;
    const Marking marking{traffic_class, lossless::PriorityOf(*wish.settings, traffic_class >> 2)};
    for (const Port& port : ports) {
      const std::string name = port.Name();
      if (std::find(wish.ports.begin(), wish.ports.end(), name) == wish.ports.end()) continue;
      markings.by_port.emplace(name, marking);
      const std::string why = WhyUnproved(name, wish, facts);
      if (why.empty()) continue;
      markings.applies = markings.applies || wish.mode == crds::LosslessMode::kApply;
      if (markings.unproved_ports++ == 0)
        markings.unproved =
            fmt::format("LosslessPolicy {} marks data with {}, and {} {}", policy, traffic_class, name, why);
    }
  }
  return markings;
}

void LeaveOut(const std::string& why, bool in_doubt, Lines& lines, std::vector<std::string>& notes) {
  const std::string sentence = fmt::format("NCCL_IB_TC is left out: {}", why);
  lines.Say(sentence + ".");
  if (in_doubt) notes.push_back(sentence);
}

void SetMarking(const std::vector<Port>& ports, const NcclFacts& facts, Lines& lines,
                std::vector<std::string>& notes) {
  const Markings markings = MarkingsOf(ports, facts);
  if (markings.unproved_ports > 0) {
    const int others = markings.unproved_ports - 1;
    // Of hosts that nobody set yet this is what an observing policy is there to say, and its report says it.
    return LeaveOut(markings.unproved + (others == 0 ? "" : fmt::format(", as {} more", others)),
                    markings.applies, lines, notes);
  }
  std::optional<Marking> common;
  std::string first;
  std::vector<std::string> unmarked;
  for (const Port& port : ports) {
    const auto found = markings.by_port.find(port.Name());
    if (found == markings.by_port.end()) {
      unmarked.push_back(port.Name());
    } else if (!common) {
      common = found->second;
      first = port.Name();
    } else if (*common != found->second) {
      return LeaveOut(fmt::format("{} should have {} and {} {}, and NCCL has one for all; make the "
                                  "LosslessPolicies of this node agree",
                                  first, common->traffic_class, port.Name(), found->second.traffic_class),
                      true, lines, notes);
    }
  }
  if (!common) return;
  if (!unmarked.empty())
    notes.push_back(fmt::format("{} carry marked packets too, and no LosslessPolicy says how they treat them",
                                fmt::join(unmarked, ", ")));
  lines.Say(
      fmt::format("What LosslessPolicy {} marks data with: the whole ToS byte, and the priority. Its ports "
                  "were read back so.",
                  markings.policy));
  lines.Set("NCCL_IB_TC", std::to_string(common->traffic_class));
  if (common->service_level != lossless::kNotSaid)
    lines.Set("NCCL_IB_SL", std::to_string(common->service_level));
}

// One variable of NCCL that policies may speak of for InfiniBand ports.
struct InfiniBandVariable {
  std::string_view name;
  std::string_view about;
  std::optional<int> (*of)(const lossless::InfiniBand& infiniband);
};
std::optional<int> LevelOf(const lossless::InfiniBand& infiniband) {
  return infiniband.service_level;
}
std::optional<int> AdaptiveOf(const lossless::InfiniBand& infiniband) {
  if (!infiniband.adaptive_routing) return std::nullopt;
  return *infiniband.adaptive_routing ? 1 : 0;
}
constexpr std::array<InfiniBandVariable, 2> kInfiniBandVariables{
    {{"NCCL_IB_SL", "the service level of its packets", LevelOf},
     {"NCCL_IB_ADAPTIVE_ROUTING", "whether packets may overtake each other", AdaptiveOf}}};

// What a wish in force says of a port; null where no single policy speaks of it.
const crds::LosslessWish* WishOf(const std::string& port, const NcclFacts& facts) {
  for (const crds::LosslessWish& wish : facts.lossless) {
    if (std::find(wish.ports.begin(), wish.ports.end(), port) != wish.ports.end())
      return wish.policies.size() == 1 ? &wish : nullptr;
  }
  return nullptr;
}

// NCCL has one value for all NICs of a process, so that of one policy stands for all ports; two of them are none.
void SetInfiniBand(const InfiniBandVariable& variable, const std::vector<Port>& ports, const NcclFacts& facts,
                   Lines& lines, std::vector<std::string>& notes) {
  std::optional<int> common;
  std::string first, policy;
  std::vector<std::string> silent;
  for (const Port& port : ports) {
    const crds::LosslessWish* wish = WishOf(port.Name(), facts);
    const std::optional<int> value = wish == nullptr ? std::nullopt : variable.of(wish->infiniband);
    if (!value) {
      silent.push_back(port.Name());
    } else if (!common) {
      common = value;
      first = port.Name();
      policy = wish->policies.front();
    } else if (*common != *value) {
      const std::string why = fmt::format(
          "{} is left out: {} should have {} and {} {}, and NCCL has one for all; make infiniBand "
          "of the LosslessPolicies of this node agree",
          variable.name, first, *common, port.Name(), *value);
      lines.Say(why + ".");
      notes.push_back(why);
      return;
    }
  }
  if (!common) return;
  if (!silent.empty())
    notes.push_back(
        fmt::format("{} of LosslessPolicy {} is used on {}, too, of which no LosslessPolicy says it",
                    variable.name, policy, fmt::join(silent, ", ")));
  lines.Say(
      fmt::format("What LosslessPolicy {} says of InfiniBand: {}. The subnet manager must be set up for it.",
                  policy, variable.about));
  lines.Set(variable.name, std::to_string(*common));
}

}  // namespace

NcclConf NcclConfOf(const topology::Node& node, const NcclFacts& facts) {
  NcclConf conf;
  Lines lines;
  lines.Say("NCCL's configuration of this node, by heddle-nodeagent, which keeps it up to date.");
  lines.Say("A variable that is set in the pod or in its image wins over the line here.");
  const std::vector<Port> ports = VerbsPorts(node, conf.notes);
  if (!ports.empty()) {
    SetHcas(ports, facts, lines, conf.notes);
    SetCrossNic(ports, lines);
    if (ports.front().nic->transport == Transport::kRoce) {
      SetRoce(ports, facts, lines, conf.notes);
      SetMarking(ports, facts, lines, conf.notes);
    } else {
      for (const InfiniBandVariable& variable : kInfiniBandVariables)
        SetInfiniBand(variable, ports, facts, lines, conf.notes);
    }
  }
  conf.efa = CountOf(node, Transport::kEfa) > 0;
  if (node.nvlink_domain && node.nvlink_domain->spans_nodes) {
    // Not 1: a process that has one node of the domain needs no IMEX channel, and 1 would fail it.
    lines.Say("The NVLink domain spans nodes: NCCL goes over NVLink wherever all ranks can.");
    lines.Set("NCCL_MNNVL_ENABLE", "2");
  }
  if (!facts.topology_file.empty()) {
    lines.Say("This virtual machine does not show the PCIe tree of its host.");
    lines.Set("NCCL_TOPO_FILE", facts.topology_file);
  }
  conf.text = lines.Take();
  return conf;
}

}  // namespace heddle::nodeagent
