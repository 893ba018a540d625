#include "cli/complete_names.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/explain_target.h"
#include "cli/live_cluster.h"
#include "crds/keys.h"

namespace heddle::cli {
namespace {

// Of gangs in files: their names, or those of what made them.
std::vector<std::string> OwnersIn(const ClusterFiles& files, const NamesWanted& wanted,
                                  const ExplainKind& kind) {
  std::set<std::string> names;
  for (const crds::Gang& gang : files.gangs) {
    if (!wanted.ns.empty() && gang.ns != wanted.ns) continue;
    const std::string& name = kind.kind == crds::keys::kGang.kind ? gang.name : gang.spec.owner.name;
    if (IsGangOf(gang, {&kind, name})) names.insert(name);
  }
  return {names.begin(), names.end()};
}

// `before`: "job/", which each name is offered behind.
Output Offered(std::vector<std::string> names, const std::string& before, const std::string& typed) {
  std::sort(names.begin(), names.end());
  Completion completion;
  for (const std::string& name : names) {
    std::string word = before + name;
    if (word.starts_with(typed)) completion.candidates.push_back({std::move(word), ""});
  }
  return Output{.out = Printed(completion)};
}

}  // namespace

Output CompleteWithoutNames() {
  return Output{.out = Printed(Completion{})};
}

Output CompleteOfCluster(kube::Client& client, const NamesWanted& wanted, const std::stop_token& stop) {
  kube::Resource resource = HeddleResource(crds::keys::kNodeTopology, false);
  std::string before;
  if (wanted.what == NamesWanted::What::kOwners) {
    before = wanted.typed.substr(0, wanted.typed.find('/') + 1);
    const auto target = ParseExplainTarget(before + "x");
    // The name of "pods/NAME" is a label's value, and of no object.
    if (!target || target->kind->resource.plural.empty()) return CompleteWithoutNames();
    resource = target->kind->resource;
  }
  // Of the server's cache: a name that is a second old will do.
  kube::ListOptions options{.ns = resource.namespaced ? wanted.ns : "", .resource_version = "0"};
  options.metadata_only = true;
  const auto list = client.List(resource, options, stop);
  if (!list) return CompleteWithoutNames();
  std::vector<std::string> names;
  for (const crds::Json& object : list->items) names.push_back(kube::KeyOf(object).name);
  return Offered(std::move(names), before, wanted.typed);
}

Output CompleteOfFiles(const NamesWanted& wanted, const ReadFile& read) {
  const bool asks_terminal =
      std::find(wanted.topology.begin(), wanted.topology.end(), "-") != wanted.topology.end();
  if (asks_terminal) return CompleteWithoutNames();
  const auto files = ReadClusterFiles(wanted.topology, read);
  if (!files) return CompleteWithoutNames();
  if (wanted.what == NamesWanted::What::kOwners) {
    const std::string before = wanted.typed.substr(0, wanted.typed.find('/') + 1);
    const auto target = ParseExplainTarget(before + "x");
    if (!target) return CompleteWithoutNames();
    return Offered(OwnersIn(*files, wanted, *target->kind), before, wanted.typed);
  }
  std::vector<std::string> names;
  for (const crds::NodeTopology& node : files->topologies) names.push_back(node.name);
  return Offered(std::move(names), "", wanted.typed);
}

}  // namespace heddle::cli
