// The YAML and the structs say the same, both ways.
#include "tests/unit/crds/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/support/seeds.h"
#include "tests/unit/crds/samples.h"

namespace heddle::crds {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct KindUnderTest {
  std::string plural;
  std::vector<Json> full;
  std::function<std::optional<base::Error>(const Json&)> read;
  // Written for people and not read back.
  std::vector<std::string> derived;
  // Tied to other fields, so their extremes are refused for another reason.
  std::vector<std::string> tied;
};

void PrintTo(const KindUnderTest& kind, std::ostream* out) {
  *out << kind.plural;
}

template <class T>
std::vector<Json> Write(const std::vector<T>& objects) {
  std::vector<Json> jsons;
  for (const T& object : objects) jsons.push_back(ToJson(object));
  return jsons;
}

template <class T>
std::function<std::optional<base::Error>(const Json&)> Reader(base::Result<T> (*read)(const Json&)) {
  return [read](const Json& json) -> std::optional<base::Error> {
    auto object = read(json);
    if (object) return std::nullopt;
    return object.error();
  };
}

std::vector<KindUnderTest> Kinds() {
  return {{"nodetopologies",
           Write(samples::FullNodeTopologies()),
           Reader(NodeTopologyFromJson),
           {"status.summary"},
           {}},
          {"fabrics", Write(samples::FullFabrics()), Reader(FabricFromJson), {}, {"spec.leafNames"}},
          {"gangs",
           Write(samples::FullGangs()),
           Reader(GangFromJson),
           {"status.summary", "status.predicted.stepMs", "status.observed.heddle.stepMs"},
           {"spec.pods", "spec.gpusPerPod", "spec.gpus", "status.placement", "status.missing",
            "spec.parallelism", "spec.require", "spec.prefer"}},
          {"losslesspolicies",
           Write(samples::FullLosslessPolicies()),
           Reader(LosslessPolicyFromJson),
           {"status.summary"},
           {"spec.ets[1].algorithm"}},
          {"rdmadevicepolicies",
           Write(samples::FullRdmaDevicePolicies()),
           Reader(RdmaDevicePolicyFromJson),
           {"status.summary"},
           {"spec.mode", "spec.plugin", "spec.resources"}},
          {"fabricswitches",
           Write(samples::FullFabricSwitches()),
           Reader(FabricSwitchFromJson),
           {"status.summary"},
           {"spec.address", "spec.dialect", "spec.mode", "spec.credentialsSecret", "spec.tls.caSecret"}}};
}

bool Under(const std::string& path, const std::vector<std::string>& roots) {
  return std::any_of(roots.begin(), roots.end(),
                     [&](const std::string& root) { return path.starts_with(root); });
}

class Schema : public testing::TestWithParam<KindUnderTest> {
 protected:
  const KindUnderTest& kind() const { return GetParam(); }
  Json schema_ = schema::LoadSchema(GetParam().plural);
};

TEST_P(Schema, AllowsEverythingThatIsWritten) {
  for (const Json& json : kind().full) {
    std::set<std::string> seen;
    EXPECT_THAT(schema::Violations(schema_, json, seen), IsEmpty());
  }
}

TEST_P(Schema, HasNoFieldThatIsNeverWritten) {
  std::set<std::string> seen;
  for (const Json& json : kind().full) schema::Violations(schema_, json, seen);
  std::vector<std::string> never;
  for (const std::string& field : schema::AllFields(schema_)) {
    if (!seen.contains(field)) never.push_back(field);
  }
  EXPECT_THAT(never, IsEmpty());
}

TEST_P(Schema, WhatItForbidsTheCodecRefusesByPath) {
  int tried = 0;
  for (const Json& json : kind().full) {
    for (const schema::Mutation& mutation : schema::Forbidden(schema_, json)) {
      if (Under(mutation.path, kind().derived)) continue;
      ++tried;
      const auto error = kind().read(mutation.value);
      ASSERT_TRUE(error) << mutation.path << " was read though it is " << mutation.what;
      EXPECT_THAT(error->message, HasSubstr(mutation.path)) << mutation.what;
    }
  }
  EXPECT_GT(tried, 100);
}

TEST_P(Schema, WhatItJustAllowsTheCodecReads) {
  for (const Json& json : kind().full) {
    for (const schema::Mutation& mutation : schema::JustAllowed(schema_, json)) {
      if (Under(mutation.path, kind().tied)) continue;
      if (mutation.path.find("conditions") != std::string::npos) continue;
      const auto error = kind().read(mutation.value);
      EXPECT_FALSE(error) << mutation.path << " " << mutation.what << ": " << ToString(*error);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Schema, testing::ValuesIn(Kinds()),
                         [](const auto& param) { return param.param.plural; });

// Random values reach corners that the full samples do not.
// The transports that a schema allows, wherever it names them.
void CollectTransports(const Json& schema, std::vector<Json>& found) {
  if (!schema.is_structured()) return;
  if (schema.is_object() && schema.contains("transport") && schema["transport"].contains("enum")) {
    found.push_back(schema["transport"]["enum"]);
  }
  for (const Json& part : schema) CollectTransports(part, found);
}

TEST(SchemaOfTransports, AllowsAllThatAreKnownInTheirOrder) {
  const auto names = topology::TransportNames();
  for (const char* plural : {"nodetopologies", "fabrics"}) {
    std::vector<Json> found;
    CollectTransports(schema::LoadSchema(plural), found);
    ASSERT_EQ(found.size(), 1u) << plural;
    EXPECT_EQ(found.front(), Json(std::vector<std::string>(names.begin(), names.end()))) << plural;
  }
}

TEST(SchemaOfRandomValues, AllowsThem) {
  const Json node = schema::LoadSchema("nodetopologies");
  const Json fabric = schema::LoadSchema("fabrics");
  const Json gang = schema::LoadSchema("gangs");
  const Json lossless = schema::LoadSchema("losslesspolicies");
  const Json devices = schema::LoadSchema("rdmadevicepolicies");
  std::set<std::string> seen;
  for (const std::uint64_t seed : test::Seeds(100)) {
    if (HasFailure()) return;
    SCOPED_TRACE(test::Replay(seed));
    base::Random random(seed);
    EXPECT_THAT(schema::Violations(node, ToJson(samples::RandomNodeTopology(random)), seen), IsEmpty());
    EXPECT_THAT(schema::Violations(fabric, ToJson(samples::RandomFabric(random)), seen), IsEmpty());
    EXPECT_THAT(schema::Violations(gang, ToJson(samples::RandomGang(random)), seen), IsEmpty());
    EXPECT_THAT(schema::Violations(lossless, ToJson(samples::RandomLosslessPolicy(random)), seen), IsEmpty());
    EXPECT_THAT(schema::Violations(devices, ToJson(samples::RandomRdmaDevicePolicy(random)), seen),
                IsEmpty());
  }
}

// What the samples that the API server accepts say is also read by us.
TEST(Samples, GoodOnesAreReadByTheCodecs) {
  int read = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/cluster/samples/good")) {
    SCOPED_TRACE(entry.path().filename().string());
    for (const Json& json : schema::LoadYamlDocuments(entry.path())) {
      const std::string kind = json.value("kind", "");
      std::optional<base::Error> error;
      if (kind == "NodeTopology")
        error = Reader(NodeTopologyFromJson)(json);
      else if (kind == "Fabric")
        error = Reader(FabricFromJson)(json);
      else if (kind == "Gang")
        error = Reader(GangFromJson)(json);
      else if (kind == "LosslessPolicy")
        error = Reader(LosslessPolicyFromJson)(json);
      else if (kind == "RdmaDevicePolicy")
        error = Reader(RdmaDevicePolicyFromJson)(json);
      else if (kind == "FabricSwitch")
        error = Reader(FabricSwitchFromJson)(json);
      else
        ADD_FAILURE() << "no kind of ours: " << kind;
      EXPECT_FALSE(error) << ToString(*error);
      ++read;
    }
  }
  EXPECT_GE(read, 3);
}

// Every CEL rule of the schemas, by its message.
void CollectRules(const Json& schema, std::vector<std::string>& messages) {
  if (schema.contains("x-kubernetes-validations")) {
    for (const Json& rule : schema["x-kubernetes-validations"]) messages.push_back(rule.at("message"));
  }
  for (const Json& child : schema) {
    if (child.is_structured()) CollectRules(child, messages);
  }
}

TEST(Samples, EveryRuleHasABadOne) {
  std::string refusals;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/tests/cluster/samples/bad")) {
    std::ifstream file(entry.path());
    std::string line;
    std::getline(file, line);
    EXPECT_TRUE(line.starts_with("# refused: "))
        << entry.path() << " must begin with \"# refused: <message>\"";
    refusals += line + "\n";
  }
  for (const std::string plural :
       {"nodetopologies", "fabrics", "gangs", "losslesspolicies", "rdmadevicepolicies", "fabricswitches"}) {
    std::vector<std::string> messages;
    CollectRules(schema::LoadSchema(plural), messages);
    for (const std::string& message : messages) {
      EXPECT_THAT(refusals, HasSubstr("# refused: " + message + "\n")) << plural;
    }
  }
}

}  // namespace
}  // namespace heddle::crds
