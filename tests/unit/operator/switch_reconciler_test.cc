#include "operator/switch_reconciler.h"

#include <gmock/gmock.h>

#include <functional>

#include "operator/switch_map.h"
#include "tests/unit/operator/stage.h"
#include "tests/unit/operator/switch_bed.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using lossless::LosslessVerdict;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SwitchReconcilerTest : public Stage {
 protected:
  SwitchReconcilerTest() {
    server.Serve(kube::kConfigMaps);
    AddNode("gpu-017");
    server.Put(kNodeTopologies, crds::ToJson(CabledTopology("gpu-017")));
    Count("PreferLossless");
    Make("leaf-3");
    Answers("leaf-3", true);
  }

  void Count(const char* counted) { AddPolicy(kLosslessPolicies, "roce", {{"countedCables", counted}}); }
  void Make(const std::string& name, crds::SwitchMode mode = crds::SwitchMode::kObserve) {
    crds::FabricSwitch object;
    object.name = name;
    object.spec.address = name + ".example:8080";
    object.spec.name = "leaf-3";
    object.spec.mode = mode;
    server.Put(kFabricSwitches, crds::ToJson(object));
  }
  void Answers(const std::string& name, bool lossless) {
    answers[name] = {
        .read_at = clock.WallNow(), .config = SonicAnswerOf("leaf-3", lossless), .connecting = false};
  }
  // As SONiC's tables are after `change`.
  void AnswersWith(const std::function<void(std::map<std::string, Json>&)>& change) {
    std::map<std::string, Json> tables = SonicTables("leaf-3", true);
    change(tables);
    std::map<std::string, std::string> texts;
    for (const auto& [name, table] : tables) texts[name] = table.dump();
    auto answer = switches::ReadSonicText(switches::SonicConfigText(texts).value());
    ASSERT_TRUE(answer) << answer.error().message;
    answers["leaf-3"] = {.read_at = clock.WallNow(),
                         .config = std::make_shared<const switches::SonicAnswer>(*std::move(answer)),
                         .connecting = false};
  }
  std::string TextOfMap(const std::string& key) const {
    const auto map = server.Find(kube::kConfigMaps, {"heddle-system", RenderMapName("leaf-3")});
    return map ? kube::StringAt(*map, {"data", key}) : "";
  }
  Outcome Reconcile() {
    const auto outcome = reconciler->Reconcile({});
    EXPECT_TRUE(outcome) << (outcome ? "" : base::ToString(outcome.error()));
    return outcome ? *outcome : Outcome{};
  }
  // As the daemon does: looks when it was asked to, and only then. Ends with the look that comes at `time` or later.
  void LookFor(std::chrono::seconds time) {
    const base::MonotonicTime end = clock.Now() + time;
    while (clock.Now() < end) {
      const Outcome outcome = Reconcile();
      ASSERT_TRUE(outcome.again);
      ASSERT_GE(*outcome.again, 1s);
      clock.Advance(*outcome.again);
    }
    Reconcile();
  }
  std::vector<LosslessVerdict> Cables() const {
    std::vector<LosslessVerdict> cables;
    for (const crds::CableReport& one : NodeOf("gpu-017").spec.cables) cables.push_back(one.verdict);
    return cables;
  }
  crds::FabricSwitchStatus StatusNow() const {
    return crds::FabricSwitchFromJson(*server.Find(kFabricSwitches, {"", "leaf-3"}))->status;
  }
  std::string Reason(std::string_view type) const {
    const crds::FabricSwitchStatus status = StatusNow();
    const crds::Condition* condition = crds::FindCondition(status.conditions, type);
    return condition == nullptr ? "" : condition->reason;
  }
  // The keys of the ConfigMap of leaf-3; none where there is no map.
  std::vector<std::string> KeysOfMap() const {
    std::vector<std::string> keys;
    const auto map = server.Find(kube::kConfigMaps, {"heddle-system", RenderMapName("leaf-3")});
    if (!map) return keys;
    for (const auto& [key, text] : map->at("data").items()) keys.push_back(key);
    return keys;
  }
  std::string Message(std::string_view type) const {
    const crds::FabricSwitchStatus status = StatusNow();
    const crds::Condition* condition = crds::FindCondition(status.conditions, type);
    return condition == nullptr ? "" : condition->message;
  }
  std::vector<std::string> Events() {
    events.Flush({});
    std::vector<std::string> reasons;
    for (const Json& event : server.All(kube::kEvents))
      reasons.push_back(kube::StringAt(event, {"involvedObject", "kind"}) + "/" +
                        kube::StringAt(event, {"reason"}));
    return reasons;
  }
  void StartAnew() {
    answers.clear();
    reconciler =
        std::make_unique<SwitchReconciler>(client, clock, Reads(), verdicts, events, "heddle-system");
  }
  SwitchReconciler::Reads Reads() {
    return {.nodes = nodes,
            .topologies = topologies,
            .policies = policies,
            .fabric_switches = fabric_switches,
            .answers = [this] { return answers; },
            .late = [this] { return late; }};
  }

  ServerView policies{server, kLosslessPolicies};
  ServerView fabric_switches{server, kFabricSwitches};
  SwitchAnswers answers;
  std::set<std::string> late;
  CurrentVerdicts verdicts;
  kube::EventRecorder events{
      client, clock, base::Random(7), {.component = "heddle-operator", .instance = "op-0"}};
  std::unique_ptr<SwitchReconciler> reconciler =
      std::make_unique<SwitchReconciler>(client, clock, Reads(), verdicts, events, "heddle-system");
};

TEST_F(SwitchReconcilerTest, WhatASwitchSaidGoesStaleWithoutAnythingElseHappening) {
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  // It dies. Its error says the same for ever, and nothing else moves in the cluster.
  answers["leaf-3"].trouble = SwitchTrouble{"Unreachable", "leaf-3.example:8080: nobody listens there"};
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  LookFor(179s);
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kUnproved));
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(crds::kCompared), "Stale");
}

TEST_F(SwitchReconcilerTest, WritesNothingAgainWhileItsCacheShowsWhatWasThereBefore) {
  topologies.Freeze();
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  server.ClearRequests();
  clock.Advance(1s);
  Reconcile();
  EXPECT_THAT(WriteLines(), Not(Contains("PATCH nodetopologies gpu-017")));
}

TEST_F(SwitchReconcilerTest, TakesBackWhatItsCacheDoesNotShowYetAndIsDoneOnceThatShowsIt) {
  topologies.Freeze();
  Reconcile();
  ASSERT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  server.Remove(kFabricSwitches, {"", "leaf-3"});
  clock.Advance(1s);
  Reconcile();
  EXPECT_THAT(Cables(), IsEmpty());
  clock.Advance(1s);
  EXPECT_TRUE(Reconcile().again) << "the cache is behind";
  topologies.Thaw();
  EXPECT_FALSE(Reconcile().again);
}

TEST_F(SwitchReconcilerTest, ReadAtMovesWhileAQuietSwitchAnswers) {
  Reconcile();
  const auto first = StatusNow().read_at;
  base::MonotonicTime due = clock.Now();
  for (int minute = 0; minute < 30; ++minute) {
    Answers("leaf-3", true);  // the same again, which is no reason to look
    if (clock.Now() >= due) due = clock.Now() + *Reconcile().again;
    EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
    clock.Advance(60s);
  }
  EXPECT_GE(*StatusNow().read_at - *first, 10min);
}

TEST_F(SwitchReconcilerTest, WithoutASwitchNothingIsLookedAtAgain) {
  server.Remove(kFabricSwitches, {"", "leaf-3"});
  EXPECT_FALSE(Reconcile().again);
}

TEST_F(SwitchReconcilerTest, AnOperatorThatHasJustBegunTakesNothingBackUntilItHasWaited) {
  Count("LosslessOnly");
  Reconcile();
  ASSERT_EQ(NodeOf("gpu-017").spec.cables[0].counted_percent, 100);
  clock.Advance(20s);
  StartAnew();
  server.ClearRequests();
  const Outcome outcome = Reconcile();
  EXPECT_THAT(WriteLines(), IsEmpty());
  ASSERT_TRUE(outcome.again);
  EXPECT_LE(*outcome.again, SwitchReconciler::kPatience);
  EXPECT_EQ(verdicts.Get()->nodes.at("gpu-017")->counts, (crds::CableCounts{1, 1, 0, 0}));
  // Its first try comes to nothing: that is told, and the cables are as they were.
  answers["leaf-3"] = {.trouble = SwitchTrouble{"Unreachable", "nobody listens"}, .connecting = false};
  Reconcile();
  EXPECT_EQ(Reason(crds::kReachable), "Unreachable");
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  LookFor(55s);
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kUnproved));
  EXPECT_EQ(NodeOf("gpu-017").spec.cables[0].counted_percent, 0);
}

TEST_F(SwitchReconcilerTest, AClockThatIsSetMakesNothingOldAndNothingNew) {
  Count("LosslessOnly");
  answers["leaf-3"].read_ahead = WallAhead(clock);
  Reconcile();
  ASSERT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  clock.ShiftWall(2h);
  clock.Advance(20s);
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  clock.ShiftWall(-4h);
  clock.Advance(10min);
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kUnproved));
}

TEST_F(SwitchReconcilerTest, WhatWasSaidAtAnotherAddressProvesNothingAtOnce) {
  Count("LosslessOnly");
  answers["leaf-3"].address = "leaf-3.example:8080";
  Reconcile();
  ASSERT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  clock.Advance(20s);
  server.Edit(kFabricSwitches, {"", "leaf-3"},
              [](Json& object) { object["spec"]["address"] = "other.example:8080"; });
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kUnproved));
}

TEST_F(SwitchReconcilerTest, SaysWhichFieldOfASwitchItDoesNotUnderstandAndProvesNothingOfItsCables) {
  Reconcile();
  ASSERT_EQ(Reason(crds::kCablesLossless), "Lossless");
  const auto change = [&](const char* role, int generation) {
    server.Edit(kFabricSwitches, {"", "leaf-3"}, [&](Json& object) {
      object["spec"]["role"] = role;
      object["metadata"]["generation"] = generation;
    });
    clock.Advance(10s);
  };
  change("Hub", 7);
  answers.clear();  // nor does SwitchWatch ask it
  Reconcile();
  EXPECT_EQ(Reconcile().writes, 0) << "it is said once";
  const Json object = *server.Find(kFabricSwitches, {"", "leaf-3"});
  const Json* reachable = kube::Condition(object, crds::kReachable);
  ASSERT_NE(reachable, nullptr);
  EXPECT_EQ((*reachable)["status"], "False");
  EXPECT_EQ((*reachable)["reason"], "NotUnderstood");
  EXPECT_THAT((*reachable)["message"].get<std::string>(),
              testing::AllOf(HasSubstr("spec.role"), HasSubstr("Hub"), HasSubstr("Correct that field")));
  const Json* lossless = kube::Condition(object, crds::kCablesLossless);
  ASSERT_NE(lossless, nullptr);
  EXPECT_EQ((*lossless)["status"], "Unknown");
  EXPECT_NE(kube::IntAt(object, {"status", "observedGeneration"}), 7) << "that was never in force";
  EXPECT_THAT(Events(), testing::UnorderedElementsAre("FabricSwitch/CablesLossless",
                                                      "FabricSwitch/SwitchNotUnderstood"));
  change("Leaf", 8);
  Reconcile();
  EXPECT_EQ(Reason(crds::kReachable), "Connecting") << "also before it has answered again";
}

TEST_F(SwitchReconcilerTest, TellsANodeThatTheSwitchOfItsCableCannotBeReadAndNotThatThereIsNone) {
  Count("LosslessOnly");
  server.Edit(kFabricSwitches, {"", "leaf-3"}, [](Json& object) { object["spec"]["role"] = "Hub"; });
  answers.clear();
  Reconcile();
  const auto cables = NodeOf("gpu-017").spec.cables;
  ASSERT_EQ(cables.size(), 1u);
  EXPECT_THAT(cables[0].message, HasSubstr("cannot read the FabricSwitch of leaf-3"));
}

TEST_F(SwitchReconcilerTest, GoesByASwitchWhoseStatusAloneItCannotReadAndWritesThatAnew) {
  server.Edit(kFabricSwitches, {"", "leaf-3"},
              [](Json& object) { object["status"]["counts"]["ports"] = "many"; });
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
  ASSERT_TRUE(crds::FabricSwitchFromJson(*server.Find(kFabricSwitches, {"", "leaf-3"})));
  EXPECT_EQ(Reason(crds::kCablesLossless), "Lossless");
}

TEST_F(SwitchReconcilerTest, AnAgentThatDiedProvesNothing) {
  Reconcile();
  late = {"gpu-017"};
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kUnproved));
  late.clear();
  Reconcile();
  EXPECT_THAT(Cables(), ElementsAre(LosslessVerdict::kLossless));
}

TEST_F(SwitchReconcilerTest, TellsWhenCablesComeToContradictAndWhenTheyAreLosslessAgain) {
  Reconcile();
  EXPECT_THAT(Events(), ElementsAre("FabricSwitch/CablesLossless"));
  Answers("leaf-3", false);
  const Outcome at_once = Reconcile();  // no ten seconds have passed since the last status
  EXPECT_EQ(Reason(crds::kCablesLossless), "Contradiction");
  EXPECT_EQ(at_once.writes, 2) << "of the node and of the switch";
  EXPECT_THAT(Events(), Contains("FabricSwitch/CablesContradict"));
  EXPECT_THAT(Events(), testing::SizeIs(2));
  // One that comes and goes is not written with each look.
  Answers("leaf-3", true);
  Reconcile();
  Answers("leaf-3", false);
  Reconcile();
  Answers("leaf-3", true);
  Reconcile();
  EXPECT_EQ(Reason(crds::kCablesLossless), "Contradiction");
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(crds::kCablesLossless), "Lossless");
}

TEST_F(SwitchReconcilerTest, AMapOfASwitchThatWasMadeAnewOrThatSomebodyDeletedStandsAgain) {
  const auto map = [&] { return server.Find(kube::kConfigMaps, {"heddle-system", RenderMapName("leaf-3")}); };
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  ASSERT_TRUE(map());
  const std::string uid = kube::Uid(*server.Find(kFabricSwitches, {"", "leaf-3"}));
  server.ClearRequests();
  Reconcile();
  EXPECT_THAT(WriteLines(), Not(Contains(HasSubstr("configmaps")))) << "it says the same";
  // Deleted and made anew; the garbage collector took the map with it.
  server.Remove(kFabricSwitches, {"", "leaf-3"});
  server.Remove(kube::kConfigMaps, {"heddle-system", RenderMapName("leaf-3")});
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  ASSERT_TRUE(map());
  EXPECT_NE(kube::ArrayAt(*map(), {"metadata", "ownerReferences"})[0]["uid"], uid);
  // By hand.
  server.Remove(kube::kConfigMaps, {"heddle-system", RenderMapName("leaf-3")});
  Answers("leaf-3", true);
  LookFor(599s);
  EXPECT_TRUE(map());
}

TEST_F(SwitchReconcilerTest, TakesThePatchAwayOfASwitchThatIsStaleAndGivesItAgainOnceThatAnswers) {
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  ASSERT_EQ(Reason(kRendered), "Written");
  ASSERT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  ASSERT_EQ(StatusNow().render_config_map, RenderMapName("leaf-3"));
  answers["leaf-3"].trouble = SwitchTrouble{"Unreachable", "nobody listens"};
  LookFor(200s);
  EXPECT_EQ(Reason(kRendered), "Stale");
  EXPECT_THAT(Message(kRendered),
              testing::AllOf(HasSubstr("has not answered for 3 polls"), HasSubstr("Reachable")));
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
  EXPECT_EQ(StatusNow().render_config_map, "");
  // Also for an operator that begins while it is silent, once that has waited.
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  EXPECT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  StartAnew();
  Reconcile();
  EXPECT_THAT(KeysOfMap(), Contains("roce.patch.json")) << "it is too early to say";
  LookFor(75s);
  EXPECT_EQ(Reason(kRendered), "NotRead");
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
}

TEST_F(SwitchReconcilerTest, OffersNoPatchOfASwitchWhoseNameIsInDoubt) {
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  ASSERT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  // A second one answers to the same name.
  Make("leaf-4", crds::SwitchMode::kRender);
  Answers("leaf-4", false);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "NameInDoubt");
  EXPECT_THAT(Message(kRendered), HasSubstr("give each switch a hostname of its own"));
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
  EXPECT_FALSE(server.Find(kube::kConfigMaps, {"heddle-system", RenderMapName("leaf-4")}))
      << "nothing of it stood anywhere";
  // Nor where only the FabricSwitches have one name, and the other was never heard.
  answers.erase("leaf-4");
  LookFor(75s);
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "NameInDoubt");
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
  server.Remove(kFabricSwitches, {"", "leaf-4"});
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  EXPECT_THAT(KeysOfMap(), Contains("roce.patch.json"));
}

TEST_F(SwitchReconcilerTest, TakesThePatchAwayOfASwitchThatIsObservedAgain) {
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  ASSERT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  server.Edit(kFabricSwitches, {"", "leaf-3"}, [](Json& object) { object["spec"]["mode"] = "Observe"; });
  Reconcile();  // its status waits for ten seconds; the patch goes at once
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
  EXPECT_THAT(TextOfMap("NOT-RENDERED.txt"), HasSubstr("mode Observe"));
  server.ClearRequests();
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "");
  EXPECT_EQ(StatusNow().render_config_map, "");
  Answers("leaf-3", true);
  LookFor(1200s);
  EXPECT_THAT(WriteLines(), Not(Contains(HasSubstr("configmaps")))) << "it is taken away once";
}

TEST_F(SwitchReconcilerTest, TakesThePatchAwayOfASwitchThatItCannotReadAnyMore) {
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  ASSERT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  server.Edit(kFabricSwitches, {"", "leaf-3"}, [](Json& object) { object["spec"]["role"] = "Hub"; });
  answers.clear();  // nor does SwitchWatch ask it
  clock.Advance(10s);
  Reconcile();
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
  const Json object = *server.Find(kFabricSwitches, {"", "leaf-3"});
  EXPECT_EQ(kube::StringAt(object, {"status", "renderConfigMap"}), "");
  EXPECT_EQ(kube::Condition(object, kRendered), nullptr);
  server.Edit(kFabricSwitches, {"", "leaf-3"}, [](Json& mended) { mended["spec"]["role"] = "Leaf"; });
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  EXPECT_THAT(KeysOfMap(), Contains("roce.patch.json"));
}

TEST_F(SwitchReconcilerTest, SaysWhatSonicsModelsHaveAgainstTheSwitchBesideItsPatch) {
  Make("leaf-3", crds::SwitchMode::kRender);
  AnswersWith([](auto& tables) { tables["PFC_WD"]["Ethernet0"]["restoration_time"] = "70000"; });
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Faulty");
  EXPECT_THAT(Message(kRendered), testing::AllOf(HasSubstr("PFC_WD|Ethernet0 restoration_time"),
                                                 HasSubstr("sonic-pfcwd.yang"), HasSubstr("on the switch")));
  EXPECT_THAT(TextOfMap("roce.txt"), HasSubstr("Fault: PFC_WD|Ethernet0 restoration_time: "));
  EXPECT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  EXPECT_THAT(TextOfMap("roce.txt"), Not(HasSubstr("Fault:")));
}

TEST_F(SwitchReconcilerTest, RendersByTheChipOfThePlatformAndSaysWhatOneShouldKnowOfThat) {
  Make("leaf-3", crds::SwitchMode::kRender);
  AnswersWith(
      [](auto& tables) { tables["DEVICE_METADATA"]["localhost"]["platform"] = "x86_64-nvidia_sn5600-r0"; });
  Reconcile();
  EXPECT_THAT(TextOfMap("roce.txt"),
              testing::AllOf(HasSubstr("profile spectrum4/v1"), HasSubstr("Note: spectrum4/v1: ")));
}

TEST_F(SwitchReconcilerTest, SaysWhyThereIsNothingToRenderOfASwitch) {
  Make("leaf-3", crds::SwitchMode::kRender);
  server.Edit(kNodeTopologies, {"", "gpu-017"}, [](Json& object) {
    object["spec"]["lossless"][0]["policies"] = Json::array({"roce", "other"});
  });
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "NothingToRender");
  EXPECT_THAT(Message(kRendered),
              testing::AllOf(HasSubstr("cables of hosts end here, 1 in all"), HasSubstr("spec.lossless")));
  EXPECT_THAT(KeysOfMap(), IsEmpty()) << "nor is there a ConfigMap of it";
  server.Edit(kNodeTopologies, {"", "gpu-017"},
              [](Json& object) { object["spec"]["lossless"][0]["policies"] = Json::array({"roce"}); });
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  EXPECT_THAT(KeysOfMap(), Contains("roce.patch.json"));
  // Its last host goes: it is a spine now, for all that anybody knows.
  server.Remove(kNodeTopologies, {"", "gpu-017"});
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "NothingToRender");
  EXPECT_THAT(Message(kRendered), HasSubstr("--fabric-port"));
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
}

TEST_F(SwitchReconcilerTest, RendersASwitchAnewOnceSomethingThatItIsMadeOfIsAnother) {
  Make("leaf-3", crds::SwitchMode::kRender);
  const auto answer = std::make_shared<switches::SonicAnswer>(*SonicAnswerOf("leaf-3", true));
  answers["leaf-3"].config = answer;
  Reconcile();
  ASSERT_EQ(Reason(kRendered), "Written");
  answer->text = "{";  // whoever reads it again would see that
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  AddPolicy(kLosslessPolicies, "roce", {{"countedCables", "LosslessOnly"}, {"cableMetres", 7}});
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "NotRendered") << "for another policy";
  Answers("leaf-3", true);
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written") << "by another answer";
}

TEST_F(SwitchReconcilerTest, APolicyWithALongNameHasKeysThatAConfigMapTakes) {
  const std::string name(253, 'r');
  AddPolicy(kLosslessPolicies, name, Json::object());
  server.Edit(kNodeTopologies, {"", "gpu-017"},
              [&](Json& object) { object["spec"]["lossless"][0]["policies"] = Json::array({name}); });
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  const std::vector<std::string> keys = KeysOfMap();
  EXPECT_THAT(keys, Contains(testing::EndsWith(".patch.json")));
  for (const std::string& key : keys) EXPECT_LE(key.size(), 253u) << key;
  EXPECT_NE(ShortName(name + "a", 242), ShortName(name + "b", 242));
}

TEST_F(SwitchReconcilerTest, SaysThatOfTwoPoliciesOnOneSwitchTheSecondIsToBeRenderedAnew) {
  Make("leaf-3", crds::SwitchMode::kRender);
  AnswersWith([](auto& tables) {
    tables["PORT"]["Ethernet4"] = tables["PORT"]["Ethernet0"];
    tables["PORT"]["Ethernet4"]["alias"] = "etp2";
    tables["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "4";
  });
  Reconcile();
  ASSERT_THAT(TextOfMap("roce.txt"), Not(HasSubstr("several LosslessPolicies")));
  AddPolicy(kLosslessPolicies, "other", Json::object());
  AddNode("gpu-018");
  crds::NodeTopology node = CabledTopology("gpu-018");
  node.status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf-3", "Ethernet4"};
  node.spec.lossless[0].policies = {"other"};
  server.Put(kNodeTopologies, crds::ToJson(node));
  clock.Advance(10s);
  Reconcile();
  for (const char* key : {"roce.txt", "other.txt"})
    EXPECT_THAT(TextOfMap(key), HasSubstr("apply one, and the next once it was rendered anew")) << key;
}

TEST_F(SwitchReconcilerTest, RendersNoPortOfWhichNobodyKnowsWhoseCableEndsThere) {
  Make("leaf-3", crds::SwitchMode::kRender);
  AnswersWith([](auto& tables) {
    tables["PORT"]["Ethernet4"] = tables["PORT"]["Ethernet0"];
    tables["PORT"]["Ethernet4"]["alias"] = "etp2";
  });
  const auto put = [&](const std::string& name, const std::string& port) {
    if (!server.Find(kube::kNodes, {"", name})) AddNode(name);
    crds::NodeTopology node = CabledTopology(name);
    node.status.node.nics[0].ports[0].leaf_port = topology::LeafPort{"leaf-3", port};
    server.Put(kNodeTopologies, crds::ToJson(node));
  };
  put("gpu-017", "Ethernet0");
  put("gpu-018", "Ethernet4");
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "Written");
  EXPECT_THAT(TextOfMap("roce.txt"), HasSubstr("on 2 ports"));
  // One of two cables was moved, and the agent of one host does not know.
  put("gpu-019", "Ethernet4");
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "CablesInDoubt");
  EXPECT_THAT(Message(kRendered), HasSubstr("1 port left out"));
  EXPECT_THAT(TextOfMap("roce.txt"),
              testing::AllOf(HasSubstr("on 1 port,"), HasSubstr("Left out: Ethernet4: gpu-018 mlx5_0:1 and "
                                                                "gpu-019 mlx5_0:1 both say")));
  EXPECT_THAT(TextOfMap("roce.patch.json"), Not(HasSubstr("Ethernet4")));
  put("gpu-017", "Ethernet4");
  clock.Advance(10s);
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "CablesInDoubt");
  EXPECT_THAT(KeysOfMap(), ElementsAre("NOT-RENDERED.txt"));
}

TEST_F(SwitchReconcilerTest, GivesWhatApplyPatchRefusesAKeyOfItsOwnWithTheCommandsInOrder) {
  AddPolicy(kLosslessPolicies, "roce",
            {{"switchMarking", {{"minBytes", 150000}, {"maxBytes", 1500000}, {"probabilityPercent", 100}}}});
  Make("leaf-3", crds::SwitchMode::kRender);
  Reconcile();
  EXPECT_THAT(KeysOfMap(), ElementsAre("roce.load.json", "roce.patch.json", "roce.txt"));
  EXPECT_THAT(TextOfMap("roce.load.json"), HasSubstr("WRED_PROFILE"));
  EXPECT_THAT(TextOfMap("roce.patch.json"), Not(HasSubstr("\"/WRED_PROFILE")));
  EXPECT_THAT(TextOfMap("roce.txt"),
              HasSubstr("  sudo config load -y roce.load.json\n  sudo config apply-patch roce.patch.json\n"
                        "  sudo config save -y\n"));
}

TEST_F(SwitchReconcilerTest, ASwitchThatNothingCanBeRenderedForIsToldSo) {
  Make("leaf-3", crds::SwitchMode::kRender);
  AnswersWith([](auto& tables) { tables["DEVICE_METADATA"]["localhost"]["switch_type"] = "voq"; });
  Reconcile();
  EXPECT_EQ(Reason(kRendered), "NotRendered");
  EXPECT_THAT(Message(kRendered), HasSubstr("LosslessPolicy roce: this is a VOQ chassis"));
  EXPECT_THAT(KeysOfMap(), ElementsAre("roce.txt"));
}

}  // namespace
}  // namespace heddle::operators
