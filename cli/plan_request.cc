#include "cli/plan_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "crds/parallelism.h"

namespace heddle::cli {
namespace {

constexpr int kMostSpares = 576;  // nodes; no NVLink domain has more GPUs

using base::Code;
using base::Fail;

base::Status ReadWords(const PlanOptions& options, placement::GangRequest& request) {
  if (!options.model.empty()) {
    ASSIGN_OR_RETURN(request.model, crds::ParseModel(options.model), "--model");
  }
  if (!options.require.empty()) {
    ASSIGN_OR_RETURN(request.require, crds::ParseConstraints(options.require), "--require");
  }
  if (!options.prefer.empty()) {
    ASSIGN_OR_RETURN(request.prefer, crds::ParseConstraints(options.prefer), "--prefer");
  }
  return {};
}

base::Status AddPods(const PlanOptions& options, placement::GangRequest& request) {
  if (options.spares < 0 || options.spares > kMostSpares) {
    return Fail(Code::kInvalid, fmt::format("--spares {} does not fit: write a number from 0 to {}",
                                            options.spares, kMostSpares));
  }
  const std::int64_t world = request.parallelism.world();
  const int gpus = options.gpus_per_pod.value_or(kUsualGpusPerPod);
  if (gpus < 1 || gpus > crds::kMaxGpusPerPod) {
    return Fail(Code::kInvalid, fmt::format("--gpus-per-pod {} does not fit: write a number from 1 to {}",
                                            gpus, crds::kMaxGpusPerPod));
  }
  if (world % gpus != 0) {
    return Fail(Code::kInvalid,
                fmt::format("{} ranks do not fill pods of {} GPUs: choose --gpus-per-pod so that "
                            "it divides {}",
                            world, gpus, options.suggest ? "their number" : "tp*cp*dp*pp"));
  }
  const std::int64_t pods = world / gpus;
  if (pods > crds::kMaxPods) {
    return Fail(Code::kInvalid,
                fmt::format("{} pods are more than {}: choose larger pods", pods, crds::kMaxPods));
  }
  TRY(crds::CheckWorld(request.parallelism, static_cast<int>(pods), gpus));
  request.spares = options.spares;
  request.pods.assign(static_cast<std::size_t>(pods), placement::PodRequest{.gpus = gpus});
  return {};
}

}  // namespace

bool SaysASize(std::string_view words) {
  while (!words.empty()) {
    const auto end = std::min(words.find(','), words.size());
    std::string_view word = words.substr(0, end);
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    const std::string_view name = word.substr(0, word.find_first_of(" ="));
    if (name == "tp" || name == "cp" || name == "dp" || name == "pp") return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

base::Result<placement::GangRequest> RequestOf(const PlanOptions& options) {
  placement::GangRequest request;
  if (options.parallelism.empty()) {
    return Fail(Code::kInvalid,
                "--parallelism: say how the gang is cut, as tp=8,pp=2,dp=8; or let --suggest "
                "--gpus N find it");
  }
  ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(options.parallelism), "--parallelism");
  TRY(ReadWords(options, request));
  TRY(AddPods(options, request));
  return request;
}

base::Result<placement::GangRequest> SuggestRequestOf(const PlanOptions& options) {
  placement::GangRequest request;
  if (!options.gpus && !SaysASize(options.parallelism)) {
    return Fail(Code::kInvalid,
                "--suggest: say how many GPUs, as --gpus 576, or give tp, cp, dp or pp in --parallelism");
  }
  if (options.gpus && (*options.gpus < 1 || *options.gpus > crds::kMaxWorld)) {
    return Fail(Code::kInvalid, fmt::format("--gpus {} does not fit: write a number from 1 to {}",
                                            *options.gpus, crds::kMaxWorld));
  }
  if (!options.parallelism.empty()) {
    std::string words = options.parallelism;
    // ep, etp, fsdp and the order are what a person may fix of a layout that is looked for.
    if (options.gpus && !SaysASize(words)) words += fmt::format(",dp={}", *options.gpus);
    ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(words), "--parallelism");
    if (options.gpus && *options.gpus != request.parallelism.world()) {
      return Fail(Code::kInvalid,
                  fmt::format("--gpus {} is not the {} ranks of --parallelism: leave one of them out",
                              *options.gpus, request.parallelism.world()));
    }
  } else {
    request.parallelism.dp = int(*options.gpus);
  }
  TRY(ReadWords(options, request));
  std::vector<std::string_view> missing;
  const placement::ModelHints& model = request.model;
  if (!(model.params > 0)) missing.emplace_back("params");
  if (model.layers < 1) missing.emplace_back("layers");
  if (model.hidden < 1) missing.emplace_back("hidden");
  if (model.seq < 1) missing.emplace_back("seq");
  if (!missing.empty()) {
    return Fail(Code::kInvalid, fmt::format("--model: --suggest needs {} too, as in "
                                            "params=405e9,layers=126,hidden=16384,seq=8192,microbatch=1",
                                            fmt::join(missing, ", ")));
  }
  if (request.model.microbatch < 1) request.model.microbatch = 1;
  TRY(AddPods(options, request));
  return request;
}

base::Result<std::int64_t> GlobalBatchOf(const PlanOptions& options, const placement::GangRequest& request) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const placement::ModelHints& model = request.model;
  std::int64_t batch = 0;
  if (options.global_batch) {
    batch = *options.global_batch;
  } else if (SaysASize(options.parallelism)) {
    const std::int64_t microbatches =
        model.microbatches > 0 ? model.microbatches : std::int64_t{4} * request.parallelism.pp;
    // Each factor is at most a million, so two of them do not overflow.
    batch = microbatches * model.microbatch;
    batch = batch > kMost ? kMost + 1 : batch * request.parallelism.dp;
  } else {
    return Fail(Code::kInvalid,
                "--global-batch: say how many sequences a step takes in, as --global-batch 2048; only where "
                "--parallelism has tp, cp, dp or pp does it follow from microbatches, microbatch and dp");
  }
  if (batch < 1 || batch > kMost) {
    return Fail(Code::kInvalid, fmt::format("{} does not fit: a step takes in 1 to {} sequences",
                                            options.global_batch ? fmt::format("--global-batch {}", batch)
                                                                 : "microbatches x microbatch x dp",
                                            kMost));
  }
  return batch;
}

}  // namespace heddle::cli
