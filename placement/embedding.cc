#include "placement/embedding.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "placement/content.h"

namespace heddle::placement {

using topology::NodeId;

Embedding::Embedding(const ClusterState& state, const GangRequest& request, const GangClasses& classes)
    : state_(state),
      request_(request),
      classes_(classes),
      alike_cost_alike_(!state.dense().oversubscribed() && state.link_load_mbps().empty() &&
                        !state.dense().is_torus()) {
  for (const PodRequest& pod : request.pods) {
    if (pod.gpus > 0) {
      sample_ = &pod;
      break;
    }
  }
  CHECK(classes.uniform && sample_ != nullptr);
  for (int t = 0; t < kTierCount; ++t) {
    pods_per_class_[std::size_t(t)] =
        *std::max_element(classes.pods[std::size_t(t)].begin(), classes.pods[std::size_t(t)].end());
  }
  nodes_are_domains_ = state.dense().cells(Tier::kDomain) == state.dense().cells(Tier::kNode);
  for (int gpus = sample_->gpus; gpus <= 32; ++gpus)
    slots_of_[std::size_t(gpus)] = std::uint8_t(gpus / sample_->gpus);
  const std::size_t nodes = state.fabric().nodes.size();
  usable_.resize(nodes);
  if (sample_->allowed) {
    allowed_.assign(nodes, 0);
    for (NodeId n : request.allowed_nodes[*sample_->allowed]) {
      if (n >= 0 && std::size_t(n) < nodes) allowed_[std::size_t(n)] = 1;
    }
  }
}

void Embedding::Measure(const GpuFilter& filter, bool empty) {
  if (measured_ == std::pair(filter, empty)) return;
  measured_ = {filter, empty};
  children_.clear();
  for (auto& at : children_at_) at.clear();
  MeasureNodes(filter, empty);
  measured_as_[0] = 0;
  const bool nvlink =
      classes_.needs_nvlink[std::size_t(classes_.of_pod[1][std::size_t(sample_ - request_.pods.data())])];
  for (std::size_t t = 1; t < kTierCount; ++t) {
    const bool same = SameAsBelow(Tier(t), filter, nvlink);
    measured_as_[t] = same ? measured_as_[t - 1] : t;
    if (!same) MeasureCells(Tier(t), filter, nvlink);
  }
}

void Embedding::MeasureNodes(const GpuFilter& filter, bool empty) {
  const DenseFabric& dense = state_.dense();
  const std::int32_t nodes = dense.cells(Tier::kNode);
  auto &capacity = capacity_[0], &free = free_[0];
  auto& content = content_[0];
  capacity.resize(std::size_t(nodes));
  free.resize(std::size_t(nodes));
  content.resize(std::size_t(nodes));
  const int grain = filter.grain_tier == Tier::kNode ? filter.grain : 1;
  for (int pods = 0; pods <= 32; ++pods) {
    classes_of_[std::size_t(pods)] = std::uint8_t(pods / grain * grain / pods_per_class_[0]);
  }
  for (std::int32_t cell = 0; cell < nodes; ++cell) {
    const NodeId node = dense.node_at(cell);
    const auto n = std::size_t(node);
    std::uint32_t gpus = empty ? AllGpus(dense.gpus(node)) : state_.open_gpus(node);
    if (!allowed_.empty() && !allowed_[n]) gpus = 0;
    const std::uint32_t odd = dense.odd_gpus(node);
    usable_[n] = gpus & filter.window & (filter.skip_odd ? ~odd : ~0U);
    int pods = slots_of_[std::size_t(std::popcount(usable_[n]))];
    if (pods > 0 && !empty) pods = state_.Copies(node, sample_->resources, pods);
    capacity[std::size_t(cell)] = classes_of_[std::size_t(pods)];
    free[std::size_t(cell)] = std::popcount(gpus);
    content[std::size_t(cell)] = ContentOf(dense, node, usable_[n]);
  }
}

// Whether each cell is one of the tier below and holds as many classes as that.
bool Embedding::SameAsBelow(Tier tier, const GpuFilter& filter, bool nvlink) const {
  const DenseFabric& dense = state_.dense();
  const Tier below = Tier(int(tier) - 1);
  const int part = pods_per_class_[std::size_t(below)];
  if (dense.cells(tier) != dense.cells(below) || pods_per_class_[std::size_t(tier)] != part) return false;
  if (tier == filter.grain_tier && filter.grain > part) return false;
  if (tier == Tier::kUnit && filter.most_per_unit > 0) return false;
  return tier != Tier::kDomain || !nvlink || dense.all_known(Tier::kDomain);
}

void Embedding::MeasureCells(Tier tier, const GpuFilter& filter, bool nvlink) {
  const DenseFabric& dense = state_.dense();
  const auto t = std::size_t(tier), below = measured_as_[t - 1];
  const int part = pods_per_class_[t - 1], parts = pods_per_class_[t] / part;
  const std::int32_t cells = dense.cells(tier);
  capacity_[t].resize(std::size_t(cells));
  free_[t].resize(std::size_t(cells));
  content_[t].resize(std::size_t(cells));
  const int grain = tier == filter.grain_tier ? std::max(1, filter.grain / part) : 1;
  const bool capped = tier == Tier::kUnit && filter.most_per_unit > 0;
  for (std::int32_t cell = 0; cell < cells; ++cell) {
    const auto [first, last] = dense.children(tier, cell);
    int held = 0, free = 0;
    std::uint64_t content = 0;
    for (std::int32_t child = first; child < last; ++child) {
      held += capacity_[below][std::size_t(child)];
      free += free_[below][std::size_t(child)];
      content += content_[below][std::size_t(child)];
    }
    if (tier == Tier::kDomain && nvlink && !dense.known(Tier::kDomain, cell)) held = 0;
    if (capped) held = std::min(held, filter.most_per_unit / (part * sample_->gpus));
    if (grain > 1) held -= held % grain;
    capacity_[t][std::size_t(cell)] = parts == 1 ? held : held / parts;
    free_[t][std::size_t(cell)] = free;
    content_[t][std::size_t(cell)] = last - first > 1 ? Mixed(content) : content;
  }
}

void Embedding::Fill(const FillOrder& order, const FillChoice& choice, std::vector<PodPlacement>& out) {
  CHECK(fits());
  order_ = &order;
  choice_ = choice;
  chosen_ = false;
  cells_to_choose_ = 0;
  grains_to_pass_ = 0;
  shared_nodes_ = false;
  segments_.clear();
  line_ = &order.pods;
  if (choice.unclassed) {
    unclassed_ = order.pods;
    line_ = &unclassed_;
  }
  FillCell(Tier::kRoot, 0, 0, std::int32_t(order.pods.size()));
  out.assign(request_.pods.size(), {});
  GiveSlots(out);
}

// All of the range goes into this one cell, which keeps every class of its tier and above.
void Embedding::DropClasses(Tier tier, std::int32_t begin, std::int32_t end) {
  const std::vector<std::int32_t>& place = order_->unclassed;
  const std::span<std::int32_t> pods(unclassed_.data() + begin, std::size_t(end - begin));
  std::sort(pods.begin(), pods.end(), [&place](std::int32_t a, std::int32_t b) {
    return place[std::size_t(a)] < place[std::size_t(b)];
  });
  for (std::size_t t = 0; t < std::size_t(tier); ++t) {
    if (pods_per_class_[t] > 1) Regroup(classes_.of_pod[t], classes_.gpus[t].size(), pods);
  }
}

void Embedding::FillCell(Tier tier, std::int32_t cell, std::int32_t begin, std::int32_t end) {
  // Where there is one way down nothing is chosen: most nodes are an NVLink domain of their own.
  while (tier != Tier::kNode) {
    const auto [first, last] = state_.dense().children(tier, cell);
    if (last - first != 1) break;
    tier = Tier(int(tier) - 1);
    cell = first;
  }
  if (tier == Tier::kNode) return FillNode(cell, begin, end);
  if (choice_.unclassed && end - begin > 1) DropClasses(tier, begin, end);
  const int per_item = pods_per_class_[std::size_t(tier) - 1];
  const int items = (end - begin) / per_item;
  const Tier below = Tier(int(tier) - 1);
  const bool below_is_nodes = below == Tier::kNode || (below == Tier::kDomain && nodes_are_domains_);
  if (TakesAll(tier, cell, items)) {
    const auto [first, last] = state_.dense().children(tier, cell);
    for (std::int32_t child = first; child < last; ++child) {
      const int held = capacity(below, child);
      if (held == 0) continue;
      const std::int32_t next = begin + held * per_item;
      below_is_nodes ? FillNode(child, begin, next) : FillCell(below, child, begin, next);
      begin = next;
    }
    return;
  }
  auto& shares = shares_[std::size_t(tier)];  // one per tier: a tier never recurses into itself
  Choose(tier, cell, items, shares);
  for (const Share& share : shares) {
    const std::int32_t next = begin + share.items * per_item;
    below_is_nodes ? FillNode(share.cell, begin, next) : FillCell(below, share.cell, begin, next);
    begin = next;
  }
  CHECK(begin == end);
}

void Embedding::FillNode(std::int32_t node_cell, std::int32_t begin, std::int32_t end) {
  if (end - begin > 1) {
    if (choice_.unclassed) DropClasses(Tier::kNode, begin, end);
    shared_nodes_ = true;
  }
  segments_.push_back({state_.dense().node_at(node_cell), begin, end});
}

// Whether the cell is filled to the brim and its children are alike: then none comes before another.
bool Embedding::TakesAll(Tier tier, std::int32_t cell, int items) const {
  const auto& held = capacity_[measured_as_[std::size_t(tier) - 1]];
  const auto [first, last] = state_.dense().children(tier, cell);
  int total = 0, usual = 0;
  for (std::int32_t child = first; child < last; ++child) {
    const int capacity = held[std::size_t(child)];
    if (capacity == 0) continue;
    if (usual == 0) usual = capacity;
    if (capacity != usual) return false;
    total += capacity;
  }
  return total == items && usual < items;
}

// The lowest tier at which one cell inside this one holds so many pods.
Tier Embedding::LowestHolding(Tier tier, std::int32_t cell, int pods) const {
  Tier lowest = tier;
  if (tier <= Tier::kUnit) return lowest;  // nodes and racks are told by their units
  const Tier below = Tier(int(tier) - 1);
  const auto [first, last] = state_.dense().children(tier, cell);
  for (std::int32_t child = first; child < last && lowest > Tier::kUnit; ++child) {
    const int held = capacity(below, child) * pods_per_class_[std::size_t(below)];
    if (held >= pods) lowest = std::min(lowest, LowestHolding(below, child, pods));
  }
  return lowest;
}

// The tightest cell that holds everything, else the largest cells first and the tightest for the rest: the
// fewest cells. Cells take whole grains where that fits, so that whole groups stay together.
void Embedding::Choose(Tier tier, std::int32_t cell, int items, std::vector<Share>& shares) {
  Children& children = ChildrenOf(tier, cell);
  if (children.largest >= items) return ChooseOne(children, items, shares);
  const int per_item = pods_per_class_[std::size_t(tier) - 1] * sample_->gpus;
  const std::vector<Share>& ranked = RankedFor(children, int(GrainFor(children, items, per_item)));
  shares.clear();
  int left = items;
  for (std::size_t next = 0; left > 0; ++next) {
    CHECK(next < ranked.size());
    shares.push_back(ranked[next]);
    if (ranked[next].capacity >= left) {
      // The last of equal capacity that still holds the rest would be tighter: take the smallest that does.
      std::size_t best = next;
      for (std::size_t i = next + 1; i < ranked.size() && ranked[i].capacity >= left; ++i) {
        if (ranked[i].capacity < ranked[best].capacity) best = i;
      }
      shares.back() = ranked[best];
    }
    shares.back().items = std::min(left, shares.back().capacity);
    left -= shares.back().items;
  }
}

void Embedding::ChooseOne(const Children& children, int items, std::vector<Share>& shares) {
  const Tier below = Tier(int(children.tier) - 1);
  shares.clear();
  std::copy_if(children.shares.begin(), children.shares.end(), std::back_inserter(shares),
               [items](const Share& share) { return share.capacity >= items; });
  if (alike_cost_alike_ && !chosen_) {
    // The first of like ones stands for all.
    const auto same = [](const Share& a, const Share& b) {
      return std::tie(a.capacity, a.free, a.content) == std::tie(b.capacity, b.free, b.content);
    };
    shares.erase(std::unique(shares.begin(), shares.end(), same), shares.end());
  }
  const int holding = int(shares.size());
  std::size_t pick = 0;
  if (holding > 1 && !chosen_) {
    chosen_ = true;
    cells_to_choose_ = holding;
    pick = std::size_t(std::min(choice_.rank_of_cell, holding - 1));
  }
  if (holding > 1) {
    for (Share& share : shares) {
      share.lowest = LowestHolding(below, share.cell, items * pods_per_class_[std::size_t(below)]);
    }
  }
  // A set of spines that is tight but keeps the gang in no one unit comes after a roomier one that does.
  const auto tighter = [](const Share& a, const Share& b) {
    return std::tie(a.lowest, a.capacity, a.free, a.content, a.cell) <
           std::tie(b.lowest, b.capacity, b.free, b.content, b.cell);
  };
  std::nth_element(shares.begin(), shares.begin() + std::ptrdiff_t(pick), shares.end(), tighter);
  shares = {shares[pick]};
  shares.front().items = items;
}

Embedding::Children& Embedding::ChildrenOf(Tier tier, std::int32_t cell) {
  auto& at = children_at_[std::size_t(tier)];
  if (at.empty()) at.assign(std::size_t(state_.dense().cells(tier)), topology::kNone);
  std::int32_t& index = at[std::size_t(cell)];
  if (index != topology::kNone) return children_[std::size_t(index)];
  index = std::int32_t(children_.size());
  Children& fresh = children_.emplace_back();
  fresh.tier = tier;
  const std::size_t below = measured_as_[std::size_t(tier) - 1];
  const auto [first, last] = state_.dense().children(tier, cell);
  fresh.shares.reserve(std::size_t(last - first));
  for (std::int32_t child = first; child < last; ++child) {
    const int held = capacity_[below][std::size_t(child)];
    if (held == 0) continue;
    fresh.shares.push_back(
        {child, 0, held, free_[below][std::size_t(child)], content_[below][std::size_t(child)]});
    fresh.largest = std::max(fresh.largest, held);
  }
  std::vector<int> count(std::size_t(fresh.largest) + 1, 0);
  for (const Share& share : fresh.shares) ++count[std::size_t(share.capacity)];
  for (std::size_t held = 0; held < count.size(); ++held) {
    if (count[held] > 0) fresh.by_capacity.emplace_back(int(held), count[held]);
  }
  std::sort(fresh.shares.begin(), fresh.shares.end(), [](const Share& a, const Share& b) {
    return std::tie(a.free, a.content, a.cell) < std::tie(b.free, b.content, b.cell);
  });
  return fresh;
}

// Largest first; shares come ordered by what breaks ties, which a stable distribution keeps.
const std::vector<Embedding::Share>& Embedding::RankedFor(Children& children, int grain) {
  if (grain == 1 && children.by_capacity.size() == 1) return children.shares;
  for (const Ranked& known : children.ranked) {
    if (known.grain == grain) return known.shares;
  }
  Ranked& fresh = children.ranked.emplace_back();
  fresh.grain = grain;
  std::vector<std::size_t> begin(std::size_t(children.largest / grain) + 1, 0);
  const auto place = [&](int capacity) { return begin.size() - 1 - std::size_t(capacity / grain); };
  for (const auto& [capacity, count] : children.by_capacity) begin[place(capacity)] += std::size_t(count);
  std::exclusive_scan(begin.begin(), begin.end(), begin.begin(), std::size_t{0});
  fresh.shares.resize(children.shares.size());
  for (const Share& share : children.shares) {
    Share& placed = fresh.shares[begin[place(share.capacity)]++];
    placed = share;
    placed.capacity = share.capacity / grain * grain;
  }
  return fresh.shares;
}

std::int64_t Embedding::GrainFor(const Children& children, int items, std::int64_t ranks_per_item) {
  int passed = 0;
  std::int64_t chosen = 1;
  for (auto grain = order_->grains.rbegin(); grain != order_->grains.rend(); ++grain) {
    if (*grain % ranks_per_item != 0 || *grain / ranks_per_item >= items) continue;
    const int size = int(*grain / ranks_per_item);
    if (size < 2 || items % size != 0) continue;
    std::int64_t held = 0;
    for (const auto& [capacity, count] : children.by_capacity) {
      held += std::int64_t(capacity / size * size) * count;
    }
    if (held < items) continue;
    if (passed++ == choice_.coarser_grains) chosen = size;
    if (passed > kMostPassed) break;
  }
  grains_to_pass_ = std::max(grains_to_pass_, std::min(passed, kMostPassed));
  return chosen;
}

void Embedding::GiveSlots(std::vector<PodPlacement>& out) const {
  bool down = false;
  // Most nodes give what the one before gave.
  std::vector<std::uint32_t> slots;
  std::tuple<std::uint32_t, std::uint32_t, int, bool> given;
  for (const Segment& segment : segments_) {
    const int count = segment.end - segment.begin;
    const std::uint32_t usable = usable_[std::size_t(segment.node)];
    if (count == 1 && std::popcount(usable) == sample_->gpus) {  // the whole node: nothing to cut up
      out[std::size_t((*line_)[std::size_t(segment.begin)])] = {segment.node, usable};
      if (choice_.snake) down = !down;
      continue;
    }
    const std::uint32_t odd = state_.dense().odd_gpus(segment.node);
    if (slots.empty() || given != std::tuple(usable, odd, count, down)) {
      given = {usable, odd, count, down};
      slots = SlotsOf(usable, odd, sample_->gpus, count, down);
      if (down) std::reverse(slots.begin(), slots.end());
    }
    for (int i = 0; i < count; ++i) {
      const std::int32_t pod = (*line_)[std::size_t(segment.begin) + std::size_t(i)];
      out[std::size_t(pod)] = {segment.node, slots[std::size_t(i)]};
    }
    if (choice_.snake) down = !down;
  }
}

std::vector<std::uint32_t> SlotsOf(std::uint32_t usable, std::uint32_t odd, int size, int count,
                                   bool from_the_top) {
  std::vector<std::uint32_t> slots;
  for (int first = 0; first + size <= 32; first += size) {
    const std::uint32_t slot = (size == 32 ? ~0U : (1U << size) - 1) << first;
    if ((usable & slot) == slot) slots.push_back(slot);
  }
  // Sound GPUs first; then from the asked end.
  std::stable_sort(slots.begin(), slots.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int odd_a = std::popcount(a & odd), odd_b = std::popcount(b & odd);
    if (odd_a != odd_b) return odd_a < odd_b;
    return from_the_top ? a > b : a < b;
  });
  if (int(slots.size()) > count) slots.resize(std::size_t(count));
  std::uint32_t left = usable;
  for (std::uint32_t slot : slots) left &= ~slot;
  while (int(slots.size()) < count) {
    // Runs are cut up: take what is left in ascending order.
    std::uint32_t slot = 0;
    for (int i = 0; i < size; ++i) {
      CHECK(left != 0);
      slot |= left & -left;
      left &= left - 1;
    }
    slots.push_back(slot);
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

}  // namespace heddle::placement
