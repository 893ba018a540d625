#include "kube/json_reader.h"

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <utility>

namespace heddle::kube {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

Json TreeOf(element from, bool metadata);

Json ObjectOf(const simdjson::dom::object& from, bool metadata) {
  Json tree = Json::object();
  auto& members = tree.get_ref<Json::object_t&>();
  for (const auto [key, value] : from) {
    if (metadata && key == "managedFields") continue;
    // At the end, as servers sort them; the last of two wins.
    members.insert_or_assign(members.end(), std::string(key), TreeOf(value, key == "metadata"));
  }
  return tree;
}

Json ArrayOf(const simdjson::dom::array& from) {
  Json tree = Json::array();
  auto& items = tree.get_ref<Json::array_t&>();
  items.reserve(from.size());
  for (const element item : from) items.push_back(TreeOf(item, false));
  return tree;
}

// `metadata`: whether it is what a key of that name holds. As deep as the parser lets a document be (1,024).
Json TreeOf(element from, bool metadata) {
  switch (from.type()) {
    case element_type::OBJECT:
      return ObjectOf(from.get_object().value_unsafe(), metadata);
    case element_type::ARRAY:
      return ArrayOf(from.get_array().value_unsafe());
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

Json JsonReader::Read(std::string_view text) {
  element root;
  if (parser_->parser.parse(text.data(), text.size()).get(root) == simdjson::SUCCESS)
    return TreeOf(root, false);
  // Rare: numbers beyond 64 bits, which Json::parse takes for doubles; depth beyond simdjson's; or no JSON at all.
  Json tree = DropManagedFields(Json::parse(text, nullptr, false));
  if (tree.is_object() && tree.contains("object"))
    tree["object"] = DropManagedFields(std::move(tree["object"]));
  return tree;
}

}  // namespace heddle::kube
