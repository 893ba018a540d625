#include "cli/observed.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;

constexpr auto kDp = std::size_t(placement::Axis::kDp);

class ObservedTest : public Stage {
 protected:
  crds::Gang Add(const std::string& name, std::chrono::hours ago, std::int64_t heddle_micros) {
    crds::Gang gang;
    gang.ns = "train";
    gang.name = name;
    gang.spec.owner = {"batch/v1", "Job", name, name + "-uid"};
    gang.spec.pods = 4;
    gang.spec.gpus_per_pod = 8;
    gang.spec.parallelism = placement::Parallelism{.tp = 8, .dp = 4};
    placement::Quality quality;
    quality.step_micros = 20'000;
    quality.edges[kDp] = 32;
    quality.leaf_crossings[kDp] = 24;
    gang.status.predicted = quality;
    gang.status.observed =
        crds::Observed{.at = std::chrono::floor<std::chrono::seconds>(clock.WallNow() - ago)};
    if (heddle_micros > 0) {
      quality.step_micros = heddle_micros;
      quality.leaf_crossings[kDp] = 0;
      gang.status.observed->heddle = quality;
    } else {
      gang.status.observed->refusal = "16 hosts needed in one scalable unit, best has 12 (su-3)";
    }
    server.Put(ResourceOf(keys::kGang, true), crds::ToJson(gang));
    return gang;
  }
  Output Run(ObservedOptions options = {}, Format format = Format::kText) {
    return RunObserved(client, options, clock.WallNow(), {.format = format}, {});
  }
};

TEST_F(ObservedTest, ShowsJobByJobAndAllInOneLine) {
  Add("llama", std::chrono::hours(1), 10'000);
  crds::Gang assumed = Add("mixtral", std::chrono::hours(2), 21'000);
  assumed.status.observed->assumed_parallelism = true;
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(assumed));
  Add("wide", std::chrono::hours(3), 0);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  ExpectGolden("observe.txt", output.out);
  ExpectFits([this](const Style& style) {
    return RunObserved(client, {}, clock.WallNow(), {.style = style}, {}).out;
  });
}

TEST_F(ObservedTest, FitsATerminalOf80Columns) {
  Add("llama", std::chrono::hours(1), 10'000);
  Add("wide", std::chrono::hours(3), 0);
  const std::string text = RunObserved(client, {}, clock.WallNow(), {.style = {.width = 80}}, {}).out;
  EXPECT_EQ(WiderThan(80, text), std::vector<std::string>{});
  EXPECT_THAT(text, HasSubstr("\n    parallelism tp=8,pp=1,dp=4\n"));
}

TEST_F(ObservedTest, IsAlsoForScripts) {
  Add("llama", std::chrono::hours(1), 10'000);
  Add("wide", std::chrono::hours(3), 0);
  const Json json = Json::parse(Run({}, Format::kJson).out);
  EXPECT_EQ(json["compared"], 1);
  EXPECT_EQ(json["waiting"], 1);
  EXPECT_EQ(json["cluster"]["dpLeafCrossings"], 24);
  EXPECT_EQ(json["heddle"]["stepMicros"], 10'000);
  EXPECT_EQ(json["jobs"][0]["name"], "llama");
  EXPECT_EQ(json["jobs"][0]["heddle"]["leafCrossings"]["dp"], 0);
  EXPECT_THAT(json["jobs"][1]["refusal"].get<std::string>(), HasSubstr("16 hosts"));
  EXPECT_THAT(json["line"].get<std::string>(), HasSubstr("50 % shorter"));
}

TEST_F(ObservedTest, NamesThoseThatCannotBePriced) {
  crds::Gang wrong = Add("wrong", std::chrono::hours(24 * 30), 0);
  wrong.status.predicted.reset();
  wrong.status.observed = crds::Observed{.at = wrong.status.observed->at};
  wrong.status.reason = "WorldMismatch";
  wrong.status.message = "4 pods of 8 GPUs have 32, and heddle.dev/parallelism makes 24";
  server.Put(ResourceOf(keys::kGang, true), crds::ToJson(wrong));
  const std::string sentence = "train/wrong is not priced (WorldMismatch): " + wrong.status.message + "\n";
  const Output alone = Run();
  EXPECT_EQ(alone.exit_code, Output::kFailed);
  EXPECT_THAT(alone.err, HasSubstr("mode=observe"));
  EXPECT_THAT(alone.err, HasSubstr(sentence)) << "however long it has run";
  Add("llama", std::chrono::hours(1), 10'000);
  const Output output = Run();
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, HasSubstr("\n\n" + sentence + "\nlast 1 job: "));
  const Json json = Json::parse(Run({}, Format::kJson).out);
  EXPECT_EQ(json["compared"], 1);
  EXPECT_EQ(json["waiting"], 0);
  ASSERT_EQ(json["notPriced"].size(), 1U);
  EXPECT_EQ(json["notPriced"][0]["name"], "wrong");
  EXPECT_EQ(json["notPriced"][0]["reason"], "WorldMismatch");
  EXPECT_EQ(json["notPriced"][0]["message"], wrong.status.message);
}

TEST_F(ObservedTest, TakesTheLastOfTheDaysThatWereAskedFor) {
  Add("today", std::chrono::hours(1), 10'000);
  Add("yesterday", std::chrono::hours(25), 10'000);
  Add("last-month", std::chrono::hours(24 * 30), 10'000);
  EXPECT_THAT(Run().out, HasSubstr("last 2 jobs"));
  EXPECT_THAT(Run({.last = 1}).out, HasSubstr("train/today"));
  EXPECT_THAT(Run({.last = 1}).out, HasSubstr("last 1 job:"));
  EXPECT_THAT(Run({.days = 60}).out, HasSubstr("last 3 jobs"));
  for (const int days : {120'000'000, std::numeric_limits<int>::max()})
    EXPECT_THAT(Run({.days = days}).out, HasSubstr("last 3 jobs")) << days;
}

TEST_F(ObservedTest, SaysTheSameOfGangsInAFile) {
  Json items = NodeTopologiesOf("su:1 node:2 gpu:8 nic:8 rail:8");
  items.push_back(crds::ToJson(Add("llama", std::chrono::hours(1), 10'000)));
  items.push_back(crds::ToJson(Add("wide", std::chrono::hours(24 * 30), 0)));
  Files files;
  files.texts["now.json"] = ListOf(std::move(items));
  const auto show = [&](ObservedOptions options) {
    options.topology = {"now.json"};
    return ShowObserved(options, clock.WallNow(), files.read, {});
  };
  for (const ObservedOptions& options : {ObservedOptions{}, ObservedOptions{.days = 60}}) {
    const Output file = show(options);
    EXPECT_EQ(file.exit_code, Output::kOk) << file.err;
    EXPECT_EQ(file.out, Run(options).out);
  }
  EXPECT_EQ(show({.ns = "elsewhere"}).exit_code, Output::kFailed);
  EXPECT_THAT(show({.ns = "elsewhere"}).err, HasSubstr("The files hold no gang"));
  EXPECT_EQ(show({.last = 0}).exit_code, Output::kUsage);
}

TEST_F(ObservedTest, SaysWhyThereIsNothing) {
  const Output nothing = Run();
  EXPECT_EQ(nothing.exit_code, Output::kFailed);
  EXPECT_THAT(nothing.err, HasSubstr("mode=observe"));
  const Output json = Run({}, Format::kJson);
  EXPECT_EQ(json.exit_code, Output::kFailed) << "in every format";
  EXPECT_EQ(json.err, nothing.err);
  EXPECT_EQ(Json::parse(json.out)["jobs"], Json::array());
  const Output wrong = Run({.last = 0});
  EXPECT_EQ(wrong.exit_code, Output::kUsage);
  EXPECT_THAT(wrong.err, HasSubstr("count from 1"));
}

}  // namespace
}  // namespace heddle::cli
