#include "crds/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/seeds.h"

namespace heddle::crds {
namespace {

TEST(Yaml, QuotesWhatOtherReadersWouldTakeForSomethingElse) {
  const std::string yaml =
      ToYaml({{"a", "yes"}, {"b", "1"}, {"c", "mlx5_0"}, {"d", "x: y"}, {"e", 7}, {"f", "0000:1b:00.0"}});
  EXPECT_EQ(yaml, "a: \"yes\"\nb: \"1\"\nc: mlx5_0\nd: \"x: y\"\ne: 7\nf: \"0000:1b:00.0\"\n");
}

TEST(Yaml, WritesWhatIsEmptyBehindItsKey) {
  EXPECT_EQ(ToYaml({{"a", Json::object()}, {"b", Json::array()}, {"c", 1}}), "a: {}\nb: []\nc: 1\n");
}

TEST(Yaml, ComesBackAsItWas) {
  const Json json = Json::parse(R"({"text":"1","word":"true","yes":true,"none":null,"n":-7,"x":0.5,"e":"",
      "list":[1,"a",{"b":[]}],"map":{}})");
  const auto read = FromYaml(ToYaml(json));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, json);
}

TEST(Yaml, SaysTheLineThatIsWrong) {
  const auto read = FromYaml("a: 1\nb: [1, 2\nc: 3\n");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, testing::StartsWith("line "));
}

TEST(Yaml, IsNotBlownUpByAliases) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    text += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) text += (i == 0 ? "*" : ", *") + std::string(1, char(c - 1));
    text += "]\n";
  }
  const auto read = FromYaml(text);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::Code::kTooLarge);
}

TEST(Yaml, SurvivesDamage) {
  const std::string good =
      "apiVersion: v1\nitems:\n- kind: Gang\n  spec: {pods: 3, words: [a, 'b', \"c\"]}\n";
  for (const std::uint64_t seed : test::Seeds(2000)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    (void)FromYaml(test::Damage(good, random));
  }
}

}  // namespace
}  // namespace heddle::crds
