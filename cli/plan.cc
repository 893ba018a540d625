#include "cli/plan.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <memory>
#include <optional>

#include "cli/quality_view.h"
#include "crds/parallelism.h"
#include "placement/planner.h"
#include "topology/synthetic.h"

namespace heddle::cli {
namespace {

using base::Code;

base::Result<placement::GangRequest> RequestOf(const PlanOptions& options) {
  placement::GangRequest request;
  ASSIGN_OR_RETURN(request.parallelism, crds::ParseParallelism(options.parallelism), "--parallelism");
  if (!options.model.empty()) {
    ASSIGN_OR_RETURN(request.model, crds::ParseModel(options.model), "--model");
  }
  if (!options.require.empty()) {
    ASSIGN_OR_RETURN(request.require, crds::ParseConstraints(options.require), "--require");
  }
  if (!options.prefer.empty()) {
    ASSIGN_OR_RETURN(request.prefer, crds::ParseConstraints(options.prefer), "--prefer");
  }
  const std::int64_t world = request.parallelism.world();
  if (options.gpus_per_pod < 1 || world % options.gpus_per_pod != 0) {
    return base::Fail(Code::kInvalid,
                      fmt::format("{} ranks do not fill pods of {} GPUs: choose --gpus-per-pod so that "
                                  "it divides tp*cp*dp*pp",
                                  world, options.gpus_per_pod));
  }
  const std::int64_t pods = world / options.gpus_per_pod;
  if (pods > crds::kMaxPods) {
    return base::Fail(Code::kInvalid,
                      fmt::format("{} pods are more than {}: choose larger pods", pods, crds::kMaxPods));
  }
  TRY(crds::CheckWorld(request.parallelism, static_cast<int>(pods), options.gpus_per_pod));
  request.pods.assign(static_cast<std::size_t>(pods), placement::PodRequest{.gpus = options.gpus_per_pod});
  return request;
}

base::Result<std::map<std::string, int>> ParseTaken(std::string_view text) {
  std::map<std::string, int> taken;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const std::size_t equals = word.find('=');
    int count = -1;
    if (equals != std::string_view::npos)
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), count);
    if (count < 0) {
      return base::Fail(Code::kInvalid, fmt::format("--taken \"{}\": write NODE=GPUS, as node-00=4", word));
    }
    taken[std::string(word.substr(0, equals))] = count;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return taken;
}

base::Result<std::vector<placement::NodeState>> StatesOf(const topology::Fabric& fabric,
                                                         const PlanOptions& options) {
  ASSIGN_OR_RETURN(const auto taken, ParseTaken(options.taken));
  for (const auto& [name, count] : taken) {
    if (fabric.FindNode(name) == topology::kNone) {
      return base::Fail(Code::kInvalid,
                        fmt::format("--taken: there is no node {} in this fabric; its first is {}", name,
                                    fabric.nodes.empty() ? "none" : fabric.nodes.front().node.name));
    }
  }
  std::vector<placement::NodeState> states(fabric.nodes.size());
  for (std::size_t n = 0; n < states.size(); ++n) {
    const topology::Node& node = fabric.nodes[n].node;
    const auto held = taken.find(node.name);
    int left = held == taken.end() ? 0 : held->second;
    states[n].free_milli_cpu = states[n].free_memory_bytes = std::int64_t{1} << 50;
    states[n].free_pods = 1000;
    for (std::size_t p = 0; p < node.gpus.size() && p < 32; ++p) {
      if (!node.gpus[p].healthy) continue;
      if (left-- <= 0) states[n].free_gpus |= 1U << p;
    }
  }
  return states;
}

std::vector<int> Indexes(const topology::Node& node, std::uint32_t positions) {
  std::vector<int> indexes;
  for (std::size_t p = 0; p < node.gpus.size() && p < 32; ++p) {
    if ((positions >> p & 1U) != 0) indexes.push_back(node.gpus[p].index);
  }
  return indexes;
}

Output Show(const topology::Fabric& fabric, const placement::GangRequest& request,
            const placement::Plan& plan, const OutputOptions& look) {
  Output output;
  Json pods = Json::array();
  Table table({"POD", "NODE", "GPUS"});
  for (std::size_t i = 0; i < plan.pods.size(); ++i) {
    const topology::Node& node = fabric.nodes[static_cast<std::size_t>(plan.pods[i].node)].node;
    const std::vector<int> gpus = Indexes(node, plan.pods[i].gpus);
    pods.push_back({{"index", i}, {"node", node.name}, {"gpus", gpus}});
    table.Add({std::to_string(i), node.name, fmt::format("{}", fmt::join(gpus, ","))});
  }
  if (look.format == Format::kJson) {
    Json json = QualityJson(request.parallelism, plan.quality);
    json["pods"] = std::move(pods);
    json["explanation"] = plan.explanation;
    json["wholeDomainsLeft"] = plan.quality.whole_domains_left;
    output.out = json.dump(2) + "\n";
    return output;
  }
  output.out = fmt::format("{} pods of {} GPUs, {}, on {} nodes with {} GPUs\n\n", request.pods.size(),
                           request.pods.front().gpus, ParallelismText(request.parallelism),
                           fabric.nodes.size(), fabric.gpu_count());
  output.out += QualityText(request.parallelism, plan.quality, look.style);
  output.out += fmt::format("NVLink domains left whole           {}\n\n", plan.quality.whole_domains_left);
  for (const std::string& sentence : plan.explanation) output.out += sentence + "\n";
  output.out += "\n" + table.Format(look.style);
  return output;
}

Output Show(const placement::Refusal& refusal, const OutputOptions& look) {
  Output output;
  output.exit_code = Output::kRefused;
  if (look.format == Format::kJson) {
    Json left_out = Json::object();
    for (const auto& [word, count] : refusal.left_out) left_out[word] = count;
    output.out = Json{{"refused", placement::RefusalReasonName(refusal.reason)},
                      {"sentence", refusal.sentence},
                      {"leftOut", std::move(left_out)}}
                     .dump(2) +
                 "\n";
    return output;
  }
  output.out = fmt::format("{} {}\n", look.style.Paint("Refused", Colour::kBad),
                           placement::RefusalReasonName(refusal.reason));
  output.out += refusal.sentence + "\n";
  for (const auto& [word, count] : refusal.left_out)
    output.out += fmt::format("  {} nodes: {}\n", count, word);
  return output;
}

base::Result<Output> Decide(const PlanOptions& options, const OutputOptions& look) {
  ASSIGN_OR_RETURN(topology::Synthetic synthetic, topology::ParseSynthetic(options.fabric), "--fabric");
  ASSIGN_OR_RETURN(const placement::GangRequest request, RequestOf(options));
  const auto fabric = std::make_shared<const topology::Fabric>(
      topology::BuildFabric(std::move(synthetic.nodes), synthetic.declaration));
  ASSIGN_OR_RETURN(std::vector<placement::NodeState> states, StatesOf(*fabric, options));
  placement::ClusterState state(fabric, std::move(states));
  const placement::Decision decision = placement::PlanGang(state, request);
  if (const auto* refusal = std::get_if<placement::Refusal>(&decision)) return Show(*refusal, look);
  return Show(*fabric, request, std::get<placement::Plan>(decision), look);
}

}  // namespace

Output Plan(const PlanOptions& options, const OutputOptions& look) {
  const base::Result<Output> output = Decide(options, look);
  return output ? *output : Failure(output.error());
}

}  // namespace heddle::cli
