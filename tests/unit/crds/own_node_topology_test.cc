// What an agent makes of an object that a newer operator wrote.
#include <gmock/gmock.h>

#include "crds/newer_spec.h"
#include "tests/unit/crds/samples.h"

namespace heddle::crds {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json ObjectWith(Json spec) {
  return {{"apiVersion", "heddle.dev/v1alpha1"},
          {"kind", "NodeTopology"},
          {"metadata", {{"name", "node-1"}}},
          {"spec", std::move(spec)}};
}

Json Entry(const std::string& port) {
  return {{"ports", {port}},
          {"policies", {"roce"}},
          {"generation", 3},
          {"mode", "Apply"},
          {"settings", {{"mtu", 9000}}}};
}

TEST(OwnNodeTopology, IsTheObjectWhereAllOfItIsKnown) {
  for (const NodeTopology& full : samples::FullNodeTopologies()) {
    const auto own = OwnNodeTopologyFromJson(ToJson(full));
    ASSERT_TRUE(own) << own.error().message;
    EXPECT_EQ(own->object, *NodeTopologyFromJson(ToJson(full)));
    EXPECT_THAT(own->not_understood, IsEmpty());
    EXPECT_EQ(own->has_status, full.status.observed_at.has_value());
  }
}

TEST(OwnNodeTopology, NamesKeysThatItDoesNotKnow) {
  Json entry = Entry("mlx5_0:1");
  entry["settings"]["pauseQuota"] = 7;
  entry["settings"]["dcqcn"] = {{"rpAiRate", 5}, {"rpNew", 1}};
  entry["window"] = "night";
  const auto own = OwnNodeTopologyFromJson(
      ObjectWith({{"lossless", {entry, Entry("mlx5_1:1")}}, {"power", {{"cap", 1}}}}));
  ASSERT_TRUE(own);
  EXPECT_THAT(own->not_understood,
              ElementsAre("spec.power", "spec.lossless[0].window", "spec.lossless[0].settings.pauseQuota",
                          "spec.lossless[0].settings.dcqcn.rpNew"));
  ASSERT_EQ(own->object.spec.lossless.size(), 2u);
  EXPECT_EQ(own->object.spec.lossless[0].not_understood.size(), 3u);
  EXPECT_THAT(own->object.spec.lossless[1].not_understood, IsEmpty());
  EXPECT_EQ(own->object.spec.lossless[1].settings->mtu, 9000);
}

TEST(OwnNodeTopology, KeepsThePortsOfAnEntryWhoseWordsItDoesNotKnow) {
  Json entry = Entry("mlx5_0:1"), nameless = Entry("mlx5_2:1");
  entry["settings"]["trust"] = "MPLS";
  nameless.erase("ports");
  const auto own = OwnNodeTopologyFromJson(ObjectWith({{"lossless", {entry, nameless, Entry("mlx5_1:1")}}}));
  ASSERT_TRUE(own);
  EXPECT_THAT(own->not_understood,
              ElementsAre(HasSubstr("spec.lossless[0].settings.trust: \"MPLS\" is not one of"),
                          "spec.lossless[1].ports: is missing"));
  ASSERT_EQ(own->object.spec.lossless.size(), 2u);
  const LosslessWish& wish = own->object.spec.lossless[0];
  EXPECT_THAT(wish.ports, ElementsAre("mlx5_0:1"));
  EXPECT_EQ(wish.generation, 3);
  EXPECT_FALSE(wish.settings);
  EXPECT_EQ(wish.not_understood.size(), 1u);
}

TEST(OwnNodeTopology, RefusesADeviceByItself) {
  const Json device{
      {"resource", "heddle.dev/nic"}, {"policies", {"all"}}, {"mode", "Nics"}, {"plugin", "Heddle"}};
  Json word = device, key = device;
  word["resource"] = "heddle.dev/word";
  word["mode"] = "Slices";
  key["resource"] = "heddle.dev/key";
  key["numa"] = 1;
  const auto own = OwnNodeTopologyFromJson(ObjectWith({{"devices", {word, key, device}}}));
  ASSERT_TRUE(own);
  ASSERT_EQ(own->object.spec.devices.size(), 3u);
  EXPECT_THAT(own->object.spec.devices[0].reason,
              HasSubstr("does not know spec.devices[0].mode: \"Slices\""));
  EXPECT_THAT(own->object.spec.devices[1].reason, HasSubstr("does not know spec.devices[1].numa: update it"));
  EXPECT_EQ(own->object.spec.devices[2].reason, "");
  EXPECT_EQ(own->not_understood.size(), 2u);
}

TEST(OwnNodeTopology, ReadsWhatItCanOfAnything) {
  const Json full = ToJson(samples::FullNodeTopologies().front());
  for (const Json& nonsense :
       {Json(7), Json("x"), Json::array({1}), Json::object({{"lossless", 5}}),
        Json{{"lossless", Json::array({1, nullptr, Json::array()})}, {"labels", 3}, {"devices", "x"}}}) {
    Json object = full;
    object["spec"] = nonsense;
    const auto own = OwnNodeTopologyFromJson(object);
    ASSERT_TRUE(own) << nonsense;
    EXPECT_EQ(own->object.status.node, samples::FullNodeTopologies().front().status.node);
    EXPECT_FALSE(own->not_understood.empty()) << nonsense;
    object["status"] = nonsense;
    ASSERT_TRUE(OwnNodeTopologyFromJson(object)) << nonsense;
    EXPECT_FALSE(OwnNodeTopologyFromJson(object)->has_status) << nonsense;
  }
  EXPECT_FALSE(OwnNodeTopologyFromJson(Json(7)));
  Json many = ObjectWith(Json::object());
  for (int i = 0; i < 100; ++i) many["spec"]["key" + std::to_string(i)] = i;
  EXPECT_EQ(OwnNodeTopologyFromJson(many)->not_understood.size(), 16u);
}

TEST(NodeTopologyOfAnySpec, IsThereForItsStatusWhateverANewerOperatorWrote) {
  const NodeTopology full = samples::FullNodeTopologies().front();
  Json object = ToJson(full), entry = Entry("mlx5_0:1");
  EXPECT_EQ(*NodeTopologyOfAnySpec(object), *NodeTopologyFromJson(object));
  entry["settings"]["trust"] = "MPLS";
  object["spec"]["lossless"] = Json::array({entry});
  EXPECT_FALSE(NodeTopologyFromJson(object));
  const auto read = NodeTopologyOfAnySpec(object);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->status.node, full.status.node);
  EXPECT_EQ(read->spec.labels, full.spec.labels);
  ASSERT_EQ(read->spec.lossless.size(), 1u);
  EXPECT_FALSE(read->spec.lossless[0].not_understood.empty());
  // Without a status there is none to be mistaken about; one that cannot be read is none of no NICs.
  Json early = object;
  early.erase("status");
  EXPECT_TRUE(NodeTopologyOfAnySpec(early));
  object["status"]["nics"] = 7;
  EXPECT_THAT(NodeTopologyOfAnySpec(object).error().message, HasSubstr("MPLS"));
}

// As the operator's cache has them.
TEST(NodeTopologyOfAnySpec, ReadsAPackedStatusAsItReadsAWholeOne) {
  const NodeTopology full = samples::FullNodeTopologies().front();
  Json object = ToJson(full), entry = Entry("mlx5_0:1");
  entry["settings"]["trust"] = "MPLS";
  object["spec"]["lossless"] = Json::array({entry});
  const auto read = NodeTopologyOfAnySpec(Packed(object));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->status.node, full.status.node);
  Json unobserved = object;
  unobserved["status"].erase("observedAt");
  EXPECT_TRUE(NodeTopologyOfAnySpec(Packed(unobserved)));
  object["status"]["nics"] = 7;
  EXPECT_FALSE(NodeTopologyOfAnySpec(Packed(object))) << "its agent is newer: it is not a node without NICs";
  object["spec"].erase("lossless");
  EXPECT_FALSE(NodeTopologyOfAnySpec(Packed(object))) << "also where its spec can be read";
}

}  // namespace
}  // namespace heddle::crds
