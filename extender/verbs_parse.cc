#include <simdjson.h>

#include <algorithm>
#include <charconv>

#include "crds/at_once.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "crds/quantity.h"
#include "extender/pod_facts.h"
#include "extender/verbs.h"

namespace heddle::extender {
namespace {

namespace dom = simdjson::dom;

std::string_view Text(const simdjson::simdjson_result<dom::element>& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : std::string_view{};
}

int GpusOf(const dom::element& container) {
  int gpus = 0;
  for (const std::string_view name : crds::kGpuResources) {
    std::int64_t number = 0;
    const auto value = container["resources"]["limits"][name];
    if (value.get(number) != simdjson::SUCCESS) number = crds::ParseQuantity(Text(value)).value_or(0);
    gpus += int(std::clamp<std::int64_t>(number, 0, 1 << 16));
  }
  return gpus;
}

int GpusOfPod(const dom::element& pod) {
  crds::AtOnce<crds::CountAtOnce> gpus;
  dom::array containers;
  if (pod["spec"]["initContainers"].get(containers) == simdjson::SUCCESS) {
    for (const dom::element container : containers)
      gpus.AddInit({GpusOf(container)}, Text(container["restartPolicy"]) == "Always");
  }
  if (pod["spec"]["containers"].get(containers) == simdjson::SUCCESS) {
    for (const dom::element container : containers) gpus.AddMain({GpusOf(container)});
  }
  return int(std::min<std::int64_t>(gpus.Most().count, kMostGpusOfPod));
}

void ReadPodOf(const dom::element& pod, ExtenderArgs& args) {
  args.pod_name =
      std::string(Text(pod["metadata"]["namespace"])) + "/" + std::string(Text(pod["metadata"]["name"]));
  const auto annotations = pod["metadata"]["annotations"];
  args.of_gang = !Text(annotations[crds::keys::kGangUid]).empty();
  args.planned_node = std::string(Text(annotations[crds::keys::kNode]));
  std::int64_t priority = 0;
  if (pod["spec"]["priority"].get(priority) == simdjson::SUCCESS) {
    args.priority = int(std::clamp<std::int64_t>(priority, INT32_MIN, INT32_MAX));
  }
  dom::array gates;
  if (pod["spec"]["schedulingGates"].get(gates) == simdjson::SUCCESS) {
    for (const dom::element gate : gates)
      args.of_gang = args.of_gang || Text(gate["name"]) == crds::keys::kGangGate;
  }
  args.gpus = GpusOfPod(pod);
}

bool ReadNames(const dom::element& request, ExtenderArgs& args) {
  dom::array names;
  if (request["NodeNames"].get(names) == simdjson::SUCCESS) {
    args.node_names.reserve(names.size());
    for (const dom::element name : names) {
      std::string_view text;
      if (name.get(text) != simdjson::SUCCESS) return false;
      args.node_names.push_back(text);
    }
    return true;
  }
  dom::array items;
  if (request["Nodes"]["items"].get(items) != simdjson::SUCCESS)
    return true;  // no names at all: nothing passes
  args.whole_nodes = true;
  args.nodes_json = simdjson::minify(request["Nodes"].value_unsafe());
  for (const dom::element node : items) args.node_names.push_back(Text(node["metadata"]["name"]));
  return true;
}

// The parser's own strings live until its next document only.
void KeepNames(ExtenderArgs& args) {
  std::size_t bytes = 0;
  for (const std::string_view name : args.node_names) bytes += name.size();
  args.bytes.reserve(bytes);
  for (std::string_view& name : args.node_names) {
    const std::size_t at = args.bytes.size();
    args.bytes.insert(args.bytes.end(), name.begin(), name.end());
    name = {args.bytes.data() + at, name.size()};
  }
}

std::string_view UidOf(const dom::element& pod) {
  const std::string_view own = Text(pod["UID"]);
  return own.empty() ? Text(pod["metadata"]["uid"]) : own;
}

void AppendVictims(const dom::element& victims, std::string& body) {
  body += R"({"Pods":[)";
  dom::array pods;
  if (victims["Pods"].get(pods) == simdjson::SUCCESS) {
    for (const dom::element pod : pods) {
      if (body.back() != '[') body += ',';
      body += R"({"UID":)";
      AppendQuoted(body, UidOf(pod));
      body += '}';
    }
  }
  std::int64_t violations = 0;
  if (victims["NumPDBViolations"].get(violations) != simdjson::SUCCESS) violations = 0;
  body += R"(],"NumPDBViolations":)" + std::to_string(violations) + '}';
}

bool IsOfGang(const dom::element& victim, const IsGangPodUid& is_gang_pod) {
  // Only a whole pod has metadata; the other form is its UID.
  if (dom::element metadata; victim["metadata"].get(metadata) == simdjson::SUCCESS) {
    if (!Text(metadata["annotations"][crds::keys::kGangUid]).empty()) return true;
  }
  return is_gang_pod(std::string(UidOf(victim)));
}

bool MayBeEmptied(const ExtenderArgs& args, std::string_view node, const dom::element& victims,
                  const IsGangPodUid& is_gang_pod, const KeptNodes& kept, const Snapshot* snapshot,
                  const SlotsLeftByNode& left) {
  if (args.of_gang && args.planned_node != node) return false;
  const auto keeper = kept.find(node);
  if (!args.of_gang && keeper != kept.end() && keeper->second > args.priority) return false;
  const bool takes = !args.of_gang && args.gpus > 0 && snapshot != nullptr;
  if (takes && (snapshot->Reservation(node) != nullptr || FindLeft(left, node, *snapshot) != nullptr))
    return false;
  dom::array pods;
  if (victims["Pods"].get(pods) != simdjson::SUCCESS) return true;
  return std::none_of(pods.begin(), pods.end(),
                      [&](const dom::element& pod) { return IsOfGang(pod, is_gang_pod); });
}

// Kept: its tables are larger than the body, and fresh memory costs more than the parsing.
simdjson::simdjson_result<dom::element> ParsedBody(std::string_view body) {
  thread_local dom::parser parser(kMaxBody);
  return parser.parse(body.data(), body.size());
}

}  // namespace

base::Result<ExtenderArgs> ParseExtenderArgs(std::string_view body) {
  dom::element request;
  if (const auto error = ParsedBody(body).get(request); error != simdjson::SUCCESS) {
    return base::Fail(base::Code::kInvalid, simdjson::error_message(error));
  }
  dom::element pod;
  if (!request.is_object() || request["Pod"].get(pod) != simdjson::SUCCESS || !pod.is_object()) {
    return base::Fail(base::Code::kInvalid, "it has no Pod");
  }
  ExtenderArgs args;
  ReadPodOf(pod, args);
  if (!ReadNames(request, args))
    return base::Fail(base::Code::kInvalid, "NodeNames holds something that is no string");
  KeepNames(args);
  return args;
}

base::Result<std::string> Preempt(std::string_view body, const IsGangPodUid& is_gang_pod,
                                  const KeptNodes& kept, const Snapshot* snapshot,
                                  const SlotsLeftByNode& left) {
  dom::element request;
  if (const auto error = ParsedBody(body).get(request); error != simdjson::SUCCESS) {
    return base::Fail(base::Code::kInvalid, simdjson::error_message(error));
  }
  if (!request.is_object()) return base::Fail(base::Code::kInvalid, "it is no JSON object");
  ExtenderArgs args;
  dom::element pod;
  if (request["Pod"].get(pod) == simdjson::SUCCESS && pod.is_object()) ReadPodOf(pod, args);
  std::string answer = R"({"NodeNameToMetaVictims":{)";
  answer.reserve(body.size());
  for (const char* form : {"NodeNameToMetaVictims", "NodeNameToVictims"}) {
    dom::object victims;
    if (request[form].get(victims) != simdjson::SUCCESS || answer.back() != '{') continue;
    for (const auto [node, victim] : victims) {
      if (!MayBeEmptied(args, node, victim, is_gang_pod, kept, snapshot, left)) continue;
      if (answer.back() != '{') answer += ',';
      AppendQuoted(answer, node);
      answer += ':';
      AppendVictims(victim, answer);
    }
  }
  return answer + "}}";
}

}  // namespace heddle::extender
