#include "placement/collective.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::placement {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;
constexpr std::array kCollectives{Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                  Collective::kAllToAll, Collective::kSendRecv};

// Domains of eight H100 with eight NICs of 400 Gb/s.
GroupShape H100(int domains, int local = 8) {
  GroupShape shape;
  shape.ranks = domains * local;
  shape.domains = domains;
  shape.ranks_per_domain = local;
  shape.nvlink_gbs = 370;
  shape.nvlink_generation = 4;
  shape.nvswitch = true;
  shape.net_gbs = 48.5;
  return shape;
}

GroupShape A100(int domains, int local = 8) {
  GroupShape shape = H100(domains, local);
  shape.nvlink_gbs = 240;
  shape.nvlink_generation = 3;
  return shape;
}

double Micros(Collective collective, const GroupShape& shape, double bytes) {
  return Predict(collective, shape, bytes).micros;
}

TEST(Collective, CountsBusBandwidthAsNcclTestsDo) {
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllToAll, 16), 0.9375);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kSendRecv, 16), 1);
  // 16 GiB on 16 ranks in 66,132 us: the last row of the p5 sweep.
  EXPECT_NEAR(BusBandwidth(Collective::kAllReduce, 16, 16 * kGiB, 66132), 487.09, 0.01);
}

TEST(Collective, TakesNothingAloneOrWithoutBytes) {
  EXPECT_EQ(Micros(Collective::kAllReduce, H100(1, 1), kGiB), 0);
  EXPECT_EQ(Micros(Collective::kAllToAll, H100(1), 0), 0);
  EXPECT_EQ(Micros(Collective::kAllReduce, H100(1), std::nan("")), 0);
}

// The choices that NCCL's maintainers and users name (NVIDIA/nccl-tests issue 309).
TEST(Collective, ChoosesAsNcclDoes) {
  const auto chosen = [](const GroupShape& shape, double bytes) {
    const Prediction found = Predict(Collective::kAllReduce, shape, bytes);
    return std::string(AlgorithmName(found.algorithm)) + " " + std::string(ProtocolName(found.protocol));
  };
  EXPECT_EQ(chosen(H100(1), 65536), "Ring LL");
  EXPECT_EQ(chosen(H100(1), kMiB), "Ring LL");
  EXPECT_EQ(chosen(H100(1), kGiB), "NVLS Simple");
  EXPECT_EQ(chosen(H100(2), kGiB), "NVLSTree Simple");
  EXPECT_EQ(chosen(H100(2), 1024), "Tree LL");
  EXPECT_EQ(chosen(A100(1), kGiB), "Ring Simple");
  EXPECT_EQ(chosen(A100(2), kGiB), "Ring Simple");  // its trees are held to 23.6 GB/s a channel
  EXPECT_EQ(chosen(H100(32), 65536), "Tree LL");    // a logarithm of domains, not a ring's line
  EXPECT_EQ(Predict(Collective::kAllGather, H100(2), kGiB).algorithm, Algorithm::kRing);
  EXPECT_EQ(Predict(Collective::kAllToAll, H100(2), kGiB).algorithm, Algorithm::kPairwise);
}

TEST(Collective, RunsRingsWhereToldTo) {
  GroupShape shape = H100(2);
  shape.ring_only = true;
  for (const double bytes : {1024.0, kMiB, kGiB}) {
    EXPECT_EQ(Predict(Collective::kAllReduce, shape, bytes).algorithm, Algorithm::kRing) << bytes;
  }
  // The NICs bind: each ring leaves by another GPU, so NVLink carries seven hops of eight.
  EXPECT_NEAR(
      BusBandwidth(Collective::kAllReduce, 16, 16 * kGiB, Micros(Collective::kAllReduce, shape, 16 * kGiB)),
      0.97 * 388, 5);
}

// Oracle's A100 with sixteen ports that NCCL 2.19 does not fuse: 238 GB/s, more than the NICs' 194.
TEST(Collective, HoldsATreeByItsChannelsUnlessNicsBringMore) {
  GroupShape shape = A100(2);
  shape.net_gbs = 24.25;
  EXPECT_EQ(Predict(Collective::kAllReduce, shape, 8 * kGiB).algorithm, Algorithm::kRing);
  shape.net_devices = 16;
  const Prediction unfused = Predict(Collective::kAllReduce, shape, 8 * kGiB);
  EXPECT_EQ(unfused.algorithm, Algorithm::kTree);
  EXPECT_NEAR(BusBandwidth(Collective::kAllReduce, 16, 8 * kGiB, unfused.micros), 0.92 * 240, 3);
}

TEST(Collective, FillsAPipelineTwiceAsLongOverNicsHalfAsFast) {
  const auto beyond = [](double net_gbs) {  // what a doubling of the bytes does not double
    GroupShape shape = A100(2);
    shape.net_gbs = net_gbs;
    return 2 * Micros(Collective::kAllGather, shape, 4 * kGiB) -
           Micros(Collective::kAllGather, shape, 8 * kGiB);
  };
  const double latency = 2 * beyond(24.25) - beyond(12.125);
  EXPECT_NEAR(beyond(24.25) - latency, 63, 1);
  EXPECT_NEAR(beyond(12.125) - latency, 126, 1);
}

// Two domains: a double tree sends every byte over the network once, a ring nearly twice.
TEST(Collective, GivesTwoDomainsTheTreesTwofoldAndMoreTheNicsTotal) {
  const auto bus = [](int domains) {
    const GroupShape shape = H100(domains);
    return BusBandwidth(Collective::kAllReduce, shape.ranks, 16 * kGiB,
                        Micros(Collective::kAllReduce, shape, 16 * kGiB));
  };
  EXPECT_NEAR(bus(2), 480, 15);
  EXPECT_NEAR(bus(4), 0.97 * 388, 10);
  EXPECT_NEAR(bus(16), 0.97 * 388, 10);
}

TEST(Collective, LetsSwitchesAddOnlyWhereTheyWereMeasuredTo) {
  GroupShape shape = H100(8);
  const Prediction plain = Predict(Collective::kAllReduce, shape, kGiB);
  shape.sharp = true;
  const Prediction reduced = Predict(Collective::kAllReduce, shape, kGiB);
  EXPECT_LT(reduced.micros, plain.micros);
  EXPECT_EQ(reduced.algorithm, Algorithm::kCollNetDirect);
  EXPECT_DOUBLE_EQ(Micros(Collective::kAllGather, shape, kGiB),
                   Micros(Collective::kAllGather, H100(8), kGiB));
}

TEST(Collective, ReachesTheRightRailThroughAPeerForAnNvlinkStep) {
  GroupShape shape = H100(2);
  const double aligned = Micros(Collective::kAllReduce, shape, 1024);
  shape.crosses_rails = true;
  const double crossing = Micros(Collective::kAllReduce, shape, 1024);
  EXPECT_GT(crossing, aligned);
  EXPECT_LT(crossing, aligned + 5);
}

TEST(Collective, HoldsUpARingByItsSlowestWayAndATreeByItsSum) {
  GroupShape shape = H100(4);
  shape.net_domain_gbs = 7 * 48.5 + 24.25;
  shape.net_gbs = 24.25;  // a rail at half its rate
  const double half = Micros(Collective::kAllGather, shape, 64 * kGiB);
  EXPECT_GT(half / Micros(Collective::kAllGather, H100(4), 64 * kGiB), 1.85);  // NVLink bound it before
  const double tree = Micros(Collective::kAllReduce, shape, 64 * kGiB);
  EXPECT_LT(tree / Micros(Collective::kAllReduce, H100(4), 64 * kGiB), 1.1);
}

TEST(Collective, GivesAPeerFewerChannelsTheMorePeersThereAre) {
  const auto leaving = [](const GroupShape& shape) {  // GB/s of one rank over the network
    const double bytes = 64 * kGiB, out = bytes * (shape.ranks - 8) / shape.ranks;
    return out / (1000 * Micros(Collective::kAllToAll, shape, bytes));
  };
  EXPECT_NEAR(leaving(H100(2)), 0.88 * 48.5, 0.5);  // four channels: the NIC binds
  EXPECT_NEAR(leaving(H100(8)), 0.88 * 48.5, 0.5);
  EXPECT_NEAR(leaving(H100(16)), 22.6, 0.2);
  GroupShape told = H100(2);
  told.peer_channels = 1;
  EXPECT_NEAR(leaving(told), 22.6, 0.2);
}

// A lane of data parallelism: one rank a server, whatever joins the GPUs inside.
TEST(Collective, AsksNothingOfLinksInsideWhereRanksStandAlone) {
  GroupShape lane = H100(16, 1), bare = lane;
  bare.nvlink_gbs = 0;
  for (const double bytes : {65536.0, kGiB}) {
    EXPECT_DOUBLE_EQ(Micros(Collective::kReduceScatter, lane, bytes),
                     Micros(Collective::kReduceScatter, bare, bytes));
  }
  EXPECT_NEAR(BusBandwidth(Collective::kReduceScatter, 16, 16 * kGiB,
                           Micros(Collective::kReduceScatter, bare, 16 * kGiB)),
              0.97 * 48.5, 0.5);
}

TEST(Collective, TakesAnyShapeWithoutHarm) {
  for (const double odd : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const int count : {-5, 0, 1, 3, std::numeric_limits<int>::max()}) {
      GroupShape shape;
      shape.ranks = shape.domains = shape.ranks_per_domain = count;
      shape.nvlink_gbs = shape.pcie_gbs = shape.net_gbs = shape.net_domain_gbs = odd;
      shape.nvlink_generation = shape.net_devices = shape.peer_channels = count;
      shape.nvswitch = shape.sharp = true;
      for (const Collective collective : kCollectives) EXPECT_GE(Micros(collective, shape, kGiB), 0);
      shape.ranks = 16;
      for (const Collective collective : kCollectives) EXPECT_GE(Micros(collective, shape, kGiB), 0);
    }
  }
}

TEST(Collective, StaysFiniteWithoutANetwork) {
  GroupShape shape = H100(2);
  shape.net_gbs = 0;
  for (const Collective collective : kCollectives) {
    EXPECT_TRUE(std::isfinite(Micros(collective, shape, 1e12))) << CollectiveName(collective);
    EXPECT_GT(Micros(collective, shape, kGiB), 10 * Micros(collective, H100(2), kGiB));
  }
}

// Random groups; each step makes something worse and must never be faster.
double Of(base::Random& random, std::initializer_list<double> values) {
  return values.begin()[random.Below(values.size())];
}

GroupShape DrawShape(base::Random& random) {
  GroupShape shape;
  shape.domains = 1 << random.Below(8);
  shape.ranks_per_domain = int(Of(random, {1, 2, 4, 8}));
  shape.ranks = std::max(2, shape.domains * shape.ranks_per_domain);
  if (shape.domains == 1) shape.ranks_per_domain = shape.ranks;
  shape.nvlink_generation = int(Of(random, {0, 3, 4, 5}));
  constexpr double kNvlink[] = {0, 0, 0, 240, 370, 722};
  shape.nvlink_gbs = kNvlink[shape.nvlink_generation];
  shape.nvswitch = random.Below(2) == 0;
  shape.net_gbs = Of(random, {1.2, 12, 24, 48.5, 97});
  shape.extra_latency_us = Of(random, {0, 0.5, 20});
  shape.sharp = random.Below(4) == 0;
  shape.crosses_rails = random.Below(2) == 0;
  return shape;
}

double DrawBytes(base::Random& random) {
  return std::exp2(double(random.Below(2600)) / 100 + 8);
}

std::string Said(Collective collective, const GroupShape& shape, double bytes) {
  return fmt::format("{} of {:.0f} B, {} ranks in {} domains, NVLink {} at {}, network {}, sharp {}",
                     CollectiveName(collective), bytes, shape.ranks, shape.domains, shape.nvlink_generation,
                     shape.nvlink_gbs, shape.net_gbs, shape.sharp);
}

constexpr int kDraws = 500;

TEST(Collective, IsNeverFasterWithMoreBytes) {
  for (const std::uint64_t seed : test::Seeds(20)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    for (int i = 0; i < kDraws; ++i) {
      const GroupShape shape = DrawShape(random);
      const double bytes = DrawBytes(random), more = bytes * (1 + double(random.Below(1000)) / 500);
      for (const Collective collective : kCollectives) {
        ASSERT_LE(Micros(collective, shape, bytes), Micros(collective, shape, more) * (1 + 1e-12))
            << Said(collective, shape, bytes) << " against " << more;
      }
    }
  }
}

TEST(Collective, IsNeverFasterOnSlowerLinks) {
  for (const std::uint64_t seed : test::Seeds(20)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    for (int i = 0; i < kDraws; ++i) {
      const GroupShape shape = DrawShape(random);
      const double bytes = DrawBytes(random);
      std::array<GroupShape, 6> slower;
      slower.fill(shape);
      slower[0].nvlink_gbs /= 2;
      slower[1].pcie_gbs /= 2;
      slower[2].net_gbs /= 2;
      slower[3].extra_latency_us += 5;
      slower[4].net_domain_gbs = shape.ranks_per_domain * shape.net_gbs / 2;
      slower[5].crosses_rails = true;
      for (const Collective collective : kCollectives) {
        for (std::size_t s = 0; s < slower.size(); ++s) {
          ASSERT_LE(Micros(collective, shape, bytes), Micros(collective, slower[s], bytes) * (1 + 1e-12))
              << Said(collective, shape, bytes) << ", made worse " << s;
        }
      }
    }
  }
}

// Of domains up to a server's size. (In a rack of 72 a chain through the domain is long enough for two halves to
// be quicker at a few bytes, in NCCL's own model as well; and it counts one crossing where the switches add.)
TEST(Collective, IsNeverFasterOverMoreDomains) {
  for (const std::uint64_t seed : test::Seeds(20)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    for (int i = 0; i < kDraws; ++i) {
      GroupShape shape = DrawShape(random);
      if (shape.ranks_per_domain < 2) continue;
      if (shape.nvlink_gbs == 0 && shape.net_gbs > 0.8 * shape.pcie_gbs) continue;  // apart is better there
      shape.sharp = false;
      GroupShape spread = shape;
      spread.domains *= 2;
      spread.ranks_per_domain /= 2;
      // Where the NICs of half the ranks outrun NVLink, a shorter chain inside is better too.
      if (shape.nvlink_gbs > 0 && spread.ranks_per_domain * shape.net_gbs > shape.nvlink_gbs) continue;
      const double bytes = DrawBytes(random);
      for (const Collective collective : kCollectives) {
        ASSERT_LE(Micros(collective, shape, bytes), Micros(collective, spread, bytes) * (1 + 1e-12))
            << Said(collective, shape, bytes);
      }
    }
  }
}

// What carries the bytes decides their time: half the link, twice the time; the other link changes nothing.
TEST(Collective, DoublesWithHalfTheLinkThatBindsAndNotWithTheOther) {
  const double bytes = 64 * kGiB;
  GroupShape half_net = H100(8), half_nvlink = H100(8);
  half_net.net_gbs /= 2;
  half_nvlink.nvlink_gbs *= 1.5;
  const double micros = Micros(Collective::kAllReduce, H100(8), bytes);
  EXPECT_NEAR(Micros(Collective::kAllReduce, half_net, bytes) / micros, 2, 0.02);
  EXPECT_NEAR(Micros(Collective::kAllReduce, half_nvlink, bytes) / micros, 1, 0.02);
}

}  // namespace
}  // namespace heddle::placement
