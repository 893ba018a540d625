#include <algorithm>
#include <set>

#include "crds/gpus_unread.h"
#include "crds/node_topology.h"

namespace heddle::crds {
namespace {

constexpr std::string_view kNone = "-";
constexpr std::string_view kUnknown = "?";

std::string Ratio(std::size_t good, std::size_t all) {
  return std::to_string(good) + "/" + std::to_string(all);
}

std::string Gpus(const topology::Node& node) {
  if (GpusUnread(node)) return std::string(kUnknown);
  const auto healthy = std::size_t(
      std::count_if(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) { return gpu.healthy; }));
  return healthy == node.gpus.size() ? std::to_string(healthy) : Ratio(healthy, node.gpus.size());
}

std::string NvlinkDomain(const topology::Node& node) {
  if (!node.nvlink_domain) {
    return std::string(node.nvlink_domain.missing() == topology::Missing::kNotApplicable ? kNone : kUnknown);
  }
  if (!node.nvlink_domain->spans_nodes) return "node";
  // "<cluster uuid>.<clique>": eight digits of the UUID tell racks apart, and a table has no room for more.
  const std::string& id = node.nvlink_domain->id;
  const std::size_t dash = id.find('-');
  const std::size_t dot = id.rfind('.');
  if (dash != 8 || dot == std::string::npos || dot < dash) return id;
  return id.substr(0, dash) + id.substr(dot);
}

// A rail whose NICs are gone is one that is not up.
std::string Rails(const topology::Node& node, const std::vector<const topology::Nic*>& nics) {
  std::set<int> all;
  std::set<int> up;
  for (const topology::Gpu& gpu : node.gpus) {
    if (gpu.nic_gone) all.insert(gpu.nic_gone->rail);
  }
  bool unknown = false;
  for (const topology::Nic* nic : nics) {
    if (nic->rail) {
      all.insert(*nic->rail);
      if (nic->up()) up.insert(*nic->rail);
    } else if (nic->rail.missing() != topology::Missing::kNotApplicable) {
      unknown = true;
    }
  }
  if (all.empty()) return std::string(unknown ? kUnknown : kNone);
  return Ratio(up.size(), all.size()) + (unknown ? "?" : "");
}

// "su0-r2" before "su0-r10": runs of digits compare as numbers.
bool NaturalLess(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number = [&](std::string_view text, std::size_t& i) {
    while (i < text.size() && text[i] == '0') ++i;
    const std::size_t start = i;
    while (i < text.size() && digit(text[i])) ++i;
    return text.substr(start, i - start);
  };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const std::string_view x = number(a, i);
      const std::string_view y = number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      // As bytes: a char alone is signed on x86-64 and not on arm64, and names need not be ASCII.
      if (a[i] != b[j]) return std::char_traits<char>::lt(a[i], b[j]);
      ++i;
      ++j;
    }
  }
  if (i == a.size() && j == b.size()) return a < b;
  return i == a.size();
}

// "su0-r0…r7": the last name loses the words that it shares with the first.
std::string Shorten(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  const std::string& last = names.back();
  if (names.size() == 1) return first;
  if (names.size() == 2 && first.size() + last.size() < 24) return first + "," + last;
  std::size_t shared = 0;
  for (std::size_t i = 0; i < std::min(first.size(), last.size()) && first[i] == last[i]; ++i) {
    if (std::string_view("-_./: ").find(first[i]) != std::string_view::npos) shared = i + 1;
  }
  return first + "…" + last.substr(shared);
}

std::string Leaf(const std::vector<const topology::Nic*>& nics) {
  std::vector<std::string> leaves;
  bool unknown = false;
  for (const topology::Nic* nic : nics) {
    for (const topology::NicPort& port : nic->ports) {
      if (port.leaf_port) {
        leaves.push_back(port.leaf_port->leaf);
      } else if (port.leaf_port.missing() != topology::Missing::kNotApplicable) {
        unknown = true;
      }
    }
  }
  if (leaves.empty()) return std::string(unknown ? kUnknown : kNone);
  std::sort(leaves.begin(), leaves.end(), NaturalLess);
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  return Shorten(leaves);
}

std::string Transport(const std::vector<const topology::Nic*>& nics) {
  if (nics.empty()) return std::string(kNone);
  const bool same = std::all_of(nics.begin(), nics.end(), [&](const topology::Nic* nic) {
    return nic->transport == nics[0]->transport;
  });
  return same ? std::string(topology::TransportName(nics[0]->transport)) : "Mixed";
}

}  // namespace

NodeSummary Summarise(const topology::Node& node) {
  std::vector<const topology::Nic*> compute;
  for (const topology::Nic& nic : node.nics) {
    if (nic.role == topology::NicRole::kCompute) compute.push_back(&nic);
  }
  NodeSummary summary;
  summary.machine = node.machine.empty() ? std::string(kUnknown) : node.machine;
  summary.gpus = Gpus(node);
  summary.nvlink_domain = NvlinkDomain(node);
  summary.rails = Rails(node, compute);
  summary.leaf = Leaf(compute);
  summary.transport = Transport(compute);
  return summary;
}

}  // namespace heddle::crds
