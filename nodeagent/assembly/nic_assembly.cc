#include "nodeagent/assembly/nic_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "nodeagent/nic/heard.h"
#include "nodeagent/nic/rdma_mtu.h"

namespace heddle::nodeagent {
namespace {

using topology::Nic;
using topology::NicPort;
using topology::Transport;

constexpr int kEthernetType = 1;  // ARPHRD_ETHER

// "15b3:1021"; empty where nobody says, as a tree that a file supplied.
std::string PciIdOf(const Readings& readings, const std::string& pci) {
  const PciDevice* device = readings.pci.Find(pci);
  if (device == nullptr || device->vendor == 0 || device->device == 0) return {};
  return fmt::format("{:04x}:{:04x}", device->vendor, device->device);
}

class NicAssembly {
 public:
  explicit NicAssembly(const Readings& readings) : readings_(readings) {}

  std::vector<Nic> Run() {
    for (const Exclusion& excluded : readings_.rdma.excluded) {
      if (excluded.whole_function) excluded_pci_.insert(excluded.pci);
    }
    for (const RdmaDevice& device : readings_.rdma.devices) AddRdma(device);
    for (const auto& [name, netdev] : readings_.net.netdevs) {
      if (!netdev.slaves.empty()) AddPlain(netdev);  // a bond takes its slaves first
    }
    for (const auto& [name, netdev] : readings_.net.netdevs) AddPlain(netdev);
    std::stable_sort(nics_.begin(), nics_.end(), [](const Nic& a, const Nic& b) {
      if (a.pci.empty() != b.pci.empty()) return b.pci.empty();
      return a.pci != b.pci ? a.pci < b.pci : a.name < b.name;
    });
    return std::move(nics_);
  }

 private:
  const Netdev* FindNetdev(const std::string& name) const {
    const auto found = readings_.net.netdevs.find(name);
    return found == readings_.net.netdevs.end() ? nullptr : &found->second;
  }

  const LeafFact& LeafOfNetdev(const std::string& name) const {
    const auto found = readings_.leaves.by_netdev.find(name);
    return found == readings_.leaves.by_netdev.end() ? unknown_ : found->second;
  }

  // The bond that an RDMA device stands for, else its interface; null where it has none.
  const Netdev* InterfaceOf(const RdmaDevice& device) const {
    std::vector<std::string> names;
    for (const RdmaPort& port : device.ports)
      names.insert(names.end(), port.netdevs.begin(), port.netdevs.end());
    names.insert(names.end(), device.netdevs.begin(), device.netdevs.end());
    const Netdev* found = nullptr;
    for (const std::string& name : names) {
      const Netdev* netdev = FindNetdev(name);
      if (netdev == nullptr) continue;
      if (found == nullptr) found = netdev;
      if (!netdev->slaves.empty()) return netdev;
      const Netdev* bond = FindNetdev(netdev->bond);
      if (bond != nullptr && !bond->slaves.empty()) return bond;
    }
    return found;
  }

  // `heard`: an RdmaPort or a Netdev, of that rate.
  template <class Heard>
  static NicPort MakePort(int number, const Heard& heard, int gbps, const LeafFact& leaf) {
    const int rate = CountedGbps(heard.state, heard.state_unread, gbps);
    const int assumed = CountedGbps(heard.state, heard.state_unread, heard.assumed_gbps);
    return NicPort{number, 0, heard.state, rate, rate > 0 ? rate : assumed, leaf};
  }

  NicPort PortOfNetdev(int number, const std::string& name) const {
    const Netdev* netdev = FindNetdev(name);
    const Netdev unheard;
    const Netdev& heard = netdev == nullptr ? unheard : *netdev;
    return MakePort(number, heard, heard.gbps, LeafOfNetdev(name));
  }

  NicPort PortOfRdma(const RdmaDevice& device, const RdmaPort& port, const Netdev* interface) const {
    const LeafFact* leaf = &unknown_;
    if (device.transport == Transport::kInfiniBand) {
      const auto found = readings_.leaves.by_port.find({device.name, port.number});
      if (found != readings_.leaves.by_port.end()) leaf = &found->second;
    } else if (!port.netdevs.empty() && FindNetdev(port.netdevs.front()) != nullptr) {
      leaf = &LeafOfNetdev(port.netdevs.front());
    } else if (interface != nullptr && device.ports.size() == 1) {
      leaf = &LeafOfNetdev(interface->name);
    }
    NicPort made = MakePort(port.number, port, port.rate_gbps, *leaf);
    made.plane = port.plane.value_or(0);
    AddRoce(device, port, interface, made);
    return made;
  }

  // What NCCL needs to know of a RoCE port: it speaks over the port's own interface, or the bond above it.
  void AddRoce(const RdmaDevice& device, const RdmaPort& port, const Netdev* interface, NicPort& made) const {
    made.rdma_mtu = port.active_mtu;
    if (device.transport != Transport::kRoce) return;
    const bool bond = interface != nullptr && !interface->slaves.empty();
    const Netdev* own = bond || port.netdevs.empty() ? nullptr : FindNetdev(port.netdevs.front());
    if (own == nullptr) own = interface;
    if (own == nullptr) return;
    if (made.rdma_mtu == 0) made.rdma_mtu = RoceMtu(own->mtu);
    const Gid* gid = RoceGid(port, own->name);
    if (gid != nullptr) made.gid_index = gid->index;
  }

  void Claim(const Netdev& netdev) {
    claimed_.insert(netdev.name);
    claimed_.insert(netdev.slaves.begin(), netdev.slaves.end());
  }

  // The PCI function of an interface; of a bond, that of its first slave that has one.
  std::string PlaceOf(const Netdev& netdev) const {
    std::string pci = netdev.pci;
    for (const std::string& name : netdev.slaves) {
      const Netdev* slave = FindNetdev(name);
      if (pci.empty() && slave != nullptr) pci = slave->pci;
    }
    return pci;
  }

  void AddRdma(const RdmaDevice& device) {
    Nic nic;
    nic.name = device.name;
    nic.pci = device.pci;
    nic.guid = device.guid;
    nic.driver = device.driver;
    nic.transport = device.transport;
    claimed_.insert(device.netdevs.begin(), device.netdevs.end());
    const Netdev* interface = InterfaceOf(device);
    if (interface != nullptr) {
      Claim(*interface);
      nic.netdev = interface->name;
      nic.mtu = interface->mtu;
      if (nic.pci.empty()) nic.pci = PlaceOf(*interface);  // software: its traffic goes through there
    }
    nic.numa = NumaOf(readings_, nic.pci);
    nic.pci_id = PciIdOf(readings_, nic.pci);
    // The driver shows a bond as one RDMA port; its cables are those of the slaves.
    if (interface != nullptr && !interface->slaves.empty()) {
      for (std::size_t i = 0; i < interface->slaves.size(); ++i) {
        nic.ports.push_back(PortOfNetdev(int(i) + 1, interface->slaves[i]));
        if (!device.ports.empty()) AddRoce(device, device.ports.front(), interface, nic.ports.back());
      }
    } else {
      for (const RdmaPort& port : device.ports) nic.ports.push_back(PortOfRdma(device, port, interface));
    }
    nics_.push_back(std::move(nic));
  }

  void AddPlain(const Netdev& netdev) {
    const bool of_excluded = !netdev.pci.empty() && excluded_pci_.contains(netdev.pci);
    if (claimed_.contains(netdev.name) || of_excluded || netdev.type != kEthernetType) return;
    Claim(netdev);
    Nic nic;
    nic.name = nic.netdev = netdev.name;
    nic.pci = PlaceOf(netdev);
    nic.transport = Transport::kEthernet;
    nic.mtu = netdev.mtu;
    for (std::size_t i = 0; i < netdev.slaves.size(); ++i) {
      nic.ports.push_back(PortOfNetdev(int(i) + 1, netdev.slaves[i]));
    }
    if (netdev.slaves.empty()) nic.ports.push_back(PortOfNetdev(1, netdev.name));
    nic.numa = NumaOf(readings_, nic.pci);
    nic.pci_id = PciIdOf(readings_, nic.pci);
    nics_.push_back(std::move(nic));
  }

  const Readings& readings_;
  const LeafFact unknown_;
  std::set<std::string> claimed_;  // interfaces that some NIC already stands for
  std::set<std::string> excluded_pci_;
  std::vector<Nic> nics_;
};

}  // namespace

topology::Fact<int> NumaOf(const Readings& readings, const std::string& pci) {
  const PciDevice* device = readings.pci.Find(pci);
  if (device != nullptr && device->numa) return device->numa;
  const auto found = readings.locality.numa_of_pci.find(pci);
  if (found != readings.locality.numa_of_pci.end()) return found->second;
  return topology::Missing::kUnknown;
}

std::vector<Nic> AssembleNics(const Readings& readings) {
  return NicAssembly(readings).Run();
}

}  // namespace heddle::nodeagent
