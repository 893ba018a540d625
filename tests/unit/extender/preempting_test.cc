#include "extender/preempting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/pod_words.h"
#include "tests/unit/extender/published.h"
#include "topology/synthetic.h"

namespace heddle::extender {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = RoomChoice::Kind;
using Victims = std::vector<std::size_t>;

const base::WallTime kNow{std::chrono::seconds(1'800'000'000)};
constexpr std::chrono::hours kHour{1};

constexpr const char* kFourTrays = "rack:1 tray:4 gpu:4 nic:4 rail:4 machine:gb200 nvl";
constexpr std::uint32_t kTray = 0xF;

// Four nodes of eight GPUs, and a gang of priority 100 that asks for whole ones.
class Room {
 public:
  explicit Room(int pods, const char* line = "su:1 node:4 gpu:8 nic:8 rail:8", int gpus = 8) {
    const auto parsed = topology::ParseSynthetic(line);
    for (const topology::Node& node : parsed->nodes) Add(node);
    const std::string cut = "tp=" + std::to_string(gpus) + ",dp=" + std::to_string(pods);
    for (int i = 0; i < pods; ++i) {
      kube::Json pod = test::GatedPod(i, cut, gpus);
      pod["spec"]["priority"] = 100;
      pods_.push_back(test::Cached(std::move(pod)));
    }
    job_ = test::IndexedJob(pods);
  }

  // Whole nodes, or these GPUs of one.
  Holder& Gang(const std::string& name, const std::vector<int>& on, int priority = 0,
               std::uint32_t gpus = 0xFF) {
    auto gang = std::make_shared<crds::Gang>();
    gang->ns = "train";
    gang->name = name;
    gang->spec.owner.uid = name;
    gang->spec.pods = int(on.size());
    std::vector<crds::PlacedPod> rows;
    for (const int node : on) rows.push_back({nodes[std::size_t(node)], gpus, {}});
    gang->status.placement = crds::ToColumns(rows, 1);
    inputs_.gangs = With<crds::Gang>(inputs_.gangs, gang);
    holders.push_back({.name = "gang train/" + name,
                       .ns = "train",
                       .owner_uid = name,
                       .priority = priority,
                       .unsafe_since = kNow - kHour});
    return holders.back();
  }
  Holder& Pod(const std::string& name, int node, int gpus, int priority = 0) {
    auto pod = std::make_shared<PodFacts>();
    pod->key = {"other", name};
    pod->uid = name;
    pod->gang = {"other", name + "-owner", 0};
    pod->node = nodes[std::size_t(node)];
    pod->demand.gpus = gpus;
    inputs_.pods = With<PodFacts>(inputs_.pods, pod);
    holders.push_back({.name = "pod other/" + name,
                       .ns = "other",
                       .owner_uid = name + "-owner",
                       .pod_uid = name,
                       .priority = priority,
                       .unsafe_since = kNow - kHour});
    return holders.back();
  }
  // A pod of four GPUs in another namespace, of no holder here.
  void Forged(const std::string& owner_uid, int node) {
    auto pod = std::make_shared<PodFacts>();
    pod->key = {"other", "forged"};
    pod->uid = "forged";
    pod->gang = {"other", owner_uid, 0};
    pod->node = nodes[std::size_t(node)];
    pod->demand.gpus = 4;
    inputs_.pods = With<PodFacts>(inputs_.pods, pod);
  }
  // These ranks of the gang are done ("0,2-3"), and their pods are gone.
  void Finish(const std::string& indexes, const std::set<int>& ranks) {
    job_["status"]["completedIndexes"] = indexes;
    std::vector<std::shared_ptr<const kube::Json>> left;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if (!ranks.contains(int(i))) left.push_back(pods_[i]);
    }
    pods_ = std::move(left);
  }
  void KeepSpares(int spares) { inputs_.spares = spares; }
  GangMembers Members() const { return ReadMembers({"train", "job-uid", 0}, &job_, ReadPods(pods_)); }
  Snapshot Taken() {
    test::Publish(topologies_, {}, inputs_);
    return TakeSnapshot(inputs_);
  }
  RoomChoice Choose(const std::set<std::string>& kept = {}, Spares spares = Spares::kLeave) {
    return ChooseRoom(Taken(), Members(), kept, spares, holders, kNow);
  }

  std::vector<std::string> nodes;
  std::vector<Holder> holders = [] {
    std::vector<Holder> some;
    some.reserve(64);
    return some;
  }();

 private:
  void Add(const topology::Node& node) {
    auto object = std::make_shared<crds::NodeTopology>();
    object->name = node.name;
    object->status.node = node;
    object->status.observed_at = kNow;
    topologies_.push_back(object);
    auto facts = std::make_shared<NodeFacts>();
    facts->name = node.name;
    facts->ready = true;
    facts->milli_cpu = 64'000;
    facts->memory_bytes = 1LL << 40;
    facts->pods = 110;
    facts->gpus = int(node.gpus.size());
    facts->gpu_resource = "nvidia.com/gpu";
    inputs_.nodes = With<NodeFacts>(inputs_.nodes, facts);
    nodes.push_back(node.name);
  }

  template <class T>
  static base::SharedList<Shared<T>> With(const base::SharedList<Shared<T>>& list, Shared<T> one) {
    std::vector<Shared<T>> more = list.items();
    more.push_back(std::move(one));
    return more;
  }

  std::vector<std::shared_ptr<crds::NodeTopology>> topologies_;
  SnapshotInputs inputs_;
  kube::Json job_;
  std::vector<std::shared_ptr<const kube::Json>> pods_;
};

TEST(ChooseRoom, TakesTheGangWhoseEndMakesRoom) {
  Room room(2);
  room.Gang("low", {0, 1, 2, 3});
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.kind, Kind::kVictims);
  EXPECT_EQ(choice.victims, Victims{0});
  EXPECT_THAT(choice.nodes, SizeIs(2));
  EXPECT_EQ(choice.sentence, "it preempts gang train/low (priority 0)");
}

TEST(ChooseRoom, TakesNobodyOfEqualOrHigherPriority) {
  Room room(2);
  room.Gang("equal", {0, 1}, 100);
  room.Gang("higher", {2, 3}, 101);
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.kind, Kind::kNone);
  EXPECT_EQ(choice.sentence, "");
}

TEST(ChooseRoom, MakesRoomForRanksThatAreNotDoneAlone) {
  Room room(4);
  room.Gang("low", {0});
  room.Gang("high", {3}, 200);
  EXPECT_EQ(room.Choose().kind, Kind::kNone) << "three nodes would be free, and it needs four";
  room.Finish("2", {2});
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.kind, Kind::kVictims);
  EXPECT_EQ(choice.victims, Victims{0});
  EXPECT_EQ(choice.nodes, (std::set<std::string>{room.nodes[0], room.nodes[1], room.nodes[2]}));
}

// Whoever asks has found no place, though two nodes are free: new gangs leave spares, for example.
TEST(ChooseRoom, TriesNothingWhereNobodyLeavesNorMayBeMadeTo) {
  Room room(2);
  room.Gang("equal", {0}, 100);
  room.Gang("queued", {1}).why_not = "it is Kueue's";
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.kind, Kind::kNone);
  EXPECT_THAT(choice.nodes, IsEmpty());
  EXPECT_EQ(choice.sentence, "of lower priority, but not to be preempted: gang train/queued (it is Kueue's)");
}

TEST(ChooseRoom, TakesNobodyWhereNothingHelps) {
  Room room(3);
  room.Gang("low", {0, 1});
  room.Gang("high", {2, 3}, 200);
  EXPECT_EQ(room.Choose().kind, Kind::kNone) << "two nodes would come free, and it needs three";
}

TEST(ChooseRoom, TakesTheLeastLostWork) {
  Room room(1);
  room.Gang("long", {0}).unsafe_since = kNow - 10 * kHour;
  room.Gang("short", {1}).unsafe_since = kNow - 2 * kHour;
  room.Gang("both", {2, 3}).unsafe_since = kNow - 2 * kHour;
  EXPECT_EQ(room.Choose().victims, Victims{1});
  room.holders[0].unsafe_since = kNow - std::chrono::minutes(3);  // it has written a checkpoint
  EXPECT_EQ(room.Choose().victims, Victims{0});
}

TEST(ChooseRoom, TakesTheFewestGpusWhereNoWorkIsLost) {
  Room room(1);
  room.Gang("a-large", {0, 1, 2}).unsafe_since.reset();
  room.Gang("b-small", {3}).unsafe_since.reset();
  EXPECT_EQ(room.Choose().victims, Victims{1});
}

TEST(ChooseRoom, GivesTiesToTheFirstName) {
  Room room(1);
  room.Gang("d", {0});
  room.Gang("c", {1});
  room.Gang("a", {2});
  room.Gang("b", {3});
  EXPECT_EQ(room.Choose().victims, Victims{2});
}

TEST(ChooseRoom, TakesWholeGangsAndNoMoreThanItNeeds) {
  Room room(3);
  room.Gang("pair", {0, 1}).unsafe_since = kNow - kHour;
  room.Gang("one", {2}).unsafe_since = kNow - kHour;
  room.Gang("other", {3}).unsafe_since = kNow - 5 * kHour;
  EXPECT_EQ(room.Choose().victims, (Victims{1, 0})) << "in the order of names";
}

TEST(ChooseRoom, TakesPodsOfNoGangToo) {
  Room room(1);
  room.Gang("gang", {0, 1, 2}).unsafe_since = kNow - 100 * kHour;
  room.Pod("one", 3, 4);
  room.Pod("two", 3, 2);
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.victims, (Victims{1, 2}));
  EXPECT_EQ(choice.nodes, std::set<std::string>{room.nodes[3]});
}

TEST(ChooseRoom, NamesWhoCannotYieldAndTakesAnother) {
  Room room(1);
  room.Gang("queued", {0, 1, 2}).why_not = "it is Kueue's";
  room.holders[0].unsafe_since.reset();
  room.Gang("free", {3});
  EXPECT_EQ(room.Choose().victims, Victims{1});
  room.holders[1].why_not = "a person resumed it";
  const RoomChoice none = room.Choose();
  EXPECT_EQ(none.kind, Kind::kNone);
  EXPECT_EQ(none.sentence,
            "of lower priority, but not to be preempted: gang train/free (a person resumed it), "
            "gang train/queued (it is Kueue's)");
}

TEST(ChooseRoom, AwaitsThoseWhoAreLeavingAndKeepsTheirNodes) {
  Room room(2);
  room.Gang("leaving", {0, 1}, 500).leaving = true;
  room.Gang("cheap", {2, 3}).unsafe_since.reset();
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.kind, Kind::kAwaited);
  EXPECT_THAT(choice.victims, IsEmpty());
  EXPECT_EQ(choice.nodes, (std::set<std::string>{room.nodes[0], room.nodes[1]}));
  EXPECT_EQ(choice.sentence, "room is being made: gang train/leaving is leaving");
}

TEST(ChooseRoom, ChoosesNobodyElseWhileThoseOfAnEarlierChoiceLeave) {
  Room room(3);
  room.Gang("leaving", {0, 1}).leaving = true;
  room.holders[0].leaving_for_us = true;
  room.Gang("low", {2});
  room.Gang("high", {3}, 200);
  EXPECT_EQ(room.Choose().kind, Kind::kAwaited) << "two nodes are not enough, but first they have to be free";
  room.holders[0].leaving_for_us = false;
  EXPECT_EQ(room.Choose().victims, Victims{1}) << "what leaves for another reason counts as free";
}

// A label of a pod may say the UID of an owner, and anybody may write it.
TEST(ChooseRoom, FreesNothingOfAPodElsewhereThatSaysTheSameOwner) {
  Room room(2);
  room.Gang("low", {0, 1}, 0, 0x01);
  room.Gang("high", {2, 3}, 200);
  ASSERT_EQ(room.Choose().kind, Kind::kVictims);
  room.Forged("low", 0);
  EXPECT_EQ(room.Choose().kind, Kind::kNone) << "four GPUs of the node stay taken";
}

TEST(ChooseRoom, LeavesNodesThatAreKeptForSomebodyElse) {
  Room room(2);
  room.Gang("a", {0, 1}).unsafe_since.reset();
  room.Gang("b", {2, 3});
  const RoomChoice choice = room.Choose({room.nodes[0]});
  EXPECT_EQ(choice.victims, Victims{1});
}

TEST(ChooseRoom, FreesNoGpuThatTwoClaim) {
  Room room(4);
  room.Gang("a", {0, 1, 2, 3});
  room.Gang("b", {0}, 200);
  EXPECT_EQ(room.Choose().kind, Kind::kNone);
}

TEST(ChooseRoom, FreesTheCpuOfItsVictims) {
  Room room(1, "su:1 node:1 gpu:8 nic:8 rail:8");
  room.Pod("hungry", 0, 8);
  EXPECT_EQ(room.Choose().victims, Victims{0});
}

TEST(ChooseRoom, CountsSparesAsRoomForAGangThatLostEveryRank) {
  Room room(3, kFourTrays, 4);
  room.KeepSpares(1);
  room.Gang("high", {0}, 200, kTray);
  room.Gang("low", {2}, 0, kTray);
  EXPECT_EQ(room.Choose().kind, Kind::kNone) << "three trays would be free, of which a new gang leaves one";
  const RoomChoice choice = room.Choose({}, Spares::kUse);
  EXPECT_EQ(choice.victims, Victims{1});
  EXPECT_EQ(choice.nodes, (std::set<std::string>{room.nodes[1], room.nodes[2], room.nodes[3]}));
}

// Or who was made to leave comes back to them, and is made to leave for ever.
TEST(ChooseRoom, MakesTheSparesFreeThatANewGangLeavesAndKeepsThemToo) {
  Room room(2, kFourTrays, 4);
  room.KeepSpares(1);
  room.Gang("high", {0}, 200, kTray);
  room.Gang("low", {3}, 0, kTray);
  const RoomChoice choice = room.Choose();
  EXPECT_EQ(choice.victims, Victims{1});
  EXPECT_EQ(choice.nodes, (std::set<std::string>{room.nodes[1], room.nodes[2], room.nodes[3]}));
  room.holders[1].leaving = true;
  EXPECT_EQ(room.Choose().sentence, "room is being made: gang train/low is leaving");
}

TEST(NodesToKeep, HasTheSparesThatANewGangLeaves) {
  Room room(2, kFourTrays, 4);
  room.KeepSpares(1);
  room.Gang("high", {0, 1, 2, 3}, 200, kTray);
  EXPECT_THAT(NodesToKeep(room.Taken(), room.Members(), Spares::kLeave), SizeIs(3));
  EXPECT_THAT(NodesToKeep(room.Taken(), room.Members(), Spares::kUse), SizeIs(2));
}

TEST(LostGpuHours, CountWholeMinutesOnAllGpus) {
  Room room(1);
  Holder& gang = room.Gang("a", {0, 1});
  gang.unsafe_since = kNow - std::chrono::seconds(90 * 60 + 59);
  EXPECT_DOUBLE_EQ(LostGpuHours(room.Taken(), gang, kNow), 24.0);
  gang.unsafe_since = kNow + kHour;
  EXPECT_DOUBLE_EQ(LostGpuHours(room.Taken(), gang, kNow), 0.0);
}

TEST(FitsAnew, CountsItsOwnRoomAsFree) {
  Room room(2);
  room.Gang("job-uid", {0, 1});
  EXPECT_TRUE(FitsAnew(room.Taken(), room.Members()));
  room.Gang("other", {2, 3});
  EXPECT_TRUE(FitsAnew(room.Taken(), room.Members()));
  Room done(3);
  done.Gang("other", {2, 3});
  done.Finish("2", {2});
  EXPECT_FALSE(FitsAnew(done.Taken(), done.Members())) << "what starts anew may start with all ranks";
  Room full(3);
  full.Gang("job-uid", {0, 1});
  full.Gang("other", {2, 3});
  EXPECT_FALSE(FitsAnew(full.Taken(), full.Members()));
}

}  // namespace
}  // namespace heddle::extender
