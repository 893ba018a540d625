#include "topology/synthetic_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/nearest_word.h"

namespace heddle::topology {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

constexpr std::string_view kWords =
    "badgpu, core, down, dragonfly, dualtor, gpu, half, machine, nic, node, nvl, nvlink, oversub, plane, "
    "pod, "
    "rack, rail, railonly, rate, site, spine, su, superspine, swap, tor, torus, transport, tray, zone";

// Of the levels and of what stands above the leaves. A whole level may be as many as there may be nodes.
constexpr int kMost = int(kMaxSyntheticNodes);
constexpr int kMostSwitches = 4096;

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

// What the user said, cut where it is long: it stands in a sentence.
std::string_view Cut(std::string_view text) {
  return text.substr(0, 60);
}

// "2" or "1.5" or "1.25" as hundredths, from 1 to 1000.
std::optional<int> Ratio(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::string_view tail = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  const std::optional<int> whole = Number(text.substr(0, dot));
  std::optional<int> part = tail.empty() ? 0 : Number(tail);
  if (!whole || !part || (dot != std::string_view::npos && tail.empty()) || tail.size() > 2) {
    return std::nullopt;
  }
  if (tail.size() == 1) *part *= 10;
  if (*whole < 1 || *whole > 1000 || *whole * 100 + *part > 100'000) return std::nullopt;
  return *whole * 100 + *part;
}

class LineReader {
 public:
  Result<SyntheticLine> Read(std::string_view text) && {
    TRY(ReadWords(text));
    TRY(ReadLayout());
    TRY(ReadHosts());
    TRY(ReadSwitches());
    TRY(ReadNames());
    TRY(ReadNvlink());
    TRY(ReadOversubscription());
    ASSIGN_OR_RETURN(SyntheticTree tree, GrowSyntheticTree(line_));
    TRY(CheckHosts(tree));
    TRY(CheckSizes(line_, tree));
    Normalise(line_, tree);
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
  static const std::vector<std::string>& Known() {
    static const std::vector<std::string> known = [] {
      std::vector<std::string> words;
      for (const std::string_view each : Split(kWords, ','))
        words.emplace_back(each.substr(each.starts_with(' ') ? 1 : 0));
      return words;
    }();
    return known;
  }
  static bool IsKnown(std::string_view word) {
    return std::find(Known().begin(), Known().end(), word) != Known().end();
  }

  Status ReadWords(std::string_view text) {
    for (const std::string_view item : Split(text, ' ')) {
      if (item.empty()) continue;
      const std::size_t colon = item.find(':');
      const std::string_view word = item.substr(0, colon);
      const std::string_view value =
          colon == std::string_view::npos ? std::string_view{} : item.substr(colon + 1);
      if (!IsKnown(word)) {
        const std::string meant = base::NearestWord(word, Known());
        return Fail(Code::kInvalid,
                    fmt::format("{}: unknown word; {}he words are {}", Cut(word),
                                meant.empty() ? "t" : fmt::format("did you mean {}? T", meant), kWords));
      }
      if (IsFlag(word) != (colon == std::string_view::npos)) {
        return Fail(Code::kInvalid, IsFlag(word) ? fmt::format("{}: takes no value", Cut(item))
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
  std::string_view ValueOf(std::string_view word) const {
    const auto found = values_.find(word);
    return found == values_.end() ? std::string_view{} : found->second;
  }
  bool HasList(std::string_view word) const { return ValueOf(word).find(',') != std::string_view::npos; }

  // Which words shape the cluster, and which of them need each other.
  Status ReadLayout() {
    struct Rule {
      Layout layout;
      std::vector<std::string_view> keys;  // any of them tells this layout from those below it
      std::vector<std::string_view> takes;
    };
    static const std::vector<Rule> kRules = {
        {Layout::kTorus, {"torus"}, {}},
        {Layout::kDragonfly, {"dragonfly"}, {"tor", "node", "dualtor"}},
        {Layout::kTor, {"tor"}, {"zone", "pod", "node", "dualtor", "spine", "superspine", "core"}},
        {Layout::kRacks,
         {"rack", "tray"},
         {"zone", "pod", "su", "nvl", "plane", "spine", "superspine", "core", "railonly"}},
        {Layout::kUnits,
         {"su", "node", "gpu", "site", "zone", "pod", "spine", "superspine", "core"},
         {"plane", "railonly", "nvl"}},
    };
    const auto is_said = [&](std::string_view word) { return Has(word); };
    const auto rule = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& r) {
      return std::any_of(r.keys.begin(), r.keys.end(), is_said);
    });
    if (rule == kRules.end()) {
      return Fail(Code::kInvalid,
                  "what shape? Say su and node, rack and tray, tor and node, dragonfly, or torus");
    }
    const std::string_view key = *std::find_if(rule->keys.begin(), rule->keys.end(), is_said);
    // Rails of one ToR are not rails, but a torus and a ToR may still have more NICs than one.
    for (const std::string_view word :
         {"torus", "dragonfly", "tor", "rack", "zone", "pod", "su", "node", "tray", "dualtor", "spine",
          "superspine", "core", "nvl", "plane", "railonly"}) {
      const auto in = [&](const std::vector<std::string_view>& words) {
        return std::find(words.begin(), words.end(), word) != words.end();
      };
      if (Has(word) && !in(rule->keys) && !in(rule->takes)) {
        return Fail(Code::kInvalid, fmt::format("{}: does not go with {}", word, key));
      }
    }
    line_.layout = rule->layout;
    return ReadLevels();
  }

  Status ReadLevels() {
    const auto add = [&](LevelKind kind, std::string_view word) {
      line_.levels.push_back(Level{kind, word, {1}});
    };
    add(LevelKind::kSite, "site");
    if (line_.layout == Layout::kDragonfly) {
      add(LevelKind::kGroup, "dragonfly");
    } else if (line_.layout != Layout::kTorus) {
      add(LevelKind::kZone, "zone");
      add(LevelKind::kPod, "pod");
    }
    if (line_.layout == Layout::kUnits || Has("su")) add(LevelKind::kUnit, "su");
    if (line_.layout == Layout::kRacks) add(LevelKind::kRack, "rack");
    if (line_.layout == Layout::kTor || line_.layout == Layout::kDragonfly) add(LevelKind::kTor, "tor");
    if (line_.layout == Layout::kTorus) return ReadTorus();
    add(LevelKind::kHost, line_.layout == Layout::kRacks ? "tray" : "node");
    std::string_view dragonfly = ValueOf("dragonfly");
    if (dragonfly.starts_with("groups=")) values_["dragonfly"] = dragonfly.substr(7);
    for (Level& level : line_.levels) {
      const bool site = level.kind == LevelKind::kSite;
      TRY(TakeList(level.word, 1, site ? 64 : kMost, level.counts));
      if (site && level.counts.size() > 1) {
        return Fail(Code::kInvalid, fmt::format("site:{}: must be one number", Cut(ValueOf("site"))));
      }
    }
    // A list stands for as many of what is around it, where nobody said how many of these there are.
    for (std::size_t l = line_.levels.size() - 1; l > 1; --l) {
      Level& around = line_.levels[l - 1];
      const bool may_grow = around.kind == LevelKind::kUnit || around.kind == LevelKind::kRack ||
                            around.kind == LevelKind::kTor;
      if (may_grow && !Has(around.word)) around.counts = {int(line_.levels[l].counts.size())};
    }
    return {};
  }

  Status ReadTorus() {
    const std::string_view size = values_.at("torus");
    const auto sides = Split(size, 'x');
    for (std::size_t i = 0; i < sides.size() && i < 3; ++i) line_.torus[i] = Number(sides[i]).value_or(0);
    if (sides.size() != 3 || *std::min_element(line_.torus.begin(), line_.torus.end()) < 1 ||
        *std::max_element(line_.torus.begin(), line_.torus.end()) > 1024) {
      return Fail(Code::kInvalid,
                  fmt::format("torus:{}: want three sides from 1 to 1024, as torus:4x4x4", Cut(size)));
    }
    TRY(Take("site", 1, 64, line_.levels.front().counts.front()));
    // 1024 x 1024 x 1024 is still an int.
    line_.levels.push_back(
        Level{LevelKind::kHost, "torus", {line_.torus[0] * line_.torus[1] * line_.torus[2]}});
    return {};
  }

  Status Take(std::string_view word, int lowest, int highest, int& into) const {
    if (!Has(word)) return {};
    const std::optional<int> number = Number(ValueOf(word));
    if (!number || *number < lowest || *number > highest) {
      return Fail(Code::kInvalid, fmt::format("{}:{}: must be a whole number from {} to {}", word,
                                              Cut(ValueOf(word)), lowest, highest));
    }
    into = *number;
    return {};
  }

  // One number, or several with commas between them.
  Status TakeList(std::string_view word, int lowest, int highest, std::vector<int>& into) const {
    if (!HasList(word)) {
      int number = into.front();
      TRY(Take(word, lowest, highest, number));
      if (Has(word)) into = {number};
      return {};
    }
    into.clear();
    for (const std::string_view part : Split(ValueOf(word), ',')) {
      const std::optional<int> number = Number(part);
      if (!number || *number < lowest || *number > highest) {
        return Fail(Code::kInvalid, fmt::format("{}:{}: must be whole numbers from {} to {}", word,
                                                Cut(ValueOf(word)), lowest, highest));
      }
      into.push_back(*number);
    }
    return {};
  }

  Status ReadHosts() {
    TRY(TakeList("gpu", 0, 64, line_.gpus));
    line_.nics = line_.gpus;
    TRY(TakeList("nic", 0, 64, line_.nics));
    line_.rails = line_.nics;
    TRY(TakeList("rail", 0, 64, line_.rails));
    TRY(TakeList("rate", 1, 12'800, line_.rates_gbps));
    TRY(Take("plane", 1, 13, line_.planes));
    line_.dual_tor = Has("dualtor");
    return {};
  }

  Status ReadSwitches() {
    line_.rail_only = Has("railonly");
    const auto several = [&](LevelKind kind) {
      return std::any_of(line_.levels.begin(), line_.levels.end(), [&](const Level& level) {
        return level.kind == kind && *std::max_element(level.counts.begin(), level.counts.end()) > 1;
      });
    };
    const bool none = line_.rail_only || line_.layout == Layout::kTorus || line_.layout == Layout::kDragonfly;
    line_.spines = none ? 0 : 2;
    TRY(Take("spine", 0, kMostSwitches, line_.spines));
    // What joins several zones or pods, where nobody says what does.
    const bool zones = several(LevelKind::kZone), pods = several(LevelKind::kPod);
    line_.superspines = line_.spines > 0 && zones ? 2 : 0;
    TRY(Take("superspine", 0, kMostSwitches, line_.superspines));
    line_.cores = line_.spines > 0 && (zones || (pods && line_.superspines == 0)) ? 2 : 0;
    TRY(Take("core", 0, kMostSwitches, line_.cores));
    for (const auto& [word, count] :
         {std::pair("spine", line_.spines), std::pair("superspine", line_.superspines),
          std::pair("core", line_.cores)}) {
      if (count == 0) continue;
      if (line_.rail_only) {
        return Fail(Code::kInvalid, fmt::format("{}:{}: does not go with railonly", word, count));
      }
      if (line_.spines == 0) {
        return Fail(Code::kInvalid, fmt::format("{}:{}: needs spines below it, not spine:0", word, count));
      }
    }
    return {};
  }

  Status ReadNames() {
    if (Has("transport")) {
      const auto names = TransportNames();
      std::vector<std::string> words;
      for (const std::string_view name : names) words.push_back(TransportWord(*ParseTransport(name)));
      const auto found = std::find(words.begin(), words.end(), ValueOf("transport"));
      if (found == words.end()) {
        return Fail(Code::kInvalid, fmt::format("transport:{}: must be one of {}", Cut(ValueOf("transport")),
                                                fmt::join(words, ", ")));
      }
      line_.transport = *ParseTransport(names[std::size_t(found - words.begin())]);
    }
    if (!Has("machine")) return {};
    line_.machines.clear();
    for (const std::string_view word : Split(ValueOf("machine"), ',')) {
      if (FindMachine(word) == nullptr) {
        return Fail(Code::kInvalid, fmt::format("machine:{}: must be one of {}", Cut(word), MachineWords()));
      }
      line_.machines.emplace_back(word);
    }
    return {};
  }

  Status ReadNvlink() {
    const std::string_view said = ValueOf("nvlink");
    if (Has("nvl") && Has("nvlink")) return Fail(Code::kInvalid, "nvl: does not go with nvlink");
    if (said == "none") {
      line_.nvlink_nodes = 0;
    } else if (said != "node" && Has("nvlink")) {
      const std::optional<int> nodes = Number(said);
      if (!nodes || *nodes < 1 || *nodes > kMost) {
        return Fail(Code::kInvalid,
                    fmt::format("nvlink:{}: must be node, none, or the nodes of a domain, 1 to {}", Cut(said),
                                kMost));
      }
      line_.nvlink_nodes = *nodes;
    }
    if (Has("nvl")) line_.nvlink_nodes = SyntheticLine::kWholeRack;
    const bool spans = line_.nvlink_nodes > 1 || line_.nvlink_nodes == SyntheticLine::kWholeRack;
    if (!spans) return {};
    const std::string word = Has("nvl") ? "nvl" : fmt::format("nvlink:{}", line_.nvlink_nodes);
    if (line_.layout == Layout::kTorus) {
      return Fail(Code::kInvalid, fmt::format("{}: does not go with torus", word));
    }
    for (const std::string& machine : line_.machines) {
      if (FindMachine(machine)->nvlink.generation == 0) {
        return Fail(Code::kInvalid, fmt::format("{}: machine:{} has no NVLink", word, machine));
      }
    }
    return {};
  }

  // "200" for the leaves in percent, or "su=2,spine=4".
  Status ReadOversubscription() {
    if (!Has("oversub")) return {};
    const std::string_view said = ValueOf("oversub");
    if (said.find('=') == std::string_view::npos) return Take("oversub", 100, 100'000, line_.leaf_percent);
    for (const std::string_view part : Split(said, ',')) {
      const std::size_t equals = part.find('=');
      const std::string_view tier = part.substr(0, equals);
      const auto ratio = equals == std::string_view::npos ? std::nullopt : Ratio(part.substr(equals + 1));
      int* const into = tier == "su" || tier == "leaf" || tier == "tor" ? &line_.leaf_percent
                        : tier == "spine"                               ? &line_.spine_percent
                        : tier == "superspine"                          ? &line_.superspine_percent
                                                                        : nullptr;
      if (into == nullptr || !ratio) {
        return Fail(Code::kInvalid,
                    fmt::format("oversub:{}: want su, spine or superspine with a ratio from 1 "
                                "to 1000, as oversub:su=2,spine=1.5",
                                Cut(said)));
      }
      if (*into != 0) return Fail(Code::kInvalid, fmt::format("oversub:{}: {} said twice", Cut(said), tier));
      *into = *ratio;
    }
    const bool above_spines = line_.superspines > 0 || line_.cores > 0;
    if (line_.spine_percent > 0 && !above_spines) {
      return Fail(Code::kInvalid,
                  fmt::format("oversub:{}: nothing is above the spines; say core", Cut(said)));
    }
    if (line_.superspine_percent > 0 && (line_.superspines == 0 || line_.cores == 0)) {
      return Fail(Code::kInvalid, fmt::format("oversub:{}: needs superspine and core", Cut(said)));
    }
    // Nothing said is 1:1 there.
    if (line_.spine_percent == 100) line_.spine_percent = 0;
    if (line_.superspine_percent == 100) line_.superspine_percent = 0;
    return {};
  }

  // By unit, since each may have another kind of node.
  Status CheckHosts(SyntheticTree& tree) {
    int units = tree.groups.back()[LevelKind::kUnit] + 1;
    const auto longest = std::max({line_.gpus.size(), line_.nics.size(), line_.rails.size(),
                                   line_.rates_gbps.size(), line_.machines.size()});
    // As a list of counts does: as many units as kinds of nodes, where nobody says how many.
    auto unit = std::find_if(line_.levels.begin(), line_.levels.end(), [&](const Level& level) {
      const LevelKind owner = line_.Has(LevelKind::kUnit) ? LevelKind::kUnit : LevelKind::kRack;
      return level.kind == owner;
    });
    if (units == 1 && longest > 1 && unit != line_.levels.end() && !Has(unit->word)) {
      unit->counts = {int(std::min<std::size_t>(longest, kMost))};
      ASSIGN_OR_RETURN(tree, GrowSyntheticTree(line_));
      units = tree.groups.back()[LevelKind::kUnit] + 1;
    }
    for (const std::string_view word : {"gpu", "nic", "rail", "rate", "machine"}) {
      const auto said = Split(ValueOf(word), ',').size();
      if (said > std::size_t(units)) {
        return Fail(Code::kInvalid, fmt::format("{}:{}: names {} kinds of nodes, and there are {} units",
                                                word, Cut(ValueOf(word)), said, units));
      }
    }
    for (int u = 0; u < units; ++u) TRY(CheckKind(line_.KindOf(u)));
    return {};
  }

  Status CheckKind(const HostKind& kind) const {
    if (kind.rails > kind.nics) {
      return Fail(Code::kInvalid, fmt::format("rail:{}: more than nic:{}", kind.rails, kind.nics));
    }
    if (kind.nics > 0 && kind.rails == 0) return Fail(Code::kInvalid, "rail:0: NICs need a rail");
    if (kind.gpus > 0 && kind.nics > kind.gpus && kind.nics % kind.gpus != 0) {
      return Fail(Code::kInvalid,
                  fmt::format("nic:{}: more than gpu:{} and no multiple of it", kind.nics, kind.gpus));
    }
    if (kind.rate_gbps < line_.ports_per_nic()) {
      return Fail(Code::kInvalid,
                  fmt::format("rate:{}: too little for {} ports", kind.rate_gbps, line_.ports_per_nic()));
    }
    return {};
  }

  std::map<std::string_view, std::string_view> values_;
  SyntheticLine line_;
};

}  // namespace

Result<SyntheticLine> ReadSyntheticLine(std::string_view line) {
  auto read = LineReader().Read(line);
  if (!read) return Fail(std::move(read).error().In("synthetic cluster"));
  return read;
}

}  // namespace heddle::topology
