#include "kube/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::kube {
namespace {

TEST(JsonReaderTest, ReadsWhatTheLibraryReads) {
  JsonReader reader;
  for (const char* text :
       {"{}", "[]", "null", "true",

        "0", "12", "-12", "9223372036854775807", "9223372036854775808", "18446744073709551615",
        "18446744073709551616", "-9223372036854775808", "1.5e300", "-0.0", "\"\\u0000x\\ud83d\\ude00\"",
        R"({"b":[1,{"a":null}],"a":{"b":"x","":false}})", R"({"a":1,"b":2,"a":3})", " \t{\"a\" : [ ] }\n",
        "\xEF\xBB\xBF{}"}) {
    const Json want = Json::parse(text), read = reader.Read(text);
    EXPECT_EQ(read, want) << text;
    EXPECT_EQ(read.type(), want.type()) << text;
    EXPECT_EQ(read.dump(), want.dump()) << text;
  }
}

TEST(JsonReaderTest, RefusesWhatTheLibraryRefuses) {
  JsonReader reader;
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{}{}"), std::string("[1,]"), std::string("01"),
        std::string("nul"), std::string("\"\xff\""), std::string("{\"a\":1e999}"), std::string("\0", 1),
        std::string("'a'"), std::string("1e999")}) {
    EXPECT_EQ(reader.Read(text).is_discarded(), Json::parse(text, nullptr, false).is_discarded()) << text;
  }
  EXPECT_EQ(reader.Read("[7]"), Json::parse("[7]"));  // and goes on
}

TEST(JsonReaderTest, TakesDepthWithoutTheStack) {
  JsonReader reader;
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(reader.Read(deep).is_discarded());
  EXPECT_TRUE(reader.Read(std::string(100'000, '[')).is_discarded());
}

void CompareDamaged(std::uint64_t seed, int rounds) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::Random random(seed);
  const std::string whole =
      R"({"type":"ADDED","object":{"metadata":{"name":"n","uid":"u"},"status":{"x":[1,-2,3.5,null,"é\n"]}}})";
  JsonReader reader;
  for (int round = 0; round < rounds; ++round) {
    std::string text = whole;
    for (std::uint64_t cut = random.Below(4); cut-- > 0;)
      text[random.Below(text.size())] = char(random.Below(256));
    if (random.Below(4) == 0) text.resize(random.Below(text.size()));
    const Json want = Json::parse(text, nullptr, false);
    const Json read = reader.Read(text);
    ASSERT_EQ(read.is_discarded(), want.is_discarded()) << text;
    if (want.is_discarded()) continue;
    ASSERT_EQ(read, want) << text;
  }
}

TEST(JsonReaderTest, NeverDiffersOnDamagedText) {
  for (const std::uint64_t seed : test::Seeds(4)) CompareDamaged(seed, 5'000);
}

}  // namespace
}  // namespace heddle::kube
