#include "extender/verbs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "placement/planner.h"

namespace heddle::extender {
namespace {

using kube::Json;

constexpr int kTopScore = 10;  // MaxExtenderPriority; the scheduler does not clamp

kube::ServedAnswer Refused(int status, std::string sentence) {
  return {.status = status, .body = std::move(sentence) + "\n"};
}

kube::ServedAnswer Told(std::string json) {
  return {.content_type = "application/json", .body = std::move(json)};
}

kube::ServedAnswer BadBody(const base::Error& error) {
  return Refused(400, "the body is no extender request: " + error.message);
}

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// As JSON. A node's name needs no escapes, but what came in is not always a node's name.
std::string Quoted(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  return plain ? '"' + name + '"' : Text(name);
}

kube::ServedAnswer AnswerFilter(const std::string& body) {
  const auto args = ParseExtenderArgs(body);
  if (!args) return BadBody(args.error());
  return Told(ToBody(Filter(*args), *args));
}

kube::ServedAnswer AnswerPrioritize(const std::string& body, const Endpoints& endpoints) {
  const auto args = ParseExtenderArgs(body);
  if (!args) return BadBody(args.error());
  const auto snapshot = endpoints.snapshot();
  return Told(ToBody(Prioritize(*args, snapshot.get())));
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

// Printed by hand: a tree of 5,000 small objects takes longer to build than all the rest of the verb.
std::string ToBody(const std::vector<HostScore>& scores) {
  std::string body = "[";
  for (const HostScore& one : scores) {
    if (body.size() > 1) body += ',';
    body += R"({"Host":)" + Quoted(one.host) + R"(,"Score":)" + std::to_string(one.score) + '}';
  }
  return body + ']';
}

kube::ServedAnswer Answer(const kube::ServedRequest& request, const Endpoints& endpoints) {
  if (auto status = kube::AnswerStatus(request, endpoints.status)) return *std::move(status);
  const std::string& path = request.path;
  if (path != "/filter" && path != "/prioritize" && path != "/preempt") {
    return Refused(404,
                   "no such path; there are /filter, /prioritize, /preempt, /healthz, /readyz and /metrics");
  }
  if (request.method != "POST") return Refused(405, path + " takes POST only");
  if (request.body_too_large) {
    return Refused(413, "the body is larger than " + std::to_string(kMaxBody >> 20) +
                            " MiB; set nodeCacheCapable: true for this extender, so that only names travel");
  }
  if (path == "/filter") return AnswerFilter(request.body);
  if (path == "/prioritize") return AnswerPrioritize(request.body, endpoints);
  auto answer = Preempt(request.body);
  return answer ? Told(*std::move(answer)) : BadBody(answer.error());
}

}  // namespace heddle::extender
