#include <simdjson.h>

#include <charconv>

#include "crds/gpu_indexes.h"
#include "crds/keys.h"
#include "extender/pod_facts.h"
#include "extender/quantity.h"
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
    if (value.get(number) != simdjson::SUCCESS) number = ParseQuantity(Text(value)).value_or(0);
    gpus += int(std::clamp<std::int64_t>(number, 0, 1 << 16));
  }
  return gpus;
}

void ReadPodOf(const dom::element& pod, ExtenderArgs& args) {
  args.pod_name =
      std::string(Text(pod["metadata"]["namespace"])) + "/" + std::string(Text(pod["metadata"]["name"]));
  const auto annotations = pod["metadata"]["annotations"];
  args.of_gang = !Text(annotations[crds::keys::kGangUid]).empty();
  args.planned_node = std::string(Text(annotations[crds::keys::kNode]));
  dom::array gates;
  if (pod["spec"]["schedulingGates"].get(gates) == simdjson::SUCCESS) {
    for (const dom::element gate : gates)
      args.of_gang = args.of_gang || Text(gate["name"]) == crds::keys::kGangGate;
  }
  dom::array containers;
  if (pod["spec"]["containers"].get(containers) == simdjson::SUCCESS) {
    for (const dom::element container : containers) args.gpus += GpusOf(container);
  }
}

bool ReadNames(const dom::element& request, ExtenderArgs& args) {
  dom::array names;
  if (request["NodeNames"].get(names) == simdjson::SUCCESS) {
    args.node_names.reserve(names.size());
    for (const dom::element name : names) {
      std::string_view text;
      if (name.get(text) != simdjson::SUCCESS) return false;
      args.node_names.emplace_back(text);
    }
    return true;
  }
  dom::array items;
  if (request["Nodes"]["items"].get(items) != simdjson::SUCCESS)
    return true;  // no names at all: nothing passes
  args.whole_nodes = true;
  args.nodes_json = simdjson::minify(request["Nodes"].value_unsafe());
  for (const dom::element node : items) args.node_names.emplace_back(Text(node["metadata"]["name"]));
  return true;
}

}  // namespace

base::Result<ExtenderArgs> ParseExtenderArgs(std::string_view body) {
  dom::parser parser;
  dom::element request;
  if (const auto error = parser.parse(body.data(), body.size()).get(request); error != simdjson::SUCCESS) {
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
  return args;
}

}  // namespace heddle::extender
