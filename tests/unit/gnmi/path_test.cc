#include "gnmi/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using testing::HasSubstr;

Path Made(std::string target, std::string origin, std::vector<Elem> elems) {
  return {std::move(target), std::move(origin), std::move(elems)};
}

TEST(Path, IsReadAndWrittenAsPeopleWriteIt) {
  const std::vector<std::pair<std::string, Path>> cases = {
      {"/", Made("", "", {})},
      {"CONFIG_DB:/PORT/Ethernet0/mtu",
       Made("CONFIG_DB", "", {{"PORT", {}}, {"Ethernet0", {}}, {"mtu", {}}})},
      {"COUNTERS_DB:/", Made("COUNTERS_DB", "", {})},
      {"openconfig:/interfaces/interface[name=Ethernet0]/state",
       Made("", "openconfig", {{"interfaces", {}}, {"interface", {{"name", "Ethernet0"}}}, {"state", {}}})},
      {"leaf-3:openconfig:/a", Made("leaf-3", "openconfig", {{"a", {}}})},
      {"leaf-3::/a", Made("leaf-3", "", {{"a", {}}})},
      {":CLI:/a", Made("", "CLI", {{"a", {}}})},
      {"/openconfig-interfaces:interfaces", Made("", "", {{"openconfig-interfaces:interfaces", {}}})},
      {R"(/a[k=x\]y][l=/z]/b\/c\[d\\)",
       Made("", "", {{"a", {{"k", "x]y"}, {"l", "/z"}}}, {R"(b/c[d\)", {}}})},
      {R"(a\:b\/c:/x)", Made("", "a:b/c", {{"x", {}}})},
      {"/a[k=]", Made("", "", {{"a", {{"k", ""}}}})},
      {"/*/...", Made("", "", {{"*", {}}, {"...", {}}})},
  };
  for (const auto& [text, path] : cases) {
    const auto read = ParsePath(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(*read, path) << text;
    EXPECT_EQ(FormatPath(path), text);
  }
}

TEST(Path, TakesWhatItWouldWriteMoreBriefly) {
  EXPECT_EQ(FormatPath(*ParsePath("CONFIG_DB::/PORT")), "CONFIG_DB:/PORT");
  EXPECT_EQ(FormatPath(*ParsePath(R"(/a\b)")), "/ab");
  EXPECT_EQ(FormatPath(*ParsePath("/a[z=1][b=2]")), "/a[b=2][z=1]");
}

TEST(Path, IsRefusedWithThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "begins with"},        {"PORT/Ethernet0", "byte 5: a path begins with"},
      {":/a", "nothing stands"},  {"::/a", "nothing stands"},
      {"a:b:c:/d", "at most"},    {"//a", "byte 2: an element has no name"},
      {"/a//b", "has no name"},   {"/a/", "does not end with /"},
      {"/a[k]", "[name=value]"},  {"/a[=v]", "a key has no name"},
      {"/a[k=v", "] is missing"}, {"/a[k=v]x", "behind ]"},
      {"/a[k=1][k=2]", "twice"},  {"/a\\", "a backslash with nothing"},
      {"/a\xff", "UTF-8"},        {"\\", "a backslash with nothing"},
  };
  for (const auto& [text, why] : cases) {
    const auto read = ParsePath(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalid) << text;
    EXPECT_THAT(read.error().message, HasSubstr(why)) << text;
  }
}

TEST(Path, IsBounded) {
  EXPECT_TRUE(ParsePath("/" + std::string(kMaxPathBytes, 'a')));
  const auto longer = ParsePath("/" + std::string(kMaxPathBytes + 1, 'a'));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kTooLarge);
  EXPECT_FALSE(ParsePath(std::string(1 << 20, '/')));
  std::string deep, wide = "/a";
  for (std::size_t i = 0; i < kMaxElems; ++i) deep += "/a";
  for (std::size_t i = 0; i < kMaxKeys; ++i) wide += "[k" + std::to_string(i) + "=1]";
  EXPECT_TRUE(ParsePath(deep));
  EXPECT_FALSE(ParsePath(deep + "/a"));
  EXPECT_TRUE(ParsePath(wide));
  EXPECT_FALSE(ParsePath(wide + "[l=1]"));
}

std::string Word(base::Random& random, std::size_t least) {
  static constexpr std::string_view kLetters = "aZ0:/[]=\\ *._\n";
  std::string word;
  for (std::uint64_t i = least + random.Below(4); i > 0; --i) {
    word += random.Below(20) == 0 ? std::string("\xc3\xa9")
                                  : std::string(1, kLetters[random.Below(kLetters.size())]);
  }
  return word;
}

TEST(Path, ComesBackFromItsText) {
  for (const std::uint64_t seed : test::Seeds(2000)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Path path{Word(random, 0), Word(random, 0), {}};
    for (std::uint64_t i = random.Below(4); i > 0; --i) {
      Elem& elem = path.elems.emplace_back();
      elem.name = Word(random, 1);
      for (std::uint64_t k = random.Below(3); k > 0; --k) elem.keys[Word(random, 1)] = Word(random, 0);
    }
    ASSERT_TRUE(CheckPath(path));
    const std::string text = FormatPath(path);
    const auto read = ParsePath(text);
    ASSERT_TRUE(read) << text << ": " << read.error().message;
    EXPECT_EQ(*read, path) << text;
    // Whatever becomes of the text, it is a path with a text of its own or a sentence.
    const std::string damaged = test::Damage(text, random);
    const auto other = ParsePath(damaged);
    if (!other) {
      EXPECT_FALSE(other.error().message.empty());
      continue;
    }
    const auto again = ParsePath(FormatPath(*other));
    ASSERT_TRUE(again) << damaged;
    EXPECT_EQ(*again, *other);
  }
}

TEST(Path, OfTheLargestKindHasAText) {
  Path path;
  for (std::size_t i = 0; i < kMaxElems; ++i) {
    Elem& elem = path.elems.emplace_back();
    elem.name = "/";
    for (std::size_t k = 0; k < kMaxKeys; ++k) elem.keys[std::string(1, char('A' + k))] = "]";
  }
  path.origin = std::string(kMaxPathBytes - kMaxElems * (1 + 2 * kMaxKeys), ':');
  ASSERT_TRUE(CheckPath(path));
  const auto read = ParsePath(FormatPath(path));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, path);
}

}  // namespace
}  // namespace heddle::gnmi
