#include <algorithm>

#include "cli/cables.h"
#include "cli/live_cluster.h"

namespace heddle::cli {

using base::Code;

Output RunCables(kube::Client& client, const CablesOptions& options, const OutputOptions& look,
                 const std::stop_token& stop) {
  if (options.csv && look.format != Format::kText)
    return Failure({Code::kInvalid, "--csv is a form of its own: leave out --output", std::nullopt});
  const auto reading = ReadCluster(client, stop);
  if (!reading) return Failure(reading.error());
  std::vector<CableRow> rows = ReadCables(*reading);
  if (!options.node.empty()) {
    std::erase_if(rows, [&options](const CableRow& row) { return row.node != options.node; });
    const bool known = std::any_of(reading->topologies.begin(), reading->topologies.end(),
                                   [&options](const auto& one) { return one.name == options.node; });
    if (!known) {
      return Failure({Code::kNotFound,
                      "node " + options.node +
                          " has not reported its cables; `kubectl heddle topology` lists those that have",
                      std::nullopt});
    }
  }
  Output output;
  for (const std::string& note : reading->notes) output.err += "Note: " + Printable(note) + "\n";
  const std::size_t all = rows.size();
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
    output.out = "All " + std::to_string(all) + " ports end where they should.\n";
  } else {
    output.exit_code = Output::kFailed;
    output.err +=
        "No node has reported a port that carries jobs. Are the heddle-nodeagent pods running? `kubectl "
        "heddle "
        "doctor` says more.\n";
  }
  return output;
}

}  // namespace heddle::cli
