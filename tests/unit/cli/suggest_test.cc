#include "cli/suggest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "cli/plan.h"
#include "crds/yaml.h"
#include "tests/unit/cli/cluster_text.h"

namespace heddle::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kModel = "params=30e9,layers=48,hidden=8192,seq=4096,microbatch=1";

PlanOptions Asked() {
  PlanOptions options{.ground = {.synthetic = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400 machine:h100"},
                      .model = kModel};
  options.suggest = true;
  options.gpus = 64;
  options.global_batch = 256;
  return options;
}

Json Answer(const PlanOptions& options, const Files& files = {}) {
  return Json::parse(Plan(options, files.read, {.format = Format::kJson}).out);
}

TEST(Suggest, ListsTheFiveFastestInOrder) {
  const Json json = Answer(Asked());
  EXPECT_EQ(json["feasible"], true);
  EXPECT_EQ(json["refusal"], nullptr);
  EXPECT_EQ(json["given"], nullptr);
  EXPECT_EQ(json["tflopsPerGpu"], 605);
  EXPECT_EQ(json["gpuMemoryGib"], 80);
  ASSERT_EQ(json["suggestions"].size(), std::size_t(kMostSuggestions));
  double before = 0;
  int rank = 0;
  for (const Json& one : json["suggestions"]) {
    EXPECT_EQ(one["rank"], ++rank);
    const Json& p = one["parallelism"];
    EXPECT_EQ(p["tp"].get<int>() * p["cp"].get<int>() * p["pp"].get<int>() * p["dp"].get<int>(), 64);
    EXPECT_EQ(one["microbatches"].get<int>() * p["dp"].get<int>(), 256);
    const double step = one["milliseconds"];
    EXPECT_GE(step, before);
    before = step;
    EXPECT_NEAR(step,
                one["computeMilliseconds"].get<double>() + one["fixedMilliseconds"].get<double>() +
                    one["bubbleMilliseconds"].get<double>() + one["communicationMilliseconds"].get<double>(),
                1e-6 * step);
    double axes = 0;
    for (const Json& axis : one["axes"]) axes += axis["milliseconds"].get<double>();
    EXPECT_NEAR(axes, one["communicationMilliseconds"].get<double>(), 1e-6 * step);
    EXPECT_NEAR(one["tokensPerSecond"].get<double>(), 256 * 4096 / (step / 1000), 1);
    EXPECT_LT(one["memoryGib"].get<double>(), 72);
  }
  const Json& layouts = json["layouts"];
  std::int64_t sum = layouts["legal"];
  for (const auto& [why, count] : layouts["leftOut"].items()) sum += count.get<std::int64_t>();
  EXPECT_EQ(sum, layouts["all"]);
  EXPECT_EQ(layouts["all"], 84) << "6 twos over 4 axes: 9 choose 3";
  const Output yaml = Plan(Asked(), Files().read, {.format = Format::kYaml});
  EXPECT_EQ(*crds::FromYaml(yaml.out), json);
}

TEST(Suggest, PutsTheGivenLayoutBesideTheFastest) {
  PlanOptions options = Asked();
  options.gpus.reset();
  options.global_batch.reset();
  options.parallelism = "tp=8,pp=2,dp=4";
  options.model += ",microbatches=64";
  const Json json = Answer(options);
  EXPECT_EQ(json["globalBatch"], 256) << "64 microbatches x 1 x dp=4";
  EXPECT_EQ(json["given"]["parallelism"], Json::parse(R"({"tp":8,"cp":1,"pp":2,"dp":4})"));
  EXPECT_GE(json["given"]["milliseconds"], json["suggestions"][0]["milliseconds"]);
  const std::string text = Plan(options, Files().read, {}).out;
  EXPECT_THAT(text, HasSubstr("\ngiven "));
  // The difference in words is that of the numbers.
  const double longer =
      (json["given"]["milliseconds"].get<double>() / json["suggestions"][0]["milliseconds"].get<double>() -
       1) *
      100;
  EXPECT_THAT(text, HasSubstr(fmt::format("that was given takes {:.1f} % longer than the first: ", longer)));
  EXPECT_THAT(text, HasSubstr("84 ways to write 64 as tp*cp*pp*dp"));
  EXPECT_THAT(text, HasSubstr("90 % of 80 GiB"));
}

TEST(Suggest, KeepsTheExpertLayoutThatIsGivenWithoutSizes) {
  PlanOptions options = Asked();
  options.parallelism = " ep = 8, etp=1";
  const Json json = Answer(options);
  EXPECT_EQ(json["given"], nullptr) << "it is no layout yet";
  EXPECT_EQ(json["layouts"]["all"], 84);
  EXPECT_THAT(json["suggestions"][0]["axes"].dump(), HasSubstr("\"ep\""));
}

TEST(Suggest, HoldsAMixtureOfExpertsInLayoutsThatHoldNoDenseModelOfItsSize) {
  PlanOptions options = Asked();
  options.parallelism = "ep=16";
  options.model = "params=100e9,layers=48,hidden=4096,seq=4096,microbatch=1";
  const auto legal = [&] { return Answer(options)["layouts"]["legal"].get<int>(); };
  const int dense = legal();
  options.model += ",active=10e9,experts=128,topk=4";
  EXPECT_GT(legal(), dense);
}

TEST(Suggest, KnowsWhatIsTaken) {
  PlanOptions options = Asked();
  options.ground.taken = "node-00=1";
  const Output refused = Plan(options, Files().read, {.format = Format::kJson});
  EXPECT_EQ(refused.exit_code, Output::kRefused);
  const Json json = Json::parse(refused.out);
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["suggestions"], Json::array());
  EXPECT_EQ(json["refusal"]["reason"], "NotEnoughFree");
  EXPECT_THAT(Plan(options, Files().read, {}).out, HasSubstr("Refused NotEnoughFree"));
}

TEST(Suggest, RefusesAWorldThatNoLayoutFits) {
  PlanOptions options = Asked();
  options.global_batch = 1;
  options.model = "params=30e9,layers=47,hidden=8192,seq=4095,microbatch=1";
  const Output output = Plan(options, Files().read, {.format = Format::kJson});
  EXPECT_EQ(output.exit_code, Output::kRefused);
  EXPECT_EQ(Json::parse(output.out)["refusal"]["reason"], "BadRequest");
  EXPECT_THAT(Plan(options, Files().read, {}).out, HasSubstr("none of the 84 ways"));
  EXPECT_THAT(Plan(options, Files().read, {}).out, HasSubstr("change the global batch of 1, or"));
  options = Asked();
  options.model = "params=9e12,layers=48,hidden=8192,seq=4096,microbatch=1";
  EXPECT_THAT(Plan(options, Files().read, {}).out, HasSubstr("take more GPUs"));
}

TEST(Suggest, SaysWhenNobodyMeasuredTheGpus) {
  Files files;
  Json items = NodeTopologiesOf("su:1 node:8 gpu:8 nic:8 rail:8 spine:0");
  for (Json& item : items) {
    for (Json& gpu : item["status"]["gpus"]) {
      gpu["model"] = "Abacus 3";
      gpu.erase("memoryGib");
    }
  }
  files.texts["nt.json"] = ListOf(items);
  PlanOptions options = Asked();
  options.ground = {.topology = {"nt.json"}};
  const std::string text = Plan(options, files.read, {}).out;
  EXPECT_THAT(text, HasSubstr("Nobody measured Abacus 3"));
  EXPECT_THAT(text, HasSubstr("No GPU says how much memory it has"));
}

TEST(Suggest, BreaksItsSentencesAtTheEndOfTheTerminalOnly) {
  const auto paragraph = [](std::size_t width) {
    const std::string text = Plan(Asked(), Files().read, {.style = {.width = width}}).out;
    const std::size_t begin = text.find("A step is COMPUTE"), end = text.find("\nMemory is an estimate");
    EXPECT_TRUE(begin != std::string::npos && end != std::string::npos) << text;
    std::vector<std::string> lines;
    std::istringstream stream(begin < end ? text.substr(begin, end - begin) : "");
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  EXPECT_EQ(paragraph(0).size(), 1u);
  const std::vector<std::string> lines = paragraph(80);
  ASSERT_GT(lines.size(), 3u);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_LE(lines[i].size(), 80u) << lines[i];
    const std::size_t next = lines[i + 1].substr(0, lines[i + 1].find(' ')).size();
    EXPECT_GT(lines[i].size() + 1 + next, 80u) << "there was room behind: " << lines[i];
  }
}

TEST(Suggest, SaysWhatIsMissing) {
  const auto error_of = [](auto change) {
    PlanOptions options = Asked();
    change(options);
    const Output output = Plan(options, Files().read, {});
    EXPECT_EQ(output.exit_code, Output::kUsage) << output.out;
    return output.err;
  };
  EXPECT_THAT(error_of([](PlanOptions& o) { o.gpus.reset(); }), HasSubstr("--gpus"));
  const auto order_alone = [](PlanOptions& o) { o.gpus.reset(), o.parallelism = "order=tp-cp-dp-pp"; };
  EXPECT_THAT(error_of(order_alone), HasSubstr("say how many GPUs")) << "and is not asked about one GPU";
  EXPECT_THAT(error_of([](PlanOptions& o) { o.gpus = 0; }), HasSubstr("--gpus 0"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.gpus = std::int64_t(1) << 40; }), HasSubstr("--gpus"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.parallelism = "tp=8,dp=4"; }), HasSubstr("not the 32 ranks"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.model = ""; }), HasSubstr("params, layers, hidden, seq"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.model = "params=1e9,hidden=128"; }),
              HasSubstr("needs layers, seq"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.global_batch.reset(); }), HasSubstr("--global-batch"));
  const auto experts_alone = [](PlanOptions& o) { o.global_batch.reset(), o.parallelism = "ep=64"; };
  EXPECT_THAT(error_of(experts_alone), HasSubstr("--global-batch: say how many")) << "its dp is nobody's";
  EXPECT_THAT(error_of([](PlanOptions& o) { o.global_batch = -1; }), HasSubstr("--global-batch -1"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.global_batch = std::int64_t(1) << 60; }),
              HasSubstr("--global-batch"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.gpus = 63; }), HasSubstr("--gpus-per-pod"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.what_if = true; }), HasSubstr("one at a time"));
  EXPECT_THAT(error_of([](PlanOptions& o) { o.suggest = false; }), HasSubstr("--suggest only"));
}

}  // namespace
}  // namespace heddle::cli
