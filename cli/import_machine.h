#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/node.h"

namespace heddle::cli {

// What `fabric import` says beside its objects.
struct ImportFindings {
  std::vector<std::string> warnings;  // contradictions and cabling faults, with both ports
  std::vector<std::string> notes;     // what no file says and was taken for granted
};

// The inside of a host: GPUs, NVLink, and how far each GPU is from each NIC.
struct MachineNic {
  std::string name;  // "mlx5_0"; "nic0" where the file names none
  std::string pci;
  topology::Fact<int> numa;
  int gbps = 0;       // 0 = not said
  bool near = false;  // behind a PCIe switch with a GPU, or no NIC of this machine is
  friend bool operator==(const MachineNic&, const MachineNic&) = default;
};
struct Machine {
  std::string source;               // the file that says so; empty = nobody said anything
  std::vector<topology::Gpu> gpus;  // sorted by index
  std::vector<MachineNic> nics;     // sorted by name as people count, then PCI address
  std::vector<std::vector<topology::PciDistance>> distances;  // by GPU, then NIC
  topology::NvLink nvlink;
  bool nvlink_joins_gpus = false;  // all GPUs are one NVLink domain
  int numa_nodes = 0;
};

// Errors: kInvalid, with the place in the file.
[[nodiscard]] base::Result<Machine> MachineFromNcclXml(const std::string& source, std::string_view text,
                                                       ImportFindings& findings);
[[nodiscard]] base::Result<Machine> MachineFromTopoMatrix(const std::string& source, std::string_view text,
                                                          ImportFindings& findings);
// `gpus` GPUs in one NVLink domain, NICs unknown. Requires: 1 to 32.
Machine AssumedMachine(int gpus);

// Which machine each host is.
class Machines {
 public:
  explicit Machines(Machine usual) : usual_(std::move(usual)) {}
  void Add(std::string host, Machine machine) { by_host_[std::move(host)] = std::move(machine); }
  const Machine& Of(const std::string& host) const {
    const auto found = by_host_.find(host);
    return found == by_host_.end() ? usual_ : found->second;
  }
  const std::map<std::string, Machine>& by_host() const { return by_host_; }

 private:
  Machine usual_;
  std::map<std::string, Machine> by_host_;
};

// The machine's compute NICs, or, where nothing is known of them, one for each GPU; no leaf, and `gbps` where
// the machine does not say its own.
std::vector<topology::Nic> NicsOf(const Machine& machine, topology::Transport transport, int gbps);

// Gives the node its GPUs and, where the machine's NICs can be told to be the node's compute NICs (by name,
// else by order where there are as many), their distances. Requires: the node's NICs have roles and rails.
void Furnish(const Machine& machine, topology::Node& node, ImportFindings& findings);

// "mlx5_2" before "mlx5_10": digits count as numbers.
bool CountsBefore(std::string_view a, std::string_view b);

}  // namespace heddle::cli
