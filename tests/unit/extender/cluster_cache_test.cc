#include "extender/cluster_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "extender/resources.h"
#include "kube/packed.h"
#include "tests/unit/extender/cluster.h"

namespace heddle::extender {
namespace {

using test::Cluster;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr std::chrono::seconds kOverdue{31};  // FreshView's half minute, and a little

kube::Json GangObject(const std::string& name, const std::string& uid) {
  crds::Gang gang;
  gang.ns = "team";
  gang.name = name;
  gang.spec.owner = {"batch/v1", "Job", name, "uid-of-" + name};
  gang.spec.pods = 1;
  gang.spec.gpus_per_pod = 8;
  kube::Json object = crds::ToJson(gang);
  object["metadata"]["uid"] = uid;
  return object;
}

// A cache over a server, and whom it told of what.
class ClusterCacheTest : public ::testing::Test {
 protected:
  std::set<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  void Forget() {
    const std::lock_guard lock(mutex_);
    told_.clear();
  }

  Cluster cluster_{"su:1 node:2 gpu:8 nic:8 rail:8 spine:1 rate:400"};
  kube::Client client_{cluster_.server, cluster_.clock, {.field_manager = "heddle-extender"}};
  mutable std::mutex mutex_;
  std::set<std::string> told_;
  std::vector<std::string> left_;
  std::atomic<int> capacity_changes_{0};
  ClusterCache cache_{client_,
                      cluster_.clock,
                      base::Random(7),
                      {.gang_changed =
                           [this](const GangKey& key) {
                             const std::lock_guard lock(mutex_);
                             told_.insert(key.owner_uid);
                           },
                       .capacity_changed = [this] { ++capacity_changes_; },
                       .slot_left =
                           [this](const PodFacts& pod) {
                             const std::lock_guard lock(mutex_);
                             left_.push_back(pod.node + " by " + pod.key.name);
                           }}};
};

TEST_F(ClusterCacheTest, TellsOfAGangThatVanishedBeforeItsWatchEverSawIt) {
  const kube::Json gang = GangObject("train", "1");
  cache_.gangs().Saw(gang,
                     cluster_.clock.Now());  // made by us, deleted by somebody, and no watch said either
  const GangKey key = KeyOfGangObject(gang);
  ASSERT_NE(cache_.GangOf(key), nullptr);
  cluster_.clock.Advance(kOverdue);
  cache_.SettleOverdue({});
  EXPECT_EQ(cache_.GangOf(key), nullptr);
  EXPECT_THAT(told(), Contains("uid-of-train"));
}

TEST_F(ClusterCacheTest, TellsOfAPodThatIsGoneForNobodyElseWill) {
  cluster_.Submit({.name = "train", .pods = 1, .parallelism = "tp=8,dp=1"});
  const kube::Json pod = cluster_.Pod("train-0");
  cluster_.server.Remove(kube::kPods, kube::KeyOf(pod));
  cache_.pods().Saw(pod, cluster_.clock.Now());
  cluster_.clock.Advance(kOverdue);
  cache_.SettleOverdue({});
  EXPECT_EQ(cache_.pods().Get(kube::KeyOf(pod)), nullptr);
  EXPECT_THAT(told(), Contains(MembershipOf(pod).key.owner_uid));
}

TEST_F(ClusterCacheTest, TellsWhoLeftASlotToWhoeverComesNext) {
  const test::JobWords words{.name = "train", .pods = 4, .parallelism = "tp=8,dp=4"};
  cluster_.Submit(words);
  const auto edit = [this](const std::string& pod, const std::function<void(kube::Json&)>& change) {
    cluster_.server.Edit(kube::kPods, {"train", pod}, change);
  };
  const auto end = [&](const std::string& pod, const char* phase) {
    edit(pod, [phase](kube::Json& one) { one["status"]["phase"] = phase; });
  };
  for (const char* pod : {"train-0", "train-1", "train-2", "train-3"}) {
    edit(pod, [](kube::Json& one) {
      auto& annotations = one["metadata"]["annotations"];
      annotations["heddle.dev/rank"] = "0";
      annotations["heddle.dev/node"] = annotations["heddle.dev/gang-uid"] = "n";
      one["spec"]["schedulingGates"] = kube::Json::array();
      one["spec"]["nodeName"] = "n";
    });
  }
  edit("train-3", [](kube::Json& one) { one["metadata"]["annotations"].erase("heddle.dev/rank"); });
  cluster_.PutLonePod("lone", "n", 8);
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.synced(); }));
  end("train-0", "Succeeded");
  cluster_.server.Remove(kube::kPods, {"train", "train-0"});
  cluster_.server.Remove(kube::kPods, {"other", "lone"});
  end("train-3", "Failed");  // nobody can tell of which plan it is
  end("train-1", "Failed");
  cluster_.server.Remove(kube::kPods, {"train", "train-1"});
  cluster_.server.Remove(kube::kPods, {"train", "train-2"});
  const auto left = [this] {
    const std::lock_guard lock(mutex_);
    return left_;
  };
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return left().size() >= 2; }));
  EXPECT_THAT(left(), ElementsAre("n by train-1", "n by train-2")) << "each once";
}

TEST_F(ClusterCacheTest, SaysNothingOfWhatIsNotOverdue) {
  const kube::Json gang = GangObject("train", "1");
  cache_.gangs().Saw(gang, cluster_.clock.Now());
  cache_.SettleOverdue({});
  EXPECT_NE(cache_.GangOf(KeyOfGangObject(gang)), nullptr);
  EXPECT_THAT(told(), Not(Contains("uid-of-train")));
}

TEST_F(ClusterCacheTest, DoesNotBringBackWhatASilentWatchStillShows) {
  const kube::ObjectKey name{"team", "train"};
  cluster_.server.Put(kGangs, GangObject("train", ""));
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  const auto there = [&] { return cache_.synced() && cache_.gangs().Get(name) != nullptr; };
  ASSERT_TRUE(cluster_.server.WaitUntil(there));
  const GangKey key = KeyOfGangObject(*cache_.gangs().Get(name));
  cluster_.server.set_deliver_events(false);
  cluster_.server.Remove(kGangs, name);
  ASSERT_TRUE(cache_.ReadGangs({}));
  EXPECT_EQ(cache_.GangOf(key), nullptr);
  cluster_.clock.Advance(kOverdue);
  Forget();
  cache_.SettleOverdue({});
  EXPECT_EQ(cache_.GangOf(key), nullptr);
}

TEST_F(ClusterCacheTest, AListTellsOfWhatSomebodyTookBackBeforeAnyWatchSawIt) {
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.synced(); }));
  cluster_.server.set_deliver_events(false);
  const kube::Json gang = cluster_.server.Put(kGangs, GangObject("train", ""));
  cache_.gangs().Saw(gang, cluster_.clock.Now());
  cluster_.server.Remove(kGangs, kube::KeyOf(gang));
  ASSERT_TRUE(cache_.ReadGangs({}));
  EXPECT_EQ(cache_.GangOf(KeyOfGangObject(gang)), nullptr);
  EXPECT_THAT(told(), Contains("uid-of-train"));
}

TEST_F(ClusterCacheTest, DoesNotBringBackWhatALateWatchHasYetToShow) {
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.synced(); }));
  cluster_.server.set_deliver_events(false);
  const kube::Json gang = cluster_.server.Put(kGangs, GangObject("train", ""));
  const kube::ObjectKey name = kube::KeyOf(gang);
  cache_.gangs().Gone(name, kube::Uid(gang), cluster_.clock.Now());
  EXPECT_EQ(cache_.gangs().Get(name), nullptr);
  cluster_.server.set_deliver_events(true);
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.gangs().store().Get(name) != nullptr; }));
  EXPECT_EQ(cache_.gangs().Get(name), nullptr);
  EXPECT_EQ(cache_.GangOf(KeyOfGangObject(gang)), nullptr);
}

TEST_F(ClusterCacheTest, KeepsThePodThatTookAnOthersNameWhileItsEndWasRead) {
  const test::JobWords words{.name = "train", .pods = 1, .parallelism = "tp=8,dp=1"};
  const std::string job = cluster_.Submit(words);
  const kube::ObjectKey name{"train", "train-0"};
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil(
      [&] { return cache_.synced() && cache_.pods().store().Get(name) != nullptr; }));
  cluster_.server.set_deliver_events(false);
  const kube::Json last = cluster_.server.Edit(
      kube::kPods, name, [](kube::Json& pod) { pod["metadata"]["annotations"]["written"] = "by us"; });
  cache_.pods().Saw(last, cluster_.clock.Now());
  cluster_.server.Remove(kube::kPods, name);
  cluster_.clock.Advance(kOverdue);
  // Between the server's answer and its arrival the watch catches up.
  cluster_.server.Intercept([&](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
    if (request.method != "GET" || request.key != name) return std::nullopt;
    cluster_.PutPod(words, job, 0);
    cluster_.server.set_deliver_events(true);
    EXPECT_TRUE(cluster_.server.WaitUntil([&] {
      const kube::ObjectPtr next = cache_.pods().store().Get(name);
      return next != nullptr && kube::Uid(*next) != kube::Uid(last);
    }));
    return test::StatusResponse(404, "", "it was not there");
  });
  cache_.SettleOverdue({});
  cluster_.server.Intercept(nullptr);
  EXPECT_NE(cache_.pods().Get(name), nullptr);
  const GangKey gang = MembershipOf(last).key;
  EXPECT_TRUE(cluster_.server.WaitUntil([&] { return cache_.PodsOf(gang).objects.size() == 1; }));
}

TEST_F(ClusterCacheTest, ForgetsTheGangOfAPodThatIsMadeNoGangsPod) {
  cluster_.Submit({.name = "train", .pods = 1, .parallelism = "tp=8,dp=1"});
  const kube::Json pod = cluster_.Pod("train-0");
  const GangKey gang = MembershipOf(pod).key;
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.AllGangs().contains(gang); }));
  cluster_.server.Edit(kube::kPods, kube::KeyOf(pod),
                       [](kube::Json& one) { one["spec"].erase("schedulingGates"); });
  EXPECT_TRUE(cluster_.server.WaitUntil([&] { return !cache_.AllGangs().contains(gang); }));
  EXPECT_FALSE(cache_.KnowsGangPod(kube::Uid(pod)));
}

// The machines are kept once, in the fabrics, so what changes is read anew and the rest taken over.
TEST_F(ClusterCacheTest, FabricsFollowTheMachineThatChangedAndKeepTheOther) {
  const auto publish = [this](const std::string& name, const auto& edit) {
    auto topology = crds::NodeTopologyFromJson(*cluster_.server.Find(kNodeTopologies, {"", name}));
    ASSERT_TRUE(topology);
    edit(topology->status);
    topology->status.hash = topology::ContentHash(topology->status.node);
    cluster_.server.Put(kNodeTopologies, crds::ToJson(*topology));
    ASSERT_TRUE(cache_.ReadAll({}));
  };
  const auto machine = [](const SnapshotInputs& inputs, std::size_t node) -> const topology::Node& {
    return inputs.fabrics->fabrics[0]->nodes[node].node;
  };
  ASSERT_TRUE(cache_.ReadAll({}));
  const SnapshotInputs unhashed = cache_.Inputs(std::nullopt);
  for (const auto& topology : unhashed.topologies) {
    publish(topology->name, [](crds::NodeTopologyStatus&) {});  // as an agent does, with a hash
  }
  const SnapshotInputs first = cache_.Inputs(std::nullopt);
  ASSERT_EQ(first.fabrics->fabrics.size(), 1u);
  ASSERT_EQ(first.topologies.size(), 2u);
  const std::string changed = first.topologies[0]->name, other = first.topologies[1]->name;

  publish(other, [](crds::NodeTopologyStatus& status) {
    crds::Grant grant;
    grant.pod_namespace = "team";
    grant.pod_name = "a";
    grant.container = "main";
    grant.gpus = {{0, ""}};
    status.grants.push_back(std::move(grant));
  });
  const SnapshotInputs granted = cache_.Inputs(std::nullopt);
  EXPECT_EQ(granted.fabrics, first.fabrics) << "a grant changes no machine";
  EXPECT_EQ(granted.topologies[1]->grants.size(), 1u);
  publish(other, [](crds::NodeTopologyStatus& status) {
    status.congestion = {{"mlx5_0", 1, base::WallTime(), "70000 CNPs handled in 1 min"}};
  });
  EXPECT_EQ(cache_.Inputs(std::nullopt).fabrics, first.fabrics) << "neither does congestion";

  publish(changed, [](crds::NodeTopologyStatus& status) {
    status.node.gpus[3].healthy = false;
    status.node.gpus[3].unhealthy_reason = "XID 79";
  });
  const SnapshotInputs broken = cache_.Inputs(std::nullopt);
  EXPECT_FALSE(machine(broken, 0).gpus[3].healthy);
  EXPECT_EQ(machine(broken, 1), machine(first, 1));
  EXPECT_TRUE(broken.fabrics->faulty.contains(changed));

  publish(changed, [](crds::NodeTopologyStatus& status) { status.observed_at.reset(); });
  const SnapshotInputs silent = cache_.Inputs(std::nullopt);
  EXPECT_EQ(silent.fabrics->unusable.at(changed), "NoTopology");
  ASSERT_EQ(silent.fabrics->fabrics[0]->nodes.size(), 1u);
  EXPECT_EQ(machine(silent, 0), machine(first, 1));

  publish(changed, [](crds::NodeTopologyStatus& status) {
    status.node.gpus[3].healthy = true;
    status.node.gpus[3].unhealthy_reason.clear();
    status.observed_at = base::WallTime(std::chrono::seconds(1));
  });
  const SnapshotInputs back = cache_.Inputs(std::nullopt);
  ASSERT_EQ(back.fabrics->fabrics[0]->nodes.size(), 2u);
  EXPECT_EQ(machine(back, 0), machine(first, 0));
}

TEST_F(ClusterCacheTest, CongestionWakesNobodyWhoWaitsForGpus) {
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.synced(); }));
  const std::string node = kube::Name(cluster_.server.All(kNodeTopologies)[0]);
  const auto publish = [&](const auto& edit) {
    auto topology = crds::NodeTopologyFromJson(*cluster_.server.Find(kNodeTopologies, {"", node}));
    ASSERT_TRUE(topology);
    edit(topology->status);
    cluster_.server.Put(kNodeTopologies, crds::ToJson(*topology));
  };
  const int first = capacity_changes_;
  publish([](crds::NodeTopologyStatus& status) { status.boot_id = "1"; });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return capacity_changes_ > first; }));
  const int before = capacity_changes_;
  publish([](crds::NodeTopologyStatus& status) {
    status.congestion = {{"mlx5_0", 1, base::WallTime(), "70000 CNPs handled in 1 min"}};
  });
  publish([](crds::NodeTopologyStatus& status) { status.congestion.clear(); });
  publish([](crds::NodeTopologyStatus& status) { status.node.gpus[3].healthy = false; });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return capacity_changes_ > before; }));
  EXPECT_EQ(capacity_changes_, before + 1);
}

TEST_F(ClusterCacheTest, AFabricsStatusWakesNobodyAndBuildsNothingAnew) {
  crds::Fabric fabric;
  fabric.name = "default";
  const auto publish = [&] { cluster_.server.Put(kFabrics, crds::ToJson(fabric)); };
  publish();
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(
      cluster_.server.WaitUntil([&] { return cache_.synced() && cluster_.server.open_streams() >= 5; }));
  const SnapshotInputs first = cache_.Inputs(std::nullopt);
  const int before = capacity_changes_;
  cluster_.clock.Advance(std::chrono::seconds(1));
  fabric.status.rails = 8;
  publish();
  ASSERT_TRUE(
      cluster_.server.WaitUntil([&] { return cache_.HeardAt().at("fabrics") == cluster_.clock.Now(); }));
  EXPECT_EQ(cache_.Inputs(std::nullopt).fabrics, first.fabrics);
  fabric.spec.excluded_nodes = {first.topologies[0]->name};
  publish();
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return capacity_changes_ > before; }));
  EXPECT_EQ(capacity_changes_, before + 1) << "by the exclusion alone";
  EXPECT_EQ(cache_.Inputs(std::nullopt).fabrics->unusable.at(first.topologies[0]->name), "Excluded");
}

TEST_F(ClusterCacheTest, KeepsNodesOutThatAFabricExcludesAlsoOnceItsSpecCannotBeRead) {
  crds::Fabric fabric;
  fabric.name = "default";
  const std::string node = kube::Name(cluster_.server.All(kNodeTopologies)[0]);
  fabric.spec.excluded_nodes = {node};
  cluster_.server.Put(kFabrics, crds::ToJson(fabric));
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(
      cluster_.server.WaitUntil([&] { return cache_.synced() && cluster_.server.open_streams() >= 5; }));
  ASSERT_EQ(cache_.Inputs(std::nullopt).fabrics->unusable.at(node), "Excluded");
  const int before = capacity_changes_;
  cluster_.server.Edit(kFabrics, {"", "default"}, [](kube::Json& one) {
    one["spec"] = {{"rails", "eight"}, {"excludedNodes", "all"}};
  });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return capacity_changes_ > before; }));
  EXPECT_EQ(cache_.Inputs(std::nullopt).fabrics->unusable.at(node), "Excluded");
}

TEST_F(ClusterCacheTest, BeginsToLeadByTheFabricsOfNow) {
  const std::string node = kube::Name(cluster_.server.All(kNodeTopologies)[0]);
  const auto exclude = [&](const char* name) {
    crds::Fabric fabric;
    fabric.name = name;
    fabric.spec.excluded_nodes = {node};
    cluster_.server.Put(kFabrics, crds::ToJson(fabric));
  };
  const auto excluded = [&] { return cache_.Inputs(std::nullopt).fabrics->excluded.contains(node); };
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.synced(); }));
  cluster_.server.set_deliver_events(false);
  exclude("ib");
  EXPECT_FALSE(excluded()) << "the watch has not told";
  ASSERT_TRUE(cache_.ReadAll({}));
  EXPECT_TRUE(excluded());
  // Nor will the watch tell of its end.
  cluster_.server.Remove(kFabrics, {"", "ib"});
  cluster_.clock.Advance(kOverdue);
  cache_.SettleOverdue({});
  EXPECT_FALSE(excluded());
}

TEST_F(ClusterCacheTest, LetsGoOfAFabricThatWasMadeAnewAndDeletedWhileItsWatchStoodStill) {
  const std::string node = kube::Name(cluster_.server.All(kNodeTopologies)[0]);
  const auto excluded = [&] { return cache_.Inputs(std::nullopt).fabrics->excluded.contains(node); };
  crds::Fabric fabric;
  fabric.name = "ib";
  cluster_.server.Put(kFabrics, crds::ToJson(fabric));
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return cache_.synced(); }));
  cluster_.server.set_deliver_events(false);
  cluster_.server.Remove(kFabrics, {"", "ib"});
  fabric.spec.excluded_nodes = {node};
  cluster_.server.Put(kFabrics, crds::ToJson(fabric));
  ASSERT_TRUE(cache_.ReadAll({}));
  ASSERT_TRUE(excluded());
  cluster_.server.Remove(kFabrics, {"", "ib"});
  ASSERT_TRUE(cache_.ReadAll({}));
  EXPECT_FALSE(excluded());
}

TEST_F(ClusterCacheTest, DoesNotReadFabricsAgainThatTheWatchHasToldMeanwhile) {
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(
      cluster_.server.WaitUntil([&] { return cache_.synced() && cluster_.server.open_streams() >= 5; }));
  cluster_.server.set_deliver_events(false);
  crds::Fabric fabric;
  fabric.name = "ib";
  cluster_.server.Put(kFabrics, crds::ToJson(fabric));
  ASSERT_TRUE(cache_.ReadAll({}));
  const int before = capacity_changes_;
  cluster_.server.set_deliver_events(true);
  ASSERT_TRUE(cluster_.server.WaitUntil([&] { return capacity_changes_ > before; }));
  cluster_.clock.Advance(kOverdue);
  cluster_.server.ClearRequests();
  cache_.SettleOverdue({});
  EXPECT_THAT(cluster_.server.lines(), Not(Contains("LIST fabrics")));
}

TEST_F(ClusterCacheTest, BeginsToLeadByNamesAndVersionsOfWhatItHas) {
  cluster_.Submit({.name = "train", .pods = 1, .parallelism = "tp=8,dp=1"});
  std::jthread watching([this](const std::stop_token& stop) { cache_.Run(stop); });
  ASSERT_TRUE(
      cluster_.server.WaitUntil([&] { return cache_.synced() && cluster_.server.open_streams() >= 5; }));
  const kube::ObjectKey stays = kube::KeyOf(cluster_.Pod("train-0"));
  cluster_.server.set_deliver_events(false);
  const std::string node = kube::Name(cluster_.server.All(kNodeTopologies)[0]);
  auto topology = crds::NodeTopologyFromJson(*cluster_.server.Find(kNodeTopologies, {"", node}));
  ASSERT_TRUE(topology);
  topology->status.node.gpus[3].healthy = false;
  cluster_.server.Put(kNodeTopologies, crds::ToJson(*topology));
  cluster_.server.ClearRequests();
  ASSERT_TRUE(cache_.ReadAll({}));
  // Threads of their own ask meanwhile which frameworks' kinds there are.
  std::vector<std::string> asked = cluster_.server.lines();
  std::erase_if(asked, [](const std::string& line) {
    const auto kind = line.substr(line.find(' ') + 1);
    const auto is = [&kind](const char* of) { return kind.starts_with(of); };
    return line.starts_with("WATCH") || !(is("fabrics") || is("nodetopologies") || is("pods") || is("gangs"));
  });
  EXPECT_THAT(asked, ElementsAre("LIST fabrics", "LIST nodetopologies", "GET nodetopologies " + node,
                                 "LIST pods", "LIST gangs"));
  EXPECT_TRUE(cache_.Inputs(std::nullopt).fabrics->faulty.contains(node));
  const kube::ObjectPtr pod = cache_.pods().Get(stays);
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(ReadPod(*pod).demand.gpus, 8) << "not its head alone";
}

TEST_F(ClusterCacheTest, PodsArePackedAndCountAsBefore) {
  cluster_.Submit({.name = "train", .pods = 1, .parallelism = "tp=8,dp=1"});
  const std::string node = crds::NodeTopologyFromJson(cluster_.server.All(kNodeTopologies)[0])->name;
  cluster_.PutLonePod("notebook", node, 2);
  ASSERT_TRUE(cache_.ReadAll({}));
  const kube::ObjectPtr lone = cache_.pods().Get({"other", "notebook"});
  ASSERT_NE(lone, nullptr);
  EXPECT_TRUE(kube::IsPacked(*lone));
  EXPECT_EQ(ReadPod(*lone).demand.gpus, 2);
  const kube::ObjectPtr ranked = cache_.pods().Get(kube::KeyOf(cluster_.Pod("train-0")));
  ASSERT_NE(ranked, nullptr);
  EXPECT_TRUE(kube::IsPacked(*ranked));
  EXPECT_EQ(ReadPod(*ranked).terms->said.at(std::string(crds::keys::kParallelism)), "tp=8,dp=1");
}

}  // namespace
}  // namespace heddle::extender
