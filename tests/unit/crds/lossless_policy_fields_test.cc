#include "crds/lossless_policy_fields.h"

#include <gmock/gmock.h>

#include "crds/lossless_policy.h"
#include "tests/unit/crds/samples.h"
#include "tests/unit/crds/schema.h"

namespace heddle::crds {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Said(const Json& policy) {
  const base::Status status = CheckLosslessPolicyFields(policy);
  return status ? "" : status.error().message;
}

TEST(LosslessPolicyFields, AreThoseOfTheSchema) {
  std::size_t of_spec = 0;
  for (const std::string& path : schema::AllFields(schema::LoadSchema("losslesspolicies"))) {
    if (!path.starts_with("spec.") || path.ends_with(']')) continue;
    const Json policy = schema::AtPath(path);
    EXPECT_THAT(Said(policy), Not(HasSubstr("no such field"))) << path;
    EXPECT_THAT(Said(schema::AtPath(path + "s")), HasSubstr("no such field")) << path;
    ++of_spec;
  }
  EXPECT_GT(of_spec, 40u);
}

TEST(LosslessPolicyFields, OfWhatTheServerTakesAreAllFine) {
  for (const LosslessPolicy& policy : samples::FullLosslessPolicies())
    EXPECT_THAT(Said(ToJson(policy)), Not(HasSubstr("no such field")));
  for (const char* name : {"connectx-7", "defaults", "infiniband", "no-pfc", "pcp-without-pfc"}) {
    const std::string file =
        HEDDLE_SOURCE_DIR "/tests/cluster/samples/good/lossless-" + std::string(name) + ".yaml";
    for (const Json& policy : schema::LoadYamlDocuments(file)) EXPECT_EQ(Said(policy), "") << name;
  }
}

TEST(LosslessPolicyFields, OfHundredsAreNamedInPart) {
  Json policy = {{"metadata", {{"name", "roce"}}}, {"spec", Json::object()}};
  for (int i = 0; i < 500; ++i) policy["spec"]["colour" + std::to_string(i)] = 1;
  EXPECT_THAT(Said(policy), HasSubstr("LosslessPolicy roce: spec.colour0, "));
  EXPECT_LT(Said(policy).size(), 2'000u);
}

}  // namespace
}  // namespace heddle::crds
