#include "crds/parallelism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace heddle::crds {
namespace {

using placement::Axis;
using placement::Level;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class T>
std::string Refusal(const base::Result<T>& result) {
  return result ? "accepted" : result.error().message;
}

TEST(ParseParallelism, ReadsEveryWordInAnyOrderWithSpaces) {
  const auto parsed = ParseParallelism(" dp=8 , tp = 8,pp=2,ep=4,etp=2,fsdp=4,order=tp-cp-ep-pp-dp,cp=1");
  ASSERT_TRUE(parsed) << parsed.error().message;
  placement::Parallelism expected;
  expected.tp = 8;
  expected.dp = 8;
  expected.pp = 2;
  expected.ep = 4;
  expected.etp = 2;
  expected.fsdp = 4;
  expected.order = {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp};
  EXPECT_EQ(*parsed, expected);
  EXPECT_EQ(ParseParallelism("tp=8,pp=2,dp=8")->world(), 128);
}

TEST(ParseParallelism, RefusesWithOneSentenceThatSaysWhatToWrite) {
  const struct {
    std::string_view text;
    std::string_view sentence;
  } cases[] = {
      {"", "is empty: write it as in \"tp=8,pp=2,dp=8\""},
      {"  ", "is empty: write it as in \"tp=8,pp=2,dp=8\""},
      {"tp=8,,dp=8", "has a comma with nothing beside it: write it as in \"tp=8,pp=2,dp=8\""},
      {"tp=8,", "has a comma with nothing beside it: write it as in \"tp=8,pp=2,dp=8\""},
      {"tp=8 dp=2,pp=2", "has no comma between \"tp=8 dp=2\": write it as in \"tp=8,pp=2,dp=8\""},
      {"tp8", "\"tp8\" is not NAME=VALUE: write it as in \"tp=8,pp=2,dp=8\""},
      {"tp=", "\"tp=\" is not NAME=VALUE: write it as in \"tp=8,pp=2,dp=8\""},
      {"=8", "\"=8\" is not NAME=VALUE: write it as in \"tp=8,pp=2,dp=8\""},
      {"xp=8", "unknown word \"xp\": the words are tp, cp, dp, pp, ep, etp, fsdp and order"},
      {"TP=8", "unknown word \"TP\": the words are tp, cp, dp, pp, ep, etp, fsdp and order"},
      {"tp=8,tp=8", "tp stands twice: keep one of them"},
      {"tp=0", "tp=0 does not fit: write a whole number from 1 to 524288, or leave tp out"},
      {"tp=-8", "tp=-8 does not fit: write a whole number from 1 to 524288, or leave tp out"},
      {"tp=+8", "tp=+8 does not fit: write a whole number from 1 to 524288, or leave tp out"},
      {"tp=8.0", "tp=8.0 does not fit: write a whole number from 1 to 524288, or leave tp out"},
      {"tp=eight", "tp=eight does not fit: write a whole number from 1 to 524288, or leave tp out"},
      {"tp=524289", "tp=524289 does not fit: write a whole number from 1 to 524288, or leave tp out"},
      {"dp=99999999999999999999",
       "dp=99999999999999999999 does not fit: write a whole number from 1 to 524288, or leave dp out"},
      {"tp=1024,dp=1024,pp=1024",
       "tp*cp*dp*pp is more than 524288 GPUs, the most that a gang can have: write smaller sizes"},
      {"tp=8,dp=8,fsdp=6", "fsdp=6 does not divide dp=8: write a shard size that does, as fsdp=2"},
      {"tp=8,dp=8,fsdp=16", "fsdp=16 does not divide dp=8: write a shard size that does, as fsdp=8"},
      {"tp=8,etp=2", "etp=2 means nothing without ep: add ep, or leave etp out"},
      {"tp=8,pp=2,dp=8,ep=3",
       "ep=3 x etp=8 x pp=2 does not divide the 128 ranks: write an ep that divides 8"},
      {"tp=8,pp=2,dp=8,ep=4,etp=3",
       "ep=4 x etp=3 x pp=2 does not divide the 128 ranks: write etp=1 or another divisor of 64 first"},
      {"tp=8,order=tp-dp-pp",
       "order=tp-dp-pp leaves an axis out: write tp, cp, dp and pp once each, as in "
       "tp-cp-ep-dp-pp"},
      {"tp=8,order=tp-cp-tp-dp",
       "order=tp-cp-tp-dp names an axis twice: write tp, cp, dp and pp once each, as in "
       "tp-cp-ep-dp-pp"},
      {"tp=8,order=tp-cp-xp-dp-pp",
       "order=tp-cp-xp-dp-pp has an unknown word: write tp, cp, dp and pp once each, as in "
       "tp-cp-ep-dp-pp"},
      {"tp=8,order=ep-tp-cp-dp-pp",
       "order=ep-tp-cp-dp-pp has ep in another place than right before the first of dp and "
       "pp: write tp, cp, dp and pp once each, as in tp-cp-ep-dp-pp"},
  };
  for (const auto& [text, sentence] : cases) EXPECT_EQ(Refusal(ParseParallelism(text)), sentence) << text;
}

TEST(ParseParallelism, QuotesOnlyTheStartOfNonsense) {
  const std::string refusal = Refusal(ParseParallelism(std::string(100'000, 'x') + "\xff=1"));
  EXPECT_LT(refusal.size(), 200U);
  EXPECT_THAT(Refusal(ParseParallelism("\xff\xfe=1")), HasSubstr("unknown word \"��\""));
  EXPECT_THAT(Refusal(ParseParallelism(std::string_view("tp=8\0", 5))), HasSubstr("does not fit"));
}

TEST(ParseOrder, ReadsWhatFormatOrderWrites) {
  std::array<Axis, 4> order{Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
  int orders = 0;
  do {
    EXPECT_EQ(*ParseOrder(FormatOrder(order)), order);
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 24);
}

TEST(ParseModel, ReadsWhatIsSaidAndRefusesTheRest) {
  const auto model =
      ParseModel("params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1,microbatches=32,tflops=400");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(*model, (placement::ModelHints{70e9, 80, 8192, 8192, 1, 32, 400}));
  EXPECT_EQ(ParseModel("params=6700000000.4")->params, 6700000000);
  EXPECT_EQ(ParseModel("layers=80")->params, 0);
  for (const std::string_view text :
       {"params=70B", "params=0", "params=-1", "params=nan", "params=inf", "params=1e16", "params=1e999"}) {
    EXPECT_THAT(Refusal(ParseModel(text)), HasSubstr("write the number of parameters, from 1 to 1e15, as in "
                                                     "params=70e9"))
        << text;
  }
  EXPECT_EQ(Refusal(ParseModel("layers=0")),
            "layers=0 does not fit: write a whole number from 1 to 1000000, or leave layers out");
  EXPECT_THAT(Refusal(ParseModel("vocabulary=64")),
              HasSubstr("the words are params, layers, hidden, seq, microbatch, microbatches, tflops, "
                        "active, experts, topk, heads and kvheads"));
  EXPECT_THAT(Refusal(ParseModel("seq=1,seq=1")), HasSubstr("stands twice"));
}

TEST(ParseModel, ReadsAMixtureOfExpertsAndItsAttention) {
  const auto model = ParseModel("params=671e9,active=37e9,experts=256,topk=8,heads=128,kvheads=128");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->active, 37e9);
  EXPECT_EQ(std::tuple(model->experts, model->topk, model->heads, model->kvheads),
            std::tuple(256, 8, 128, 128));
  EXPECT_THAT(Refusal(ParseModel("active=37B")), HasSubstr("as in active=70e9"));
  EXPECT_THAT(Refusal(ParseModel("params=37e9,active=671e9")),
              HasSubstr("active=6.71e+11 is more than params=3.7e+10"));
  EXPECT_THAT(Refusal(ParseModel("experts=8,topk=9")), HasSubstr("topk=9 is more than the experts=8"));
  EXPECT_THAT(Refusal(ParseModel("heads=8,kvheads=9")), HasSubstr("kvheads=9 is more than heads=8"));
}

TEST(ParseConstraints, ReadsAxesAndLevelsSorted) {
  const auto parsed = ParseConstraints("dp=leaf, tp=nvlink,gang=su,pp=spine");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(*parsed, ElementsAre(placement::Requirement{Axis::kTp, Level::kNvlink},
                                   placement::Requirement{Axis::kDp, Level::kLeaf},
                                   placement::Requirement{Axis::kPp, Level::kSpine},
                                   placement::Requirement{Axis::kGang, Level::kUnit}));
  EXPECT_EQ(Refusal(ParseConstraints("tp=rack")),
            "tp=rack names no place: write nvlink, node, leaf, su, spine or site");
  EXPECT_EQ(Refusal(ParseConstraints("sp=leaf")),
            "unknown word \"sp\": the axes are tp, cp, ep, dp, pp, fsdp and gang");
  EXPECT_THAT(Refusal(ParseConstraints("tp=leaf,tp=leaf")), HasSubstr("tp stands twice"));
  EXPECT_THAT(Refusal(ParseConstraints("")), HasSubstr("is empty"));
}

TEST(ParseWait, ReadsDurationsAsGoWritesThem) {
  EXPECT_EQ(*ParseWait("90s"), std::chrono::seconds(90));
  EXPECT_EQ(*ParseWait(" 30m "), std::chrono::minutes(30));
  EXPECT_EQ(*ParseWait("1h30m"), std::chrono::minutes(90));
  EXPECT_EQ(*ParseWait("1h0m5s"), std::chrono::seconds(3605));
  EXPECT_EQ(*ParseWait("0s"), std::chrono::seconds(0));
  for (const std::string_view text :
       {"", "30", "m", "30m1h", "1h1h", "-5m", "1.5h", "9000h", "99999999999999999999s", "5 m", "1d"}) {
    EXPECT_THAT(Refusal(ParseWait(text)),
                HasSubstr("write hours, minutes and seconds, as in 90s, 30m or 1h30m"))
        << text;
  }
}

TEST(ParseOnDegraded, KnowsTwoWords) {
  EXPECT_TRUE(*ParseOnDegraded("restart"));
  EXPECT_FALSE(*ParseOnDegraded(" wait "));
  for (const std::string_view text : {"", "maybe", "Restart", "restart,wait"}) {
    EXPECT_THAT(Refusal(ParseOnDegraded(text)), HasSubstr("write wait (the default), or restart")) << text;
  }
}

TEST(ParseComputeDomain, KnowsTwoWordsAsTheAdmissionPolicyDoes) {
  EXPECT_TRUE(*ParseComputeDomain("true"));
  EXPECT_FALSE(*ParseComputeDomain("false"));
  for (const std::string_view text : {"", "True", " true", "yes", "1", "train-domain"}) {
    EXPECT_THAT(Refusal(ParseComputeDomain(text)), HasSubstr("write true, for NVLink")) << text;
  }
}

TEST(CheckWorld, SaysWhatWouldFit) {
  const auto refusal = [](std::string_view text, int pods, int gpus) {
    const auto status = CheckWorld(*ParseParallelism(text), pods, gpus);
    return status ? std::string() : status.error().message;
  };
  EXPECT_THAT(refusal("tp=8,pp=2,dp=8", 32, 4), IsEmpty());
  EXPECT_EQ(refusal("tp=8,pp=2,dp=8", 16, 4),
            "tp=8 x dp=8 x pp=2 is 128 ranks, but 16 pods of 4 GPUs have 64: write "
            "dp=4, or change the number of pods");
  EXPECT_EQ(refusal("tp=8,dp=3", 5, 4),
            "tp=8 x dp=3 is 24 ranks, but 5 pods of 4 GPUs have 20: make it 6 pods, or write sizes that "
            "multiply to 20");
  EXPECT_EQ(refusal("tp=3,dp=3", 5, 4),
            "tp=3 x dp=3 is 9 ranks, but 5 pods of 4 GPUs have 20: write sizes that multiply to the GPUs of "
            "all pods");
  EXPECT_THAT(refusal("dp=1", 4, 0), HasSubstr("4 pods of 0 GPUs have 0"));
}

}  // namespace
}  // namespace heddle::crds
