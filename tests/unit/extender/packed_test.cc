#include "extender/packed.h"

#include <gtest/gtest.h>

#include "extender/node_constraints.h"
#include "extender/pod_facts.h"

namespace heddle::extender {
namespace {

using kube::Json;

Json Pod() {
  return Json::parse(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"a","namespace":"team","uid":"u1","resourceVersion":"7","labels":{"app":"x"},
                  "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"ju","controller":true}]},
      "spec":{"nodeName":"n1","priority":-5,"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},
      "status":{"phase":"Running","startTime":"2026-01-02T03:04:05Z"}})");
}

TEST(Packed, AnObjectIsTheSameAfterwards) {
  for (const Json& object : {Pod(), Json::parse(R"({"metadata":{"name":"n"},"spec":{}})"), Json::object(),
                             Json::parse(R"({"metadata":7,"kind":"Node"})")}) {
    const Json packed = Packed(object);
    EXPECT_TRUE(IsPacked(packed)) << object;
    Json whole = Unpacked(packed);
    if (!object.contains("metadata") || !object["metadata"].is_object()) whole.erase("metadata");
    Json wanted = object;
    if (wanted.contains("metadata") && !wanted["metadata"].is_object()) wanted.erase("metadata");
    EXPECT_EQ(whole, wanted);
    EXPECT_EQ(Packed(packed), packed) << "twice is once";
  }
  EXPECT_EQ(Unpacked(Pod()), Pod());
}

TEST(Packed, TheHeadStaysReadableAndTheVersionAloneChangesNothingElse) {
  Json later = Pod();
  later["metadata"]["resourceVersion"] = "8";
  Json packed = Packed(Pod()), packed_later = Packed(later);
  EXPECT_EQ(kube::Uid(packed), "u1");
  EXPECT_EQ(kube::KeyOf(packed), kube::KeyOf(Pod()));
  EXPECT_EQ(kube::ResourceVersion(packed_later), "8");
  EXPECT_NE(packed, packed_later);
  packed["metadata"].erase("resourceVersion");
  packed_later["metadata"].erase("resourceVersion");
  EXPECT_EQ(packed, packed_later);
}

TEST(Packed, APodReadsAsBeforeAndSaysWhereItRunsByItself) {
  const Json packed = PackedPod(Pod());
  EXPECT_EQ(ReadPod(packed), ReadPod(Pod()));
  EXPECT_EQ(ReadPod(packed).demand.gpus, 4);
  EXPECT_EQ(kube::StringAt(packed, {"spec", "nodeName"}), "n1");
  EXPECT_EQ(kube::StringAt(packed, {"status", "phase"}), "Running");
  EXPECT_EQ(Unpacked(packed), Pod());
  EXPECT_EQ(PackedPod(packed), packed);
}

TEST(Packed, ANodeReadsAsBefore) {
  const Json node = Json::parse(R"({"metadata":{"name":"n1","labels":{"zone":"a"}},
      "spec":{"taints":[{"key":"k","effect":"NoSchedule"}]},
      "status":{"allocatable":{"cpu":"8","nvidia.com/gpu":"8"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_EQ(ReadNode(Packed(node)), ReadNode(node));
  EXPECT_EQ(ReadNode(Packed(node)).gpus, 8);
}

TEST(Packed, WhatIsNoCborLeavesTheHead) {
  Json packed = Packed(Pod());
  packed["packed"] = Json::binary({0xff, 0x00, 0x17});
  const Json whole = Unpacked(packed);
  EXPECT_EQ(kube::Uid(whole), "u1");
  EXPECT_FALSE(IsPacked(whole));
  EXPECT_FALSE(IsPacked(Json(7)));
  EXPECT_EQ(Unpacked(Json(7)), Json(7));
}

}  // namespace
}  // namespace heddle::extender
