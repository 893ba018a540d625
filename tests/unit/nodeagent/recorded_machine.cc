#include "recorded_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "nodeagent/discovery/printed_facts.h"
#include "nodeagent/publish/report.h"
#include "nodeagent/ticket.h"

namespace heddle::test {
namespace {

// One run of the generator: the machines of a shape share their PCI tree and the thousands of files of their
// CPUs.
constexpr const char* kFleet = R"(
import sys
sys.path.insert(0, sys.argv[1])
import machines
shapes = ("dgx-a100", "dgx-a800", "hgx-h100", "hgx-h800", "hgx-h200", "hgx-b200", "p5-48xlarge", "roce-dual-tor",
          "p4d-24xlarge", "p5en-48xlarge", "p6-b200-48xlarge",
          "plain-host", "hgx-b300", "nd-a100-v4-vm", "nd-a100-v4-vm-blind", "mi300x")
hosts = [{"name": shape, "shape": shape} for shape in shapes]
hosts += [{"name": shape, "shape": shape, "clique": 3, "cluster_uuid": "7a1c0000-0000-4000-8000-00000000000a"}
          for shape in ("gb200-nvl72-tray", "gb300-nvl72-tray", "gb200-roce-tray")]
hosts += [
          {"name": "hgx-down", "shape": "hgx-h100", "down": ["3"], "half": ["5"]},
          {"name": "hgx-bad-gpu", "shape": "hgx-h100", "bad_gpus": [5]},
          {"name": "hgx-recabled", "shape": "hgx-h100", "leaves": {"3": "su1-r3/17"}},
          {"name": "roce-half", "shape": "roce-dual-tor", "down": ["0.2"]}]
changed = ("no-driver", "lost-gpu", "bad-files", "pulled", "watched")
hosts += [{"name": "hgx-" + name, "shape": "hgx-h100"} for name in changed]
machines.write({"nodes": hosts}, sys.argv[2])
)";

const std::string& Fleet() {
  static const TemporaryFolder folder;
  static const bool written = [] {
    folder.Write("fleet.py", kFleet);
    Output("/usr/bin/python3 -B " + folder.path() + "/fleet.py " HEDDLE_SOURCE_DIR "/tests/support " +
           folder.path());
    return true;
  }();
  EXPECT_TRUE(written);
  return folder.path();
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "heddle-XXXXXX").string();
  path_ = ::mkdtemp(name.data()) == nullptr ? std::string() : name;
  EXPECT_FALSE(path_.empty());
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}
void TemporaryFolder::Write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

std::string Output(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << output;
  return output;
}

RecordedMachine::RecordedMachine(const std::string& name) : path_(Fleet() + "/" + name) {
  EXPECT_TRUE(std::filesystem::exists(path_ + "/machine.yaml")) << name << " is not in the fleet";
}

nodeagent::Observation RecordedMachine::Look() const {
  return LookAt(path_);
}

void RecordedMachine::Write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << content;
}

std::vector<std::string> FleetNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Fleet())) {
    if (std::filesystem::exists(entry.path() / "machine.yaml")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, std::set<std::string>> PairsOf(const topology::Node& node) {
  std::map<int, std::string> gpus;
  for (const topology::Gpu& gpu : node.gpus) gpus[gpu.index] = gpu.pci;
  std::map<std::string, std::set<std::string>> pairs;
  for (const topology::GpuNicPath& path : node.paths)
    pairs[gpus[path.gpu]].insert(node.FindNic(path.nic)->pci);
  return pairs;
}

std::vector<std::string> RailsOf(const topology::Node& node) {
  std::vector<std::string> rails;
  for (const topology::Nic& nic : node.nics) {
    if (nic.role == topology::NicRole::kCompute)
      rails.push_back(nic.pci + "@" + std::to_string(nic.rail.value_or(-1)));
  }
  std::sort(rails.begin(), rails.end());
  return rails;
}

void WriteMachine(const std::string& shape, const std::string& folder) {
  Output("/usr/bin/python3 -B " HEDDLE_SOURCE_DIR "/tests/support/machines.py " + shape + " " + folder +
         " --hostname node-00");
}

void Fill(const nodeagent::RecordedFiles& recorded, MemoryFileTree& files) {
  for (const std::string& folder : recorded.folders) files.MakeFolder(folder);
  for (const auto& [path, content] : recorded.files) files.Write(path, content);
  for (const auto& [path, target] : recorded.links) files.Link(path, target);
}

nodeagent::RecordedFiles ReadOf(const std::string& name) {
  const RecordedMachine machine(name);
  const base::DiskFileTree disk(machine.path());
  const nodeagent::RecordingFileTree recording(disk);
  (void)LookAt(recording);
  return recording.Recorded({});
}

nodeagent::Observation LookAt(const base::FileTree& files, const std::string& node) {
  nodeagent::RecordedGpus gpus(files);
  const auto text = files.Read("machine.yaml");
  auto identity = text ? nodeagent::ParseMachineYaml(*text) : nodeagent::Identity();
  EXPECT_TRUE(identity);
  if (!node.empty()) identity->node = node;
  return nodeagent::Discovery(files, gpus, nodeagent::RecordedLeaves(files), *identity, {}).Look();
}

nodeagent::Observation LookAt(const std::string& folder, const std::string& node) {
  const base::DiskFileTree files(folder);
  auto machine = nodeagent::OpenRecorded(files, folder, node);
  EXPECT_TRUE(machine) << machine.error().message;
  return machine ? machine->discovery->Look() : nodeagent::Observation();
}

std::string TicketAt(const std::string& folder, const std::string& node) {
  const base::DiskFileTree files(folder);
  auto machine = nodeagent::OpenRecorded(files, folder, node);
  EXPECT_TRUE(machine) << machine.error().message;
  if (!machine) return {};
  const nodeagent::Readings readings = machine->discovery->Read();
  const nodeagent::Observation seen = machine->discovery->Put(readings);
  crds::NodeTopology object;
  object.name = seen.node.name;
  return nodeagent::Ticket(nodeagent::Report(object, seen, kTicketTime),
                           nodeagent::ReadPrintedFacts(files, readings, seen));
}

}  // namespace heddle::test
