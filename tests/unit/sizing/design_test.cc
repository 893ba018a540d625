#include "sizing/design.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::sizing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using topology::Transport;

Design Fits(const Request& request) {
  const auto answer = DesignFabric(request);
  const Design* const design = std::get_if<Design>(&answer);
  EXPECT_NE(design, nullptr) << std::get<Refusal>(answer).sentence;
  return design == nullptr ? Design{} : *design;
}

Refusal Refused(const Request& request) {
  const auto answer = DesignFabric(request);
  const Refusal* const refusal = std::get_if<Refusal>(&answer);
  EXPECT_NE(refusal, nullptr) << "it was sized";
  return refusal == nullptr ? Refusal{} : *refusal;
}

void ExpectRefused(const Request& request, RefusalReason reason, const std::string& part) {
  const Refusal refusal = Refused(request);
  EXPECT_EQ(RefusalReasonName(refusal.reason), RefusalReasonName(reason)) << refusal.sentence;
  EXPECT_THAT(refusal.sentence, HasSubstr(part));
}

TEST(Design, PutsAFewNodesOnOneSwitch) {
  const Design design = Fits({.gpus = 64});
  EXPECT_EQ(design.tree.tiers, 1);
  EXPECT_EQ(design.switches(), 1);
  EXPECT_EQ(design.cable_count(), 64);
  EXPECT_EQ(design.bisection_gbps, 64 * 400 / 2);
}

TEST(Design, GivesUnitsEqualSizes) {
  const Design design = Fits({.gpus = 40 * 8});
  EXPECT_THAT(design.tree.unit_nodes, testing::ElementsAre(20, 20));
  EXPECT_THAT(Check(design), IsEmpty());
}

TEST(Design, BuildsUnitsWholeThatWereGivenASize) {
  const Design design = Fits({.gpus = 40 * 8, .unit_nodes = 32});
  EXPECT_THAT(design.tree.unit_nodes, testing::ElementsAre(32, 8));
  EXPECT_EQ(design.tiers.front().up, 32);
  EXPECT_EQ(design.cable_count(Segment::kLeafSpine), 512);
}

TEST(Design, HalvesTheWayUpAtTwoToOne) {
  const Design design = Fits({.gpus = 1024, .leaf = {2, 1}, .unit_nodes = 32});
  EXPECT_EQ(design.tiers.front().down, 32);
  EXPECT_EQ(design.tiers.front().up, 16);
  EXPECT_EQ(design.bisection_gbps * 4, design.injection_gbps);
}

TEST(Design, NarrowsTheWayToTheCores) {
  const Design design = Fits({.gpus = 4096, .core = {7, 1}});
  EXPECT_EQ(design.tree.tiers, 3);
  EXPECT_LT(design.cable_count(Segment::kSpineCore) * 4, design.cable_count(Segment::kLeafSpine));
  EXPECT_LT(design.bisection_gbps * 4, design.injection_gbps);
  EXPECT_THAT(Check(design), IsEmpty());
}

TEST(Design, KeepsPortsFree) {
  for (const int spare : {1, 4, 16}) {
    const Design design = Fits({.gpus = 1024, .spare_ports = spare});
    for (const SwitchTier& tier : design.tiers) EXPECT_GE(tier.free, spare) << tier.name;
    EXPECT_THAT(Check(design), IsEmpty());
  }
}

TEST(Design, KeepsRacksOfNvlinkWhole) {
  const Design design = Fits({.gpus = 576 * 4, .machine = "gb200", .transport = Transport::kRoce});
  for (const int nodes : design.tree.unit_nodes) EXPECT_EQ(nodes % 18, 0);
  EXPECT_EQ(design.floor.nodes_per_rack, 18);
  EXPECT_THAT(Check(design), IsEmpty());
}

TEST(Design, JoinsTheNicsOfANodeInAFatTree) {
  const Design design = Fits({.gpus = 2048, .wiring = Wiring::kFatTree});
  EXPECT_EQ(design.tree.tiers, 2);
  EXPECT_EQ(design.tree.unit_nodes.front(), 4);
  EXPECT_EQ(design.tiers.front().switches, 64);
  EXPECT_EQ(design.most_gpus, 2048);
}

TEST(Design, TakesRailsOverNothing) {
  const Design design = Fits({.gpus = 512, .wiring = Wiring::kRailOnly});
  EXPECT_EQ(design.switches(), 8);
  EXPECT_EQ(design.cable_count(Segment::kLeafSpine), 0);
  ExpectRefused({.gpus = 520, .wiring = Wiring::kRailOnly}, RefusalReason::kTooLarge, "holds at most 512");
}

TEST(Design, MeasuresCablesInTheHall) {
  const Design small = Fits({.gpus = 64});
  for (const CableRun& run : small.cables) EXPECT_LE(run.longest, 10);
  const Design large = Fits({.gpus = 65'536});
  std::int64_t single_mode = 0;
  for (const CableRun& run : large.cables) {
    EXPECT_LE(run.shortest, run.longest);
    const CableType* const type = CableFor(large.link_gbps, run.longest);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(type->medium, run.medium);
    single_mode += run.medium == Medium::kSingleMode ? run.cables : 0;
  }
  EXPECT_GT(single_mode, 0);
  // A ToR in the rack of its nodes is reached by copper.
  const Design tor = Fits({.gpus = 1024, .wiring = Wiring::kFatTree});
  EXPECT_EQ(tor.cables.front().medium, Medium::kDac);
  ExpectRefused({.gpus = 16'384, .hall = {.nodes_per_rack = 1, .racks_per_row = 1, .row_metres = 10}},
                RefusalReason::kOutOfReach, "no cable of 400 Gb/s reaches more than 2000 m");
}

TEST(Design, SizesStorageByTheGuide) {
  const Design best = Fits({.gpus = 1024, .storage = "best"});
  EXPECT_DOUBLE_EQ(best.storage.read_gbs, 500);  // table 6 has 500 GB/s for four units
  EXPECT_EQ(best.storage.node_ports, 256);
  EXPECT_GE(best.storage.storage_ports * 400, 500 * 8);
  const Design own = Fits({.gpus = 1024, .storage_gbs_per_gpu = 2});
  EXPECT_DOUBLE_EQ(own.storage.read_gbs, 2048);
  EXPECT_GT(own.storage.leaves, best.storage.leaves);
}

// 1,315 nodes in two blocks: 658 of them in one, with 1,316 ports and not half of 2,630.
TEST(Design, HasPortsForWholeNodesInEveryBlockOfStorage) {
  const StorageFabric storage = Fits({.gpus = 1315 * 8}).storage;
  ASSERT_EQ(storage.blocks, 2);
  const std::int64_t leaves = storage.leaves / 2, cables = storage.leaf_cables / 2;
  const std::int64_t targets = (storage.storage_ports + 1) / 2;
  EXPECT_LE(658 * 2 + targets + cables, leaves * storage.type->PortsAt(storage.link_gbps));
}

TEST(Refusals, SayTheNextTierOrTheNextCount) {
  ExpectRefused({.gpus = 2048, .radix = 32, .tiers = 2}, RefusalReason::kTooLarge,
                "2,048 GPUs need 3 tiers of switches of 32 ports; 2 tiers hold at most 512");
  ExpectRefused({.gpus = 10'000, .radix = 32}, RefusalReason::kTooLarge, "which is 8,192");
  ExpectRefused({.gpus = 100}, RefusalReason::kNotWhole, "ask for 96 or 104");
  ExpectRefused({.gpus = 500, .machine = "gb200"}, RefusalReason::kNotWhole, "ask for 432 or 504");
  ExpectRefused({.gpus = 3}, RefusalReason::kNotWhole, "ask for 8");
  EXPECT_EQ(Fits({.gpus = 2048, .radix = 32}).tree.tiers, 3);
}

TEST(Refusals, SayWhatIsWrongWithTheNumbers) {
  const auto bad = RefusalReason::kBadRequest;
  ExpectRefused({.gpus = 0}, bad, "--gpus 0");
  ExpectRefused({.gpus = -8}, bad, "--gpus -8");
  ExpectRefused({.gpus = 1'000'000'000}, RefusalReason::kTooLarge, "more than 1,048,576");
  ExpectRefused({.gpus = 64, .radix = 2}, bad, "make no tree");
  ExpectRefused({.gpus = 64, .radix = 63}, bad, "write an even number, as 64");
  ExpectRefused({.gpus = 64, .radix = -4}, bad, "--radix -4");
  ExpectRefused({.gpus = 64, .rails = 3}, bad, "write one of 1, 2, 4, 8");
  ExpectRefused({.gpus = 64, .planes = 3}, bad, "--planes 3");
  ExpectRefused({.gpus = 64, .leaf = {0, 1}}, bad, "--oversubscription 0:1");
  ExpectRefused({.gpus = 64, .leaf = {1, 3}}, bad, "uplinks that nothing below can fill");
  ExpectRefused({.gpus = 64, .tiers = 4}, bad, "--tiers 4");
  ExpectRefused({.gpus = 64, .spare_ports = 63}, bad, "leave nothing");
  ExpectRefused({.gpus = 64, .hall = {.rack_kw = 0}}, bad, "--rack-kw 0");
  ExpectRefused({.gpus = 1024, .unit_nodes = 40}, RefusalReason::kTooSmallRadix,
                "32 nodes of a unit at most");
  ExpectRefused({.gpus = 72 * 8, .machine = "gb200", .unit_nodes = 20}, bad, "write a multiple");
}

TEST(Refusals, SayWhatIsWrongWithTheWords) {
  const auto bad = RefusalReason::kBadRequest;
  ExpectRefused({.gpus = 64, .machine = "v100"}, bad,
                "write one of a100, b200, b300, gb200, h100, h200, mi300x");
  ExpectRefused({.gpus = 64, .transport = Transport::kEfa}, bad, "write ib or roce");
  ExpectRefused({.gpus = 64, .switch_word = "sn5600"}, bad, "it is no switch for InfiniBand");
  ExpectRefused({.gpus = 64, .switch_word = "catalyst"}, bad, "write one of qm8790, qm9700, q3400");
  ExpectRefused({.gpus = 64, .machine = "b300", .switch_word = "qm9700"}, bad, "slower than links of 800");
  ExpectRefused({.gpus = 64, .storage = "okay"}, bad, "good, better or best");
}

TEST(Ratio, IsTwoNumbers) {
  EXPECT_EQ(ParseRatio("2:1"), (Ratio{2, 1}));
  EXPECT_EQ(ParseRatio("3:2"), (Ratio{3, 2}));
  for (const char* text :
       {"", "2", "2:", ":1", "0:1", "1:0", "-1:1", "a:b", "2:1:1", "101:1", "2.5:1", "99999999999:1"})
    EXPECT_EQ(ParseRatio(text), std::nullopt) << text;
  EXPECT_EQ(RatioText({4, 2}), "2:1");
}

Request AnyRequest(base::Random& random) {
  const auto n = [&](int lowest, int highest) {
    return lowest + int(random.Below(std::uint64_t(highest - lowest + 1)));
  };
  Request request;
  request.machine = std::string(Machines()[random.Below(Machines().size())].word);
  const MachineType& machine = *FindMachineType(request.machine);
  request.gpus = std::int64_t(machine.gpus) * machine.domain_nodes * n(1, n(0, 3) ? 60 : 3000);
  request.wiring = static_cast<Wiring>(n(0, 4) / 2);
  request.transport = n(0, 1) ? Transport::kRoce : Transport::kInfiniBand;
  if (request.wiring != Wiring::kFatTree && n(0, 2) == 0) request.rails = 1 << n(0, 3);
  if (request.wiring != Wiring::kFatTree && n(0, 3) == 0) request.planes = 2;
  if (n(0, 2) == 0) request.leaf = {n(1, 8), n(1, 2)};
  if (n(0, 2) == 0) request.core = {n(1, 8), 1};
  if (n(0, 2) == 0) request.radix = 2 * n(2, 80);
  if (n(0, 4) == 0) request.spare_ports = n(0, 8);
  if (n(0, 4) == 0) request.unit_nodes = machine.domain_nodes * n(1, 40);
  if (n(0, 5) == 0) request.tiers = n(1, 3);
  if (n(0, 4) == 0) request.hall.nodes_per_rack = n(1, 20);
  return request;
}

TEST(Property, EveryDesignHasItsPortsAccountedFor) {
  int sized = 0;
  for (const std::uint64_t seed : test::Seeds(2000)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const Request request = AnyRequest(random);
    const auto answer = DesignFabric(request);
    if (const auto* refusal = std::get_if<Refusal>(&answer)) {
      EXPECT_GT(refusal->sentence.size(), 20u);
      continue;
    }
    ++sized;
    const Design& design = std::get<Design>(answer);
    EXPECT_THAT(Check(design), IsEmpty());
    EXPECT_EQ(design, std::get<Design>(DesignFabric(request)));
    const StorageFabric& storage = design.storage;
    const int ports = storage.type->PortsAt(storage.link_gbps);
    EXPECT_LE(storage.node_ports + storage.storage_ports + (storage.spines > 0 ? 1 : 2) * storage.leaf_cables,
              storage.leaves * ports);
    EXPECT_LE(storage.spines > 0 ? storage.leaf_cables : 0, storage.spines * ports);
  }
  EXPECT_TRUE(sized > 500 || test::Seeds(2000).size() < 2000);
}

// More GPUs never take fewer leaves, ports of nodes or tiers.
TEST(Property, MoreGpusTakeMore) {
  for (const std::uint64_t seed : test::Seeds(100)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    Request request = AnyRequest(random);
    request.unit_nodes = request.tiers = 0;
    const MachineType& machine = *FindMachineType(request.machine);
    const std::int64_t step = std::int64_t(machine.gpus) * machine.domain_nodes;
    std::int64_t leaves = 0, cables = 0, most = 0;
    int tiers = 0;
    for (int i = 1; i <= 40; ++i) {
      request.gpus = step * i * (1 + std::int64_t(seed % 7));
      const auto answer = DesignFabric(request);
      if (std::holds_alternative<Refusal>(answer)) break;
      const Design& design = std::get<Design>(answer);
      EXPECT_GE(design.tree.tiers, tiers);
      EXPECT_TRUE(design.tree.tiers > tiers || design.tiers.front().switches >= leaves);
      EXPECT_GE(design.cable_count(Segment::kNodeLeaf), cables);
      EXPECT_GE(design.most_gpus, most);
      EXPECT_GE(design.most_gpus, request.gpus);
      leaves = design.tiers.front().switches;
      cables = design.cable_count(Segment::kNodeLeaf);
      most = design.most_gpus;
      tiers = design.tree.tiers;
    }
  }
}

// Nobody has room for more where a refusal says how much there is.
TEST(Design, TakesNoMorePortsThanTheSwitchHas) {
  EXPECT_EQ(Fits({.gpus = 256, .switch_word = "qm9700", .radix = 32}).radix, 32);
  EXPECT_THAT(Refused({.gpus = 65536, .switch_word = "qm9700", .radix = 1024}).sentence,
              testing::HasSubstr("a qm9700 has 64 ports of 400 Gb/s"));
  EXPECT_THAT(Refused({.gpus = 64, .machine = "b300", .switch_word = "qm9700"}).sentence,
              testing::HasSubstr("slower than links of 800: write q3400"));
}

TEST(Design, OffersOnlyWhatHelps) {
  EXPECT_THAT(Refused({.gpus = 64, .radix = 8}).sentence,
              testing::AllOf(testing::HasSubstr("which is 32"), testing::HasSubstr("fewer --rails"),
                             testing::Not(testing::HasSubstr("--planes"))));
  EXPECT_EQ(Fits({.gpus = 32, .radix = 8}).nodes, 4);
  EXPECT_THAT(Refused({.gpus = 64, .planes = 5}).sentence, testing::HasSubstr("write 1, 2, 4"));
  EXPECT_THAT(Refused({.gpus = kMostGpus - 6, .machine = "gb200"}).sentence,
              testing::Not(testing::HasSubstr(" or ")));
}

TEST(Design, ReadsNoMoreThanNodesPortsCarry) {
  EXPECT_THAT(Refused({.gpus = 512, .storage_gbs_per_gpu = 1000}).sentence,
              testing::HasSubstr("storage ports of a node carry"));
}

TEST(Design, HasNoBisectionWhereRailsNeverMeet) {
  EXPECT_EQ(Fits({.gpus = 512, .wiring = Wiring::kRailOnly}).bisection_gbps, 0);
  EXPECT_GT(Fits({.gpus = 64, .wiring = Wiring::kRailOnly, .rails = 1}).bisection_gbps, 0);
}

// The halves of one pod reach each other over its spines, however few cores are above them.
TEST(Design, HasTheBisectionOfItsSpinesInOnePod) {
  const Design design = Fits({.gpus = 512, .core = {4, 1}, .tiers = 3});
  ASSERT_EQ(design.tree.pod_units.size(), 1u);
  ASSERT_LT(design.tree.spine_core_cables(), design.tree.leaf_spine_cables());
  EXPECT_EQ(design.bisection_gbps * 2, design.injection_gbps);
  EXPECT_THAT(Check(design), IsEmpty());
}

TEST(Property, WhatARefusalOffersFits) {
  for (const int radix : {8, 16, 32, 64}) {
    for (const int tiers : {2, 3}) {
      Request request{.gpus = 1'000'000, .radix = radix, .tiers = tiers};
      const Refusal refusal = Refused(request);
      if (refusal.reason != RefusalReason::kTooLarge) continue;
      const TreeWish wish{.ports = radix, .nodes = 1, .nics = 8, .leaves = 8};
      request.gpus = Capacity(wish, tiers) * 8;
      if (request.gpus == 0) continue;
      EXPECT_EQ(Fits(request).most_gpus, request.gpus);
      request.gpus += 8;
      EXPECT_EQ(Refused(request).reason, RefusalReason::kTooLarge);
    }
  }
}

}  // namespace
}  // namespace heddle::sizing
