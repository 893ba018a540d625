#include "nodeagent/assembly/assemble.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "nodeagent/assembly/distances.h"
#include "nodeagent/assembly/lost_gpus.h"
#include "nodeagent/assembly/nic_assembly.h"
#include "nodeagent/assembly/nvlink_assembly.h"
#include "nodeagent/assembly/rails.h"
#include "nodeagent/nic/plane.h"
#include "nodeagent/pci/pcie_links.h"
#include "nodeagent/pci/slot.h"

namespace heddle::nodeagent {
namespace {

using topology::Gpu;
using topology::Nic;
using topology::NicRole;
using topology::PciDistance;

// The limits of NodeTopology's schema.
constexpr std::size_t kMaxGpus = 32;
constexpr std::size_t kMaxNvSwitches = 32;
constexpr std::size_t kMaxNics = 128;
constexpr std::size_t kMaxPorts = 8;
constexpr std::size_t kMaxPaths = 1024;

class Assembly {
 public:
  explicit Assembly(const Readings& readings) : readings_(readings) {}

  Observation Run() {
    topology::Node& node = seen_.node;
    node.name = readings_.identity.node;
    node.machine =
        readings_.identity.product.empty() ? readings_.locality.product : readings_.identity.product;
    node.site = readings_.identity.site;
    node.numa_nodes = readings_.locality.numa_nodes;
    seen_.boot_id = readings_.boot_id;
    seen_.file_alone = readings_.file_alone;
    CollectProblems();
    AddGpus();
    AssembleNvlink(readings_, seen_);
    AddNics();
    NamePlanes(readings_.rdma, node.nics);
    AddPaths();
    SayLostNics();
    seen_.pcie_faults = PcieFaults(readings_.pci, node);
    if (seen_.pcie_faults && !seen_.pcie_faults->empty()) LimitByPcie();
    std::sort(node.nics.begin(), node.nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
    return std::move(seen_);
  }

 private:
  void Problem(std::string sentence) { seen_.problems.push_back(std::move(sentence)); }

  template <class T>
  void Cut(std::vector<T>& list, std::size_t most, const std::string& what) {
    if (list.size() <= most) return;
    Problem(fmt::format("{} {} are left out: {} are published", list.size() - most, what, most));
    list.erase(list.begin() + std::ptrdiff_t(most), list.end());
  }

  void CollectProblems() {
    for (const auto* list : {&readings_.locality.problems, &readings_.pci.problems, &readings_.gpus.problems,
                             &readings_.rdma.problems, &readings_.net.problems, &readings_.leaves.problems}) {
      seen_.problems.insert(seen_.problems.end(), list->begin(), list->end());
    }
    seen_.no_driver = readings_.gpus.absent;
    FindSilentEfa();
    FindUnroutableRoce();
    for (const auto* list : {&readings_.rdma.excluded, &readings_.net.excluded}) {
      seen_.excluded.insert(seen_.excluded.end(), list->begin(), list->end());
    }
    for (const SilentNic& nic : readings_.silent_nics) {
      if (!nic.given) continue;
      seen_.excluded.push_back(
          {nic.pci, nic.pci,
           fmt::format("is a NIC that {} keeps for a virtual machine or DPDK", nic.driver)});
    }
  }

  // p5en brings its EFA devices up one by one, minutes after the boot: fewer of them than functions on the bus
  // are not fewer rails but some that are not there yet.
  void FindSilentEfa() {
    std::vector<std::string> silent;
    int functions = 0;
    for (const auto& [address, device] : readings_.pci.devices) {
      if (!IsEfa(device) || device.virtual_function || IsGiven(address)) continue;
      ++functions;
      const auto& devices = readings_.rdma.devices;
      const bool up = std::any_of(devices.begin(), devices.end(),
                                  [&address = address](const RdmaDevice& one) { return one.pci == address; });
      if (!up) silent.push_back(address);
    }
    if (silent.empty()) return;
    Problem(fmt::format(
        "{} of {} EFA functions on the PCI bus have no RDMA device (first: {}): they come up late, "
        "or the efa driver is not loaded or failed (dmesg)",
        silent.size(), functions, silent.front()));
  }

  // A table that has addresses and none of RoCE v2: traffic stays on its Ethernet segment, and NCCL finds no
  // GID. A table that is empty or was not read is no evidence.
  void FindUnroutableRoce() {
    for (const RdmaDevice& device : readings_.rdma.devices) {
      if (device.transport != topology::Transport::kRoce) continue;
      for (const RdmaPort& port : device.ports) {
        const bool typed =
            !port.gids.empty() && std::all_of(port.gids.begin(), port.gids.end(),
                                              [](const Gid& gid) { return gid.type == GidType::kIbOrRoce1; });
        if (!typed || port.state != topology::LinkState::kActive) continue;
        Problem(fmt::format(
            "{} port {} has {} GIDs and none of RoCE v2: give {} an IP address, or switch RoCE v2 on",
            device.name, port.number, port.gids.size(), port.gids.front().netdev));
      }
    }
  }

  void AddGpus() {
    for (const GpuReading& reading : readings_.gpus.gpus) {
      if (reading.index >= int(kMaxGpus)) {
        Problem(fmt::format("GPU {} is left out: a node has at most {} GPUs", reading.index, kMaxGpus));
        continue;
      }
      Gpu gpu{reading.index,
              reading.uuid,
              reading.name,
              reading.pci,
              NumaOf(readings_, reading.pci),
              true,
              {},
              (reading.memory_mib + 512) / 1024};
      gpu.mig = reading.mig.value_or(false);
      gpu.fatal_xid = IsFatalXid(reading.last_xid) ? reading.last_xid : 0;
      gpu.unhealthy_reason = FaultOf(reading);
      const bool lost = !readings_.pci.devices.empty() && readings_.pci.Find(reading.pci) == nullptr;
      if (gpu.unhealthy_reason.empty() && lost)
        gpu.unhealthy_reason = "the PCI bus does not show it: power-cycle the node";
      gpu.healthy = gpu.unhealthy_reason.empty();
      seen_.node.gpus.push_back(std::move(gpu));
    }
    AddGpusOfTheBus();
  }

  // GPUs that the bus shows and the driver does not: a machine whose driver is missing, broken, or of another
  // vendor.
  void AddGpusOfTheBus() {
    const bool driver_answers = readings_.gpus.absent.empty() && !readings_.gpus.gpus.empty();
    int index = int(seen_.node.gpus.size());
    for (const auto& [address, device] : readings_.pci.devices) {
      if (!IsGpu(device)) continue;
      bus_gpus_.push_back(address);
      const bool known = std::any_of(seen_.node.gpus.begin(), seen_.node.gpus.end(),
                                     [&address = address](const Gpu& gpu) { return gpu.pci == address; });
      if (known) continue;
      // Somebody took it from its driver on purpose, and it is neither broken nor the cluster's.
      if (device.for_vms) {
        seen_.excluded.push_back({address, address, "is a GPU that vfio-pci keeps for virtual machines"});
        continue;
      }
      if (driver_answers && device.vendor == kVendorNvidia) {
        seen_.unlisted_gpus.push_back(
            fmt::format("the GPU at {} is on the PCI bus and the driver does not list it", address));
        Problem(seen_.unlisted_gpus.back());
        continue;
      }
      if (index >= int(kMaxGpus)) {
        Problem(fmt::format("the GPU at {} is left out: a node has at most {} GPUs", address, kMaxGpus));
        continue;
      }
      Gpu gpu{index++,
              {},
              fmt::format("{} GPU {:04x}", device.vendor == kVendorAmd ? "AMD" : "NVIDIA", device.device),
              address,
              NumaOf(readings_, address),
              true,
              {},
              0};
      if (device.vendor == kVendorNvidia) {
        gpu.healthy = false;
        const std::string& why =
            readings_.gpus.absent;  // a driver may be there and only be kept from the agent
        gpu.unhealthy_reason = why.empty() ? "the NVIDIA driver does not answer: install or restart it" : why;
        seen_.gpus_unreadable = true;
        seen_.unasked_gpus.insert(gpu.index);
      }
      seen_.node.gpus.push_back(std::move(gpu));
    }
    for (const auto& [address, device] : readings_.pci.devices) {
      if (IsNvSwitch(device)) seen_.node.nvswitches.push_back({address});
    }
    Cut(seen_.node.nvswitches, kMaxNvSwitches, "NVSwitches");
  }

  // Tells a card with two ports from one with a single port, which have one PCI id; empty = unknown.
  std::string BoardOf(const Nic& nic) const {
    const auto& devices = readings_.rdma.devices;
    const auto rdma = std::find_if(devices.begin(), devices.end(),
                                   [&](const RdmaDevice& one) { return one.name == nic.name; });
    return rdma == devices.end() ? std::string() : rdma->board;
  }

  bool IsGivenToStorage(const Nic& nic) const {
    return nic.transport != topology::Transport::kEthernet && !readings_.storage.Naming(nic.name).empty();
  }

  void SayGivenStorage() {
    constexpr std::size_t kShown = 8;
    std::vector<std::string> names;
    for (const Nic& nic : seen_.node.nics) {
      if (IsGivenToStorage(nic)) names.push_back(nic.name);
    }
    if (names.empty()) return;
    const std::size_t shown = std::min(names.size(), kShown);
    seen_.given_storage = fmt::format("for storage, as --storage says: {}{}",
                                      fmt::join(names.begin(), names.begin() + std::ptrdiff_t(shown), ", "),
                                      shown < names.size() ? ", …" : "");
  }

  // What is equal for cards of one kind.
  std::string ModelOf(const Nic& nic) const { return fmt::format("{} {}", nic.pci_id, BoardOf(nic)); }

  // The GPUs by which rails are numbered: those of the bus, so that one which the driver lost leaves its
  // number free, and those that are gone from the bus, too. Where the driver counts in another order
  // (CUDA_DEVICE_ORDER does not reach NVML, but vGPUs do), the driver's.
  std::vector<std::string> GpusOfRails() {
    std::vector<std::string> driver, gone;
    for (const Gpu& gpu : seen_.node.gpus) {
      driver.push_back(gpu.pci);
      if (!std::binary_search(bus_gpus_.begin(), bus_gpus_.end(), gpu.pci)) gone.push_back(gpu.pci);
    }
    const bool unplaced = gone.size() == driver.size();  // no bus to speak of: a supplied file, or none
    if (unplaced || !std::is_sorted(driver.begin(), driver.end())) return driver;
    std::vector<PlacedNic> nics;
    for (const Nic& nic : seen_.node.nics) {
      if (nic.transport != topology::Transport::kEthernet && !IsGivenToStorage(nic))
        nics.push_back({nic.name, nic.pci, ModelOf(nic), nic.transport, nic.usable_gbps()});
    }
    RailGpus gpus = FindLostGpus(readings_.pci, bus_gpus_, driver.size(), nics);
    if (gpus.lost > 0) {
      seen_.lost_gpus = fmt::format(
          "{} of {} GPUs are gone from the PCI bus, and the rails are those that all of them had{}{}",
          gpus.lost, gpus.places.size(), gpus.orphans.empty() ? "" : ": beside ",
          fmt::join(gpus.orphans, ", "));
      return std::move(gpus.places);
    }
    gpus.places.insert(gpus.places.end(), gone.begin(), gone.end());
    std::sort(gpus.places.begin(), gpus.places.end());
    return std::move(gpus.places);
  }

  std::vector<PciDistance> DistancesTo(const std::string& pci, const std::vector<std::string>& gpus) const {
    std::vector<PciDistance> distances;
    distances.reserve(gpus.size());
    for (const std::string& gpu : gpus)
      distances.push_back(DistanceOf(readings_, gpu, pci).value_or(PciDistance::kSys));
    return distances;
  }

  // Puts silent NICs where they stand in PCI order, so that the rails of the others are dealt out as if they spoke.
  // Returns whose each one is, by position; null: a silent one's. An Ethernet function that is as far from GPUs as the
  // host's own network card may well be one whose RDMA was switched off; and of a card it stands for both of its ports,
  // which a bond makes one NIC.
  std::vector<Nic*> AddSilent(const std::vector<std::string>& gpus, std::vector<RailNic>& measured) {
    std::vector<Nic*> owners;
    const bool parts_are_rails = ArePartsRails();
    std::string_view last_card;
    for (Nic& nic : seen_.node.nics) owners.push_back(&nic);
    for (const SilentNic& silent : readings_.silent_nics) {
      if (silent.given && !IsLikeOneThatSpeaks(silent.pci)) continue;
      RailNic one;
      one.pci = silent.pci;
      one.pci_id = PciIdOf(silent.pci);
      one.whole = false;
      one.silent = true;
      one.given = silent.given;
      one.distance = DistancesTo(silent.pci, gpus);
      const bool near = std::any_of(one.distance.begin(), one.distance.end(),
                                    [](PciDistance distance) { return distance <= PciDistance::kPxb; });
      if (!silent.infiniband && (!near || SlotOf(silent.pci) == last_card)) continue;
      last_card = SlotOf(silent.pci);
      if (silent.by_part && !parts_are_rails) {
        lone_parts_.push_back(&silent);
        continue;
      }
      one.transport = silent.infiniband ? topology::Transport::kInfiniBand : topology::Transport::kRoce;
      std::size_t at = 0;
      for (std::size_t i = 0; i < measured.size(); ++i) {
        const bool same = measured[i].pci_id == one.pci_id && !measured[i].silent;
        if (same && measured[i].transport != topology::Transport::kEthernet)
          one.transport = measured[i].transport;
        if (!measured[i].pci.empty() && measured[i].pci < one.pci) at = i + 1;
      }
      measured.insert(measured.begin() + std::ptrdiff_t(at), std::move(one));
      owners.insert(owners.begin() + std::ptrdiff_t(at), nullptr);
    }
    return owners;
  }

  std::string PciIdOf(const std::string& pci) const {
    const PciDevice* device = readings_.pci.Find(pci);
    return device == nullptr ? std::string() : fmt::format("{:04x}:{:04x}", device->vendor, device->device);
  }

  bool IsLikeOneThatSpeaks(const std::string& pci) const {
    const std::string id = PciIdOf(pci);
    return std::any_of(seen_.node.nics.begin(), seen_.node.nics.end(), [&id](const Nic& nic) {
      return nic.transport != topology::Transport::kEthernet && nic.pci_id == id;
    });
  }

  bool IsGiven(const std::string& pci) const {
    return std::any_of(readings_.silent_nics.begin(), readings_.silent_nics.end(),
                       [&pci](const SilentNic& one) { return one.given && one.pci == pci; });
  }

  // Of EFA, FindSilentEfa does.
  void SaySilent(const std::string& pci, const RailPlace& place) {
    const PciDevice* device = readings_.pci.Find(pci);
    if (device != nullptr && IsEfa(*device)) return;
    for (const SilentNic& silent : readings_.silent_nics) {
      if (silent.pci != pci || silent.given) continue;
      if (!silent.infiniband && place.role != NicRole::kCompute) continue;
      silent_[{PciIdOf(pci), silent.driver}].push_back(pci);
    }
  }

  bool IsBeside(const std::string& pci, const std::string& gpu) const {
    return DistanceOf(readings_, gpu, pci).value_or(PciDistance::kSys) <= PciDistance::kPxb;
  }

  // NICs that only their part for RDMA tells are the rails where each GPU has one beside it. One beside some of them
  // may be the host's own, of a host that wants no RDMA: no GPU misses it, and no other NIC is measured by it. Where
  // pods take whole devices all of them may be with pods.
  bool ArePartsRails() const {
    const auto& silent = readings_.silent_nics;
    return !readings_.rdma_exclusive && !bus_gpus_.empty() &&
           std::all_of(bus_gpus_.begin(), bus_gpus_.end(), [&](const std::string& gpu) {
             return std::any_of(silent.begin(), silent.end(),
                                [&](const SilentNic& one) { return one.by_part && IsBeside(one.pci, gpu); });
           });
  }

  // One sentence for all that have one cause: a driver that is not loaded is one thing, not eight.
  void SayAllSilent() {
    for (const auto& [kind, functions] : silent_) {
      const auto& [pci_id, driver] = kind;
      const bool one = functions.size() == 1;
      Problem(fmt::format(
          "{} {} ({}) {} no RDMA device: {}", one ? "function" : "functions", fmt::join(functions, ", "),
          pci_id, one ? "has" : "have",
          driver.empty()
              ? std::string(
                    "no driver has taken it; dmesg says why, and a card that failed wants a power cycle")
              : fmt::format(
                    "look at dmesg, where {} says whether the card failed (power-cycle the node, replace the "
                    "card), at lsmod for its RDMA part, and at `rdma system`, by which a pod may have it",
                    driver)));
    }
  }

  // Whether the bus has lost it. A function beside the GPU that is no compute NIC was meant for something else, but for
  // one that is given away; a GPU that is unlike those with a NIC may be meant to have none; and a bus that was not
  // read, or that a file supplied, tells of nothing that is missing.
  bool IsGoneFromBus(const BareGpu& bare, const std::vector<std::string>& gpus,
                     const std::vector<BareGpu>& all) const {
    const std::string& address = gpus[std::size_t(bare.gpu)];
    if (readings_.pci.unread || !readings_.pci.source.empty()) return false;
    for (const auto& [pci, device] : readings_.pci.devices) {
      if (device.class_code >> 16 != 0x02 || device.virtual_function) continue;
      if (IsGiven(pci) && IsLikeOneThatSpeaks(pci)) continue;
      const bool compute = std::any_of(
          seen_.node.nics.begin(), seen_.node.nics.end(),
          [&pci = pci](const Nic& nic) { return nic.pci == pci && nic.role == NicRole::kCompute; });
      if (!compute && IsBeside(pci, address)) return false;
    }
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const bool served =
          std::none_of(all.begin(), all.end(), [&](const BareGpu& other) { return other.gpu == int(i); });
      if (served && PciIdOf(gpus[i]) == PciIdOf(address)) return true;
    }
    return false;
  }

  void SayLostNics() {
    for (const auto& [address, bare] : bare_gpus_) {
      const auto gpu = std::find_if(seen_.node.gpus.begin(), seen_.node.gpus.end(),
                                    [&address = address](const Gpu& one) { return one.pci == address; });
      if (gpu == seen_.node.gpus.end() || bare.rail > topology::kMaxRail) continue;
      // A pod may have it, which nothing on the host tells from a card that failed: no plan shall count it as down,
      // and no gang be told, not even the one that has it.
      const bool lent = bare.silent && readings_.rdma_exclusive;
      if (lent && bare.others) continue;
      if (!lent)
        gpu->nic_gone = topology::LostNic{bare.rail, bare.pci.empty() ? std::string() : bare.pci.front()};
      const Nic* left = seen_.node.NicOfGpu(gpu->index);
      std::string text = fmt::format("GPU {} {} on rail {}", gpu->index,
                                     bare.others ? "lacks a NIC" : "has no NIC of its own", bare.rail);
      if (left != nullptr)
        text += fmt::format(" and {} {}", bare.others ? "is left with" : "borrows", left->name);
      const bool several = bare.pci.size() > 1;
      const std::string names = bare.pci.empty() ? "" : fmt::format(" {}", fmt::join(bare.pci, ", "));
      text += fmt::format(": {}{}{}", bare.others ? "the other" : "its NIC", several ? "s" : "", names);
      text += bare.silent ? fmt::format(" {} no RDMA device (DiscoveryComplete)", several ? "have" : "has")
                          : std::string(" is gone from the PCI bus; reseat or replace the card");
      seen_.lost_nics.push_back(std::move(text));
    }
  }

  void AddNics() {
    auto& nics = seen_.node.nics;
    nics = AssembleNics(readings_);
    Cut(nics, kMaxNics, "NICs");
    const std::vector<std::string> gpus = GpusOfRails();
    std::vector<RailNic> measured;
    for (Nic& nic : nics) {
      Cut(nic.ports, kMaxPorts, "ports of " + nic.name);
      const bool whole = std::none_of(nic.ports.begin(), nic.ports.end(), [](const topology::NicPort& port) {
        return port.state == topology::LinkState::kDown;
      });
      RailNic one{nic.transport, nic.usable_gbps(), whole,        {},
                  nic.pci,       nic.pci_id,        BoardOf(nic), IsGivenToStorage(nic)};
      one.distance = DistancesTo(nic.pci, gpus);
      measured.push_back(std::move(one));
    }
    const std::vector<Nic*> owners = AddSilent(gpus, measured);
    Rails rails = MeasureRails(int(gpus.size()), measured);
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == nullptr) {
        SaySilent(measured[i].pci, rails.places[i]);
        continue;
      }
      owners[i]->role = rails.places[i].role;
      owners[i]->rail = rails.places[i].rail;
    }
    const bool compute = std::any_of(rails.places.begin(), rails.places.end(),
                                     [](const RailPlace& place) { return place.role == NicRole::kCompute; });
    // A host without any compute NIC: they may be what is left of its rails.
    for (const SilentNic* part : lone_parts_) {
      if (!compute && !readings_.rdma_exclusive)
        silent_[{PciIdOf(part->pci), part->driver}].push_back(part->pci);
    }
    SayAllSilent();
    for (const BareGpu& bare : rails.bare) {
      if (bare.silent || IsGoneFromBus(bare, gpus, rails.bare))
        bare_gpus_.emplace_back(gpus[std::size_t(bare.gpu)], bare);
    }
    seen_.rail_notes = std::move(rails.notes);
    seen_.rail_reach = rails.reach;
    SayGivenStorage();
    seen_.shared_leaf_names = readings_.leaves.shared_names;
    FindDerivedMtus();
    HearRails();
    crds::FillLeaves(seen_.node, readings_.leaves.labels);
  }

  void FindDerivedMtus() {
    for (const RdmaDevice& device : readings_.rdma.devices) {
      const auto nic = std::find_if(seen_.node.nics.begin(), seen_.node.nics.end(),
                                    [&](const Nic& one) { return one.name == device.name; });
      if (nic == seen_.node.nics.end() || nic->role != NicRole::kCompute) continue;
      const bool told = std::all_of(device.ports.begin(), device.ports.end(), [](const RdmaPort& port) {
        return port.active_mtu > 0 || port.state != topology::LinkState::kActive;
      });
      seen_.derived_mtus = seen_.derived_mtus || !told;
    }
  }

  // Rails that a supplied file tells: taken where none could be measured, else only compared.
  void HearRails() {
    seen_.pci_source = readings_.pci.source;
    for (const RdmaDevice& device : readings_.rdma.devices) {
      const auto nic = std::find_if(seen_.node.nics.begin(), seen_.node.nics.end(),
                                    [&](const Nic& one) { return one.name == device.name; });
      if (!device.rail || nic == seen_.node.nics.end() || nic->role != NicRole::kCompute) continue;
      if (*device.rail > topology::kMaxRail) continue;
      if (!nic->rail) {
        nic->rail = device.rail;
      } else if (*nic->rail != *device.rail) {
        Problem(fmt::format("{} is on rail {} by its place and on rail {} by {}", nic->name, *nic->rail,
                            *device.rail, readings_.pci.source));
      }
    }
  }

  void AddPaths() {
    auto& paths = seen_.node.paths;
    for (const Gpu& gpu : seen_.node.gpus) {
      std::vector<topology::GpuNicPath> nearest;
      for (const Nic& nic : seen_.node.nics) {
        const auto distance = DistanceOf(readings_, gpu.pci, nic.pci);
        if (nic.role != NicRole::kCompute || !distance) continue;
        if (!nearest.empty() && *distance > nearest.front().distance) continue;
        if (!nearest.empty() && *distance < nearest.front().distance) nearest.clear();
        nearest.push_back({gpu.index, nic.name, *distance});
      }
      std::sort(nearest.begin(), nearest.end(), [](const auto& a, const auto& b) { return a.nic < b.nic; });
      paths.insert(paths.end(), nearest.begin(), nearest.end());
    }
    Cut(paths, kMaxPaths, "pairs of a GPU and a NIC");
  }

  // Whatever its cable trained to, a NIC carries no more than the PCIe links above it. After the rails: a link that
  // lost lanes changes the role of no NIC.
  void LimitByPcie() {
    for (const auto& [name, gbps] : PcieLimits(readings_.pci, seen_.node)) {
      for (Nic& nic : seen_.node.nics) {
        const int counted = nic.usable_gbps();
        if (nic.name != name || counted <= gbps) continue;
        for (topology::NicPort& port : nic.ports)
          port.usable_gbps = int(std::int64_t{port.usable_gbps} * gbps / counted);
      }
    }
  }

  const Readings& readings_;
  std::vector<std::string> bus_gpus_;                                               // sorted
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> silent_;  // by PCI id and driver
  std::vector<const SilentNic*> lone_parts_;                // beside a GPU, by part, and no rails
  std::vector<std::pair<std::string, BareGpu>> bare_gpus_;  // by PCI address of the GPU
  Observation seen_;
};

}  // namespace

Observation Assemble(const Readings& readings) {
  return Assembly(readings).Run();
}

}  // namespace heddle::nodeagent
