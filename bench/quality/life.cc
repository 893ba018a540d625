#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "bench/quality/cases.h"

namespace heddle::quality {

using placement::Axis;
using placement::ClusterState;
using placement::GangRequest;
using placement::PodPlacement;
using topology::NodeId;

namespace {

// What the product does with a pod of no gang: the node that scores best, the first of equals.
peers::Assignment PlaceLonePod(const ClusterState& state, int gpus) {
  std::vector<NodeId> candidates;
  for (std::size_t n = 0; n < state.fabric().nodes.size(); ++n) {
    if (state.free_gpus(NodeId(n)) >= gpus) candidates.push_back(NodeId(n));
  }
  if (candidates.empty()) return std::nullopt;
  const std::vector<int> scores = placement::ScoreLonePod(state, gpus, candidates);
  const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
  const NodeId node = candidates[std::size_t(best)];
  std::uint32_t free = state.node(node).free_gpus, taken = 0;
  for (int i = 0; i < gpus; ++i, free &= free - 1) taken |= free & -free;
  return std::vector<PodPlacement>{{node, taken}};
}

class OneLife {
 public:
  OneLife(Policy policy, const LifeShape& shape, std::uint64_t seed)
      : policy_(policy), shape_(shape), seed_(seed), random_(seed), state_(MakeState()) {}

  Life Run() {
    const int gpus = state_.fabric().gpu_count();
    const auto visits = peers::DrawVisits(gpus, shape_.load_percent, shape_.ticks, seed_);
    int samples = 0;
    for (int tick = 0; tick < shape_.ticks; ++tick) {
      EndThoseOf(tick);
      Come(visits[std::size_t(tick)]);
      if (tick < shape_.ticks / 2 || tick % (shape_.ticks / 40) != 0) continue;
      ++samples;
      life_.whole_domains += state_.whole_domains();
      life_.whole_units += WholeUnitsLeft(state_, {});
    }
    life_.whole_domains /= samples;
    life_.whole_units /= samples;
    MeasureThoseRunning();
    return life_;
  }

 private:
  struct Job {
    GangRequest request;
    std::vector<PodPlacement> pods;
  };

  ClusterState MakeState() const {
    auto fabric = peers::MakeFabric(shape_.cluster, seed_);
    const std::size_t nodes = fabric->nodes.size();
    return {std::move(fabric), std::vector<placement::NodeState>(nodes, peers::RoomyNode(0xff)), {}};
  }

  void Come(const peers::Visit& visit) {
    Job job{peers::RequestOf(visit.gpus), {}};
    peers::Assignment pods = policy_ == Policy::kHeddle && visit.gpus < 8
                                 ? PlaceLonePod(state_, visit.gpus)
                                 : Place(policy_, state_, job.request, random_);
    if (!pods) {
      ++life_.refused;
      return;
    }
    ++life_.placed;
    job.pods = std::move(*pods);
    for (const PodPlacement& pod : job.pods) {
      state_.Take(pod.node, pod.gpus, job.request.pods.front().resources);
    }
    state_.Commit();
    running_.emplace(visit.leaves_at, std::move(job));
  }

  void EndThoseOf(int tick) {
    const auto end = running_.upper_bound(tick);
    for (auto job = running_.begin(); job != end; ++job) {
      for (const PodPlacement& pod : job->second.pods) {
        state_.Free(pod.node, pod.gpus, job->second.request.pods.front().resources);
      }
    }
    running_.erase(running_.begin(), end);
    state_.Commit();
  }

  void MeasureThoseRunning() {
    double gpus = 0, crossings = 0;
    for (const auto& [leaves_at, job] : running_) {
      const auto world = double(job.request.parallelism.world());
      if (world <= 8) continue;
      const auto quality = placement::Evaluate(state_, job.request, job.pods);
      const double ms = double(quality.step_micros - quality.axis_micros[std::size_t(Axis::kTp)]) / 1000;
      ++life_.running_gangs;
      life_.network_ms += ms;
      life_.network_ms_by_gpu += ms * world;
      gpus += world;
      crossings += double(
          std::accumulate(quality.leaf_crossings.begin(), quality.leaf_crossings.end(), std::int64_t{0}));
    }
    CHECK(life_.running_gangs > 0);
    life_.network_ms /= life_.running_gangs;
    life_.network_ms_by_gpu /= gpus;
    life_.crossings_per_gpu = crossings / gpus;
  }

  const Policy policy_;
  const LifeShape& shape_;
  const std::uint64_t seed_;
  base::Random random_;
  ClusterState state_;
  std::multimap<int, Job> running_;  // by the tick at which it leaves
  Life life_;
};

}  // namespace

Life Live(Policy policy, const LifeShape& shape, std::uint64_t seed) {
  return OneLife(policy, shape, seed).Run();
}

}  // namespace heddle::quality
