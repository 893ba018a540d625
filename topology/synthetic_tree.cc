#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "topology/fabric.h"
#include "topology/synthetic_line.h"

namespace heddle::topology {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

// "node:16,11,7", cut where it is long.
std::string Said(const SyntheticLine& line, const Level& level) {
  if (line.layout == Layout::kTorus && level.kind == LevelKind::kHost) {
    return fmt::format("torus:{}", fmt::join(line.torus, "x"));
  }
  constexpr std::size_t kShown = 8;
  std::string text = fmt::format(
      "{}:{}", level.word,
      fmt::join(level.counts.begin(),
                level.counts.begin() + std::ptrdiff_t(std::min(kShown, level.counts.size())), ","));
  return level.counts.size() > kShown ? text + ",…" : text;
}

// A list has one number for each container of one around them, if all of these have as many; or for each of
// the line.
std::vector<std::size_t> ScopesOf(const std::vector<HostGroup>& containers) {
  std::vector<std::size_t> scopes = {1, containers.size()};
  for (std::size_t kind = 0; kind < kLevelKinds; ++kind) {
    if (containers.front().number[kind] == kNone) continue;
    std::vector<std::size_t> in(std::size_t(containers.back().number[kind]) + 1, 0);
    for (const HostGroup& container : containers) ++in[std::size_t(container.number[kind])];
    const auto [least, most] = std::minmax_element(in.begin(), in.end());
    if (*least == *most) scopes.push_back(*most);
  }
  std::sort(scopes.begin(), scopes.end());
  scopes.erase(std::unique(scopes.begin(), scopes.end()), scopes.end());
  return scopes;
}

template <class T>
bool Repeats(const std::vector<T>& items, std::size_t period) {
  for (std::size_t i = period; i < items.size(); ++i) {
    if (items[i] != items[i - period]) return false;
  }
  return true;
}

std::size_t Position(const SyntheticLine& line, LevelKind kind) {
  const auto found = std::find_if(line.levels.begin(), line.levels.end(),
                                  [&](const Level& level) { return level.kind == kind; });
  CHECK(found != line.levels.end());
  return std::size_t(found - line.levels.begin());
}

// The shortest list that says the same of `units` units in turn: without the longest border of what they are
// (Knuth, Morris and Pratt), since a list may be as long as there are units. Requires: not longer.
template <class T>
void ShortenTurns(std::vector<T>& turns, std::size_t units) {
  if (turns.size() == 1) return;
  const auto same = [&](std::size_t a, std::size_t b) {
    return turns[a % turns.size()] == turns[b % turns.size()];
  };
  std::vector<std::size_t> border(units, 0);
  for (std::size_t u = 1; u < units; ++u) {
    std::size_t length = border[u - 1];
    while (length > 0 && !same(u, length)) length = border[length - 1];
    border[u] = same(u, length) ? length + 1 : 0;
  }
  turns.resize(std::min(turns.size(), units - border.back()));
}

// Two levels become one: what `inner` counts is now counted by the container around `outer`, which there is
// one of each.
void Fold(SyntheticTree& tree, std::size_t outer) {
  std::vector<int> sums;
  std::size_t at = 0;
  for (int& count : tree.full[outer]) {
    sums.push_back(std::accumulate(tree.full[outer + 1].begin() + std::ptrdiff_t(at),
                                   tree.full[outer + 1].begin() + std::ptrdiff_t(at) + count, 0));
    at += std::size_t(count);
    count = 1;
  }
  tree.full[outer + 1] = std::move(sums);
}

void Erase(SyntheticLine& line, SyntheticTree& tree, std::size_t level) {
  line.levels.erase(line.levels.begin() + std::ptrdiff_t(level));
  tree.full.erase(tree.full.begin() + std::ptrdiff_t(level));
}

}  // namespace

bool SyntheticLine::Has(LevelKind kind) const {
  return std::any_of(levels.begin(), levels.end(), [&](const Level& level) { return level.kind == kind; });
}

HostKind SyntheticLine::KindOf(int unit) const {
  const auto of = [&](const auto& turns) -> const auto& {
    return turns[std::size_t(unit) % turns.size()];
  };
  return {of(machines), of(gpus), of(nics), of(rails), of(rates_gbps)};
}

Result<SyntheticTree> GrowSyntheticTree(const SyntheticLine& line) {
  SyntheticTree tree;
  HostGroup whole;
  whole.number.fill(kNone);
  std::vector<HostGroup> containers = {whole};
  for (std::size_t l = 0; l < line.levels.size(); ++l) {
    const Level& level = line.levels[l];
    const bool hosts = level.kind == LevelKind::kHost;
    const std::size_t length = level.counts.size();
    tree.scopes.push_back(ScopesOf(containers));
    if (!std::binary_search(tree.scopes.back().begin(), tree.scopes.back().end(), length)) {
      const Level& around = line.levels[l - 1];
      return Fail(Code::kInvalid,
                  fmt::format("{}: has {} numbers, and {}:{} makes {}", Said(line, level), length,
                              around.word, fmt::join(around.counts, ","), containers.size()));
    }
    tree.full.emplace_back();
    std::vector<HostGroup> inner;
    long long made = 0;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const int count = level.counts[i % length];
      if (made + count > kMaxSyntheticNodes) {
        return Fail(Code::kTooLarge,
                    fmt::format("{}: makes more than {} nodes", Said(line, level), kMaxSyntheticNodes));
      }
      tree.full.back().push_back(count);
      if (hosts) {
        containers[i].first = int(made);
        containers[i].hosts = count;
      } else {
        for (int c = 0; c < count; ++c) {
          inner.push_back(containers[i]);
          inner.back()[level.kind] = int(made) + c;
        }
      }
      made += count;
    }
    if (hosts) tree.nodes = int(made);
    if (!hosts) containers = std::move(inner);
  }
  tree.groups = std::move(containers);
  // Leaves belong to a unit: without `su` each rack, each ToR, each torus is one.
  for (HostGroup& group : tree.groups) {
    int& unit = group[LevelKind::kUnit];
    if (unit == kNone) unit = group[LevelKind::kRack];
    if (unit == kNone) unit = group[LevelKind::kTor];
    if (unit == kNone) unit = group[LevelKind::kSite];
  }
  return tree;
}

Status CheckSizes(const SyntheticLine& line, const SyntheticTree& tree) {
  const auto too_many = [](std::string_view word, int number, long long most, std::string_view what) {
    return Fail(Code::kTooLarge, fmt::format("{}:{}: makes more than {} {}", word, number, most, what));
  };
  const long long pods = tree.groups.back()[LevelKind::kPod] + 1LL;
  const long long zones = tree.groups.back()[LevelKind::kZone] + 1LL;
  long long gpus = 0, nics = 0, leaves = 0;
  int last_unit = kNone;
  for (const HostGroup& group : tree.groups) {
    const HostKind kind = line.KindOf(group[LevelKind::kUnit]);
    gpus += 1LL * group.hosts * kind.gpus;
    nics += 1LL * group.hosts * kind.nics;
    const int ports = line.ports_per_nic();
    if (gpus > kMaxSyntheticGpus) return too_many("gpu", kind.gpus, kMaxSyntheticGpus, "GPUs");
    if (nics > kMaxSyntheticGpus) return too_many("nic", kind.nics, kMaxSyntheticGpus, "NICs");
    if (nics * ports > kMaxSyntheticPorts) {
      return too_many(line.dual_tor ? "nic" : "plane", line.dual_tor ? kind.nics : line.planes,
                      kMaxSyntheticPorts, "ports");
    }
    if (group[LevelKind::kUnit] == last_unit) continue;
    last_unit = group[LevelKind::kUnit];
    leaves += 1LL * ports * (group[LevelKind::kTor] == kNone ? kind.rails : 1);
  }
  constexpr std::string_view kCables = "cables between switches";
  const long long spines = pods * line.planes * line.spines;
  const long long superspines = zones * line.planes * line.superspines;
  long long cables = leaves * line.spines;
  if (cables > kMaxSyntheticCables) return too_many("spine", line.spines, kMaxSyntheticCables, kCables);
  if (line.superspines > 0) cables += spines * line.superspines;
  if (cables > kMaxSyntheticCables) {
    return too_many("superspine", line.superspines, kMaxSyntheticCables, kCables);
  }
  cables += (line.superspines > 0 ? superspines : spines) * line.cores;
  if (cables > kMaxSyntheticCables) return too_many("core", line.cores, kMaxSyntheticCables, kCables);
  return {};
}

std::vector<int> NvlinkDomainsOf(const SyntheticLine& line, const SyntheticTree& tree) {
  std::vector<int> domains;
  domains.reserve(std::size_t(tree.nodes));
  int domain = kNone, in_domain = 0, unit = kNone;
  for (const HostGroup& group : tree.groups) {
    const bool whole = line.nvlink_nodes == SyntheticLine::kWholeRack;
    if (whole || group[LevelKind::kUnit] != unit) {
      ++domain;
      in_domain = 0;
    }
    unit = group[LevelKind::kUnit];
    for (int host = 0; host < group.hosts; ++host) {
      if (!whole && in_domain == line.nvlink_nodes) {
        ++domain;
        in_domain = 0;
      }
      domains.push_back(domain);
      ++in_domain;
    }
  }
  return domains;
}

void Normalise(SyntheticLine& line, SyntheticTree& tree) {
  const std::size_t units = std::size_t(tree.groups.back()[LevelKind::kUnit]) + 1;
  ShortenTurns(line.gpus, units);
  ShortenTurns(line.nics, units);
  ShortenTurns(line.rails, units);
  ShortenTurns(line.rates_gbps, units);
  ShortenTurns(line.machines, units);

  if (line.nvlink_nodes > 1) {
    std::vector<int> size(units, 0);
    for (const HostGroup& group : tree.groups) size[std::size_t(group[LevelKind::kUnit])] += group.hosts;
    line.nvlink_nodes = std::min(line.nvlink_nodes, *std::max_element(size.begin(), size.end()));
    SyntheticLine whole = line;
    whole.nvlink_nodes = SyntheticLine::kWholeRack;
    const bool may_be_whole = line.layout == Layout::kUnits || line.layout == Layout::kRacks;
    if (may_be_whole && NvlinkDomainsOf(line, tree) == NvlinkDomainsOf(whole, tree)) {
      line.nvlink_nodes = SyntheticLine::kWholeRack;
    }
  }

  // Without a switch of its own a zone or pod is nothing; a unit of one rack is the rack.
  if (line.Has(LevelKind::kPod)) {
    if (line.superspines == 0) Fold(tree, Position(line, LevelKind::kZone));
    if (line.spines == 0) Fold(tree, Position(line, LevelKind::kPod));
  }
  if (line.Has(LevelKind::kUnit) && line.Has(LevelKind::kRack)) {
    const std::size_t rack = Position(line, LevelKind::kRack);
    if (std::all_of(tree.full[rack].begin(), tree.full[rack].end(), [](int count) { return count == 1; })) {
      std::swap(tree.full[rack], tree.full[rack - 1]);
      Erase(line, tree, rack - 1);
    }
  }
  for (std::size_t l = 0; l < line.levels.size(); ++l) line.levels[l].counts = tree.full[l];
  auto grown = GrowSyntheticTree(line);
  CHECK(grown.has_value());
  tree = std::move(*grown);
  for (std::size_t l = 0; l < line.levels.size(); ++l) {
    std::vector<int>& counts = line.levels[l].counts;
    const auto scope = std::find_if(tree.scopes[l].begin(), tree.scopes[l].end(),
                                    [&](std::size_t length) { return Repeats(counts, length); });
    counts.resize(*scope);
  }
}

}  // namespace heddle::topology
