#include "base/shell_word.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

TEST(ShellQuoted, IsOneWordWhateverIsInIt) {
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("a b|$c"), "'a b|$c'");
  EXPECT_EQ(ShellQuoted("it's"), R"('it'\''s')");
}

}  // namespace
}  // namespace heddle::base
