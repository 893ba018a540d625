#include "cli/cluster_files.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "crds/fabric.h"
#include "crds/keys.h"
#include "crds/yaml.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
namespace ondemand = simdjson::ondemand;
using base::Code;
using base::Status;

bool LooksLikeJson(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != std::string_view::npos && text[first] == '{';
}

Status KeepObject(const Json& object, ClusterFiles& into) {
  const std::string kind = kube::StringAt(object, {"kind"});
  if (kind == keys::kNodeTopology.kind) {
    ASSIGN_OR_RETURN(crds::NodeTopology topology, crds::NodeTopologyFromJson(object));
    // Without a status its agent has not reported yet.
    if (topology.status.observed_at) into.topologies.push_back(std::move(topology));
    return {};
  }
  if (kind == keys::kFabric.kind) {
    ASSIGN_OR_RETURN(crds::Fabric fabric, crds::FabricFromJson(object));
    into.declared[fabric.name] = std::move(fabric.spec);
    return {};
  }
  if (kind == keys::kGang.kind) {
    ASSIGN_OR_RETURN(crds::Gang gang, crds::GangFromJson(object));
    into.gangs.push_back(std::move(gang));
    return {};
  }
  if (kind == "Pod") into.pods.push_back(object);
  return {};
}

base::Error Bad(const std::string& path, const std::string& what) {
  return {Code::kInvalid, path + ": " + what, std::nullopt};
}

Status KeepItem(const std::string& path, std::size_t number, const Json& item, ClusterFiles& into) {
  if (!item.is_object()) return base::Fail(Bad(path, fmt::format("item {} is no object", number)));
  if (Status kept = KeepObject(item, into); !kept) {
    return base::Fail(Bad(path, fmt::format("item {}: {}", number, kept.error().message)));
  }
  return {};
}

// The items one by one, without a tree of all of them.
Status ReadJson(const std::string& path, const std::string& text, ClusterFiles& into) {
  const simdjson::padded_string padded(text);
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array items;
  if (const auto error = parser.iterate(padded).get(document)) {
    return base::Fail(Bad(path, std::string("it is no JSON: ") + simdjson::error_message(error)));
  }
  if (document["items"].get_array().get(items) != simdjson::SUCCESS) {
    const Json one = Json::parse(text, nullptr, false);
    if (!one.is_object()) return base::Fail(Bad(path, "it is no JSON object"));
    return KeepItem(path, 0, one, into);
  }
  std::size_t number = 0;
  for (auto item : items) {
    ondemand::object object;
    std::string_view raw;
    auto error = item.get_object().get(object);
    if (error == simdjson::INCORRECT_TYPE)
      return base::Fail(Bad(path, fmt::format("item {} is no object", number)));
    if (error == simdjson::SUCCESS) error = object.raw_json().get(raw);
    if (error != simdjson::SUCCESS) {
      return base::Fail(
          Bad(path, fmt::format("item {} is no JSON: {}", number, simdjson::error_message(error))));
    }
    TRY(KeepItem(path, number, Json::parse(raw, nullptr, false), into));
    ++number;
  }
  return {};
}

Status ReadYaml(const std::string& path, const std::string& text, ClusterFiles& into) {
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find("\n---", begin);
    if (end == std::string::npos) end = text.size();
    auto document = crds::FromYaml(text.substr(begin, end - begin));
    if (!document) return base::Fail(Bad(path, document.error().message));
    begin = end == text.size() ? end : text.find('\n', end + 1);
    if (begin == std::string::npos) begin = text.size();
    if (document->is_null()) continue;
    if (!document->is_object()) return base::Fail(Bad(path, "it holds no Kubernetes objects"));
    const Json* items = kube::Find(*document, {"items"});
    if (items == nullptr) {
      TRY(KeepItem(path, number++, *document, into));
      continue;
    }
    if (!items->is_array()) return base::Fail(Bad(path, "items is no list"));
    for (const Json& item : *items) {
      TRY(KeepItem(path, number++, item, into));
    }
  }
  return {};
}

}  // namespace

Status ReadClusterFile(const std::string& path, const std::string& text, ClusterFiles& into) {
  return LooksLikeJson(text) ? ReadJson(path, text, into) : ReadYaml(path, text, into);
}

}  // namespace heddle::cli
