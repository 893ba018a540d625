// What the server does not take from the operator is said where people look: by a condition where one can be written,
// else by an event. The reconcilers write for it.
#include "operator/policy_writes.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "operator/lossless_reconciler.h"
#include "operator/switch_reconciler.h"
#include "tests/unit/operator/stage.h"
#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// One node whose cable ends on leaf-3, which is asked.
class RefusedWritesTest : public Stage {
 protected:
  RefusedWritesTest() {
    server.Serve(kube::kConfigMaps);
    AddNode("gpu-017");
    server.Put(kNodeTopologies, crds::ToJson(CabledTopology("gpu-017")));
    AddPolicy(kLosslessPolicies, "roce", {{"countedCables", "PreferLossless"}});
    crds::FabricSwitch object;
    object.name = object.spec.name = "leaf-3";
    object.spec.address = "leaf-3.example:8080";
    server.Put(kFabricSwitches, crds::ToJson(object));
    Answers();
  }

  void Answers() {
    answers["leaf-3"] = {
        .read_at = clock.WallNow(), .config = SonicAnswerOf("leaf-3", true), .connecting = false};
  }
  // From now on; `subresource`: "" is the object itself.
  void Refuse(const std::string& plural, const std::string& subresource, int status,
              const std::string& words) {
    tries = 0;
    server.Intercept([=, this](const test::ApiRequest& request) -> std::optional<kube::HttpResponse> {
      if (!request.write() || request.plural != plural || request.subresource != subresource)
        return std::nullopt;
      ++tries;
      return test::StatusResponse(status, "", words);
    });
  }
  // "KIND/NAME REASON", of each event once.
  std::vector<std::string> Events() {
    events.Flush({});
    std::vector<std::string> said;
    for (const Json& event : server.All(kube::kEvents))
      said.push_back(kube::StringAt(event, {"involvedObject", "kind"}) + "/" +
                     kube::StringAt(event, {"involvedObject", "name"}) + " " +
                     kube::StringAt(event, {"reason"}));
    return said;
  }
  std::string MessageOf(const std::string& reason) {
    for (const Json& event : server.All(kube::kEvents)) {
      if (kube::StringAt(event, {"reason"}) == reason) return kube::StringAt(event, {"message"});
    }
    return "";
  }
  crds::Condition Compared() const {
    const auto object = crds::FabricSwitchFromJson(*server.Find(kFabricSwitches, {"", "leaf-3"}));
    const crds::Condition* found = crds::FindCondition(object->status.conditions, crds::kCompared);
    EXPECT_NE(found, nullptr);
    return found == nullptr ? crds::Condition{} : *found;
  }

  int tries = 0;  // of what is refused
  ServerView policies{server, kLosslessPolicies};
  ServerView fabric_switches{server, kFabricSwitches};
  SwitchAnswers answers;
  CurrentVerdicts verdicts;
  kube::EventRecorder events{
      client, clock, base::Random(7), {.component = "heddle-operator", .instance = "op-0"}};
  LosslessReconciler lossless{
      client, clock, {.nodes = nodes, .topologies = topologies, .policies = policies, .late = {}}, events};
  SwitchReconciler switches{client,
                            clock,
                            {.nodes = nodes,
                             .topologies = topologies,
                             .policies = policies,
                             .fabric_switches = fabric_switches,
                             .answers = [this] { return answers; },
                             .late = {}},
                            verdicts,
                            events,
                            "heddle-system"};
};

TEST_F(RefusedWritesTest, AnEventSaysThatAStatusMayBeOldAndPausesBetweenTriesGrow) {
  Refuse("losslesspolicies", "status", 403, "losslesspolicies.heddle.dev is forbidden");
  const auto refused = lossless.Reconcile({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::Code::kForbidden) << "which the metric of reconciles counts";
  for (const auto pause : {10s, 20s, 40s, 60s, 60s}) {
    clock.Advance(pause - 1s);
    const auto waits = lossless.Reconcile({});
    ASSERT_TRUE(waits) << pause.count();
    ASSERT_TRUE(waits->again);
    EXPECT_LE(*waits->again, 1s);
    clock.Advance(1s);
    EXPECT_FALSE(lossless.Reconcile({})) << pause.count();
  }
  EXPECT_EQ(tries, 6);
  EXPECT_THAT(Events(), ElementsAre("LosslessPolicy/roce StatusNotWritten"));
  const Json event = server.All(kube::kEvents).at(0);
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["count"], 6) << "and it does not run out while that lasts";
  EXPECT_EQ(kube::StringAt(event, {"involvedObject", "uid"}),
            kube::Uid(*server.Find(kLosslessPolicies, {"", "roce"})));
  EXPECT_THAT(MessageOf("StatusNotWritten"),
              AllOf(HasSubstr("may be old"), HasSubstr("heddle doctor"),
                    HasSubstr("write the status of LosslessPolicy roce"), HasSubstr("is forbidden")));
  server.Intercept({});
  clock.Advance(60s);
  EXPECT_TRUE(lossless.Reconcile({}));
  EXPECT_TRUE(server.Find(kLosslessPolicies, {"", "roce"})->contains("status"));
}

TEST_F(RefusedWritesTest, AnEventSaysOfASwitchWhyItsStatusCannotBeWritten) {
  Refuse("fabricswitches", "status", 413, "Request entity too large");
  ASSERT_FALSE(switches.Reconcile({}));
  EXPECT_THAT(Events(), ElementsAre("FabricSwitch/leaf-3 StatusNotWritten"));
  EXPECT_THAT(MessageOf("StatusNotWritten"),
              AllOf(HasSubstr("what else stands in the object"), HasSubstr("entity too large")));
}

TEST_F(RefusedWritesTest, AServerInTroubleIsNoRefusalAndNoEvent) {
  Refuse("losslesspolicies", "status", 500, "etcdserver: leader changed");
  ASSERT_FALSE(lossless.Reconcile({}));
  clock.Advance(10s);
  ASSERT_FALSE(lossless.Reconcile({}));
  clock.Advance(10s);
  ASSERT_FALSE(lossless.Reconcile({})) << "no longer pause either";
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(RefusedWritesTest, ASwitchSaysThatANodeIsNotToldWhatItsCablesComeTo) {
  Refuse("nodetopologies", "", 422, "spec.cables[0].verdict: Unsupported value");
  ASSERT_FALSE(switches.Reconcile({}));
  const crds::Condition said = Compared();
  EXPECT_EQ(said.status, crds::ConditionStatus::kFalse);
  EXPECT_EQ(said.reason, "NotTold");
  EXPECT_THAT(said.message,
              AllOf(HasSubstr("1 nodes are not told"), HasSubstr("write spec.cables of NodeTopology gpu-017"),
                    HasSubstr("Unsupported value"), HasSubstr("the CRDs to one version")));
  EXPECT_THAT(Events(), AllOf(Contains("FabricSwitch/leaf-3 CablesNotTold"),
                              Not(Contains("NodeTopology/gpu-017 SpecNotWritten"))));
  clock.Advance(20s);
  Answers();
  ASSERT_FALSE(switches.Reconcile({}));
  EXPECT_EQ(Compared().last_transition, said.last_transition);
  int statuses = 0;
  for (const test::ApiRequest& write : server.writes())
    statuses += write.plural == "fabricswitches" && write.subresource == "status" ? 1 : 0;
  EXPECT_EQ(statuses, 1) << "nothing about it is new";

  server.Intercept({});
  clock.Advance(10s);
  Answers();
  ASSERT_TRUE(switches.Reconcile({}));
  EXPECT_EQ(NodeOf("gpu-017").spec.cables.size(), 1u);
  EXPECT_EQ(Compared().reason, "Compared");
}

TEST_F(RefusedWritesTest, ANodeTopologySaysItselfWhatNoStatusSaysOnceWhileItLasts) {
  server.Remove(kLosslessPolicies, {"", "roce"});
  Refuse("nodetopologies", "", 403, "nodetopologies.heddle.dev is forbidden");
  for (int look = 0; look < 3; ++look) {
    ASSERT_FALSE(lossless.Reconcile({})) << "what no policy says is to be taken away";
    clock.Advance(1min);
  }
  EXPECT_EQ(tries, 3);
  EXPECT_THAT(Events(), ElementsAre("NodeTopology/gpu-017 SpecNotWritten"));
  const Json event = server.All(kube::kEvents).at(0);
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(kube::StringAt(event, {"involvedObject", "uid"}),
            kube::Uid(*server.Find(kNodeTopologies, {"", "gpu-017"})));
  EXPECT_THAT(MessageOf("SpecNotWritten"),
              AllOf(HasSubstr("spec.lossless stays as it is"), HasSubstr("heddle doctor"),
                    HasSubstr("nodetopologies.heddle.dev is forbidden")));
  server.Intercept({});
  ASSERT_TRUE(lossless.Reconcile({}));
  EXPECT_THAT(NodeOf("gpu-017").spec.lossless, IsEmpty());
}

}  // namespace
}  // namespace heddle::operators
