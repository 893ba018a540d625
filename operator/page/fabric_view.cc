#include "operator/page/fabric_view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "operator/page/gang_piece.h"
#include "operator/page/node_piece.h"
#include "operator/page/text.h"

namespace heddle::operators::page {
namespace {

using kube::Json;

constexpr std::size_t kMaxSentences = 100;  // of a fabric; its Fabric object has no more either
constexpr std::size_t kMaxSentence = 400;
constexpr std::size_t kMaxSuspect = 800;  // it ends with what to do
constexpr std::size_t kMaxGangs = 2000;
constexpr std::size_t kMaxEnded = 100;      // of these
constexpr std::size_t kMaxUnread = 100;     // of these
constexpr std::size_t kFirstWaiting = 500;  // of these, before those that hold something

// A rail that one leaf has not, because all of its hosts' end there, is another thing than one that nobody knows.
int RailOf(const topology::Leaf& leaf) {
  if (leaf.rail) return *leaf.rail;
  return leaf.rail.missing() == topology::Missing::kNotApplicable ? -1 : -2;
}

// The worst first: the host at a cable's end, or that is one itself, and what stands against it. No host: "".
Json SuspectsOf(const topology::Fabric& fabric, const std::vector<topology::Suspect>& suspects) {
  Json piece = Json::array();
  for (const topology::Suspect& suspect : suspects) {
    const bool host = fabric.FindNode(suspect.node) != topology::kNone;
    if (piece.size() < kMaxSentences)
      piece.push_back(
          Json::array({host ? suspect.node : "", Cut(topology::SentenceOf(suspect), kMaxSuspect)}));
  }
  return piece;
}

Json FabricPiece(const std::string& name, const topology::Fabric& fabric,
                 const std::vector<topology::Suspect>& suspects) {
  Json leaves = Json::array(), spines = Json::array(), units = Json::array(), domains = Json::array();
  for (const topology::Leaf& leaf : fabric.leaves)
    leaves.push_back(
        {leaf.name, RailOf(leaf), leaf.plane, leaf.unit, leaf.spines, leaf.down_gbps, leaf.up_gbps});
  for (const topology::Spine& spine : fabric.spines)
    spines.push_back({spine.name, spine.tier, spine.uplinks});
  for (const topology::Unit& unit : fabric.units) units.push_back(unit.name);
  for (const topology::NvlinkDomain& domain : fabric.domains) {
    if (domain.spans_nodes) domains.push_back({domain.id, domain.nodes.size(), domain.gpus});
  }
  Json faults = Json::array(), assumptions = Json::array();
  for (const topology::CablingFault& fault : fabric.faults) {
    if (faults.size() < kMaxSentences) faults.push_back({fault.node, Cut(fault.sentence, kMaxSentence)});
  }
  for (const std::string& sentence : fabric.assumptions) {
    if (assumptions.size() < kMaxSentences) assumptions.push_back(Cut(sentence, kMaxSentence));
  }
  return {{"name", name},
          {"transport", topology::TransportName(fabric.transport)},
          {"site", fabric.site},
          {"shape", topology::ShapeName(fabric.shape)},
          {"rails", fabric.rails},
          {"leaves", std::move(leaves)},
          {"spines", std::move(spines)},
          {"units", std::move(units)},
          {"domains", std::move(domains)},
          {"faults", std::move(faults)},
          {"suspects", SuspectsOf(fabric, suspects)},
          {"assumptions", std::move(assumptions)}};
}

std::vector<FabricIndex> IndexesOf(const Assembly& assembly) {
  std::vector<FabricIndex> indexes;
  for (const auto& [name, fabric] : assembly.fabrics) {
    FabricIndex index{.number = int(indexes.size()), .fabric = &fabric};
    int spanning = 0;
    for (const topology::NvlinkDomain& domain : fabric.domains)
      index.domains.push_back(domain.spans_nodes ? spanning++ : -1);
    for (const topology::CablingFault& fault : fabric.faults) index.faults[fault.node].push_back(&fault);
    indexes.push_back(std::move(index));
  }
  return indexes;
}

base::WallTime EndedAt(const crds::Gang& gang) {
  const crds::Condition* ended = crds::FindCondition(gang.status.conditions, crds::kEnded);
  return ended == nullptr ? base::WallTime() : ended->last_transition;
}

struct ChosenGangs {
  std::vector<const crds::Gang*> shown;
  std::size_t left_out = 0;  // that have not ended
};

// Those in trouble first, then some that wait and all that hold something, so that neither hides the other where there
// are thousands; then the last that ended: one that ran for weeks was planned before all others, and mode observe plans
// none.
ChosenGangs Chosen(const std::vector<crds::Gang>& gangs, std::size_t limit) {
  std::vector<const crds::Gang*> shown, waiting, holding, ended;
  for (const crds::Gang& gang : gangs) {
    const std::string_view state = GangStateOf(gang.status);
    if (state == "ended") {
      ended.push_back(&gang);
    } else if (state == "degraded") {
      shown.push_back(&gang);
    } else {
      (state == "waiting" ? waiting : holding).push_back(&gang);
    }
  }
  const auto later = waiting.begin() + std::ptrdiff_t(std::min(waiting.size(), kFirstWaiting));
  shown.insert(shown.end(), waiting.begin(), later);
  shown.insert(shown.end(), holding.begin(), holding.end());
  shown.insert(shown.end(), later, waiting.end());
  const std::size_t left_out = shown.size() - std::min(shown.size(), limit);
  shown.resize(shown.size() - left_out);
  std::stable_sort(ended.begin(), ended.end(),
                   [](const crds::Gang* a, const crds::Gang* b) { return EndedAt(*a) > EndedAt(*b); });
  ended.resize(std::min({ended.size(), kMaxEnded, limit - shown.size()}));
  shown.insert(shown.end(), ended.begin(), ended.end());
  return {.shown = std::move(shown), .left_out = left_out};
}

void PutGangs(const Seen& seen, const std::map<std::string, int, std::less<>>& nodes, Pieces& pieces) {
  const std::size_t unread = std::min(seen.unread_gangs.size(), kMaxUnread);
  for (const auto& [key, error] : seen.unread_gangs) {
    if (pieces.gangs.size() == unread) break;
    pieces.gangs[key.ToString()] = Dump(UnreadGangPiece(key, error));
  }
  const ChosenGangs chosen = Chosen(seen.gangs, kMaxGangs - unread);
  for (const crds::Gang* gang : chosen.shown)
    pieces.gangs[gang->ns + "/" + gang->name] = Dump(GangPiece(*gang, nodes));
  pieces.gangs_left_out = chosen.left_out + seen.unread_gangs.size() - unread;
}

Json SourcesPiece(const std::vector<Source>& sources) {
  Json piece = Json::array();
  for (const Source& source : sources) {
    Json one = {{"kind", source.kind}};
    if (!source.error.empty()) one["error"] = Cut(source.error, kMaxSentence);
    if (!source.since.empty()) one["since"] = source.since;
    piece.push_back(std::move(one));
  }
  return piece;
}

}  // namespace

Pieces Show(const Seen& seen) {
  const std::vector<FabricIndex> indexes = IndexesOf(seen.assembly);
  // Of several fabrics that a node belongs to, the first by name wins, as with its labels.
  std::map<std::string, const FabricIndex*, std::less<>> names;
  for (const FabricIndex& index : indexes) {
    for (const topology::FabricNode& member : index.fabric->nodes) names.emplace(member.node.name, &index);
  }
  for (const std::string& name : seen.topologies) names.emplace(name, nullptr);

  Pieces pieces{.sources = Dump(SourcesPiece(seen.sources))};
  Json fabrics = Json::array();
  for (const auto& [name, fabric] : seen.assembly.fabrics) {
    const auto suspects = seen.suspects.find(name);
    fabrics.push_back(FabricPiece(
        name, fabric, suspects == seen.suspects.end() ? std::vector<topology::Suspect>{} : suspects->second));
  }
  pieces.fabrics = Dump(fabrics);
  static const FabricIndex kNoFabric;
  std::map<std::string, int, std::less<>> numbers;
  for (const auto& [name, index] : names) {
    numbers.emplace(name, int(numbers.size()));
    pieces.nodes.emplace_hint(pieces.nodes.end(), name,
                              NodePiece(name, seen, index == nullptr ? kNoFabric : *index));
  }
  PutGangs(seen, numbers, pieces);
  return pieces;
}

}  // namespace heddle::operators::page
