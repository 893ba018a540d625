#include "cli/observed.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "cli/advice.h"
#include "cli/live_cluster.h"
#include "cli/quality_view.h"
#include "crds/keys.h"
#include "crds/observation.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;

constexpr int kMostDays = 36'500;  // no clock holds the days of every int
constexpr auto kDp = std::size_t(placement::Axis::kDp);

std::string Milliseconds(std::int64_t micros) {
  return fmt::format("{:.1f}", static_cast<double>(micros) / 1000);
}

std::string Crossings(const placement::Quality& quality) {
  return fmt::format("{}/{}", quality.leaf_crossings.at(kDp), quality.edges.at(kDp));
}

std::string JobName(const crds::Gang& gang) {
  return gang.ns + "/" + crds::GangTitle(gang.spec);
}

std::string Cut(const crds::Gang& gang) {
  if (!gang.spec.parallelism) return "";
  return ParallelismText(*gang.spec.parallelism) + (gang.status.observed->assumed_parallelism ? " *" : "");
}

// Those that mode observe cannot price, by name. They go with their jobs, so all are of today.
std::vector<crds::Gang> NotPriced(const std::vector<crds::Gang>& gangs) {
  std::vector<crds::Gang> found;
  std::copy_if(gangs.begin(), gangs.end(), std::back_inserter(found), [](const crds::Gang& gang) {
    return gang.status.observed && !crds::WasPriced(gang.status) && !gang.status.reason.empty();
  });
  std::sort(found.begin(), found.end(), [](const crds::Gang& a, const crds::Gang& b) {
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  });
  return found;
}

std::string NotPricedText(const std::vector<crds::Gang>& gangs) {
  std::string text;
  for (const crds::Gang& gang : gangs) {
    text += fmt::format("{} is not priced ({}): {}\n", JobName(gang), WithoutControls(gang.status.reason),
                        WithoutControls(gang.status.message));
  }
  return text;
}

std::string TableText(const std::vector<crds::Gang>& gangs, const std::vector<crds::Gang>& not_priced,
                      const Style& style) {
  const std::vector<std::string> header{"JOB",         "GPUS", "PARALLELISM",  "MS PER STEP",
                                        "WITH HEDDLE", "LESS", "DP CROSSINGS", "WITH HEDDLE"};
  const std::vector<std::size_t> below{2};  // PARALLELISM
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> waits;
  bool assumed = false;
  for (const crds::Gang& gang : gangs) {
    const placement::Quality& actual = *gang.status.predicted;
    const crds::Observed& observed = *gang.status.observed;
    assumed = assumed || observed.assumed_parallelism;
    std::vector<Cell> row{JobName(gang), std::to_string(gang.spec.gpus()), Cut(gang),
                          Milliseconds(actual.step_micros)};
    if (observed.heddle) {
      const std::int64_t less = crds::PercentLess(actual.step_micros, observed.heddle->step_micros);
      row.emplace_back(Milliseconds(observed.heddle->step_micros));
      row.emplace_back(fmt::format("{}%", less), less < 0 ? Colour::kBad : Colour::kGood);
      row.emplace_back(Crossings(actual));
      row.emplace_back(Crossings(*observed.heddle));
    } else {
      row.insert(row.end(), {Cell("waits"), Cell("-"), Cell(Crossings(actual)), Cell("-")});
      waits.push_back(
          fmt::format("{} would have waited: {}", JobName(gang), WithoutControls(observed.refusal)));
    }
    rows.push_back(std::move(row));
  }
  std::string text = ColumnsText(header, rows, below, style);
  if (assumed) {
    text +=
        "\n* assumed: tp within a pod, dp over the pods. The annotation heddle.dev/parallelism says it "
        "better.\n";
  }
  if (!waits.empty() || !not_priced.empty()) text += "\n";
  for (const std::string& sentence : waits) text += sentence + "\n";
  text += NotPricedText(not_priced);
  return ProseText(text + "\n", style);
}

Json SideJson(const crds::ObservedTotals::Side& side) {
  return {
      {"dpEdges", side.dp_edges}, {"dpLeafCrossings", side.dp_crossings}, {"stepMicros", side.step_micros}};
}

Json ObservedJson(const std::vector<crds::Gang>& gangs, const std::vector<crds::Gang>& not_priced) {
  Json jobs = Json::array();
  for (const crds::Gang& gang : gangs) {
    const crds::Observed& observed = *gang.status.observed;
    const placement::Parallelism parallelism = gang.spec.parallelism.value_or(placement::Parallelism{});
    Json job{{"namespace", gang.ns},
             {"name", crds::GangTitle(gang.spec)},
             {"kind", gang.spec.owner.kind},
             {"gpus", gang.spec.gpus()},
             {"parallelism", ParallelismText(parallelism)},
             {"assumedParallelism", observed.assumed_parallelism},
             {"assumedGpus", observed.assumed_gpus},
             {"observedAt", base::FormatTime(observed.at)},
             {"cluster", QualityJson(parallelism, *gang.status.predicted)}};
    if (observed.heddle) {
      job["heddle"] = QualityJson(parallelism, *observed.heddle);
    } else {
      job["refusal"] = observed.refusal;
    }
    jobs.push_back(std::move(job));
  }
  Json without = Json::array();
  for (const crds::Gang& gang : not_priced) {
    without.push_back({{"namespace", gang.ns},
                       {"name", crds::GangTitle(gang.spec)},
                       {"kind", gang.spec.owner.kind},
                       {"reason", gang.status.reason},
                       {"message", gang.status.message}});
  }
  const crds::ObservedTotals totals = crds::SumObserved(gangs);
  return {{"jobs", std::move(jobs)},
          {"notPriced", std::move(without)},
          {"compared", totals.jobs},
          {"waiting", totals.waiting},
          {"cluster", SideJson(totals.cluster)},
          {"heddle", SideJson(totals.heddle)},
          {"line", crds::ObservedLine(totals)}};
}

constexpr const char* kNothing =
    "No gang was observed in these days. Heddle observes where its chart was installed with mode=observe, "
    "and\n"
    "looks at a gang once all of its pods are on nodes whose agents have reported: see `kubectl get nt`.\n";
constexpr const char* kNothingInFiles =
    "The files hold no gang that was observed in these days up to now; --days N looks further back.\n";

// `nothing`: what to say where there is none.
void AddObserved(std::vector<crds::Gang> all, const ObservedOptions& options, base::WallTime now,
                 const char* nothing, const OutputOptions& look, Output& output) {
  const std::vector<crds::Gang> not_priced = NotPriced(all);
  const std::vector<crds::Gang> gangs = LastObserved(std::move(all), options, now);
  if (gangs.empty()) {
    output.exit_code = Output::kFailed;
    output.err += nothing + NotPricedText(not_priced);
  }
  if (look.format != Format::kText) {
    output.out = Printed(ObservedJson(gangs, not_priced), look.format);
  } else if (!gangs.empty()) {
    output.out = TableText(gangs, not_priced, look.style) +
                 SentenceText(crds::ObservedLine(crds::SumObserved(gangs)), look.style);
  }
}

}  // namespace

std::vector<crds::Gang> LastObserved(std::vector<crds::Gang> gangs, const ObservedOptions& options,
                                     base::WallTime now) {
  const base::WallTime since = now - std::chrono::hours(24) * std::min(options.days, kMostDays);
  std::erase_if(gangs, [since](const crds::Gang& gang) {
    return !crds::WasPriced(gang.status) || gang.status.observed->at < since;
  });
  std::sort(gangs.begin(), gangs.end(), [](const crds::Gang& a, const crds::Gang& b) {
    return std::tie(b.status.observed->at, a.ns, a.name) < std::tie(a.status.observed->at, b.ns, b.name);
  });
  if (gangs.size() > std::size_t(options.last)) gangs.resize(std::size_t(options.last));
  return gangs;
}

base::Status CheckWords(const ObservedOptions& options) {
  if (options.last >= 1 && options.days >= 1) return {};
  return base::Fail(base::Code::kInvalid, "--last and --days count from 1");
}

Output RunObserved(kube::Client& client, const ObservedOptions& options, base::WallTime now,
                   const OutputOptions& look, const std::stop_token& stop) {
  const base::Status words = CheckWords(options);
  if (!words) return Failure(words.error());
  const auto list = ListOrWhyNot(client, HeddleResource(keys::kGang, true), {.ns = options.ns}, stop);
  if (!list) return Failure(list.error());
  Output output;
  std::vector<crds::Gang> gangs;
  for (const Json& object : *list) {
    if (auto gang = crds::GangFromJson(object)) {
      gangs.push_back(*std::move(gang));
    } else {
      output.err += "Note: " + WithoutControls(gang.error().message) + "\n";
    }
  }
  AddObserved(std::move(gangs), options, now, kNothing, look, output);
  return output;
}

Output ShowObserved(const ObservedOptions& options, base::WallTime now, const ReadFile& read,
                    const OutputOptions& look) {
  if (const base::Status words = CheckWords(options); !words) return Failure(words.error());
  auto files = ReadClusterFiles(options.topology, read);
  if (!files) return FailureOfInput(files.error());
  std::erase_if(files->gangs,
                [&options](const crds::Gang& gang) { return !options.ns.empty() && gang.ns != options.ns; });
  Output output;
  AddObserved(std::move(files->gangs), options, now, kNothingInFiles, look, output);
  return output;
}

}  // namespace heddle::cli
