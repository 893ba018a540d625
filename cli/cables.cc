#include "cli/cables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "cli/advice.h"
#include "crds/port_name.h"

namespace heddle::cli {
namespace {

using topology::CablingFault;
using topology::Fabric;
using topology::Nic;
using topology::NicPort;

using PortKey = std::tuple<std::string, std::string, int>;  // node, nic, port

// What the fabric's assembly says of ports: of several faults the first, which is the worst.
std::map<PortKey, const CablingFault*> FaultsOf(const Fabric& fabric) {
  std::map<PortKey, const CablingFault*> faults;
  for (const CablingFault& fault : fabric.faults)
    faults.try_emplace({fault.node, fault.nic, fault.port}, &fault);
  return faults;
}

// The other end of a swap, as the fault's sentence has it: "gpu-017 mlx5_4 on su1-r3 port 18".
std::string SwappedWith(const CablingFault& fault) {
  constexpr std::string_view kWords = ": swapped with ";
  const std::size_t at = fault.sentence.find(kWords);
  if (at == std::string::npos) return "";
  const std::string other = fault.sentence.substr(at + kWords.size());
  return other.substr(0, other.find(','));
}

std::optional<int> RailOfLeaf(const Fabric& fabric, const std::string& leaf) {
  const topology::LeafId id = fabric.FindLeaf(leaf);
  if (id == topology::kNone || !fabric.leaves[std::size_t(id)].rail) return std::nullopt;
  return *fabric.leaves[std::size_t(id)].rail;
}

CableVerdict VerdictOf(const CablingFault& fault, const CableRow& row) {
  if (fault.ambiguous) return CableVerdict::kAmbiguous;
  if (!row.swapped_with.empty()) return CableVerdict::kSwapped;
  if (fault.expected_leaf.empty()) return CableVerdict::kContradiction;
  return row.leaf_rail && row.rail && *row.leaf_rail != *row.rail ? CableVerdict::kWrongRail
                                                                  : CableVerdict::kWrongLeaf;
}

CableVerdict VerdictOf(topology::Missing missing) {
  switch (missing) {
    case topology::Missing::kStale:
      return CableVerdict::kStale;
    case topology::Missing::kAmbiguous:
      return CableVerdict::kAmbiguous;
    case topology::Missing::kNotApplicable:
      return CableVerdict::kNotJudged;
    case topology::Missing::kUnknown:
      break;
  }
  return CableVerdict::kUnknown;
}

// `in_files`: there may be no cluster that could say more.
std::string WhyNotKnown(CableVerdict verdict, bool in_files) {
  switch (verdict) {
    case CableVerdict::kStale:
      return in_files ? "its switch was known and was no longer heard"
                      : "its switch was known and is no longer heard: LLDP there, or the subnet manager";
    case CableVerdict::kAmbiguous:
      return in_files ? "several switches answered for it"
                      : "several switches answer for it: `kubectl describe nt` has what was heard";
    case CableVerdict::kUnknown:
      return in_files ? "the files do not say where it ends"
                      : "no switch answers for it: `kubectl describe nt`, LeavesKnown, says why";
    default:
      return "";
  }
}

// What a port's row is made with.
struct Around {
  const Fabric* fabric = nullptr;  // null = its node is in none
  const std::map<PortKey, const CablingFault*>& faults;
  bool in_files = false;
};

CableRow RowOf(const std::string& node, const Nic& nic, const NicPort& port, const Around& around) {
  const auto& [fabric, faults, in_files] = around;
  CableRow row{.node = node, .nic = nic.name, .netdev = nic.netdev, .port = port.number};
  if (nic.rail) row.rail = *nic.rail;
  if (port.leaf_port) {
    row.leaf = port.leaf_port->leaf;
    row.leaf_port = port.leaf_port->port;
    if (fabric != nullptr) row.leaf_rail = RailOfLeaf(*fabric, row.leaf);
    row.expected_leaf = row.leaf;
  }
  const auto fault = faults.find({node, nic.name, port.number});
  if (fault != faults.end()) {
    row.expected_leaf = fault->second->expected_leaf;
    row.swapped_with = SwappedWith(*fault->second);
    row.sentence = fault->second->sentence;
    row.verdict = VerdictOf(*fault->second, row);
    if (IsFault(row.verdict)) return row;
  }
  if (port.state == topology::LinkState::kDown) {
    row.verdict = CableVerdict::kDown;
    row.sentence = port.reason.empty() ? "the link is down: cable, transceiver or leaf port" : port.reason;
  } else if (!port.leaf_port) {
    row.verdict = VerdictOf(port.leaf_port.missing());
    row.sentence = WhyNotKnown(row.verdict, in_files);
  } else if (fault == faults.end() && fabric == nullptr) {
    row.verdict = CableVerdict::kNotJudged;
    row.sentence = "its node is left out of the fabric: spec.excludedNodes";
  }
  return row;
}

std::string Rail(std::optional<int> rail) {
  return rail ? std::to_string(*rail) : "";
}

// Quoted where RFC 4180 wants it.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// What a person does there.
std::string Detail(const CableRow& row) {
  std::string belongs = row.expected_leaf.empty() ? "" : "belongs on " + row.expected_leaf;
  switch (row.verdict) {
    case CableVerdict::kSwapped:
      return fmt::format("swap it with {}{}", row.swapped_with, belongs.empty() ? "" : "; " + belongs);
    case CableVerdict::kWrongRail:
      return fmt::format("{}: this leaf has rail {}", belongs, Rail(row.leaf_rail));
    case CableVerdict::kWrongLeaf:
      return belongs;
    default:
      return row.sentence;
  }
}

std::string Counts(const std::vector<CableRow>& rows) {
  std::map<CableVerdict, std::size_t> counts;
  for (const CableRow& row : rows) ++counts[row.verdict];
  std::string text = base::Counted(rows.size(), "port");
  const char* before = ": ";
  for (const auto& [verdict, count] : counts) {
    text += fmt::format("{}{} {}", before, count, CableVerdictName(verdict));
    before = ", ";
  }
  return text + "\n";
}

}  // namespace

std::string_view CableVerdictName(CableVerdict verdict) {
  switch (verdict) {
    case CableVerdict::kSwapped:
      return "swapped";
    case CableVerdict::kWrongRail:
      return "wrong rail";
    case CableVerdict::kWrongLeaf:
      return "wrong leaf";
    case CableVerdict::kContradiction:
      return "contradiction";
    case CableVerdict::kDown:
      return "down";
    case CableVerdict::kAmbiguous:
      return "ambiguous";
    case CableVerdict::kStale:
      return "stale";
    case CableVerdict::kUnknown:
      return "unknown";
    case CableVerdict::kNotJudged:
      return "not judged";
    case CableVerdict::kOk:
      break;
  }
  return "ok";
}

std::vector<CableRow> ReadCables(const FabricReading& reading) {
  std::map<std::string_view, const Fabric*> fabric_of;
  std::map<const Fabric*, std::map<PortKey, const CablingFault*>> faults;
  for (const FabricPtr& fabric : reading.fabrics) {
    faults[fabric.get()] = FaultsOf(*fabric);
    for (const topology::FabricNode& member : fabric->nodes) fabric_of[member.node.name] = fabric.get();
  }
  std::vector<CableRow> rows;
  for (const crds::NodeTopology& topology : reading.topologies) {
    const auto found = fabric_of.find(topology.name);
    const Fabric* fabric = found == fabric_of.end() ? nullptr : found->second;
    for (const Nic& nic : topology.status.node.nics) {
      if (nic.role != topology::NicRole::kCompute) continue;
      for (const NicPort& port : nic.ports)
        rows.push_back(RowOf(topology.name, nic, port, {fabric, faults[fabric], reading.in_files}));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const CableRow& a, const CableRow& b) {
    return std::tie(a.verdict, a.node) < std::tie(b.verdict, b.node);  // NICs stand sorted in their node
  });
  return rows;
}

crds::Json CablesJson(const std::vector<CableRow>& rows) {
  using crds::Json;
  Json items = Json::array();
  for (const CableRow& row : rows) {
    items.push_back({{"verdict", CableVerdictName(row.verdict)},
                     {"node", row.node},
                     {"nic", row.nic},
                     {"port", row.port},
                     {"netdev", row.netdev},
                     {"rail", row.rail ? Json(*row.rail) : Json()},
                     {"expectedLeaf", row.expected_leaf},
                     {"leaf", row.leaf},
                     {"leafPort", row.leaf_port},
                     {"leafRail", row.leaf_rail ? Json(*row.leaf_rail) : Json()},
                     {"swappedWith", row.swapped_with},
                     {"message", row.sentence}});
  }
  return {{"items", std::move(items)}};
}

std::string CablesCsv(const std::vector<CableRow>& rows) {
  std::string text =
      "verdict,node,nic,port,netdev,rail,expected_leaf,leaf,leaf_port,leaf_rail,swapped_with,message\r\n";
  for (const CableRow& row : rows) {
    const std::vector<std::string> fields{std::string(CableVerdictName(row.verdict)),
                                          row.node,
                                          row.nic,
                                          std::to_string(row.port),
                                          row.netdev,
                                          Rail(row.rail),
                                          row.expected_leaf,
                                          row.leaf,
                                          row.leaf_port,
                                          Rail(row.leaf_rail),
                                          row.swapped_with,
                                          row.sentence};
    for (std::size_t i = 0; i < fields.size(); ++i)
      text += (i == 0 ? "" : ",") + Field(WithoutControls(fields[i]));
    text += "\r\n";
  }
  return text;
}

std::string CablesText(const std::vector<CableRow>& rows, const Style& style) {
  std::vector<AdviceRow> lines;
  for (const CableRow& row : rows) {
    const Colour colour = IsFault(row.verdict)               ? Colour::kBad
                          : row.verdict == CableVerdict::kOk ? Colour::kGood
                                                             : Colour::kNone;
    lines.push_back({{Cell(std::string(CableVerdictName(row.verdict)), colour), Cell(row.node),
                      Cell(crds::PortName(row.nic, row.port)), Cell(row.netdev), Cell(Rail(row.rail)),
                      Cell(row.leaf), Cell(row.leaf_port)},
                     Detail(row)});
  }
  return AdviceText({"VERDICT", "NODE", "PORT", "NETDEV", "RAIL", "LEAF", "LEAF PORT", "WHAT TO DO"}, lines,
                    style) +
         "\n" + Counts(rows);
}

}  // namespace heddle::cli
