#include "gnmi/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gnmi/gnmi.pb.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using Value = ::gnmi::TypedValue;

base::Result<Json> Of(const std::function<void(Value&)>& set, std::size_t values = 1000) {
  Value value;
  set(value);
  ValueBudget budget{values};
  ASSIGN_OR_RETURN(const std::string json, JsonOf(value, budget));
  return TreeOf(json);
}

base::Result<Json> OfJson(std::string text, std::size_t values = 1000) {
  return Of([&](Value& value) { value.set_json_ietf_val(std::move(text)); }, values);
}

TEST(Value, IsTakenFromEveryKindThatSwitchesSend) {
  const std::vector<std::pair<std::function<void(Value&)>, Json>> cases = {
      {[](Value& v) { v.set_string_val("up"); }, "up"},
      {[](Value& v) { v.set_ascii_val("show x"); }, "show x"},
      {[](Value& v) { v.set_int_val(-5); }, -5},
      {[](Value& v) { v.set_uint_val(18446744073709551615u); }, 18446744073709551615u},
      {[](Value& v) { v.set_bool_val(false); }, false},
      {[](Value& v) { v.set_bytes_val(std::string("\0\xff\x10\x20", 4)); }, "AP8QIA=="},
      {[](Value& v) { v.set_bytes_val(""); }, ""},
      {[](Value& v) { v.set_float_val(0.5F); }, 0.5},
      {[](Value& v) { v.set_double_val(-1e300); }, -1e300},
      {[](Value& v) {
         v.mutable_decimal_val()->set_digits(-314);
         v.mutable_decimal_val()->set_precision(2);
       },
       -3.14},
      {[](Value& v) { v.set_json_val(R"({"a":[1,2.5,null,"x",true]})"); },
       Json::parse(R"({"a":[1,2.5,null,"x",true]})")},
      {[](Value& v) { v.set_json_ietf_val(R"("9100")"); }, "9100"},
      {[](Value& v) {
         v.mutable_leaflist_val()->add_element()->set_uint_val(3);
         v.mutable_leaflist_val()->add_element()->set_string_val("four");
       },
       Json::array({3, "four"})},
  };
  for (const auto& [set, expected] : cases) {
    const auto value = Of(set);
    ASSERT_TRUE(value) << expected << ": " << value.error().message;
    EXPECT_EQ(*value, expected);
  }
}

TEST(Value, HasNumbersAsJsonHasThem) {
  EXPECT_TRUE(OfJson("7")->is_number_unsigned());
  EXPECT_TRUE(Of([](Value& v) { v.set_int_val(7); })->is_number_unsigned());
  EXPECT_TRUE(OfJson("-7")->is_number_integer());
  // Beyond 64 bits, as Json::parse reads them.
  EXPECT_EQ(*OfJson("[123456789012345678901234567890]"), Json::array({123456789012345678901234567890.0}));
}

TEST(Value, TakesTheLastOfTwoKeys) {
  EXPECT_EQ(*OfJson(R"({"a":1,"a":2})"), Json({{"a", 2}}));
}

TEST(Value, IsRefusedWhereItIsNone) {
  for (const char* text :
       {"", " ", "{", "nul", "{\"a\":NaN}", "[1,]", "\"\xff\"", "{} {}", "'a'", "\"\\ud800\""})
    EXPECT_EQ(OfJson(text).error().code, Code::kInvalid) << text;
  EXPECT_EQ(Of([](Value&) {}).error().message, "no value");
  EXPECT_EQ(Of([](Value& v) { v.set_double_val(std::numeric_limits<double>::quiet_NaN()); }).error().code,
            Code::kInvalid);
  EXPECT_EQ(Of([](Value& v) { v.set_float_val(std::numeric_limits<float>::infinity()); }).error().code,
            Code::kInvalid);
  EXPECT_EQ(Of([](Value& v) { v.mutable_decimal_val()->set_precision(4'000'000'000); }).error().code,
            Code::kInvalid);
  EXPECT_EQ(Of([](Value& v) { v.set_any_val("x"); }).error().code, Code::kUnimplemented);
  EXPECT_EQ(Of([](Value& v) { v.set_proto_bytes("x"); }).error().code, Code::kUnimplemented);
  EXPECT_EQ(Of([](Value& v) { v.mutable_leaflist_val()->add_element(); }).error().code, Code::kInvalid);
}

TEST(Value, IsBoundedInDepth) {
  const auto nested = [](int depth) {
    return std::string(std::size_t(depth), '[') + std::string(std::size_t(depth), ']');
  };
  EXPECT_TRUE(OfJson(nested(kMaxDepth)));
  EXPECT_EQ(OfJson(nested(kMaxDepth + 1)).error().code, Code::kTooLarge);
  EXPECT_EQ(OfJson(std::string(1 << 20, '['), 1u << 30).error().code, Code::kTooLarge);
  Value list;
  Value* at = &list;
  for (int i = 0; i < kMaxDepth; ++i) at = at->mutable_leaflist_val()->add_element();
  at->set_bool_val(true);
  ValueBudget budget{1000};
  EXPECT_EQ(JsonOf(list, budget).error().code, Code::kTooLarge);
}

TEST(Value, IsBoundedInNumberOverAWholeMessage) {
  Value value;
  value.set_json_val(R"({"a":[1,2],"b":3})");  // five values
  ValueBudget budget{12};
  EXPECT_TRUE(JsonOf(value, budget));
  EXPECT_EQ(budget.values, 7u);
  EXPECT_TRUE(JsonOf(value, budget));
  EXPECT_EQ(JsonOf(value, budget).error().code, Code::kTooLarge);
  std::string many = "[1";
  for (int i = 0; i < 5000; ++i) many += ",1";
  EXPECT_EQ(OfJson(many + "]", 5000).error().code, Code::kTooLarge);
  EXPECT_EQ(OfJson(many + "]", 5002)->size(), 5001u);
}

TEST(Value, MayBeLargerThanWhatAThreadKeepsBuffersFor) {
  const auto value = OfJson("\"" + std::string(3u << 20, 'x') + "\"");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->get_ref<const std::string&>().size(), 3u << 20);
}

}  // namespace
}  // namespace heddle::gnmi
