#include "nodeagent/flags.h"

#include <gtest/gtest.h>

#include "base/version.h"

namespace heddle::nodeagent {
namespace {

TEST(AgentFlags, SayWhichVersionThisIs) {
  CLI::App app;
  Flags flags;
  Define(app, flags);
  const char* words[] = {"heddle-nodeagent", "--version"};
  try {
    app.parse(2, words);
    FAIL() << "it goes on";
  } catch (const CLI::CallForVersion& said) {
    EXPECT_EQ(said.what(), "heddle-nodeagent " + std::string(base::kVersion));
    EXPECT_EQ(said.get_exit_code(), 0);
  }
}

}  // namespace
}  // namespace heddle::nodeagent
