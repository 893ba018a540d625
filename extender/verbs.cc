#include "extender/verbs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "placement/planner.h"

namespace heddle::extender {
namespace {

using kube::Json;

constexpr int kTopScore = 10;  // MaxExtenderPriority; the scheduler does not clamp

VerbAnswer Refused(int status, std::string sentence) {
  return {status, "text/plain; charset=utf-8", std::move(sentence) + "\n"};
}

VerbAnswer BadBody(const base::Error& error) {
  return Refused(400, "the body is no extender request: " + error.message);
}

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

VerbAnswer AnswerFilter(const std::string& body) {
  const auto args = ParseExtenderArgs(body);
  if (!args) return BadBody(args.error());
  return {.body = ToBody(Filter(*args), *args)};
}

VerbAnswer AnswerPrioritize(const std::string& body, const Endpoints& endpoints) {
  const auto args = ParseExtenderArgs(body);
  if (!args) return BadBody(args.error());
  const auto snapshot = endpoints.snapshot();
  return {.body = ToBody(Prioritize(*args, snapshot.get()))};
}

VerbAnswer AnswerGet(const std::string& path, const Endpoints& endpoints) {
  if (path == "/healthz") return {.content_type = "text/plain; charset=utf-8", .body = "ok\n"};
  if (path == "/metrics")
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = endpoints.metrics()};
  const std::string why = endpoints.not_ready();
  if (!why.empty()) return Refused(503, "not ready: " + why);
  return {.content_type = "text/plain; charset=utf-8", .body = "ok\n"};
}

}  // namespace

FilterAnswer Filter(const ExtenderArgs& args) {
  FilterAnswer answer;
  if (!args.of_gang || args.planned_node.empty()) {
    answer.passed = args.node_names;
    return answer;
  }
  for (const std::string& node : args.node_names) {
    if (node == args.planned_node) {
      answer.passed.push_back(node);
    } else {
      answer.unresolvable.emplace(node, "the gang's plan puts this pod on " + args.planned_node);
    }
  }
  return answer;
}

std::vector<HostScore> Prioritize(const ExtenderArgs& args, const Snapshot* snapshot) {
  std::vector<HostScore> scores;
  scores.reserve(args.node_names.size());
  for (const std::string& node : args.node_names) scores.push_back({node, 0});
  if (snapshot == nullptr || args.gpus == 0) return scores;
  if (args.of_gang) {
    for (HostScore& one : scores) one.score = one.host == args.planned_node ? kTopScore : 0;
    return scores;
  }
  for (const FabricView& view : snapshot->fabrics) {
    std::vector<topology::NodeId> candidates;
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const topology::NodeId id = view.fabric->FindNode(scores[i].host);
      if (id == topology::kNone) continue;
      candidates.push_back(id);
      at.push_back(i);
    }
    if (candidates.empty()) continue;
    const auto hundredths = placement::ScoreLonePod(view.state, args.gpus, candidates);
    for (std::size_t i = 0; i < at.size(); ++i) {
      scores[at[i]].score = std::clamp((hundredths[i] + 5) / 10, 0, kTopScore);
    }
  }
  return scores;
}

base::Result<std::string> Preempt(std::string_view body) {
  const Json request = Json::parse(body, nullptr, false);
  if (!request.is_object()) return base::Fail(base::Code::kInvalid, "it is no JSON object");
  Json meta = Json::object();
  const auto uid_of = [](const Json& pod) {
    const std::string own = kube::StringAt(pod, {"UID"});
    return own.empty() ? kube::StringAt(pod, {"metadata", "uid"}) : own;
  };
  for (const char* form : {"NodeNameToMetaVictims", "NodeNameToVictims"}) {
    const Json* victims = kube::Find(request, {form});
    if (victims == nullptr || !victims->is_object() || !meta.empty()) continue;
    for (const auto& [node, victim] : victims->items()) {
      Json pods = Json::array();
      for (const Json& pod : kube::ArrayAt(victim, {"Pods"})) pods.push_back({{"UID", uid_of(pod)}});
      meta[node] = {{"Pods", std::move(pods)},
                    {"NumPDBViolations", kube::IntAt(victim, {"NumPDBViolations"}).value_or(0)}};
    }
  }
  return Text({{"NodeNameToMetaVictims", std::move(meta)}});
}

std::string ToBody(const FilterAnswer& answer, const ExtenderArgs& args) {
  Json body = {{"Nodes", nullptr},
               {"NodeNames", answer.passed},
               {"FailedNodes", Json::object()},
               {"FailedAndUnresolvableNodes", answer.unresolvable},
               {"Error", answer.error}};
  if (!args.whole_nodes) return Text(body);
  // A scheduler that sent whole nodes reads only whole nodes back.
  Json kept = Json::array();
  const Json nodes = Json::parse(args.nodes_json, nullptr, false);
  for (const Json& node : kube::ArrayAt(nodes, {"items"})) {
    if (std::find(answer.passed.begin(), answer.passed.end(), kube::Name(node)) != answer.passed.end()) {
      kept.push_back(node);
    }
  }
  body["Nodes"] = {{"metadata", Json::object()}, {"items", std::move(kept)}};
  body["NodeNames"] = nullptr;
  return Text(body);
}

std::string ToBody(const std::vector<HostScore>& scores) {
  Json body = Json::array();
  for (const HostScore& one : scores) body.push_back({{"Host", one.host}, {"Score", one.score}});
  return Text(body);
}

VerbAnswer Answer(const std::string& method, const std::string& path, const std::string& body,
                  const Endpoints& endpoints) {
  const bool get = path == "/healthz" || path == "/readyz" || path == "/metrics";
  const bool post = path == "/filter" || path == "/prioritize" || path == "/preempt";
  if (!get && !post) {
    return Refused(404,
                   "no such path; there are /filter, /prioritize, /preempt, /healthz, /readyz and /metrics");
  }
  if (method != (get ? "GET" : "POST"))
    return Refused(405, path + " takes " + (get ? "GET" : "POST") + " only");
  if (get) return AnswerGet(path, endpoints);
  if (body.size() > kMaxBody) {
    return Refused(413, "the body is larger than " + std::to_string(kMaxBody >> 20) +
                            " MiB; set nodeCacheCapable: true for this extender, so that only names travel");
  }
  if (path == "/filter") return AnswerFilter(body);
  if (path == "/prioritize") return AnswerPrioritize(body, endpoints);
  auto answer = Preempt(body);
  return answer ? VerbAnswer{.body = *std::move(answer)} : BadBody(answer.error());
}

}  // namespace heddle::extender
