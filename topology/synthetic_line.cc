#include "topology/synthetic_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/check.h"

namespace heddle::topology {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

constexpr std::string_view kWords =
    "badgpu, down, dragonfly, dualtor, gpu, half, machine, nic, node, nvl, oversub, plane, rack, rail, "
    "railonly, rate, "
    "site, spine, su, swap, tor, torus, transport, tray";
// The largest that a line makes: four times the largest cluster that Heddle is measured on.
constexpr long long kMaxNodes = 65'536;
constexpr long long kMaxGpus = 524'288;

struct TransportWord {
  std::string_view word;
  Transport transport;
};
constexpr std::array<TransportWord, 4> kTransports = {{{"ib", Transport::kInfiniBand},
                                                       {"roce", Transport::kRoce},
                                                       {"efa", Transport::kEfa},
                                                       {"ethernet", Transport::kEthernet}}};

// One direction, all links: 12 and 18 links of 25 GB/s, 18 of 50 GB/s.
const std::array<SyntheticMachine, 6>& Machines() {
  static const std::array<SyntheticMachine, 6> kMachines = {{
      {"a100", "HGX A100", "NVIDIA A100-SXM4-80GB", 80, {3, 12, 2400, {}}},
      {"b200", "HGX B200", "NVIDIA B200", 180, {5, 18, 7200, {}}},
      {"gb200", "GB200 NVL72", "NVIDIA GB200", 186, {5, 18, 7200, {}}},
      {"h100", "HGX H100", "NVIDIA H100 80GB HBM3", 80, {4, 18, 3600, {}}},
      {"h200", "HGX H200", "NVIDIA H200", 141, {4, 18, 3600, {}}},
      {"l40s", "L40S server", "NVIDIA L40S", 48, {}},
  }};
  return kMachines;
}

const SyntheticMachine* FindMachine(std::string_view word) {
  const auto found = std::find_if(Machines().begin(), Machines().end(),
                                  [&](const SyntheticMachine& machine) { return machine.word == word; });
  return found == Machines().end() ? nullptr : &*found;
}

std::optional<int> Number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || text.front() == '-') {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

class LineReader {
 public:
  Result<SyntheticLine> Read(std::string_view text) && {
    TRY(ReadWords(text));
    TRY(ReadLayout());
    TRY(ReadNumbers());
    TRY(ReadNames());
    TRY(CheckTogether());
    std::sort(line_.faults.begin(), line_.faults.end());
    return std::move(line_);
  }

 private:
  static bool IsFlag(std::string_view word) {
    return word == "nvl" || word == "railonly" || word == "dualtor";
  }
  static bool IsFault(std::string_view word) {
    return word == "down" || word == "half" || word == "swap" || word == "badgpu";
  }
  static bool IsKnown(std::string_view word) {
    const auto words = Split(kWords, ',');
    return std::any_of(words.begin(), words.end(), [&](std::string_view known) {
      if (known.starts_with(' ')) known.remove_prefix(1);
      return known == word;
    });
  }

  Status ReadWords(std::string_view text) {
    for (const std::string_view item : Split(text, ' ')) {
      if (item.empty()) continue;
      const std::size_t colon = item.find(':');
      const std::string_view word = item.substr(0, colon);
      const std::string_view value =
          colon == std::string_view::npos ? std::string_view{} : item.substr(colon + 1);
      if (!IsKnown(word)) {
        return Fail(Code::kInvalid, fmt::format("{}: unknown word; the words are {}", word, kWords));
      }
      if (IsFlag(word) != (colon == std::string_view::npos)) {
        return Fail(Code::kInvalid, IsFlag(word) ? fmt::format("{}: takes no value", item)
                                                 : fmt::format("{}: needs a value, as in {}:2", word, word));
      }
      if (IsFault(word)) {
        TRY(ReadFault(word, value));
      } else if (!values_.emplace(word, value).second) {
        return Fail(Code::kInvalid, fmt::format("{}: said twice; the words are {}", word, kWords));
      }
    }
    return {};
  }

  Status ReadFault(std::string_view word, std::string_view value) {
    const auto parts = Split(value, '/');
    const auto rail = [](std::string_view part) {
      return part.starts_with("rail-") ? Number(part.substr(5)) : std::nullopt;
    };
    SyntheticFault fault{std::string(word), std::string(parts.front()), 0, "", 0};
    std::optional<int> first, second;
    std::string_view form = "node-3/rail-2";
    if (word == "badgpu") {
      form = "node-3/5";
      if (parts.size() == 2) first = second = Number(parts[1]);
    } else if (word == "swap") {
      form = "node-3/rail-1/rail-2 or node-3/rail-1/node-9/rail-1";
      if (parts.size() == 3 || parts.size() == 4) {
        first = rail(parts[1]);
        second = rail(parts.back());
        fault.other_node = parts.size() == 4 ? parts[2] : parts[0];
      }
    } else if (parts.size() == 2) {
      first = second = rail(parts[1]);
    }
    if (!first || !second || parts.front().empty()) {
      return Fail(Code::kInvalid, fmt::format("{}:{}: want {}:{}", word, value, word, form));
    }
    fault.number = *first;
    fault.other = word == "swap" ? *second : 0;
    line_.faults.push_back(std::move(fault));
    return {};
  }

  bool Has(std::string_view word) const { return values_.contains(word); }

  // Which words shape the cluster, and which of them need each other.
  Status ReadLayout() {
    struct Rule {
      Layout layout;
      std::string_view key;  // the word that tells this layout from those below it
      std::vector<std::string_view> needs, takes;
    };
    const std::vector<Rule> rules = {
        {Layout::kTorus, "torus", {}, {}},
        {Layout::kDragonfly, "dragonfly", {"tor", "node"}, {"dualtor"}},
        {Layout::kTor, "tor", {"node"}, {"dualtor", "spine"}},
        {Layout::kRacks, "rack", {"tray"}, {"su", "nvl", "rail", "plane", "spine", "railonly"}},
        {Layout::kUnits, "su", {"node"}, {"rail", "plane", "spine", "railonly", "nvl"}},
    };
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const Rule& r) { return Has(r.key); });
    if (rule == rules.end()) {
      return Fail(Code::kInvalid,
                  "what shape? Say su and node, rack and tray, tor and node, dragonfly, or torus");
    }
    for (const std::string_view word : rule->needs) {
      if (!Has(word)) return Fail(Code::kInvalid, fmt::format("{}: needs {} beside it", rule->key, word));
    }
    // Rails of one ToR are not rails, but a torus and a ToR may still have more NICs than one.
    for (const std::string_view word : {"torus", "dragonfly", "tor", "rack", "su", "node", "tray", "dualtor",
                                        "spine", "nvl", "plane", "railonly"}) {
      const auto in = [&](const std::vector<std::string_view>& words) {
        return std::find(words.begin(), words.end(), word) != words.end();
      };
      if (Has(word) && word != rule->key && !in(rule->needs) && !in(rule->takes)) {
        return Fail(Code::kInvalid, fmt::format("{}: does not go with {}", word, rule->key));
      }
    }
    line_.layout = rule->layout;
    line_.units_given = Has("su");
    return {};
  }

  Status Take(std::string_view word, int lowest, int highest, int& into) const {
    const auto found = values_.find(word);
    if (found == values_.end()) return {};
    const std::optional<int> number = Number(found->second);
    if (!number || *number < lowest || *number > highest) {
      return Fail(Code::kInvalid, fmt::format("{}:{}: must be a whole number from {} to {}", word,
                                              found->second, lowest, highest));
    }
    into = *number;
    return {};
  }

  Status ReadNumbers() {
    TRY(Take("site", 1, 64, line_.sites));
    TRY(Take("dragonfly", 1, 4096, line_.groups));
    TRY(Take("su", 1, 4096, line_.units));
    TRY(Take("rack", 1, 4096, line_.racks));
    TRY(Take("tor", 1, 16'384, line_.tors));
    TRY(Take("node", 1, 16'384, line_.hosts));
    TRY(Take("tray", 1, 576, line_.hosts));
    TRY(Take("gpu", 0, 64, line_.gpus));
    line_.nics = line_.gpus;
    TRY(Take("nic", 0, 64, line_.nics));
    line_.rails = line_.nics;
    TRY(Take("rail", 0, 64, line_.rails));
    TRY(Take("plane", 1, 13, line_.planes));
    TRY(Take("rate", 1, 12'800, line_.rate_gbps));
    TRY(Take("oversub", 100, 100'000, line_.oversubscription_percent));
    line_.nvlink_over_nodes = Has("nvl");
    line_.rail_only = Has("railonly");
    line_.dual_tor = Has("dualtor");
    const bool no_spines =
        line_.rail_only || line_.layout == Layout::kTorus || line_.layout == Layout::kDragonfly;
    if (no_spines) line_.spines = 0;
    TRY(Take("spine", 0, no_spines ? 0 : 4096, line_.spines));
    if (line_.layout != Layout::kTorus) return {};
    const std::string_view size = values_.at("torus");
    const auto sides = Split(size, 'x');
    for (std::size_t i = 0; i < sides.size() && i < 3; ++i) line_.torus[i] = Number(sides[i]).value_or(0);
    if (sides.size() != 3 || *std::min_element(line_.torus.begin(), line_.torus.end()) < 1 ||
        *std::max_element(line_.torus.begin(), line_.torus.end()) > 1024) {
      return Fail(Code::kInvalid,
                  fmt::format("torus:{}: want three sides from 1 to 1024, as torus:4x4x4", size));
    }
    return {};
  }

  Status ReadNames() {
    if (const auto said = values_.find("transport"); said != values_.end()) {
      const auto found = std::find_if(kTransports.begin(), kTransports.end(),
                                      [&](const TransportWord& known) { return known.word == said->second; });
      if (found == kTransports.end()) {
        return Fail(Code::kInvalid,
                    fmt::format("transport:{}: must be ib, roce, efa or ethernet", said->second));
      }
      line_.transport = found->transport;
    }
    if (const auto said = values_.find("machine"); said != values_.end()) {
      if (FindMachine(said->second) == nullptr) {
        return Fail(Code::kInvalid,
                    fmt::format("machine:{}: must be a100, b200, gb200, h100, h200 or l40s", said->second));
      }
      line_.machine = said->second;
    }
    return {};
  }

  Status CheckTogether() const {
    if (line_.rails > line_.nics) {
      return Fail(Code::kInvalid, fmt::format("rail:{}: more than nic:{}", line_.rails, line_.nics));
    }
    if (line_.nics > 0 && line_.rails == 0) return Fail(Code::kInvalid, "rail:0: NICs need a rail");
    if (line_.gpus > 0 && line_.nics > line_.gpus && line_.nics % line_.gpus != 0) {
      return Fail(Code::kInvalid,
                  fmt::format("nic:{}: more than gpu:{} and no multiple of it", line_.nics, line_.gpus));
    }
    if (line_.nvlink_over_nodes && FindMachine(line_.machine)->nvlink.generation == 0) {
      return Fail(Code::kInvalid, fmt::format("nvl: machine:{} has no NVLink", line_.machine));
    }
    if (line_.rate_gbps < line_.planes) {
      return Fail(Code::kInvalid,
                  fmt::format("rate:{}: too little for plane:{}", line_.rate_gbps, line_.planes));
    }
    const std::array<int, 5> factors = {line_.groups, line_.units, line_.racks, line_.tors, line_.hosts};
    long long nodes = line_.sites;
    for (const int factor : factors) nodes = std::min(nodes * factor, kMaxNodes + 1);
    if (line_.layout == Layout::kTorus) {
      nodes = line_.sites;
      for (const int side : line_.torus) nodes = std::min(nodes * side, kMaxNodes + 1);
    }
    if (nodes > kMaxNodes || nodes * std::max(line_.gpus, line_.nics) > kMaxGpus) {
      return Fail(Code::kTooLarge, fmt::format("more than {} nodes or {} GPUs or NICs", kMaxNodes, kMaxGpus));
    }
    return {};
  }

  std::map<std::string_view, std::string_view> values_;
  SyntheticLine line_;
};

}  // namespace

const SyntheticMachine& MachineNamed(std::string_view word) {
  const SyntheticMachine* const machine = FindMachine(word);
  CHECK(machine != nullptr);
  return *machine;
}

int SyntheticLine::nodes_per_site() const {
  if (layout == Layout::kTorus) return torus[0] * torus[1] * torus[2];
  return groups * units * racks * tors * hosts;  // those that a layout does not have are 1
}

Result<SyntheticLine> ReadSyntheticLine(std::string_view line) {
  auto read = LineReader().Read(line);
  if (!read) return Fail(std::move(read).error().In("synthetic cluster"));
  return read;
}

std::string WriteSyntheticLine(const SyntheticLine& line) {
  std::string out;
  const auto add = [&](std::string_view word, auto value) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", word, value);
  };
  if (line.sites > 1) add("site", line.sites);
  if (line.layout == Layout::kTorus) {
    add("torus", fmt::format("{}x{}x{}", line.torus[0], line.torus[1], line.torus[2]));
  }
  if (line.layout == Layout::kDragonfly) add("dragonfly", line.groups);
  if (line.units_given) add("su", line.units);
  if (line.layout == Layout::kRacks) add("rack", line.racks);
  if (line.layout == Layout::kTor || line.layout == Layout::kDragonfly) add("tor", line.tors);
  if (line.layout != Layout::kTorus) add(line.layout == Layout::kRacks ? "tray" : "node", line.hosts);
  add("gpu", line.gpus);
  add("nic", line.nics);
  add("rail", line.rails);
  if (line.planes > 1) add("plane", line.planes);
  const bool may_have_spines =
      line.layout != Layout::kTorus && line.layout != Layout::kDragonfly && !line.rail_only;
  if (may_have_spines) add("spine", line.spines);
  add("rate", line.rate_gbps);
  if (line.oversubscription_percent > 0) add("oversub", line.oversubscription_percent);
  const auto transport =
      std::find_if(kTransports.begin(), kTransports.end(),
                   [&](const TransportWord& known) { return known.transport == line.transport; });
  add("transport", transport->word);
  add("machine", line.machine);
  if (line.nvlink_over_nodes) out += " nvl";
  if (line.rail_only) out += " railonly";
  if (line.dual_tor) out += " dualtor";
  for (const SyntheticFault& fault : line.faults) {
    if (fault.word == "badgpu") {
      add(fault.word, fmt::format("{}/{}", fault.node, fault.number));
    } else if (fault.word != "swap") {
      add(fault.word, fmt::format("{}/rail-{}", fault.node, fault.number));
    } else {
      const std::string other = fault.other_node == fault.node ? "" : "/" + fault.other_node;
      add(fault.word, fmt::format("{}/rail-{}{}/rail-{}", fault.node, fault.number, other, fault.other));
    }
  }
  return out;
}

}  // namespace heddle::topology
