#include "kube/pruning.h"

#include <gtest/gtest.h>

#include "kube/json_reader.h"

namespace heddle::kube {
namespace {

constexpr const char* kPod =
    R"({"metadata":{"annotations":{"a":"b"},"name":"x"},"spec":{"containers":[)"
    R"({"env":[{"name":"A","value":"1"},{"name":"B"},7],"image":"i","name":"m"},{"env":[],"name":"n"}],"nodeName":"n"},)"
    R"("status":{"conditions":[{"type":"Ready"},{"type":"PodScheduled"}],"phase":"Running"}})";

std::string Read(const Pruning& pruning, const std::string& text = kPod) {
  return JsonReader().Read(text, &pruning).dump();
}

TEST(Pruning, OfNothingKeepsAll) {
  EXPECT_EQ(Read(Pruning()), kPod);
  EXPECT_EQ(JsonReader().Read(kPod).dump(), kPod);
}

TEST(Pruning, DropsFieldsAlsoOfEachItemOfAList) {
  EXPECT_EQ(Read(Pruning({"status", "metadata.annotations", "spec.containers.env", "spec.containers.image"})),
            R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"m"},{"name":"n"}],"nodeName":"n"}})");
}

TEST(Pruning, KeepsOfAListOnlyTheItemsOfAName) {
  const Pruning pruning(
      {"metadata"}, {{"spec.containers.env", "name", "B"}, {"status.conditions", "type", "PodScheduled"}});
  EXPECT_EQ(Read(pruning),
            R"({"spec":{"containers":[{"env":[{"name":"B"}],"image":"i","name":"m"},{"env":[],"name":"n"}],)"
            R"("nodeName":"n"},"status":{"conditions":[{"type":"PodScheduled"}],"phase":"Running"}})");
}

TEST(Pruning, NamesFieldsFromTheTopAlone) {
  EXPECT_EQ(Read(Pruning({"name"})), kPod);
  EXPECT_EQ(Read(Pruning({"spec.name", "status.phase.x", "spec.nodeName.x"})), kPod);
}

TEST(Pruning, GrowsByMore) {
  const Pruning less({"spec"});
  EXPECT_EQ(Read(less.And({"status", "metadata.annotations"})), R"({"metadata":{"name":"x"}})");
  EXPECT_NE(Read(less).find("status"), std::string::npos);
}

TEST(Pruning, OfAnObjectThatLiesInAnotherOne) {
  const Pruning pruning({"spec", "status"});
  EXPECT_EQ(Read(pruning.Under("items"), std::string(R"({"items":[)") + kPod + "]}"),
            R"({"items":[{"metadata":{"annotations":{"a":"b"},"name":"x"}}]})");
}

TEST(Pruning, TakesAnyShape) {
  const Pruning pruning({"spec.containers.env"}, {{"status", "type", "x"}});
  for (const char* text :
       {"[]", "7", "null", R"({"spec":7})", R"({"spec":[{"containers":null}],"status":{"a":1}})"})
    EXPECT_EQ(Read(pruning, text), text);
  EXPECT_EQ(Read(pruning, R"({"status":[1,"x",{"type":2},{"type":"x"}]})"), R"({"status":[{"type":"x"}]})");
}

// A watch's bookmark says in an annotation that the first state is whole.
TEST(Pruning, LeavesBookmarksAndErrorsWhole) {
  const Pruning pruning = Pruning({"metadata.annotations", "status"}).Under("object");
  JsonReader reader;
  const std::string event = R"({"object":{"metadata":{"annotations":{"a":"b"}},"status":"Failure"},"type":")";
  for (const char* type : {"BOOKMARK", "ERROR"})
    EXPECT_EQ(reader.ReadEvent(event + type + "\"}", pruning).dump(), event + type + "\"}");
  EXPECT_EQ(reader.ReadEvent(event + "ADDED\"}", pruning)["object"].dump(), R"({"metadata":{}})");
}

}  // namespace
}  // namespace heddle::kube
