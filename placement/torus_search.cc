#include "placement/torus_search.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "placement/constants.h"
#include "placement/torus_mapping.h"
#include "placement/torus_round.h"
#include "placement/traffic.h"

namespace heddle::placement {
namespace {

using topology::kNone;
using topology::NodeId;

using Place = std::array<int, 3>;

// Boxes of so many shapes are compared; the most compact come first, and the first without a detour ends it.
constexpr int kBoxesTried = 8;
constexpr int kMappingsWalked = 8;  // of a box, those with the best estimates
constexpr int kMostParts = 64;      // equal boxes that one gang is cut into
constexpr int kShapesOfParts = 6;   // … and the shapes tried for them
// Nodes that are walked over to compare the orders of one walk: about a quarter of a millisecond.
constexpr std::int64_t kWalkBudget = 1 << 16;

// The ring or chain of one axis, in ranks.
struct Ring {
  std::int64_t stride = 1;
  int size = 1;
  bool closed = true;
  double micros_per_link = 0;  // of the longest step along one dimension
  double micros_per_hop = 0;   // of every link on the way round
};

std::vector<Ring> RingsOf(const Parallelism& parallelism, const ModelHints& model, std::int64_t mbps) {
  const StepTraffic traffic = TrafficPerStep(parallelism, model);
  std::vector<Ring> rings;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kDp, Axis::kPp, Axis::kFsdp}) {
    const AxisStride stride = TrafficStrideOf(parallelism, axis);
    if (stride.size < 2) continue;
    const AxisTraffic& sent = traffic.of(axis);
    std::int64_t calls = 0;
    for (int i = 0; i < sent.count; ++i) calls += sent.transfers[std::size_t(i)].calls;
    const bool closed = axis != Axis::kPp;
    const double turns = closed ? double(stride.size - 1) / stride.size : 1.0 / (stride.size - 1);
    rings.push_back({stride.stride, stride.size, closed, WireBytes(sent) * 8 / double(mbps),
                     double(calls) * turns * kSwitchHopTenths / 10});
  }
  return rings;
}

// The gang's nodes as a lattice, fastest first: cut wherever a group of some axis begins or ends.
std::vector<TorusAxis> AxesOf(const std::vector<Ring>& rings, std::int64_t world, int gpus) {
  std::set<std::int64_t> ends{world};
  for (const Ring& ring : rings) {
    ends.insert(ring.stride);
    ends.insert(ring.stride * ring.size);
  }
  std::vector<TorusAxis> axes;
  std::int64_t from = gpus;
  for (const std::int64_t to : ends) {
    if (to <= from || to % from != 0 || world % to != 0) continue;
    TorusAxis axis{int(to / from), false, 0};
    for (const Ring& ring : rings) {
      if (ring.stride * ring.size <= from || ring.stride >= to) continue;
      axis.weight += ring.micros_per_link;
      axis.closed = axis.closed || ring.closed;
    }
    axes.push_back(axis);
    from = to;
  }
  return axes;
}

// What an order of the gang's nodes costs, by the same rules as the price but without looking at GPUs.
class Comparison {
 public:
  Comparison(const Sides& torus, const std::vector<Ring>& rings, std::int64_t world, int gpus)
      : torus_(torus), rings_(rings), world_(world), gpus_(gpus) {}

  struct Answer {
    double micros = 0;
    int longest = 0, most_links = 0;  // of one step
  };
  // `place_of` a node of the gang. With `alike`, all groups of an axis are the first one moved elsewhere.
  template <class PlaceOf>
  Answer Of(const PlaceOf& place_of, bool alike) const {
    Answer answer;
    for (const Ring& ring : rings_) {
      const std::int64_t block = ring.stride * ring.size;
      double worst = 0;
      for (std::int64_t outer = 0; outer < (alike ? 1 : world_); outer += block) {
        for (std::int64_t inner = 0; inner < (alike ? 1 : ring.stride); inner += gpus_) {
          worst = std::max(worst, GroupOf(place_of, ring, outer + inner, answer));
        }
      }
      answer.micros += worst;
    }
    return answer;
  }
  // Whether groups begin and end with nodes or lie evenly in them: then Of(…, false) sees every step.
  bool SeesAll() const {
    return std::all_of(rings_.begin(), rings_.end(), [this](const Ring& ring) {
      return ring.stride % gpus_ == 0 || gpus_ % ring.stride == 0;
    });
  }

 private:
  template <class PlaceOf>
  double GroupOf(const PlaceOf& place_of, const Ring& ring, std::int64_t first, Answer& answer) const {
    int longest = 0, links = 0;
    std::int64_t here = first / gpus_;
    const std::int64_t head = here;
    const Place start = place_of(std::size_t(head));
    Place from = start;
    for (int i = 1; i < ring.size + (ring.closed ? 1 : 0); ++i) {
      const std::int64_t next = i == ring.size ? head : (first + i * ring.stride) / gpus_;
      if (next == here) continue;
      const Place to = next == head ? start : place_of(std::size_t(next));
      int step = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        const int apart = std::abs(from[d] - to[d]);
        const int way = std::min(apart, torus_[d] - apart);
        step += way;
        longest = std::max(longest, way);
      }
      links += step;
      answer.most_links = std::max(answer.most_links, step);
      here = next;
      from = to;
    }
    answer.longest = std::max(answer.longest, longest);
    return ring.micros_per_link * longest + ring.micros_per_hop * links;
  }

  const Sides& torus_;
  const std::vector<Ring>& rings_;
  const std::int64_t world_;
  const int gpus_;
};

// The orders in which a region's places may be walked.
std::vector<std::vector<Place>> WalksOver(const Sides& sides) {
  std::vector<std::vector<Place>> walks{WalkOf(sides, true, {})};
  const auto length = std::size_t(std::max_element(sides.begin(), sides.end()) - sides.begin());
  // Thick snakes: blocks of k x k columns, each walked slice by slice, so that places left out cost less. Of a
  // large region only one: rounds through its parts are better.
  constexpr std::int64_t kLarge = 4096;
  const bool large = Volume(sides) > kLarge;
  for (int thick = large ? 2 : 1; thick <= (large ? 2 : 3); ++thick) {
    Sides blocks = sides;
    bool differs = thick == 1;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == length) continue;
      differs = differs || sides[i] > thick - 1;
      blocks[i] = (sides[i] + thick - 1) / thick;
    }
    if (!differs) break;
    blocks[length] = 1;
    auto& walk = walks.emplace_back();
    walk.reserve(std::size_t(Volume(sides)));
    bool up = true;
    for (const Place& block : WalkOf(blocks, false, {})) {
      Sides slice{1, 1, 1};
      for (std::size_t i = 0; i < 3; ++i) {
        if (i != length) slice[i] = std::min(thick, sides[i] - block[i] * thick);
      }
      std::vector<Place> round = WalkOf(slice, false, {});
      for (int step = 0; step < sides[length]; ++step) {
        for (const Place& place : round) {
          Place& at = walk.emplace_back();
          for (std::size_t i = 0; i < 3; ++i) at[i] = block[i] * thick + place[i];
          at[length] = up ? step : sides[length] - 1 - step;
        }
        std::reverse(round.begin(), round.end());
      }
      up = !up;
    }
  }
  return walks;
}

class TorusSearch {
 public:
  TorusSearch(const ClusterState& state, const GangRequest& request, const GangClasses& classes,
              Pricing& pricing)
      : state_(state),
        request_(request),
        classes_(classes),
        pricing_(pricing),
        size_(state.fabric().declaration.torus_size) {}

  std::optional<TorusPlace> Run() {
    if (!Applies()) return std::nullopt;
    ListNodes();
    if (int(candidates_.size()) < nodes_) return std::nullopt;
    rings_ = RingsOf(request_.parallelism, request_.model, std::int64_t(best_rate_.first) * 10 * kNetPercent);
    axes_ = AxesOf(rings_, request_.parallelism.world(), gpus_);
    // Nodes with slow rails only where it cannot be helped, or where it may pay.
    const std::size_t sound = std::size_t(std::count_if(candidates_.begin(), candidates_.end(),
                                                        [&](NodeId n) { return RateOf(n) == best_rate_; }));
    if (int(sound) >= nodes_) Try(true);
    if (sound < candidates_.size() && !(best_ && best_exact_)) Try(false);
    return std::move(best_);
  }

 private:
  bool Applies() {
    const topology::Fabric& fabric = state_.fabric();
    if (fabric.shape != topology::Shape::kTorus3d || !classes_.uniform) return false;
    if (*std::min_element(size_.begin(), size_.end()) < 1 || Volume(size_) > kMostTorusPlaces) return false;
    for (const PodRequest& pod : request_.pods) {
      if (pod.gpus > 0) sample_ = &pod;
    }
    for (std::size_t n = 0; n < fabric.nodes.size(); ++n)
      gpus_ = std::max(gpus_, state_.dense().gpus(NodeId(n)));
    if (gpus_ == 0 || gpus_ % sample_->gpus != 0 || request_.parallelism.world() % gpus_ != 0) return false;
    nodes_ = int(request_.parallelism.world() / gpus_);
    return nodes_ > 1;
  }

  // Of its slowest GPU, which sets the pace. Nodes of one pattern have the same.
  const std::pair<int, int>& RateOf(NodeId node) {
    const auto pattern = std::size_t(state_.dense().pattern(node));
    if (rates_.size() <= pattern) rates_.resize(pattern + 1, {-1, -1});
    std::pair<int, int>& rate = rates_[pattern];
    if (rate.first >= 0) return rate;
    rate = {std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};
    for (int g = 0; g < gpus_; ++g) {
      const GpuPort& port = state_.dense().port(node, g);
      rate.first = std::min(rate.first, port.net_gbps);
      rate.second = std::min(rate.second, port.nvlink_gbps);
    }
    return rate;
  }

  void ListNodes() {
    const topology::Fabric& fabric = state_.fabric();
    std::vector<char> allowed(fabric.nodes.size(), sample_->allowed ? 0 : 1);
    if (sample_->allowed) {
      for (const NodeId n : request_.allowed_nodes[*sample_->allowed]) {
        if (n >= 0 && std::size_t(n) < allowed.size()) allowed[std::size_t(n)] = 1;
      }
    }
    const std::uint32_t all = gpus_ == 32 ? ~0U : (1U << gpus_) - 1;
    const int pods = gpus_ / sample_->gpus;
    node_at_.assign(std::size_t(Volume(size_)), kNone);
    for (NodeId n = 0; n < NodeId(fabric.nodes.size()); ++n) {
      const NodeState& node = state_.node(n);
      if (!allowed[std::size_t(n)] || node.free_gpus != all || state_.dense().gpus(n) != gpus_) continue;
      const Place& at = state_.dense().torus(n);
      if (at[0] == kNone || !node.unusable.empty()) continue;
      if (state_.Copies(n, sample_->resources, pods) < pods) continue;
      candidates_.push_back(n);
      node_at_[At(at)] = n;
      const std::pair<int, int>& rate = RateOf(n);
      best_rate_ = std::max(best_rate_, rate);
      best_nvlink_gbps_ = std::max(best_nvlink_gbps_, rate.second);
    }
  }

  std::size_t At(const Place& place) const {
    return (std::size_t(place[0]) * std::size_t(size_[1]) + std::size_t(place[1])) * std::size_t(size_[2]) +
           std::size_t(place[2]);
  }
  Place Inside(const TorusBox& box, const Place& offset) const {
    Place place;
    for (std::size_t i = 0; i < 3; ++i) place[i] = (box.at[i] + offset[i]) % size_[i];
    return place;
  }

  void Try(bool sound_only) {
    std::vector<std::uint8_t> free(node_at_.size(), 0);
    for (std::size_t i = 0; i < node_at_.size(); ++i) {
      if (node_at_[i] == kNone) continue;
      free[i] = !sound_only || RateOf(node_at_[i]) == best_rate_ ? 1 : 0;
    }
    const TorusGrid grid(size_, free);
    trial_ = {};
    chosen_.clear();
    FillBoxes(grid);
    const bool straight = !chosen_.empty() && trial_.longest <= 1;
    if (!straight) FillParts(grid);
    // A round through loose nodes takes two links at most steps.
    double floor = 0;
    for (const TorusAxis& axis : axes_) floor += axis.weight;
    if (chosen_.empty() || trial_.micros > 2 * floor) FillRegion(grid, free);
    if (chosen_.empty()) return;
    Settle(sound_only);
    best_exact_ = best_exact_ || straight;
  }

  Comparison Compared() const { return {size_, rings_, request_.parallelism.world(), gpus_}; }

  void FillBoxes(const TorusGrid& grid) {
    int boxes = 0;
    for (const Sides& sides : BoxShapes(size_, nodes_)) {
      const std::optional<TorusBox> box = grid.Tightest(sides, nodes_);
      if (!box) continue;
      for (const TorusMapping& mapping : MappingsOnto(size_, sides, axes_, kMappingsWalked)) {
        if (!chosen_.empty() && mapping.estimate >= trial_.micros) break;
        TryMapping(*box, mapping);
        if (trial_.longest <= 1 && trial_.most_links <= 1) return;
      }
      if (++boxes == kBoxesTried) return;
    }
  }

  void TryMapping(const TorusBox& box, const TorusMapping& mapping) {
    const auto place_of = [&](std::size_t node) {
      Place at{};
      for (const auto& offsets : mapping.offsets) {
        const Place& offset = offsets[node % offsets.size()];
        for (std::size_t i = 0; i < 3; ++i) at[i] += offset[i];
        node /= offsets.size();
      }
      return Inside(box, at);
    };
    const Comparison::Answer answer = Compared().Of(place_of, true);
    if (!chosen_.empty() && answer.micros >= trial_.micros) return;
    trial_ = answer;
    chosen_.resize(std::size_t(nodes_));
    for (std::size_t node = 0; node < chosen_.size(); ++node) chosen_[node] = place_of(node);
  }

  // Axes from the heaviest to the lightest.
  std::vector<std::size_t> ByWeight() const {
    std::vector<std::size_t> turn(axes_.size());
    std::iota(turn.begin(), turn.end(), 0);
    std::stable_sort(turn.begin(), turn.end(),
                     [&](std::size_t a, std::size_t b) { return axes_[a].weight > axes_[b].weight; });
    return turn;
  }

  // No box holds the gang, but one each may hold its groups along the heaviest axes: the lightest axes run
  // between equal boxes, and each ring inside of one is still a ring of neighbours.
  void FillParts(const TorusGrid& grid) {
    std::vector<std::size_t> turn = ByWeight();
    int parts = 1;
    while (turn.size() > 1) {
      parts *= axes_[turn.back()].size;
      turn.pop_back();
      if (parts > kMostParts) return;
      std::vector<TorusAxis> inner;
      inner.reserve(turn.size());
      for (const std::size_t axis : turn) inner.push_back(axes_[axis]);
      int left = kShapesOfParts;
      for (const Sides& sides : BoxShapes(size_, nodes_ / parts)) {
        if (left-- == 0) break;
        const std::vector<TorusBox> boxes = FreeBoxesApart(grid, sides, parts);
        if (boxes.empty()) continue;
        TryParts(boxes, turn, MappingsOnto(size_, sides, inner, 1).front());
        left = std::min(left, 1);
      }
    }
  }

  // `inner`: the axes that lie inside of a box, as the mapping has them.
  void TryParts(const std::vector<TorusBox>& boxes, const std::vector<std::size_t>& inner,
                const TorusMapping& mapping) {
    std::vector<const std::vector<Place>*> offsets(axes_.size(), nullptr);
    for (std::size_t i = 0; i < inner.size(); ++i) offsets[inner[i]] = &mapping.offsets[i];
    std::vector<Place> places(static_cast<std::size_t>(nodes_));
    for (std::size_t node = 0; node < places.size(); ++node) {
      Place at{};
      std::size_t left = node, box = 0, block = 1;
      for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        const auto size = std::size_t(axes_[axis].size);
        const std::size_t index = left % size;
        left /= size;
        if (offsets[axis] == nullptr) {
          box += index * block;
          block *= size;
          continue;
        }
        for (std::size_t i = 0; i < 3; ++i) at[i] += (*offsets[axis])[index][i];
      }
      places[node] = Inside(boxes[box], at);
    }
    Offer(places);
  }

  // The smallest region with enough free nodes: walks over all of it, and rounds through those nearest to
  // its middle, as one or in parts.
  void FillRegion(const TorusGrid& grid, const std::vector<std::uint8_t>& free) {
    const auto region = SmallestRegion(grid, nodes_);
    if (!region) return;
    std::vector<Place> walked, offsets;
    for (const std::vector<Place>& walk : WalksOver(region->sides)) {
      walked.clear();
      for (const Place& offset : walk) {
        const Place place = Inside(*region, offset);
        if (free[At(place)] == 0) continue;
        if (offsets.size() == walked.size()) offsets.push_back(offset);  // all of them, on the first walk
        walked.push_back(place);
      }
      walked.resize(std::size_t(nodes_));
      OfferTurns(walked);
    }
    const auto from_middle = [&](const Place& offset) {
      int links = 0;
      for (std::size_t i = 0; i < 3; ++i) links += std::abs(2 * offset[i] - region->sides[i] + 1);
      return std::pair(links, offset);
    };
    std::nth_element(offsets.begin(), offsets.begin() + nodes_ - 1, offsets.end(),
                     [&](const Place& a, const Place& b) { return from_middle(a) < from_middle(b); });
    offsets.resize(std::size_t(nodes_));
    const std::vector<std::size_t> turn = ByWeight();
    TorusRounds rounds(size_);
    int size = nodes_;
    for (std::size_t level = turn.size(); level > 0; size /= axes_[turn[--level]].size) {
      CutIntoParts(offsets, nodes_ / size);
      walked.clear();
      std::vector<Place> part;
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        part.push_back(Inside(*region, offsets[i]));
        if (int(part.size()) < size) continue;
        const std::vector<Place> round = rounds.Through(part);
        walked.insert(walked.end(), round.begin(), round.end());
        part.clear();
      }
      OfferTurn(walked, turn);
    }
  }

  // The walk runs along one axis after the other, in every turn that the budget allows.
  void OfferTurns(const std::vector<Place>& walked) {
    std::vector<std::size_t> turn(axes_.size());
    std::iota(turn.begin(), turn.end(), 0);
    std::int64_t budget = kWalkBudget;
    do {
      OfferTurn(walked, turn);
      budget -= 5 * nodes_;
    } while (budget > 0 && std::next_permutation(turn.begin(), turn.end()));
  }

  void OfferTurn(const std::vector<Place>& walked, const std::vector<std::size_t>& turn) {
    std::vector<std::size_t> stride(axes_.size());
    std::size_t next = 1;
    for (const std::size_t axis : turn) {
      stride[axis] = next;
      next *= std::size_t(axes_[axis].size);
    }
    std::vector<Place> places(walked.size());
    for (std::size_t n = 0; n < places.size(); ++n) {
      std::size_t left = n, at = 0;
      for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
        at += left % std::size_t(axes_[axis].size) * stride[axis];
        left /= std::size_t(axes_[axis].size);
      }
      places[n] = walked[at];
    }
    Offer(places);
  }

  void Offer(std::vector<Place>& places) {
    const Comparison::Answer answer =
        Compared().Of([&](std::size_t node) -> const Place& { return places[node]; }, false);
    if (!chosen_.empty() && answer.micros >= trial_.micros) return;
    trial_ = answer;
    std::swap(chosen_, places);
  }

  void Settle(bool sound) {
    TorusPlace place;
    place.pods.resize(request_.pods.size());
    const int pods = gpus_ / sample_->gpus;
    const std::uint32_t slot = sample_->gpus == 32 ? ~0U : (1U << sample_->gpus) - 1;
    int next = 0;
    for (std::size_t p = 0; p < place.pods.size(); ++p) {
      if (request_.pods[p].gpus == 0) continue;
      const NodeId node = node_at_[At(chosen_[std::size_t(next / pods)])];
      place.pods[p] = {node, slot << (next % pods * sample_->gpus)};
      ++next;
    }
    if (FirstBroken(state_.dense(), request_, classes_, place.pods)) return;
    place.quality = pricing_.Price(place.pods);
    if (sound && pods == 1) {
      const Comparison::Answer answer =
          Compared().Of([&](std::size_t node) -> const Place& { return chosen_[node]; }, false);
      place.ideal = answer.longest <= 1 && answer.most_links <= 1 && Compared().SeesAll() &&
                    best_rate_.second == best_nvlink_gbps_ && !NvlinkJoinsNodes();
    }
    if (!best_ || Better(place.quality, best_->quality)) best_ = std::move(place);
  }

  bool NvlinkJoinsNodes() const {
    const auto& domains = state_.fabric().domains;
    return std::any_of(domains.begin(), domains.end(),
                       [](const topology::NvlinkDomain& domain) { return domain.spans_nodes; });
  }

  const ClusterState& state_;
  const GangRequest& request_;
  const GangClasses& classes_;
  Pricing& pricing_;
  const Sides size_;
  const PodRequest* sample_ = nullptr;
  int gpus_ = 0, nodes_ = 0;  // of a node; of the gang
  std::vector<NodeId> candidates_;
  std::vector<NodeId> node_at_;             // by place; kNone = not to be had
  std::vector<std::pair<int, int>> rates_;  // by pattern
  std::pair<int, int> best_rate_{0, 0};     // Gb/s of a GPU: network, NVLink
  int best_nvlink_gbps_ = 0;
  std::vector<Ring> rings_;
  std::vector<TorusAxis> axes_;
  std::vector<Place> chosen_;  // by node of the gang: the best of one Try
  Comparison::Answer trial_;
  std::optional<TorusPlace> best_;
  bool best_exact_ = false;
};

}  // namespace

std::optional<TorusPlace> PlaceOnTorus(const ClusterState& state, const GangRequest& request,
                                       const GangClasses& classes, Pricing& pricing) {
  return TorusSearch(state, request, classes, pricing).Run();
}

std::optional<TorusSlice> SliceOf(const topology::Fabric& fabric, const std::vector<PodPlacement>& pods) {
  if (fabric.shape != topology::Shape::kTorus3d) return std::nullopt;
  std::set<NodeId> nodes;
  for (const PodPlacement& pod : pods) {
    if (pod.node != kNone && pod.gpus != 0) nodes.insert(pod.node);
  }
  if (nodes.empty()) return std::nullopt;
  TorusSlice slice{{}, int(nodes.size())};
  for (std::size_t i = 0; i < 3; ++i) {
    std::set<int> taken;
    for (const NodeId node : nodes) taken.insert(fabric.nodes[std::size_t(node)].torus[i]);
    if (*taken.begin() == kNone) return std::nullopt;
    // All but the widest gap, which may lie around the end.
    const int size = fabric.declaration.torus_size[i];
    int before = *taken.rbegin() - size, gap = 0;
    for (const int at : taken) {
      if (at - before > gap) {
        gap = at - before;
        slice.box.at[i] = at;
      }
      before = at;
    }
    slice.box.sides[i] = size - gap + 1;
  }
  return slice;
}

}  // namespace heddle::placement
