#include "cli/switch_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "cli/switch_files.h"
#include "crds/port_name.h"
#include "lossless/cable_compare.h"

namespace heddle::cli {
namespace {

using lossless::CableEnd;
using lossless::CableFinding;
using lossless::LosslessVerdict;
using topology::Missing;

constexpr std::size_t kMaxFiles = 10'000;

// A cable with the names of its ends.
struct NamedCable {
  std::string node, port;       // "gpu-017", "mlx5_3:1"
  std::string leaf, leaf_port;  // empty where it is not known where the cable ends
};

struct Compared {
  std::vector<NamedCable> names;
  std::vector<lossless::Cable> cables;
  lossless::CableComparison comparison;
  std::vector<std::string> notes;
};

// What a node reports of a port; null where it reports nothing.
const crds::LosslessReport* ReportOf(const crds::NodeTopology& node, const std::string& port) {
  for (const crds::LosslessReport& report : node.status.lossless) {
    if (std::find(report.ports.begin(), report.ports.end(), port) != report.ports.end()) return &report;
  }
  return nullptr;
}

// A policy's profile asks NICs without a watchdog for none. One that was asked for and could not be read is not known.
bool WantsNoWatchdog(const crds::NodeTopology& node, const std::string& port) {
  for (const crds::LosslessWish& wish : node.spec.lossless) {
    if (std::find(wish.ports.begin(), wish.ports.end(), port) != wish.ports.end())
      return wish.settings && !wish.settings->watchdog_ms;
  }
  return false;
}

class Comparing {
 public:
  explicit Comparing(const SwitchFiles& files) {
    for (const SwitchFile& file : files.switches) AddSwitch(file);
    for (const crds::NodeTopology& node : files.nodes) Add(node);
    for (const auto& [name, count] : without_)
      compared_.notes.push_back(
          fmt::format("{}: no configuration was given, and {} cables end there", name, count));
    compared_.notes.insert(compared_.notes.end(), bare_.begin(), bare_.end());
    compared_.comparison = lossless::CompareCables(pool_, compared_.cables);
  }
  Compared Take() && { return std::move(compared_); }

 private:
  // Of two files with one name nobody knows which is the switch's.
  void AddSwitch(const SwitchFile& file) {
    const auto [at, fresh] = switches_.emplace(file.name, &file.config);
    if (fresh || at->second == nullptr) return;
    at->second = nullptr;
    compared_.notes.push_back(
        fmt::format("{}: several configurations have this name, and none is used: give them as NAME=FILE",
                    Printable(file.name)));
  }

  void Add(const crds::NodeTopology& node) {
    for (const topology::Nic& nic : node.status.node.nics) {
      if (nic.role != topology::NicRole::kCompute || nic.transport != topology::Transport::kRoce) continue;
      for (const topology::NicPort& port : nic.ports) {
        NamedCable name{node.name, crds::PortName(nic, port), "", ""};
        lossless::Cable cable;
        cable.host = HostEnd(node, nic, port, name.port);
        if (nic.rail) cable.rail = *nic.rail;
        cable.leaf = LeafEnd(port, name);
        compared_.names.push_back(std::move(name));
        compared_.cables.push_back(std::move(cable));
      }
    }
  }

  CableEnd HostEnd(const crds::NodeTopology& node, const topology::Nic& nic, const topology::NicPort& port,
                   const std::string& name) {
    CableEnd end;
    if (port.rate_gbps > 0) end.speed_mbps = port.rate_gbps * 1000;
    if (port.state != topology::LinkState::kUnknown) end.link_up = port.state == topology::LinkState::kActive;
    const crds::LosslessReport* report = ReportOf(node, name);
    if (report == nullptr || !report->have) return end;
    end.has_no_watchdog = WantsNoWatchdog(node, name);
    lossless::PortSettings settings = *report->have;
    if (!settings.mtu && nic.mtu > 0) settings.mtu = nic.mtu;
    end.settings = pool_.Intern(settings);
    return end;
  }

  CableEnd LeafEnd(const topology::NicPort& port, NamedCable& name) {
    CableEnd end;
    if (!port.leaf_port) {
      end.settings = port.leaf_port.missing();
      return end;
    }
    name.leaf = port.leaf_port->leaf;
    name.leaf_port = port.leaf_port->port;
    const auto found = switches_.find(name.leaf);
    if (found == switches_.end()) {
      ++without_[name.leaf];
      return end;
    }
    if (found->second == nullptr) {
      end.settings = Missing::kAmbiguous;
      return end;
    }
    const formats::SonicPort* there = PortOf(*found->second, name.leaf_port);
    if (there == nullptr) return end;
    name.leaf_port = there->name;
    if (!there->bare.empty()) {
      bare_.insert(fmt::format("{} {} {}, and nothing is known of its settings", Printable(name.leaf),
                               there->name, there->bare));
      return end;
    }
    end.settings = pool_.Intern(there->settings);
    end.speed_mbps = there->speed_mbps;
    end.fec = lossless::ParseFec(there->fec);
    return end;
  }

  std::map<std::string, const formats::SonicConfig*> switches_;
  std::map<std::string, int> without_;
  std::set<std::string> bare_;
  lossless::SettingsPool pool_;
  Compared compared_;
};

// The worst first, then as they came.
std::vector<std::size_t> Order(const Compared& compared) {
  std::vector<std::size_t> order(compared.cables.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return compared.comparison.Of(a).verdict < compared.comparison.Of(b).verdict;
  });
  return order;
}

Colour ColourOf(LosslessVerdict verdict) {
  return verdict == LosslessVerdict::kLossless        ? Colour::kGood
         : verdict == LosslessVerdict::kContradiction ? Colour::kBad
                                                      : Colour::kNone;
}

std::string Ends(const NamedCable& name) {
  return name.leaf.empty() ? "?" : name.leaf + " " + name.leaf_port;
}

std::string Summary(const Compared& compared) {
  std::map<LosslessVerdict, std::size_t> counts;
  for (std::size_t i = 0; i < compared.cables.size(); ++i) ++counts[compared.comparison.Of(i).verdict];
  std::string text =
      fmt::format("{} cable{}", compared.cables.size(), compared.cables.size() == 1 ? "" : "s");
  const char* before = ": ";
  for (const auto& [verdict, count] : counts) {
    text += fmt::format("{}{} {}", before, count, lossless::LosslessVerdictName(verdict));
    before = ", ";
  }
  text += "\n";
  for (const auto& [rail, verdict] : lossless::VerdictByRail(compared.cables, compared.comparison))
    text += fmt::format("rail {}: {}\n", rail, lossless::LosslessVerdictName(verdict));
  return text;
}

// Each thing once, with what to do: 128 cables of a leaf have the same.
std::string Details(const Compared& compared) {
  std::string text;
  std::vector<CableFinding> told;
  for (const lossless::CableOutcome& outcome : compared.comparison.outcomes) {
    for (const CableFinding& finding : outcome.findings) {
      if (finding.weight == LosslessVerdict::kLossless) continue;
      if (std::find(told.begin(), told.end(), finding) != told.end()) continue;
      told.push_back(finding);
      text +=
          fmt::format("{}  {}\n    host: {}\n    switch: {}\n    {}\n    to do: {}\n",
                      lossless::LosslessVerdictName(finding.weight), finding.rule, Printable(finding.host),
                      Printable(finding.leaf), Printable(finding.sentence), Printable(finding.next));
    }
  }
  return text;
}

std::string TextOf(const Compared& compared, bool problems, const Style& style) {
  Table table({"VERDICT", "NODE", "PORT", "RAIL", "SWITCH PORT", "WORST"});
  for (const std::size_t i : Order(compared)) {
    const lossless::CableOutcome& outcome = compared.comparison.Of(i);
    if (problems && outcome.verdict == LosslessVerdict::kLossless) continue;
    const NamedCable& name = compared.names[i];
    const int rail = compared.cables[i].rail;
    const bool any =
        !outcome.findings.empty() && outcome.findings.front().weight != LosslessVerdict::kLossless;
    table.Add({Cell(std::string(lossless::LosslessVerdictName(outcome.verdict)), ColourOf(outcome.verdict)),
               name.node, name.port, rail == lossless::kNotSaid ? std::string("?") : std::to_string(rail),
               Ends(name), any ? outcome.findings.front().sentence : std::string("-")});
  }
  const std::string details = Details(compared);
  return (table.empty() ? "" : table.Format(style) + "\n") + details + (details.empty() ? "" : "\n") +
         Summary(compared);
}

Json JsonOf(const Compared& compared, bool problems) {
  Json cables = Json::array(), rails = Json::array();
  for (const std::size_t i : Order(compared)) {
    const lossless::CableOutcome& outcome = compared.comparison.Of(i);
    if (problems && outcome.verdict == LosslessVerdict::kLossless) continue;
    const NamedCable& name = compared.names[i];
    Json findings = Json::array();
    for (const CableFinding& finding : outcome.findings) {
      findings.push_back({{"rule", finding.rule},
                          {"weight", lossless::LosslessVerdictName(finding.weight)},
                          {"setting", finding.setting},
                          {"host", finding.host},
                          {"switch", finding.leaf},
                          {"sentence", finding.sentence},
                          {"next", finding.next}});
    }
    Json cable{{"verdict", lossless::LosslessVerdictName(outcome.verdict)},
               {"node", name.node},
               {"port", name.port},
               {"findings", std::move(findings)}};
    if (!name.leaf.empty()) {
      cable["switch"] = name.leaf;
      cable["switchPort"] = name.leaf_port;
    }
    if (compared.cables[i].rail != lossless::kNotSaid) cable["rail"] = compared.cables[i].rail;
    cables.push_back(std::move(cable));
  }
  for (const auto& [rail, verdict] : lossless::VerdictByRail(compared.cables, compared.comparison))
    rails.push_back({{"rail", rail}, {"verdict", lossless::LosslessVerdictName(verdict)}});
  return {{"cables", std::move(cables)}, {"rails", std::move(rails)}, {"notes", compared.notes}};
}

// NAME=FILE, where what stands before the first = is no path.
std::pair<std::string, std::string> NameAndPath(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || word.find('/') < equals || equals == 0) return {"", word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

}  // namespace

Output SwitchCompare(const SwitchCompareOptions& options, const ReadFile& read, const OutputOptions& look) {
  Output output;
  if (options.files.empty() || options.files.size() > kMaxFiles) {
    return Failure({base::Code::kInvalid,
                    options.files.empty() ? "name the NodeTopologies and the switches' config_db.json"
                                          : fmt::format("name at most {} files", kMaxFiles),
                    std::nullopt});
  }
  SwitchFiles files;
  for (const std::string& word : options.files) {
    const auto [name, path] = NameAndPath(word);
    const auto text = read(path);
    const base::Status status =
        text ? ReadSwitchFile(path, name, *text, files) : base::Status(base::Fail(text.error()));
    if (status) continue;
    output.err +=
        "Error: " + Printable(text ? path + ": " + status.error().message : status.error().message) + "\n";
    output.exit_code = Output::kUsage;
  }
  const Compared compared = Comparing(files).Take();
  output.out = look.format == Format::kText ? TextOf(compared, options.problems, look.style)
                                            : Printed(JsonOf(compared, options.problems), look.format);
  for (const std::string& note : files.notes) output.err += Printable("Note: " + note) + "\n";
  for (const std::string& note : compared.notes) output.err += Printable("Note: " + note) + "\n";
  if (compared.cables.empty())
    output.err += "Note: there is no RoCE port in these files, so no cable to look at\n";
  if (output.exit_code != Output::kOk) return output;
  const auto& outcomes = compared.comparison.outcomes;
  const bool good = std::all_of(outcomes.begin(), outcomes.end(), [](const lossless::CableOutcome& outcome) {
    return outcome.verdict == LosslessVerdict::kLossless;
  });
  if (!good) output.exit_code = Output::kRefused;
  return output;
}

}  // namespace heddle::cli
