#include "nodeagent/nic/silent_nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
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

// Functions whose driver made a part for RDMA on the auxiliary bus, as mlx5_core.rdma.3 and ice.roce.0, whether or not
// a driver of RDMA took it. Where RDMA is switched off (devlink's enable_rdma) there is none, and a kernel before 5.11
// has no such bus.
std::set<std::string> FunctionsWithRdmaPart(const base::FileTree& files) {
  constexpr std::array<std::string_view, 3> kParts{".rdma.", ".roce.", ".iwarp."};
  const std::string bus = "sys/bus/auxiliary/devices";
  std::set<std::string> functions;
  for (const std::string& name : files.List(bus).value_or(std::vector<std::string>())) {
    const bool rdma = std::any_of(kParts.begin(), kParts.end(), [&name](std::string_view part) {
      return name.find(part) != std::string::npos;
    });
    const auto target =
        rdma ? files.ReadLink(fmt::format("{}/{}", bus, name)) : base::Fail(base::Code::kNotFound, "");
    if (!target) continue;
    // "../../../devices/pci0000:5b/0000:5b:01.0/0000:5e:00.0/mlx5_core.rdma.3"
    const std::string above = target->substr(0, target->find_last_of('/'));
    functions.insert(above.substr(above.find_last_of('/') + 1));
  }
  return functions;
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

bool IsGivenAway(std::string_view driver) {
  return driver.find("vfio") != std::string_view::npos || driver == "pci-stub" || driver == "pciback" ||
         driver == "uio_pci_generic" || driver == "igb_uio";
}

std::vector<SilentNic> FindSilentNics(const base::FileTree& files, const PciTree& tree,
                                      const RdmaReadings& rdma) {
  std::vector<SilentNic> silent;
  const Served served(tree, rdma);
  std::optional<std::set<std::string>> with_rdma_part;  // read where it matters
  for (const auto& [address, device] : tree.devices) {
    if (device.class_code >> 16 != kNetwork || device.virtual_function) continue;
    if (served.functions.contains(address)) continue;
    const bool infiniband = device.class_code >> 8 == kInfiniBand;
    const std::string function = "sys/bus/pci/devices/" + address;
    std::string driver = DriverOf(files, function);
    if (IsGivenAway(driver)) {
      silent.push_back({address, std::move(driver), infiniband, true});
      continue;
    }
    const bool alone = !served.cards.contains(SlotOf(address));
    const bool like_others = alone && served.models.contains({device.vendor, device.device});
    if (!infiniband && !like_others) {
      if (!alone) continue;
      if (!with_rdma_part) with_rdma_part = FunctionsWithRdmaPart(files);
      if (!with_rdma_part->contains(address)) continue;
    }
    NicFacts facts{address};
    facts.manages_nvlink = files.Read(function + "/vpd").value_or("").find("SW_MNG") != std::string::npos;
    if (WhyExcluded(facts)) continue;
    silent.push_back({address, std::move(driver), infiniband, false, !infiniband && !like_others});
  }
  if (std::all_of(silent.begin(), silent.end(), [](const SilentNic& one) { return one.given; }))
    return silent;
  // No such folder: no RDMA driver is loaded, so all of them are silent.
  const auto listed = files.List("sys/class/infiniband");
  bool told = listed || listed.error().code == base::Code::kNotFound;
  for (const std::string& name : listed.value_or(std::vector<std::string>())) {
    const auto place = files.ReadLink(fmt::format("sys/class/infiniband/{}/device", name));
    told = told && (place || place.error().code == base::Code::kNotFound);
  }
  if (!told) std::erase_if(silent, [](const SilentNic& one) { return !one.given; });
  return silent;
}

bool RdmaIsExclusive(const base::FileTree& files) {
  return base::ReadTrimmed(files, "sys/module/ib_core/parameters/netns_mode").value_or(std::string()) == "N";
}

}  // namespace heddle::nodeagent
