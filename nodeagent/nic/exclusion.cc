#include "nodeagent/nic/exclusion.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

namespace heddle::nodeagent {
namespace {

using topology::LinkState;

constexpr std::size_t kMinCards = 2;                            // of one card nobody can say what is usual
using OfModel = std::pair<std::string_view, std::string_view>;  // model, and card or place of it

struct Place {
  bool cabled = false, left_out = false;
  std::set<std::string_view> cards;  // on which it is down and another port is up
};

}  // namespace

std::optional<std::string> WhyExcluded(const NicFacts& facts) {
  if (facts.manages_nvlink)
    return "manages the NVLink switches (SW_MNG in its VPD) and carries no traffic of jobs";
  if (facts.virtual_function) return "is a virtual function: its physical function stands for the port";
  if (facts.uncabled && !facts.uncabled_by.empty())
    return fmt::format("has no cable, as --uncabled says ({})", facts.uncabled_by);
  if (facts.uncabled)
    return "has no cable, like this port of every card of its model here: taken for down by design";
  if (!facts.has_ports) return "has no ports";
  if (!facts.served_by.empty())
    return fmt::format("is RDMA in software over an interface that {} serves in hardware", facts.served_by);
  return std::nullopt;
}

bool IsDownByDesign(const PortFacts& facts) {
  return facts.infiniband && facts.disabled && facts.sibling_active && facts.state == LinkState::kDown;
}

std::vector<bool> UncabledByDesign(const std::vector<CardPort>& ports) {
  std::set<OfModel> up;
  for (const CardPort& port : ports) {
    if (port.state == LinkState::kActive) up.emplace(port.model, port.card);
  }
  std::map<OfModel, Place> places;
  for (const CardPort& port : ports) {
    Place& place = places[{port.model, port.place}];
    const bool trains = port.state == LinkState::kUnknown && !port.unread;
    place.cabled = place.cabled || port.state == LinkState::kActive || trains || port.was_up;
    place.left_out = place.left_out || port.left_out;
    if (port.state == LinkState::kDown && up.contains({port.model, port.card})) place.cards.insert(port.card);
  }
  std::vector<bool> uncabled;
  for (const CardPort& port : ports) {
    const Place& place = places[{port.model, port.place}];
    const bool down = port.state == LinkState::kDown || (port.left_out && port.unread);
    const bool usual = !place.cabled && (place.left_out || place.cards.size() >= kMinCards);
    uncabled.push_back(down && (port.named || usual));
  }
  return uncabled;
}

}  // namespace heddle::nodeagent
