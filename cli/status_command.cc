#include "cli/live_cluster.h"
#include "cli/status.h"
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
  return lean;
}

// Of the containers only what they ask for.
Json LeanPod(const Json& object) {
  Json lean{{"spec", {{"nodeName", kube::StringAt(object, {"spec", "nodeName"})}}},
            {"status", {{"phase", kube::StringAt(object, {"status", "phase"})}}}};
  for (const char* field : {"containers", "initContainers"}) {
    for (const Json& container : kube::ArrayAt(object, {"spec", field})) {
      if (const Json* resources = kube::Find(container, {"resources"}))
        lean["spec"][field].push_back({{"resources", *resources}});
    }
  }
  return lean;
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
  const StatusReport report = ReportStatus(reading);
  Output output;
  output.exit_code = report.wrong() ? Output::kRefused : Output::kOk;
  output.err += NoteLines(report.notes);
  output.out = look.format == Format::kText ? StatusText(report, options, reading.now, look.style)
                                            : Printed(StatusJson(report, options), look.format);
  return output;
}

}  // namespace heddle::cli
