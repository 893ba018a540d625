#include "sizing/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "sizing/floor.h"
#include "sizing/storage.h"

namespace heddle::sizing {
namespace {

using topology::Transport;

Refusal Bad(std::string sentence) {
  return {RefusalReason::kBadRequest, std::move(sentence)};
}

std::optional<Refusal> CheckRatio(std::string_view flag, Ratio ratio) {
  if (ratio.down < 1 || ratio.up < 1 || ratio.down > kMostRatio || ratio.up > kMostRatio) {
    return Bad(fmt::format("{} {}:{}: write downlinks to uplinks in numbers from 1 to {}, as 2:1", flag,
                           ratio.down, ratio.up, kMostRatio));
  }
  if (ratio.up > ratio.down) {
    return Bad(fmt::format(
        "{} {}:{}: that buys uplinks that nothing below can fill: write 1:1, or --spare-ports for "
        "room to grow",
        flag, ratio.down, ratio.up));
  }
  return std::nullopt;
}

std::optional<Refusal> CheckRange(std::string_view flag, std::int64_t value, std::int64_t least,
                                  std::int64_t most) {
  if (value >= least && value <= most) return std::nullopt;
  return Bad(fmt::format("{} {} does not fit: write a number from {} to {}", flag, value, least, most));
}

std::optional<Refusal> CheckNumbers(const Request& request) {
  const std::array<std::optional<Refusal>, 13> checks = {
      CheckRatio("--oversubscription", request.leaf),
      CheckRatio("--core-oversubscription", request.core),
      CheckRange("--rails", request.rails, 0, 64),
      CheckRange("--planes", request.planes, 1, 8),
      CheckRange("--radix", request.radix, 0, kMostRadix),
      CheckRange("--tiers", request.tiers, 0, 3),
      CheckRange("--unit-nodes", request.unit_nodes, 0, kMostRadix),
      CheckRange("--spare-ports", request.spare_ports, 0, kMostRadix),
      CheckRange("--nodes-per-rack", request.hall.nodes_per_rack, 0, 64),
      CheckRange("--rack-kw", request.hall.rack_kw, 1, 1000),
      CheckRange("--racks-per-row", request.hall.racks_per_row, 0, 10'000),
      CheckRange("--row-metres", request.hall.row_metres, 1, 100),
      request.storage_gbs_per_gpu >= 0 && request.storage_gbs_per_gpu <= 1000
          ? std::nullopt
          : std::optional(Bad("--storage-gbs-per-gpu: write GB/s from 0 to 1000, as 0.5"))};
  for (const auto& check : checks) {
    if (check) return check;
  }
  return std::nullopt;
}

std::optional<Refusal> CheckWords(const Request& request) {
  if (FindMachineType(request.machine) == nullptr) {
    return Bad(fmt::format("--machine {}: there is none of that word: write one of {}", request.machine,
                           MachineTypeWords()));
  }
  if (request.transport != Transport::kInfiniBand && request.transport != Transport::kRoce) {
    return Bad("--transport: write ib or roce; EFA is the provider's own network, which nobody else builds");
  }
  if (FindStorageGuide(request.storage) == nullptr)
    return Bad(fmt::format("--storage {}: write good, better or best", request.storage));
  return std::nullopt;
}

// GPUs come in whole nodes, and these in whole NVLink domains.
std::optional<Refusal> CheckWhole(const Request& request, const MachineType& machine) {
  if (request.gpus < 1)
    return Bad(fmt::format("--gpus {}: write how many, 1 or more, as 1024", request.gpus));
  if (request.gpus > kMostGpus) {
    return Refusal{RefusalReason::kTooLarge,
                   fmt::format("--gpus {}: more than {} are not sized; the largest published job had 131,072",
                               Grouped(request.gpus), Grouped(kMostGpus))};
  }
  const std::int64_t step = std::int64_t(machine.gpus) * machine.domain_nodes;
  const std::int64_t below = request.gpus / step * step;
  if (below == request.gpus) return std::nullopt;
  const std::string ask = below == 0 ? Grouped(below + step)
                          : below + step > kMostGpus
                              ? Grouped(below)
                              : fmt::format("{} or {}", Grouped(below), Grouped(below + step));
  return Refusal{RefusalReason::kNotWhole,
                 fmt::format("{} GPUs are no whole number of {} of {}: ask for {}", Grouped(request.gpus),
                             machine.domain_nodes > 1 ? "racks" : "nodes", step, ask)};
}

// Whether a NIC's share is a rate that ports are made for.
bool IsLinkRate(int nic_gbps, int planes) {
  constexpr std::array kRates{100, 200, 400, 800, 1600};
  return nic_gbps % planes == 0 && std::find(kRates.begin(), kRates.end(), nic_gbps / planes) != kRates.end();
}

// Fills in the switch, its ports, and what a leaf serves.
std::optional<Refusal> ChooseSwitch(const Request& request, Design& design) {
  const MachineType& machine = *design.machine;
  if (!IsLinkRate(machine.nic_gbps, request.planes)) {
    std::vector<int> good;
    for (const int planes : {1, 2, 4, 8}) {
      if (IsLinkRate(machine.nic_gbps, planes)) good.push_back(planes);
    }
    return Bad(fmt::format("--planes {} do not share {} Gb/s of a NIC into links that there are: write {}",
                           request.planes, machine.nic_gbps, fmt::join(good, ", ")));
  }
  design.link_gbps = machine.nic_gbps / request.planes;
  const std::string_view transport = topology::TransportName(request.transport);
  if (!request.switch_word.empty()) {
    design.type = FindSwitchType(request.switch_word);
    if (design.type == nullptr || design.type->transport != request.transport) {
      return Bad(
          fmt::format("--switch {}: {} {}: write one of {}, or give --radix alone", request.switch_word,
                      design.type == nullptr ? "there is none of that word for" : "it is no switch for",
                      transport, SwitchTypeWords(request.transport)));
    }
  } else if (request.radix == 0) {
    design.type = UsualSwitch(request.transport, design.link_gbps);
    if (design.type == nullptr) {
      return Bad(fmt::format("no {} switch here has ports of {} Gb/s: give --radix, or more --planes",
                             transport, design.link_gbps));
    }
  }
  const int has = design.type != nullptr ? design.type->PortsAt(design.link_gbps) : kMostRadix;
  if (has == 0) {
    std::vector<std::string_view> fast;
    for (const SwitchType& one : Switches()) {
      if (one.transport == request.transport && one.PortsAt(design.link_gbps) > 0) fast.push_back(one.word);
    }
    return Bad(
        fmt::format("--switch {}: its ports of {} Gb/s are slower than links of {}: {}", request.switch_word,
                    design.type->port_gbps, design.link_gbps,
                    fast.empty() ? "give --radix alone" : fmt::format("write {}", fmt::join(fast, " or "))));
  }
  design.radix = request.radix > 0 ? request.radix : has;
  if (design.radix > has) {
    return Bad(
        fmt::format("--radix {}: a {} has {} ports of {} Gb/s: write that or fewer, or leave --switch out",
                    request.radix, design.type->word, has, design.link_gbps));
  }
  if (design.radix < 4 || design.radix % 2 != 0) {
    return Bad(fmt::format(
        "--radix {}: {}", design.radix,
        design.radix < 4
            ? "fewer than 4 ports make no tree: write the ports of a switch, as 64"
            : fmt::format("ports are split in halves: write an even number, as {}", design.radix + 1)));
  }
  if (request.spare_ports >= design.radix - 1) {
    return Bad(fmt::format("--spare-ports {} leave nothing of {} ports: write fewer", request.spare_ports,
                           design.radix));
  }
  return std::nullopt;
}

std::optional<Refusal> ChooseRails(const Request& request, Design& design) {
  const int nics = design.machine->nics;
  const bool tree = request.wiring == Wiring::kFatTree;
  if (tree && (request.rails > 1 || request.planes > 1)) {
    return Bad(
        "--wiring fat-tree puts all NICs of a node on one leaf: leave --rails and --planes out, or write "
        "rail-optimised");
  }
  design.rails = tree ? 1 : request.rails > 0 ? request.rails : nics;
  if (nics % design.rails == 0) return std::nullopt;
  std::vector<int> good;
  for (int rails = 1; rails <= nics; ++rails) {
    if (nics % rails == 0) good.push_back(rails);
  }
  return Bad(fmt::format("--rails {} do not divide the {} NICs of a node: write one of {}", design.rails,
                         nics, fmt::join(good, ", ")));
}

TreeWish WishOf(const Request& request, const Design& design) {
  return {request.wiring,    design.radix - request.spare_ports, design.nodes, design.machine->nics,
          design.rails,      design.machine->domain_nodes,       request.leaf, request.core,
          request.unit_nodes};
}

std::string Gpus(const Design& design, std::int64_t nodes) {
  return Grouped(nodes * design.machine->gpus);
}

// No unit at all, or more GPUs than the tiers hold.
Refusal WhyNoTree(const Request& request, const Design& design, const TreeWish& wish) {
  const bool only = request.wiring == Wiring::kRailOnly;
  const int tiers = request.tiers > 0 ? request.tiers : only ? 1 : 3;
  const int largest = LargestUnit(wish, tiers);
  if (largest == 0) {
    return {RefusalReason::kTooSmallRadix,
            fmt::format(
                "switches of {} ports have no room for {} on one leaf{}: take more ports (--switch, --radix) "
                "or another --wiring",
                wish.ports,
                wish.domain_nodes > 1 ? fmt::format("a rack of {} nodes", wish.domain_nodes) : "a node",
                tiers > 1 ? " and its way up" : "")};
  }
  if (wish.unit_nodes > largest) {
    return {
        RefusalReason::kTooSmallRadix,
        fmt::format("--unit-nodes {}: a leaf of {} ports takes {} nodes of a unit at most beside its uplinks",
                    wish.unit_nodes, wish.ports, largest)};
  }
  const std::int64_t most = Capacity(wish, tiers);
  const std::string ports = fmt::format("switches of {} ports", wish.ports);
  if (only) {
    return {
        RefusalReason::kTooLarge,
        fmt::format("{} GPUs do not fit on one leaf for each rail: rail-only with {} holds at most {}; write "
                    "--wiring rail-optimised, or take switches with more ports",
                    Gpus(design, wish.nodes), ports, Gpus(design, most))};
  }
  for (int more = tiers + 1; more <= 3; ++more) {
    if (wish.nodes > Capacity(wish, more)) continue;
    return {RefusalReason::kTooLarge,
            fmt::format(
                "{} GPUs need {} tiers of {}; {} hold{} at most {}: leave --tiers out, or ask for fewer GPUs",
                Gpus(design, wish.nodes), more, ports, tiers == 1 ? "1 tier" : fmt::format("{} tiers", tiers),
                tiers == 1 ? "s" : "", Gpus(design, most))};
  }
  std::string ways = "take switches with more ports (--switch, --radix), a higher --oversubscription";
  if (wish.leaves > 1) ways += ", fewer --rails";
  if (request.radix == 0 && request.wiring == Wiring::kRailOptimised) ways += ", more --planes";
  return {RefusalReason::kTooLarge,
          fmt::format(
              "{} GPUs are more than {} of {} hold, which is {}: {} or fewer GPUs", Gpus(design, wish.nodes),
              request.tiers > 0 ? fmt::format("{} tiers", tiers) : "3 tiers", ports,
              Gpus(design, request.tiers > 0 ? most : std::max(Capacity(wish, 2), Capacity(wish, 3))), ways)};
}

std::optional<Refusal> GrowTree(const Request& request, Design& design) {
  const TreeWish wish = WishOf(request, design);
  const bool only = request.wiring == Wiring::kRailOnly;
  if (only && request.tiers > 1)
    return Bad(
        fmt::format("--tiers {}: rail-only has nothing above its leaves: leave --tiers out", request.tiers));
  for (int tiers = std::max(1, request.tiers); tiers <= (request.tiers > 0 ? request.tiers : 3); ++tiers) {
    // Who says how large a unit is wants units.
    if (tiers == 1 && !only && request.tiers == 0 && request.unit_nodes > 0) continue;
    const std::optional<Tree> tree = FitTree(wish, tiers);
    if (!tree) {
      if (only) break;
      continue;
    }
    design.tree = *tree;
    const std::int64_t most = Capacity(wish, tiers);
    design.most_gpus = std::min(kMostGpus, most * design.machine->gpus);
    return std::nullopt;
  }
  return WhyNoTree(request, design, wish);
}

// Nodes read no more than their own ports carry.
std::optional<Refusal> CheckStorage(const Design& design) {
  const MachineType& machine = *design.machine;
  const double most = double(machine.storage_ports) * machine.storage_gbps / 8 / machine.gpus;
  const double asked = design.request.storage_gbs_per_gpu;
  if (asked <= most) return std::nullopt;
  return Bad(fmt::format(
      "--storage-gbs-per-gpu {}: the {} storage ports of a node carry {:.1f} GB/s to each GPU: write that "
      "or less",
      asked, machine.storage_ports, std::floor(most * 10) / 10));
}

void Count(Design& design) {
  const Tree& tree = design.tree;
  const int planes = design.request.planes, radix = design.radix;
  const auto add = [&](std::string_view name, std::int64_t switches, int down, int up) {
    design.tiers.push_back({name, switches * planes, down, up, radix - down - up});
  };
  add("leaf", tree.leaves(), tree.leaf_down, tree.leaf_up);
  if (tree.tiers > 1) add("spine", tree.spines(), tree.spine_down, tree.spine_up);
  if (tree.tiers > 2) add("core", tree.cores(), tree.core_down, 0);
  design.injection_gbps = design.nodes * design.machine->nics * design.machine->nic_gbps;
  std::int64_t narrowest = design.injection_gbps;
  const auto narrow = [&](std::int64_t cables) {
    narrowest = std::min(narrowest, cables * planes * design.link_gbps);
  };
  if (tree.tiers > 1) narrow(tree.leaf_spine_cables());
  // Of one pod nothing has to cross the cores.
  if (tree.tiers > 2 && tree.pod_units.size() > 1) narrow(tree.spine_core_cables());
  // Rails that nothing joins: of two halves with other rails each, none reaches the other.
  const bool apart = design.request.wiring == Wiring::kRailOnly && design.rails > 1;
  design.bisection_gbps = apart ? 0 : narrowest / 2;
}

}  // namespace

std::string_view SegmentName(Segment segment) {
  constexpr std::array<std::string_view, 3> kNames{"node to leaf", "leaf to spine", "spine to core"};
  return kNames[std::size_t(segment)];
}

std::string_view RefusalReasonName(RefusalReason reason) {
  constexpr std::array<std::string_view, 5> kNames{"BadRequest", "NotWhole", "TooSmallRadix", "TooLarge",
                                                   "OutOfReach"};
  return kNames[std::size_t(reason)];
}

std::int64_t Design::switches() const {
  return std::accumulate(tiers.begin(), tiers.end(), std::int64_t{0},
                         [](std::int64_t sum, const SwitchTier& tier) { return sum + tier.switches; });
}

std::int64_t Design::cable_count(Segment segment) const {
  std::int64_t count = 0;
  for (const CableRun& run : cables) count += run.segment == segment ? run.cables : 0;
  return count;
}

std::int64_t Design::cable_count() const {
  return cable_count(Segment::kNodeLeaf) + cable_count(Segment::kLeafSpine) +
         cable_count(Segment::kSpineCore);
}

std::int64_t Design::optical_cables() const {
  std::int64_t count = 0;
  for (const CableRun& run : cables) count += IsOptical(run.medium) ? run.cables : 0;
  return count;
}

std::int64_t Design::transceivers() const {
  std::int64_t count = 0;
  for (const CableRun& run : cables) count += HasTransceivers(run.medium) ? 2 * run.cables : 0;
  return count;
}

std::variant<Design, Refusal> DesignFabric(const Request& request) {
  Design design;
  design.request = request;
  if (auto refusal = CheckNumbers(request)) return *refusal;
  if (auto refusal = CheckWords(request)) return *refusal;
  design.machine = FindMachineType(request.machine);
  if (auto refusal = CheckWhole(request, *design.machine)) return *refusal;
  design.nodes = request.gpus / design.machine->gpus;
  if (request.unit_nodes % design.machine->domain_nodes != 0) {
    return Bad(
        fmt::format("--unit-nodes {}: an NVLink domain has {} nodes and lies in one unit: write a multiple",
                    request.unit_nodes, design.machine->domain_nodes));
  }
  if (auto refusal = ChooseSwitch(request, design)) return *refusal;
  if (auto refusal = ChooseRails(request, design)) return *refusal;
  if (auto refusal = GrowTree(request, design)) return *refusal;
  Count(design);
  auto laid = LayOut(design);
  if (auto* refusal = std::get_if<Refusal>(&laid)) return std::move(*refusal);
  design.floor = std::get<Laid>(laid).floor;
  design.cables = std::move(std::get<Laid>(laid).cables);
  design.storage = SizeStorage(design);
  if (auto refusal = CheckStorage(design)) return *refusal;
  return design;
}

std::vector<std::string> Check(const Design& design) {
  std::vector<std::string> faults;
  const auto expect = [&](bool holds, std::string sentence) {
    if (!holds) faults.push_back(std::move(sentence));
  };
  const Tree& tree = design.tree;
  const int planes = design.request.planes;
  const auto equal = [&](Segment segment, std::int64_t below, std::int64_t above) {
    expect(design.cable_count(segment) == below * planes,
           fmt::format("{}: {} cables, {} ports below", SegmentName(segment), design.cable_count(segment),
                       below * planes));
    expect(above >= below,
           fmt::format("{}: {} ports above for {} below", SegmentName(segment), above, below));
  };
  std::int64_t nodes = 0, units = 0;
  for (const int one : tree.unit_nodes) nodes += one;
  for (const int one : tree.pod_units) units += one;
  expect(nodes == design.nodes, fmt::format("units hold {} nodes of {}", nodes, design.nodes));
  expect(units == std::int64_t(tree.unit_nodes.size()), "pods do not hold all units");
  equal(Segment::kNodeLeaf, design.nodes * design.machine->nics, tree.leaves() * tree.leaf_down);
  equal(Segment::kLeafSpine, tree.leaf_spine_cables(), tree.spines() * tree.spine_down);
  equal(Segment::kSpineCore, tree.spine_core_cables(), tree.cores() * tree.core_down);
  for (const SwitchTier& tier : design.tiers) {
    expect(tier.free >= design.request.spare_ports && tier.down >= 0 && tier.up >= 0,
           fmt::format("{}: {} down and {} up of {} ports", tier.name, tier.down, tier.up, design.radix));
  }
  expect(design.bisection_gbps <= design.injection_gbps / 2, "the bisection is beyond what NICs send");
  expect(design.nodes * design.machine->gpus <= design.most_gpus, "more GPUs than the tiers hold");
  return faults;
}

}  // namespace heddle::sizing
