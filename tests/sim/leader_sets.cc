#include "tests/sim/leader_sets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "crds/keys.h"
#include "extender/gang_key.h"
#include "extender/owner_kinds.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
namespace marks = extender::lws;

constexpr const char* kLeader = "sim/leader";

std::string NameOf(const Json& set, int group, int worker) {
  const std::string leader = fmt::format("{}-{}", kube::Name(set), group);
  return worker == 0 ? leader : fmt::format("{}-{}", leader, worker);
}

}  // namespace

const kube::Resource& LeaderSetKind() {
  static const extender::OwnerKind* const kind = extender::OwnerKindOf(marks::kApiVersion, marks::kKind);
  CHECK(kind != nullptr);
  return kind->resource;
}

LeaderSets::LeaderSets(Simulation& simulation, test::FakeApiServer& server, JobController& jobs,
                       std::string scheduler)
    : simulation_(simulation),
      server_(server),
      jobs_(jobs),
      scheduler_(std::move(scheduler)),
      random_(simulation.Fork()),
      pace_(simulation, milliseconds(500), [this] { Look(); }) {}

void LeaderSets::Submit(const JobWords& words) {
  const int size = words.pods / words.groups;
  Json set = kube::NewObject(LeaderSetKind(), {kTeam, words.name});
  set["spec"] = {{"replicas", words.groups},
                 {"leaderWorkerTemplate", {{"size", size}, {"workerTemplate", JobSpec(words)["template"]}}}};
  simulation_.Say(fmt::format("submit leader set {}: {} groups of {} pods of {} GPUs, {}", words.name,
                              words.groups, size, words.gpus, words.parallelism));
  server_.Put(LeaderSetKind(), set);
}

void LeaderSets::Look() {
  std::map<std::pair<std::string, int>, Group> groups;  // by the set's UID
  server_.Visit(kube::kPods, [&](const Json& object) {
    const auto leader = kube::Annotation(object, kLeader);
    if (!leader) return;
    PodRow pod = ReadPodRow(object);
    const std::pair<std::string, int> group{pod.owner, pod.group};
    const int worker = pod.index;
    groups[group].emplace(worker, Row{std::move(pod), *leader});
  });
  for (const Json& set : server_.All(LeaderSetKind())) {
    const auto replicas = int(kube::IntAt(set, {"spec", "replicas"}).value_or(1));
    for (int group = 0; group < replicas; ++group) LookAt(set, group, groups[{kube::Uid(set), group}]);
  }
}

void LeaderSets::DeleteWorkers(const Group& rows, const std::string& of_leader, const std::string& why) {
  for (const auto& [worker, row] : rows) {
    if (worker > 0 && row.leader == of_leader) jobs_.DeletePod(row.pod.key, why);
  }
}

// A pod of the present attempt that fails or leaves takes all others along.
bool LeaderSets::LoseGroup(const Json& set, int group, const Group& rows) {
  const PodRow& leader = rows.at(0).pod;
  const bool lost = std::any_of(rows.begin(), rows.end(), [&leader](const auto& one) {
    const bool present = one.first == 0 || one.second.leader == leader.uid;
    return present && (one.second.pod.terminating || one.second.pod.finished());
  });
  if (!lost) return false;
  simulation_.Say(fmt::format("group {} of leader set {} is made anew", group, kube::Name(set)));
  jobs_.DeletePod(leader.key, "its group is made anew");
  DeleteWorkers(rows, leader.uid, "its group is made anew");
  return true;
}

void LeaderSets::LookAt(const Json& set, int group, const Group& rows) {
  const auto leader = rows.find(0);
  const std::string uid = leader == rows.end() ? "" : leader->second.pod.uid;
  for (const auto& [worker, row] : rows) {
    if (worker > 0 && row.leader != uid) jobs_.DeletePod(row.pod.key, "its leader is gone");
  }
  if (leader == rows.end()) return MakePod(set, group, 0, "");
  if (LoseGroup(set, group, rows)) return;
  const auto size = int(kube::IntAt(set, {"spec", "leaderWorkerTemplate", "size"}).value_or(1));
  for (int worker = 1; worker < size; ++worker) {
    if (rows.contains(worker)) continue;  // also where one of the attempt before still has the name
    if (random_.Below(4) == 0) {
      pace_.Kick();
      continue;
    }
    MakePod(set, group, worker, uid);
  }
}

void LeaderSets::MakePod(const Json& set, int group, int worker, const std::string& leader) {
  const Json& pattern = set["spec"]["leaderWorkerTemplate"]["workerTemplate"];
  Json pod = kube::NewObject(kube::kPods, {kTeam, NameOf(set, group, worker)});
  pod["metadata"]["labels"] = {{marks::kName, kube::Name(set)},
                               {marks::kGroupIndex, std::to_string(group)},
                               {marks::kWorkerIndex, std::to_string(worker)}};
  pod["metadata"]["annotations"] = pattern["metadata"]["annotations"];
  pod["metadata"]["annotations"][std::string(marks::kSize)] =
      std::to_string(kube::IntAt(set, {"spec", "leaderWorkerTemplate", "size"}).value_or(1));
  pod["metadata"]["annotations"][kLeader] = leader;
  pod["metadata"]["ownerReferences"] =
      Json::array({{{"apiVersion", "apps/v1"},
                    {"kind", "StatefulSet"},
                    {"name", worker == 0 ? kube::Name(set) : NameOf(set, group, 0)},
                    {"uid", kube::Uid(set)},
                    {"controller", true}}});
  pod["spec"] = pattern["spec"];
  pod["spec"]["schedulerName"] = scheduler_;
  pod["spec"]["schedulingGates"] = Json::array({{{"name", crds::keys::kGangGate}}});
  pod["status"] = {{"phase", "Pending"}};
  AddClaim(pod);
  server_.Put(kube::kPods, pod);
}

}  // namespace heddle::sim
