#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/counted.h"
#include "base/shell_word.h"
#include "cli/bench_manifest.h"
#include "cli/bench_view.h"
#include "cli/explain_target.h"
#include "cli/live_cluster.h"
#include "crds/keys.h"
#include "crds/workload_check.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;
using base::Fail;
using placement::Collective;

constexpr std::array kCollectives{Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                  Collective::kAllToAll, Collective::kSendRecv};
// What the manifest runs: 1 MiB to 8 GiB, doubling.
constexpr std::uint64_t kFirstSize = std::uint64_t{1} << 20, kLastSize = std::uint64_t{8} << 30;
constexpr std::size_t kMaxNodes = 16'384;

base::Result<Collective> CollectiveNamed(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Collective one : kCollectives) {
    if (CollectiveName(one) == name) return one;
    known.push_back(CollectiveName(one));
  }
  return Fail(Code::kInvalid,
              fmt::format("--collective \"{}\": write one of {}", name, fmt::join(known, ", ")));
}

// "/opt/nccl-tests/build/all_reduce_perf_mpi"
base::Result<Collective> CollectiveOfProgram(std::string_view program) {
  program = program.substr(program.rfind('/') + 1);  // npos + 1 = 0
  std::vector<std::string> known;
  for (const Collective one : kCollectives) {
    known.push_back(ProgramOf(one));
    if (program.starts_with(known.back())) return one;
  }
  return Fail(Code::kInvalid,
              fmt::format("there are results of {}, which the model does not know; it knows {}", program,
                          fmt::join(known, ", ")));
}

BenchSize Predicted(const BenchRanks& ranks, Collective collective, std::uint64_t bytes) {
  const double micros = ranks.over.Predict(collective, double(bytes)).micros;
  const double bus = micros > 0 ? BusBandwidth(collective, ranks.over.ranks(), double(bytes), micros) : 0;
  return {.bytes = bytes, .predicted = {micros, bus, std::nullopt}, .measured = {}, .in_place = {}};
}

BenchRun ToRun(const BenchRanks& ranks, Collective collective) {
  BenchRun run{.collective = collective,
               .sizes = {},
               .bottleneck = ranks.over.BottleneckOf(collective, double(kLastSize)),
               .wrong = {},
               .out_of_bounds = {}};
  for (std::uint64_t bytes = kFirstSize; bytes <= kLastSize; bytes *= 2)
    run.sizes.push_back(Predicted(ranks, collective, bytes));
  return run;
}

base::Status CheckRanks(const BenchRanks& ranks, const formats::NcclTestTable& table) {
  if (table.hosts.empty() || int(table.hosts.size()) == ranks.over.ranks()) return {};
  return Fail(Code::kInvalid,
              fmt::format("these are results of {}, and {} has {}: {}",
                          base::Counted(table.hosts.size(), "rank"), ranks.subject, ranks.over.ranks(),
                          table.hosts.size() == 1 ? "were nccl-tests built without MPI=1?"
                                                  : "give those of a run over all of them"));
}

base::Result<BenchRun> Measured(const BenchOptions& options, const BenchRanks& ranks,
                                const formats::NcclTestTable& table) {
  TRY(CheckRanks(ranks, table));
  BenchRun run;
  if (!options.collective.empty()) {
    ASSIGN_OR_RETURN(run.collective, CollectiveNamed(options.collective));
  }
  if (!table.program.empty()) {
    ASSIGN_OR_RETURN(const Collective said, CollectiveOfProgram(table.program));
    if (!options.collective.empty() && said != run.collective) {
      return Fail(Code::kInvalid, fmt::format("--collective {}: these are results of {}; leave it out",
                                              options.collective, table.program));
    }
    run.collective = said;
  }
  run.measured = true;
  run.out_of_bounds = table.out_of_bounds;
  run.finished = table.out_of_bounds.has_value();
  std::uint64_t largest = 1;
  for (const formats::NcclTestRow& row : table.rows) {
    BenchSize size = Predicted(ranks, run.collective, row.bytes);
    size.measured = row.out_of_place;
    size.in_place = row.in_place;
    for (const auto& time : {row.out_of_place, row.in_place}) {
      if (time && time->wrong) run.wrong = run.wrong.value_or(0) + *time->wrong;
    }
    largest = std::max(largest, row.bytes);
    run.sizes.push_back(size);
  }
  run.bottleneck = ranks.over.BottleneckOf(run.collective, double(largest));
  return run;
}

// As a shell takes it for one word.
std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=@+";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  return base::ShellQuoted(text);
}

// What was looked at in place of a cluster, as it was typed: what was measured is held against the same.
std::string GroundWords(const GroundOptions& ground) {
  std::string words;
  for (const std::string& file : ground.topology) words += " --topology " + ShellWord(file);
  if (!ground.synthetic.empty()) words += " --synthetic " + ShellWord(ground.synthetic);
  return words;
}

// The manifest as YAML, which kubectl takes as it is: what a person reads of it stands in comments.
std::string ManifestText(const BenchOptions& options, const BenchRanks& ranks, const BenchRun& run,
                         const Json& manifest) {
  const std::string target =
      options.nodes.empty() ? options.target : fmt::format("--nodes {}", fmt::join(options.nodes, ","));
  const std::string ns = ranks.ns.empty() ? "" : " -n " + ranks.ns;
  const std::string name = manifest["metadata"]["name"];
  std::string text = BenchText(ranks, {run}, {}, {});
  // The launcher's Job is made once all workers are ready, and its pod starts later: until then there are no logs.
  text += fmt::format(
      "{} must be {}.\n\n  kubectl create -f FILE{}\n"
      "  kubectl wait --for=condition=Running --timeout=1h mpijob/{}{}\n"
      "  kubectl logs -f job/{}-launcher{} > results.txt\n"
      "  kubectl heddle bench {}{}{} --results results.txt\n",
      WithoutControls(options.image), kBenchImage, ns, name, ns, name, ns, target, ns,
      GroundWords(options.ground));
  std::string comments;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    comments += line.empty() ? "#\n" : "# " + line + "\n";
    at = end + 1;
  }
  return comments + Printed(manifest, Format::kYaml);
}

// Standard error: what to know before it is created.
std::string ManifestNotes(const BenchOptions& options, const BenchRanks& ranks) {
  std::string notes;
  if (ranks.held) {
    notes += fmt::format(
        "Note: {} still holds its GPUs: the workers wait until it has ended, or find other places\n",
        WithoutControls(ranks.subject));
  }
  // GPUs of mode Pairs bring their NICs.
  if (options.rdma_resources.empty() && !crds::IsRdmaResource(ranks.gpu_resource))
    notes += "Note: no --rdma-resource is given: without RDMA devices NCCL goes over sockets\n";
  if (ranks.roce && options.network.empty())
    notes += "Note: the fabric is RoCE and no --network is given: pods need an interface of each NIC\n";
  return notes;
}

// Of --results; nothing where a manifest is asked for.
base::Result<std::optional<formats::NcclTestOutput>> ReadResults(const BenchOptions& options,
                                                                 const ReadFile& read) {
  if (options.results.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string text, read(options.results), "--results");
  auto results = formats::ParseNcclTests(text);
  if (!results) return Fail(Code::kInvalid, fmt::format("{}: {}", options.results, results.error().message));
  return *std::move(results);
}

base::Result<Output> Answer(const BenchOptions& options, const Grounds& grounds,
                            const std::optional<formats::NcclTestOutput>& results,
                            const OutputOptions& look) {
  ASSIGN_OR_RETURN(const BenchRanks ranks, RanksOf(options, grounds));
  Output output;
  if (!results) {
    Collective collective = Collective::kAllReduce;
    if (!options.collective.empty()) {
      ASSIGN_OR_RETURN(collective, CollectiveNamed(options.collective));
    }
    const BenchRun run = ToRun(ranks, collective);
    const Json manifest = BenchManifest(options, ranks, collective);
    output.out = look.format == Format::kText ? ManifestText(options, ranks, run, manifest)
                                              : Printed(BenchJson(ranks, {run}, {}, manifest), look.format);
    output.err = ManifestNotes(options, ranks);
    return output;
  }
  std::vector<BenchRun> runs;
  for (const formats::NcclTestTable& table : results->tables) {
    ASSIGN_OR_RETURN(BenchRun run, Measured(options, ranks, table), options.results);
    runs.push_back(std::move(run));
  }
  const std::vector<BenchFinding> findings = FindingsOf(ranks, runs, *results);
  output.out = look.format == Format::kText ? BenchText(ranks, runs, findings, look.style)
                                            : Printed(BenchJson(ranks, runs, findings, nullptr), look.format);
  if (std::any_of(findings.begin(), findings.end(), [](const BenchFinding& one) { return one.error; }))
    output.exit_code = Output::kRefused;
  return output;
}

base::Result<ClusterFiles> ReadLive(kube::Client& client, const BenchOptions& options, std::string& notes,
                                    const std::stop_token& stop) {
  ASSIGN_OR_RETURN(FabricReading reading, ReadCluster(client, stop));
  ASSIGN_OR_RETURN(ClusterFiles files, TakeFiles(reading));
  notes += NoteLines(reading.notes);
  const kube::Resource resource = HeddleResource(keys::kGang, true);
  auto gangs = ListOrWhyNot(client, resource, {}, stop);
  if (!gangs && gangs.error().code == Code::kForbidden) {
    notes +=
        "Note: Gangs of other namespaces may not be read: what they send over shared links is left out\n";
    gangs = ListOrWhyNot(client, resource, {.ns = options.ns}, stop);
  }
  if (!gangs) return Fail(std::move(gangs).error());
  AddGangs(*gangs, files);
  return files;
}

}  // namespace

base::Status CheckWords(const BenchOptions& options) {
  if (options.target.empty() == options.nodes.empty())
    return Fail(Code::kInvalid,
                "name either KIND/NAME of what made a gang, as gang/llama, or nodes by --nodes a,b,c");
  if (std::find(options.nodes.begin(), options.nodes.end(), "") != options.nodes.end())
    return Fail(Code::kInvalid, "--nodes: one of the names is empty: write a,b,c");
  if (!options.target.empty()) {
    TRY(ParseExplainTarget(options.target));
  }
  if (options.nodes.size() > kMaxNodes)
    return Fail(Code::kInvalid, fmt::format("name at most {} nodes", kMaxNodes));
  if (!options.collective.empty()) {
    TRY(CollectiveNamed(options.collective));
  }
  if (options.target.empty() && !options.gpu_resource.empty() && !options.results.empty())
    return Fail(Code::kInvalid, "--gpu-resource says nothing of --results");
  if (!options.target.empty() && !options.gpu_resource.empty())
    return Fail(Code::kInvalid, "--gpu-resource says nothing of a gang, whose pods say what they ask for");
  if (options.results.empty()) {
    if (!options.image.empty()) return {};
    return Fail(
        Code::kInvalid,
        fmt::format("--image: say what to run: {}; or --results FILE for what it printed", kBenchImage));
  }
  if (!options.image.empty() || !options.network.empty() || !options.rdma_resources.empty())
    return Fail(Code::kInvalid,
                "--image, --network and --rdma-resource are for a manifest, and say nothing of --results");
  return {};
}

bool AsksCluster(const BenchOptions& options) {
  return options.ground.topology.empty() && options.ground.synthetic.empty();
}

Output Bench(const BenchOptions& options, const ReadFile& read, const OutputOptions& look) {
  const auto answer = [&]() -> base::Result<Output> {
    TRY(CheckWords(options));
    ASSIGN_OR_RETURN(const auto results, ReadResults(options, read));
    ASSIGN_OR_RETURN(const Grounds grounds, ReadGround(options.ground, read));
    return Answer(options, grounds, results, look);
  }();
  return answer ? *answer : FailureOfInput(answer.error());
}

Output RunBench(kube::Client& client, const BenchOptions& options, const ReadFile& read,
                const OutputOptions& look, const std::stop_token& stop) {
  // What was given is judged before a cluster is asked, which takes long where it is large.
  if (const base::Status words = CheckWords(options); !words) return FailureOfInput(words.error());
  const auto results = ReadResults(options, read);
  if (!results) return FailureOfInput(results.error());
  std::string notes;
  const auto answer = [&]() -> base::Result<Output> {
    ASSIGN_OR_RETURN(ClusterFiles files, ReadLive(client, options, notes, stop));
    ASSIGN_OR_RETURN(const Grounds grounds, GroundsOf(std::move(files)));
    return Answer(options, grounds, *results, look);
  }();
  Output output = answer ? *answer : Failure(answer.error());
  output.err = notes + output.err;
  return output;
}

}  // namespace heddle::cli
