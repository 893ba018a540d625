#include "operator/policy_reads.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "crds/fabric_switch.h"

namespace heddle::operators {
namespace {

class FakeView final : public View {
 public:
  kube::ObjectPtr Get(const kube::ObjectKey& key) const override {
    const auto found = objects.find(key.name);
    return found == objects.end() ? nullptr : found->second;
  }
  kube::SortedObjects List() const override {
    std::vector<kube::ObjectPtr> all;
    for (const auto& [name, object] : objects) all.push_back(object);
    return all;
  }
  void Put(const std::string& name, const std::string& address) {
    crds::FabricSwitch object;
    object.name = object.spec.name = name;
    object.spec.address = address;
    objects[name] = std::make_shared<const kube::Json>(crds::ToJson(object));
  }

  std::map<std::string, kube::ObjectPtr> objects;
};

int parsed = 0;
base::Result<crds::FabricSwitch> Parse(const kube::Json& json) {
  ++parsed;
  return crds::FabricSwitchFromJson(json);
}

TEST(KeptPoliciesTest, AnObjectIsReadOnceForAsLongAsItIsTheSame) {
  FakeView view;
  view.Put("leaf-1", "leaf-1:8080");
  view.Put("leaf-2", "leaf-2:8080");
  view.Put("leaf-3", "leaf-3:8080");
  KeptPolicies<crds::FabricSwitch> kept;
  const auto addresses = [&] {
    std::map<std::string, std::string> all;
    for (const crds::FabricSwitch& one : kept.Read(view, "FabricSwitch", &Parse).read)
      all.emplace(one.name, one.spec.address);
    return all;
  };
  using Addresses = std::map<std::string, std::string>;
  parsed = 0;
  EXPECT_EQ(addresses(),
            (Addresses{{"leaf-1", "leaf-1:8080"}, {"leaf-2", "leaf-2:8080"}, {"leaf-3", "leaf-3:8080"}}));
  EXPECT_EQ(parsed, 3);
  // One changes, one comes before the others, one goes.
  view.Put("leaf-2", "10.0.0.2:8080");
  view.Put("leaf-0", "leaf-0:8080");
  view.objects.erase("leaf-3");
  EXPECT_EQ(addresses(),
            (Addresses{{"leaf-0", "leaf-0:8080"}, {"leaf-1", "leaf-1:8080"}, {"leaf-2", "10.0.0.2:8080"}}));
  EXPECT_EQ(parsed, 5);
  addresses();
  EXPECT_EQ(parsed, 5);
}

TEST(KeptPoliciesTest, OneThatCannotBeReadIsNamedUntilItCan) {
  FakeView view;
  view.Put("leaf-1", "leaf-1:8080");
  view.objects["leaf-2"] =
      std::make_shared<const kube::Json>(kube::Json{{"metadata", {{"name", "leaf-2"}}}, {"spec", 7}});
  KeptPolicies<crds::FabricSwitch> kept;
  for (int look = 0; look < 2; ++look) {
    const Policies<crds::FabricSwitch>& policies =
        kept.Read(view, "FabricSwitch", &crds::FabricSwitchFromJson);
    EXPECT_EQ(policies.read.size(), 1u) << look;
    ASSERT_EQ(policies.unreadable.size(), 1u) << look;
    const auto& [name, unreadable] = *policies.unreadable.begin();
    EXPECT_EQ(name, "leaf-2");
    EXPECT_EQ(unreadable.object, view.objects.at("leaf-2")) << "with it whoever looked can say more";
    EXPECT_NE(unreadable.why.message.find("spec"), std::string::npos) << unreadable.why.message;
  }
  view.Put("leaf-2", "leaf-2:8080");
  const Policies<crds::FabricSwitch>& policies = kept.Read(view, "FabricSwitch", &crds::FabricSwitchFromJson);
  EXPECT_EQ(policies.read.size(), 2u);
  EXPECT_TRUE(policies.unreadable.empty());
}

}  // namespace
}  // namespace heddle::operators
