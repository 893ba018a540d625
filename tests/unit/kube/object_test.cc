#include "kube/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/base64.h"
#include "kube/http.h"

namespace heddle::kube {
namespace {

TEST(Object, AccessorsSurviveEveryShape) {
  for (const char* text :
       {"null", "1", "\"x\"", "[]", "[1,{}]", "{}", R"({"metadata":1})", R"({"metadata":[]})",
        R"({"metadata":{"name":1,"labels":[],"annotations":{"a":1},"ownerReferences":{"a":1},
                              "generation":"x","uid":{},"deletionTimestamp":7}})",
        R"({"metadata":{"ownerReferences":[1,null,{"controller":"yes"}]},"status":{"conditions":[3]}})"}) {
    const Json object = Json::parse(text);
    EXPECT_EQ(Name(object), "");
    EXPECT_EQ(Uid(object), "");
    EXPECT_EQ(ResourceVersion(object), "");
    EXPECT_EQ(Generation(object), 0);
    EXPECT_TRUE(Labels(object).empty());
    EXPECT_TRUE(Annotations(object).empty());
    EXPECT_FALSE(Annotation(object, "a"));
    EXPECT_FALSE(ControllerOwner(object));
    EXPECT_FALSE(DeletionTimestamp(object));
    EXPECT_EQ(Condition(object, "Ready"), nullptr);
    EXPECT_EQ(DropManagedFields(object), object);
  }
}

TEST(Object, ReadsWhatIsThere) {
  const Json object = Json::parse(R"({"metadata":{"name":"w-0","namespace":"train","uid":"u","generation":3,
      "labels":{"a":"b"},"annotations":{"heddle.dev/parallelism":"tp=8"},"deletionTimestamp":"2026-01-02T03:04:05Z",
      "ownerReferences":[{"kind":"X","name":"x","uid":"1"},
                         {"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"2","controller":true}]},
      "status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  EXPECT_EQ(KeyOf(object), (ObjectKey{"train", "w-0"}));
  EXPECT_EQ(Generation(object), 3);
  EXPECT_EQ(Label(object, "a"), "b");
  EXPECT_EQ(Annotation(object, "heddle.dev/parallelism"), "tp=8");
  EXPECT_EQ(ControllerOwner(object), (OwnerReference{"batch/v1", "Job", "j", "2", true}));
  EXPECT_EQ(base::FormatTime(*DeletionTimestamp(object)), "2026-01-02T03:04:05Z");
  ASSERT_NE(Condition(object, "Ready"), nullptr);
}

TEST(Object, KeysSortByNamespaceThenNameAndReadBack) {
  EXPECT_LT((ObjectKey{"", "z"}), (ObjectKey{"a", "a"}));
  EXPECT_LT((ObjectKey{"a", "b"}), (ObjectKey{"b", "a"}));
  for (const ObjectKey& key : {ObjectKey{"a", "b"}, ObjectKey{"", "node"}}) {
    EXPECT_EQ(ObjectKey::Parse(key.ToString()), key);
  }
}

TEST(Object, ConditionMovesItsTimeOnlyWithItsStatus) {
  Json conditions;
  const base::WallTime first{std::chrono::seconds(1000)}, later{std::chrono::seconds(2000)};
  EXPECT_TRUE(SetCondition(conditions, {"Ready", "False", "Why", "text", 1}, first));
  EXPECT_FALSE(SetCondition(conditions, {"Ready", "False", "Why", "text", 1}, later));
  EXPECT_TRUE(SetCondition(conditions, {"Ready", "False", "Why", "other text", 1}, later));
  EXPECT_EQ(conditions[0]["lastTransitionTime"], base::FormatTime(first));
  EXPECT_TRUE(SetCondition(conditions, {"Ready", "True", "Fine", "", 2}, later));
  EXPECT_EQ(conditions[0]["lastTransitionTime"], base::FormatTime(later));
  EXPECT_TRUE(SetCondition(conditions, {"Other", "True", "Fine", "", 2}, later));
  EXPECT_EQ(conditions.size(), 2u);
}

TEST(Http, EncodesAllButUnreservedCharacters) {
  EXPECT_EQ(PercentEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a b/c=d,e+\xc3\xa4"), "a%20b%2Fc%3Dd%2Ce%2B%C3%A4");
}

TEST(Http, FindsHeadersInAnyCase) {
  const HttpResponse response{200, {{"Retry-After", "3"}}, ""};
  EXPECT_EQ(response.Header("retry-AFTER"), "3");
  EXPECT_FALSE(response.Header("Retry"));
}

TEST(Base64, ReadsBackWhatItWrote) {
  std::string bytes;
  for (int size = 0; size < 70; ++size) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
    bytes += char(size * 37);
  }
  EXPECT_EQ(EncodeBase64("user:pass"), "dXNlcjpwYXNz");
  EXPECT_EQ(DecodeBase64("dXNl\ncjpw YXNz\r\n"), "user:pass");
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"a", "ab", "abc", "ab=c", "====", "a===", "ab!=", "YQ==YQ=="}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

}  // namespace
}  // namespace heddle::kube
