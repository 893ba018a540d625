#include "nodeagent/discovery/machine.h"

#include <fmt/format.h>

#include "nodeagent/discovery/printed_facts.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/health/ethtool_stats.h"
#include "nodeagent/health/leaf_end.h"
#include "nodeagent/leaf/memory.h"
#include "nodeagent/leaf/umad.h"
#include "nodeagent/nccl/export.h"
#include "nodeagent/qos/kernel_port_io.h"
#include "nodeagent/qos/ports.h"
#include "nodeagent/qos/recorded_port_io.h"
#include "nodeagent/recording/recording.h"
#include "nodeagent/recording/scrub.h"

namespace heddle::nodeagent {
namespace {

base::Status CheckName(const Identity& identity) {
  const std::string wrong = WhyNotNodeName(identity.node);
  if (wrong.empty()) return {};
  return base::Fail(
      base::Code::kInvalid,
      fmt::format("\"{}\" is not the name of a Node: {}; give --node NAME", identity.node, wrong));
}

Machine Assemble(const base::FileTree& files, Identity identity, std::unique_ptr<GpuSource> gpus,
                 std::vector<std::unique_ptr<LeafSource>> leaves,
                 std::unique_ptr<LeafCountSource> leaf_counts, UncabledPorts uncabled, StorageNics storage,
                 const std::string& root) {
  identity.uncabled = uncabled.text();
  identity.storage = storage.text();
  Machine machine{std::move(identity), std::move(gpus), nullptr, std::move(leaf_counts)};
  machine.discovery = std::make_unique<Discovery>(files, *machine.gpus, std::move(leaves), machine.identity,
                                                  ProbeLocality(files, root));
  machine.discovery->LeaveOut(std::move(uncabled));
  machine.discovery->KeepForStorage(std::move(storage));
  return machine;
}

// Reads all that a replay may ask for, and writes it.
base::Status Keep(const RecordingFileTree& recording, Machine& machine, EthtoolSource& ethtool, PortIo* qos,
                  bool scrub, const std::string& folder) {
  const Readings readings = machine.discovery->Read();
  ReadForHwloc(recording);
  const Observation seen = nodeagent::Assemble(readings);
  (void)NcclTopologyOf(recording, readings, seen);
  (void)ReadPrintedFacts(recording, readings, seen);
  Identity identity = readings.identity;
  if (identity.product.empty()) identity.product = readings.locality.product;
  std::map<std::string, std::string> extra = readings.leaves.files;
  const std::vector<WatchedPort> watched = WatchedPorts(readings, seen.node);
  extra.merge(RecordCounters(recording, ethtool, watched));
  if (std::string told = FormatLeafCounts(machine.leaf_counts->Read(PortsWithLeaves(watched))); !told.empty())
    extra[kLeafCountersFile] = std::move(told);
  if (std::string told = FormatVerbsYaml(readings.rdma); !told.empty()) extra["verbs.yaml"] = std::move(told);
  const std::vector<QosPort> ports =
      QosPorts(QosPortsWanted::kRoce, seen.node, WatchedPortsOfAllRoles(readings, seen.node), &recording);
  if (qos != nullptr && !ports.empty()) extra["qos.yaml"] = FormatQosYaml(RecordQos(*qos, ports));
  extra["machine.yaml"] = FormatMachineYaml(identity);
  GpuReadings gpus = readings.gpus;
  std::erase_if(gpus.gpus, [](const GpuReading& gpu) { return gpu.xgmi; });  // sysfs has those
  extra["nvml.yaml"] = FormatNvmlYaml(gpus);
  const RecordedFiles recorded = recording.Recorded(extra);
  return Deliver(scrub ? Scrub(recorded) : recorded, folder);
}

}  // namespace

base::Result<Machine> OpenRecorded(const base::FileTree& files, const std::string& folder, std::string node,
                                   UncabledPorts uncabled, StorageNics storage) {
  if (const auto entries = files.List(""); !entries) {
    return base::Fail(
        entries.error().code,
        fmt::format("{}: no recorded machine there (heddle-nodeagent record DIR makes one)", folder));
  }
  Identity identity;
  const auto text = files.Read("machine.yaml");
  if (text) {
    ASSIGN_OR_RETURN(identity, ParseMachineYaml(*text), folder);
  } else if (text.error().code != base::Code::kNotFound) {
    return base::Fail(text.error().In(folder));
  }
  if (!text && node.empty()) {
    return base::Fail(
        base::Code::kNotFound,
        fmt::format("{}: there is no recording, as it has no machine.yaml (heddle-nodeagent record DIR "
                    "makes one); to take the folder all the same, give --node NAME",
                    folder));
  }
  if (!node.empty()) identity.node = std::move(node);
  if (uncabled == UncabledPorts()) {
    ASSIGN_OR_RETURN(uncabled, UncabledPorts::Parse(identity.uncabled), folder + "/machine.yaml: uncabled");
  }
  if (storage == StorageNics()) {
    ASSIGN_OR_RETURN(storage, StorageNics::Parse(identity.storage), folder + "/machine.yaml: storage");
  }
  TRY(CheckName(identity), folder);
  Machine machine =
      Assemble(files, std::move(identity), std::make_unique<RecordedGpus>(files), RecordedLeaves(files),
               std::make_unique<RecordedLeafCounts>(files), std::move(uncabled), std::move(storage), folder);
  machine.discovery->Ask(std::make_unique<RecordedMtus>(files));
  return machine;
}

base::Result<Machine> OpenLive(const base::FileTree& files, std::string node, std::unique_ptr<GpuSource> gpus,
                               base::Clock& clock, const std::stop_token& stop, const LeafPaths& paths,
                               UncabledPorts uncabled, StorageNics storage) {
  const Identity identity{std::move(node), {}, {}};
  TRY(CheckName(identity));
  Machine machine =
      Assemble(files, identity, std::move(gpus), LiveLeaves(files, clock, stop, paths),
               std::make_unique<PmaLeafCounts>(files, clock, std::make_unique<UmadLines>(files), stop),
               std::move(uncabled), std::move(storage), "/");
  machine.discovery->Ask(std::make_unique<DriverMtus>(std::make_unique<LiveVerbs>(), stop));
  return machine;
}

base::Status Record(const base::FileTree& files, const std::string& node, std::unique_ptr<GpuSource> gpus,
                    base::Clock& clock, const std::string& folder, const LeafPaths& paths, bool scrub,
                    UncabledPorts uncabled, StorageNics storage) {
  const RecordingFileTree recording(files);
  ASSIGN_OR_RETURN(Machine machine, OpenLive(recording, node, std::move(gpus), clock, {}, paths,
                                             std::move(uncabled), std::move(storage)));
  LiveEthtool ethtool;
  KernelPortIo qos(LiveQosSources());
  return Keep(recording, machine, ethtool, &qos, scrub, folder);
}

base::Status RecordAgain(const base::FileTree& files, const std::string& source, const std::string& node,
                         bool scrub, const std::string& folder, UncabledPorts uncabled, StorageNics storage) {
  const RecordingFileTree recording(files);
  ASSIGN_OR_RETURN(Machine machine,
                   OpenRecorded(recording, source, node, std::move(uncabled), std::move(storage)));
  RecordedEthtool ethtool(files);
  RecordedPortIo qos(files);
  return Keep(recording, machine, ethtool, files.Read("qos.yaml") ? &qos : nullptr, scrub, folder);
}

}  // namespace heddle::nodeagent
