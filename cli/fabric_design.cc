#include "cli/fabric_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/object_documents.h"
#include "crds/fabric.h"
#include "crds/fabric_assembly.h"
#include "crds/node_topology.h"
#include "crds/parallelism.h"
#include "placement/traffic.h"
#include "sizing/drawing.h"
#include "sizing/models.h"
#include "topology/synthetic_line.h"

namespace heddle::cli {
namespace {

using base::Code;
using sizing::Request;
using topology::Transport;

base::Result<sizing::Ratio> ReadRatio(std::string_view flag, const std::string& text) {
  if (const auto ratio = sizing::ParseRatio(text)) return *ratio;
  return base::Fail(Code::kInvalid,
                    fmt::format("{} \"{}\": write downlinks to uplinks in numbers from 1 to {}, as 2:1", flag,
                                text, sizing::kMostRatio));
}

base::Result<double> ReadGbs(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(number) && number > 0)
    return number;
  return base::Fail(Code::kInvalid,
                    fmt::format("--storage-gbs-per-gpu \"{}\": write GB/s of one GPU, as 0.5", text));
}

base::Result<Request> RequestOf(const FabricDesignOptions& options) {
  Request request;
  if (!options.gpus)
    return base::Fail(Code::kInvalid, "--gpus: say how many GPUs the fabric is for, as --gpus 1024");
  request.gpus = *options.gpus;
  request.machine = options.machine;
  const auto wiring = sizing::ParseWiring(options.wiring);
  if (!wiring) {
    return base::Fail(
        Code::kInvalid,
        fmt::format("--wiring \"{}\": write rail-optimised, fat-tree or rail-only", options.wiring));
  }
  request.wiring = *wiring;
  ASSIGN_OR_RETURN(request.leaf, ReadRatio("--oversubscription", options.oversubscription));
  ASSIGN_OR_RETURN(request.core, ReadRatio("--core-oversubscription", options.core_oversubscription));
  request.switch_word = options.switch_word;
  request.rails = options.rails;
  request.planes = options.planes;
  request.radix = options.radix;
  request.tiers = options.tiers;
  request.unit_nodes = options.unit_nodes;
  request.spare_ports = options.spare_ports;
  request.hall = {options.nodes_per_rack, options.rack_kw, options.racks_per_row, options.row_metres};
  request.storage = options.storage;
  if (!options.storage_gbs_per_gpu.empty()) {
    ASSIGN_OR_RETURN(request.storage_gbs_per_gpu, ReadGbs(options.storage_gbs_per_gpu));
  }
  return request;
}

base::Result<std::vector<Transport>> TransportsOf(const FabricDesignOptions& options) {
  const bool both = options.transport.empty();
  if (both && !options.switch_word.empty()) {
    const sizing::SwitchType* type = sizing::FindSwitchType(options.switch_word);
    if (type != nullptr) return std::vector{type->transport};
  }
  if (both) return std::vector{Transport::kInfiniBand, Transport::kRoce};
  if (options.transport == "ib") return std::vector{Transport::kInfiniBand};
  if (options.transport == "roce") return std::vector{Transport::kRoce};
  return base::Fail(
      Code::kInvalid,
      fmt::format(
          "--transport \"{}\": write ib or roce, or leave it out for both side by side{}", options.transport,
          options.transport == "efa" ? "; EFA is Amazon's own network, which nobody else builds" : ""));
}

// The job that times are predicted for, and what it is called.
base::Result<sizing::JobWish> JobOf(const FabricDesignOptions& options, DesignAnswer& answer) {
  sizing::JobWish job;
  const sizing::NamedModel* named =
      options.model.empty() ? &sizing::UsualModel(answer.request.gpus) : sizing::FindModel(options.model);
  if (named != nullptr) {
    job.model = named->hints;
    job.batch = named->batch;
    answer.model = named->word;
    answer.model_source = named->source;
  } else {
    if (options.model.find('=') == std::string::npos) {
      return base::Fail(Code::kInvalid,
                        fmt::format("--model {}: there is none of that name: write one of {}, or "
                                    "params=70e9,layers=80,hidden=8192,seq=8192",
                                    options.model, sizing::ModelWords()));
    }
    ASSIGN_OR_RETURN(job.model, crds::ParseModel(options.model), "--model");
    if (!placement::SaysBytes(job.model)) {
      return base::Fail(Code::kInvalid,
                        "--model: a step needs params, layers, hidden and seq, as in "
                        "params=70e9,layers=80,hidden=8192,seq=8192");
    }
    job.batch = 2048;
    answer.model = options.model;
  }
  job.batch_said = options.global_batch.has_value();
  if (options.global_batch) job.batch = *options.global_batch;
  if (job.batch < 1 || job.batch > 1'000'000'000) {
    return base::Fail(
        Code::kInvalid,
        fmt::format("--global-batch {} does not fit: a step takes in 1 to 1000000000 sequences", job.batch));
  }
  if (!options.parallelism.empty()) {
    ASSIGN_OR_RETURN(job.like, crds::ParseParallelism(options.parallelism), "--parallelism");
    if (job.like.world() != answer.request.gpus) {
      return base::Fail(Code::kInvalid,
                        fmt::format("--parallelism has {} ranks and --gpus {}: make them equal",
                                    job.like.world(), answer.request.gpus));
    }
  }
  return job;
}

DesignedFabric SizeOne(Request request, Transport transport, const sizing::PriceBook& prices,
                       const sizing::JobWish& job) {
  request.transport = transport;
  const auto nothing = base::Fail(Code::kInvalid, "it was not sized");
  DesignedFabric fabric{transport, sizing::DesignFabric(request), {}, nothing, nothing};
  if (const sizing::Design* design = fabric.fits()) {
    fabric.bill = sizing::BillOf(*design, prices);
    fabric.line = sizing::LineOf(*design);
    fabric.prediction = sizing::Predict(*design, job);
  }
  return fabric;
}

base::Result<DesignAnswer> Answer(const FabricDesignOptions& options, const ReadFile& read) {
  DesignAnswer answer;
  ASSIGN_OR_RETURN(answer.request, RequestOf(options));
  ASSIGN_OR_RETURN(const std::vector<Transport> transports, TransportsOf(options));
  if (transports.size() > 1 && !options.topology.empty()) {
    return base::Fail(Code::kInvalid, "--topology writes one fabric: add --transport ib or --transport roce");
  }
  answer.prices = sizing::UsualPrices();
  if (!options.prices.empty()) {
    ASSIGN_OR_RETURN(const std::string text, read(options.prices), "--prices");
    TRY(IsText(options.prices, text, "items: {switch.qm9700: {low: 28000, high: 31000}}"), "--prices");
    ASSIGN_OR_RETURN(answer.prices, ReadPrices(text), "--prices " + options.prices);
    answer.prices_from = options.prices;
  }
  ASSIGN_OR_RETURN(const sizing::JobWish job, JobOf(options, answer));
  for (const Transport transport : transports)
    answer.fabrics.push_back(SizeOne(answer.request, transport, answer.prices, job));
  return answer;
}

// Where none fits. What is wrong for all of them is said once.
Output Refused(const DesignAnswer& answer) {
  const auto refusal = [](const DesignedFabric& fabric) { return std::get<sizing::Refusal>(fabric.design); };
  const sizing::Refusal first = refusal(answer.fabrics.front());
  const bool alike = std::all_of(answer.fabrics.begin(), answer.fabrics.end(),
                                 [&](const DesignedFabric& one) { return refusal(one) == first; });
  Output output;
  output.exit_code = Output::kRefused;
  for (const DesignedFabric& fabric : answer.fabrics) {
    const auto [reason, sentence] = refusal(fabric);
    if (reason == sizing::RefusalReason::kBadRequest) output.exit_code = Output::kUsage;
    const std::string who = alike ? "" : fmt::format("{}: ", topology::TransportName(fabric.transport));
    output.err += fmt::format("Error: {}{}\n", who, WithoutControls(sentence));
    if (alike) break;
  }
  return output;
}

base::Result<Output> Run(const FabricDesignOptions& options, const ReadFile& read, const WriteFile& write,
                         const OutputOptions& look) {
  ASSIGN_OR_RETURN(const DesignAnswer answer, Answer(options, read));
  const bool any = std::any_of(answer.fabrics.begin(), answer.fabrics.end(),
                               [](const DesignedFabric& one) { return one.fits() != nullptr; });
  Output output;
  if (!any) output = Refused(answer);
  if (any && !options.topology.empty()) {
    ASSIGN_OR_RETURN(const std::string text, TopologyOf(*answer.fabrics.front().fits(), options.now),
                     "--topology");
    if (options.topology == "-") {
      output.out = text;
      return output;
    }
    TRY(write(options.topology, text), "--topology");
    output.err = fmt::format(
        "Wrote {0}; `kubectl heddle plan --topology {0}` places jobs on it, and `kubectl heddle fabric "
        "--topology {0}` shows it.\n",
        options.topology);
  }
  if (look.format != Format::kText) {
    output.out = Printed(DesignJson(answer), look.format);
  } else if (any) {
    output.out = DesignText(answer, look.style);
  }
  return output;
}

}  // namespace

base::Result<std::string> TopologyOf(const sizing::Design& design, base::WallTime now) {
  ASSIGN_OR_RETURN(topology::Synthetic drawn, sizing::Draw(design));
  Json items = Json::array();
  for (const topology::Node& node : drawn.nodes) {
    crds::NodeTopology object;
    object.name = node.name;
    object.status.node = node;
    object.status.hash = topology::ContentHash(node);
    object.status.observed_at = now;
    object.status.agent_version = "fabric-design";
    items.push_back(crds::ToJson(object));
  }
  const std::string name = crds::FabricName(design.request.transport, "");
  const std::map<std::string, topology::Declaration> declared{{name, drawn.declaration}};
  for (const auto& [fabric_name, fabric] : crds::AssembleFabrics(std::move(drawn.nodes), declared)) {
    crds::Fabric object;
    object.name = fabric_name;
    object.spec = declared.at(name);
    object.status = crds::Summarise(fabric);
    items.push_back(crds::ToJson(object));
  }
  const Json list{
      {"apiVersion", "v1"}, {"kind", "List"}, {"metadata", Json::object()}, {"items", std::move(items)}};
  return list.dump() + "\n";
}

Output FabricDesign(const FabricDesignOptions& options, const ReadFile& read, const WriteFile& write,
                    const OutputOptions& look) {
  const base::Result<Output> output = Run(options, read, write, look);
  if (output) return *output;
  Output failure = Failure(output.error());
  if (output.error().code != Code::kInternal) failure.exit_code = Output::kUsage;  // no cluster was asked
  return failure;
}

}  // namespace heddle::cli
