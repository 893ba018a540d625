#include "formats/ib_neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

// A host has a few dozen ports; a file with more problems than this is no such file.
constexpr std::size_t kMaxProblems = 20;

constexpr std::array<std::pair<std::string_view, IbNodeKind>, 4> kKinds{{{"none", IbNodeKind::kNone},
                                                                         {"switch", IbNodeKind::kSwitch},
                                                                         {"ca", IbNodeKind::kChannelAdapter},
                                                                         {"router", IbNodeKind::kRouter}}};

std::optional<IbNodeKind> ParseKind(std::string_view word) {
  for (const auto& [name, kind] : kKinds) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

std::string_view KindName(IbNodeKind kind) {
  for (const auto& [name, known] : kKinds) {
    if (known == kind) return name;
  }
  return "none";
}

std::optional<IbNeighbour> ParseLine(std::string_view line) {
  Scanner scan(line);
  IbNeighbour neighbour;
  neighbour.device = Printable(scan.Word());
  const auto port = Number<std::uint8_t>(scan.Word());
  const auto lid = Number<std::uint16_t>(scan.Word());
  const auto kind = ParseKind(scan.Word());
  if (neighbour.device.empty() || !port || *port == 0 || !lid || !kind) return std::nullopt;
  neighbour.port = *port;
  neighbour.lid = *lid;
  neighbour.kind = *kind;
  if (*kind == IbNodeKind::kNone) {
    scan.SkipBlanks();
    neighbour.description = Printable(scan.Between('"', '"').value_or(""));
    return neighbour;
  }
  neighbour.guid = Printable(scan.Word());
  scan.SkipBlanks();
  const auto description = scan.Between('"', '"');
  neighbour.remote_port = Printable(scan.Word());
  if (!neighbour.guid.starts_with("0x") || !description || neighbour.remote_port.empty()) return std::nullopt;
  neighbour.description = Printable(*description);
  return neighbour;
}

}  // namespace

IbNeighbours ParseIbNeighbours(std::string_view text) {
  IbNeighbours found;
  ForEachLine(text, [&found](std::string_view line, int number) {
    Scanner scan(line);
    if (scan.AtEnd() || scan.rest().front() == '#') return;
    if (auto neighbour = ParseLine(scan.rest())) {
      found.entries.push_back(*std::move(neighbour));
    } else if (found.problems.size() < kMaxProblems) {
      found.problems.push_back(fmt::format(
          "ib.txt line {}: want `device port lid switch|ca|router|none guid \"description\" port`, have `{}`",
          number, Printable(line, 80)));
    }
  });
  return found;
}

std::string FormatIbNeighbours(const std::vector<IbNeighbour>& entries) {
  std::string text;
  for (const IbNeighbour& entry : entries) {
    std::string description = Printable(entry.description);
    std::replace(description.begin(), description.end(), '"', '\'');
    text += fmt::format("{} {} {} {}", entry.device, entry.port, entry.lid, KindName(entry.kind));
    if (entry.kind != IbNodeKind::kNone) {
      text += fmt::format(" {} \"{}\" {}", entry.guid, description, entry.remote_port);
    } else if (!description.empty()) {
      text += fmt::format(" \"{}\"", description);
    }
    text += '\n';
  }
  return text;
}

std::string IbSwitchName(std::string_view description, std::string_view guid) {
  constexpr std::array<std::string_view, 3> kDefaults{"Mellanox Technologies", "Infiniscale", "Voltaire"};
  for (const std::string_view word : kDefaults) {
    if (description.find(word) != std::string_view::npos) return std::string(guid);
  }
  return std::string(description.empty() ? guid : description);
}

}  // namespace heddle::formats
