#include "cli/explain_target.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/lower_case.h"
#include "crds/keys.h"

namespace heddle::cli {

const std::vector<ExplainKind>& ExplainKinds() {
  using kube::CustomResource;
  static const std::vector<ExplainKind> kinds{
      {"Job", {"job", "jobs"}, kube::kJobs, ""},
      {"JobSet",
       {"jobset", "jobsets"},
       CustomResource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", true),
       ""},
      {"TrainJob",
       {"trainjob", "trainjobs"},
       CustomResource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", true),
       "JobSet"},
      {"PyTorchJob",
       {"pytorchjob", "pytorchjobs"},
       CustomResource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true),
       ""},
      {"MPIJob",
       {"mpijob", "mpijobs"},
       CustomResource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob", true),
       ""},
      {"LeaderWorkerSet",
       {"lws", "leaderworkerset", "leaderworkersets"},
       CustomResource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", true),
       ""},
      {"RayCluster",
       {"raycluster", "rayclusters"},
       CustomResource("ray.io", "v1", "rayclusters", "RayCluster", true),
       ""},
      {"RayJob",
       {"rayjob", "rayjobs"},
       CustomResource("ray.io", "v1", "rayjobs", "RayJob", true),
       "RayCluster"},
      {"RayService",
       {"rayservice", "rayservices"},
       CustomResource("ray.io", "v1", "rayservices", "RayService", true),
       "RayCluster"},
      {"StatefulSet",
       {"sts", "statefulset", "statefulsets"},
       {"apps", "v1", "statefulsets", "StatefulSet", true},
       ""},
      {"PodGroup",
       {"podgroup", "podgroups"},
       CustomResource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", true),
       "",
       "v1alpha2"},
      {"Pods", {"pods", "pod-group"}, {}, ""},
      {"Gang",
       {"gang", "gangs"},
       CustomResource(std::string(crds::keys::kGroup), std::string(crds::keys::kVersion),
                      std::string(crds::keys::kGang.plural), std::string(crds::keys::kGang.kind), true),
       ""}};
  return kinds;
}

const ExplainKind* ExplainKindOf(const std::string& kind) {
  const auto& kinds = ExplainKinds();
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.kind == kind; });
  return found == kinds.end() ? nullptr : &*found;
}

base::Result<ExplainTarget> ParseExplainTarget(const std::string& text) {
  if (text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json")) {
    return base::Fail(
        base::Code::kInvalid,
        fmt::format(
            "\"{}\" is a file, and what runs or waits is in the cluster: write KIND/NAME, as job/llama; "
            "`kubectl heddle check --where {}` says where what is in the file would land",
            text, text));
  }
  const std::size_t slash = text.find('/');
  std::string word = slash == std::string::npos ? "job" : text.substr(0, slash);
  const std::string name = slash == std::string::npos ? text : text.substr(slash + 1);
  word = base::LowerCase(word.substr(0, word.find('.')));
  const auto& kinds = ExplainKinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const ExplainKind& one) {
    return std::find(one.words.begin(), one.words.end(), word) != one.words.end();
  });
  if (kind == kinds.end()) {
    std::vector<std::string> known;
    known.reserve(kinds.size());
    for (const ExplainKind& one : kinds) known.push_back(one.words.front());
    return base::Fail(
        base::Code::kInvalid,
        fmt::format("\"{}\" names nothing that makes a gang: write KIND/NAME, where KIND is one of {} "
                    "(pods/NAME: pods with the label heddle.dev/gang-name=NAME)",
                    text, fmt::join(known, ", ")));
  }
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    const std::string& called = kind->words.front();
    return base::Fail(base::Code::kInvalid,
                      fmt::format("\"{}\" {}: write {}/NAME, as {}/llama", text,
                                  name.empty() ? "lacks the name" : "is no name", called, called));
  }
  return ExplainTarget{&*kind, name};
}

bool IsGangOf(const crds::Gang& gang, const ExplainTarget& target) {
  if (target.kind->kind == "Gang") return gang.name == target.name;
  const std::string group = target.kind->kind + "/" + target.name;
  if (gang.spec.group == group || gang.spec.group.starts_with(group + "/")) return true;
  return gang.spec.owner.kind == target.kind->kind && gang.spec.owner.name == target.name;
}

}  // namespace heddle::cli
