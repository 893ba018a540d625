#include "extender/slot_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "crds/gpu_indexes.h"
#include "extender/lost_nodes.h"

namespace heddle::extender {
namespace {

constexpr std::string_view kGpu = "GpuUnhealthy";
constexpr std::string_view kRail = "RailDegraded";

// Of its ports that are to carry traffic; 0 where nobody knows a rate.
int RateOf(const topology::Nic& nic) {
  int gbps = 0;
  for (const topology::NicPort& port : nic.ports) gbps += port.rate_gbps;
  return gbps;
}

// A link that is down trained to nothing, so that its rate says nothing either.
bool IsDegraded(const topology::Nic& nic) {
  return nic.role == topology::NicRole::kCompute && (!nic.up() || nic.usable_gbps() < RateOf(nic));
}

std::string SentenceOf(const topology::Nic& nic) {
  for (const topology::NicPort& port : nic.ports) {
    if (!port.reason.empty()) return fmt::format("{} ({})", nic.name, port.reason);
  }
  return nic.up() ? fmt::format("{} carries {} of {} Gb/s", nic.name, nic.usable_gbps(), RateOf(nic))
                  : nic.name + " has no link";
}

struct Found {
  std::string first;
  int more = 0;
  void Add(const std::string& sentence) {
    if (first.empty()) {
      first = sentence;
    } else {
      ++more;
    }
  }
};

// "GPU 3 lost its NIC on rail 3 (0000:5e:00.0) and borrows mlx5_0". What it borrows may be sound.
std::string SentenceOfLoss(const topology::Node& node, const topology::Gpu& gpu,
                           const std::vector<int>& dealt) {
  const bool borrows = topology::BorrowsNics(node, gpu, dealt);
  std::string text =
      fmt::format("GPU {} lost {} NIC on rail {}", gpu.index, borrows ? "its" : "a", gpu.nic_gone->rail);
  if (!gpu.nic_gone->pci.empty()) text += fmt::format(" ({})", gpu.nic_gone->pci);
  if (!dealt.empty()) {
    text += fmt::format(" and {} {}", borrows ? "borrows" : "is left with",
                        node.nics[std::size_t(dealt.front())].name);
  }
  return text;
}

// What stands against the rails of these GPUs: the first NIC that is gone, or that is degraded; empty: nothing.
std::string RailFault(const topology::Node& node, std::uint32_t gpus) {
  const std::vector<std::vector<int>> dealt = topology::DealNics(node);
  for (std::size_t position = 0; position < node.gpus.size(); ++position) {
    const topology::Gpu& gpu = node.gpus[position];
    if (gpu.index < 0 || gpu.index >= 32 || (gpus >> unsigned(gpu.index) & 1u) == 0) continue;
    if (gpu.nic_gone) return SentenceOfLoss(node, gpu, dealt[position]);
    for (const int nic : dealt[position]) {
      if (IsDegraded(node.nics[std::size_t(nic)])) return SentenceOf(node.nics[std::size_t(nic)]);
    }
  }
  return {};
}

// Inside of one NVLink domain nothing of the gang's goes over rails.
bool LeavesItsDomain(const Snapshot& snapshot, const std::vector<crds::PlacedPod>& rows) {
  std::optional<topology::DomainId> first;
  for (const crds::PlacedPod& row : rows) {
    if (!row.has_slot()) continue;
    topology::NodeId id = topology::kNone;
    const FabricView* view = snapshot.FindNode(row.node, id);
    if (view == nullptr) return true;
    const topology::DomainId domain = view->fabric->nodes[std::size_t(id)].domain;
    if (!first) first = domain;
    if (domain != *first || domain == topology::kNone) return true;
  }
  return false;
}

// The part of a plan that is on nodes with broken hardware.
struct FaultySlot {
  int rank = 0;
  const topology::Node* node = nullptr;
  std::uint32_t gpus = 0;  // indexes
};
std::vector<FaultySlot> FaultySlots(const Snapshot& snapshot, const std::vector<crds::PlacedPod>& rows) {
  std::vector<FaultySlot> slots;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const crds::PlacedPod& row = rows[rank];
    const topology::Node* node = snapshot.faulty.contains(row.node) ? snapshot.Topology(row.node) : nullptr;
    if (node == nullptr) continue;
    slots.push_back({int(rank), node, row.gpus == 0 ? crds::AllIndexes(*node) : row.gpus});
  }
  return slots;
}

std::optional<SlotFault> Say(std::string_view reason, const Found& found, std::string_view advice) {
  if (found.first.empty()) return std::nullopt;
  const std::string more =
      found.more == 0 ? "" : fmt::format(", and {} more of its ranks are hit", found.more);
  return SlotFault{std::string(reason), fmt::format("{}{}; {}", found.first, more, advice)};
}

}  // namespace

bool IsFaulty(const topology::Node& node) {
  return std::any_of(node.gpus.begin(), node.gpus.end(),
                     [](const auto& gpu) { return !gpu.healthy || gpu.nic_gone; }) ||
         std::any_of(node.nics.begin(), node.nics.end(), IsDegraded);
}

std::vector<SlowRank> RanksOnDegradedRails(const crds::Gang& gang, const Snapshot& snapshot) {
  std::vector<SlowRank> slow;
  if (!StandsOn(gang, snapshot.faulty)) return slow;
  const auto rows = crds::ToRows(*gang.status.placement);
  if (!LeavesItsDomain(snapshot, rows)) return slow;
  for (const FaultySlot& slot : FaultySlots(snapshot, rows)) {
    const std::string fault = RailFault(*slot.node, slot.gpus);
    if (fault.empty()) continue;
    slow.push_back({slot.rank, fmt::format("a rail of {} (rank {}) is degraded: {}", slot.node->name,
                                           slot.rank, fault)});
  }
  return slow;
}

std::optional<SlotFault> SlotFaultOf(const crds::Gang& gang, const Snapshot& snapshot) {
  if (!StandsOn(gang, snapshot.faulty)) return std::nullopt;
  Found gpus, rails;
  for (const FaultySlot& slot : FaultySlots(snapshot, crds::ToRows(*gang.status.placement))) {
    const std::uint32_t bad = snapshot.Unhealthy(slot.node->name, slot.gpus);
    if (bad == 0) continue;
    gpus.Add(fmt::format("GPU {} of {} (rank {}) is not healthy", crds::FormatGpuIndexes(bad),
                         slot.node->name, slot.rank));
  }
  for (const SlowRank& one : RanksOnDegradedRails(gang, snapshot)) rails.Add(one.sentence);
  if (auto said =
          Say(kGpu, gpus, "nothing is moved while the pod runs; delete it, and its rank gets other GPUs")) {
    return said;
  }
  return Say(
      kRail, rails,
      "nothing is moved while the pod runs; delete it, and its rank goes where a step takes less time, if "
      "there is such a place");
}

bool SaysItsFaults(const crds::Gang& gang, const Snapshot& snapshot) {
  const auto fault = SlotFaultOf(gang, snapshot);
  const bool ours = gang.status.reason == kGpu || gang.status.reason == kRail;
  if (!fault) return !ours;
  return ours && gang.status.reason == fault->reason && gang.status.message == fault->sentence;
}

}  // namespace heddle::extender
