#include "extender/node_constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/packed.h"

namespace heddle::extender {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

Json NodeObject() {
  return Json::parse(R"({"metadata":{"name":"a1","labels":{"zone":"a","cores":"64"}},
      "spec":{"taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"},
                        {"key":"soft","effect":"PreferNoSchedule"}]},
      "status":{"allocatable":{"cpu":"3900m","memory":"1Gi","pods":"110","nvidia.com/gpu":"8","rdma/hca":"4"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
}

NodeFacts Node() {
  return ReadNode(NodeObject());
}

struct Case {
  const char* name;
  const char* spec;  // beside a toleration of the taint gpu
  bool admitted;
};
class NodeAffinity : public testing::TestWithParam<Case> {};
TEST_P(NodeAffinity, AnswersAsTheScheduler) {
  Json pod = {{"spec", Json::parse(GetParam().spec)}};
  pod["spec"]["tolerations"].push_back({{"key", "gpu"}, {"operator", "Exists"}});
  EXPECT_EQ(PodConstraints(pod).Admit(Node()), GetParam().admitted);
}

#define TERMS(terms)                                                                                             \
  R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":)" terms \
  "}}}}"
#define EXPRESSION(text) TERMS(R"([{"matchExpressions":[)" text "]}]")
INSTANTIATE_TEST_SUITE_P(
    Table, NodeAffinity,
    testing::Values(
        Case{"nothing", "{}", true}, Case{"selector", R"({"nodeSelector":{"zone":"a"}})", true},
        Case{"other_selector", R"({"nodeSelector":{"zone":"b"}})", false},
        Case{"missing_label", R"({"nodeSelector":{"disk":"ssd"}})", false},
        Case{"in", EXPRESSION(R"({"key":"zone","operator":"In","values":["b","a"]})"), true},
        Case{"not_in", EXPRESSION(R"({"key":"zone","operator":"NotIn","values":["a"]})"), false},
        Case{"not_in_of_a_missing_label", EXPRESSION(R"({"key":"disk","operator":"NotIn","values":["a"]})"),
             true},
        Case{"exists", EXPRESSION(R"({"key":"zone","operator":"Exists"})"), true},
        Case{"does_not_exist", EXPRESSION(R"({"key":"zone","operator":"DoesNotExist"})"), false},
        Case{"gt", EXPRESSION(R"({"key":"cores","operator":"Gt","values":["32"]})"), true},
        Case{"gt_equal", EXPRESSION(R"({"key":"cores","operator":"Gt","values":["64"]})"), false},
        Case{"lt", EXPRESSION(R"({"key":"cores","operator":"Lt","values":["65"]})"), true},
        Case{"gt_of_a_word", EXPRESSION(R"({"key":"zone","operator":"Gt","values":["1"]})"), false},
        Case{"unknown_operator", EXPRESSION(R"({"key":"zone","operator":"Like","values":["a"]})"), false},
        Case{"no_terms", TERMS("[]"), false}, Case{"an_empty_term_matches_nothing", TERMS("[{}]"), false},
        Case{"terms_are_alternatives",
             TERMS(R"([{},{"matchExpressions":[{"key":"zone","operator":"Exists"}]}])"), true},
        Case{"expressions_all_hold",
             EXPRESSION(R"({"key":"zone","operator":"Exists"},{"key":"disk","operator":"Exists"})"), false},
        Case{"field", TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["a1"]}]}])"),
             true},
        Case{"other_field",
             TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["b"]}]}])"), false},
        Case{"excluded_by_field",
             TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["a1"]}]}])"),
             false}),
    [](const auto& one) { return one.param.name; });

std::optional<std::vector<std::string>> NamedIn(const char* spec) {
  return PodConstraints(Json{{"spec", Json::parse(spec)}}).named();
}
TEST(NodeNames, AreKnownWhereEveryTermNamesItsNodes) {
  EXPECT_THAT(
      NamedIn(TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["a1"]}]}])")),
      Optional(ElementsAre("a1")));
  EXPECT_THAT(NamedIn(TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["a1","b"]}],
                                "matchExpressions":[{"key":"zone","operator":"Exists"}]},
                               {"matchFields":[{"key":"metadata.name","operator":"In","values":["c"]}]}])")),
              Optional(ElementsAre("a1", "b", "c")));
  EXPECT_THAT(NamedIn(TERMS("[]")), Optional(IsEmpty())) << "no term, no node";
}
TEST(NodeNames, AreNotKnownWhereATermMayMatchAnyNode) {
  EXPECT_EQ(NamedIn("{}"), std::nullopt);
  EXPECT_EQ(NamedIn(EXPRESSION(R"({"key":"zone","operator":"Exists"})")), std::nullopt);
  EXPECT_EQ(
      NamedIn(TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":["a1"]}]}])")),
      std::nullopt);
  EXPECT_EQ(NamedIn(TERMS(R"([{"matchFields":[{"key":"metadata.name","operator":"In","values":["a1"]}]},
                             {"matchExpressions":[{"key":"zone","operator":"Exists"}]}])")),
            std::nullopt);
}

TEST(NodeTaints, NeedATolerationThatMatches) {
  const auto admits = [](const char* toleration) {
    Json pod = {{"spec", {{"tolerations", Json::array()}}}};
    if (*toleration != 0) pod["spec"]["tolerations"].push_back(Json::parse(toleration));
    return PodConstraints(pod).Admit(Node());
  };
  EXPECT_FALSE(admits(""));
  EXPECT_TRUE(admits(R"({"operator":"Exists"})"));
  EXPECT_TRUE(admits(R"({"key":"gpu","operator":"Exists","effect":"NoSchedule"})"));
  EXPECT_TRUE(admits(R"({"key":"gpu","value":"yes"})"));
  EXPECT_FALSE(admits(R"({"key":"gpu","value":"no"})"));
  EXPECT_FALSE(admits(R"({"key":"gpu","operator":"Exists","effect":"NoExecute"})"));
  EXPECT_FALSE(admits(R"({"key":"other","operator":"Exists"})"));
}

TEST(NodeFacts, ReadsAllocatableInTheSchedulersUnits) {
  const NodeFacts node = Node();
  EXPECT_EQ(node.milli_cpu, 3900);
  EXPECT_EQ(node.memory_bytes, 1 << 30);
  EXPECT_EQ(node.pods, 110);
  EXPECT_EQ(node.gpus, 8);
  EXPECT_EQ(node.gpu_resource, "nvidia.com/gpu");
  EXPECT_EQ(node.extended, (std::vector<std::pair<std::string, std::int64_t>>{{"rdma/hca", 4}}));
  EXPECT_TRUE(node.ready);
}

TEST(ReadNode, APackedOneReadsAsAWholeOne) {
  EXPECT_EQ(ReadNode(kube::Packed(NodeObject())), Node());
}

}  // namespace
}  // namespace heddle::extender
