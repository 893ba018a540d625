#include "extender/census.h"

#include <gtest/gtest.h>

#include "extender/lost_nodes.h"
#include "tests/unit/extender/published.h"
#include "topology/synthetic.h"

namespace heddle::extender {
namespace {

// Two scalable units of four servers with eight GPUs each, or another cluster.
class Stage {
 public:
  explicit Stage(const char* cluster = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2 rate:400") {
    const auto parsed = topology::ParseSynthetic(cluster);
    for (const topology::Node& node : parsed->nodes) {
      auto object = std::make_shared<crds::NodeTopology>();
      object->name = node.name;
      object->status.node = node;
      object->status.observed_at = base::WallTime(std::chrono::seconds(1));
      topologies.push_back(object);
      auto facts = std::make_shared<NodeFacts>();
      facts->name = node.name;
      facts->ready = true;
      facts->gpus = int(node.gpus.size());
      facts->gpu_resource = "nvidia.com/gpu";
      nodes.push_back(facts);
    }
  }
  void Bind(const std::string& name, std::size_t node, int gpus) {
    auto pod = std::make_shared<PodFacts>();
    pod->key = {"other", name};
    pod->uid = name;
    pod->gang = {"other", name, 0};
    pod->node = nodes[node]->name;
    pod->demand.gpus = gpus;
    pod->demand.gpu_resource = "nvidia.com/gpu";
    pods.push_back(pod);
  }
  Census Take() const {
    SnapshotInputs inputs;
    test::Publish(topologies, {}, inputs);
    inputs.nodes = std::vector<Shared<NodeFacts>>(nodes.begin(), nodes.end());
    inputs.pods = std::vector<Shared<PodFacts>>(pods.begin(), pods.end());
    inputs.gangs = std::vector<Shared<crds::Gang>>(gangs.begin(), gangs.end());
    return TakeCensus(TakeSnapshot(inputs));
  }

  std::vector<std::shared_ptr<crds::NodeTopology>> topologies;
  std::vector<std::shared_ptr<NodeFacts>> nodes;
  std::vector<std::shared_ptr<PodFacts>> pods;
  std::vector<std::shared_ptr<crds::Gang>> gangs;
};

TEST(Census, AnEmptyClusterIsFreeAndWhole) {
  const Census census = Stage().Take();
  EXPECT_EQ(census.free, 64);
  EXPECT_EQ(census.bound + census.reserved + census.unhealthy + census.unusable, 0);
  EXPECT_EQ(census.whole_nodes, 8);
  EXPECT_EQ(census.whole_domains, (std::map<int, int>{{8, 8}}));
  EXPECT_EQ(census.free_on_shared_nodes, 0);
  EXPECT_EQ(census.fit[0], 8);
  EXPECT_EQ(census.fit[1], 4);
  EXPECT_EQ(census.fit[2], 2);
  EXPECT_EQ(census.fit[3], 0) << "no unit has eight nodes, however many are free";
  EXPECT_EQ(census.largest, 4);
}

TEST(Census, CountsEveryGpuOnce) {
  Stage stage;
  stage.Bind("half", 0, 4);
  stage.topologies[1]->status.node.gpus[3].healthy = false;
  stage.topologies[1]->status.node.gpus[3].unhealthy_reason = "XID 79";
  stage.nodes[2]->ready = false;
  stage.nodes[3]->cordoned = true;
  auto gang = std::make_shared<crds::Gang>();
  gang->ns = "train";
  gang->name = "llama";
  gang->spec.owner.uid = "owner";
  gang->spec.pods = 1;
  gang->status.placement = crds::ToColumns({{stage.nodes[4]->name, 0xFF, {}}}, 1);
  stage.gangs.push_back(gang);
  const Census census = stage.Take();
  EXPECT_EQ(census.bound, 4);
  EXPECT_EQ(census.reserved, 8);
  EXPECT_EQ(census.unhealthy, 1);
  EXPECT_EQ(census.unusable, 16);
  EXPECT_EQ(census.free, 4 + 7 + 3 * 8);
  EXPECT_EQ(census.free + census.bound + census.reserved + census.unhealthy + census.unusable, 64);
  EXPECT_EQ(census.free_on_shared_nodes, 4);
  EXPECT_EQ(census.whole_nodes, 4) << "a server with a broken GPU is whole in what it has";
  EXPECT_EQ(census.whole_domains, (std::map<int, int>{{8, 4}}));
  EXPECT_EQ(census.unusable_nodes, (std::map<std::string, int>{{"Cordoned", 1}, {"NotReady", 1}}));
  EXPECT_EQ(census.largest, 3);
}

// Of the six trays of the first unit two are left over for a domain of their own.
TEST(Census, CountsWholeDomainsBySizeAndASizeWithoutAnyAsNone) {
  Stage stage("su:2 node:6,4 gpu:4 nic:4 rail:4 machine:gb200 nvlink:4");
  EXPECT_EQ(stage.Take().whole_domains, (std::map<int, int>{{8, 1}, {16, 2}}));
  stage.Bind("on-the-small-one", 4, 4);
  EXPECT_EQ(stage.Take().whole_domains, (std::map<int, int>{{8, 0}, {16, 2}}));
  stage.Bind("on-a-large-one", 9, 1);
  EXPECT_EQ(stage.Take().whole_domains, (std::map<int, int>{{8, 0}, {16, 1}}));
}

TEST(Census, FreeGpusOnTakenServersAreFragments) {
  Stage stage;
  for (std::size_t node = 0; node < 8; ++node) stage.Bind("pod-" + std::to_string(node), node, 1);
  const Census census = stage.Take();
  EXPECT_EQ(census.free, 56);
  EXPECT_EQ(census.free_on_shared_nodes, 56);
  EXPECT_EQ(census.whole_nodes, 0);
  EXPECT_EQ(census.fit[0], 0);
}

crds::Gang GangWith(std::vector<std::pair<std::string_view, bool>> conditions, std::string reason = "") {
  crds::Gang gang;
  gang.status.reason = std::move(reason);
  for (const auto& [type, on] : conditions) {
    crds::SetCondition(gang.status.conditions,
                       {.type = std::string(type),
                        .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse});
  }
  return gang;
}

TEST(GangStates, AreReadOffTheConditions) {
  using crds::kCollected, crds::kDegraded, crds::kPlanned, crds::kReleased, crds::kRepairing, crds::kRunning;
  EXPECT_EQ(StateOf(GangWith({})), GangState::kCollecting);
  EXPECT_EQ(StateOf(GangWith({{kCollected, false}}, "FailedCreate")), GangState::kCollecting);
  EXPECT_EQ(StateOf(GangWith({{kCollected, false}}, "WaitingForQuota")), GangState::kWaiting);
  EXPECT_EQ(StateOf(GangWith({{kCollected, true}, {kPlanned, false}}, "NotEnoughFree")), GangState::kWaiting);
  EXPECT_EQ(StateOf(GangWith({{kPlanned, false}}, "BadParallelism")), GangState::kWaiting);
  EXPECT_EQ(StateOf(GangWith({{kCollected, true}, {kPlanned, true}})), GangState::kPlanned);
  EXPECT_EQ(StateOf(GangWith({{kPlanned, true}, {kReleased, true}, {kRunning, false}})),
            GangState::kReleased);
  const std::vector<std::pair<std::string_view, bool>> runs{
      {kPlanned, true}, {kReleased, true}, {kRunning, true}};
  EXPECT_EQ(StateOf(GangWith(runs)), GangState::kRunning);
  EXPECT_EQ(StateOf(GangWith(runs, std::string(kNodeLost))), GangState::kStalled);
  EXPECT_EQ(StateOf(GangWith({{kPlanned, true}, {kRepairing, true}})), GangState::kRepairing);
  EXPECT_EQ(StateOf(GangWith({{kRepairing, false}, {kDegraded, true}})), GangState::kDegraded);
}

TEST(GangStates, LeaveOutWhatHasEnded) {
  std::vector<Shared<crds::Gang>> gangs;
  gangs.push_back(
      std::make_shared<const crds::Gang>(GangWith({{crds::kEnded, true}, {crds::kRunning, true}})));
  gangs.push_back(std::make_shared<const crds::Gang>(GangWith({{crds::kRunning, true}})));
  const GangCount count = CountGangs(gangs);
  EXPECT_EQ(count[std::size_t(GangState::kRunning)], 1);
  EXPECT_EQ(GangStateName(GangState::kRunning), "running");
}

TEST(GangStates, LeaveOutWhatIsOnlyObservedAndDoesNotRun) {
  std::vector<Shared<crds::Gang>> gangs;
  for (const bool runs : {false, true}) {
    crds::Gang gang =
        GangWith({{crds::kCollected, true}, {crds::kPlanned, false}, {crds::kRunning, runs}}, "NotPriced");
    gang.status.observed.emplace();
    gangs.push_back(std::make_shared<const crds::Gang>(gang));
  }
  GangCount one{};
  one[std::size_t(GangState::kRunning)] = 1;
  EXPECT_EQ(CountGangs(gangs), one) << "none of them waits for a plan";
}

}  // namespace
}  // namespace heddle::extender
