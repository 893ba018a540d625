#include "operator/assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/codec.h"
#include "crds/node_topology.h"

namespace heddle::operators {
namespace {

using crds::Json;

kube::ObjectPtr NodeThatSays(const std::string& name, const Json& conditions) {
  crds::NodeTopology node;
  node.name = name;
  node.status.observed_at = base::WallTime(std::chrono::seconds(1'800'000'000));
  node.status.hash = "0123456789abcdef";
  Json object = crds::ToJson(node);
  object["status"]["conditions"] = conditions;
  return std::make_shared<const Json>(object);
}

Json Says(const char* type, const char* status) {
  return {{"type", type},
          {"status", status},
          {"reason", "Some"},
          {"message", "why"},
          {"lastTransitionTime", "2027-01-15T08:00:00Z"}};
}

TEST(Assembler, KeepsOfConditionsWhatIsFalseAndThatNobodyKnowsWhetherANodeIsReady) {
  const AssemblyPtr assembly = Assembler().Assemble(
      {NodeThatSays("bad", {Says("LinksUp", "False"), Says("Ready", "True"), Says("LeavesKnown", "Unknown")}),
       NodeThatSays("blind", Json::array({Says("Ready", "Unknown")})),
       NodeThatSays("good", Json::array({Says("Ready", "True")}))},
      {});
  ASSERT_EQ(assembly->complaints.size(), 2u);
  ASSERT_EQ(assembly->complaints.at("bad").size(), 1u);
  EXPECT_EQ(assembly->complaints.at("bad")[0].type, "LinksUp");
  ASSERT_EQ(assembly->complaints.at("blind").size(), 1u);
  EXPECT_EQ(assembly->complaints.at("blind")[0].type, "Ready");
}

}  // namespace
}  // namespace heddle::operators
