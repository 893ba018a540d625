#include "crds/node_use.h"

#include <gtest/gtest.h>

namespace heddle::crds {
namespace {

TEST(OfferedGpus, AreThoseOfAllGpuResourcesTogether) {
  const auto count = [](const char* allocatable) {
    Json node;
    node["status"]["allocatable"] = Json::parse(allocatable);
    return OfferedGpusOf(node).value_or(OfferedGpus{-1, ""}).count;
  };
  EXPECT_EQ(count(R"({"cpu": "64", "nvidia.com/gpu": "8"})"), 8);
  EXPECT_EQ(count(R"({"nvidia.com/gpu": "8", "heddle.dev/gpu": 8})"), 16);
  EXPECT_EQ(count(R"({"nvidia.com/gpu": "1k"})"), 1000);
  EXPECT_EQ(count(R"({"nvidia.com/gpu": "8000m"})"), 8);
  EXPECT_EQ(count(R"({"nvidia.com/gpu": "9e18"})"), 1024);
  EXPECT_EQ(count(R"({"nvidia.com/gpu": "many"})"), 0);
  EXPECT_EQ(count(R"({"nvidia.com/mig-1g.10gb": "8"})"), 0);
  EXPECT_EQ(count("[]"), -1) << "it does not say";
  EXPECT_FALSE(OfferedGpusOf(Json::object()));
}

TEST(NodeUse, IsReadOffTheNode) {
  const auto use = [](const char* node) { return WhyOutOfUse(NodeUseOf(Json::parse(node))); };
  EXPECT_EQ(use(R"({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})"), "");
  EXPECT_EQ(use(R"({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})"), "NotReady");
  EXPECT_EQ(use(R"({"status": {"conditions": [{"type": "Ready", "status": "True"}]},
                    "spec": {"unschedulable": true}})"),
            "Cordoned");
  EXPECT_EQ(use("{}"), "NotReady");
  EXPECT_EQ(use(R"({"status": {"conditions": [null, {"type": 4}]}, "spec": {"unschedulable": "yes"}})"),
            "NotReady");
}

// Each is a reason, and comes before those after it.
TEST(WhyOutOfUse, HasItsReasonsInAnOrder) {
  NodeUse use;
  EXPECT_EQ(WhyOutOfUse(use), "") << "what nobody knows condemns none";
  use.gpus = GpuCounts{.allocatable = 8, .healthy = 8, .all = 8};
  EXPECT_EQ(WhyOutOfUse(use), "");
  use.gpus->allocatable = 7;
  EXPECT_EQ(WhyOutOfUse(use), kGpuCountMismatch);
  use.silent = true;
  EXPECT_EQ(WhyOutOfUse(use), "TopologyStale");
  use.published = kExcludedNode;
  EXPECT_EQ(WhyOutOfUse(use), kExcludedNode);
  use.cordoned = true;
  EXPECT_EQ(WhyOutOfUse(use), "Cordoned");
  use.ready = false;
  EXPECT_EQ(WhyOutOfUse(use), "NotReady");
  use.gone = true;
  EXPECT_EQ(WhyOutOfUse(use), "NodeGone");
}

TEST(CompareGpus, CountsTheHealthyOnesAndAll) {
  topology::Node node;
  node.gpus.resize(8);
  for (topology::Gpu& gpu : node.gpus) gpu.healthy = true;
  node.gpus[3].healthy = false;
  const GpuCounts gpus = CompareGpus(6, node);
  EXPECT_EQ(gpus.allocatable, 6);
  EXPECT_EQ(gpus.healthy, 7);
  EXPECT_EQ(gpus.all, 8);
}

}  // namespace
}  // namespace heddle::crds
