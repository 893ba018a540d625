#include "cli/bench_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/counted.h"
#include "cli/advice.h"

namespace heddle::cli {
namespace {

using formats::NcclTestTime;
using placement::CollectiveName;

// "64 MiB", "1.5 GiB", "8 B"
std::string SizeText(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string Rate(double gbs) {
  return fmt::format("{:.2f}", gbs);
}

std::string Micros(double micros) {
  return fmt::format("{:.1f}", micros);
}

std::string Percent(double ratio) {
  return fmt::format("{:.0f}%", ratio * 100);
}

std::string RunText(const BenchRun& run, const Style& style) {
  std::vector<std::string> header{"SIZE", "PREDICTED GB/S"};
  if (run.measured) header.insert(header.end(), {"MEASURED GB/S", "RATIO"});
  header.emplace_back("PREDICTED US");
  if (run.measured) header.emplace_back("MEASURED US");
  Table table(header);
  for (const BenchSize& size : run.sizes) {
    std::vector<Cell> row{SizeText(size.bytes), Rate(size.predicted.bus_gbs)};
    if (run.measured) {
      const auto ratio = size.ratio();
      row.emplace_back(size.measured ? Rate(size.measured->bus_gbs) : "-");
      row.emplace_back(ratio ? Percent(*ratio) : "-", size.slow() ? Colour::kBad : Colour::kNone);
    }
    row.emplace_back(Micros(size.predicted.micros));
    if (run.measured) row.emplace_back(size.measured ? Micros(size.measured->micros) : "-");
    table.Add(std::move(row));
  }
  return table.Format(style);
}

// The worst of what is too slow, as one sentence for all of its sizes.
std::optional<BenchFinding> SlowFinding(const BenchRun& run) {
  std::size_t judged = 0, slow = 0;
  const BenchSize* worst = nullptr;
  for (const BenchSize& size : run.sizes) {
    if (size.bytes < kBenchLarge || !size.ratio()) continue;
    ++judged;
    if (!size.slow()) continue;
    ++slow;
    if (worst == nullptr || *size.ratio() < *worst->ratio()) worst = &size;
  }
  if (worst == nullptr) return std::nullopt;
  return BenchFinding{
      .error = true,
      .what = "slow",
      .sentence = fmt::format("{}: from 64 MiB on {} of {} sizes {} below {} of the prediction, the worst {} "
                              "at {} ({} of {} GB/s). "
                              "Look at suspect links, flapping or missing rails and GPUs (`kubectl heddle "
                              "status`), at cables (`kubectl "
                              "heddle cables --problems`), at whether NCCL uses GPUDirect RDMA, and at the "
                              "NCCL file of the node: do the "
                              "pods ask for heddle.dev/fabric, and does anything set NCCL_* in the image?",
                              CollectiveName(run.collective), slow, judged, slow == 1 ? "is" : "are",
                              Percent(kBenchSlow), SizeText(worst->bytes), Percent(*worst->ratio()),
                              Rate(worst->measured->bus_gbs), Rate(worst->predicted.bus_gbs))};
}

std::optional<BenchFinding> CorruptFinding(const BenchRun& run) {
  std::vector<std::string> sizes;
  double wrong = 0;
  for (const BenchSize& size : run.sizes) {
    double here = 0;
    for (const auto& time : {size.measured, size.in_place}) here += time ? time->wrong.value_or(0) : 0;
    if (here > 0) sizes.push_back(SizeText(size.bytes));
    wrong += here;
  }
  const std::int64_t bad = run.out_of_bounds.value_or(0);
  if (wrong <= 0 && bad == 0) return std::nullopt;
  const std::string fact =
      wrong > 0 ? fmt::format("{:.0f} elements came out wrong, at {}", wrong, FirstNames(sizes))
                : fmt::format("{} values came out wrong", bad);
  return BenchFinding{
      .error = true,
      .what = "corrupt",
      .sentence =
          fmt::format("{}: {}: data is corrupted on the way, and whatever trains on these GPUs computes "
                      "nonsense. Let no job run "
                      "there; run it on one node after the other (--nodes), then on pairs, to find who does "
                      "it; look at ECC errors "
                      "and NVLinks of the GPUs (`kubectl heddle status`), then at driver, NCCL and firmware",
                      CollectiveName(run.collective), fact)};
}

std::optional<BenchFinding> EndFinding(const BenchRun& run) {
  if (run.finished) return std::nullopt;
  return BenchFinding{
      .error = true,
      .what = "unfinished",
      .sentence = fmt::format("{}: the run has no end (\"Out of bounds values\"): it broke off, or the "
                              "log was cut; its last lines say why",
                              CollectiveName(run.collective))};
}

bool AnyLarge(const std::vector<BenchRun>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const BenchRun& run) {
    return std::any_of(run.sizes.begin(), run.sizes.end(),
                       [](const BenchSize& size) { return size.bytes >= kBenchLarge && size.measured; });
  });
}

// What NCCL said of its ways explains what is slow; by itself it is to know.
void AddWays(const BenchRanks& ranks, const formats::NcclTestOutput& output,
             std::vector<BenchFinding>& findings) {
  const std::set<std::string> nodes(ranks.nodes.begin(), ranks.nodes.end());
  if (nodes.size() < 2) return;
  if (output.sockets && !output.rdma) {
    findings.push_back(
        {.error = true,
         .what = "sockets",
         .sentence = "NCCL went over TCP sockets between the nodes, not over RDMA: the pods have no RDMA "
                     "devices, or NCCL finds none; `kubectl heddle check` on the manifest says what is "
                     "missing, --rdma-resource and --network put it in"});
  } else if (output.rdma && !output.gdr) {
    findings.push_back({.error = false,
                        .what = "no-gdr",
                        .sentence =
                            "NCCL says nowhere that it uses GPUDirect RDMA (GDRDMA), so bytes go through the "
                            "hosts' memory: is nvidia-peermem loaded or dma-buf there, and are NIC and GPU "
                            "under one PCIe switch? `kubectl heddle topology NODE` shows it"});
  }
}

Json TimeJson(const std::optional<NcclTestTime>& time) {
  if (!time) return nullptr;
  Json json{{"busGbs", time->bus_gbs}, {"microseconds", time->micros}, {"wrongElements", nullptr}};
  if (time->wrong) json["wrongElements"] = *time->wrong;
  return json;
}

Json RunJson(const BenchRun& run) {
  Json sizes = Json::array();
  for (const BenchSize& size : run.sizes) {
    Json json{{"bytes", size.bytes},
              {"predicted", TimeJson(size.predicted)},
              {"measured", TimeJson(size.measured)},
              {"inPlace", TimeJson(size.in_place)},
              {"ratio", nullptr}};
    if (const auto ratio = size.ratio()) json["ratio"] = *ratio;
    sizes.push_back(std::move(json));
  }
  Json json{{"collective", CollectiveName(run.collective)},
            {"algorithm", placement::AlgorithmName(run.bottleneck.algorithm)},
            {"boundBy", placement::BoundName(run.bottleneck.bound)},
            {"gbps", run.bottleneck.gbps},
            {"finished", run.finished},
            {"wrongElements", nullptr},
            {"sizes", std::move(sizes)}};
  if (run.wrong) json["wrongElements"] = *run.wrong;
  return json;
}

}  // namespace

std::optional<double> BenchSize::ratio() const {
  if (!measured || measured->micros <= 0 || predicted.micros <= 0) return std::nullopt;
  return predicted.micros / measured->micros;
}

bool BenchSize::slow() const {
  return bytes >= kBenchLarge && ratio() && *ratio() < kBenchSlow;
}

std::vector<BenchFinding> FindingsOf(const BenchRanks& ranks, const std::vector<BenchRun>& runs,
                                     const formats::NcclTestOutput& output) {
  std::vector<BenchFinding> findings;
  for (const auto find : {&CorruptFinding, &EndFinding, &SlowFinding}) {
    for (const BenchRun& run : runs) {
      if (auto finding = (*find)(run)) findings.push_back(*std::move(finding));
    }
  }
  AddWays(ranks, output, findings);
  for (const formats::NcclTestTable& table : output.tables) {
    const std::size_t hosts = std::set<std::string>(table.hosts.begin(), table.hosts.end()).size();
    const std::size_t nodes = std::set<std::string>(ranks.nodes.begin(), ranks.nodes.end()).size();
    if (hosts == 0 || hosts == nodes || hosts == std::size_t(ranks.pods)) continue;
    findings.push_back(
        {.error = false,
         .what = "hosts",
         .sentence = fmt::format("the results are of {} hosts, and {} has {} pods on {} nodes: is it the "
                                 "run of these GPUs?",
                                 hosts, ranks.subject, ranks.pods, nodes)});
    break;
  }
  if (!AnyLarge(runs)) {
    findings.push_back(
        {.error = false,
         .what = "small",
         .sentence = "no size from 64 MiB on was measured, so no bandwidth is judged: run it with -e 8G"});
  }
  return findings;
}

std::string BenchText(const BenchRanks& ranks, const std::vector<BenchRun>& runs,
                      const std::vector<BenchFinding>& findings, const Style& style) {
  const std::size_t nodes = std::set<std::string>(ranks.nodes.begin(), ranks.nodes.end()).size();
  std::string text;
  for (const BenchRun& run : runs) {
    text += fmt::format(
        "{} over {} ranks of {} on {}, {}\nbus bandwidth as nccl-tests counts it; {} bound by {} "
        "({} Gb/s)\n\n",
        CollectiveName(run.collective), ranks.over.ranks(), WithoutControls(ranks.subject),
        base::Counted(nodes, "node"), WithoutControls(ranks.fabric),
        placement::AlgorithmName(run.bottleneck.algorithm), placement::BoundName(run.bottleneck.bound),
        run.bottleneck.gbps);
    text += RunText(run, style) + "\n";
  }
  for (const BenchFinding& finding : findings) {
    text += fmt::format("{}: {}\n", finding.error ? style.Paint("Error", Colour::kBad) : "Note",
                        WithoutControls(finding.sentence));
  }
  const bool measured =
      std::any_of(runs.begin(), runs.end(), [](const BenchRun& run) { return run.measured; });
  if (measured && findings.empty())
    text += fmt::format(
        "Every size from 64 MiB on reaches {} of the prediction or more, and no element came out wrong.\n",
        Percent(kBenchSlow));
  return ProseText(text, style);
}

Json BenchJson(const BenchRanks& ranks, const std::vector<BenchRun>& runs,
               const std::vector<BenchFinding>& findings, const Json& manifest) {
  Json runs_json = Json::array(), findings_json = Json::array();
  for (const BenchRun& run : runs) runs_json.push_back(RunJson(run));
  for (const BenchFinding& finding : findings) {
    findings_json.push_back({{"severity", finding.error ? "Error" : "Warning"},
                             {"what", finding.what},
                             {"sentence", finding.sentence}});
  }
  return {
      {"subject", ranks.subject}, {"fabric", ranks.fabric},           {"ranks", ranks.over.ranks()},
      {"pods", ranks.pods},       {"gpusPerPod", ranks.gpus_per_pod}, {"nodes", ranks.nodes},
      {"manifest", manifest},     {"runs", std::move(runs_json)},     {"findings", std::move(findings_json)}};
}

}  // namespace heddle::cli
