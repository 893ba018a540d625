#include "placement/sharing.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/seeds.h"

namespace heddle::placement {
namespace {

Flow FlowOver(std::int32_t up, std::int32_t down, std::int64_t mbps, std::int64_t count = 1) {
  return {.links = {up, down, -1, -1}, .mbps = mbps, .count = count};
}

TEST(Sharing, LeavesFlowsAloneThatFit) {
  const std::vector<std::int64_t> capacity{1000, 1000};
  std::vector<Flow> flows{FlowOver(0, 1, 600), FlowOver(0, -1, 400)};
  Sharing(capacity).Share(flows, {});
  EXPECT_EQ(flows[0].part, 1);
  EXPECT_EQ(flows[1].part, 1);
}

TEST(Sharing, GivesFlowsOfAFullLinkTheSamePart) {
  const std::vector<std::int64_t> capacity{900};
  std::vector<Flow> flows{FlowOver(0, -1, 300, 4), FlowOver(0, -1, 600)};
  Sharing(capacity).Share(flows, {});
  EXPECT_DOUBLE_EQ(flows[0].part, 0.5);
  EXPECT_DOUBLE_EQ(flows[1].part, 0.5);
}

// A flow that is held back elsewhere leaves its part of a link to the others.
TEST(Sharing, GivesToOthersWhatAFlowHeldBackElsewhereCannotUse) {
  const std::vector<std::int64_t> capacity{1000, 100};
  std::vector<Flow> flows{FlowOver(0, 1, 1000), FlowOver(0, -1, 1000)};
  Sharing(capacity).Share(flows, {});
  EXPECT_DOUBLE_EQ(flows[0].part, 0.1);
  EXPECT_DOUBLE_EQ(flows[1].part, 0.9);
}

TEST(Sharing, CountsWhatOtherGangsSend) {
  const std::vector<std::int64_t> capacity{1000}, load{3000};
  std::vector<Flow> flows{FlowOver(0, -1, 1000)};
  Sharing(capacity).Share(flows, load);
  EXPECT_DOUBLE_EQ(flows[0].part, 0.25);
}

TEST(Sharing, TakesALinkOfUnknownWidthForNoBottleneck) {
  const std::vector<std::int64_t> capacity{0};
  std::vector<Flow> flows{FlowOver(0, -1, 1'000'000)};
  Sharing(capacity).Share(flows, {});
  EXPECT_EQ(flows[0].part, 1);
}

// Max-min fairness by its own words: no link carries more than it can, and every flow that gets less than it
// wants crosses a full link on which nobody gets a larger part.
TEST(Sharing, IsMaxMinFairOnRandomLinks) {
  for (const std::uint64_t seed : test::Seeds(500)) {
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    const auto links = std::int32_t(2 + random.Below(6));
    std::vector<std::int64_t> capacity;
    for (std::int32_t l = 0; l < links; ++l) capacity.push_back(std::int64_t(100 + random.Below(2000)));
    std::vector<Flow> flows;
    for (auto count = 1 + random.Below(12); count > 0; --count) {
      const auto up = std::int32_t(random.Below(std::uint64_t(links)));
      const auto down = (up + 1 + std::int32_t(random.Below(std::uint64_t(links - 1)))) % links;
      flows.push_back(
          FlowOver(up, down, std::int64_t(50 + random.Below(900)), 1 + std::int64_t(random.Below(3))));
    }
    Sharing(capacity).Share(flows, {});
    std::vector<double> carried(capacity.size(), 0), largest(capacity.size(), 0);
    for (const Flow& flow : flows) {
      for (const std::int32_t link : {flow.links[0], flow.links[1]}) {
        carried[std::size_t(link)] += double(flow.mbps * flow.count) * flow.part;
        largest[std::size_t(link)] = std::max(largest[std::size_t(link)], flow.part);
      }
    }
    for (std::size_t l = 0; l < capacity.size(); ++l) EXPECT_LE(carried[l], double(capacity[l]) * (1 + 1e-9));
    for (const Flow& flow : flows) {
      if (flow.part >= 1) continue;
      const auto holds_back = [&](std::int32_t link) {
        const auto l = std::size_t(link);
        return carried[l] >= double(capacity[l]) * (1 - 1e-9) && flow.part >= largest[l] - 1e-9;
      };
      EXPECT_TRUE(holds_back(flow.links[0]) || holds_back(flow.links[1])) << flow.part;
    }
  }
}

}  // namespace
}  // namespace heddle::placement
