#include "extender/rank_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "crds/label_value.h"
#include "tests/unit/extender/pod_words.h"

namespace heddle::extender {
namespace {

using kube::Json;
using test::Cached;
using test::GatedPod;
using test::IndexedJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
    shared.push_back(Cached(pod));
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

// Two pods of a LeaderWorkerSet's group.
Scene OfGroup(const std::string& index) {
  Scene scene = Of(2, "-of-" + index);
  scene.members.rank_file = "serve-heddle-ranks";
  scene.gang.name = "serve-" + index;
  scene.gang.uid = "uid-of-" + index;
  scene.gang.spec.owner.kind = lws::kKind;
  scene.gang.spec.group = "LeaderWorkerSet/serve/" + index;
  return scene;
}

std::set<std::string> KeysOf(const Json& file) {
  std::set<std::string> names;
  for (const auto& [name, text] : file["data"].items()) names.insert(name);
  return names;
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
  EXPECT_THAT(RankFileOwners(*file), ElementsAre(scene.gang.name));
  EXPECT_THAT(RankFileOwners(kube::NewObject(kube::kConfigMaps, {"train", "job-heddle-ranks"})), IsEmpty());
}

TEST(RankFile, OfAGroupHasKeysOfItsOwnBesideThoseOfTheOtherGroups) {
  Scene zero = OfGroup("0"), one = OfGroup("1");
  const auto first = RankFile(zero.gang, zero.members);
  ASSERT_TRUE(first) << first.error().message;
  const auto both = RankFile(one.gang, one.members, &*first);
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(KeysOf(*both), (std::set<std::string>{"hostfile-0", "hostfile-1", "ranks-0.tsv", "ranks-1.tsv"}));
  for (const char* key : {"ranks-0.tsv", "hostfile-0"})
    EXPECT_EQ(kube::StringAt(*both, {"data", key}), kube::StringAt(*first, {"data", key})) << key;
  EXPECT_THAT(kube::StringAt(*both, {"data", "ranks-1.tsv"}), HasSubstr("0\tw0-of-1\t"));
  EXPECT_THAT(RankFileOwners(*both), ElementsAre("serve-0", "serve-1")) << "it goes with the last of them";

  zero.gang.uid = "another-attempt";
  const auto again = RankFile(zero.gang, zero.members, &*both);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)["data"], (*both)["data"]);
  EXPECT_THAT(RankFileOwners(*again), ElementsAre("serve-0", "serve-1"));
  EXPECT_EQ((*again)["metadata"]["ownerReferences"][0]["uid"], "another-attempt");
}

// As it was when the groups wrote over each other.
TEST(RankFile, OfAGroupDropsKeysThatNameNoGroup) {
  const Scene scene = OfGroup("0");
  Json there = kube::NewObject(kube::kConfigMaps, {"train", "serve-heddle-ranks"});
  there["data"] = {{"ranks.tsv", "of whom?"}, {"hostfile", "of whom?"}};
  const auto file = RankFile(scene.gang, scene.members, &there);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(KeysOf(*file), (std::set<std::string>{"hostfile-0", "ranks-0.tsv"}));
}

TEST(RankFile, ThatFitsNoConfigMapIsAnError) {
  const Scene scene = Of(4000, std::string(200, 'n'));
  const auto file = RankFile(scene.gang, scene.members);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::Code::kTooLarge);
  EXPECT_THAT(file.error().message, HasSubstr("4000 pods"));
}

TEST(RankFile, ThatFitsNoConfigMapTogetherWithThoseOfTheOtherGroupsIsAnError) {
  const Scene scene = OfGroup("0");
  Json there = kube::NewObject(kube::kConfigMaps, {"train", "serve-heddle-ranks"});
  there["data"]["ranks-1.tsv"] = std::string(1'000'000, 'n');
  const auto file = RankFile(scene.gang, scene.members, &there);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::Code::kTooLarge);
  EXPECT_THAT(file.error().message, HasSubstr("2 pods and of the other groups"));
}

TEST(RankFile, HasANameThatAnObjectMayHave) {
  EXPECT_EQ(RankFileName("serve/0"), "serve-0-heddle-ranks");
  EXPECT_EQ(RankFileName(std::string(300, 'a')).size(), 253u);
  for (const char* valid : {"train", "train.v2", "a--b-", "0-x.1-y"})
    EXPECT_EQ(RankFileName(valid), std::string(valid) + "-heddle-ranks");
  for (const char* other : {"My_Run", "Train", "a_b", "a..b", "a-.b", "a.-b"})
    EXPECT_EQ(RankFileName(other), crds::DnsName(other) + "-heddle-ranks");
  EXPECT_NE(RankFileName("a_b"), RankFileName("a-b"));
  EXPECT_EQ(RankFileName("My_Run").find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::extender
