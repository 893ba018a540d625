#include "tests/oracle/brute_force.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <tuple>

#include "tests/unit/placement/fabrics.h"

namespace heddle::oracle {
namespace {

using placement::ClusterState;
using placement::GangRequest;
using placement::NodeState;
using topology::NodeId;

// Nodes of one class may be exchanged without anybody noticing.
std::vector<int> ClassesOfNodes(const ClusterState& state, const GangRequest& request) {
  std::map<std::vector<std::int64_t>, int> classes;
  std::vector<int> out;
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
    const topology::FabricNode& where = state.fabric().nodes[n];
    const NodeState& node = state.node(NodeId(n));
    const bool alone = where.domain == topology::kNone ||
                       state.fabric().domains[std::size_t(where.domain)].nodes.size() == 1;
    std::vector<std::int64_t> key{where.unit,     alone ? -2 : where.domain, where.domain == topology::kNone,
                                  node.free_gpus, node.free_milli_cpu,       node.free_memory_bytes,
                                  node.free_pods, node.unusable.empty()};
    for (const auto& list : request.allowed_nodes)
      key.push_back(std::binary_search(list.begin(), list.end(), NodeId(n)) ? 1 : 0);
    for (const auto& uplink : where.uplinks) {
      key.push_back(uplink.leaf);
      key.push_back(uplink.gbps);
    }
    out.push_back(classes.emplace(std::move(key), int(classes.size())).first->second);
  }
  return out;
}

class Enumeration {
 public:
  Enumeration(const ClusterState& state, const GangRequest& request, std::int64_t budget,
              std::int64_t planned, const SpreadOfPods& spread)
      : state_(state),
        request_(request),
        left_(budget),
        planned_(planned),
        spread_(spread),
        class_of_(ClassesOfNodes(state, request)) {
    for (std::size_t n = 0; n < class_of_.size(); ++n) {
      const NodeState& node = state.node(NodeId(n));
      rooms_.push_back({node.unusable.empty() ? node.free_gpus : 0, node.free_milli_cpu,
                        node.unusable.empty() ? node.free_pods : 0, 0});
    }
    plan_.pods.assign(request.pods.size(), {});
  }
  Truth Run() {
    Next(0);
    truth_.complete = left_ > 0;
    truth_.as_fast_spread = truth_.near_spread = std::numeric_limits<std::int64_t>::max();
    for (const auto& [micros, spread] : sound_) {
      if (micros <= planned_) truth_.as_fast_spread = std::min(truth_.as_fast_spread, spread);
      if (micros <= Limit()) truth_.near_spread = std::min(truth_.near_spread, spread);
    }
    return truth_;
  }

 private:
  struct Room {
    std::uint32_t gpus;
    std::int64_t milli_cpu, pods;
    int used;  // pods of this gang
  };

  void Next(std::size_t p) {
    if (p == plan_.pods.size()) return Price();
    const auto& pod = request_.pods[p];
    std::vector<char> tried(class_of_.size(), 0);
    for (std::size_t n = 0; n < rooms_.size() && left_ > 0; ++n) {
      Room& room = rooms_[n];
      if (room.used == 0 && std::exchange(tried[std::size_t(class_of_[n])], 1) != 0) continue;
      if (room.pods < 1 || room.milli_cpu < pod.resources.milli_cpu || !Allowed(p, NodeId(n))) continue;
      const Room before = room;
      --room.pods;
      ++room.used;
      room.milli_cpu -= pod.resources.milli_cpu;
      for (std::uint32_t gpus = before.gpus;; gpus = (gpus - 1) & before.gpus) {
        if (std::popcount(gpus) == pod.gpus) {
          room.gpus = before.gpus & ~gpus;
          plan_.pods[p] = {NodeId(n), gpus};
          Next(p + 1);
        }
        if (gpus == 0 || left_ <= 0) break;
      }
      room = before;
    }
  }

  bool Allowed(std::size_t p, NodeId node) const {
    const auto& list = request_.pods[p].allowed;
    if (!list) return true;
    const auto& nodes = request_.allowed_nodes[*list];
    return std::binary_search(nodes.begin(), nodes.end(), node);
  }

  void Price() {
    if (--left_ <= 0) return;
    const std::int64_t micros = Evaluate(state_, request_, plan_.pods).step_micros;
    if (truth_.feasible && micros > std::max(planned_, Limit())) return;
    const std::int64_t spread = spread_(plan_.pods);
    const bool beaten = std::any_of(sound_.begin(), sound_.end(), [&](const auto& known) {
      return known.first <= micros && known.second <= spread;
    });
    if (beaten || !Faults(state_, request_, plan_).empty()) return;
    if (!truth_.feasible || micros < truth_.best_micros) truth_.best_micros = micros;
    truth_.feasible = true;
    sound_.emplace_back(micros, spread);
  }
  std::int64_t Limit() const { return truth_.best_micros + truth_.best_micros / 100; }

  const ClusterState& state_;
  const GangRequest& request_;
  std::int64_t left_;
  const std::int64_t planned_;
  const SpreadOfPods& spread_;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      sound_;  // micros and spread of places that none before beats
  std::vector<int> class_of_;
  std::vector<Room> rooms_;
  placement::Plan plan_;
  Truth truth_;
};

}  // namespace

Truth PriceEverything(const ClusterState& state, const GangRequest& request, std::int64_t budget,
                      std::int64_t planned, const SpreadOfPods& spread) {
  return Enumeration(state, request, budget, planned, spread).Run();
}

}  // namespace heddle::oracle
