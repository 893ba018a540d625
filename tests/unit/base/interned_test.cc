#include "base/interned.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heddle::base {
namespace {

Interned<std::string>::Value Made(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

TEST(Interned, GivesEqualValuesAsTheOneThatIsThere) {
  Interned<std::string> interned;
  const auto first = interned.Of(Made("a"));
  EXPECT_EQ(interned.Of(Made("a")), first);
  EXPECT_NE(interned.Of(Made("b")), first);
}

TEST(Interned, LetsGoOfWhatNobodyHoldsAndKeepsTheRest) {
  Interned<std::string> interned;
  const auto held = interned.Of(Made("held"));
  for (int i = 0; i < 10'000; ++i) interned.Of(Made(std::to_string(i)));
  EXPECT_LE(interned.size(), 100U);
  EXPECT_EQ(interned.Of(Made("held")), held);
}

TEST(Interned, KeepsAllThatAreHeldHoweverMany) {
  Interned<std::string> interned;
  std::vector<Interned<std::string>::Value> held;
  held.reserve(1000);
  for (int i = 0; i < 1000; ++i) held.push_back(interned.Of(Made(std::to_string(i))));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(interned.Of(Made(std::to_string(i))), held[std::size_t(i)]);
  EXPECT_EQ(interned.size(), 1000U);
}

}  // namespace
}  // namespace heddle::base
