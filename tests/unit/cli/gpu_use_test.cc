#include "cli/gpu_use.h"

#include "kube/object.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

class GpuUse : public Stage {
 protected:
  std::vector<crds::NodeTopology> Topologies() {
    std::vector<crds::NodeTopology> topologies;
    for (const Json& object : server.All(ResourceOf(keys::kNodeTopology))) {
      topologies.push_back(*crds::NodeTopologyFromJson(object));
    }
    return topologies;
  }
  std::map<std::string, PodGpus> Find() { return FindGpuUse(server.All(kube::kPods), Topologies()); }
  void SetUp() override { AddCluster("su:1 node:1 gpu:8 nic:8 rail:8 rate:400 transport:ib machine:h100"); }
};

TEST_F(GpuUse, GivesSilentPodsTheLowestFreeIndexesInOrderOfPodIndex) {
  const Json second = AddPod("a", 1, "node-00", 4);
  const Json first = AddPod("a", 0, "node-00", 4);
  const auto use = Find();
  EXPECT_EQ(use.at(kube::Uid(first)), (PodGpus{0x0f, GpuSource::kAssumed}));
  EXPECT_EQ(use.at(kube::Uid(second)), (PodGpus{0xf0, GpuSource::kAssumed}));
}

TEST_F(GpuUse, LeavesToOthersWhatTheirAnnotationsSay) {
  const Json silent = AddPod("a", 0, "node-00", 2);
  const Json planned = AddPod("b", 0, "node-00", 4, "0,1,4,5");
  const auto use = Find();
  EXPECT_EQ(use.at(kube::Uid(planned)), (PodGpus{0x33, GpuSource::kAnnotated, 0x33}));
  EXPECT_EQ(use.at(kube::Uid(silent)), (PodGpus{0x0c, GpuSource::kAssumed}));
}

TEST_F(GpuUse, BelievesTheKubeletMoreThanThePlan) {
  const Json pod = AddPod("a", 0, "node-00", 2, "0,1");
  server.Edit(ResourceOf(keys::kNodeTopology), {"", "node-00"}, [&](Json& object) {
    crds::NodeTopology topology = *crds::NodeTopologyFromJson(object);
    topology.status.grants.push_back({.pod_namespace = "train",
                                      .pod_name = "a-0",
                                      .pod_uid = kube::Uid(pod),
                                      .container = "main",
                                      .gpus = {{.index = 6}, {.index = 7}}});
    object["status"] = crds::ToJson(topology)["status"];
  });
  EXPECT_EQ(Find().at(kube::Uid(pod)), (PodGpus{0xc0, GpuSource::kGranted, 0x03}));
}

TEST_F(GpuUse, KnowsThePodOfAGrantWithoutUidByItsName) {
  const Json pod = AddPod("a", 0, "node-00", 2, "0,1"), other = AddPod("b", 0, "node-00", 2, "2,3");
  server.Edit(ResourceOf(keys::kNodeTopology), {"", "node-00"}, [&](Json& object) {
    crds::NodeTopology topology = *crds::NodeTopologyFromJson(object);
    topology.status.grants.push_back({.pod_namespace = "train",
                                      .pod_name = "a-0",
                                      .container = "main",
                                      .gpus = {{.index = 6}, {.index = 7}}});
    object["status"] = crds::ToJson(topology)["status"];
  });
  const auto use = Find();
  EXPECT_EQ(use.at(kube::Uid(pod)), (PodGpus{0xc0, GpuSource::kGranted, 0x03}));
  EXPECT_EQ(use.at(kube::Uid(other)), (PodGpus{0x0c, GpuSource::kAnnotated, 0x0c}));
}

TEST_F(GpuUse, TellsPodsWithoutUidByTheirNames) {
  for (const char* name : {"a", "b"}) AddPod(name, 0, "node-00", 4);
  std::vector<Json> pods = server.All(kube::kPods);
  for (Json& pod : pods) pod["metadata"].erase("uid");
  const auto use = FindGpuUse(pods, Topologies());
  ASSERT_EQ(use.size(), 2U);
  EXPECT_EQ(use.at("train/a-0").positions, 0x0fU);
  EXPECT_EQ(use.at("train/b-0").positions, 0xf0U);
}

TEST_F(GpuUse, CountsNoFinishedPodAndNoPodWithoutRoom) {
  const Json done = AddPod("a", 0, "node-00", 8);
  server.Edit(kube::kPods, {"train", "a-0"}, [](Json& pod) { pod["status"]["phase"] = "Succeeded"; });
  const Json big = AddPod("b", 0, "node-00", 8);
  const Json late = AddPod("c", 0, "node-00", 1);
  const auto use = Find();
  EXPECT_FALSE(use.contains(kube::Uid(done)));
  EXPECT_EQ(use.at(kube::Uid(big)).positions, 0xffU);
  EXPECT_FALSE(use.contains(kube::Uid(late)));
}

TEST(GpusWanted, TakesTheSumOfContainersOrTheLargestInitContainer) {
  EXPECT_EQ(GpusWanted(Json::parse(R"({"spec":{"containers":[
      {"resources":{"limits":{"nvidia.com/gpu":"4"}}},{"resources":{"requests":{"nvidia.com/gpu":2}}}],
      "initContainers":[{"resources":{"limits":{"nvidia.com/gpu":"8"}}}]}})")),
            8);
  EXPECT_EQ(GpusWanted(Json::parse(R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"4"}}}],
      "initContainers":[{"restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})")),
            5)
      << "a sidecar runs beside them";
  EXPECT_EQ(GpusWanted(Json::parse(R"({"spec":{"containers":"x"}})")), 0);
}

}  // namespace
}  // namespace heddle::cli
