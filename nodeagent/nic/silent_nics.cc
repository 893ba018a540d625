#include "nodeagent/nic/silent_nics.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "nodeagent/nic/exclusion.h"
#include "nodeagent/pci/driver.h"
#include "nodeagent/pci/slot.h"

namespace heddle::nodeagent {
namespace {

using Model = std::pair<std::uint16_t, std::uint16_t>;  // vendor and device

constexpr std::uint32_t kNetwork = 0x02;       // class_code >> 16
constexpr std::uint32_t kInfiniBand = 0x0207;  // class_code >> 8

// Drivers that keep a function for somebody else.
bool IsGivenAway(std::string_view driver) {
  return driver.ends_with("vfio-pci") || driver == "pci-stub" || driver == "pciback" ||
         driver == "uio_pci_generic" || driver == "igb_uio";
}

// What has an RDMA device, by function and by card, and the models that do.
struct Served {
  std::set<std::string_view> functions, cards;
  std::set<Model> models;

  Served(const PciTree& tree, const RdmaReadings& rdma) {
    for (const RdmaDevice& device : rdma.devices) {
      Add(device.pci);
      if (const PciDevice* function = tree.Find(device.pci))
        models.emplace(function->vendor, function->device);
    }
    for (const Exclusion& excluded : rdma.excluded) {
      const PciDevice* function = tree.Find(excluded.pci);
      if (function != nullptr && !function->virtual_function) Add(excluded.pci);
    }
  }

  void Add(std::string_view pci) {
    if (pci.empty()) return;
    functions.insert(pci);
    cards.insert(SlotOf(pci));
  }
};

}  // namespace

std::vector<SilentNic> FindSilentNics(const base::FileTree& files, const PciTree& tree,
                                      const RdmaReadings& rdma) {
  std::vector<SilentNic> silent;
  const Served served(tree, rdma);
  for (const auto& [address, device] : tree.devices) {
    const bool infiniband = device.class_code >> 8 == kInfiniBand;
    if (device.class_code >> 16 != kNetwork || device.virtual_function || IsEfa(device)) continue;
    if (served.functions.contains(address)) continue;
    const bool like_others =
        served.models.contains({device.vendor, device.device}) && !served.cards.contains(SlotOf(address));
    if (!infiniband && !like_others) continue;
    const std::string function = "sys/bus/pci/devices/" + address;
    std::string driver = DriverOf(files, function);
    if (IsGivenAway(driver)) continue;
    NicFacts facts{address};
    facts.manages_nvlink = files.Read(function + "/vpd").value_or("").find("SW_MNG") != std::string::npos;
    if (!WhyExcluded(facts)) silent.push_back({address, std::move(driver), infiniband});
  }
  if (silent.empty()) return silent;
  // No such folder: no RDMA driver is loaded, so all of them are silent.
  const auto listed = files.List("sys/class/infiniband");
  bool told = listed || listed.error().code == base::Code::kNotFound;
  for (const std::string& name : listed.value_or(std::vector<std::string>())) {
    const auto place = files.ReadLink(fmt::format("sys/class/infiniband/{}/device", name));
    told = told && (place || place.error().code == base::Code::kNotFound);
  }
  if (!told) silent.clear();
  return silent;
}

}  // namespace heddle::nodeagent
