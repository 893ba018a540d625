#include "extender/done_seats.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "extender/slot_faults.h"

namespace heddle::extender {
namespace {

using placement::PodPlacement;
using topology::kNone;
using topology::NodeId;

std::uint32_t Lowest(std::uint32_t bits, int count) {
  std::uint32_t lowest = 0;
  for (; count > 0 && bits != 0; --count, bits &= bits - 1) lowest |= bits & (~bits + 1);
  return lowest;
}

// By node: healthy GPUs that are free to nobody, without those of the gang's own places. Broken ones are left out, or a
// person would be told that the gang runs on them.
std::vector<std::uint32_t> OthersGpus(const FabricView& view, const std::vector<PodPlacement>& places) {
  const auto& nodes = view.fabric->nodes;
  std::vector<std::uint32_t> gpus(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto& all = nodes[n].node.gpus;
    for (std::size_t i = 0; i < all.size() && i < 32; ++i) {
      if (all[i].healthy) gpus[n] |= 1u << i;
    }
    gpus[n] &= ~view.state.open_gpus(NodeId(n));
  }
  for (const PodPlacement& place : places) {
    if (place.node != kNone) gpus[std::size_t(place.node)] &= ~place.gpus;
  }
  return gpus;
}

// The unit with the most free GPUs, where the others are likely to go: its first node.
NodeId Roomiest(const FabricView& view) {
  NodeId roomiest = kNone;
  int most = -1;
  const auto& nodes = view.fabric->nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].unit == kNone) continue;
    const int free = view.state.free_gpus_in_unit(nodes[n].unit);
    if (free <= most) continue;
    most = free;
    roomiest = NodeId(n);
  }
  return roomiest;
}

// By rank: a node that its place should be near to.
std::vector<NodeId> Homes(const FabricView& view, const GangMembers& members,
                          const std::vector<PodPlacement>& places) {
  std::vector<NodeId> known;
  known.reserve(places.size());
  for (const PodPlacement& place : places) known.push_back(place.node);
  for (const Member& member : members.leaving) {
    const PodFacts& pod = member.facts;
    if (!pod.succeeded || !pod.plan || pod.plan->rank < 0 || std::size_t(pod.plan->rank) >= known.size())
      continue;
    NodeId& home = known[std::size_t(pod.plan->rank)];
    if (home == kNone) home = view.Find(pod.node);
  }
  // Ranks of a group follow each other: the nearest number before or after.
  std::vector<NodeId> homes(known.size(), kNone);
  std::vector<std::size_t> away(known.size(), std::numeric_limits<std::size_t>::max());
  const auto spread = [&](std::size_t rank, NodeId& last, std::size_t& since) {
    ++since;
    if (known[rank] != kNone) {
      last = known[rank];
      since = 0;
    }
    if (last == kNone || since >= away[rank]) return;
    away[rank] = since;
    homes[rank] = last;
  };
  NodeId last = kNone;
  std::size_t since = 0;
  for (std::size_t rank = 0; rank < known.size(); ++rank) spread(rank, last, since);
  last = kNone;
  since = 0;
  for (std::size_t rank = known.size(); rank-- > 0;) spread(rank, last, since);
  return homes;
}

int Distance(const topology::Fabric& fabric, NodeId home, NodeId node) {
  if (home == kNone || home == node) return 0;
  const topology::FabricNode &a = fabric.nodes[std::size_t(home)], &b = fabric.nodes[std::size_t(node)];
  if (a.domain != kNone && a.domain == b.domain) return 1;
  return a.unit != kNone && a.unit == b.unit ? 2 : 3;
}

// By node, worse last: one whose hardware a person would be told of as the gang's, and one that nobody can use.
std::vector<int> Blemishes(const FabricView& view) {
  const auto& nodes = view.fabric->nodes;
  std::vector<int> blemishes(nodes.size(), 0);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (!view.state.usable(NodeId(n))) {
      blemishes[n] = 2;
    } else if (IsFaulty(nodes[n].node)) {
      blemishes[n] = 1;
    }
  }
  return blemishes;
}

}  // namespace

bool NeedsNoRoom(const GangMembers& members, std::size_t rank) {
  return rank < members.done.size() && members.done[rank] && !members.ranks[rank];
}

bool SeatDone(const FabricView& view, const GangMembers& members, std::vector<PodPlacement>& places) {
  std::vector<std::size_t> done;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (!NeedsNoRoom(members, rank)) continue;
    places[rank] = {};
    done.push_back(rank);
  }
  const int size = members.spec.gpus_per_pod;
  if (done.empty() || size <= 0) return false;
  std::vector<std::uint32_t> left = OthersGpus(view, places);
  const std::vector<NodeId> homes = Homes(view, members, places);
  const NodeId roomiest = Roomiest(view);
  const std::vector<int> blemishes = Blemishes(view);
  for (const std::size_t rank : done) {
    const NodeId home = homes[rank] == kNone ? roomiest : homes[rank];
    NodeId best = kNone;
    std::tuple<int, int> least;
    for (std::size_t n = 0; n < left.size(); ++n) {
      if (std::popcount(left[n]) < size) continue;
      const std::tuple<int, int> cost{Distance(*view.fabric, home, NodeId(n)), blemishes[n]};
      if (best != kNone && !(cost < least)) continue;
      best = NodeId(n);
      least = cost;
    }
    if (best == kNone) return false;
    std::uint32_t& there = left[std::size_t(best)];
    places[rank] = {best, Lowest(there, size)};
    there &= ~places[rank].gpus;
  }
  return true;
}

}  // namespace heddle::extender
