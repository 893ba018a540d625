#include "crds/cable_evidence.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

namespace heddle::crds {
namespace {

constexpr std::string_view kAt = "at ";
constexpr std::string_view kLeast = "least ";  // how the evidence of a counter that came to its end begins
constexpr std::string_view kNameless = "the leaf";
constexpr std::string_view kPort = " port ";
constexpr std::string_view kColon = ": ";
constexpr std::string_view kAnd = ", and ";
constexpr std::string_view kHere = "here: ";

// What the leaf said, without its name; nothing where it was not the leaf. "at least 255 link downs in 10 min, and at
// leaf-0 port 2: …" is the port's own.
std::optional<std::string_view> OfLeaf(std::string_view text) {
  if (!text.starts_with(kAt)) return std::nullopt;
  text.remove_prefix(kAt.size());
  if (text.starts_with(kNameless) && text.substr(kNameless.size()).starts_with(kColon))
    return text.substr(kNameless.size() + kColon.size());
  if (text.starts_with(kLeast) && text.find_first_of("0123456789") == kLeast.size()) return std::nullopt;
  // A leaf's name may have anything in it, so the number of its port is looked for.
  for (std::size_t at = text.find(kPort); at != std::string_view::npos; at = text.find(kPort, at + 1)) {
    const std::size_t number = at + kPort.size();
    const std::size_t end = text.find_first_not_of("0123456789", number);
    if (end == std::string_view::npos || end == number) continue;
    if (text.substr(end).starts_with(kColon)) return text.substr(end + kColon.size());
  }
  return std::nullopt;
}

}  // namespace

std::string SaidByLeaf(std::string_view leaf, std::string_view evidence) {
  return fmt::format("{}{}{}{}", kAt, leaf.empty() ? kNameless : leaf, kColon, evidence);
}

std::string BothEnds(std::string_view worse, std::string_view other) {
  return fmt::format("{}{}{}{}", worse, kAnd, OfLeaf(other) ? "" : kHere, other);
}

CableEvidence ReadCableEvidence(std::string_view reason) {
  CableEvidence evidence;
  if (const auto leaf = OfLeaf(reason)) {
    evidence.leaf_worse = true;
    const std::string here = fmt::format("{}{}", kAnd, kHere);
    const std::size_t end = leaf->find(here);
    evidence.leaf = leaf->substr(0, end);
    if (end != std::string_view::npos) evidence.port = leaf->substr(end + here.size());
    return evidence;
  }
  for (std::size_t at = reason.find(kAnd); at != std::string_view::npos; at = reason.find(kAnd, at + 1)) {
    const auto leaf = OfLeaf(reason.substr(at + kAnd.size()));
    if (!leaf) continue;
    return {std::string(reason.substr(0, at)), std::string(*leaf), false};
  }
  evidence.port = reason;
  return evidence;
}

}  // namespace heddle::crds
