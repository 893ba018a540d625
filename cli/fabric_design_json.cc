#include "cli/fabric_design.h"
#include "topology/synthetic_line.h"

namespace heddle::cli {
namespace {

using sizing::Design;

Json MachineJson(const sizing::MachineType& machine) {
  Json sources = Json::object();
  for (const auto& [field, source] : machine.sources) sources[std::string(field)] = source;
  return {{"word", machine.word},
          {"title", machine.title},
          {"gpus", machine.gpus},
          {"nics", machine.nics},
          {"nicGbps", machine.nic_gbps},
          {"domainNodes", machine.domain_nodes},
          {"storagePorts", machine.storage_ports},
          {"storageGbps", machine.storage_gbps},
          {"managementPorts", machine.management_ports},
          {"watts", machine.watts},
          {"sources", std::move(sources)}};
}

Json SwitchJson(const sizing::SwitchType* type, int ports, int port_gbps) {
  return {{"word", type == nullptr ? Json() : Json(type->word)},
          {"title", type == nullptr ? Json() : Json(type->title)},
          {"ports", ports},
          {"portGbps", port_gbps},
          {"source", type == nullptr ? Json() : Json(type->source)}};
}

Json TiersJson(const Design& design) {
  Json tiers = Json::array();
  for (const sizing::SwitchTier& tier : design.tiers) {
    tiers.push_back({{"tier", tier.name},
                     {"count", tier.switches},
                     {"down", tier.down},
                     {"up", tier.up},
                     {"free", tier.free}});
  }
  return tiers;
}

Json CablesJson(const Design& design) {
  Json cables = Json::array();
  for (const sizing::CableRun& run : design.cables) {
    const sizing::CableType* const type = sizing::CableFor(design.link_gbps, run.longest);
    cables.push_back({{"segment", sizing::SegmentName(run.segment)},
                      {"medium", sizing::MediumWord(run.medium)},
                      {"count", run.cables},
                      {"shortestMetres", run.shortest},
                      {"longestMetres", run.longest},
                      {"reachMetres", type == nullptr ? Json() : Json(type->metres)},
                      {"source", type == nullptr ? Json() : Json(type->source)}});
  }
  return cables;
}

Json StorageJson(const sizing::StorageFabric& storage) {
  return {{"switch", SwitchJson(storage.type, storage.type->PortsAt(storage.link_gbps), storage.link_gbps)},
          {"readGbs", storage.read_gbs},
          {"nodePorts", storage.node_ports},
          {"storagePorts", storage.storage_ports},
          {"blocks", storage.blocks},
          {"leaves", storage.leaves},
          {"spines", storage.spines},
          {"switchCables", storage.leaf_cables},
          {"source", sizing::kStorageSource}};
}

Json BandJson(const std::optional<sizing::Band>& band, double times) {
  return band ? Json{{"low", band->low * times}, {"high", band->high * times}} : Json();
}

Json BillJson(const sizing::Bill& bill) {
  Json lines = Json::array();
  for (const sizing::BillLine& line : bill.lines) {
    lines.push_back({{"key", line.key},
                     {"what", line.title},
                     {"count", line.count},
                     {"each", BandJson(line.each, 1)},
                     {"total", BandJson(line.each, double(line.count))}});
  }
  return lines;
}

Json StepJson(const sizing::Prediction& prediction, const placement::Suggestion& step) {
  const placement::Parallelism& p = step.layout.parallelism;
  return {{"milliseconds", step.step_micros / 1000},
          {"computeMilliseconds", step.schedule.compute_micros / 1000},
          {"fixedMilliseconds", step.schedule.fixed_micros / 1000},
          {"bubbleMilliseconds", step.bubble_micros / 1000},
          {"communicationMilliseconds", step.communication_micros / 1000},
          {"globalBatch", prediction.batch},
          {"microbatches", step.layout.microbatches},
          {"virtualStages", step.schedule.virtual_stages},
          {"parallelism", {{"tp", p.tp}, {"cp", p.cp}, {"pp", p.pp}, {"dp", p.dp}}}};
}

// Times, the line, and why those that are not there are not.
void AddKnown(const DesignedFabric& fabric, Json& json) {
  Json unknown = Json::object();
  json["synthetic"] = fabric.line ? Json(*fabric.line) : Json();
  if (!fabric.line) unknown["synthetic"] = fabric.line.error().message;
  json["allReduce"] = json["step"] = nullptr;
  if (!fabric.prediction) {
    unknown["allReduce"] = unknown["step"] = fabric.prediction.error().message;
  } else {
    const sizing::Prediction& prediction = *fabric.prediction;
    if (prediction.all_reduce_micros > 0) {
      json["allReduce"] = {{"bytes", sizing::kAllReduceBytes},
                           {"milliseconds", prediction.all_reduce_micros / 1000},
                           {"busGbs", prediction.bus_gbs}};
    }
    if (const auto* step = std::get_if<placement::Suggestion>(&prediction.step)) {
      json["step"] = StepJson(prediction, *step);
    } else {
      unknown["step"] = std::get<std::string>(prediction.step);
    }
  }
  json["unknown"] = std::move(unknown);
}

Json FabricJson(const DesignAnswer& answer, const DesignedFabric& fabric) {
  const Design& design = *fabric.fits();
  const sizing::Watts watts = sizing::CableWatts(design);
  const bool ib = fabric.transport == topology::Transport::kInfiniBand;
  Json json = {{"transport", topology::TransportWord(fabric.transport)},
               {"switch", SwitchJson(design.type, design.radix, design.link_gbps)},
               {"rails", design.rails},
               {"tiers", design.tree.tiers},
               {"units", design.tree.unit_nodes},
               {"pods", design.tree.pod_units},
               {"switches", TiersJson(design)},
               {"switchCount", design.switches()},
               {"cables", CablesJson(design)},
               {"cableCount", design.cable_count()},
               {"opticalCables", design.optical_cables()},
               {"transceivers", design.transceivers()},
               {"cableWatts", {{"low", watts.low}, {"high", watts.high}}},
               {"injectionGbps", design.injection_gbps},
               {"bisectionGbps", design.bisection_gbps},
               {"mostGpus", design.most_gpus},
               {"floor",
                {{"nodesPerRack", design.floor.nodes_per_rack},
                 {"nodeRacks", design.floor.node_racks},
                 {"networkRacks", design.floor.network_racks},
                 {"racksPerRow", design.floor.racks_per_row},
                 {"rows", design.floor.rows}}},
               {"storage", StorageJson(design.storage)},
               {"bill", BillJson(fabric.bill)},
               {"price",
                {{"low", fabric.bill.total.low},
                 {"high", fabric.bill.total.high},
                 {"currency", answer.prices.currency},
                 {"unpriced", fabric.bill.unpriced}}},
               {"needs", ib ? "credit-based flow control; a subnet manager"
                            : "PFC and ECN on every hop; one LosslessPolicy for hosts and switches"}};
  AddKnown(fabric, json);
  return json;
}

}  // namespace

Json DesignJson(const DesignAnswer& answer) {
  Json designs = Json::array(), refused = Json::array(), machine;
  for (const DesignedFabric& fabric : answer.fabrics) {
    if (const Design* design = fabric.fits()) {
      machine = MachineJson(*design->machine);
      designs.push_back(FabricJson(answer, fabric));
      continue;
    }
    const auto& refusal = std::get<sizing::Refusal>(fabric.design);
    refused.push_back({{"transport", topology::TransportWord(fabric.transport)},
                       {"reason", sizing::RefusalReasonName(refusal.reason)},
                       {"message", refusal.sentence}});
  }
  return {
      {"gpus", answer.request.gpus},
      {"nodes", machine.is_null() ? Json() : Json(answer.request.gpus / machine["gpus"].get<std::int64_t>())},
      {"machine", machine},
      {"wiring", sizing::WiringWord(answer.request.wiring)},
      {"oversubscription", sizing::RatioText(answer.request.leaf)},
      {"coreOversubscription", sizing::RatioText(answer.request.core)},
      {"designs", std::move(designs)},
      {"refused", std::move(refused)},
      {"prices",
       {{"currency", answer.prices.currency},
        {"date", answer.prices.date},
        {"source", answer.prices.source},
        {"file", answer.prices_from.empty() ? Json() : Json(answer.prices_from)}}},
      {"model",
       {{"word", answer.model},
        {"source", answer.model_source.empty() ? Json() : Json(answer.model_source)}}}};
}

}  // namespace heddle::cli
