#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "topology/fabric.h"

namespace heddle::topology {
namespace {

class FabricDiff {
 public:
  FabricDiff(const Fabric& before, const Fabric& after) : before_(before), after_(after) {}

  std::vector<std::string> Run() && {
    Changed("transport", TransportName(before_.transport), TransportName(after_.transport));
    Changed("site", before_.site, after_.site);
    Changed("shape", ShapeName(before_.shape), ShapeName(after_.shape));
    Changed("rails", before_.rails, after_.rails);
    Named(
        "leaf ", before_.leaves, after_.leaves, [](const Leaf& leaf) { return leaf.name; },
        [this](const Leaf& a, const Leaf& b) { DiffLeaf(a, b); });
    Named(
        "spine ", before_.spines, after_.spines, [](const Spine& spine) { return spine.name; },
        [this](const Spine& a, const Spine& b) { DiffSpine(a, b); });
    Named(
        "", before_.units, after_.units, [](const Unit& unit) { return unit.name; },
        [this](const Unit& a, const Unit& b) { Changed(a.name + " nodes", a.nodes.size(), b.nodes.size()); });
    Named(
        "NVLink domain ", before_.domains, after_.domains,
        [](const NvlinkDomain& domain) { return domain.id; },
        [this](const NvlinkDomain& a, const NvlinkDomain& b) {
          Changed("NVLink domain " + a.id + " GPUs", a.gpus, b.gpus);
        });
    Named(
        "node ", before_.nodes, after_.nodes, [](const FabricNode& node) { return node.node.name; },
        [this](const FabricNode& a, const FabricNode& b) { DiffNode(a, b); });
    DiffSentences("fault", SentencesOf(before_.faults), SentencesOf(after_.faults));
    DiffSentences("assumption", Set(before_.assumptions.begin(), before_.assumptions.end()),
                  Set(after_.assumptions.begin(), after_.assumptions.end()));
    if (!(before_.declaration == after_.declaration)) sentences_.emplace_back("the declaration changed");
    if (sentences_.empty() && !(before_ == after_)) sentences_.emplace_back("its numbering changed");
    return std::move(sentences_);
  }

 private:
  using Set = std::set<std::string>;

  template <class T>
  void Changed(const std::string& what, const T& before, const T& after) {
    if (before == after) return;
    sentences_.push_back(fmt::format("{}: {} -> {}", what, before, after));
  }

  template <class T, class Key, class Diff>
  void Named(std::string_view kind, const std::vector<T>& before, const std::vector<T>& after, Key key,
             Diff diff) {
    std::map<std::string, std::pair<const T*, const T*>> pairs;
    for (const T& item : before) pairs[key(item)].first = &item;
    for (const T& item : after) pairs[key(item)].second = &item;
    for (const auto& [name, pair] : pairs) {
      if (pair.first == nullptr) {
        sentences_.push_back(fmt::format("{}{}: appeared", kind, name));
      } else if (pair.second == nullptr) {
        sentences_.push_back(fmt::format("{}{}: is gone", kind, name));
      } else {
        diff(*pair.first, *pair.second);
      }
    }
  }

  static std::string RailName(const Leaf& leaf) {
    return leaf.rail ? fmt::format("{}", *leaf.rail) : std::string(MissingName(leaf.rail.missing()));
  }
  template <class T>
  static std::string NameIn(const std::vector<T>& items, std::int32_t id) {
    if (id == kNone) return "none";
    if constexpr (requires { items[0].name; }) {
      return items[std::size_t(id)].name;
    } else {
      return items[std::size_t(id)].id;
    }
  }

  void DiffLeaf(const Leaf& before, const Leaf& after) {
    const std::string what = "leaf " + before.name;
    Changed(what + " rail", RailName(before), RailName(after));
    Changed(what + " unit", NameIn(before_.units, before.unit), NameIn(after_.units, after.unit));
    Changed(what + " Gb/s down", before.down_gbps, after.down_gbps);
    Changed(what + " Gb/s up", before.up_gbps, after.up_gbps);
  }

  void DiffSpine(const Spine& before, const Spine& after) {
    const std::string what = "spine " + before.name;
    Changed(what + " tier", before.tier, after.tier);
    Changed(what + " Gb/s down", before.down_gbps, after.down_gbps);
    Changed(what + " Gb/s up", before.up_gbps, after.up_gbps);
  }

  void DiffNode(const FabricNode& before, const FabricNode& after) {
    const std::string& name = before.node.name;
    Changed(name + " unit", NameIn(before_.units, before.unit), NameIn(after_.units, after.unit));
    Changed(name + " NVLink domain", NameIn(before_.domains, before.domain),
            NameIn(after_.domains, after.domain));
    for (const std::string& sentence : Diff(before.node, after.node)) {
      sentences_.push_back(fmt::format("{} {}", name, sentence));
    }
  }

  static Set SentencesOf(const std::vector<CablingFault>& faults) {
    Set sentences;
    for (const CablingFault& fault : faults) sentences.insert(fault.sentence);
    return sentences;
  }

  void DiffSentences(std::string_view kind, const Set& before, const Set& after) {
    for (const std::string& sentence : after) {
      if (!before.contains(sentence)) sentences_.push_back(fmt::format("new {}: {}", kind, sentence));
    }
    for (const std::string& sentence : before) {
      if (!after.contains(sentence)) sentences_.push_back(fmt::format("{} no longer: {}", kind, sentence));
    }
  }

  const Fabric& before_;
  const Fabric& after_;
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> Diff(const Fabric& before, const Fabric& after) {
  return FabricDiff(before, after).Run();
}

}  // namespace heddle::topology
