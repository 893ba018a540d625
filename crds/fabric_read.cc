#include "crds/codec.h"
#include "crds/endpoint_codec.h"
#include "crds/fabric.h"
#include "crds/kept_text.h"
#include "crds/lossless_codec.h"
#include "topology/declared_leaves.h"

namespace heddle::crds {
namespace {

using codec::Field;
using codec::kMaxInt;

constexpr std::int64_t kMaxSwitchGbps = 100'000'000;
constexpr std::string_view kShapes = "FatTree, RailOptimised, RailOnly, Dragonfly, Torus3D, ToR";

std::optional<bool> ParseAmbiguous(std::string_view text) {
  if (text == "Ambiguous") return true;
  if (text == "Certain") return false;
  return std::nullopt;
}

topology::Declaration ReadSpec(const Field& spec) {
  topology::Declaration declaration;
  if (const Field shape = spec("shape"); shape.present()) {
    declaration.shape = shape.Word(topology::ParseShape, kShapes, topology::Shape::kToR);
  }
  declaration.rails = spec("rails").Int(1, 256);
  declaration.oversubscription_percent = spec("oversubscriptionPercent").Int(10, 10000);
  declaration.switches = spec("switches").List(8192, [](const Field& item) {
    return topology::SwitchDeclaration{item("name").Name(128), item("uplinks").Names(64, 128),
                                       item("uplinkGbps").Int(1, kMaxSwitchGbps),
                                       item("rail").Int(0, topology::kMaxRail, topology::kNone)};
  });
  declaration.excluded_nodes = spec("excludedNodes").Names(1024, 253);
  declaration.leaf_names = spec("leafNames").List(8, [](const Field& item) {
    std::string pattern = item.Name(128);
    if (const std::string why = topology::WhyNotLeafPattern(pattern); !why.empty()) item.Refuse(why);
    return pattern;
  });
  declaration.first_rail = spec("firstRail").Int(0, topology::kMaxRail);
  declaration.groups = spec("groups").List(512, [](const Field& item) {
    const Field leaves = item("leaves");
    topology::DragonflyGroup group{item("name").Name(128), leaves.Required().Names(256, 128)};
    if (group.leaves.empty()) leaves.Refuse("a group has at least one leaf");
    return group;
  });
  const Field torus = spec("torus");
  if (!torus.present()) return declaration;
  const Field size = torus("size");
  size.Required();
  declaration.torus_size = {size("x").Required().Int(1, 1024), size("y").Required().Int(1, 1024),
                            size("z").Required().Int(1, 1024)};
  declaration.torus = torus("positions").List(8192, [](const Field& item) {
    return topology::TorusPosition{item("node").Name(253), item("x").Required().Int(0, 1023),
                                   item("y").Required().Int(0, 1023), item("z").Required().Int(0, 1023)};
  });
  return declaration;
}

FabricUfm ReadUfm(const Field& field) {
  FabricUfm ufm;
  field.CheckObject();
  ufm.address = codec::ReadAddress(field("address"), "ufm.example:443");
  const Field credentials = field("credentialsSecret");
  ufm.credentials_secret = codec::ReadSecretName(credentials.Required());
  const Field tls = field("tls");
  tls.Required().CheckObject();
  if (const Field name = tls("serverName"); name.present()) ufm.server_name = name.Name(253);
  const Field authority = tls("caSecret");
  ufm.ca_secret = codec::ReadSecretName(authority.Required());
  ufm.poll_seconds = field("pollSeconds").Int(10, 3600, FabricUfm{}.poll_seconds);
  return ufm;
}

FabricCounts ReadCounts(const Field& field) {
  FabricCounts counts;
  counts.nodes = field("nodes").Int(0, kMaxInt);
  counts.gpus = field("gpus").Int(0, kMaxInt);
  counts.units = field("units").Int(0, kMaxInt);
  counts.leaves = field("leaves").Int(0, kMaxInt);
  counts.spines = field("spines").Int(0, kMaxInt);
  counts.nvlink_domains = field("nvlinkDomains").Int(0, kMaxInt);
  counts.cabling_faults = field("cablingFaults").Int(0, kMaxInt);
  return counts;
}

UnitSummary ReadUnit(const Field& field) {
  UnitSummary unit;
  unit.name = field("name").Name(128);
  unit.nodes = field("nodes").Required().Int(0, kMaxInt);
  unit.leaves = field("leaves").List(64, [](const Field& item) { return item.Text(128); });
  return unit;
}

LeafSummary ReadLeaf(const Field& field) {
  LeafSummary leaf;
  leaf.name = field("name").Name(128);
  leaf.rail = codec::ReadFact(field, "rail", "railMissing", 255);
  leaf.plane = field("plane").Int(0, 63);
  leaf.unit = field("unit").Text(128);
  leaf.down_gbps = field("downGbps").Int(0, kMaxSwitchGbps);
  leaf.up_gbps = field("upGbps").Int(0, kMaxSwitchGbps);
  leaf.nodes = field("nodes").Required().Int(0, kMaxInt);
  return leaf;
}

topology::CablingFault ReadFault(const Field& field) {
  topology::CablingFault fault;
  fault.node = field("node").Name(253);
  fault.nic = field("nic").Required().Text(64);
  fault.port = field("port").Required().Int(0, 255);
  fault.seen = {field("leaf").Text(128), field("leafPort").Text(64)};
  fault.expected_leaf = field("expectedLeaf").Text(128);
  fault.sentence = field("sentence").Name(kMaxKeptFault);
  fault.ambiguous = field("certainty").Word(ParseAmbiguous, "Certain, Ambiguous", false);
  return fault;
}

topology::Suspect ReadSuspect(const Field& field) {
  topology::Suspect suspect;
  suspect.kind = field("kind").Required().Word(topology::ParseSuspectKind, "Cable, Host, Leaf, Spine",
                                               topology::SuspectKind::kCable);
  suspect.name = field("name").Name(kMaxKeptSuspectName);
  suspect.node = field("node").Text(253);
  suspect.port = field("port").Text(72);
  suspect.leaf = field("leaf").Text(128);
  suspect.leaf_port = field("leafPort").Text(64);
  suspect.symptom = field("symptom").Required().Word(
      topology::ParseSymptom, "Flap, Errors, PauseStorm, Loss, Drops", topology::Symptom::kFlap);
  suspect.links = field("links").Int(1, kMaxInt, 1);
  suspect.gangs = field("gangs").Int(0, kMaxInt);
  suspect.score = field("score").Int(0, 1000);
  suspect.evidence = field("evidence").Text(kMaxKeptEvidence);
  suspect.next = field("next").Text(kMaxKeptNext);
  return suspect;
}

FabricStatus ReadStatus(const Field& field) {
  FabricStatus status;
  status.observed_generation = field("observedGeneration").Int64(0, codec::kMaxInt64);
  status.transport =
      field("transport")
          .Word(topology::ParseTransport, codec::TransportWords(), topology::Transport::kEthernet);
  status.site = field("site").Text(63);
  status.shape = field("shape").Word(topology::ParseShape, kShapes, topology::Shape::kToR);
  status.rails = field("rails").Int(0, 256);
  status.counts = ReadCounts(field("counts"));
  status.units = field("units").List(512, ReadUnit);
  status.leaves = field("leaves").List(4096, ReadLeaf);
  status.spines = field("spines").List(1024, [](const Field& item) {
    return SpineSummary{item("name").Name(128), item("tier").Required().Int(2, 8)};
  });
  status.nvlink_domains = field("nvlinkDomains").List(256, [](const Field& item) {
    return NvlinkDomainSummary{item("id").Name(253), item("nodes").Required().Int(0, kMaxInt),
                               item("gpus").Required().Int(0, kMaxInt)};
  });
  status.faults = field("faults").List(64, ReadFault);
  status.cables = codec::ReadCableCounts(field("cables"), kMaxInt);
  status.suspects = field("suspects").List(topology::kMaxSuspects, ReadSuspect);
  status.assumptions = field("assumptions").List(16, [](const Field& item) { return item.Text(512); });
  status.conditions = codec::ReadConditions(field("conditions"));
  return status;
}

}  // namespace

base::Result<Fabric> FabricFromJson(const Json& json) {
  codec::Problem problem;
  const Field root(json, problem);
  Fabric object;
  codec::ReadHead(root, keys::kFabric.kind, object);
  const Field spec = root("spec");
  object.spec = ReadSpec(spec);
  if (const Field ufm = spec("ufm"); ufm.present()) object.ufm = ReadUfm(ufm);
  object.status = ReadStatus(root("status"));
  if (problem.found()) return base::Fail(problem.error().In("Fabric " + object.name));
  return object;
}

}  // namespace heddle::crds
