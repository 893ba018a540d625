#include "tests/sim/job_controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/keys.h"
#include "extender/compute_domain.h"
#include "extender/gang_key.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace keys = crds::keys;

constexpr const char* kQueueGate = "kueue.x-k8s.io/admission";
constexpr const char* kElastic = "sim/elastic";

Json Template(const JobWords& words) {
  Json annotations = words.annotations;
  if (words.queued) annotations["sim/queued"] = "true";
  if (words.compute_domain) annotations[keys::kComputeDomain] = "true";
  if (!words.parallelism.empty()) annotations[keys::kParallelism] = words.parallelism;
  if (words.runs) annotations["sim/runs"] = std::to_string(words.runs->count());
  return {
      {"metadata", {{"annotations", annotations}}},
      {"spec",
       {{"priority", words.priority},
        {"containers",
         Json::array({{{"name", "main"},
                       {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(words.gpus)}}}}}}})}}}};
}

bool IsTrue(const Json& object, std::string_view type) {
  const Json* condition = kube::Condition(object, type);
  return condition != nullptr && kube::StringAt(*condition, {"status"}) == "True";
}

}  // namespace

namespace {

// As the Job controller writes them: "0-3,7".
std::string IndexWords(const std::set<int>& indexes) {
  std::string words;
  for (auto at = indexes.begin(); at != indexes.end();) {
    int last = *at;
    auto next = std::next(at);
    while (next != indexes.end() && *next == last + 1) last = *next++;
    words += words.empty() ? "" : ",";
    words += last == *at ? std::to_string(last) : fmt::format("{}-{}", *at, last);
    at = next;
  }
  return words;
}

}  // namespace

Json JobSpec(const JobWords& words) {
  return {{"completionMode", "Indexed"},
          {"completions", words.completions > 0 ? words.completions : words.pods},
          {"parallelism", words.pods},
          {"backoffLimit", words.backoff_limit},
          {"template", Template(words)}};
}

void AddClaim(Json& pod) {
  const auto name = extender::ComputeDomainName(pod);
  if (!kube::Annotation(pod, keys::kComputeDomain) || !name) return;
  pod["spec"]["resourceClaims"] =
      Json::array({{{"name", keys::kComputeDomainClaim}, {"resourceClaimTemplateName", *name}}});
}

bool IsElastic(const Json& job) {
  return kube::Annotation(job, kElastic).has_value();
}

bool IsFinished(const Json& job) {
  return IsTrue(job, "Complete") || IsTrue(job, "Failed");
}

JobController::JobController(Simulation& simulation, test::FakeApiServer& server, std::string scheduler)
    : simulation_(simulation),
      server_(server),
      scheduler_(std::move(scheduler)),
      random_(simulation.Fork()),
      pace_(simulation, milliseconds(300), [this] { Look(); }) {}

std::string JobController::Submit(const JobWords& words) {
  Json job = kube::NewObject(kube::kJobs, {kTeam, words.name});
  job["spec"] = JobSpec(words);
  simulation_.Say(fmt::format("submit {}: {} pods of {} GPUs, {}", words.name, words.pods, words.gpus,
                              words.parallelism));
  return kube::Uid(server_.Put(kube::kJobs, job));
}

void JobController::Scale(const std::string& name, int pods) {
  simulation_.Say(fmt::format("scale {} to {} pods", name, pods));
  server_.Edit(kube::kJobs, {kTeam, name}, [pods](Json& edited) {
    edited["spec"]["completions"] = pods;
    edited["spec"]["parallelism"] = pods;
    edited["metadata"]["annotations"][kElastic] = "true";
  });
}

void JobController::Look() {
  std::map<std::string, std::vector<PodRow>> pods;
  for (PodRow& pod : PodRows(server_)) pods[pod.owner].push_back(std::move(pod));
  for (const Json& job : server_.All(kube::kJobs)) {
    if (!IsFinished(job)) LookAt(job, pods[kube::Uid(job)]);
  }
}

void JobController::LookAt(const Json& job, const std::vector<PodRow>& pods) {
  State& state = states_[kube::Uid(job)];
  DeleteSurplus(job, state, pods);
  CountEnds(job, state, pods);
  if (const std::string done = IndexWords(state.done);
      done != kube::StringAt(job, {"status", "completedIndexes"})) {
    server_.Edit(kube::kJobs, kube::KeyOf(job),
                 [&done](Json& edited) { edited["status"]["completedIndexes"] = done; });
  }
  const auto wanted = kube::IntAt(job, {"spec", "completions"}).value_or(1);
  if (state.failed > kube::IntAt(job, {"spec", "backoffLimit"}).value_or(6)) {
    return End(job, "Failed", "BackoffLimitExceeded", pods);
  }
  if (std::int64_t(state.done.size()) >= wanted) return End(job, "Complete", "CompletionsReached", pods);
  if (kube::BoolAt(job, {"spec", "suspend"}).value_or(false)) {
    for (const PodRow& pod : pods) {
      // Its own deletions are no failures.
      if (pod.finished() || !state.counted.insert(pod.uid).second) continue;
      DeletePod(pod.key, "its Job is suspended");
    }
    return;
  }
  MakePods(job, state, pods);
}

void JobController::DeleteSurplus(const Json& job, State& state, const std::vector<PodRow>& pods) {
  const auto wanted = int(kube::IntAt(job, {"spec", "completions"}).value_or(1));
  std::erase_if(state.done, [wanted](int index) { return index >= wanted; });
  std::erase_if(state.not_before, [wanted](const auto& one) { return one.first >= wanted; });
  for (const auto& [uid, index] : state.pods) {
    if (index >= wanted) state.counted.insert(uid);
  }
  for (const PodRow& pod : pods) {
    if (pod.index >= wanted && !pod.finished()) DeletePod(pod.key, "its Job was scaled down");
  }
}

void JobController::CountEnds(const Json& job, State& state, const std::vector<PodRow>& pods) {
  std::map<std::string, const PodRow*> there;
  for (const PodRow& pod : pods) there.emplace(pod.uid, &pod);
  for (const auto& [uid, index] : state.pods) {
    if (state.counted.contains(uid)) continue;
    const auto found = there.find(uid);
    const PodRow* pod = found == there.end() ? nullptr : found->second;
    if (pod != nullptr && pod->phase == "Succeeded") {
      state.counted.insert(uid);
      state.done.insert(index);
      continue;
    }
    if (pod != nullptr && !pod->terminating && pod->phase != "Failed") continue;
    state.counted.insert(uid);
    ++state.failed;
    // 10 s doubling to 6 minutes (pkg/controller/job backoff_utils.go); the cap here is less, so that runs end
    // sooner.
    const int tries = std::min(state.tries[index]++, 3);
    state.not_before[index] = simulation_.now() + seconds(10 << tries);
    simulation_.Say(
        fmt::format("job {} counts failure {} of index {}", kube::Name(job), state.failed, index));
  }
}

void JobController::MakePods(const Json& job, State& state, const std::vector<PodRow>& pods) {
  std::set<int> active;
  for (const PodRow& pod : pods) {
    if (!pod.terminating && !pod.finished()) active.insert(pod.index);
  }
  const auto wanted = int(kube::IntAt(job, {"spec", "completions"}).value_or(1));
  const auto parallelism = std::size_t(kube::IntAt(job, {"spec", "parallelism"}).value_or(1));
  int made = 0;
  for (int index = 0; index < wanted && active.size() < parallelism; ++index) {
    if (active.contains(index) || state.done.contains(index)) continue;
    const auto wait = state.not_before.find(index);
    if (wait != state.not_before.end() && wait->second > simulation_.now()) {
      pace_.KickAfter(wait->second - simulation_.now());
      continue;
    }
    // Some now and some with the next look, so that pods arrive over a time.
    if (made >= 1 && random_.Below(4) == 0) return pace_.Kick();
    MakePod(job, state, index);
    active.insert(index);
    ++made;
  }
}

void JobController::MakePod(const Json& job, State& state, int index) {
  Json pod = kube::NewObject(
      kube::kPods, {kTeam, fmt::format("{}-{}-{:05x}", kube::Name(job), index, random_.Below(1u << 20))});
  if (const Json* labels = kube::Find(job, {"spec", "template", "metadata", "labels"}))
    pod["metadata"]["labels"] = *labels;
  pod["metadata"]["labels"][std::string(extender::kCompletionIndex)] = std::to_string(index);
  pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = kube::Name(job);
  pod["metadata"]["annotations"] = job["spec"]["template"]["metadata"]["annotations"];
  pod["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "Job"},
                                                     {"name", kube::Name(job)},
                                                     {"uid", kube::Uid(job)},
                                                     {"controller", true}}});
  pod["spec"] = job["spec"]["template"]["spec"];
  pod["spec"]["schedulerName"] = scheduler_;
  pod["spec"]["schedulingGates"] = Json::array({{{"name", keys::kGangGate}}});
  pod["status"] = {{"phase", "Pending"}};
  AddClaim(pod);
  if (!kube::Annotation(pod, "sim/queued")) {
    state.pods[kube::Uid(server_.Put(kube::kPods, pod))] = index;
    return;
  }
  // On either side of ours.
  Json& gates = pod["spec"]["schedulingGates"];
  Json another;
  another["name"] = kQueueGate;
  gates.insert(random_.Below(2) == 0 ? gates.begin() : gates.end(), another);
  if (!state.admitted) state.admitted = simulation_.now() + seconds(2 + random_.Below(60));
  const base::MonotonicTime lifted =
      std::max(*state.admitted, simulation_.now()) + random_.Jitter(milliseconds(1500));
  const std::string uid = kube::Uid(server_.Put(kube::kPods, pod));
  state.pods[uid] = index;
  simulation_.At(lifted, [this, key = kube::KeyOf(pod), uid] { LiftGate(key, uid); });
}

// As Kueue: that one gate, wherever it stands by then.
void JobController::LiftGate(const kube::ObjectKey& key, const std::string& uid) {
  const auto pod = server_.Find(kube::kPods, key);
  if (!pod || kube::Uid(*pod) != uid) return;
  simulation_.Say("the queue lets pod " + key.name + " go");
  server_.Edit(kube::kPods, key, [](Json& edited) {
    Json left = Json::array();
    for (const Json& gate : kube::ArrayAt(edited, {"spec", "schedulingGates"})) {
      if (kube::StringAt(gate, {"name"}) != kQueueGate) left.push_back(gate);
    }
    edited["spec"]["schedulingGates"] = left;
  });
}

void JobController::End(const Json& job, const std::string& type, const std::string& reason,
                        const std::vector<PodRow>& pods) {
  simulation_.Say(fmt::format("job {} is {}: {}", kube::Name(job), type, reason));
  server_.Edit(kube::kJobs, kube::KeyOf(job), [&](Json& edited) {
    edited["status"]["conditions"].push_back({{"type", type}, {"status", "True"}, {"reason", reason}});
  });
  for (const PodRow& pod : pods) {
    if (!pod.finished()) DeletePod(pod.key, "its Job has ended");
  }
}

void JobController::DeletePod(const kube::ObjectKey& key, const std::string& why) {
  const auto pod = server_.Find(kube::kPods, key);
  if (!pod || kube::DeletionTimestamp(*pod)) return;
  simulation_.Say("delete pod " + key.name + ": " + why);
  const std::string phase = kube::StringAt(*pod, {"status", "phase"});
  if (kube::StringAt(*pod, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") {
    return server_.Remove(kube::kPods, key);
  }
  server_.Edit(kube::kPods, key, [&](Json& edited) {
    edited["metadata"]["deletionTimestamp"] = base::FormatTime(simulation_.wall());
  });
}

}  // namespace heddle::sim
