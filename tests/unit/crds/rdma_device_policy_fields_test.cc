#include "crds/rdma_device_policy_fields.h"

#include <gmock/gmock.h>

#include "crds/rdma_device_policy.h"
#include "tests/unit/crds/schema.h"

namespace heddle::crds {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Said(const Json& policy) {
  const base::Status status = CheckRdmaDevicePolicyFields(policy);
  return status ? "" : status.error().message;
}

Json Sriov(const std::string& name) {
  Json resource, policy;
  resource["name"] = name;
  policy["metadata"]["name"] = "vf";
  policy["spec"]["mode"] = "Nics";
  policy["spec"]["plugin"] = "Sriov";
  policy["spec"]["resources"].push_back(std::move(resource));
  return policy;
}

TEST(RdmaDevicePolicyFields, AreThoseOfTheSchema) {
  std::size_t of_spec = 0;
  for (const std::string& path : schema::AllFields(schema::LoadSchema("rdmadevicepolicies"))) {
    if (!path.starts_with("spec.") || path.ends_with(']')) continue;
    EXPECT_THAT(Said(schema::AtPath(path)), Not(HasSubstr("no such field"))) << path;
    EXPECT_THAT(Said(schema::AtPath(path + "s")), HasSubstr("no such field")) << path;
    ++of_spec;
  }
  EXPECT_GE(of_spec, 7u);
}

TEST(RdmaDevicePolicyFields, OfTheGoodSamplesAreAllFine) {
  for (const char* name : {"by-rail", "defaults", "of-another-plugin", "of-the-sriov-plugin"}) {
    const std::string file =
        HEDDLE_SOURCE_DIR "/tests/cluster/samples/good/devices-" + std::string(name) + ".yaml";
    for (const Json& policy : schema::LoadYamlDocuments(file)) EXPECT_EQ(Said(policy), "") << name;
  }
}

// The SR-IOV plugin itself takes them, and RdmaDevicePolicyFromJson, as they may be stored.
TEST(RdmaDevicePolicyFields, OfTheSriovPluginHaveDashesWithinTheirNamesOnly) {
  for (const char* name : {"rdma/-vf", "rdma/vf-", "rdma/v--f", "rdma/-{rail}", "rdma/vf--{rail}"}) {
    const Json policy = Sriov(name);
    EXPECT_TRUE(RdmaDevicePolicyFromJson(policy)) << name;
    EXPECT_THAT(Said(policy),
                HasSubstr("RdmaDevicePolicy vf: spec.resources[0].name: the SR-IOV plugin takes"))
        << name;
    Json ours = policy;
    ours["spec"]["plugin"] = "Heddle";
    EXPECT_EQ(Said(ours), "") << name;
  }
  for (const char* name : {"rdma/v", "rdma/v-f_1", "a--b.example/v", "rdma/vf{rail}", "rdma/vf-{rail}"})
    EXPECT_EQ(Said(Sriov(name)), "") << name;
}

TEST(RdmaDevicePolicyFields, OfNoNodesLabelsAreNamed) {
  Json policy = Sriov("rdma/vf");
  policy["spec"]["nodeSelector"]["gpu pool"] = "a";
  EXPECT_THAT(Said(policy), HasSubstr("spec.nodeSelector: \"gpu pool\" is no key of a label"));
}

}  // namespace
}  // namespace heddle::crds
