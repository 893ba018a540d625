#include "cli/switch_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/counted.h"
#include "cli/advice.h"
#include "cli/object_documents.h"
#include "cli/switch_files.h"
#include "lossless/cable_compare.h"
#include "switches/cables.h"

namespace heddle::cli {
namespace {

using lossless::CableFinding;
using lossless::LosslessVerdict;

constexpr std::size_t kMaxFiles = 10'000;

struct Compared : switches::ComparedCables {
  std::vector<std::string> notes;
};

// By the names that the files were given, for two files may have one.
Compared CompareFiles(const SwitchFiles& files) {
  std::vector<switches::KnownSwitch> known;
  for (const SwitchFile& file : files.switches) known.push_back({file.name, "", &file.config});
  std::vector<const crds::NodeTopology*> nodes;
  for (const crds::NodeTopology& node : files.nodes) nodes.push_back(&node);
  Compared compared{switches::CompareBothEnds(nodes, known), {}};
  for (const std::string& name : compared.doubled)
    compared.notes.push_back(
        fmt::format("{}: several configurations have this name, and none is used: give them as NAME=FILE",
                    WithoutControls(name)));
  for (const auto& [name, count] : compared.without)
    compared.notes.push_back(fmt::format("{}: no configuration was given, and {} there", name,
                                         count == 1 ? "1 cable ends" : fmt::format("{} cables end", count)));
  compared.notes.insert(compared.notes.end(), compared.bare.begin(), compared.bare.end());
  return compared;
}

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

std::string Ends(const switches::NamedCable& name) {
  return name.leaf.empty() ? "?" : name.leaf + " " + name.leaf_port;
}

std::string Summary(const Compared& compared) {
  std::map<LosslessVerdict, std::size_t> counts;
  for (std::size_t i = 0; i < compared.cables.size(); ++i) ++counts[compared.comparison.Of(i).verdict];
  std::string text = base::Counted(compared.cables.size(), "cable");
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
      text += fmt::format("{}  {}\n    host: {}\n    switch: {}\n    {}\n    to do: {}\n",
                          lossless::LosslessVerdictName(finding.weight), finding.rule,
                          WithoutControls(finding.host), WithoutControls(finding.leaf),
                          WithoutControls(finding.sentence), WithoutControls(finding.next));
    }
  }
  return text;
}

std::string TextOf(const Compared& compared, bool problems, const Style& style) {
  std::vector<AdviceRow> rows;
  for (const std::size_t i : Order(compared)) {
    const lossless::CableOutcome& outcome = compared.comparison.Of(i);
    if (problems && outcome.verdict == LosslessVerdict::kLossless) continue;
    const switches::NamedCable& name = compared.names[i];
    const int rail = compared.cables[i].rail;
    const CableFinding* worst = switches::WorstOf(outcome);
    rows.push_back(
        {{Cell(std::string(lossless::LosslessVerdictName(outcome.verdict)), ColourOf(outcome.verdict)),
          name.node, name.port, rail == lossless::kNotSaid ? std::string("?") : std::to_string(rail),
          Ends(name)},
         worst != nullptr ? worst->sentence : std::string()});
  }
  const std::string details = Details(compared);
  const std::string table =
      rows.empty()
          ? ""
          : AdviceText({"VERDICT", "NODE", "PORT", "RAIL", "SWITCH PORT", "WORST"}, rows, style) + "\n";
  return table + ProseText(details + (details.empty() ? "" : "\n") + Summary(compared), style);
}

Json JsonOf(const Compared& compared, bool problems) {
  Json cables = Json::array(), rails = Json::array();
  for (const std::size_t i : Order(compared)) {
    const lossless::CableOutcome& outcome = compared.comparison.Of(i);
    if (problems && outcome.verdict == LosslessVerdict::kLossless) continue;
    const switches::NamedCable& name = compared.names[i];
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
    base::Status status = text ? IsText(path, *text, "NodeTopologies or a switch's settings (config_db.json)")
                               : base::Status(base::Fail(text.error()));
    if (status) {
      status = ReadSwitchFile(path, name, *text, files);
      if (status) continue;
      status = base::Fail(status.error().In(InputName(path)));
    }
    output.err += "Error: " + WithoutControls(status.error().message) + "\n";
    output.exit_code = Output::kUsage;
  }
  // Of files that could not be read it would count 0 cables.
  if (output.exit_code != Output::kOk && files.nodes.empty() && files.switches.empty()) return output;
  const Compared compared = CompareFiles(files);
  output.out = look.format == Format::kText ? TextOf(compared, options.problems, look.style)
                                            : Printed(JsonOf(compared, options.problems), look.format);
  for (const std::string& note : files.notes) output.err += WithoutControls("Note: " + note) + "\n";
  for (const std::string& note : compared.notes) output.err += WithoutControls("Note: " + note) + "\n";
  // All of no cables are lossless, and CI with the wrong file would pass.
  if (compared.cables.empty()) {
    output.err += "Error: there is no RoCE port in these files, so no cable to look at\n";
    output.exit_code = Output::kUsage;
  }
  if (output.exit_code != Output::kOk) return output;
  const auto& outcomes = compared.comparison.outcomes;
  const bool good = std::all_of(outcomes.begin(), outcomes.end(), [](const lossless::CableOutcome& outcome) {
    return outcome.verdict == LosslessVerdict::kLossless;
  });
  if (!good) output.exit_code = Output::kRefused;
  return output;
}

}  // namespace heddle::cli
