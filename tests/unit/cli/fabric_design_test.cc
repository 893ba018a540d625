#include "cli/fabric_design.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "cli/flags.h"
#include "cli/plan.h"
#include "crds/yaml.h"
#include "tests/support/seeds.h"
#include "tests/unit/cli/cluster_text.h"
#include "tests/unit/cli/golden.h"

namespace heddle::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Files that are read and files that are written.
struct Desk {
  Files files;
  WriteFile write = [this](const std::string& path, const std::string& text) -> base::Status {
    files.texts[path] = text;
    return {};
  };

  Output Design(const std::vector<const char*>& words, Format format = Format::kText,
                const Style& style = {}) {
    std::vector<const char*> argv{"kubectl-heddle", "fabric", "design"};
    argv.insert(argv.end(), words.begin(), words.end());
    CommandLine line = ReadCommandLine(int(argv.size()), argv.data());
    if (line.instead) return *line.instead;
    EXPECT_EQ(line.flags.command, Command::kDesign);
    line.flags.design.now = base::WallTime(std::chrono::seconds(1'800'000'000));
    return FabricDesign(line.flags.design, files.read, write, {.format = format, .style = style});
  }
};

Json DesignOf(const std::vector<const char*>& words) {
  const Output output = Desk().Design(words, Format::kJson);
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  return Json::parse(output.out, nullptr, false);
}

TEST(FabricDesign, ShowsBothTransportsSideBySide) {
  const Output output = Desk().Design({"--gpus", "1024"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("INFINIBAND"), HasSubstr("ROCE"),
                                HasSubstr("credits, subnet manager"), HasSubstr("PFC and ECN on every hop")));
  ExpectGolden("design.txt", output.out);
  ExpectFits([](const Style& style) { return Desk().Design({"--gpus", "1024"}, Format::kText, style).out; });
}

TEST(FabricDesign, ShowsOneTransportAlone) {
  const Output output = Desk().Design(
      {"--gpus", "4096", "--machine", "b200", "--transport", "ib", "--oversubscription", "2:1"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("ROCE")));
  ExpectGolden("design-ib.txt", output.out);
  ExpectFits([](const Style& style) {
    return Desk()
        .Design({"--gpus", "4096", "--machine", "b200", "--transport", "ib", "--oversubscription", "2:1"},
                Format::kText, style)
        .out;
  });
}

TEST(FabricDesign, SaysThatItsTimesDoNotTellTransportsApartWhereTwoStandSideBySide) {
  const auto told = [](const std::vector<const char*>& words) {
    return Desk().Design(words).out.find("the model does not tell InfiniBand from RoCE") != std::string::npos;
  };
  EXPECT_TRUE(told({"--gpus", "1024"}));
  EXPECT_FALSE(told({"--gpus", "1024", "--transport", "ib"})) << "nothing stands beside it";
  EXPECT_FALSE(told({"--gpus", "1024", "--machine", "mi300x"})) << "it has no times";
}

TEST(FabricDesign, FitsATerminalOfEightyColumns) {
  for (const char* gpus : {"8", "256", "1024", "16384"}) {
    const Output output = Desk().Design({"--gpus", gpus});
    std::istringstream lines(output.out.substr(0, output.out.find("\nHall:")));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 80u) << line;
  }
}

TEST(FabricDesign, SaysTheSameForScripts) {
  const Json json = DesignOf({"--gpus", "1016"});
  EXPECT_EQ(json["nodes"], 127);
  ASSERT_EQ(json["designs"].size(), 2u);
  const Json& ib = json["designs"][0];
  EXPECT_EQ(ib["transport"], "ib");
  EXPECT_EQ(ib["switches"][0]["count"], 32);
  EXPECT_EQ(ib["switches"][1]["count"], 16);
  EXPECT_EQ(ib["bisectionGbps"], 1016 * 400 / 2);
  EXPECT_LT(ib["price"]["low"].get<double>(), ib["price"]["high"].get<double>());
  EXPECT_GT(ib["allReduce"]["busGbs"].get<double>(), 0);
  EXPECT_GT(ib["step"]["milliseconds"].get<double>(), 0);
  EXPECT_EQ(ib["unknown"], Json::object());
  EXPECT_EQ(json["prices"]["date"], "2026-11");
  EXPECT_FALSE(json["machine"]["sources"].empty());
  const Output yaml = Desk().Design({"--gpus", "64"}, Format::kYaml);
  EXPECT_TRUE(crds::FromYaml(yaml.out));
}

TEST(FabricDesign, WritesAClusterThatPlanTakes) {
  Desk desk;
  const Output written = desk.Design(
      {"--gpus", "512", "--transport", "roce", "--topology", "fabric.json", "--model", "llama3-8b"});
  ASSERT_EQ(written.exit_code, Output::kOk) << written.err;
  EXPECT_THAT(written.err, HasSubstr("plan --topology fabric.json"));
  PlanOptions options{.ground = {.topology = {"fabric.json"}}, .parallelism = "tp=8,pp=2,dp=32"};
  const Output planned = Plan(options, desk.files.read, {.format = Format::kJson});
  ASSERT_EQ(planned.exit_code, Output::kOk) << planned.err;
  const Json plan = Json::parse(planned.out);
  EXPECT_EQ(plan["feasible"], true);
  EXPECT_EQ(plan["ranks"].size(), 512u);
  // The line that is printed is the same cluster.
  const std::size_t from = written.out.find("  \"") + 3;
  options.ground = {.synthetic = written.out.substr(from, written.out.find('"', from) - from)};
  const Output again = Plan(options, desk.files.read, {.format = Format::kJson});
  EXPECT_EQ(Json::parse(again.out)["milliseconds"], plan["milliseconds"]);
  EXPECT_EQ(Json::parse(again.out)["ranks"], plan["ranks"]);
}

TEST(FabricDesign, WritesThreeTiersThatPlanTakes) {
  Desk desk;
  const Output output =
      desk.Design({"--gpus", "2048", "--radix", "32", "--transport", "ib", "--topology", "-"});
  ASSERT_EQ(output.exit_code, Output::kOk) << output.err;
  desk.files.texts["f"] = output.out;
  const PlanOptions options{.ground = {.topology = {"f"}}, .parallelism = "tp=8,dp=256"};
  EXPECT_EQ(Plan(options, desk.files.read, {}).exit_code, Output::kOk);
}

// The step is what `plan --suggest` says of the line.
TEST(FabricDesign, PredictsTheStepThatPlanSuggests) {
  const Json json = DesignOf({"--gpus", "256", "--transport", "ib", "--model",
                              "params=30e9,layers=48,hidden=8192,seq=4096", "--global-batch", "512"});
  PlanOptions options{.ground = {.synthetic = json["designs"][0]["synthetic"]},
                      .model = "params=30e9,layers=48,hidden=8192,seq=4096,microbatch=1"};
  options.suggest = true;
  options.gpus = 256;
  options.global_batch = 512;
  const Json suggested = Json::parse(Plan(options, Files().read, {.format = Format::kJson}).out);
  EXPECT_NEAR(json["designs"][0]["step"]["milliseconds"].get<double>(),
              suggested["suggestions"][0]["milliseconds"].get<double>(), 1e-6);
}

TEST(FabricDesign, TakesPricesFromAFile) {
  Desk desk;
  desk.files.texts["prices.yaml"] =
      "date: 2026-12\nitems:\n  switch.qm9700: {low: 1, high: 2}\n  fibre.multimode: 3\n";
  const Output output =
      desk.Design({"--gpus", "1024", "--transport", "ib", "--prices", "prices.yaml"}, Format::kJson);
  ASSERT_EQ(output.exit_code, Output::kOk) << output.err;
  const Json json = Json::parse(output.out);
  EXPECT_EQ(json["prices"]["date"], "2026-12");
  EXPECT_EQ(json["prices"]["file"], "prices.yaml");
  for (const Json& line : json["designs"][0]["bill"]) {
    if (line["key"] == "switch.qm9700") {
      EXPECT_EQ(line["each"], (Json{{"low", 1.0}, {"high", 2.0}}));
    } else if (line["key"] == "fibre.multimode") {
      EXPECT_EQ(line["each"]["high"], 3.0);
    }
  }
}

TEST(FabricDesign, RefusesPricesThatAreNone) {
  const auto refused = [](const std::string& text, const std::string& part) {
    Desk desk;
    desk.files.texts["p"] = text;
    const Output output = desk.Design({"--gpus", "64", "--prices", "p"});
    EXPECT_EQ(output.exit_code, Output::kUsage) << text;
    EXPECT_THAT(output.err, HasSubstr(part)) << text;
  };
  refused("", "--prices: p is empty; it should hold items: {");
  refused("\x01\x02", "--prices: p is neither YAML nor JSON but binary; it should hold items: {");
  refused("# none\n", "no prices");
  refused("[1]", "no prices");
  refused("items: []", "write prices by key");
  refused("items: {switch.qm9700: {low: 3, high: 2}}", "low is more than high");
  refused("items: {switch.qm9700: {low: 3}}", "write a price from 0");
  refused("items: {switch.qm9700: -1}", "write a price from 0");
  refused("items: {switch.qm9700: .nan}", "write a price from 0");
  refused("items: {swtch.qm9700: 1}", "nothing here is called that");
  refused("items: {switch.qm9700: 1", "line");
  Desk desk;
  EXPECT_THAT(desk.Design({"--gpus", "64", "--prices", "nowhere"}).err, HasSubstr("nowhere"));
}

TEST(FabricDesign, ReadsAnyFileOfPricesWithoutHarm) {
  const std::string good = "currency: EUR\ndate: 2026-12\nitems:\n  switch.qm9700: {low: 1, high: 2}\n";
  for (const std::uint64_t seed : test::Seeds(300)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const auto book = ReadPrices(test::Damage(good, random));
    if (!book) continue;
    for (const auto& [key, band] : book->items) EXPECT_LE(band.low, band.high) << key;
  }
}

TEST(FabricDesign, RefusesInSentencesWithTheNextStep) {
  const auto refused = [](const std::vector<const char*>& words, int exit_code, const std::string& part) {
    const Output output = Desk().Design(words);
    EXPECT_EQ(output.exit_code, exit_code) << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_THAT(output.err, HasSubstr(part));
  };
  const int usage = Output::kUsage, no = Output::kRefused;
  refused({}, usage, "--gpus: say how many");
  refused({"--gpus", "0"}, usage, "--gpus 0: write how many");
  refused({"--gpus", "-8"}, usage, "--gpus -8");
  refused({"--gpus", "many"}, usage, "whole number");
  refused({"--gpus", "1000000000"}, no, "more than 1,048,576");
  refused({"--gpus", "100"}, no, "Error: 100 GPUs are no whole number of nodes of 8: ask for 96 or 104\n");
  refused({"--gpus", "600000"}, no, "InfiniBand: 600,000 GPUs are more than 3 tiers");
  refused({"--gpus", "2048", "--radix", "32", "--tiers", "2"}, no, "need 3 tiers of switches of 32 ports");
  refused({"--gpus", "64", "--radix", "2"}, usage, "make no tree");
  refused({"--gpus", "64", "--radix", "33"}, usage, "write an even number");
  refused({"--gpus", "64", "--machine", "v100"}, usage, "write one of a100");
  refused({"--gpus", "64", "--oversubscription", "0:1"}, usage, "--oversubscription \"0:1\"");
  refused({"--gpus", "64", "--oversubscription", "1:3"}, usage, "uplinks that nothing below can fill");
  refused({"--gpus", "64", "--rails", "3"}, usage, "write one of 1, 2, 4, 8");
  refused({"--gpus", "64", "--wiring", "ring"}, usage, "rail-optimised, fat-tree or rail-only");
  refused({"--gpus", "64", "--transport", "efa"}, usage, "Amazon's own network");
  refused({"--gpus", "64", "--storage-gbs-per-gpu", "lots"}, usage, "as 0.5");
  refused({"--gpus", "64", "--model", "gpt9"}, usage, "write one of llama3-8b, llama3-70b, llama3-405b");
  refused({"--gpus", "64", "--model", "params=70e9"}, usage, "needs params, layers, hidden and seq");
  refused({"--gpus", "64", "--parallelism", "tp=8,dp=4"}, usage, "make them equal");
  refused({"--gpus", "64", "--global-batch", "0"}, usage, "--global-batch 0");
  refused({"--gpus", "64", "--topology", "f"}, usage, "add --transport ib or --transport roce");
}

TEST(FabricDesign, ShowsTheOneThatFitsAndWhyTheOtherDoesNot) {
  const Output output = Desk().Design({"--gpus", "4096", "--tiers", "2"});
  EXPECT_EQ(output.exit_code, Output::kOk) << output.err;
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("ROCE"), HasSubstr("InfiniBand, not sized: 4,096 GPUs need 3 tiers")));
  const Json json = DesignOf({"--gpus", "4096", "--tiers", "2"});
  EXPECT_EQ(json["designs"].size(), 1u);
  EXPECT_EQ(json["refused"][0]["reason"], "TooLarge");
}

TEST(FabricDesign, SaysWhatItDoesNotKnow) {
  const Output amd = Desk().Design({"--gpus", "64", "--machine", "mi300x", "--transport", "roce"});
  EXPECT_THAT(amd.out, HasSubstr("does not know the collectives of MI300X"));
  const Output unpriced = Desk().Design({"--gpus", "1024", "--radix", "48", "--transport", "ib"});
  EXPECT_THAT(unpriced.out, AllOf(HasSubstr("and more"), HasSubstr("give it by --prices")));
}

TEST(FabricDesign, SaysWhenAFileCannotBeWritten) {
  Desk desk;
  desk.write = [](const std::string& path, const std::string&) -> base::Status {
    return base::Fail(base::Code::kInternal, path + " cannot be written: No space left on device");
  };
  const Output output = desk.Design({"--gpus", "64", "--transport", "ib", "--topology", "full"});
  EXPECT_EQ(output.exit_code, Output::kFailed);
  EXPECT_THAT(output.err, HasSubstr("full cannot be written"));
}

}  // namespace
}  // namespace heddle::cli
