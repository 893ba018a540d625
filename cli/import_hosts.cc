#include "cli/import_hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/counted.h"

namespace heddle::cli {
namespace {

using topology::LinkState;
using topology::Nic;
using topology::NicRole;
using topology::Node;
using topology::PciDistance;

using Names = std::vector<std::string>;  // of NICs, as people count

// Hosts with the same NICs.
struct Kind {
  Names nics;
  Names compute;   // of these
  Names expected;  // … and for storage: what a host without is said to lack
  std::vector<std::size_t> hosts;
};

Names NamesOf(const Node& node, std::initializer_list<NicRole> roles) {
  Names names;
  for (const Nic& nic : node.nics) {
    if (std::find(roles.begin(), roles.end(), nic.role) != roles.end()) names.push_back(nic.name);
  }
  std::sort(names.begin(), names.end(), CountsBefore);
  return names;
}

bool Includes(const Names& whole, const Names& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end(), CountsBefore);
}

// Whether a host of the one kind is like those of the other and lacks something.
bool IsPartOf(const Kind& part, const Kind& whole) {
  return Includes(whole.nics, part.nics) || (!part.compute.empty() && Includes(whole.compute, part.compute));
}

// With what the hosts have beside compute NICs.
void Join(const Kind& part, Kind& whole) {
  whole.hosts.insert(whole.hosts.end(), part.hosts.begin(), part.hosts.end());
  Names both;
  std::set_union(whole.nics.begin(), whole.nics.end(), part.nics.begin(), part.nics.end(),
                 std::back_inserter(both), CountsBefore);
  whole.nics = std::move(both);
}

// The kind with most hosts first. A host whose compute NICs are a part of a larger kind's belongs to that: what it has
// beside them, as what LLDP heard of it alone, makes it no other machine.
std::vector<Kind> KindsOf(const std::vector<Node>& nodes) {
  constexpr std::size_t kCompared = 64;  // kinds; hosts of more kinds than that share nothing worth a guess
  std::map<Names, std::vector<std::size_t>> by_names;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    by_names[NamesOf(nodes[n], {NicRole::kCompute, NicRole::kStorage, NicRole::kManagement})].push_back(n);
  }
  std::vector<Kind> kinds;
  kinds.reserve(by_names.size());
  for (auto& [names, hosts] : by_names) {
    const Node& first = nodes[hosts.front()];
    kinds.push_back({names, NamesOf(first, {NicRole::kCompute}),
                     NamesOf(first, {NicRole::kCompute, NicRole::kStorage}), std::move(hosts)});
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Kind& a, const Kind& b) { return a.hosts.size() > b.hosts.size(); });
  std::vector<Kind> kept;
  for (Kind& kind : kinds) {
    Kind* whole = nullptr;
    for (std::size_t k = 0; k < std::min(kept.size(), kCompared) && whole == nullptr; ++k) {
      if (kept[k].hosts.size() > kind.hosts.size() && IsPartOf(kind, kept[k])) whole = &kept[k];
    }
    if (whole == nullptr) {
      kept.push_back(std::move(kind));
    } else {
      Join(kind, *whole);
    }
  }
  return kept;
}

Nic* FindNic(Node& node, const std::string& name) {
  const auto found =
      std::find_if(node.nics.begin(), node.nics.end(), [&](const Nic& nic) { return nic.name == name; });
  return found == node.nics.end() ? nullptr : &*found;
}

// What one NIC of a kind usually is.
struct Usual {
  int gbps = 0;    // of a port; 0 = nobody says
  int votes = 0;   // ports that run at it
  int voters = 0;  // ports that say anything
  NicRole role = NicRole::kCompute;
  std::set<std::string_view> leaves;
};

Usual UsualOf(const std::vector<Node>& nodes, const Kind& kind, const std::string& name) {
  Usual usual;
  std::map<int, int> rates;
  for (const std::size_t host : kind.hosts) {
    const Nic* nic = nodes[host].FindNic(name);
    if (nic == nullptr) continue;
    if (nic->role != NicRole::kCompute) usual.role = nic->role;
    for (const topology::NicPort& port : nic->ports) {
      if (port.leaf_port) usual.leaves.insert(port.leaf_port->leaf);
      if (port.rate_gbps == 0) continue;
      ++usual.voters;
      // Of two rates as frequent as each other the higher.
      const int votes = ++rates[port.rate_gbps];
      if (std::pair(votes, port.rate_gbps) > std::pair(usual.votes, usual.gbps)) {
        usual.gbps = port.rate_gbps;
        usual.votes = votes;
      }
    }
  }
  return usual;
}

class KindOfHost {
 public:
  KindOfHost(const Kind& kind, const Machine& machine, int assumed_gbps, std::vector<Node>& nodes,
             ImportFindings& findings)
      : kind_(kind), machine_(machine), assumed_gbps_(assumed_gbps), nodes_(nodes), findings_(findings) {
    for (const std::string& name : kind_.nics) usual_.push_back(UsualOf(nodes_, kind_, name));
  }

  // Whether a rate had to be assumed.
  bool Settle() {
    SetRoles();
    const std::map<std::string, int> rails = Rails();
    for (const std::size_t host : kind_.hosts) {
      for (std::size_t i = 0; i < kind_.nics.size(); ++i) SettleNic(nodes_[host], i, rails);
      auto& nics = nodes_[host].nics;
      std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
    }
    return unsaid_;
  }

 private:
  const MachineNic* InMachine(const std::string& name) const {
    const auto found = std::find_if(machine_.nics.begin(), machine_.nics.end(),
                                    [&](const MachineNic& nic) { return nic.name == name; });
    return found == machine_.nics.end() ? nullptr : &*found;
  }

  void SetRoles() {
    bool machine_knows = true;
    int best = 0;
    for (std::size_t i = 0; i < usual_.size(); ++i) {
      if (usual_[i].role != NicRole::kCompute) continue;
      machine_knows = machine_knows && InMachine(kind_.nics[i]) != nullptr;
      best = std::max(best, usual_[i].gbps);
    }
    std::set<std::string_view> best_leaves;
    for (const Usual& usual : usual_) {
      if (usual.role == NicRole::kCompute && usual.gbps == best)
        best_leaves.insert(usual.leaves.begin(), usual.leaves.end());
    }
    Names storage;
    for (std::size_t i = 0; i < usual_.size(); ++i) {
      Usual& usual = usual_[i];
      if (usual.role != NicRole::kCompute) continue;
      const bool apart = usual.gbps < best && usual.gbps > 0 &&
                         std::none_of(usual.leaves.begin(), usual.leaves.end(),
                                      [&](std::string_view leaf) { return best_leaves.contains(leaf); });
      if (machine_knows ? InMachine(kind_.nics[i])->near : !apart) continue;
      usual.role = NicRole::kStorage;
      storage.push_back(kind_.nics[i]);
    }
    if (storage.empty()) return;
    findings_.notes.push_back(fmt::format(
        "{} of {} {}: taken for storage", fmt::join(storage, ", "), base::Counted(kind_.hosts.size(), "host"),
        machine_knows ? "share no PCIe switch with a GPU in " + machine_.source
                      : std::string("run slower than the other NICs, on leaves of their own")));
  }

  // By the first GPU that a NIC is nearest to, then by name.
  std::map<std::string, int> Rails() const {
    std::vector<std::pair<std::size_t, std::string>> order;
    for (std::size_t i = 0; i < usual_.size(); ++i) {
      if (usual_[i].role == NicRole::kCompute) order.emplace_back(FirstGpu(kind_.nics[i]), kind_.nics[i]);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : CountsBefore(a.second, b.second);
    });
    std::map<std::string, int> rails;
    for (const auto& [gpu, name] : order) rails.emplace(name, int(rails.size()));
    return rails;
  }

  std::size_t FirstGpu(const std::string& name) const {
    const MachineNic* nic = InMachine(name);
    if (nic == nullptr) return 0;
    const auto position = std::size_t(nic - machine_.nics.data());
    for (std::size_t g = 0; g < machine_.distances.size(); ++g) {
      const auto& row = machine_.distances[g];
      if (row[position] < PciDistance::kSys && row[position] == *std::min_element(row.begin(), row.end()))
        return g;
    }
    return machine_.gpus.size();
  }

  void SettleNic(Node& node, std::size_t i, const std::map<std::string, int>& rails) {
    const std::string& name = kind_.nics[i];
    const Usual& usual = usual_[i];
    Nic* nic = FindNic(node, name);
    if (nic == nullptr) {
      if (!Includes(kind_.expected, {name})) return;
      Nic missing;
      missing.name = name;
      missing.transport = node.nics.empty() ? topology::Transport::kInfiniBand : node.nics.front().transport;
      missing.ports.push_back({});
      missing.ports.front().state = LinkState::kDown;
      nic = &node.nics.emplace_back(std::move(missing));
      findings_.warnings.push_back(
          fmt::format("{} has no {} in the fabric, as the {} hosts like it have: counted as down", node.name,
                      name, kind_.hosts.size() - 1));
    }
    nic->role = usual.role;
    if (usual.role != NicRole::kCompute) {
      nic->rail = topology::Missing::kNotApplicable;
    } else if (const int rail = rails.at(name); rail <= topology::kMaxRail) {
      nic->rail = rail;
    }
    for (topology::NicPort& port : nic->ports) SettlePort(node, *nic, usual, port);
  }

  void SettlePort(const Node& node, const Nic& nic, const Usual& usual, topology::NicPort& port) {
    if (port.state == LinkState::kDown) return;
    if (port.rate_gbps == 0) {
      port.rate_gbps = usual.gbps > 0 ? usual.gbps : assumed_gbps_;
      port.usable_gbps = port.rate_gbps;
      unsaid_ = true;
    }
    // Of few hosts with different NICs none is slow, unless it is so by far.
    const bool most = usual.votes * 2 > usual.voters;
    if (port.rate_gbps >= usual.gbps || (!most && port.rate_gbps * 4 > usual.gbps)) return;
    const std::string where =
        port.leaf_port ? fmt::format(" on {} port {}", port.leaf_port->leaf, port.leaf_port->port) : "";
    findings_.warnings.push_back(fmt::format("{} {} port {}{} runs at {} Gb/s; {} of {} such ports run at {}",
                                             node.name, nic.name, port.number, where, port.rate_gbps,
                                             usual.votes, usual.voters, usual.gbps));
  }

  const Kind& kind_;
  const Machine& machine_;
  int assumed_gbps_;
  std::vector<Node>& nodes_;
  ImportFindings& findings_;
  std::vector<Usual> usual_;  // by position in kind_.nics
  bool unsaid_ = false;
};

// Whether the two say the same of roles and rails.
bool PlacesAlike(const Machine& a, const Machine& b) {
  return a.distances == b.distances && std::equal(a.nics.begin(), a.nics.end(), b.nics.begin(), b.nics.end(),
                                                  [](const MachineNic& x, const MachineNic& y) {
                                                    return x.name == y.name && x.near == y.near;
                                                  });
}

// That most of the kind's hosts are, of the machines that say which NICs they have: one host's file may lack some.
const Machine& MachineOf(const Kind& kind, const Machines& machines, const std::vector<Node>& nodes) {
  constexpr std::size_t kCompared = 64;  // machines
  std::vector<std::pair<const Machine*, std::size_t>> votes;
  for (const std::size_t host : kind.hosts) {
    const Machine& machine = machines.Of(nodes[host].name);
    if (machine.nics.empty()) continue;
    const auto known = std::find_if(votes.begin(), votes.end(), [&](const auto& vote) {
      return vote.first == &machine || PlacesAlike(*vote.first, machine);
    });
    if (known != votes.end()) {
      ++known->second;
    } else if (votes.size() < kCompared) {
      votes.emplace_back(&machine, 1);
    }
  }
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == votes.end() ? machines.Of(nodes[kind.hosts.front()].name) : *most->first;
}

std::string BeforeDigits(std::string_view name) {
  return std::string(name.substr(0, name.find_first_of("0123456789")));
}

}  // namespace

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

topology::NicRole RoleOfName(std::string_view name) {
  constexpr std::array<std::string_view, 20> kStorage{
      "oss",  "mds", "mgs", "mdt",  "ost",  "nsd",    "gpfs", "ddn",       "lustre", "storage",
      "stor", "nas", "nfs", "weka", "vast", "beegfs", "ceph", "exascaler", "stg",    "sfa"};
  constexpr std::array<std::string_view, 10> kManagement{"ufm",   "mgmt",    "management", "login", "head",
                                                         "admin", "bastion", "oob",        "bmc",   "ipmi"};
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '-';
    const char lower = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
    if (lower >= 'a' && lower <= 'z') {
      word.push_back(lower);
      continue;
    }
    if (std::find(kStorage.begin(), kStorage.end(), word) != kStorage.end()) return NicRole::kStorage;
    if (std::find(kManagement.begin(), kManagement.end(), word) != kManagement.end())
      return NicRole::kManagement;
    word.clear();
  }
  return NicRole::kCompute;
}

void KeepComputeHosts(std::vector<Node>& nodes, ImportFindings& findings) {
  std::vector<std::string> others;
  for (const Node& node : nodes) {
    if (RoleOfName(node.name) != NicRole::kCompute) others.push_back(node.name);
  }
  if (others.size() == nodes.size() && !nodes.empty()) {
    findings.notes.push_back(
        "every host is called as storage or management is: all are taken for compute hosts");
  } else if (!others.empty()) {
    findings.notes.push_back(
        fmt::format("{} of {} hosts are storage or management by their names and left out: {}", others.size(),
                    nodes.size(), SomeOf(others)));
    std::erase_if(nodes, [](const Node& node) { return RoleOfName(node.name) != NicRole::kCompute; });
  }
  std::map<std::size_t, std::size_t> hosts_by_nics;
  std::size_t usual = 0;
  for (const Node& node : nodes) {
    const std::size_t count = ++hosts_by_nics[node.nics.size()];
    if (count > hosts_by_nics[usual]) usual = node.nics.size();
  }
  if (usual < 2) return;
  std::set<std::string> begin;
  for (const Node& node : nodes) {
    if (node.nics.size() == usual) begin.insert(BeforeDigits(node.name));
  }
  const auto is_other = [&](const Node& node) {
    return node.nics.size() * 2 <= usual && !begin.contains(BeforeDigits(node.name));
  };
  std::vector<std::string> small;
  for (const Node& node : nodes) {
    if (is_other(node)) small.push_back(node.name);
  }
  if (small.empty()) return;
  findings.notes.push_back(
      fmt::format("{} hosts have at most half of the usual {} NICs and are called otherwise than those that "
                  "have them: taken for "
                  "storage or management and left out: {}",
                  small.size(), usual, SomeOf(small)));
  std::erase_if(nodes, is_other);
}

void SettleNics(const Machines& machines, int assumed_gbps, std::vector<Node>& nodes,
                ImportFindings& findings) {
  bool unsaid = false;
  for (const Kind& kind : KindsOf(nodes)) {
    if (kind.nics.empty()) continue;
    KindOfHost settled(kind, MachineOf(kind, machines, nodes), assumed_gbps, nodes, findings);
    unsaid = settled.Settle() || unsaid;
  }
  if (unsaid) {
    findings.notes.push_back(fmt::format(
        "no file says how fast some links are: taken for as fast as their like, or {} Gb/s (--link-gbps)",
        assumed_gbps));
  }
}

}  // namespace heddle::cli
