#include "extender/verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "extender/pod_facts.h"
#include "tests/support/builders.h"

namespace heddle::extender {
namespace {

using kube::Json;
using ::testing::HasSubstr;

Endpoints NoCluster() {
  return {.snapshot = [] { return std::shared_ptr<const Snapshot>(); },
          .kept_nodes = [] { return std::make_shared<const KeptNodes>(); },
          .is_gang_pod = [](const std::string&) { return true; },
          .status = {.metrics = [] { return std::string("# metrics\n"); },
                     .not_ready = [] { return std::string(); }}};
}

Json Args(const char* annotations, const char* names = R"(["n1","n2","n3"])") {
  Json args = Json::parse(R"({"Nodes":null,"Future":{"x":[1]}})");
  args["Pod"] = Json::parse(R"({"metadata":{"name":"p","namespace":"t"},"spec":{"containers":[
      {"name":"c","resources":{"limits":{"nvidia.com/gpu":"4"}}}]}})");
  args["Pod"]["metadata"]["annotations"] = Json::parse(annotations);
  args["NodeNames"] = Json::parse(names);
  return args;
}

Json Post(const char* path, const Json& body, const Endpoints& endpoints = NoCluster()) {
  const kube::ServedAnswer answer = Answer({"POST", path, body.dump()}, endpoints);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "application/json");
  return Json::parse(answer.body);
}

TEST(Filter, PassesAGangsPodOnItsPlannedNodeOnly) {
  const Json answer = Post("/filter", Args(R"({"heddle.dev/gang-uid":"g","heddle.dev/node":"n2"})"));
  EXPECT_EQ(answer["NodeNames"], Json::parse(R"(["n2"])"));
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["Error"], "");
  ASSERT_EQ(answer["FailedAndUnresolvableNodes"].size(), 2u) << "so that preemption evicts nobody for it";
  EXPECT_THAT(answer["FailedAndUnresolvableNodes"]["n1"].get<std::string>(), HasSubstr("n2"));
}

TEST(Filter, PassesEverybodyElseEverywhere) {
  for (const char* annotations :
       {"{}", "null", R"({"heddle.dev/gang-uid":"g"})", R"({"heddle.dev/node":"n2"})"}) {
    const Json answer = Post("/filter", Args(annotations));
    EXPECT_EQ(answer["NodeNames"].size(), 3u) << annotations;
    EXPECT_TRUE(answer["FailedAndUnresolvableNodes"].empty()) << annotations;
  }
}

TEST(Filter, PassesNobodyWhenTheSchedulerNamesNobody) {
  EXPECT_EQ(Post("/filter", Args("{}", "[]"))["NodeNames"], Json::array());
  EXPECT_EQ(Post("/filter", Args("{}", "null"))["NodeNames"], Json::array());
}

// A space makes it another list to whom only copies, and the same to whom parses.
TEST(Filter, AnswersTheSameWhetherItCopiesTheNamesOrParsesThem) {
  for (const char* pod :
       {R"({"metadata":{"name":"p"}})",
        R"({"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":4}}}]}})",
        R"({"metadata":{"annotations":{"heddle.dev/gang-uid":"g","heddle.dev/node":"n2"}}})",
        R"({"metadata":{"annotations":{"heddle.dev/gang-uid":"g"}}})",
        R"({"metadata":{"annotations":{"note":"\"NodeNames\":[\"x\"]}"}}})"}) {
    for (const std::string names : {"", R"("n1")", R"("n1","n2","gpu-7.cluster.example")"}) {
      const auto body = [&](const char* gap) {
        return std::string(R"({"Pod":)") + pod + R"(,"Nodes":null,"NodeNames":[)" + gap + names + "]}\n";
      };
      ASSERT_TRUE(TakeNamesApart(body(""))) << body("");
      ASSERT_FALSE(TakeNamesApart(body(" ")));
      const auto copied = Answer({"POST", "/filter", body("")}, NoCluster());
      const auto parsed = Answer({"POST", "/filter", body(" ")}, NoCluster());
      EXPECT_EQ(copied.status, 200);
      EXPECT_EQ(copied.body, parsed.body);
    }
  }
}

TEST(Filter, ChecksTheRestOfARequestWhoseNamesItCopies) {
  const auto status = [](const char* body) { return Answer({"POST", "/filter", body}, NoCluster()).status; };
  EXPECT_EQ(status(R"({"Pod":{},"NodeNames":["n1"]})"), 200);
  EXPECT_EQ(status(R"({"Pod":{},"Future":[1 2],"NodeNames":["n1"]})"), 400);
  EXPECT_EQ(status(R"({"Pod":7,"NodeNames":["n1"]})"), 400);
  EXPECT_EQ(status(R"({"NodeNames":["n1"]})"), 400);
  EXPECT_EQ(status(R"([{"Pod":{},"NodeNames":["n1"]})"), 400);
  EXPECT_EQ(status(R"({"Pod":{},"Deeper":{"NodeNames":["n1"]})"), 400) << "it closes an inner object";
}

TEST(Filter, GivesWholeNodesBackToASchedulerThatSentThem) {
  Json args = Args(R"({"heddle.dev/gang-uid":"g","heddle.dev/node":"n2"})", "null");
  args["Nodes"] =
      Json::parse(R"({"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"},"spec":{"x":1}}]})");
  const Json answer = Post("/filter", args);
  EXPECT_TRUE(answer["NodeNames"].is_null());
  EXPECT_EQ(answer["Nodes"]["items"], Json::parse(R"([{"metadata":{"name":"n2"},"spec":{"x":1}}])"));
}

TEST(Prioritize, KnowsNothingBeforeTheFirstSnapshot) {
  EXPECT_EQ(Post("/prioritize", Args("{}")), Json::array());
}

std::shared_ptr<Snapshot> TwoNodes() {
  auto fabric = std::make_shared<const topology::Fabric>(test::FabricOf("su:1 node:2 gpu:8 nic:8 rail:8"));
  std::vector<placement::NodeState> nodes(2);
  nodes[0].free_gpus = 0xFF;
  nodes[1].free_gpus = 0x0F;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fabrics.push_back({fabric, placement::ClusterState(fabric, nodes)});
  return snapshot;
}

TEST(Prioritize, WritesPlainNamesAsItWritesAny) {
  std::vector<HostScore> scores;
  EXPECT_EQ(ToBodyOfPlain(scores), ToBody(scores));
  const std::vector<std::string> names{"a", "gpu-00017.pod-3.cluster.example", "", std::string(253, 'x')};
  for (int i = 0; i <= 10; ++i) {
    scores.push_back({names[std::size_t(i) % names.size()], i});
    EXPECT_EQ(ToBodyOfPlain(scores), ToBody(scores));
  }
  Endpoints endpoints = NoCluster();
  endpoints.snapshot = TwoNodes;
  const Json of_a_gang =
      Args(R"({"heddle.dev/gang-uid":"g","heddle.dev/node":"no \"node"})", R"(["n1","no \"node","n3"])");
  EXPECT_EQ(Post("/prioritize", of_a_gang, endpoints), Json::array({{{"Host", "no \"node"}, {"Score", 10}}}));
}

TEST(Prioritize, TellsTheSchedulerOnlyHowNodesDiffer) {
  const auto kept = [](std::vector<HostScore> scores) {
    KeepDifferences(scores);
    return scores;
  };
  using Scores = std::vector<HostScore>;
  EXPECT_EQ(kept({{"a", 3}, {"b", 10}, {"c", 3}, {"d", 4}}), (Scores{{"b", 7}, {"d", 1}}));
  EXPECT_EQ(kept({{"a", 0}, {"b", 10}}), (Scores{{"b", 10}}));
  EXPECT_EQ(kept({{"a", 10}, {"b", 10}}), Scores());
  EXPECT_EQ(kept({{"a", 5}}), Scores());
  EXPECT_EQ(kept({}), Scores());
}

TEST(Prioritize, PrefersTheNodeThatIsAlreadyBrokenAndStaysWithinTen) {
  const auto snapshot = TwoNodes();
  const auto& nodes = snapshot->fabrics[0].fabric->nodes;
  ExtenderArgs args{
      .gpus = 4, .node_names = {nodes[0].node.name, nodes[1].node.name, "unknown"}, .bytes = {}};
  const auto scores = Prioritize(args, snapshot.get());
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_GT(scores[1].score, scores[0].score);
  EXPECT_EQ(scores[2].score, 0);
  for (const HostScore& one : scores) EXPECT_TRUE(one.score >= 0 && one.score <= 10) << one.score;
}

TEST(Prioritize, GivesNothingToAPodThatNoNodeCouldHold) {
  const auto snapshot = TwoNodes();
  for (const int gpus : {9, 33, 65'536}) {
    ExtenderArgs args{
        .gpus = gpus, .node_names = {snapshot->fabrics[0].fabric->nodes[0].node.name}, .bytes = {}};
    EXPECT_EQ(Prioritize(args, snapshot.get())[0].score, 0) << gpus;
  }
}

TEST(Prioritize, HasNoOpinionOnPodsWithoutGpus) {
  const auto snapshot = TwoNodes();
  ExtenderArgs args{.node_names = {snapshot->fabrics[0].fabric->nodes[0].node.name}};
  EXPECT_EQ(Prioritize(args, snapshot.get())[0].score, 0);
}

TEST(Filter, KeepsALonePodFromNodesThatOthersLeftForAGangOfHigherPriority) {
  const KeptNodes kept{{"n2", 100}};
  ExtenderArgs args{.gpus = 4, .node_names = {"n1", "n2"}, .bytes = {}};
  FilterAnswer answer = Filter(args, kept);
  EXPECT_EQ(answer.passed, std::vector<std::string_view>{"n1"});
  EXPECT_THAT(answer.unresolvable.at("n2"), HasSubstr("priority 100"));
  args.priority = 100;
  EXPECT_EQ(Filter(args, kept).passed.size(), 2u) << "of the same priority";
  args.priority = 0;
  args.gpus = 0;
  EXPECT_EQ(Filter(args, kept).passed.size(), 2u) << "it takes no GPU";
  args.gpus = 4;
  args.of_gang = true;
  args.planned_node = "n2";
  EXPECT_EQ(Filter(args, kept).passed, std::vector<std::string_view>{"n2"}) << "a plan knows better";
}

// Half of the first of two nodes is reserved.
std::shared_ptr<Snapshot> WithReservation() {
  const std::shared_ptr<Snapshot> snapshot = TwoNodes();
  FabricView& view = snapshot->fabrics[0];
  Hold reserved;
  reserved.gpus = 0xF0;
  reserved.name = "gang t/train";
  snapshot->holds.Set(view.fabric->nodes[0].node.name, {reserved});
  view.may_reserve = {1, 0};
  return snapshot;
}

TEST(Filter, KeepsALonePodFromNodesWithReservedGpus) {
  const auto snapshot = WithReservation();
  const auto& nodes = snapshot->fabrics[0].fabric->nodes;
  const std::string &reserving = nodes[0].node.name, &other = nodes[1].node.name;
  ExtenderArgs args{.gpus = 1, .priority = 1000, .node_names = {reserving, other, "unknown"}, .bytes = {}};
  const FilterAnswer answer = Filter(args, {}, snapshot.get());
  EXPECT_EQ(answer.passed, (std::vector<std::string_view>{other, "unknown"})) << "nothing is reserved there";
  EXPECT_EQ(answer.unresolvable,
            (std::map<std::string_view, std::string>{{reserving, "its GPUs are reserved for gang t/train"}}));
  EXPECT_EQ(Filter(args, {}).passed.size(), 3u) << "nothing is known yet";
  Hold leaving{.gpus = 0xFF,
               .source = Hold::Source::kAnnotation,
               .owner_uid = "o",
               .ns = "t",
               .name = "pod t/train-0"};
  leaving.leaving = true;
  snapshot->holds.Set(reserving, {leaving});
  EXPECT_EQ(Filter(args, {}, snapshot.get()).passed.size(), 3u) << "its gang does not stand";
  snapshot->gangs[{"t", "o"}] = "t/train";
  EXPECT_EQ(Filter(args, {}, snapshot.get()).unresolvable[reserving],
            "its GPUs are reserved for the successor of pod t/train-0");
  args.of_gang = true;
  args.planned_node = reserving;
  EXPECT_EQ(Filter(args, {}, snapshot.get()).passed, std::vector<std::string_view>{reserving})
      << "for itself";
  args = {.gpus = 0, .node_names = {reserving}, .bytes = {}};
  EXPECT_EQ(Filter(args, {}, snapshot.get()).passed.size(), 1u) << "it takes no GPU";
}

TEST(Filter, KeepsALonePodFromASlotThatWasLeftSinceTheSnapshotWasTaken) {
  const auto snapshot = TwoNodes();
  const auto& nodes = snapshot->fabrics[0].fabric->nodes;
  const std::string &left = nodes[0].node.name, &other = nodes[1].node.name;
  const SlotsLeftByNode slots{{left, {{"t/ended-0", "t", "gone"}, {"t/train-0", "t", "o"}}}};
  ExtenderArgs args{.gpus = 1, .node_names = {left, other}, .bytes = {}};
  EXPECT_EQ(Filter(args, {}, snapshot.get(), slots).passed.size(), 2u) << "their gangs do not stand";
  EXPECT_EQ(Filter(args, {}, nullptr, slots).passed.size(), 2u) << "nothing is known yet";
  snapshot->gangs[{"t", "o"}] = "t/train";
  const FilterAnswer answer = Filter(args, {}, snapshot.get(), slots);
  EXPECT_EQ(answer.passed, std::vector<std::string_view>{other});
  EXPECT_EQ(answer.unresolvable, (std::map<std::string_view, std::string>{
                                     {left, "its GPUs are reserved for the successor of pod t/train-0"}}));
  args.gpus = 0;
  EXPECT_EQ(Filter(args, {}, snapshot.get(), slots).passed.size(), 2u) << "it takes no GPU";
  args.of_gang = true;
  args.planned_node = left;
  EXPECT_EQ(Filter(args, {}, snapshot.get(), slots).passed, std::vector<std::string_view>{left});

  Endpoints endpoints = NoCluster();
  endpoints.snapshot = [&] { return snapshot; };
  endpoints.slots_left = [&] { return std::make_shared<const SlotsLeftByNode>(slots); };
  for (const char* gap : {"", " "}) {
    std::string body = R"({"Pod":{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"4"}}}]}},)";
    body.append(R"("NodeNames":[)").append(gap).append("\"" + left + "\",\"" + other + "\"]}");
    EXPECT_EQ(Json::parse(Answer({"POST", "/filter", body}, endpoints).body)["NodeNames"],
              Json::array({other}));
  }
}

TEST(Filter, AnswersOfReservedGpusWhateverTheListOfNamesLooksLike) {
  const auto snapshot = WithReservation();
  Endpoints endpoints = NoCluster();
  endpoints.snapshot = [snapshot] { return snapshot; };
  const auto& nodes = snapshot->fabrics[0].fabric->nodes;
  for (const char* gap : {"", " "}) {
    std::string body = R"({"Pod":{"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"4"}}}]}},)";
    body.append(R"("NodeNames":[)")
        .append(gap)
        .append("\"" + nodes[0].node.name + "\",\"" + nodes[1].node.name);
    body += "\"]}";
    const Json answer = Json::parse(Answer({"POST", "/filter", body}, endpoints).body);
    EXPECT_EQ(answer["NodeNames"], Json::array({nodes[1].node.name})) << body;
    EXPECT_TRUE(answer["FailedAndUnresolvableNodes"].contains(nodes[0].node.name)) << body;
  }
}

// g1 and g2 are pods of a gang.
Endpoints WithGang() {
  Endpoints endpoints = NoCluster();
  endpoints.is_gang_pod = [](const std::string& uid) { return uid == "g1" || uid == "g2"; };
  return endpoints;
}

// The nodes that stay, with these victims on each.
std::vector<std::string> Kept(const Json& victims, const Endpoints& endpoints, const char* annotations = "{}",
                              const char* form = "NodeNameToMetaVictims") {
  Json body = Json::object();
  body["Pod"] = Args(annotations)["Pod"];
  body[form] = victims;
  const kube::ServedAnswer answer = Answer({"POST", "/preempt", body.dump()}, endpoints);
  EXPECT_EQ(answer.status, 200) << answer.body;
  const Json answered = Json::parse(answer.body);
  std::vector<std::string> nodes;
  for (const auto& [node, victim] : answered["NodeNameToMetaVictims"].items()) nodes.push_back(node);
  return nodes;
}

Json VictimsOf(const std::vector<std::pair<std::string, std::string>>& uids) {
  Json victims = Json::object();
  for (const auto& [node, uid] : uids) {
    victims[node]["NumPDBViolations"] = 0;
    victims[node]["Pods"].push_back({{"UID", uid}});
  }
  return victims;
}

using Names = std::vector<std::string>;

TEST(Preempt, AnswersTheMetaFormWhicheverFormCameIn) {
  const Json expected =
      Json::parse(R"({"NodeNameToMetaVictims":{"n3":{"Pods":[{"UID":"lone3"}],"NumPDBViolations":2}}})");
  for (const char* body :
       {R"({"Pod":{},"NodeNameToMetaVictims":{"n3":{"Pods":[{"UID":"lone3"}],"NumPDBViolations":2}}})",
        R"({"Pod":{},"NodeNameToVictims":{"n3":{"Pods":[{"metadata":{"uid":"lone3"}}],
                               "NumPDBViolations":2}}})"}) {
    const kube::ServedAnswer answer = Answer({"POST", "/preempt", body}, WithGang());
    EXPECT_EQ(Json::parse(answer.body), expected) << body;
  }
}

TEST(Preempt, EvictsNoPodOfAGang) {
  EXPECT_EQ(Kept(VictimsOf({{"n1", "g1"}, {"n3", "lone3"}}), WithGang()), Names{"n3"});
  EXPECT_EQ(Kept(VictimsOf({{"n2", "lone2"}, {"n2", "g1"}}), WithGang()), Names{}) << "among others";
}

TEST(Preempt, TakesAWholePodAtItsWordToo) {
  const Json of_gang =
      Json::parse(R"({"n9":{"Pods":[{"metadata":{"uid":"x","annotations":{"heddle.dev/gang-uid":"g"}}}]}})");
  const Json lone = Json::parse(R"({"n9":{"Pods":[{"metadata":{"uid":"x"}}]}})");
  EXPECT_EQ(Kept(of_gang, WithGang(), "{}", "NodeNameToVictims"), Names{});
  EXPECT_EQ(Kept(lone, WithGang(), "{}", "NodeNameToVictims"), Names{"n9"});
}

TEST(Preempt, EvictsNobodyBeforeAllPodsWereRead) {
  EXPECT_EQ(Kept(VictimsOf({{"n3", "lone3"}}), NoCluster()), Names{});
}

TEST(Preempt, LeavesAGangsOwnPodItsPlannedNodeOnly) {
  const Json victims = VictimsOf({{"n1", "g1"}, {"n2", "lone2"}, {"n3", "lone3"}});
  EXPECT_EQ(Kept(victims, WithGang(), R"({"heddle.dev/gang-uid":"g","heddle.dev/node":"n3"})"), Names{"n3"});
  EXPECT_EQ(Kept(victims, WithGang(), R"({"heddle.dev/gang-uid":"g","heddle.dev/node":"n1"})"), Names{});
  EXPECT_EQ(Kept(victims, WithGang(), R"({"heddle.dev/gang-uid":"g"})"), Names{}) << "it has no plan";
}

TEST(Filter, CountsGpusOfInitContainersAndSidecarsAsTheSchedulerDoes) {
  const auto gpus = [](const char* init, const char* containers) {
    const std::string pod =
        std::string(R"({"spec":{"initContainers":)") + init + R"(,"containers":)" + containers + "}}";
    const auto args = ParseExtenderArgs(R"({"Pod":)" + pod + R"(,"NodeNames":[]})");
    if (!args) return -1;
    EXPECT_EQ(args->gpus, ReadDemand(Json::parse(pod)).gpus) << pod;
    return args->gpus;
  };
  const char* two = R"([{"resources":{"limits":{"nvidia.com/gpu":"2"}}}])";
  const char* three_of_a_sidecar =
      R"([{"restartPolicy":"Always","resources":{"limits":{"nvidia.com/gpu":"3"}}}])";
  EXPECT_EQ(gpus("[]", two), 2);
  EXPECT_EQ(gpus(two, "[{}]"), 2) << "while it starts";
  EXPECT_EQ(gpus(two, two), 2) << "one after the other";
  EXPECT_EQ(gpus(three_of_a_sidecar, two), 5) << "beside each other";
  EXPECT_EQ(gpus("7", two), 2);
  EXPECT_EQ(gpus("[]", R"([{"resources":{"limits":{"amd.com/gpu":8}}},{"resources":{}},7,null])"), 8);
  EXPECT_EQ(gpus("[]", R"([{"resources":{"limits":{"nvidia.com/gpu":"1e0"}}}])"), 1) << "a quantity";
  EXPECT_EQ(gpus("[]", R"([{"resources":{"limits":{"nvidia.com/gpu":"none"}}}])"), 0);
}

TEST(Preempt, EmptiesNoNodeForALonePodWhereGpusAreReserved) {
  const auto snapshot = WithReservation();
  Endpoints endpoints = NoCluster();
  endpoints.is_gang_pod = [](const std::string&) { return false; };
  endpoints.snapshot = [snapshot] { return snapshot; };
  const auto& nodes = snapshot->fabrics[0].fabric->nodes;
  const Json victims = VictimsOf({{nodes[0].node.name, "lone1"}, {nodes[1].node.name, "lone2"}});
  EXPECT_EQ(Kept(victims, endpoints), Names{nodes[1].node.name});
  EXPECT_EQ(Kept(victims, endpoints,
                 (R"({"heddle.dev/gang-uid":"g","heddle.dev/node":")" + nodes[0].node.name + "\"}").c_str()),
            Names{nodes[0].node.name})
      << "a gang's own pod";
}

TEST(Preempt, EmptiesNoNodeForALonePodWhereASlotWasJustLeft) {
  const auto snapshot = TwoNodes();
  snapshot->gangs[{"t", "o"}] = "t/train";
  const auto& nodes = snapshot->fabrics[0].fabric->nodes;
  Endpoints endpoints = NoCluster();
  endpoints.is_gang_pod = [](const std::string&) { return false; };
  endpoints.snapshot = [snapshot] { return snapshot; };
  const Json victims = VictimsOf({{nodes[0].node.name, "lone1"}, {nodes[1].node.name, "lone2"}});
  EXPECT_THAT(Kept(victims, endpoints), testing::SizeIs(2));
  endpoints.slots_left = [&] {
    return std::make_shared<const SlotsLeftByNode>(
        SlotsLeftByNode{{nodes[0].node.name, {{"t/train-0", "t", "o"}}}});
  };
  EXPECT_EQ(Kept(victims, endpoints), Names{nodes[1].node.name}) << "filter would refuse it";
}

TEST(Preempt, KeepsNodesThatOthersLeftForAGangOfHigherPriority) {
  Endpoints endpoints = WithGang();
  endpoints.kept_nodes = [] { return std::make_shared<const KeptNodes>(KeptNodes{{"n3", 100}}); };
  EXPECT_EQ(Kept(VictimsOf({{"n2", "lone2"}, {"n3", "lone3"}}), endpoints), Names{"n2"});
}

class EveryVerb : public testing::TestWithParam<const char*> {};
TEST_P(EveryVerb, RefusesGarbageAndHugeBodiesWithASentence) {
  for (const char* body : {"", "garbage", "[]", "{", "null", "\xff\xfe", "{\"Pod\":"}) {
    const kube::ServedAnswer answer = Answer({"POST", GetParam(), body}, NoCluster());
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.body, HasSubstr("the body is no extender request"));
  }
  const kube::ServedAnswer huge = Answer({"POST", GetParam(), "", true}, NoCluster());
  EXPECT_EQ(huge.status, 413);
  EXPECT_THAT(huge.body, HasSubstr("nodeCacheCapable"));
  EXPECT_EQ(Answer({"GET", GetParam(), ""}, NoCluster()).status, 405);
}
INSTANTIATE_TEST_SUITE_P(Table, EveryVerb, testing::Values("/filter", "/prioritize", "/preempt"),
                         [](const auto& one) { return std::string(one.param).substr(1); });

TEST(EveryVerb, SurvivesWrongTypesEverywhere) {
  for (const char* body : {R"({"Pod":[]})", R"({"Pod":{"metadata":3,"spec":"x"},"NodeNames":["a"]})",
                           R"({"Pod":{},"NodeNames":[1]})", R"({"Pod":{},"NodeNames":"a"})",
                           R"({"Pod":{"spec":{"containers":[7,{"resources":[]}]}},"Nodes":{"items":[1,{}]}})",
                           R"({"NodeNameToMetaVictims":{"a":1},"NodeNameToVictims":[]})"}) {
    for (const char* path : {"/filter", "/prioritize", "/preempt"}) {
      const int status = Answer({"POST", path, body}, NoCluster()).status;
      EXPECT_TRUE(status == 200 || status == 400) << path << " " << body;
    }
  }
}

TEST(Health, TellsReadyFromAlive) {
  Endpoints endpoints = NoCluster();
  endpoints.status.not_ready = [] { return std::string("nothing was read yet"); };
  EXPECT_EQ(Answer({"GET", "/healthz", ""}, endpoints).status, 200);
  EXPECT_EQ(Answer({"GET", "/readyz", ""}, endpoints).status, 503);
  EXPECT_EQ(Answer({"GET", "/metrics", ""}, endpoints).body, "# metrics\n");
  EXPECT_EQ(Answer({"GET", "/nonsense", ""}, endpoints).status, 404);
}

}  // namespace
}  // namespace heddle::extender
