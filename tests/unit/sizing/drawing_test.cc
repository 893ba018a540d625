#include "sizing/drawing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "sizing/prediction.h"
#include "sizing/prices.h"

namespace heddle::sizing {
namespace {

using topology::Transport;

Design Fits(const Request& request) {
  const auto answer = DesignFabric(request);
  const Design* const design = std::get_if<Design>(&answer);
  EXPECT_NE(design, nullptr) << std::get<Refusal>(answer).sentence;
  return design == nullptr ? Design{} : *design;
}

std::vector<Request> AllKinds() {
  return {{.gpus = 8},
          {.gpus = 64},
          {.gpus = 64, .planes = 2},
          {.gpus = 320},
          {.gpus = 127 * 8},
          {.gpus = 1024, .machine = "b300", .planes = 2, .transport = Transport::kRoce},
          {.gpus = 1024, .wiring = Wiring::kFatTree, .leaf = {2, 1}},
          {.gpus = 256, .wiring = Wiring::kRailOnly},
          {.gpus = 104, .wiring = Wiring::kRailOnly, .rails = 1, .transport = Transport::kRoce},
          {.gpus = 576, .machine = "gb200", .transport = Transport::kRoce},
          {.gpus = 512, .machine = "mi300x", .transport = Transport::kRoce},
          {.gpus = 1024, .rails = 4, .radix = 16, .tiers = 3},
          {.gpus = 1000 * 8, .leaf = {2, 1}, .core = {3, 1}, .radix = 64}};
}

// What the design counts is what is drawn.
TEST(Drawing, HasTheNodesLeavesAndSwitchesOfTheDesign) {
  for (const Request& request : AllKinds()) {
    SCOPED_TRACE(fmt::format("{} x {}, {}", request.gpus, request.machine, WiringWord(request.wiring)));
    const Design design = Fits(request);
    const auto drawn = Draw(design);
    ASSERT_TRUE(drawn) << drawn.error().message;
    const topology::Fabric fabric = topology::BuildFabric(drawn->nodes, drawn->declaration);
    EXPECT_THAT(topology::Check(fabric), testing::IsEmpty());
    EXPECT_EQ(std::int64_t(fabric.nodes.size()), design.nodes);
    EXPECT_EQ(fabric.gpu_count(), request.gpus);
    EXPECT_EQ(std::int64_t(fabric.leaves.size()), design.tiers.front().switches);
    EXPECT_EQ(std::int64_t(fabric.spines.size()), design.switches() - design.tiers.front().switches);
    EXPECT_EQ(fabric.transport, request.transport);
    std::int64_t down = 0;
    for (const topology::Leaf& leaf : fabric.leaves) down += leaf.down_gbps;
    EXPECT_EQ(down, design.injection_gbps);
    EXPECT_THAT(fabric.faults, testing::IsEmpty());
  }
}

TEST(Drawing, WritesALineThatMakesTheSame) {
  for (const Request& request : AllKinds()) {
    const Design design = Fits(request);
    const auto line = LineOf(design);
    ASSERT_TRUE(line) << line.error().message;
    const auto made = topology::ParseSynthetic(*line);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->nodes, Draw(design)->nodes);
    EXPECT_EQ(*topology::CanonicalSynthetic(*line), *line);
  }
}

TEST(Drawing, HangsEachSpineOnItsOwnCores) {
  const Design design = Fits({.gpus = 4096});
  const auto drawn = Draw(design);
  ASSERT_TRUE(drawn) << drawn.error().message;
  std::map<std::string, int> below;
  std::set<std::string> spines;
  for (const topology::SwitchDeclaration& one : drawn->declaration.switches) {
    if (!one.name.starts_with("spine-")) continue;
    spines.insert(one.name);
    EXPECT_EQ(int(one.uplinks.size()), design.tree.cores_per_spine);
    for (const std::string& core : one.uplinks) ++below[core];
  }
  EXPECT_EQ(std::int64_t(spines.size()), design.tree.spines());
  EXPECT_EQ(std::int64_t(below.size()), design.tree.cores());
  for (const auto& [core, count] : below) EXPECT_EQ(count, int(design.tree.pod_units.size())) << core;
  const topology::Fabric fabric = topology::BuildFabric(drawn->nodes, drawn->declaration);
  EXPECT_EQ(fabric.Hops(0, topology::LeafId(fabric.leaves.size()) - 1), 4);
}

// Smaller units and pods have leaves and spines of as many uplinks as the others.
TEST(Drawing, GivesTheLeavesOfASmallerUnitAllTheirUplinks) {
  for (const Request& request : {Request{.gpus = 40 * 8, .leaf = {2, 1}, .unit_nodes = 32},
                                 Request{.gpus = 1000 * 8, .core = {3, 1}, .radix = 64, .unit_nodes = 32}}) {
    const Design design = Fits(request);
    ASSERT_LT(design.tree.unit_nodes.back(), design.tree.unit_nodes.front());
    const auto drawn = Draw(design);
    ASSERT_TRUE(drawn) << drawn.error().message;
    const topology::Fabric fabric = topology::BuildFabric(drawn->nodes, drawn->declaration);
    for (const topology::Leaf& leaf : fabric.leaves)
      EXPECT_EQ(leaf.up_gbps, design.tree.leaf_up * design.link_gbps) << leaf.name;
    for (const topology::Spine& spine : fabric.spines) {
      if (spine.tier != 2) continue;
      EXPECT_EQ(spine.up_gbps, design.tree.spine_up * design.link_gbps) << spine.name;
    }
  }
}

TEST(Drawing, RefusesWhatOneLineDoesNotMake) {
  const Design design =
      Fits({.gpus = 72 * 14'563, .machine = "gb200", .transport = Transport::kRoce, .radix = 1024});
  EXPECT_FALSE(Draw(design));
}

JobWish Llama70b() {
  JobWish job;
  job.model.params = 70e9;
  job.model.layers = 80;
  job.model.hidden = 8192;
  job.model.seq = 8192;
  job.batch = 2048;
  return job;
}

TEST(Prediction, IsSlowerWhereLessBandwidthIs) {
  const auto full = Predict(Fits({.gpus = 1024}), Llama70b());
  const auto narrow = Predict(Fits({.gpus = 1024, .leaf = {8, 1}}), Llama70b());
  ASSERT_TRUE(full && narrow);
  EXPECT_GT(full->bus_gbs, 100);
  EXPECT_GT(narrow->all_reduce_micros, full->all_reduce_micros);
  const auto* fast = std::get_if<placement::Suggestion>(&full->step);
  const auto* slow = std::get_if<placement::Suggestion>(&narrow->step);
  ASSERT_TRUE(fast != nullptr && slow != nullptr);
  EXPECT_EQ(fast->layout.parallelism.world(), 1024);
  EXPECT_GE(slow->step_micros, fast->step_micros);
}

TEST(Prediction, TakesTheLayoutThatWasSaid) {
  JobWish job = Llama70b();
  job.like.tp = 8;
  job.like.pp = 4;
  job.like.dp = 32;
  const auto said = Predict(Fits({.gpus = 1024}), job);
  ASSERT_TRUE(said);
  const auto* step = std::get_if<placement::Suggestion>(&said->step);
  ASSERT_NE(step, nullptr) << std::get<std::string>(said->step);
  EXPECT_EQ(step->layout.parallelism.pp, 4);
  job.like.pp = 3;
  job.like.dp = 1;
  EXPECT_TRUE(std::holds_alternative<std::string>(Predict(Fits({.gpus = 1024}), job)->step));
}

TEST(Prediction, GivesEveryNodeWorkWhateverTheirNumber) {
  const auto odd = Predict(Fits({.gpus = 127 * 8}), Llama70b());
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->batch % 127, 0);
  EXPECT_GE(odd->batch, 2048);
  EXPECT_TRUE(std::holds_alternative<placement::Suggestion>(odd->step)) << std::get<std::string>(odd->step);
}

TEST(Prediction, SaysWhyThereIsNone) {
  const auto amd =
      Predict(Fits({.gpus = 64, .machine = "mi300x", .transport = Transport::kRoce}), Llama70b());
  ASSERT_FALSE(amd);
  EXPECT_THAT(amd.error().message, testing::HasSubstr("does not know the collectives of MI300X"));
  const auto small = Predict(Fits({.gpus = 8}), Llama70b());
  ASSERT_TRUE(small);
  EXPECT_THAT(std::get<std::string>(small->step), testing::HasSubstr("more memory than GPUs have"));
}

TEST(Prices, CountWhatTheDesignCounts) {
  const Design design = Fits({.gpus = 1024});
  const Bill bill = BillOf(design, UsualPrices());
  EXPECT_EQ(bill.unpriced, 0);
  std::int64_t switches = 0, transceivers = 0;
  Band total;
  for (const BillLine& line : bill.lines) {
    EXPECT_GT(line.count, 0) << line.title;
    ASSERT_TRUE(line.each) << line.key;
    EXPECT_LE(line.each->low, line.each->high) << line.key;
    total.low += line.each->low * double(line.count);
    total.high += line.each->high * double(line.count);
    if (line.key.starts_with("switch.")) switches += line.count;
    if (line.key.starts_with("transceiver.")) transceivers += line.count;
  }
  EXPECT_EQ(switches, design.switches() + design.storage.leaves + design.storage.spines);
  EXPECT_GE(transceivers, design.transceivers());
  EXPECT_DOUBLE_EQ(bill.total.low, total.low);
  EXPECT_DOUBLE_EQ(bill.total.high, total.high);
  EXPECT_LT(bill.total.low, bill.total.high);
}

// What has no price is not free.
TEST(Prices, AreMissingWhereNobodyKnows) {
  const Bill bill = BillOf(Fits({.gpus = 1024, .radix = 48}), UsualPrices());
  EXPECT_GT(bill.unpriced, 0);
  EXPECT_FALSE(bill.lines.front().each);
}

TEST(Prices, AreKnownForEverySwitchAndCable) {
  for (const SwitchType& type : Switches())
    EXPECT_TRUE(UsualPrices().items.contains(fmt::format("switch.{}", type.word))) << type.word;
  for (const CableType& type : Cables()) {
    const std::string key = fmt::format("{}.{}.{}", HasTransceivers(type.medium) ? "transceiver" : "cable",
                                        MediumWord(type.medium), type.link_gbps);
    EXPECT_TRUE(UsualPrices().items.contains(key)) << key;
  }
}

}  // namespace
}  // namespace heddle::sizing
