#include "gnmi/value.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <simdjson.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_bounds.h"
#include "base/kept_parser.h"
#include "gnmi/gnmi.pb.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr std::uint32_t kMaxPrecision = 18;  // of 19 digits, as RFC 6020's decimal64

// As kube's JsonReader, but for what only objects of that API have.
Json Grow(element from);

Json ObjectOf(const simdjson::dom::object& from) {
  Json tree = Json::object();
  auto& members = tree.get_ref<Json::object_t&>();
  for (const auto [key, value] : from) members.insert_or_assign(members.end(), std::string(key), Grow(value));
  return tree;
}

Json ArrayOf(const simdjson::dom::array& from) {
  Json tree = Json::array();
  for (const element item : from) tree.push_back(Grow(item));
  return tree;
}

Json Grow(element from) {
  switch (from.type()) {
    case element_type::OBJECT:
      return ObjectOf(from.get_object().value_unsafe());
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

base::Error TooMuch() {
  return {Code::kTooLarge, "values that nest too deep or are too many", std::nullopt};
}

// What it takes of the budget is taken.
base::Status Spend(const std::string& json, ValueBudget& budget) {
  // Too many where strings have such characters, and ten times as fast: nearly all texts have a few values.
  std::size_t values = 1;
  for (const char c : json) values += std::size_t(c == ',') + std::size_t(c == '[') + std::size_t(c == '{');
  if (values > budget.values)
    values = base::CountValues(json, budget.values, std::numeric_limits<int>::max()).value_or(values);
  if (values > budget.values) return base::Fail(TooMuch());
  budget.values -= values;
  return {};
}

base::Result<Json> Number(double number) {
  if (!std::isfinite(number)) return base::Fail(Code::kInvalid, "no number");
  return Json(number);
}

base::Result<Json> Decimal(const ::gnmi::Decimal64& decimal) {
  if (decimal.precision() > kMaxPrecision)
    return base::Fail(Code::kInvalid, fmt::format("a decimal with {} digits behind its point; {} at most",
                                                  decimal.precision(), kMaxPrecision));
  return Json(double(decimal.digits()) / std::pow(10.0, double(decimal.precision())));
}

Json Base64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // and a NUL, which OpenSSL adds
  text.resize(
      std::size_t(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                  reinterpret_cast<const unsigned char*>(bytes.data()), int(bytes.size()))));
  return text;
}

// Null where it is a value of another kind.
const std::string* JsonIn(const ::gnmi::TypedValue& value) {
  using Kind = ::gnmi::TypedValue;
  if (value.value_case() == Kind::kJsonVal) return &value.json_val();
  return value.value_case() == Kind::kJsonIetfVal ? &value.json_ietf_val() : nullptr;
}

base::Result<Json> Read(const ::gnmi::TypedValue& value, int depth, ValueBudget& budget);

base::Result<Json> List(const ::gnmi::ScalarArray& list, int depth, ValueBudget& budget) {
  Json array = Json::array();
  for (const ::gnmi::TypedValue& element : list.element()) {
    ASSIGN_OR_RETURN(Json item, Read(element, depth, budget));
    array.push_back(std::move(item));
  }
  return array;
}

base::Result<Json> Read(const ::gnmi::TypedValue& value, int depth, ValueBudget& budget) {
  using Kind = ::gnmi::TypedValue;
  if (depth >= kMaxDepth || budget.values == 0) return base::Fail(TooMuch());
  if (const std::string* json = JsonIn(value)) {
    TRY(Spend(*json, budget));
    return TreeOf(*json);
  }
  --budget.values;
  switch (value.value_case()) {
    case Kind::kStringVal:
      return Json(value.string_val());
    case Kind::kAsciiVal:
      return Json(value.ascii_val());
    case Kind::kIntVal:
      return value.int_val() < 0 ? Json(value.int_val()) : Json(std::uint64_t(value.int_val()));
    case Kind::kUintVal:
      return Json(value.uint_val());
    case Kind::kBoolVal:
      return Json(value.bool_val());
    case Kind::kBytesVal:
      return Base64(value.bytes_val());
    case Kind::kFloatVal:
      return Number(double(value.float_val()));
    case Kind::kDoubleVal:
      return Number(value.double_val());
    case Kind::kDecimalVal:
      return Decimal(value.decimal_val());
    case Kind::kLeaflistVal:
      return List(value.leaflist_val(), depth + 1, budget);
    case Kind::kAnyVal:
    case Kind::kProtoBytes:
      return base::Fail(Code::kUnimplemented, "protobuf, which only its model explains: ask for JSON");
    case Kind::kJsonVal:
    case Kind::kJsonIetfVal:
    case Kind::VALUE_NOT_SET:
      break;
  }
  return base::Fail(Code::kInvalid, "no value");
}

}  // namespace

base::Result<std::string> JsonOf(const ::gnmi::TypedValue& value, ValueBudget& budget) {
  if (const std::string* json = JsonIn(value)) {
    TRY(Spend(*json, budget));
    return *json;
  }
  ASSIGN_OR_RETURN(const Json tree, Read(value, 0, budget));
  return tree.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<Json> TreeOf(const std::string& json) {
  if (!base::IsBounded(json, json.size(), kMaxDepth)) return base::Fail(TooMuch());
  base::KeptParser parser;
  element root;
  if (parser.Parse(json).get(root) == simdjson::SUCCESS) return Grow(root);
  // Rare: numbers beyond 64 bits, which Json::parse takes for doubles; or no JSON at all.
  Json tree = Json::parse(json, nullptr, false);
  if (tree.is_discarded()) return base::Fail(Code::kInvalid, json.empty() ? "an empty text" : "no JSON");
  return tree;
}

}  // namespace heddle::gnmi
