#include "kube/json_reader.h"

#include <simdjson.h>

#include <cstdint>
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

std::string_view TextAt(element object, std::string_view field) {
  std::string_view text;
  return object[field].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

Json ArrayOf(const simdjson::dom::array& from, const Pruning* pruning) {
  Json tree = Json::array();
  auto& items = tree.get_ref<Json::array_t&>();
  const bool some = pruning != nullptr && !pruning->only_key().empty();
  if (!some) items.reserve(from.size());
  for (const element item : from) {
    if (some && TextAt(item, pruning->only_key()) != pruning->only_value()) continue;
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
};

JsonReader::JsonReader() : parser_(std::make_unique<Parser>()) {}
JsonReader::~JsonReader() = default;
JsonReader::JsonReader(JsonReader&&) noexcept = default;
JsonReader& JsonReader::operator=(JsonReader&&) noexcept = default;

namespace {

// Rare: numbers beyond 64 bits, which Json::parse takes for doubles; depth beyond simdjson's; or no JSON at all.
// Nothing is pruned then.
Json ReadSlowly(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

}  // namespace

Json JsonReader::Read(std::string_view text, const Pruning* pruning) {
  element root;
  if (parser_->parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return ReadSlowly(text);
  return TreeOf(root, pruning);
}

Json JsonReader::ReadEvent(std::string_view text, const Pruning& pruning) {
  element root;
  if (parser_->parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return ReadSlowly(text);
  // A bookmark says by an annotation what it ends, and an error is an object of another kind.
  const std::string_view type = TextAt(root, "type");
  const bool whole = type == "BOOKMARK" || type == "ERROR";
  return TreeOf(root, whole ? nullptr : &pruning);
}

}  // namespace heddle::kube
