#include "sizing/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "placement/collective.h"
#include "placement/planner.h"
#include "sizing/drawing.h"

namespace heddle::sizing {
namespace {

using base::Code;
using placement::Axis;

placement::ClusterState Empty(const Design& design, topology::Synthetic drawn) {
  auto fabric = std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(drawn.nodes), drawn.declaration));
  placement::NodeState whole;
  whole.free_gpus = design.machine->gpus >= 32 ? ~0U : (1U << design.machine->gpus) - 1;
  whole.free_milli_cpu = whole.free_memory_bytes = std::int64_t{1} << 50;
  whole.free_pods = 1000;
  std::vector<placement::NodeState> nodes(fabric->nodes.size(), whole);
  return {std::move(fabric), std::move(nodes)};
}

std::vector<placement::PodRequest> WholeNodes(const Design& design) {
  return std::vector<placement::PodRequest>(std::size_t(design.nodes),
                                            placement::PodRequest{.gpus = design.machine->gpus});
}

// The cost model prices steps. One tensor group over all GPUs sends nothing but all-reduces of its activations, four
// a layer and micro-batch: with one of each, and activations of so many bytes, a quarter of the step is one call.
double AllReduceMicros(const Design& design, const placement::ClusterState& state) {
  placement::GangRequest request;
  request.parallelism.tp = int(design.nodes * design.machine->gpus);
  request.model.params = 1e9;
  request.model.layers = request.model.microbatch = request.model.microbatches = 1;
  request.model.seq = 1 << 15;
  request.model.hidden = int(kAllReduceBytes / 2) >> 15;  // BF16
  request.pods = WholeNodes(design);
  std::vector<placement::PodPlacement> pods;
  for (std::int64_t n = 0; n < design.nodes; ++n)
    pods.push_back({topology::NodeId(n), state.open_gpus(topology::NodeId(n))});
  const placement::Quality quality = Evaluate(state, request, pods);
  return double(quality.axis_micros[std::size_t(Axis::kTp)]) / 4;
}

int GpuMemoryGib(const topology::Fabric& fabric) {
  return fabric.nodes.front().node.gpus.front().memory_gib;
}

std::variant<placement::Suggestion, std::string> FastestStep(const Design& design, const JobWish& job,
                                                             std::int64_t batch,
                                                             placement::ClusterState& state) {
  const std::int64_t world = design.nodes * design.machine->gpus;
  const topology::Fabric& fabric = state.fabric();
  placement::GangRequest request;
  request.model = job.model;
  request.model.microbatch = std::max(1, job.model.microbatch);
  request.pods = WholeNodes(design);
  const double known = placement::AchievedTflops(fabric.nodes.front().node.gpus.front().model);
  placement::LayoutLimits limits{.world = world,
                                 .global_batch = batch,
                                 .largest_domain = design.machine->gpus * design.machine->domain_nodes,
                                 .gpu_memory_gib = GpuMemoryGib(fabric),
                                 .tflops = job.model.tflops > 0 ? job.model.tflops : known};
  request.model.tflops = int(std::lround(limits.tflops));
  placement::Layouts layouts = EnumerateLayouts(job.like, request.model, limits);
  const bool said = job.like.world() > 1;
  if (said) {
    std::erase_if(layouts.legal, [&](const placement::Layout& one) {
      return one.parallelism.tp != job.like.tp || one.parallelism.cp != job.like.cp ||
             one.parallelism.pp != job.like.pp || one.parallelism.dp != job.like.dp;
    });
  }
  if (layouts.legal.empty()) {
    return fmt::format("{} for this model on {} GPUs with {} sequences a step: {}",
                       said ? "that layout is not legal" : "no layout is legal", world, batch,
                       !said && layouts.counts.memory > 0
                           ? "the others need more memory than GPUs have; take more GPUs or a smaller --model"
                           : "dp has to divide --global-batch, tp a node and pp the layers: change those, or "
                             "leave --parallelism out");
  }
  placement::Suggestions found = FindFastest(state, request, layouts, 1);
  if (found.fastest.empty()) return found.refusal.sentence;
  return std::move(found.fastest.front());
}

}  // namespace

base::Result<Prediction> Predict(const Design& design, const JobWish& job) {
  if (!design.machine->predicted) {
    return base::Fail(Code::kUnimplemented, fmt::format("the cost model does not know the collectives of {}",
                                                        design.machine->title));
  }
  const std::int64_t gpus = design.nodes * design.machine->gpus;
  if (gpus > kMostPredicted)
    return base::Fail(Code::kTooLarge,
                      fmt::format("nothing is predicted for more than {} GPUs", kMostPredicted));
  ASSIGN_OR_RETURN(topology::Synthetic drawn, Draw(design));
  placement::ClusterState state = Empty(design, std::move(drawn));
  Prediction prediction;
  prediction.batch = (job.batch + design.nodes - 1) / design.nodes * design.nodes;
  if (job.batch_said || job.like.world() > 1) prediction.batch = job.batch;
  if (gpus > 1) {
    prediction.all_reduce_micros = AllReduceMicros(design, state);
    prediction.bus_gbs = placement::BusBandwidth(placement::Collective::kAllReduce, int(gpus),
                                                 kAllReduceBytes, prediction.all_reduce_micros);
  }
  prediction.step = FastestStep(design, job, prediction.batch, state);
  return prediction;
}

}  // namespace heddle::sizing
