#include "cli/cluster_files.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "cli/object_documents.h"
#include "crds/fabric.h"
#include "crds/keys.h"
#include "crds/yaml.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
namespace dom = simdjson::dom;
namespace ondemand = simdjson::ondemand;
using base::Code;
using base::Status;

bool LooksLikeJson(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != std::string_view::npos && text[first] == '{';
}

// A switch that is its own ancestor, by way of what it is declared to hang on; empty = none.
std::string FindLoop(const topology::Declaration& declaration) {
  std::map<std::string_view, const topology::SwitchDeclaration*> switches;
  for (const topology::SwitchDeclaration& one : declaration.switches) switches[one.name] = &one;
  std::set<std::string_view> sound;
  for (const topology::SwitchDeclaration& start : declaration.switches) {
    std::vector<std::pair<const topology::SwitchDeclaration*, std::size_t>> way{{&start, 0}};
    std::set<std::string_view> on_way{start.name};
    while (!way.empty()) {
      auto& [at, next] = way.back();
      if (next == at->uplinks.size() || sound.contains(at->name)) {
        sound.insert(at->name);
        on_way.erase(at->name);
        way.pop_back();
        continue;
      }
      const std::string& above = at->uplinks[next++];
      if (on_way.contains(above)) return above;
      const auto found = switches.find(above);
      if (found == switches.end()) continue;
      on_way.insert(above);
      way.emplace_back(found->second, 0);
    }
  }
  return "";
}

Status KeepObject(const Json& object, ClusterFiles& into) {
  const std::string kind = kube::StringAt(object, {"kind"});
  if (kind == keys::kNodeTopology.kind) {
    ASSIGN_OR_RETURN(crds::NodeTopology topology, crds::NodeTopologyFromJson(object));
    if (!into.names.insert(topology.name).second) {
      return base::Fail(Code::kInvalid,
                        fmt::format("NodeTopology {} stands twice; was a file given twice?", topology.name));
    }
    crds::CountCables(topology);
    // Without a status its agent has not reported yet.
    if (topology.status.observed_at) into.topologies.push_back(std::move(topology));
    return {};
  }
  if (kind == keys::kFabric.kind) {
    ASSIGN_OR_RETURN(crds::Fabric fabric, crds::FabricFromJson(object));
    if (const std::string loop = FindLoop(fabric.spec); !loop.empty()) {
      return base::Fail(
          Code::kInvalid,
          fmt::format("Fabric {}: spec.switches: the uplinks of {} lead back to it", fabric.name, loop));
    }
    into.declared[fabric.name] = std::move(fabric.spec);
    return {};
  }
  if (kind == keys::kGang.kind) {
    ASSIGN_OR_RETURN(crds::Gang gang, crds::GangFromJson(object));
    into.gangs.push_back(std::move(gang));
    return {};
  }
  if (kind == "Pod") {
    into.pods.push_back(object);
  } else {
    ++into.passed_over[kind.empty() ? "objects without a kind" : kind];
  }
  return {};
}

// What becomes of each object.
using Keep = std::function<Status(const Json& object)>;

base::Error Bad(const std::string& path, const std::string& what) {
  return {Code::kInvalid, path + ": " + what, std::nullopt};
}

Status KeepItem(const std::string& path, std::size_t number, const Json& item, const Keep& keep) {
  if (!item.is_object()) return base::Fail(Bad(path, fmt::format("item {} is no object", number)));
  if (Status kept = keep(item); !kept) {
    return base::Fail(Bad(path, fmt::format("item {}: {}", number, kept.error().message)));
  }
  return {};
}

// As the codecs read it. The parser bounds the depth.
Json Copied(dom::element value) {
  switch (value.type()) {
    case dom::element_type::OBJECT: {
      Json json = Json::object();
      auto& members = json.get_ref<Json::object_t&>();
      // kubectl sorts keys, so the next belongs at the end.
      for (const auto& [key, member] : dom::object(value)) {
        members.insert_or_assign(members.end(), std::string(key), Copied(member));
      }
      return json;
    }
    case dom::element_type::ARRAY: {
      Json json = Json::array();
      for (const dom::element item : dom::array(value)) json.push_back(Copied(item));
      return json;
    }
    case dom::element_type::STRING:
      return std::string(std::string_view(value));
    case dom::element_type::INT64:
      return std::int64_t(value);
    case dom::element_type::UINT64:
      return std::uint64_t(value);
    case dom::element_type::DOUBLE:
      return double(value);
    case dom::element_type::BOOL:
      return bool(value);
    default:
      return {};
  }
}

std::size_t LineOf(std::string_view text, std::size_t at) {
  return 1 + std::size_t(
                 std::count(text.begin(), text.begin() + std::ptrdiff_t(std::min(at, text.size())), '\n'));
}

// simdjson is quicker by far, and refuses what is no fault of the file (a number of 30 digits): then the other
// parser has the last word, and the codecs name the field. `raw` is a part of `text`, which is padded.
base::Result<Json> ParseItem(dom::parser& parser, std::string_view raw, std::string_view text) {
  dom::element element;
  if (parser.parse(raw.data(), raw.size(), false).get(element) == simdjson::SUCCESS) return Copied(element);
  try {
    return Json::parse(raw);
  } catch (const Json::parse_error& error) {
    const std::size_t at = std::size_t(raw.data() - text.data()) + error.byte;
    return base::Fail(Code::kInvalid, fmt::format("line {}: it is no JSON", LineOf(text, at)));
  } catch (const Json::out_of_range&) {
    const std::size_t at = std::size_t(raw.data() - text.data());
    return base::Fail(
        Code::kInvalid,
        fmt::format("line {}: the item that begins here has a number beyond all bounds", LineOf(text, at)));
  }
}

// A file that holds no list.
Status ReadOne(const std::string& path, std::string_view text, const Keep& keep) {
  try {
    // First without keeping anything: what is no JSON may be of any size.
    [[maybe_unused]] const Json nothing =
        Json::parse(text, [](int, Json::parse_event_t, Json&) { return false; });
    return KeepItem(path, 0, Json::parse(text), keep);
  } catch (const Json::parse_error& error) {
    return base::Fail(
        Bad(path, fmt::format("line {}: it is no JSON, or ends too early", LineOf(text, error.byte))));
  } catch (const Json::out_of_range&) {
    return base::Fail(Bad(path, "a number in it is beyond all bounds"));
  }
}

// Behind the object of which `depth` brackets are open at `at`; npos = it does not end.
std::size_t EndOfObject(std::string_view text, std::size_t at, int depth) {
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// The parser of lists reads the first and is content: what two commands printed one after the other would be half a
// cluster. `at`: behind the last item, or 0 where there is none.
Status NothingFollows(const std::string& path, std::string_view text, std::size_t at) {
  const std::size_t end = EndOfObject(text, at, at == 0 ? 0 : 2);
  if (end == std::string_view::npos) return {};
  const std::size_t next = text.find_first_not_of(" \t\r\n", end);
  if (next == std::string_view::npos) return {};
  return base::Fail(
      Bad(path, fmt::format("line {}: here something follows the list: give each in a file of its own, "
                            "or get all by one `kubectl get nt,fabrics,gangs -A -o json`",
                            LineOf(text, next))));
}

// The items one by one, without a tree of all of them.
Status ReadJson(const std::string& path, const std::string& file, const Keep& keep) {
  // simdjson reads past the end, though it does not look at what is there.
  std::string copy;
  if (file.capacity() - file.size() < simdjson::SIMDJSON_PADDING) {
    copy.reserve(file.size() + simdjson::SIMDJSON_PADDING);
    copy = file;
  }
  const std::string& padded = copy.empty() ? file : copy;
  const std::size_t first = padded.find('{');  // a byte order mark may stand before it
  const std::string_view text = std::string_view(padded).substr(first);
  ondemand::parser parser;
  dom::parser item_parser;
  ondemand::document document;
  ondemand::array items;
  if (parser.iterate(text.data(), text.size(), padded.capacity() - first).get(document) !=
          simdjson::SUCCESS ||
      document["items"].get_array().get(items) != simdjson::SUCCESS) {
    return ReadOne(path, text, keep);
  }
  std::size_t number = 0;
  std::size_t at = 0;
  const auto fail = [&](const char* what) {
    return base::Fail(Bad(path, fmt::format("item {} {}, in the object that begins after line {}", number,
                                            what, LineOf(text, at))));
  };
  for (auto item : items) {
    ondemand::object object;
    std::string_view raw;
    auto error = item.get_object().get(object);
    if (error == simdjson::INCORRECT_TYPE)
      return base::Fail(Bad(path, fmt::format("item {} is no object", number)));
    if (error == simdjson::SUCCESS) error = object.raw_json().get(raw);
    if (error != simdjson::SUCCESS) return fail("is no JSON, or ends too early");
    ASSIGN_OR_RETURN(const Json one, ParseItem(item_parser, raw, text), path);
    TRY(KeepItem(path, number, one, keep));
    at = std::size_t(raw.data() - text.data()) + raw.size();
    ++number;
  }
  return NothingFollows(path, text, at);
}

Status ReadYaml(const std::string& path, const std::string& text, const Keep& keep) {
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
      TRY(KeepItem(path, number++, *document, keep));
      continue;
    }
    if (!items->is_array()) return base::Fail(Bad(path, "items is no list"));
    for (const Json& item : *items) {
      TRY(KeepItem(path, number++, item, keep));
    }
  }
  return {};
}

Status ReadObjects(const std::string& path, const std::string& text, const Keep& keep) {
  return LooksLikeJson(text) ? ReadJson(path, text, keep) : ReadYaml(path, text, keep);
}

}  // namespace

Status ReadClusterFile(const std::string& path, const std::string& text, ClusterFiles& into) {
  return ReadObjects(path, text, [&into](const Json& object) { return KeepObject(object, into); });
}

base::Result<ClusterFiles> ReadClusterFiles(const std::vector<std::string>& paths, const ReadFile& read,
                                            const SeeObject& see) {
  ClusterFiles files;
  const Keep keep = [&](const Json& object) -> Status {
    TRY(KeepObject(object, files));
    if (see) see(object);
    return {};
  };
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, read(path), "--topology");
    TRY(IsText(path, text, "the NodeTopologies of `kubectl get nt,fabrics,gangs -A -o json`"), "--topology");
    TRY(ReadObjects(path, text, keep), "--topology");
  }
  if (!files.topologies.empty()) return files;
  std::vector<std::string> others;
  for (const auto& [kind, count] : files.passed_over) others.push_back(fmt::format("{} {}", count, kind));
  return base::Fail(
      Code::kInvalid,
      fmt::format("--topology: no NodeTopology with a status is in there{}; make the file with "
                  "`kubectl get nt,fabrics,gangs -A -o json`, `kubectl heddle fabric import` or "
                  "`kubectl heddle fabric design --topology`",
                  others.empty() ? "" : fmt::format(", only {}", fmt::join(others, ", "))));
}

base::Result<FabricReading> ReadFabricFiles(const std::vector<std::string>& paths, const ReadFile& read) {
  ASSIGN_OR_RETURN(ClusterFiles files, ReadClusterFiles(paths, read));
  FabricReading reading = AssembleReading(std::move(files.topologies), std::move(files.declared));
  reading.in_files = true;
  return reading;
}

}  // namespace heddle::cli
