#include "kube/json_reader.h"

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace heddle::kube {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

Json TreeOf(element from, const Pruning* pruning);

Json ObjectOf(const simdjson::dom::object& from, const Pruning* pruning) {
  Json tree = Json::object();
  auto& members = tree.get_ref<Json::object_t&>();
  for (const auto [key, value] : from) {
    const Pruning* below = pruning == nullptr ? nullptr : pruning->Of(key);
    if (below != nullptr && below->drops()) continue;
    // At the end, as servers sort them; the last of two wins.
    members.insert_or_assign(members.end(), std::string(key), TreeOf(value, below));
  }
  return tree;
}

std::string_view TextOf(element object, std::string_view field) {
  std::string_view text;
  return object[field].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

Json ArrayOf(const simdjson::dom::array& from, const Pruning* pruning) {
  Json tree = Json::array();
  auto& items = tree.get_ref<Json::array_t&>();
  const bool some = pruning != nullptr && !pruning->only_key().empty();
  if (!some) items.reserve(from.size());
  for (const element item : from) {
    if (some && TextOf(item, pruning->only_key()) != pruning->only_value()) continue;
    items.push_back(TreeOf(item, pruning));
  }
  return tree;
}

// As deep as the parser lets a document be (1,024).
Json TreeOf(element from, const Pruning* pruning) {
  switch (from.type()) {
    case element_type::OBJECT:
      return ObjectOf(from.get_object().value_unsafe(), pruning);
    case element_type::ARRAY:
      return ArrayOf(from.get_array().value_unsafe(), pruning);
    case element_type::STRING:
      return std::string(from.get_string().value_unsafe());
    case element_type::INT64: {
      // Json::parse takes what has no sign for unsigned, and code that asks for its type expects so.
      const std::int64_t number = from.get_int64().value_unsafe();
      return number < 0 ? Json(number) : Json(std::uint64_t(number));
    }
    case element_type::UINT64:
      return from.get_uint64().value_unsafe();
    case element_type::DOUBLE:
      return from.get_double().value_unsafe();
    case element_type::BOOL:
      return from.get_bool().value_unsafe();
    case element_type::NULL_VALUE:
      break;
  }
  return nullptr;
}

}  // namespace

struct JsonReader::Parser {
  simdjson::dom::parser parser;
  element root;
  // In place of `root`, where simdjson does not take it.
  std::optional<Json> slow = Json();
};

JsonReader::JsonReader() : parser_(std::make_unique<Parser>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

bool JsonReader::Open(std::string_view text) {
  parser_->slow.reset();
  if (parser_->parser.parse(text.data(), text.size()).get(parser_->root) == simdjson::SUCCESS) return true;
  // Rare: numbers beyond 64 bits, which Json::parse takes for doubles; depth beyond simdjson's; or no JSON at all.
  // Nothing is pruned then.
  parser_->slow = Json::parse(text, nullptr, false);
  return !parser_->slow->is_discarded();
}

std::string_view JsonReader::TextAt(std::initializer_list<std::string_view> fields) const {
  if (parser_->slow) {
    const Json* at = &*parser_->slow;
    for (const std::string_view field : fields) {
      const auto below = at->is_object() ? at->find(field) : at->end();
      if (below == at->end()) return {};
      at = &*below;
    }
    return at->is_string() ? std::string_view(at->get_ref<const std::string&>()) : std::string_view();
  }
  element at = parser_->root;
  for (const std::string_view field : fields) {
    if (at[field].get(at) != simdjson::SUCCESS) return {};
  }
  std::string_view text;
  return at.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

Json JsonReader::Tree(const Pruning* pruning) {
  return parser_->slow ? std::move(*parser_->slow) : TreeOf(parser_->root, pruning);
}

Json JsonReader::Read(std::string_view text, const Pruning* pruning) {
  Open(text);
  return Tree(pruning);
}

Json JsonReader::ReadEvent(std::string_view text, const Pruning& pruning) {
  Open(text);
  // A bookmark says by an annotation what it ends, and an error is an object of another kind.
  const std::string_view type = TextAt({"type"});
  const bool whole = type == "BOOKMARK" || type == "ERROR";
  return Tree(whole ? nullptr : &pruning);
}

}  // namespace heddle::kube
