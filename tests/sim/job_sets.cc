#include "tests/sim/job_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "base/check.h"
#include "extender/gang_key.h"
#include "extender/owner_kinds.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
namespace marks = extender::jobset;

constexpr int kMostRestarts = 6;
constexpr const char* kReplicated = "workers";

std::string LabelOf(const Json& object, std::string_view key) {
  return kube::Label(object, key).value_or("");
}

bool IsTrue(const Json& object, std::string_view type) {
  const Json* condition = kube::Condition(object, type);
  return condition != nullptr && kube::StringAt(*condition, {"status"}) == "True";
}

}  // namespace

const kube::Resource& JobSetKind() {
  static const extender::OwnerKind* const kind = extender::OwnerKindOf(marks::kApiVersion, "JobSet");
  CHECK(kind != nullptr);
  return kind->resource;
}

std::string JobSetOf(const Json& job) {
  return LabelOf(job, marks::kUid);
}

int FirstIndex(const Json& job) {
  return std::atoi(LabelOf(job, marks::kJobIndex).c_str()) *
         int(kube::IntAt(job, {"spec", "completions"}).value_or(1));
}

bool IsFinishedSet(const Json& set) {
  return IsTrue(set, "Completed") || IsTrue(set, "Failed");
}

JobSets::JobSets(Simulation& simulation, test::FakeApiServer& server)
    : simulation_(simulation), server_(server), pace_(simulation, milliseconds(400), [this] { Look(); }) {}

void JobSets::Submit(const JobWords& words) {
  Json set = kube::NewObject(JobSetKind(), {kTeam, words.name});
  JobWords each = words;
  each.pods = words.pods / words.sets;
  set["spec"] = {
      {"failurePolicy", {{"maxRestarts", kMostRestarts}}},
      {"replicatedJobs",
       Json::array(
           {{{"name", kReplicated}, {"replicas", words.sets}, {"template", {{"spec", JobSpec(each)}}}}})}};
  set["status"] = {{"restarts", 0}};
  simulation_.Say(fmt::format("submit set {}: {} jobs of {} pods of {} GPUs, {}", words.name, words.sets,
                              each.pods, words.gpus, words.parallelism));
  server_.Put(JobSetKind(), set);
}

void JobSets::Look() {
  std::map<std::string, std::vector<Json>> jobs;
  for (const Json& job : server_.All(kube::kJobs)) {
    if (const std::string set = JobSetOf(job); !set.empty()) jobs[set].push_back(job);
  }
  std::set<std::string> there;
  for (const Json& set : server_.All(JobSetKind())) {
    there.insert(kube::Uid(set));
    if (!IsFinishedSet(set)) LookAt(set, jobs[kube::Uid(set)]);
  }
  for (const auto& [uid, orphans] : jobs) {
    if (there.contains(uid)) continue;
    for (const Json& job : orphans) server_.Remove(kube::kJobs, kube::KeyOf(job));
  }
}

void JobSets::LookAt(const Json& set, const std::vector<Json>& jobs) {
  const auto attempt = kube::IntAt(set, {"status", "restarts"}).value_or(0);
  const auto replicas = int(kube::IntAt(set["spec"]["replicatedJobs"][0], {"replicas"}).value_or(1));
  const bool suspended = kube::BoolAt(set, {"spec", "suspend"}).value_or(false);
  std::set<int> there;
  int complete = 0;
  bool failed = false;
  for (const Json& job : jobs) {
    if (LabelOf(job, marks::kAttempt) != std::to_string(attempt)) {
      // Its pods are garbage from now on, and leave when the collector comes by and their grace is over.
      server_.Remove(kube::kJobs, kube::KeyOf(job));
      continue;
    }
    there.insert(std::atoi(LabelOf(job, marks::kJobIndex).c_str()));
    complete += IsTrue(job, "Complete") ? 1 : 0;
    failed = failed || IsTrue(job, "Failed");
    if (IsFinished(job) || kube::BoolAt(job, {"spec", "suspend"}).value_or(false) == suspended) continue;
    server_.Edit(kube::kJobs, kube::KeyOf(job),
                 [suspended](Json& edited) { edited["spec"]["suspend"] = suspended; });
  }
  if (failed && attempt >= kMostRestarts) return End(set, "Failed", "ReachedMaxRestarts");
  if (failed) {
    simulation_.Say(fmt::format("set {} restarts for the {}. time", kube::Name(set), attempt + 1));
    server_.Edit(JobSetKind(), kube::KeyOf(set),
                 [attempt](Json& edited) { edited["status"]["restarts"] = attempt + 1; });
    return pace_.Kick();
  }
  if (complete == replicas) return End(set, "Completed", "AllJobsCompleted");
  for (int index = 0; index < replicas; ++index) {
    if (!there.contains(index)) MakeJob(set, attempt, index);
  }
}

void JobSets::MakeJob(const Json& set, std::int64_t attempt, int index) {
  const Json& replicated = set["spec"]["replicatedJobs"][0];
  Json job =
      kube::NewObject(kube::kJobs, {kTeam, fmt::format("{}-{}-{}", kube::Name(set), kReplicated, index)});
  job["metadata"]["labels"] = {{marks::kUid, kube::Uid(set)},
                               {marks::kName, kube::Name(set)},
                               {marks::kAttempt, std::to_string(attempt)},
                               {marks::kReplicatedJob, kReplicated},
                               {marks::kJobIndex, std::to_string(index)}};
  job["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", marks::kApiVersion},
                                                     {"kind", "JobSet"},
                                                     {"name", kube::Name(set)},
                                                     {"uid", kube::Uid(set)},
                                                     {"controller", true}}});
  job["spec"] = replicated["template"]["spec"];
  job["spec"]["template"]["metadata"]["labels"] = job["metadata"]["labels"];
  job["spec"]["suspend"] = kube::BoolAt(set, {"spec", "suspend"}).value_or(false);
  server_.Put(kube::kJobs, job);
}

void JobSets::End(const Json& set, const std::string& type, const std::string& reason) {
  simulation_.Say(fmt::format("set {} is {}: {}", kube::Name(set), type, reason));
  server_.Edit(JobSetKind(), kube::KeyOf(set), [&](Json& edited) {
    edited["status"]["conditions"].push_back({{"type", type}, {"status", "True"}, {"reason", reason}});
  });
}

}  // namespace heddle::sim
