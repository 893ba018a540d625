#include "operator/assembly.h"

#include "crds/fabric.h"
#include "crds/fabric_assembly.h"
#include "crds/newer_spec.h"
#include "operator/policy_reads.h"

namespace heddle::operators {
Labels Assembly::LabelsOf(const std::string& node) const {
  for (const auto& [name, fabric] : fabrics) {
    const topology::NodeId id = fabric.FindNode(node);
    if (id != topology::kNone) return TopologyLabels(name, fabric, id);
  }
  return {};
}

AssemblyPtr Assembler::Assemble(const kube::SortedObjects& topologies, const kube::SortedObjects& fabrics) {
  auto assembly = std::make_shared<Assembly>();
  std::map<std::string, Reading> readings;
  std::vector<topology::Node> nodes;
  for (const kube::ObjectPtr& object : topologies) {
    const std::string name = kube::Name(*object);
    const auto known = readings_.find(name);
    Reading reading =
        known != readings_.end() && known->second.object == object ? std::move(known->second) : Read(object);
    if (!reading.error.empty()) assembly->left_out[name] = reading.error;
    if (reading.reported) {
      assembly->reporting.push_back(name);
      if (!reading.contradictions.empty()) assembly->contradictions[name] = reading.contradictions;
      if (!reading.complaints.empty()) assembly->complaints[name] = reading.complaints;
      if (!reading.congested.empty()) assembly->congested[name] = reading.congested;
      nodes.push_back(reading.node);
    }
    readings.emplace(name, std::move(reading));
  }
  readings_ = std::move(readings);

  std::map<std::string, topology::Declaration> declarations;
  for (const kube::ObjectPtr& object : fabrics) {
    auto fabric = ReadBySpec(*object, &crds::FabricFromJson);
    if (fabric) {
      declarations[kube::Name(*object)] = std::move(fabric->spec);
    } else {
      assembly->spec_errors[kube::Name(*object)] = fabric.error().message;
    }
  }
  assembly->fabrics = crds::AssembleFabrics(std::move(nodes), declarations);
  return assembly;
}

Assembler::Reading Assembler::Read(const kube::ObjectPtr& object) {
  Reading reading{.object = object};
  auto parsed = crds::NodeTopologyOfAnySpec(*object);
  if (!parsed) {
    reading.error = parsed.error().message;
    return reading;
  }
  if (!parsed->status.observed_at) return reading;
  reading.reported = true;
  reading.node = std::move(parsed->status.node);
  reading.node.name = kube::Name(*object);
  reading.contradictions = topology::Check(reading.node);
  reading.congested = std::move(parsed->status.congestion);
  reading.complaints = std::move(parsed->status.conditions);
  // Whether a node is ready is not known where its agent could not see its GPUs.
  std::erase_if(reading.complaints, [](const crds::Condition& one) {
    const bool unknown = one.type == crds::kReady && one.status == crds::ConditionStatus::kUnknown;
    return one.status != crds::ConditionStatus::kFalse && !unknown;
  });
  return reading;
}

}  // namespace heddle::operators
