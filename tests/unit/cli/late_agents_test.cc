#include "cli/late_agents.h"

#include <gmock/gmock.h>

#include "tests/unit/cli/stage.h"

namespace heddle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LateAgentsInACluster : public Stage {
 protected:
  std::set<std::string> Ask() { return ReadLateAgents(client, clock, notes, {}); }
  std::vector<std::string> notes;
};

TEST_F(LateAgentsInACluster, AreThoseThatHadALeaseAndLetItRunOut) {
  Beat("on-time", std::chrono::seconds(240));
  Beat("still-planned-on", std::chrono::seconds(299));
  Beat("late", std::chrono::seconds(301));
  Json leader = kube::NewObject(kube::kLeases, {std::string(keys::kNamespace), "heddle-operator"});
  leader["spec"] = {{"leaseDurationSeconds", 15},
                    {"renewTime", base::FormatMicroTime(clock.WallNow() - std::chrono::hours(1))}};
  server.Put(kube::kLeases, leader);
  server.Put(kube::kLeases, kube::NewObject(kube::kLeases, {std::string(keys::kNamespace),
                                                            keys::NodeLease("says-nothing")}));
  Json elsewhere = kube::NewObject(kube::kLeases, {"default", keys::NodeLease("elsewhere")});
  elsewhere["spec"] = leader["spec"];
  server.Put(kube::kLeases, elsewhere);
  EXPECT_THAT(Ask(), ElementsAre("late"));
  EXPECT_THAT(notes, IsEmpty());
}

TEST_F(LateAgentsInACluster, AreNoneWhereLeasesMayNotBeReadAndANoteSaysSo) {
  Beat("late", std::chrono::hours(1));
  server.FailNext({.path_contains = "leases", .status = 403});
  EXPECT_THAT(Ask(), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("Which agents fell silent is not known")));
}

}  // namespace
}  // namespace heddle::cli
