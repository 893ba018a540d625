#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "topology/fabric.h"
#include "topology/fact.h"
#include "topology/node.h"

namespace heddle::topology {
namespace {

// The names of an enum in the order of its values, which start at 0.
constexpr std::array<std::string_view, 4> kMissing = {"Unknown", "NotApplicable", "Stale", "Ambiguous"};
constexpr auto kTransport = std::to_array<std::string_view>({"InfiniBand", "RoCE", "EFA", "Ethernet"});
constexpr std::array<std::string_view, 3> kNicRole = {"compute", "storage", "management"};
constexpr std::array<std::string_view, 3> kLinkState = {"Active", "Down", "Unknown"};
constexpr std::array<std::string_view, 6> kLinkFault = {"None",       "Flapping", "Errors",
                                                        "PauseStorm", "PathLoss", "NotLossless"};
constexpr std::array<std::string_view, 5> kPciDistance = {"PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr std::array<std::string_view, 6> kShape = {"FatTree",   "RailOptimised", "RailOnly",
                                                    "Dragonfly", "Torus3D",       "ToR"};

template <std::size_t N, class Enum>
std::string_view NameOf(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("Unknown");
}

template <class Enum, std::size_t N>
std::optional<Enum> Parse(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view MissingName(Missing missing) {
  return NameOf(kMissing, missing);
}
std::optional<Missing> ParseMissing(std::string_view name) {
  return Parse<Missing>(kMissing, name);
}

std::string_view TransportName(Transport transport) {
  return NameOf(kTransport, transport);
}
std::optional<Transport> ParseTransport(std::string_view name) {
  return Parse<Transport>(kTransport, name);
}
std::span<const std::string_view> TransportNames() {
  return kTransport;
}

std::string_view NicRoleName(NicRole role) {
  return NameOf(kNicRole, role);
}
std::optional<NicRole> ParseNicRole(std::string_view name) {
  return Parse<NicRole>(kNicRole, name);
}

std::string_view LinkStateName(LinkState state) {
  return NameOf(kLinkState, state);
}
std::optional<LinkState> ParseLinkState(std::string_view name) {
  return Parse<LinkState>(kLinkState, name);
}

std::string_view LinkFaultName(LinkFault fault) {
  return NameOf(kLinkFault, fault);
}
std::optional<LinkFault> ParseLinkFault(std::string_view name) {
  return Parse<LinkFault>(kLinkFault, name);
}

std::string_view PciDistanceName(PciDistance distance) {
  return NameOf(kPciDistance, distance);
}
std::optional<PciDistance> ParsePciDistance(std::string_view name) {
  return Parse<PciDistance>(kPciDistance, name);
}

std::string_view ShapeName(Shape shape) {
  return NameOf(kShape, shape);
}
std::optional<Shape> ParseShape(std::string_view name) {
  return Parse<Shape>(kShape, name);
}

}  // namespace heddle::topology
