#include "formats/ibnetdiscover.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

constexpr std::size_t kMaxProblems = 1000;
constexpr std::size_t kMaxLinks = 512;  // of one node: ports are numbered up to 254

class Reader {
 public:
  void Line(std::string_view line, int number) {
    Scanner scan(line);
    if (scan.AtEnd() || scan.rest().front() == '#') return;
    if (scan.rest().front() == '[') {
      if (!LinkLine(scan)) Complain(line, number);
    } else if (!NodeLine(scan, number) && !Known(scan.rest())) {
      Complain(line, number);
    }
  }
  IbNetwork Finish();

 private:
  bool NodeLine(Scanner scan, int line);
  bool LinkLine(Scanner scan);
  void CheckNode(const IbNode& node);

  // Lines that belong to the format and tell us nothing.
  static bool Known(std::string_view line) {
    constexpr std::array<std::string_view, 9> kWords{
        "vendid=", "devid=",  "sysimgguid=", "switchguid=", "caguid=",
        "rtguid=", "Chassis", "Non-Chassis", "portguid="};
    return std::any_of(kWords.begin(), kWords.end(), [line](auto word) { return line.starts_with(word); });
  }
  void Complain(std::string_view line, int number) {
    Problem(fmt::format("line {} is not ibnetdiscover's: `{}`", number, Printable(line, 120)));
  }
  void Problem(std::string sentence) {
    if (network_.problems.size() < kMaxProblems) network_.problems.push_back(std::move(sentence));
  }

  IbNetwork network_;
  std::map<std::string, std::size_t, std::less<>> by_id_;
};

// After the key word `lid`, wherever the comment has it first.
int LidIn(std::string_view comment) {
  Scanner scan(comment);
  while (!scan.AtEnd()) {
    if (scan.Word() == "lid") return Number<std::uint16_t>(scan.Word()).value_or(0);
  }
  return 0;
}

// `Switch  24 "S-…"  # "ISR9024 Voltaire" base port 0 lid 6 lmc 0`
bool Reader::NodeLine(Scanner scan, int line) {
  IbNode node;
  node.line = line;
  const std::string_view word = scan.Word();
  if (word == "Switch")
    node.kind = IbNodeKind::kSwitch;
  else if (word == "Ca")
    node.kind = IbNodeKind::kChannelAdapter;
  else if (word == "Rt")
    node.kind = IbNodeKind::kRouter;
  else
    return false;
  const auto count = Number<std::uint8_t>(scan.Word());
  scan.SkipBlanks();
  const auto id = scan.Between('"', '"');
  if (!count || !id) return false;
  node.port_count = *count;
  node.id = Printable(*id, 64);
  if (node.id.size() < 3) return false;
  node.guid = "0x" + node.id.substr(2);
  scan.SkipBlanks();
  if (scan.Take("#")) {
    scan.SkipBlanks();
    if (const auto description = scan.Between('"', '"')) node.description = Printable(*description);
    node.lid = LidIn(scan.rest());
  }
  const auto [known, fresh] = by_id_.emplace(node.id, network_.nodes.size());
  if (!fresh) {
    Problem(fmt::format("line {}: {} \"{}\" is listed in line {} already", line, node.id, node.description,
                        network_.nodes[known->second].line));
  }
  network_.nodes.push_back(std::move(node));
  return true;
}

// Behind the name of the other end: "4xEDR". With -f more follows it, ` s=4 w=2 v=4 e=2`; so does a ` slot 3`.
void ReadWidth(std::string_view comment, IbLink& link) {
  Scanner scan(comment.substr(comment.find_last_of('"') + 1));  // all of it where there is no name
  while (!scan.AtEnd()) {
    const std::string_view word = scan.Word();
    const std::size_t x = word.find('x');
    const auto lanes = Number<std::uint8_t>(word.substr(0, x));
    if (x == std::string_view::npos || !lanes) continue;
    link.lanes = *lanes;
    link.speed = Printable(word.substr(x + 1), 16);
    return;
  }
}

// What stands on the outside of a chassis, behind the port of the chip: -g has `[1][ext 22]` at either end.
void SkipOutsideNumber(Scanner& scan) {
  if (scan.rest().starts_with("[ext ")) scan.Between('[', ']');
}

// `[23] "H-0003ba000100e388"[2](3ba000100e38a)  # "nsn33-43 HCA-1" lid 14 4xQDR`; from one adapter to another it is
// `[1](2c90300028479)  "H-0003ba000100e388"[2] (3ba000100e38a)  # lid 3 lmc 0 "nsn33-43 HCA-1" lid 14 4xQDR`.
bool Reader::LinkLine(Scanner scan) {
  const auto port = scan.Between('[', ']');
  SkipOutsideNumber(scan);
  scan.Between('(', ')');
  scan.SkipBlanks();
  const auto remote = scan.Between('"', '"');
  const auto remote_port = scan.Between('[', ']');
  SkipOutsideNumber(scan);
  scan.SkipBlanks();
  if (!port || !remote || !remote_port || network_.nodes.empty()) return false;
  if (network_.nodes.back().links.size() == kMaxLinks) return false;
  const auto number = Number<std::uint8_t>(*port);
  const auto remote_number = Number<std::uint8_t>(*remote_port);
  if (!number || !remote_number) return false;
  IbLink link{*number, Printable(*remote, 64), *remote_number, 0, {}};
  scan.Between('(', ')');
  scan.SkipBlanks();
  if (scan.Take("#")) ReadWidth(scan.rest(), link);
  network_.nodes.back().links.push_back(std::move(link));
  return true;
}

void Reader::CheckNode(const IbNode& node) {
  std::set<int> seen;
  for (const IbLink& link : node.links) {
    if (!seen.insert(link.port).second) {
      Problem(fmt::format("{} \"{}\" port {} has two cables", node.id, node.description, link.port));
    }
    const std::string end =
        fmt::format("{} port {} to {} port {}", node.id, link.port, link.remote_id, link.remote_port);
    const auto other = by_id_.find(link.remote_id);
    if (other == by_id_.end()) {
      Problem(fmt::format("{}: the other end is not in the dump", end));
      continue;
    }
    const auto& back = network_.nodes[other->second].links;
    const bool answered = std::any_of(back.begin(), back.end(), [&](const IbLink& theirs) {
      return theirs.port == link.remote_port && theirs.remote_id == node.id &&
             theirs.remote_port == link.port;
    });
    if (!answered) Problem(fmt::format("{}: the other end does not say so", end));
  }
}

IbNetwork Reader::Finish() {
  std::map<std::string_view, int> names;
  for (const IbNode& node : network_.nodes) {
    CheckNode(node);
    if (node.kind == IbNodeKind::kSwitch && !node.description.empty()) ++names[node.description];
  }
  for (const auto& [name, count] : names) {
    if (count > 1) Problem(fmt::format("{} switches are called \"{}\": told apart by GUID", count, name));
  }
  return std::move(network_);
}

}  // namespace

const IbNode* IbNetwork::Find(std::string_view id) const {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [id](const IbNode& node) { return node.id == id; });
  return found == nodes.end() ? nullptr : &*found;
}

IbNetwork ParseIbNetwork(std::string_view dump) {
  Reader reader;
  ForEachLine(dump, [&reader](std::string_view line, int number) { reader.Line(line, number); });
  return reader.Finish();
}

IbAdapterName ParseIbAdapterName(std::string_view description) {
  IbAdapterName name;
  if (description.find("Aggregation Node") != std::string_view::npos) {
    name.kind = IbAdapterKind::kAggregation;
    return name;
  }
  constexpr std::array<std::string_view, 4> kMakers{"Mellanox Technologies", "InfiniHost", "QLogic",
                                                    "Voltaire"};
  const bool by_maker = std::any_of(kMakers.begin(), kMakers.end(), [&](std::string_view maker) {
    return description.find(maker) != std::string_view::npos;
  });
  Scanner scan(description);
  const std::string_view host = scan.Word(), device = scan.Word();
  if (by_maker || host.empty()) return name;
  name.kind = IbAdapterKind::kHost;
  name.host = Printable(host, 253);
  name.device = device.empty() ? "HCA-1" : Printable(device, 64);
  return name;
}

int IbLinkGbps(const IbLink& link) {
  // Tenths of Gb/s by lane: the signalling rate up to QDR, as people call these links; FDR is 14.
  constexpr std::array<std::pair<std::string_view, int>, 10> kSpeeds{{{"SDR", 25},
                                                                      {"DDR", 50},
                                                                      {"QDR", 100},
                                                                      {"FDR10", 100},
                                                                      {"FDR", 140},
                                                                      {"EDR", 250},
                                                                      {"HDR", 500},
                                                                      {"NDR", 1000},
                                                                      {"XDR", 2000},
                                                                      {"GDR", 4000}}};
  for (const auto& [name, tenths] : kSpeeds) {
    if (link.speed == name) return link.lanes * tenths / 10;
  }
  return 0;
}

bool IsLoopback(const IbNode& node, const IbLink& link) {
  return link.remote_id == node.id;
}

}  // namespace heddle::formats
