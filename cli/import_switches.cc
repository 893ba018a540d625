// The switches of an InfiniBand dump: tiers, uplinks, and cables that are not as their like.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/counted.h"
#include "cli/import_hosts.h"
#include "cli/import_infiniband.h"

namespace heddle::cli {
namespace {

using formats::IbLink;
using formats::IbNode;
using formats::IbNodeKind;

// As the schema of Fabric has them.
constexpr std::size_t kMaxSwitches = 8192;
constexpr std::size_t kMaxUplinks = 64;
constexpr std::size_t kMaxGroups = 512;
constexpr std::size_t kMaxGroupLeaves = 256;

// Between two switches; both ends say so.
struct Cable {
  int a = 0, a_port = 0, b = 0, b_port = 0;  // a has the lower tier, or the lower number
  int gbps = 0;
  std::string words;  // "4xNDR"
};

class Switches {
 public:
  Switches(const IbGraph& graph, ImportFindings& findings) : graph_(graph), findings_(findings) {}

  topology::Declaration Run(const std::vector<topology::Node>& nodes) {
    FindTiers(nodes);
    FindCables();
    ReportSlow();
    ReportMissing();
    return Declare();
  }

 private:
  const IbNode& At(int i) const { return graph_.nodes()[std::size_t(i)]; }
  const std::string& Name(int i) const { return graph_.Name(std::size_t(i)); }
  std::string End(int node, int port) const { return fmt::format("{} port {}", Name(node), port); }

  bool IsSwitch(int i) const { return i >= 0 && At(i).kind == IbNodeKind::kSwitch; }

  using HostCables = std::map<std::string_view, std::size_t>;  // of compute NICs, by switch

  // A spine that a host is cabled to: most of its cables to switches lead to such as have many more hosts. Taken for a
  // leaf it would be no way between the others any more.
  bool IsSpineWithHosts(int i, const HostCables& hosts) const {
    const std::size_t own = hosts.at(Name(i));
    std::size_t all = 0, down = 0;
    std::set<int> lower;
    for (const IbLink& link : At(i).links) {
      const int other = graph_.Find(link.remote_id);
      if (!IsSwitch(other) || other == i) continue;
      ++all;
      const auto found = hosts.find(Name(other));
      if (found == hosts.end() || found->second <= 2 * own) continue;
      ++down;
      lower.insert(other);
    }
    // Leaves that are cabled to each other are a dragonfly, where one may have few hosts.
    const auto meshed = std::count_if(lower.begin(), lower.end(), [&](int one) {
      const auto& links = At(one).links;
      return std::any_of(links.begin(), links.end(), [&](const IbLink& link) {
        const int other = graph_.Find(link.remote_id);
        return other != one && lower.contains(other);
      });
    });
    return lower.size() >= 2 && down * 2 >= all && std::size_t(meshed) * 2 <= lower.size();
  }

  // 1 for those that compute NICs were seen on, then upwards; 0 for what hangs on none of them.
  void FindTiers(const std::vector<topology::Node>& nodes) {
    HostCables hosts;
    for (const topology::Node& node : nodes) {
      for (const topology::Nic& nic : node.nics) {
        for (const topology::NicPort& port : nic.ports) {
          if (nic.role == topology::NicRole::kCompute && port.leaf_port) ++hosts[port.leaf_port->leaf];
        }
      }
    }
    const std::vector<bool> other_leaf = OtherLeaves(hosts);
    tier_.assign(graph_.nodes().size(), 0);
    std::vector<int> level;
    for (int i = 0; i < int(tier_.size()); ++i) {
      if (!IsSwitch(i) || !hosts.contains(Name(i)) || IsSpineWithHosts(i, hosts)) continue;
      tier_[std::size_t(i)] = 1;
      level.push_back(i);
    }
    for (int tier = 2; !level.empty(); ++tier) {
      std::vector<int> next;
      for (const int i : level) {
        for (const IbLink& link : At(i).links) {
          const int other = graph_.Find(link.remote_id);
          if (!IsSwitch(other) || tier_[std::size_t(other)] != 0 || other_leaf[std::size_t(other)] ||
              !graph_.Answered(At(i), link))
            continue;
          tier_[std::size_t(other)] = tier;
          next.push_back(other);
        }
      }
      level = std::move(next);
    }
  }

  // Leaves of storage or management hang on spines as a core does, and would be taken for one. Theirs are
  // mostly cables to hosts; a core has a few at most, to the hosts that manage the fabric.
  std::vector<bool> OtherLeaves(const HostCables& compute) {
    std::vector<bool> is(graph_.nodes().size(), false);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < is.size(); ++i) {
      if (!IsSwitch(int(i)) || compute.contains(graph_.Name(i))) continue;
      std::size_t hosts = 0, switches = 0;
      for (const IbLink& link : graph_.nodes()[i].links) {
        const int other = graph_.Find(link.remote_id);
        if (other < 0) continue;
        const IbNode& end = At(other);
        const bool host =
            end.kind == IbNodeKind::kChannelAdapter &&
            formats::ParseIbAdapterName(end.description).kind != formats::IbAdapterKind::kAggregation;
        hosts += host ? 1 : 0;
        switches += end.kind == IbNodeKind::kSwitch && other != int(i) ? 1 : 0;
      }
      is[i] = hosts > 0 && hosts * 4 >= switches;
      if (is[i]) names.push_back(graph_.Name(i));
    }
    if (!names.empty()) {
      findings_.notes.push_back(fmt::format("{} switch{} with hosts and no compute NIC: left out: {}",
                                            names.size(), names.size() == 1 ? "" : "es", SomeOf(names)));
    }
    return is;
  }

  void FindCables() {
    std::set<std::tuple<int, int>> looped;
    for (int i = 0; i < int(tier_.size()); ++i) {
      if (!IsSwitch(i)) continue;
      std::set<int> ports;
      for (const IbLink& link : At(i).links) {
        const int other = graph_.Find(link.remote_id);
        if (!ports.insert(link.port).second || !IsSwitch(other)) continue;
        if (formats::IsLoopback(At(i), link)) {
          if (looped.emplace(i, std::min(link.port, link.remote_port)).second) {
            findings_.warnings.push_back(fmt::format("{} is cabled to {}: a loop on one switch, not counted",
                                                     End(i, link.port), End(i, link.remote_port)));
          }
          continue;
        }
        if (Order(i) < Order(other) && graph_.Answered(At(i), link)) AddCable(i, other, link);
      }
    }
  }

  std::pair<int, int> Order(int i) const { return {tier_[std::size_t(i)], i}; }

  static std::string Width(const IbLink& link) {
    return link.lanes == 0 && link.speed.empty() ? "nothing" : fmt::format("{}x{}", link.lanes, link.speed);
  }

  void AddCable(int a, int b, const IbLink& link) {
    const auto& back = At(b).links;
    const auto theirs = std::find_if(back.begin(), back.end(),
                                     [&](const IbLink& one) { return one.port == link.remote_port; });
    const int here = formats::IbLinkGbps(link), there = formats::IbLinkGbps(*theirs);
    const IbLink& slower = there > 0 && (here == 0 || there < here) ? *theirs : link;
    if (here != there) {
      findings_.warnings.push_back(
          fmt::format("{} says {} and {} says {} of the cable between them: the {} counts", End(a, link.port),
                      Width(link), End(b, theirs->port), Width(*theirs),
                      here > 0 && there > 0 ? "lower" : "speed that is known"));
    }
    cables_.push_back({a, link.port, b, theirs->port, formats::IbLinkGbps(slower),
                       fmt::format("{}x{}", slower.lanes, slower.speed)});
  }

  // Against the most frequent rate of the cables between the same two tiers, which those of unknown rate get.
  void ReportSlow() {
    std::map<std::pair<int, int>, std::map<int, int>> rates;
    const auto tiers = [this](const Cable& cable) {
      return std::pair(tier_[std::size_t(cable.a)], tier_[std::size_t(cable.b)]);
    };
    for (const Cable& cable : cables_) {
      if (cable.gbps > 0) ++rates[tiers(cable)][cable.gbps];
    }
    for (Cable& cable : cables_) {
      int usual = 0, votes = 0;
      for (const auto& [gbps, count] : rates[tiers(cable)]) {
        if (count >= votes) std::tie(usual, votes) = std::pair(gbps, count);
      }
      if (cable.gbps == 0) cable.gbps = usual;
      if (cable.gbps >= usual) continue;
      findings_.warnings.push_back(fmt::format(
          "{} to {} runs at {} Gb/s ({}); {} cables of its kind run at {}", End(cable.a, cable.a_port),
          End(cable.b, cable.b_port), cable.gbps, cable.words, votes, usual));
    }
  }

  bool IsUp(const Cable& cable) const {
    const int a = tier_[std::size_t(cable.a)], b = tier_[std::size_t(cable.b)];
    return a > 0 && b == a + 1;
  }

  // Switches that share one above them are alike: what most of them have to it, the others should have.
  void ReportMissing() {
    std::map<int, std::map<int, std::vector<int>>> ports;  // upper -> lower -> the lower's ports
    for (const Cable& cable : cables_) {
      if (IsUp(cable)) ports[cable.b][cable.a].push_back(cable.a_port);
    }
    const std::vector<int> pod = Pods(ports);
    std::map<int, std::vector<int>> members;
    for (int i = 0; i < int(pod.size()); ++i) members[pod[std::size_t(i)]].push_back(i);
    for (const auto& [upper, lowers] : ports) {
      const auto& like = members[pod[std::size_t(lowers.begin()->first)]];
      std::map<std::size_t, std::size_t> counts;
      for (const int lower : like) ++counts[CountOf(lowers, lower)];
      for (const auto& [count, votes] : counts) {
        if (votes * 2 <= like.size() || count == 0) continue;
        for (const int lower : like) {
          if (CountOf(lowers, lower) < count) ReportFewer(upper, lower, lowers, count, votes);
        }
      }
    }
  }

  static std::size_t CountOf(const std::map<int, std::vector<int>>& lowers, int lower) {
    const auto found = lowers.find(lower);
    return found == lowers.end() ? 0 : found->second.size();
  }

  void ReportFewer(int upper, int lower, const std::map<int, std::vector<int>>& lowers, std::size_t count,
                   std::size_t votes) {
    // The lower switch's ports that its like use for this and it uses for nothing.
    std::map<int, std::size_t> used;
    for (const auto& [other, list] : lowers) {
      for (const int port : list) ++used[port];
    }
    std::set<int> cabled;
    for (const IbLink& link : At(lower).links) cabled.insert(link.port);
    std::vector<int> free;
    for (const auto& [port, times] : used) {
      if (times * 2 > votes && !cabled.contains(port)) free.push_back(port);
    }
    findings_.warnings.push_back(
        fmt::format("{} has {} of the {} cables to {} that {} like it have{}", Name(lower),
                    CountOf(lowers, lower), count, Name(upper), votes,
                    free.empty() ? "" : fmt::format(": nothing is on its port {}", fmt::join(free, ", "))));
  }

  // A number for the switches of one tier that have one above them in common, directly or through others.
  std::vector<int> Pods(const std::map<int, std::map<int, std::vector<int>>>& ports) const {
    std::vector<int> pod(tier_.size());
    std::iota(pod.begin(), pod.end(), 0);
    const auto find = [&pod](int i) {
      while (pod[std::size_t(i)] != i) i = pod[std::size_t(i)] = pod[std::size_t(pod[std::size_t(i)])];
      return i;
    };
    for (const auto& [upper, lowers] : ports) {
      for (const auto& [lower, list] : lowers) pod[std::size_t(find(lower))] = find(lowers.begin()->first);
    }
    for (int i = 0; i < int(pod.size()); ++i) pod[std::size_t(i)] = find(i);
    return pod;
  }

  topology::Declaration Declare() {
    topology::Declaration declaration;
    std::vector<int> order;
    for (int i = 0; i < int(tier_.size()); ++i) {
      if (tier_[std::size_t(i)] > 0) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [this](int a, int b) {
      const int x = tier_[std::size_t(a)], y = tier_[std::size_t(b)];
      return x != y ? x < y : Name(a) < Name(b);
    });
    std::map<int, std::set<std::string>> uplinks;
    std::map<int, std::int64_t> up, sideways;
    for (const Cable& cable : cables_) {
      if (IsUp(cable)) {
        uplinks[cable.a].insert(Name(cable.b));
        up[cable.a] += cable.gbps;
      } else if (tier_[std::size_t(cable.a)] > 0) {
        sideways[cable.a] += cable.gbps;
        sideways[cable.b] += cable.gbps;
      }
    }
    for (const int i : order) {
      topology::SwitchDeclaration one{Name(i), {uplinks[i].begin(), uplinks[i].end()}, 0};
      const bool leaf_only = up[i] == 0 && tier_[std::size_t(i)] == 1;
      one.uplink_gbps = int(std::min<std::int64_t>(leaf_only ? sideways[i] : up[i], 100'000'000));
      if (one.uplinks.size() > kMaxUplinks) {
        findings_.warnings.push_back(fmt::format("{} leads up to {} switches: {} are kept", one.name,
                                                 one.uplinks.size(), kMaxUplinks));
        one.uplinks.resize(kMaxUplinks);
      }
      declaration.switches.push_back(std::move(one));
    }
    if (declaration.switches.size() > kMaxSwitches) {
      findings_.warnings.push_back(
          fmt::format("{} switches are more than the {} that a Fabric holds: those of the "
                      "highest tiers are left out",
                      declaration.switches.size(), kMaxSwitches));
      declaration.switches.resize(kMaxSwitches);
    }
    AddGroups(order, sideways, declaration);
    return declaration;
  }

  // Switches that are cabled to their like are a dragonfly: leaves with the spines above them are a group,
  // and so are leaves that only know each other.
  void AddGroups(const std::vector<int>& order, const std::map<int, std::int64_t>& sideways,
                 topology::Declaration& declaration) {
    if (std::none_of(sideways.begin(), sideways.end(), [](const auto& one) { return one.second > 0; }))
      return;
    std::vector<int> group(tier_.size());
    std::iota(group.begin(), group.end(), 0);
    const auto find = [&group](int i) {
      while (group[std::size_t(i)] != i)
        i = group[std::size_t(i)] = group[std::size_t(group[std::size_t(i)])];
      return i;
    };
    for (const Cable& cable : cables_) {
      const bool leaves = tier_[std::size_t(cable.a)] == 1 && tier_[std::size_t(cable.b)] == 1;
      if (IsUp(cable) || leaves) group[std::size_t(find(cable.b))] = find(cable.a);
    }
    std::map<int, std::vector<std::string>> leaves;
    for (const int i : order) {
      if (tier_[std::size_t(i)] == 1) leaves[find(i)].push_back(Name(i));
    }
    const bool spines =
        std::any_of(order.begin(), order.end(), [this](int i) { return tier_[std::size_t(i)] > 1; });
    if (spines && leaves.size() < 2) {
      findings_.notes.push_back(
          "some switches of one tier are cabled to each other: those cables are not counted");
      return;
    }
    for (const auto& [first, names] : leaves) {
      if (declaration.groups.size() == kMaxGroups || names.size() > kMaxGroupLeaves) {
        findings_.warnings.push_back(
            "switches of one tier are cabled to each other in more or larger groups than a "
            "Fabric holds: those cables are not counted");
        declaration.groups.clear();
        return;
      }
      declaration.groups.push_back({fmt::format("group-{}", declaration.groups.size()), names});
    }
    findings_.notes.push_back("switches of one tier are cabled to each other: taken for a dragonfly of " +
                              base::Counted(leaves.size(), "group"));
  }

  const IbGraph& graph_;
  ImportFindings& findings_;
  std::vector<int> tier_;  // by position in the graph
  std::vector<Cable> cables_;
};

}  // namespace

topology::Declaration IbSwitches(const IbGraph& graph, const std::vector<topology::Node>& nodes,
                                 ImportFindings& findings) {
  return Switches(graph, findings).Run(nodes);
}

}  // namespace heddle::cli
