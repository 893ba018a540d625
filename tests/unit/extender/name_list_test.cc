#include "extender/name_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::extender {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string BodyOf(std::string_view list) {
  return std::string(R"({"Pod":{},"NodeNames":[)").append(list).append("]}");
}

TEST(NameList, IsTakenFromTheEndOfARequestNameByName) {
  const std::string body = BodyOf(R"("n1","gpu-7.cluster.example","","n2")") + "\n";
  const auto apart = TakeNamesApart(body);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->request, R"({"Pod":{},"NodeNames":[]})");
  EXPECT_THAT(NamesOf(*apart), ElementsAre("n1", "gpu-7.cluster.example", "", "n2"));
  const std::string none = BodyOf("");
  ASSERT_TRUE(TakeNamesApart(none));
  EXPECT_THAT(NamesOf(*TakeNamesApart(none)), IsEmpty());
}

TEST(NameList, IsLeftInARequestWhereItIsNotPlainOrNotTheLast) {
  for (const char* tail : {R"(["n1",])",
                           R"(["n1" ,"n2"])",
                           R"(["n1",2])",
                           R"(["n1)",
                           R"(["n1")",
                           R"(["n1",)",
                           R"([,"n1"])",
                           "[",
                           "",
                           R"(["N1"])",
                           R"(["n\u0031"])",
                           R"(["n1""n2"])",
                           R"(["n1"]])",
                           R"(["n1"],"NodeNames":["n2"])",
                           R"([",","n1"])",
                           R"(["])",
                           R"(["""])",
                           R"(["n1"n2"])",
                           R"(["n1,n2"])",
                           R"([n1])",
                           R"([,])",
                           "[\"n\xc3\xa9\"]",
                           R"(["n1",,"n2"])",
                           R"(["n_1"])"}) {
    const std::string body = std::string(R"({"Pod":{},"NodeNames":)") + tail + "}";
    EXPECT_FALSE(TakeNamesApart(body)) << body;
  }
  EXPECT_FALSE(TakeNamesApart(R"({"Pod":{},"NodeNames":["n1"]} x)"));
  EXPECT_FALSE(TakeNamesApart(R"({"Pod":{},"x\"NodeNames":["n1"]})"));
  EXPECT_FALSE(TakeNamesApart(R"({"NodeNames":["n1"],"Pod":{}})"));
  EXPECT_FALSE(TakeNamesApart(R"({"Pod":{},"NodeNames":null,"NodeNames":["n1"]})"));
  for (const char* body : {"", "{", R"({"NodeNames":[)", R"({"NodeNames":[])", R"("NodeNames":[})"})
    EXPECT_FALSE(TakeNamesApart(body)) << body;
}

// Lists of all lengths around those that are looked at at once, with a byte in the wrong place or none.
TEST(NameList, SaysWhatAParserOfJsonSays) {
  constexpr std::string_view kBytes = R"("",,[]{}\ az09-.AZ_:)";
  int taken = 0, left = 0;
  for (const std::uint64_t seed : test::Seeds(20'000)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const auto below = [&random](std::size_t end) { return std::size_t(random.Below(end)); };
    std::string list;
    for (std::size_t names = below(6); names > 0; --names) {
      std::string name(below(40), 'x');
      for (char& c : name) c = "abcdefghij.-0123456789"[below(22)];
      list += (list.empty() ? "\"" : ",\"") + name + "\"";
    }
    for (std::size_t wrong = below(3); wrong > 0 && !list.empty(); --wrong)
      list[below(list.size())] = kBytes[below(kBytes.size())];
    const std::string body = BodyOf(list);
    const auto apart = TakeNamesApart(body);
    const Json parsed = Json::parse(body, nullptr, false);
    bool plain = !parsed.is_discarded() && parsed.size() == 2 && parsed["NodeNames"].is_array() &&
                 parsed["NodeNames"].dump().size() == list.size() + 2;
    for (std::size_t i = 0; plain && i < parsed["NodeNames"].size(); ++i) {
      const Json& name = parsed["NodeNames"][i];
      plain = name.is_string() && IsPlainName(name.get<std::string>());
    }
    ASSERT_EQ(apart.has_value(), plain) << body;
    ++(plain ? taken : left);
    if (!apart) continue;
    const std::vector<std::string_view> names = NamesOf(*apart);
    EXPECT_EQ(std::vector<std::string>(names.begin(), names.end()),
              parsed["NodeNames"].get<std::vector<std::string>>());
  }
  if (test::Seeds(20'000).size() == 1) return;
  EXPECT_GT(taken, 1000);
  EXPECT_GT(left, 1000);
}

TEST(NameList, FindsAByteThatNoNameHasWhereverItStands) {
  for (std::size_t size = 0; size < 70; ++size) {
    std::string name(size, 'n');
    EXPECT_TRUE(IsPlainName(name)) << size;
    for (char& c : name) {
      for (const char wrong :
           {'A', '_', '"', '\\', ' ', '\0', '\x7f', '\xe9', '/', ':', '`', '{', '@', '['}) {
        c = wrong;
        EXPECT_FALSE(IsPlainName(name)) << size << " " << int(wrong);
      }
      c = 'n';
    }
  }
  EXPECT_TRUE(IsPlainName("az09-."));
}

}  // namespace
}  // namespace heddle::extender
