#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "cli/cables.h"
#include "cli/live_cluster.h"
#include "cli/status.h"
#include "cli/status_parts.h"
#include "crds/fabric.h"
#include "crds/fabric_assembly.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;
using crds::Json;

// A NodeTopology is 16 KB, most of which a report does not look at; of 5,000 it is the difference between 1 GB and
// 50 MB of trees.
Json LeanTopology(const Json& object) {
  Json lean{{"metadata", {{"name", kube::Name(object)}}}, {"status", Json::object()}};
  if (const Json* made = kube::Find(object, {"metadata", "creationTimestamp"}))
    lean["metadata"]["creationTimestamp"] = *made;
  for (const char* field : {"observedAt", "conditions", "gpus"}) {
    if (const Json* value = kube::Find(object, {"status", field})) lean["status"][field] = *value;
  }
  return lean;
}

Json LeanNode(const Json& object) {
  Json lean{{"metadata", {{"name", kube::Name(object)}}}};
  if (const Json* spec = kube::Find(object, {"spec"})) lean["spec"] = *spec;
  if (const Json* conditions = kube::Find(object, {"status", "conditions"}))
    lean["status"]["conditions"] = *conditions;
  const Json* allocatable = kube::Find(object, {"status", "allocatable"});
  if (allocatable == nullptr || !allocatable->is_object()) return lean;
  Json& gpus = lean["status"]["allocatable"];
  gpus = Json::object();
  for (const auto& [resource, amount] : allocatable->items()) {
    if (crds::IsGpuResource(resource)) gpus[resource] = amount;
  }
  return lean;
}

// Of the containers only what they ask for, and whether they are sidecars.
Json LeanPod(const Json& object) {
  Json lean{{"spec", {{"nodeName", kube::StringAt(object, {"spec", "nodeName"})}}},
            {"status", {{"phase", kube::StringAt(object, {"status", "phase"})}}}};
  for (const char* field : {"containers", "initContainers"}) {
    for (const Json& container : kube::ArrayAt(object, {"spec", field})) {
      const Json* resources = kube::Find(container, {"resources"});
      if (resources == nullptr) continue;
      Json one{{"resources", *resources}};
      if (const Json* restarts = kube::Find(container, {"restartPolicy"})) one["restartPolicy"] = *restarts;
      lean["spec"][field].push_back(std::move(one));
    }
  }
  return lean;
}

Json Whole(const Json& object) {
  return object;
}

// Where what files hold belongs.
struct Section {
  std::string_view kind, title;
  base::Result<Objects> StatusReading::*objects;
  Json (*lean)(const Json& object);
};
// No Leases: they say who was silent on the day of the file, and the Fabrics say that too.
constexpr std::array kSections{
    Section{keys::kNodeTopology.kind, "NodeTopologies", &StatusReading::topologies, LeanTopology},
    Section{keys::kFabric.kind, "Fabrics", &StatusReading::fabrics, Whole},
    Section{keys::kGang.kind, "Gangs", &StatusReading::gangs, Whole},
    Section{"Pod", "Pods", &StatusReading::pods, LeanPod},
    Section{"Node", "Nodes", &StatusReading::nodes, LeanNode},
    Section{keys::kLosslessPolicy.kind, "LosslessPolicies", &StatusReading::lossless, Whole},
    Section{keys::kRdmaDevicePolicy.kind, "RdmaDevicePolicies", &StatusReading::devices, Whole},
    Section{keys::kFabricSwitch.kind, "FabricSwitches", &StatusReading::switches, Whole}};

bool IsJudged(const Objects& fabrics, const std::string& name) {
  return std::any_of(fabrics.begin(), fabrics.end(), [&name](const Json& fabric) {
    return kube::Name(fabric) == name && !kube::ArrayAt(fabric, {"status", "conditions"}).empty();
  });
}

// No operator has looked at what was designed or imported: its cables are judged as the operator would.
void JudgeCables(const FabricReading& files, Objects& fabrics) {
  for (const FabricPtr& fabric : files.fabrics) {
    crds::Fabric object;
    object.name = crds::FabricName(fabric->transport, fabric->site);
    if (fabric->faults.empty() || IsJudged(fabrics, object.name)) continue;
    object.status = crds::Summarise(*fabric);
    const bool certain = object.status.counts.cabling_faults > 0;
    fabrics.push_back(crds::ToJson(object));
    fabrics.back()["status"]["conditions"] =
        Json::array({{{"type", crds::kCabled},
                      {"status", certain ? "False" : "Unknown"},
                      {"reason", certain ? "CablingFaults" : "Ambiguous"}}});
  }
}

// And no agent has: the ports of their nodes that are down stand in no condition.
std::vector<Trouble> PortsDown(const FabricReading& files) {
  std::set<std::string> unjudged;
  for (const crds::NodeTopology& one : files.topologies) {
    if (one.status.conditions.empty()) unjudged.insert(one.name);
  }
  std::vector<Trouble> troubles;
  if (unjudged.empty()) return troubles;
  for (const CableRow& row : ReadCables(files)) {
    if (row.verdict != CableVerdict::kDown || !unjudged.contains(row.node)) continue;
    Trouble trouble{.order = kOfRails, .kind = "Port", .reason = "LinkDown", .what = "link down"};
    trouble.names = {fmt::format("{} {}", row.node, row.nic)};
    trouble.message = row.sentence;
    trouble.remedy = "the cable or transceiver: kubectl heddle cables --problems, with the same --topology";
    troubles.push_back(std::move(trouble));
  }
  return troubles;
}

struct StatusOfFiles {
  StatusReading reading;
  std::vector<Trouble> ports_down;
  std::string note;  // what the files hold none of
};

base::Result<StatusOfFiles> ReadStatusFiles(const StatusOptions& options, const ReadFile& read) {
  StatusOfFiles status;
  StatusReading& reading = status.reading;
  const auto see = [&reading](const Json& object) {
    const std::string kind = kube::StringAt(object, {"kind"});
    for (const Section& section : kSections) {
      if (section.kind == kind) (reading.*section.objects)->push_back(section.lean(object));
    }
  };
  ASSIGN_OR_RETURN(ClusterFiles files, ReadClusterFiles(options.topology, read, see));
  const FabricReading assembled = AssembleReading(std::move(files.topologies), std::move(files.declared));
  JudgeCables(assembled, *reading.fabrics);
  status.ports_down = PortsDown(assembled);
  std::vector<std::string_view> none{"Leases"};
  for (const Section& section : kSections) {
    base::Result<Objects>& objects = reading.*section.objects;
    if (!objects->empty()) continue;
    none.push_back(section.title);
    objects = base::Fail(Code::kNotFound, "the files hold none");
  }
  reading.leases = base::Fail(Code::kNotFound, "the files hold none");
  if (reading.gangs && !options.ns.empty()) {
    std::erase_if(*reading.gangs,
                  [&options](const Json& gang) { return kube::Namespace(gang) != options.ns; });
  }
  status.note = fmt::format(
      "This is of files and no cluster was asked: ages are up to now, and nothing is said of what is not in "
      "them ({})",
      fmt::join(none, ", "));
  return status;
}

Output StatusAnswer(const StatusReport& report, const StatusOptions& options, base::WallTime now,
                    const OutputOptions& look) {
  Output output;
  output.exit_code = report.wrong() ? Output::kRefused : Output::kOk;
  output.err += NoteLines(report.notes);
  output.out = look.format == Format::kText ? StatusText(report, options, now, look.style)
                                            : Printed(StatusJson(report, options), look.format);
  return output;
}

}  // namespace

Output RunStatus(kube::Client& client, base::Clock& clock, const StatusOptions& options,
                 const OutputOptions& look, const std::stop_token& stop) {
  const auto list = [&client, &stop](const kube::Resource& resource, kube::ListOptions of) {
    return ListOrWhyNot(client, resource, std::move(of), stop);
  };
  StatusReading reading;
  reading.topologies = list(HeddleResource(keys::kNodeTopology, false), {.transform = LeanTopology});
  if (!reading.topologies && reading.topologies.error().code != Code::kForbidden)
    return Failure(reading.topologies.error());
  reading.gangs = list(HeddleResource(keys::kGang, true), {.ns = options.ns});
  if (!reading.topologies && !reading.gangs) return Failure(reading.gangs.error());
  reading.fabrics = list(HeddleResource(keys::kFabric, false), {});
  reading.lossless = list(HeddleResource(keys::kLosslessPolicy, false), {});
  reading.devices = list(HeddleResource(keys::kRdmaDevicePolicy, false), {});
  reading.switches = list(HeddleResource(keys::kFabricSwitch, false), {});
  reading.nodes = list(kube::kNodes, {.transform = LeanNode});
  reading.pods = list(kube::kPods, {.field_selector = "spec.nodeName!=", .transform = LeanPod});
  reading.leases = list(kube::kLeases, {.ns = std::string(keys::kNamespace)});
  reading.now = clock.WallNow();
  return StatusAnswer(ReportStatus(reading), options, reading.now, look);
}

Output ShowStatus(const StatusOptions& options, base::WallTime now, const ReadFile& read,
                  const OutputOptions& look) {
  auto status = ReadStatusFiles(options, read);
  if (!status) return FailureOfInput(status.error());
  status->reading.now = now;
  StatusReport report = ReportStatus(status->reading);
  report.troubles.insert(report.troubles.end(), std::make_move_iterator(status->ports_down.begin()),
                         std::make_move_iterator(status->ports_down.end()));
  report.notes.assign(1, status->note);  // in place of one for each kind
  return StatusAnswer(report, options, now, look);
}

}  // namespace heddle::cli
