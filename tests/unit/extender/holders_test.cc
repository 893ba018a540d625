#include "extender/holders.h"

#include <gtest/gtest.h>

namespace heddle::extender {
namespace {

Hold Of(const std::string& owner, const std::string& name, std::uint32_t gpus) {
  return {.gpus = gpus, .owner_uid = owner, .ns = "train", .name = name};
}

TEST(Holders, AreNobodyOnAnEmptyCluster) {
  EXPECT_EQ(Holders({}, {}), "");
  EXPECT_EQ(Holders({.holds = {{"n1", {Of("me", "gang train/me", 0xff)}}},
                     .gangs = {{{"train", "me"}, "train/me"}}},
                    {"train", "me", 0}),
            "");
}

TEST(Holders, AreCountedOnceHoweverManyNodesTheyStandOn) {
  Snapshot snapshot;
  snapshot.gangs = {{{"train", "a"}, "train/a"}, {{"train", "b"}, "train/b"}};
  snapshot.holds = {{"n1", {Of("a", "pod train/a-0", 0x0f), Of("lone", "pod dev/notebook", 0x10)}},
                    {"n2", {Of("a", "gang train/a", 0x0f), Of("b", "gang train/b", 0xf0)}}};
  EXPECT_EQ(Holders(snapshot, {}), "2 gangs hold 12 GPUs (train/a, train/b); 1 pod of no gang holds 1 GPU");
  EXPECT_EQ(Holders(snapshot, {"train", "a", 0}),
            "1 gang holds 4 GPUs (train/b); 1 pod of no gang holds 1 GPU");
}

TEST(Holders, AreNamedUpToThree) {
  Snapshot snapshot;
  std::vector<Hold> on_node;
  for (const char* name : {"a", "b", "c", "d"}) {
    snapshot.gangs[{"train", name}] = std::string("t/") + name;
    on_node.push_back(Of(name, "gang", 1));
  }
  snapshot.holds.Set("n", on_node);
  EXPECT_EQ(Holders(snapshot, {}), "4 gangs hold 4 GPUs (t/a, t/b, t/c, …)");
}

}  // namespace
}  // namespace heddle::extender
