#include "extender/verbs.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace heddle::extender {
namespace {

using kube::Json;

constexpr int kTopScore = 10;  // MaxExtenderPriority; the scheduler does not clamp
// So many names further on is what memory is fetched for while it is not waited for (verbs_bench).
constexpr std::size_t kAhead = 16;

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

// What keeps the pod from a node; empty = nothing. `snapshot`: null = nothing is reserved anywhere.
std::string WhyNot(const ExtenderArgs& args, std::string_view node, const KeptNodes& kept,
                   const Snapshot* snapshot, const SlotsLeftByNode& left) {
  if (args.of_gang)
    return node == args.planned_node ? "" : "the gang's plan puts this pod on " + args.planned_node;
  const auto keeper = kept.find(node);
  if (keeper != kept.end() && keeper->second > args.priority)
    return "others left it for a gang of priority " + std::to_string(keeper->second);
  if (snapshot == nullptr) return "";
  if (const Hold* hold = snapshot->Reservation(node))
    return (hold->leaving ? "its GPUs are reserved for the successor of " : "its GPUs are reserved for ") +
           hold->name;
  if (const SlotLeft* slot = FindLeft(left, node, *snapshot))
    return "its GPUs are reserved for the successor of pod " + slot->pod;
  return "";
}

struct Asked {
  std::optional<NamesApart> apart;
  ExtenderArgs args;  // without names where they are apart
};
base::Result<Asked> Read(const std::string& body) {
  auto apart = TakeNamesApart(body);
  auto args = ParseExtenderArgs(apart ? apart->request : body);
  if (!args) return tl::unexpected(std::move(args.error()));
  return Asked{std::move(apart), *std::move(args)};
}

// Never null. Before the snapshot is read: see SlotsLeft.
std::shared_ptr<const SlotsLeftByNode> LeftBy(const Endpoints& endpoints) {
  static const auto kNone = std::make_shared<const SlotsLeftByNode>();
  return endpoints.slots_left ? endpoints.slots_left() : kNone;
}

kube::ServedAnswer AnswerFilter(const std::string& body, const Endpoints& endpoints) {
  auto asked = Read(body);
  if (!asked) return BadBody(asked.error());
  const auto kept = endpoints.kept_nodes();
  const auto left = LeftBy(endpoints);
  const auto snapshot = endpoints.snapshot();
  if (asked->apart) {
    if (PassesEverywhere(asked->args, *kept, snapshot.get(), *left)) return Told(ToBody(*asked->apart));
    asked->args.node_names = NamesOf(*asked->apart);
  }
  return Told(ToBody(Filter(asked->args, *kept, snapshot.get(), *left), asked->args));
}

kube::ServedAnswer AnswerPrioritize(const std::string& body, const Endpoints& endpoints) {
  auto asked = Read(body);
  if (!asked) return BadBody(asked.error());
  std::vector<std::string_view>& names = asked->args.node_names;
  if (asked->apart) names = NamesOf(*asked->apart);
  const bool plain = asked->apart || std::all_of(names.begin(), names.end(), IsPlainName);
  const auto snapshot = endpoints.snapshot();
  std::vector<HostScore> scores = Prioritize(asked->args, snapshot.get());
  KeepDifferences(scores);
  return Told(plain ? ToBodyOfPlain(scores) : ToBody(scores));
}

}  // namespace

void AppendQuoted(std::string& body, std::string_view name) {
  if (!IsPlainName(name)) {
    body += Text(name);
    return;
  }
  body += '"';
  body += name;
  body += '"';
}

bool PassesEverywhere(const ExtenderArgs& args, const KeptNodes& kept, const Snapshot* snapshot,
                      const SlotsLeftByNode& left) {
  if (args.of_gang) return args.planned_node.empty();
  return args.gpus == 0 || (kept.empty() && (snapshot == nullptr || (left.empty() && !snapshot->Reserves())));
}

FilterAnswer Filter(const ExtenderArgs& args, const KeptNodes& kept, const Snapshot* snapshot,
                    const SlotsLeftByNode& left) {
  FilterAnswer answer;
  if (PassesEverywhere(args, kept, snapshot, left)) {
    answer.passed = args.node_names;
    return answer;
  }
  if (args.of_gang || (snapshot != nullptr && left.empty() && !snapshot->Reserves())) snapshot = nullptr;
  for (std::size_t i = 0; i < args.node_names.size(); ++i) {
    const std::string_view node = args.node_names[i];
    if (snapshot != nullptr && i + kAhead < args.node_names.size())
      snapshot->Prefetch(args.node_names[i + kAhead]);
    if (std::string why = WhyNot(args, node, kept, snapshot, left); why.empty()) {
      answer.passed.push_back(node);
    } else {
      answer.unresolvable.emplace(node, std::move(why));
    }
  }
  return answer;
}

std::vector<HostScore> Prioritize(const ExtenderArgs& args, const Snapshot* snapshot) {
  std::vector<HostScore> scores;
  scores.reserve(args.node_names.size());
  for (const std::string_view node : args.node_names) scores.push_back({node, 0});
  if (snapshot == nullptr || args.gpus == 0) return scores;
  if (args.of_gang) {
    for (HostScore& one : scores) one.score = one.host == args.planned_node ? kTopScore : 0;
    return scores;
  }
  for (const FabricView& view : snapshot->fabrics) {
    const std::vector<std::int8_t>& hundredths = view.scores->Of(view.state, args.gpus, snapshot->spares);
    const std::vector<topology::NodeId> nodes = view.FindAll(args.node_names);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (nodes[i] == topology::kNone) continue;
      scores[i].score = std::clamp((hundredths[std::size_t(nodes[i])] + 5) / 10, 0, kTopScore);
    }
  }
  return scores;
}

void KeepDifferences(std::vector<HostScore>& scores) {
  int least = kTopScore;
  for (const HostScore& one : scores) least = std::min(least, one.score);
  std::erase_if(scores, [least](const HostScore& one) { return one.score == least; });
  for (HostScore& one : scores) one.score -= least;
}

// Printed by hand, as the scores: a tree of 5,000 small values takes longer to build than all the rest of the verb.
std::string ToBody(const FilterAnswer& answer, const ExtenderArgs& args) {
  std::string body = R"({"Nodes":)";
  if (args.whole_nodes) {
    // A scheduler that sent whole nodes reads only whole nodes back.
    const std::set<std::string_view> passed(answer.passed.begin(), answer.passed.end());
    Json kept = Json::array();
    const Json nodes = Json::parse(args.nodes_json, nullptr, false);
    for (const Json& node : kube::ArrayAt(nodes, {"items"})) {
      if (passed.contains(kube::Name(node))) kept.push_back(node);
    }
    body += Text({{"metadata", Json::object()}, {"items", std::move(kept)}}) + R"(,"NodeNames":null)";
  } else {
    std::size_t bytes = 256;
    for (const std::string_view name : answer.passed) bytes += name.size() + 3;
    body.reserve(bytes);
    body += R"(null,"NodeNames":[)";
    for (const std::string_view name : answer.passed) {
      if (body.back() != '[') body += ',';
      AppendQuoted(body, name);
    }
    body += ']';
  }
  body += R"(,"FailedNodes":{},"FailedAndUnresolvableNodes":{)";
  for (const auto& [name, why] : answer.unresolvable) {
    if (body.back() != '{') body += ',';
    AppendQuoted(body, name);
    body += ':' + Text(why);
  }
  return body + R"(},"Error":)" + Text(answer.error) + '}';
}

std::string ToBody(const NamesApart& passed) {
  constexpr std::string_view before = R"({"Nodes":null,"NodeNames":[)";
  constexpr std::string_view behind = R"(],"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""})";
  std::string body;
  body.reserve(before.size() + passed.names.size() + behind.size());
  return body.append(before).append(passed.names).append(behind);
}

std::string ToBody(const std::vector<HostScore>& scores) {
  std::vector<std::string> quoted;
  quoted.reserve(scores.size());  // or views of short ones would not last
  std::vector<HostScore> escaped = scores;
  for (HostScore& one : escaped) {
    const std::string& name = quoted.emplace_back(Text(one.host));
    one.host = std::string_view(name).substr(1, name.size() - 2);
  }
  return ToBodyOfPlain(escaped);
}

// Thousands of them are copied into their places, which is a third of the time that appending takes (verbs_bench).
std::string ToBodyOfPlain(const std::vector<HostScore>& scores) {
  constexpr std::string_view host = R"({"Host":")", score = R"(","Score":)", end = "},";
  constexpr std::array<std::string_view, kTopScore + 1> digits{"0", "1", "2", "3", "4", "5",
                                                               "6", "7", "8", "9", "10"};
  const auto digits_of = [&digits](const HostScore& one) { return digits[std::size_t(one.score)]; };
  if (scores.empty()) return "[]";
  std::size_t bytes = 1;  // the last comma is the closing bracket
  for (const HostScore& one : scores)
    bytes += host.size() + one.host.size() + score.size() + digits_of(one).size() + end.size();
  std::string body(bytes, '[');
  char* at = body.data() + 1;
  const auto put = [&at](std::string_view text) { at = std::ranges::copy(text, at).out; };
  for (const HostScore& one : scores) {
    put(host);
    put(one.host);
    put(score);
    put(digits_of(one));
    put(end);
  }
  body.back() = ']';
  return body;
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
  if (path == "/filter") return AnswerFilter(request.body, endpoints);
  if (path == "/prioritize") return AnswerPrioritize(request.body, endpoints);
  const auto kept = endpoints.kept_nodes();
  const auto left = LeftBy(endpoints);
  const auto snapshot = endpoints.snapshot();
  auto answer = Preempt(request.body, endpoints.is_gang_pod, *kept, snapshot.get(), *left);
  return answer ? Told(*std::move(answer)) : BadBody(answer.error());
}

}  // namespace heddle::extender
