#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "cli/cables.h"
#include "cli/live_cluster.h"

namespace heddle::cli {
namespace {

using base::Code;

base::Status CheckForm(const CablesOptions& options, const OutputOptions& look) {
  if (!options.csv || look.format == Format::kText) return {};
  return base::Fail(Code::kInvalid, "--csv is a form of its own: leave out --output");
}

// `node`: the one that was asked for; empty = all.
void SayThereIsNone(const FabricReading& reading, const std::string& node, Output& output) {
  output.exit_code = reading.in_files ? Output::kUsage : Output::kFailed;
  if (!node.empty()) {
    output.err += fmt::format("Node {} has no port that carries jobs.\n", WithoutControls(node));
    return;
  }
  output.err += reading.in_files
                    ? "No node in these files has a port that carries jobs.\n"
                    : "No node has reported a port that carries jobs. Are the heddle-nodeagent pods running? "
                      "`kubectl heddle doctor` says more.\n";
}

// For --problems, which left none of `all` rows. A port that is not judged may end anywhere.
std::string NoProblemAmong(std::size_t all, std::size_t ok) {
  if (ok == all) return fmt::format("All {} ports end where they should.\n", all);
  return fmt::format("{}: {} ok, {} not judged.\n", base::Counted(all, "port"), ok, all - ok);
}

Output CablesAnswer(const FabricReading& reading, const CablesOptions& options, const OutputOptions& look) {
  std::vector<CableRow> rows = ReadCables(reading);
  if (!options.node.empty()) {
    std::erase_if(rows, [&options](const CableRow& row) { return row.node != options.node; });
    const bool known = std::any_of(reading.topologies.begin(), reading.topologies.end(),
                                   [&options](const auto& one) { return one.name == options.node; });
    if (!known) return Failure(NoSuchNode(reading, options.node, "its cables"));
  }
  Output output;
  output.err += NoteLines(reading.notes);
  const std::size_t all = rows.size();
  if (all == 0) SayThereIsNone(reading, options.node, output);
  const auto ok = std::size_t(std::count_if(
      rows.begin(), rows.end(), [](const CableRow& row) { return row.verdict == CableVerdict::kOk; }));
  if (std::any_of(rows.begin(), rows.end(), [](const CableRow& row) { return IsFault(row.verdict); }))
    output.exit_code = Output::kRefused;
  if (options.problems) std::erase_if(rows, [](const CableRow& row) { return !IsProblem(row.verdict); });
  if (options.csv) {
    output.out = CablesCsv(rows);
  } else if (look.format != Format::kText) {
    output.out = Printed(CablesJson(rows), look.format);
  } else if (!rows.empty()) {
    output.out = CablesText(rows, look.style);
  } else if (all > 0) {
    output.out = NoProblemAmong(all, ok);
  }
  return output;
}

}  // namespace

Output RunCables(kube::Client& client, const CablesOptions& options, const OutputOptions& look,
                 const std::stop_token& stop) {
  if (const base::Status form = CheckForm(options, look); !form) return Failure(form.error());
  const auto reading = ReadCluster(client, stop);
  return reading ? CablesAnswer(*reading, options, look) : Failure(reading.error());
}

Output ShowCables(const CablesOptions& options, const ReadFile& read, const OutputOptions& look) {
  if (const base::Status form = CheckForm(options, look); !form) return Failure(form.error());
  const auto reading = ReadFabricFiles(options.topology, read);
  return reading ? CablesAnswer(*reading, options, look) : FailureOfInput(reading.error());
}

}  // namespace heddle::cli
