#include "nodeagent/discovery/discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/printable.h"
#include "nodeagent/gpu/amd_gpus.h"
#include "nodeagent/nccl/export.h"

namespace heddle::nodeagent {
namespace {

constexpr int kPasses = 3;
constexpr std::string_view kBootId = "proc/sys/kernel/random/boot_id";

// Whether a probe has said it already, alone or within a sentence of its own.
bool IsSaid(const Readings& readings, const std::string& problem) {
  const auto says = [&problem](const std::string& sentence) {
    return sentence.find(problem) != std::string::npos;
  };
  for (const auto* list : {&readings.pci.problems, &readings.gpus.problems, &readings.rdma.problems,
                           &readings.net.problems, &readings.leaves.problems}) {
    if (std::any_of(list->begin(), list->end(), says)) return true;
  }
  return false;
}

}  // namespace

Discovery::Discovery(const base::FileTree& files, GpuSource& gpus,
                     std::vector<std::unique_ptr<LeafSource>> leaves, Identity identity, Locality locality)
    : files_(files),
      gpus_(gpus),
      leaves_(std::move(leaves)),
      identity_(std::move(identity)),
      locality_(std::move(locality)),
      rdma_(files_) {}

std::vector<std::vector<std::string>> Discovery::Devices() const {
  std::vector<std::vector<std::string>> devices;
  for (const char* folder : {"sys/bus/pci/devices", "sys/class/infiniband", "sys/class/net"})
    devices.push_back(files_.List(folder).value_or(std::vector<std::string>()));
  return devices;
}

Readings Discovery::Read() {
  Readings readings;
  readings.identity = identity_;
  readings.locality = locality_;
  readings.storage = storage_;
  files_.Begin();
  if (const auto boot = base::ReadTrimmed(files_, kBootId)) readings.boot_id = formats::Printable(*boot, 64);
  readings.gpus = gpus_.Read();
  // A device that is renamed while it is looked at has no files under the name that was listed: look again.
  auto before = Devices();
  for (int pass = 1;; ++pass) {
    readings.pci = ProbePci(files_);
    readings.rdma = rdma_.Read();
    readings.net = ProbeNet(files_);
    auto after = Devices();
    if (after == before || pass == kPasses) break;
    before = std::move(after);
  }
  readings.silent_nics = FindSilentNics(files_, readings.pci, readings.rdma);
  readings.rdma_exclusive = !readings.silent_nics.empty() && RdmaIsExclusive(files_);
  counted_.Settle(readings.rdma, readings.net);
  if (mtus_) mtus_->Tell(readings.rdma, readings.net);
  AddAmdGpus(files_, readings.pci, readings.gpus);
  for (const auto& source : leaves_) readings.leaves.Merge(source->Read(readings.rdma));
  if (supplied_) Supply(*supplied_, readings);
  if (!identity_.strangers.empty()) {
    readings.pci.problems.push_back(fmt::format(
        "machine.yaml: {} says nothing here: its keys are name, hostname, site, uncabled and storage",
        fmt::join(identity_.strangers, ", ")));
  }
  for (std::string& problem : files_.problems()) {
    if (!IsSaid(readings, problem)) readings.pci.problems.push_back(std::move(problem));
  }
  return readings;
}

Observation Discovery::Look() {
  return Put(Read());
}

Observation Discovery::Put(const Readings& readings) const {
  Observation seen = Assemble(readings);
  if (!seen.pci_source.empty()) seen.nccl_topology = NcclTopologyOf(files_, readings, seen);
  return seen;
}

}  // namespace heddle::nodeagent
