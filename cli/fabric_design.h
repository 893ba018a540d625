#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "cli/cluster_files.h"
#include "cli/output.h"
#include "cli/write_path.h"
#include "sizing/design.h"
#include "sizing/prediction.h"
#include "sizing/prices.h"

namespace heddle::cli {

// What stands on the command line; empty = not said.
struct FabricDesignOptions {
  std::optional<std::int64_t> gpus;
  std::string machine = "h100", wiring = "rail-optimised";
  std::string oversubscription = "1:1", core_oversubscription = "1:1";
  std::string transport;  // empty: ib and roce side by side
  std::string switch_word;
  int rails = 0, planes = 1, radix = 0, tiers = 0, unit_nodes = 0, spare_ports = 0;
  int nodes_per_rack = 0, racks_per_row = 0;
  int rack_kw = sizing::Hall{}.rack_kw, row_metres = sizing::Hall{}.row_metres;
  std::string storage = "better", storage_gbs_per_gpu;
  std::string model, parallelism;
  std::optional<std::int64_t> global_batch;
  std::string prices;    // file
  std::string topology;  // file to write
  base::WallTime now;    // stands in the written objects as the time at which they were seen
};

// One transport's fabric with all that is said of it.
struct DesignedFabric {
  topology::Transport transport = topology::Transport::kInfiniBand;
  std::variant<sizing::Design, sizing::Refusal> design;
  sizing::Bill bill;
  // The line, or why the fabric cannot be drawn; the times, or why there are none.
  base::Result<std::string> line;
  base::Result<sizing::Prediction> prediction;

  const sizing::Design* fits() const { return std::get_if<sizing::Design>(&design); }
};

struct DesignAnswer {
  sizing::Request request;  // of the first
  std::vector<DesignedFabric> fabrics;
  sizing::PriceBook prices;
  std::string prices_from;  // file; empty = the estimates alone
  std::string model;        // "llama3-70b", or the hints as they were given
  std::string model_source;
};

// `fabric design`: a fabric on paper. Exit codes: 0 sized, 3 it does not fit, 2 called wrongly. JSON and YAML:
//  {"gpus","nodes","machine":{"word","title","gpus","nics","nicGbps","watts","sources":{…}},
//   "wiring","oversubscription","coreOversubscription",
//   "designs":[{"transport","switch":{"word","title","ports","portGbps","source"},"tiers","units":[nodes],
//    "pods":[units],"switches":[{"tier","count","down","up","free"}],"switchCount",
//    "cables":[{"segment","medium","count","shortestMetres","longestMetres"}],"cableCount","opticalCables",
//    "transceivers","cableWatts":{"low","high"},"injectionGbps","bisectionGbps","mostGpus",
//    "floor":{…},"storage":{…},"bill":[{"key","what","count","each","total"}],
//    "price":{"low","high","currency","unpriced"},"synthetic","allReduce":{"bytes","milliseconds","busGbs"},
//    "step":{"milliseconds","parallelism",…},"needs"}],
//   "refused":[{"transport","reason","message"}],"prices":{"currency","date","source","file"},
//   "model":{"word","source"}}
// each, total, synthetic, allReduce and step are null where they are not known, and "unknown" says why.
Output FabricDesign(const FabricDesignOptions& options, const ReadFile& read, const WriteFile& write,
                    const OutputOptions& look);

// The estimates with what a file says in their place: YAML or JSON of
//   {currency: USD, date: 2026-12, source: …, items: {switch.qm9700: {low: 28000, high: 31000}}}
[[nodiscard]] base::Result<sizing::PriceBook> ReadPrices(const std::string& text);

// What `plan --topology` and all that read clusters take: a List of NodeTopologies and a Fabric, as JSON.
[[nodiscard]] base::Result<std::string> TopologyOf(const sizing::Design& design, base::WallTime now);

crds::Json DesignJson(const DesignAnswer& answer);
std::string DesignText(const DesignAnswer& answer, const Style& style);

}  // namespace heddle::cli
