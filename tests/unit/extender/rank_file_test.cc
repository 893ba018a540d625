#include "extender/rank_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::GatedPod;
using test::IndexedJob;
using test::Share;

struct Scene {
  crds::Gang gang;
  GangMembers members;
};

Scene Of(int pods, const std::string& name_ending = "") {
  std::vector<std::shared_ptr<const Json>> shared;
  std::vector<crds::PlacedPod> rows;
  for (int i = 0; i < pods; ++i) {
    Json pod = GatedPod(i, "tp=8,dp=" + std::to_string(pods));
    pod["metadata"]["name"] = "w" + std::to_string(i) + name_ending;
    if (i == 1) pod["spec"]["subdomain"] = "train";
    shared.push_back(Share(pod));
    rows.push_back({"node-" + std::to_string(i) + name_ending, i == 0 ? 0u : 0x0fu, {}});
  }
  const Json job = IndexedJob(pods);
  Scene scene{{}, ReadMembers({"train", "job-uid", 0}, &job, ReadPods(shared))};
  scene.members.rank_file = "job-heddle-ranks";
  scene.gang.ns = "train";
  scene.gang.name = "job-1";
  scene.gang.uid = "gang-uid";
  scene.gang.spec = scene.members.spec;
  scene.gang.status.placement = crds::ToColumns(rows, 1);
  return scene;
}

TEST(RankFile, SaysWhoHasWhichRankInTheOrderOfRanks) {
  const Scene scene = Of(2);
  const auto file = RankFile(scene.gang, scene.members);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(kube::KeyOf(*file), (kube::ObjectKey{"train", "job-heddle-ranks"}));
  EXPECT_EQ((*file)["data"]["ranks.tsv"],
            "rank\tpod\tnode\tgpus\n0\tw0\tnode-0\tall\n1\tw1\tnode-1\t0,1,2,3\n");
  EXPECT_EQ((*file)["data"]["hostfile"], "w0 slots=8\nw1.train slots=8\n");
}

TEST(RankFile, SaysNothingOfAPodThatHasNoSlotYet) {
  Scene scene = Of(2);
  auto rows = crds::ToRows(*scene.gang.status.placement);
  rows[0] = {};
  scene.gang.status.placement = crds::ToColumns(rows, 1);
  const auto file = RankFile(scene.gang, scene.members);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)["data"]["ranks.tsv"], "rank\tpod\tnode\tgpus\n1\tw1\tnode-1\t0,1,2,3\n");
  EXPECT_EQ((*file)["data"]["hostfile"], "w1.train slots=8\n");
}

TEST(RankFile, GoesWithItsGang) {
  const Scene scene = Of(1);
  const auto file = RankFile(scene.gang, scene.members);
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)["metadata"]["ownerReferences"][0]["uid"], "gang-uid");
  EXPECT_EQ(RankFileOwner(*file), scene.gang.name);
  EXPECT_EQ(RankFileOwner(kube::NewObject(kube::kConfigMaps, {"train", "job-heddle-ranks"})), "");
}

TEST(RankFile, ThatFitsNoConfigMapIsAnError) {
  const Scene scene = Of(4000, std::string(200, 'n'));
  const auto file = RankFile(scene.gang, scene.members);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::Code::kTooLarge);
  EXPECT_THAT(file.error().message, testing::HasSubstr("4000 pods"));
}

TEST(RankFile, HasANameThatAnObjectMayHave) {
  EXPECT_EQ(RankFileName("serve/0"), "serve-0-heddle-ranks");
  EXPECT_EQ(RankFileName(std::string(300, 'a')).size(), 253u);
}

}  // namespace
}  // namespace heddle::extender
