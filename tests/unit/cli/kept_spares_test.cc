#include "cli/kept_spares.h"

#include <gmock/gmock.h>

#include "crds/fabric_assembly.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json SchedulerDeployment(const std::vector<std::string>& command) {
  Json deployment{{"apiVersion", "apps/v1"},
                  {"kind", "Deployment"},
                  {"metadata", {{"namespace", "heddle-system"}, {"name", "heddle-scheduler"}}}};
  Json scheduler, extender;
  scheduler["command"] = Json::array({"kube-scheduler", "--spares=9"});
  extender["command"] = command;
  deployment["spec"]["template"]["spec"]["containers"] = Json::array({scheduler, extender});
  return deployment;
}

TEST(KeptSpares, AreReadOffTheExtendersArguments) {
  EXPECT_EQ(KeptSparesOf(SchedulerDeployment({"heddle-extender", "--spares=2"})).nodes, 2);
  EXPECT_EQ(KeptSparesOf(SchedulerDeployment({"/usr/bin/heddle-extender", "--spares", "3"})).nodes, 3);
  EXPECT_EQ(KeptSparesOf(SchedulerDeployment({"heddle-extender", "--spares=2", "--spares=1"})).nodes, 1);
  const KeptSpares none = KeptSparesOf(SchedulerDeployment({"heddle-extender"}));
  EXPECT_EQ(none.nodes, 0);
  EXPECT_EQ(none.why_unknown, "") << "that is the extender's own default";
}

TEST(KeptSpares, AreCalledUnknownWhereNothingTells) {
  EXPECT_THAT(KeptSparesOf(SchedulerDeployment({"other"})).why_unknown, HasSubstr("heddle-extender"));
  EXPECT_THAT(KeptSparesOf(SchedulerDeployment({"heddle-extender", "--spares=x"})).why_unknown,
              HasSubstr("--spares x"));
  EXPECT_NE(KeptSparesOf(Json::parse(R"({"spec": {"template": 4}})")).why_unknown, "");
}

class KeptSparesInACluster : public Stage {
 protected:
  int Ask(const std::string& line) {
    const auto synthetic = topology::ParseSynthetic(line);
    std::vector<FabricPtr> fabrics;
    for (auto& [name, fabric] : crds::AssembleFabrics(synthetic->nodes, {}))
      fabrics.push_back(std::make_shared<const topology::Fabric>(std::move(fabric)));
    return ReadKeptSpares(client, fabrics, notes, {});
  }
  std::vector<std::string> notes;
};

TEST_F(KeptSparesInACluster, AreAskedForWhereNvlinkReachesOverNodes) {
  EXPECT_EQ(Ask("su:1 node:2 gpu:8 nic:8 rail:8"), 0);
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(Ask("rack:2 tray:3 gpu:4 nic:4 rail:4 rate:400 nvl"), 0);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("is not known, so they count as free")));
}

TEST_F(KeptSparesInACluster, AreAskedOfTheObserverWhereThereIsNoScheduler) {
  const kube::Resource deployments{"apps", "v1", "deployments", "Deployment", true};
  server.Serve(deployments);
  Json observer = SchedulerDeployment({"heddle-extender", "--mode=observe", "--spares=2"});
  observer["metadata"]["name"] = "heddle-observer";
  server.Put(deployments, observer);
  EXPECT_EQ(Ask("rack:2 tray:3 gpu:4 nic:4 rail:4 rate:400 nvl"), 2);
  EXPECT_THAT(notes, IsEmpty());
}

}  // namespace
}  // namespace heddle::cli
