#include "formats/sonic_steps.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qos_text.h"

namespace heddle::formats {
namespace {

using Json = nlohmann::json;
using test::LosslessFixture;
using testing::ElementsAre;
using testing::IsEmpty;

// As `config load` does: fields that are named are set, and all else stays.
Json Loaded(Json config, const Json& load) {
  for (const auto& [table, entries] : load.items()) {
    for (const auto& [key, fields] : entries.items()) config[table][key].update(fields);
  }
  return config;
}

SonicPatch Rendered(const Json& live) {
  const lossless::SwitchRendering rendering =
      lossless::RenderSwitchPort(*lossless::Resolve({}), *lossless::FindSwitchProfile("spectrum4/v1"),
                                 {lossless::PortFacing::kHost, 400'000, 40});
  auto patch = PatchSonic(live.dump(), "roce", {{"Ethernet0", rendering}, {"Ethernet4", rendering}});
  EXPECT_TRUE(patch) << patch.error().message;
  return patch ? *std::move(patch) : SonicPatch{};
}

TEST(SonicSteps, MakeOfASwitchWhatTheWholePatchDoesAndAskApplyPatchForNothingThatItRefuses) {
  Json live = Json::parse(LosslessFixture("sonic-default.json"));
  for (const bool watched : {true, false}) {
    if (!watched) live.erase("PFC_WD");
    const SonicPatch patch = Rendered(live);
    const SonicSteps steps = StepsOf(patch);
    const Json load = Json::parse(steps.load), rest = Json::parse(steps.patch);
    EXPECT_TRUE(load.contains("WRED_PROFILE"));
    ASSERT_EQ(load.contains("PFC_WD"), !watched);
    if (!watched) {
      EXPECT_EQ(load["PFC_WD"].size(), 1u) << "its ports are what apply-patch takes: " << load["PFC_WD"];
      EXPECT_TRUE(load["PFC_WD"].contains("GLOBAL"));
    }
    for (const Json& operation : rest) {
      const std::string path = operation["path"];
      EXPECT_FALSE(path.starts_with("/WRED_PROFILE") || path.starts_with("/BUFFER_PROFILE") ||
                   path.starts_with("/PFC_WD/GLOBAL") || path == "/PFC_WD")
          << path;
    }
    EXPECT_EQ(Loaded(live, load).patch(rest), Json::parse(*Patched(live.dump(), patch)));
    EXPECT_THAT(CommandsOf(steps, "a.load.json", "a.patch.json"),
                ElementsAre("sudo config load -y a.load.json", "sudo config apply-patch a.patch.json",
                            "sudo config save -y"));
  }
}

TEST(SonicSteps, TakeAwayByTheDatabaseWhatNeitherCommandDoes) {
  SonicPatch patch;
  EXPECT_THAT(CommandsOf(StepsOf(patch), "l", "p"), IsEmpty()) << "there is nothing to do";
  patch.lines = {{"remove", "/WRED_PROFILE/HEDDLE_ROCE/it's~1a~0", "", "", "", "", ""},
                 {"replace", "/WRED_PROFILE/HEDDLE_ROCE/ecn", "\"ecn_all\"", "", "", "", ""},
                 {"remove", "/PFC_WD", "", "", "", "", ""}};
  const SonicSteps steps = StepsOf(patch);
  EXPECT_EQ(Json::parse(steps.load), Json::parse(R"({"WRED_PROFILE": {"HEDDLE_ROCE": {"ecn": "ecn_all"}}})"));
  EXPECT_THAT(CommandsOf(steps, "l", "p"),
              ElementsAre("sudo config load -y l",
                          R"(sudo sonic-db-cli CONFIG_DB HDEL 'WRED_PROFILE|HEDDLE_ROCE' 'it'\''s/a~')",
                          "sudo config apply-patch p", "sudo config save -y"));
}

}  // namespace
}  // namespace heddle::formats
