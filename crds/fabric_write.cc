#include "crds/codec.h"
#include "crds/endpoint_codec.h"
#include "crds/fabric.h"
#include "crds/kept_text.h"
#include "crds/lossless_codec.h"

namespace heddle::crds {
namespace {

using codec::Clean;
using codec::PutList;
using codec::PutPositive;
using codec::PutText;
using codec::TextList;
using codec::WriteList;

Json WriteTorus(const topology::Declaration& declaration) {
  const auto& size = declaration.torus_size;
  Json json{{"size", Json{{"x", size[0]}, {"y", size[1]}, {"z", size[2]}}}};
  PutList(json, "positions", WriteList(declaration.torus, 8192, [](const topology::TorusPosition& position) {
            return Json{
                {"node", Clean(position.node, 253)}, {"x", position.x}, {"y", position.y}, {"z", position.z}};
          }));
  return json;
}

Json WriteUfm(const FabricUfm& ufm) {
  Json json{{"address", Clean(ufm.address, 259)},
            {"credentialsSecret", codec::WriteSecretName(ufm.credentials_secret)},
            {"tls", {{"caSecret", codec::WriteSecretName(ufm.ca_secret)}}},
            {"pollSeconds", ufm.poll_seconds}};
  PutText(json["tls"], "serverName", ufm.server_name, 253);
  return json;
}

Json WriteSpec(const Fabric& object) {
  const topology::Declaration& declaration = object.spec;
  Json json = Json::object();
  if (declaration.shape) json["shape"] = topology::ShapeName(*declaration.shape);
  PutPositive(json, "rails", declaration.rails);
  PutPositive(json, "oversubscriptionPercent", declaration.oversubscription_percent);
  PutList(json, "switches",
          WriteList(declaration.switches, 8192, [](const topology::SwitchDeclaration& from) {
            Json to{{"name", Clean(from.name, 128)}};
            PutList(to, "uplinks", TextList(from.uplinks, 64, 128));
            PutPositive(to, "uplinkGbps", from.uplink_gbps);
            if (from.rail != topology::kNone) to["rail"] = from.rail;
            return to;
          }));
  PutList(json, "excludedNodes", TextList(declaration.excluded_nodes, 1024, 253));
  PutList(json, "leafNames", TextList(declaration.leaf_names, 8, 128));
  PutPositive(json, "firstRail", declaration.first_rail);
  PutList(json, "groups", WriteList(declaration.groups, 512, [](const topology::DragonflyGroup& group) {
            return Json{{"name", Clean(group.name, 128)}, {"leaves", TextList(group.leaves, 256, 128)}};
          }));
  if (!declaration.torus.empty() || declaration.torus_size != std::array<int, 3>{}) {
    json["torus"] = WriteTorus(declaration);
  }
  if (object.ufm) json["ufm"] = WriteUfm(*object.ufm);
  return json;
}

Json WriteCounts(const FabricCounts& counts) {
  return Json{{"nodes", counts.nodes},
              {"gpus", counts.gpus},
              {"units", counts.units},
              {"leaves", counts.leaves},
              {"spines", counts.spines},
              {"nvlinkDomains", counts.nvlink_domains},
              {"cablingFaults", counts.cabling_faults}};
}

Json WriteUnit(const UnitSummary& unit) {
  Json json{{"name", Clean(unit.name, 128)}, {"nodes", unit.nodes}};
  PutList(json, "leaves", TextList(unit.leaves, 64, 128));
  return json;
}

Json WriteLeaf(const LeafSummary& leaf) {
  Json json{{"name", Clean(leaf.name, 128)},
            {"downGbps", leaf.down_gbps},
            {"upGbps", leaf.up_gbps},
            {"nodes", leaf.nodes}};
  codec::PutFact(json, "rail", "railMissing", leaf.rail);
  PutPositive(json, "plane", leaf.plane);
  PutText(json, "unit", leaf.unit, 128);
  return json;
}

Json WriteFault(const topology::CablingFault& fault) {
  Json json{{"node", Clean(fault.node, 253)}, {"nic", Clean(fault.nic, 64)}, {"port", fault.port}};
  PutText(json, "leaf", fault.seen.leaf, 128);
  PutText(json, "leafPort", fault.seen.port, 64);
  PutText(json, "expectedLeaf", fault.expected_leaf, 128);
  json["sentence"] = fault.sentence.empty() ? "the cable contradicts what was expected"
                                            : Clean(fault.sentence, kMaxKeptFault);
  if (fault.ambiguous) json["certainty"] = "Ambiguous";
  return json;
}

Json WriteSuspect(const topology::Suspect& suspect) {
  Json json{{"kind", topology::SuspectKindName(suspect.kind)},
            {"name", Clean(suspect.name, kMaxKeptSuspectName)},
            {"symptom", topology::SymptomName(suspect.symptom)},
            {"links", suspect.links},
            {"gangs", suspect.gangs},
            {"score", suspect.score}};
  PutText(json, "node", suspect.node, 253);
  PutText(json, "port", suspect.port, 72);
  PutText(json, "leaf", suspect.leaf, 128);
  PutText(json, "leafPort", suspect.leaf_port, 64);
  PutText(json, "evidence", suspect.evidence, kMaxKeptEvidence);
  PutText(json, "next", suspect.next, kMaxKeptNext);
  return json;
}

Json WriteStatus(const FabricStatus& status) {
  Json json{{"transport", topology::TransportName(status.transport)},
            {"shape", topology::ShapeName(status.shape)},
            {"rails", status.rails},
            {"counts", WriteCounts(status.counts)}};
  PutPositive(json, "observedGeneration", status.observed_generation);
  PutText(json, "site", status.site, 63);
  PutList(json, "units", WriteList(status.units, 512, WriteUnit));
  PutList(json, "leaves", WriteList(status.leaves, 4096, WriteLeaf));
  PutList(json, "spines", WriteList(status.spines, 1024, [](const SpineSummary& spine) {
            return Json{{"name", Clean(spine.name, 128)}, {"tier", spine.tier}};
          }));
  PutList(json, "nvlinkDomains", WriteList(status.nvlink_domains, 256, [](const NvlinkDomainSummary& domain) {
            return Json{{"id", Clean(domain.id, 253)}, {"nodes", domain.nodes}, {"gpus", domain.gpus}};
          }));
  PutList(json, "faults", WriteList(status.faults, 64, WriteFault));
  if (status.cables != CableCounts{}) codec::PutCableCounts(json["cables"], status.cables);
  PutList(json, "suspects", WriteList(status.suspects, topology::kMaxSuspects, WriteSuspect));
  PutList(json, "assumptions", TextList(status.assumptions, 16, 512));
  PutList(json, "conditions", codec::WriteConditions(status.conditions));
  return json;
}

}  // namespace

Json ToJson(const Fabric& object) {
  Json json = codec::WriteHead(keys::kFabric.kind, object);
  json["spec"] = WriteSpec(object);
  json["status"] = WriteStatus(object.status);
  return json;
}

Json SpecApplyJson(const Fabric& object) {
  Json json = codec::ApplyHead(keys::kFabric.kind, object, true);
  json["spec"] = WriteSpec(object);
  return json;
}

Json StatusApplyJson(const Fabric& object) {
  Json json = codec::ApplyHead(keys::kFabric.kind, object, false);
  json["status"] = WriteStatus(object.status);
  return json;
}

}  // namespace heddle::crds
