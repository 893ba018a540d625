#include "kube/packed.h"

#include <gtest/gtest.h>

namespace heddle::kube {
namespace {

Json Pod() {
  return Json::parse(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"a","namespace":"team","uid":"u1","resourceVersion":"7",
                  "labels":{"app":"x","job/index":"3"},"annotations":{"app":"y","empty":""},
                  "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"ju","controller":true}]},
      "spec":{"nodeName":"n1","priority":-5,"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]},
      "status":{"phase":"Running","startTime":"2026-01-02T03:04:05Z"}})");
}

TEST(Packed, AnObjectIsTheSameAfterwards) {
  for (const char* text : {R"({})", R"({"metadata":{}})", R"({"metadata":{"name":"n"},"spec":{}})",
                           R"({"metadata":7,"kind":"Node"})",
                           R"({"metadata":{"name":7,"uid":null,"namespace":""},"spec":[1],"status":"x"})",
                           R"({"metadata":null,"spec":{"nodeName":{}},"status":{"phase":["Running"]}})",
                           R"({"metadata":{"labels":{},"annotations":{"a":"","":"b"}}})"}) {
    const Json object = Json::parse(text);
    const Json packed = Packed(object);
    EXPECT_TRUE(IsPacked(packed)) << text;
    EXPECT_EQ(Unpacked(packed), object);
    EXPECT_EQ(Packed(packed), packed) << "twice is once";
  }
  EXPECT_EQ(Unpacked(Packed(Pod())), Pod());
  EXPECT_EQ(Unpacked(Pod()), Pod());
}

TEST(Packed, WhatTellsItFromOthersItsLabelsAndWhereItRunsAreReadAsOfAnyObject) {
  const Json packed = Packed(Pod());
  EXPECT_EQ(KeyOf(packed), KeyOf(Pod()));
  EXPECT_EQ(Name(packed), "a");
  EXPECT_EQ(Namespace(packed), "team");
  EXPECT_EQ(Uid(packed), "u1");
  EXPECT_EQ(ResourceVersion(packed), "7");
  EXPECT_EQ(StringAt(packed, {"spec", "nodeName"}), "n1");
  EXPECT_EQ(StringAt(packed, {"status", "phase"}), "Running");
  EXPECT_EQ(StringAt(packed, {"kind"}), "") << "all else is read when it is unpacked";
  EXPECT_EQ(Label(packed, "app"), "x");
  EXPECT_EQ(Label(packed, "job/index"), "3");
  EXPECT_EQ(Label(packed, "empty"), std::nullopt);
  EXPECT_EQ(Annotation(packed, "app"), "y");
  EXPECT_EQ(Annotation(packed, "empty"), "");
  EXPECT_EQ(Annotation(packed, "job/index"), std::nullopt);
  EXPECT_EQ(Labels(packed), Labels(Pod()));
  EXPECT_EQ(Annotations(packed), Annotations(Pod()));
  EXPECT_EQ(Annotation(Packed(Json::parse(R"({"metadata":{"labels":{"a":"b"}}})")), "a"), std::nullopt);
  EXPECT_EQ(Uid(Packed(Json::parse(R"({"metadata":{"name":"n"}})"))), "");
}

TEST(Packed, ANoteIsReadWithoutUnpackingAndIsNoPartOfTheObject) {
  const Json noted = Packed(Pod(), "of the gang a");
  EXPECT_EQ(NoteOf(noted), "of the gang a");
  EXPECT_EQ(Unpacked(noted), Pod());
  EXPECT_EQ(Label(noted, "app"), "x");
  EXPECT_NE(noted, Packed(Pod(), "of the gang b"));
  EXPECT_EQ(NoteOf(Packed(Pod())), "");
  EXPECT_EQ(NoteOf(Pod()), "");
}

TEST(Packed, TheVersionAloneIsNoOtherObject) {
  Json later = Pod(), moved = Pod(), unnamed = Pod();
  later["metadata"]["resourceVersion"] = "12345";
  moved["spec"]["nodeName"] = "n2";
  unnamed["metadata"].erase("resourceVersion");
  EXPECT_NE(Packed(Pod()), Packed(later));
  EXPECT_EQ(ResourceVersion(Packed(later)), "12345");
  EXPECT_TRUE(SameButVersion(Packed(Pod()), Packed(later)));
  EXPECT_TRUE(SameButVersion(Packed(Pod()), Packed(unnamed)));
  EXPECT_FALSE(SameButVersion(Packed(Pod()), Packed(moved)));
  EXPECT_TRUE(SameButVersion(Pod(), later));
  EXPECT_FALSE(SameButVersion(Pod(), moved));
  EXPECT_TRUE(SameButVersion(Json::parse(R"({"metadata":7})"), Json::parse(R"({"metadata":7})")));
}

TEST(Packed, ANameBeyondTheFormatIsLeftAlone) {
  Json longest = Pod();
  longest["metadata"]["name"] = std::string(0xfffe, 'n');
  EXPECT_TRUE(IsPacked(Packed(longest)));
  EXPECT_EQ(Unpacked(Packed(longest)), longest);
  longest["metadata"]["name"] = std::string(0xffff, 'n');
  EXPECT_EQ(Packed(longest), longest);
  for (const char* text : {R"({"metadata":{"labels":7}})", R"({"metadata":{"labels":null}})",
                           R"({"metadata":{"annotations":{"a":7}}})"}) {
    EXPECT_EQ(Packed(Json::parse(text)), Json::parse(text)) << "the API server serves no such thing";
  }
  Json words = Pod();
  words["metadata"]["annotations"]["words"] = std::string(0xffff, 'w');
  EXPECT_EQ(Packed(words), words);
  EXPECT_EQ(Packed(Json(7)), Json(7));
  EXPECT_EQ(Unpacked(Json(7)), Json(7));
}

TEST(Packed, OfBytesThatNobodyPackedWhatCanBeReadIsLeft) {
  const Json packed = Packed(Pod());
  const auto& bytes = packed.get_binary();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Json cut = Json::binary({bytes.begin(), bytes.begin() + std::ptrdiff_t(size)});
    EXPECT_TRUE(Unpacked(cut).is_object());
    EXPECT_TRUE(Uid(cut).empty() || Uid(cut) == "u1");
    EXPECT_TRUE(!Annotation(cut, "app") || Annotation(cut, "app") == "y");
    EXPECT_LE(NoteOf(cut).size(), size);
    EXPECT_FALSE(SameButVersion(cut, packed)) << size;
  }
  Json garbled = packed;
  garbled.get_binary().back() ^= 0xff;
  EXPECT_EQ(Uid(Unpacked(garbled)), "u1");
  EXPECT_EQ(Unpacked(Json::binary({0xff, 0xff})), Json::object());
}

}  // namespace
}  // namespace heddle::kube
