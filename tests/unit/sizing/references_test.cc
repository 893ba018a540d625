// Designs that others have published, row by row, with the page that says so.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sizing/design.h"

namespace heddle::sizing {
namespace {

struct Published {
  int units;
  std::int64_t nodes;
  std::int64_t leaves, spines, cores;
  std::int64_t node_leaf, leaf_spine, spine_core;
};

Design Fits(const Request& request) {
  const auto answer = DesignFabric(request);
  const Design* const design = std::get_if<Design>(&answer);
  EXPECT_NE(design, nullptr) << std::get<Refusal>(answer).sentence;
  return design == nullptr ? Design{} : *design;
}

std::int64_t CountOf(const Design& design, std::string_view tier) {
  for (const SwitchTier& one : design.tiers) {
    if (one.name == tier) return one.switches;
  }
  return 0;
}

void ExpectPublished(const Request& like, const std::vector<Published>& rows) {
  for (const Published& row : rows) {
    SCOPED_TRACE(fmt::format("{} units, {} nodes", row.units, row.nodes));
    Request request = like;
    request.gpus = row.nodes * 8;
    const Design design = Fits(request);
    EXPECT_EQ(std::int64_t(design.tree.unit_nodes.size()), row.units);
    EXPECT_EQ(CountOf(design, "leaf"), row.leaves);
    EXPECT_EQ(CountOf(design, "spine"), row.spines);
    EXPECT_EQ(CountOf(design, "core"), row.cores);
    EXPECT_EQ(design.cable_count(Segment::kNodeLeaf), row.node_leaf);
    EXPECT_EQ(design.cable_count(Segment::kLeafSpine), row.leaf_spine);
    EXPECT_EQ(design.cable_count(Segment::kSpineCore), row.spine_core);
    EXPECT_THAT(Check(design), testing::IsEmpty());
  }
}

// https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-h100/latest/network-fabrics.html,
// table 4. Its "Compute and UFM" counts four cables of the fabric manager beside those of nodes: 252, 508, 764, 1020.
TEST(References, CountTheUnitsOfADgxH100SuperPod) {
  ExpectPublished({.machine = "h100", .switch_word = "qm9700"}, {{1, 31, 8, 4, 0, 252 - 4, 256, 0},
                                                                 {2, 63, 16, 8, 0, 508 - 4, 512, 0},
                                                                 {3, 95, 24, 16, 0, 764 - 4, 768, 0},
                                                                 {4, 127, 32, 16, 0, 1020 - 4, 1024, 0}});
}

// NVIDIA RA-11333-001 V11 (2023-09-22), table 3 "Larger SuperPOD component counts".
TEST(References, CountTheLargerDgxH100SuperPods) {
  ExpectPublished({.machine = "h100", .switch_word = "qm9700"},
                  {{4, 128, 32, 16, 0, 1024, 1024, 0},
                   {8, 256, 64, 32, 0, 2048, 2048, 0},
                   {16, 512, 128, 128, 64, 4096, 4096, 4096},
                   {32, 1024, 256, 256, 128, 8192, 8192, 8192},
                   {64, 2048, 512, 512, 256, 16384, 16384, 16384}});
}

// https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-b200/latest/dgx-superpod-architecture.html
TEST(References, CountTheDgxB200SuperPods) {
  ExpectPublished({.machine = "b200", .switch_word = "qm9700"},
                  {{2, 64, 16, 8, 0, 512, 512, 0},
                   {4, 128, 32, 16, 0, 1024, 1024, 0},
                   {8, 256, 64, 32, 0, 2048, 2048, 0},
                   {16, 512, 128, 128, 64, 4096, 4096, 4096},
                   {32, 1024, 256, 256, 128, 8192, 8192, 8192},
                   {64, 2048, 512, 512, 256, 16384, 16384, 16384}});
}

// https://docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300-xdr/latest/dgx-superpod-architecture.html,
// table 3: units of 72 nodes on switches of 144 ports. Its last row says 9,216 GPUs for 1,296 nodes of eight.
TEST(References, CountTheDgxB300SuperPodsOfQuantumX800) {
  ExpectPublished({.machine = "b300", .switch_word = "q3400"}, {{1, 72, 8, 4, 0, 576, 576, 0},
                                                                {2, 144, 16, 8, 0, 1152, 1152, 0},
                                                                {4, 288, 32, 18, 0, 2304, 2304, 0},
                                                                {8, 576, 64, 36, 0, 4608, 4608, 0},
                                                                {18, 1296, 144, 72, 0, 10368, 10368, 0}});
}

// https://docs.nvidia.com/dgx-superpod/reference-architecture/scalable-infrastructure-b300/latest/dgx-superpod-architecture.html,
// table 3: two planes of 400 Gb/s; the table counts a cable of both planes once.
TEST(References, CountTheTwinPlanesOfADgxB300SuperPod) {
  ExpectPublished(
      {.machine = "b300", .planes = 2, .transport = topology::Transport::kRoce, .switch_word = "sn5600"},
      {{1, 64, 16, 8, 0, 2 * 512, 2 * 512, 0},
       {2, 128, 32, 16, 0, 2 * 1024, 2 * 1024, 0},
       {4, 256, 64, 32, 0, 2 * 2048, 2 * 2048, 0},
       {8, 512, 128, 64, 0, 2 * 4096, 2 * 4096, 0},
       {16, 1024, 256, 128, 0, 2 * 8192, 2 * 8192, 0}});
}

// The 256 GPUs of 32 servers: https://www.juniper.net/documentation/us/en/software/jvd/jvd-ai-dc-apstra-nvidia-weka/
// calculating-leaf-spine-servers-gpu.html. A stripe of DGX H100 has a leaf for each of eight rails, and as many servers as
// a leaf has ports, halved: 32 with 64 ports of 400 Gb/s, as Tomahawk 4 has, as many links up as down, over the
// four spines that its recommendations ask for at least.
TEST(References, CountTheStripeOf256Gpus) {
  ExpectPublished({.machine = "h100", .transport = topology::Transport::kRoce, .switch_word = "tomahawk4"},
                  {{1, 32, 8, 4, 0, 256, 256, 0}});
}

// Textbook: k ports hold k^2/2 hosts in two tiers and k^3/4 in three (Al-Fares, SIGCOMM 2008).
TEST(References, HoldWhatFatTreesHold) {
  for (const int ports : {16, 32, 64, 128}) {
    const TreeWish wish{.wiring = Wiring::kRailOptimised, .ports = ports, .nodes = 1, .nics = 8, .leaves = 8};
    EXPECT_EQ(Capacity(wish, 2) * 8, std::int64_t(ports) * ports / 2);
    EXPECT_EQ(Capacity(wish, 3) * 8, std::int64_t(ports) * ports * ports / 4);
  }
}

// Alibaba HPN 7.0 (SIGCOMM 2024, doi 10.1145/3651890.3672265): 51.2 Tb/s switches, two planes of 200 Gb/s, segments of
// 128 nodes: 1,024 GPUs under 16 leaves, at 128 x 200 down for 60 x 400 up, about 15,360 GPUs in two tiers of a pod.
TEST(References, HoldASegmentAndAPodOfHpn) {
  Request request{.gpus = 1024,
                  .machine = "h100",
                  .planes = 2,
                  .leaf = {16, 15},
                  .transport = topology::Transport::kRoce,
                  .switch_word = "tomahawk5",
                  .unit_nodes = 128};
  const Design segment = Fits(request);
  EXPECT_EQ(CountOf(segment, "leaf"), 16);
  EXPECT_GE(segment.most_gpus, 15 * 1024);
}

// MegaScale (arXiv 2402.15627) section 3.6: Tomahawk 4, 64 ports of 400 Gb/s, 32 down and 32 up, 200 Gb/s NICs that
// share ports two by two: 64 nodes of eight under one set of leaves, "more than 10,000 GPUs" in three tiers.
TEST(References, HoldTheUnitsOfMegaScale) {
  Request request{
      .gpus = 12'288, .machine = "a100", .transport = topology::Transport::kRoce, .switch_word = "tomahawk4"};
  const Design design = Fits(request);
  EXPECT_EQ(design.radix, 128);
  EXPECT_EQ(design.tree.unit_nodes.front(), 64);
  EXPECT_EQ(design.tree.tiers, 3);
}

}  // namespace
}  // namespace heddle::sizing
