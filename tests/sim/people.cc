#include "tests/sim/people.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "crds/keys.h"
#include "crds/parallelism.h"
#include "extender/resources.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

const std::string kOthers = "others";

struct Shape {
  int pods, gpus;
  const char* parallelism;
};
// For nodes of 8 GPUs, and for trays of 4 in NVLink domains of several.
constexpr Shape kServers[] = {{1, 8, "tp=8"},      {2, 8, "tp=8,dp=2"}, {4, 8, "tp=8,pp=2,dp=2"},
                              {3, 8, "tp=8,dp=3"}, {4, 4, "tp=4,dp=4"}, {8, 2, "tp=2,dp=8"},
                              {2, 1, "tp=1,dp=2"}, {3, 4, "tp=4,dp=3"}, {2, 6, "tp=6,dp=2"}};
constexpr Shape kTrays[] = {{1, 4, "tp=4"}, {3, 4, "tp=4,dp=3"}, {4, 4, "tp=8,dp=2"}, {6, 4, "tp=4,dp=6"},
                            {2, 4, "tp=8"}, {4, 2, "tp=2,dp=4"}, {2, 1, "tp=1,dp=2"}};

template <std::size_t N>
Shape Draw(const Shape (&shapes)[N], base::Random& random) {
  return shapes[random.Below(N)];
}

}  // namespace

People::People(World& world, const Trouble& trouble, int most_jobs)
    : world_(world),
      simulation_(world.simulation()),
      trouble_(trouble),
      most_jobs_(most_jobs),
      random_(simulation_.Fork()) {}

void People::Begin() {
  Submit();
  Happen(trouble_.submit, &People::Submit);
  Happen(trouble_.delete_job, &People::DeleteAJob);
  Happen(trouble_.suspend, &People::Suspend);
  Happen(trouble_.delete_pod, &People::DeletePod);
  Happen(trouble_.delete_gang, &People::DeleteGang);
  Happen(trouble_.edit_gang, &People::EditGang);
  Happen(trouble_.lone_pod, &People::LonePod);
  Happen(trouble_.kill_extender, &People::KillExtender);
  Happen(trouble_.freeze_extender, &People::FreezeExtender);
  Happen(trouble_.fail_over, &People::FailOver);
  Happen(trouble_.server_down, &People::ServerDown);
  Happen(trouble_.throttle, &People::Throttle);
  Happen(trouble_.compact, &People::Compact);
  Happen(trouble_.cut_watches, &People::CutWatches);
  Happen(trouble_.kill_node, &People::KillNode);
  Happen(trouble_.remove_node, &People::RemoveNode);
  Happen(trouble_.restart_scheduler, &People::RestartScheduler);
  Happen(trouble_.edit_pod, &People::EditPod);
  Happen(trouble_.crash_pod, &People::CrashPod);
  Happen(trouble_.slow_disk, &People::SlowDisk);
  Happen(trouble_.cordon, &People::Cordon);
  Happen(trouble_.break_gpu, &People::BreakGpu);
  Happen(trouble_.flap_gpu, &People::FlapGpu);
  Happen(trouble_.kill_agent, &People::KillAgent);
  Happen(trouble_.edit_fabric, &People::EditFabric);
  Happen(trouble_.hold_plan, &People::HoldPlan);
  Happen(trouble_.scale, &People::Scale);
  Happen(trouble_.serve, &People::Serve);
  Happen(trouble_.remake_job, &People::RemakeJob);
}

// A Poisson process of its own for everything that can happen.
void People::Happen(double per_minute, void (People::*what)()) {
  if (per_minute <= 0) return;
  const double wait = -std::log(1 - random_.Unit()) * 60 / per_minute;
  simulation_.After(nanoseconds(std::int64_t(wait * 1e9)), [this, per_minute, what] {
    if (resting_) return;
    (this->*what)();
    Happen(per_minute, what);
  });
}

void People::Rest() {
  resting_ = true;
  simulation_.Say("calm");
  world_.network().HoldNextPlan(false);
  for (const std::string& node : world_.nodes()) {
    world_.kubelets().ReviveNode(node);
    world_.kubelets().SetAgent(node, true);
  }
  for (const std::string& node : std::set(cordoned_)) SetCordoned(node, false);
  for (const auto& [node, gpu] : broken_) world_.kubelets().SetHealthy(node, gpu, true);
  for (const std::string& job : std::set(suspended_)) SetSuspended(job, false);
  excluded_.clear();
  DeclareExcluded();
}

std::string People::AnyNode() {
  return world_.nodes()[std::size_t(random_.Below(world_.nodes().size()))];
}

std::string People::AnyJob() {
  if (jobs_.empty()) return {};
  return std::next(jobs_.begin(), std::ptrdiff_t(random_.Below(jobs_.size())))->first;
}

void People::Submit() {
  if (submitted_ >= most_jobs_) return;
  const auto draw = [this] {
    return world_.gpus_per_node() == 8 ? Draw(kServers, random_) : Draw(kTrays, random_);
  };
  Shape shape = draw();
  while (shape.gpus == world_.gpus_per_node() && shape.pods > world_.nodes_for_gangs()) shape = draw();
  JobWords words{.name = fmt::format("job-{}", submitted_++),
                 .pods = shape.pods,
                 .gpus = shape.gpus,
                 .parallelism = shape.parallelism};
  if (random_.Below(4) == 0) words.priority = int(random_.Below(3)) * 100;
  if (random_.Below(4) != 0) words.runs = seconds(10 + random_.Below(120));
  if (random_.Below(8) == 0) words.annotations[crds::keys::kWait] = "60s";
  if (random_.Below(10) == 0) words.parallelism = "tp=3,dp=5";  // of no number of GPUs here
  if (random_.Below(12) == 0) words.completions = words.pods + 1;
  words.queued = random_.Below(6) == 0;
  if (words.completions == 0 && random_.Below(5) == 0) {
    words.sets = words.pods % 2 == 0 && random_.Below(2) == 0 ? 2 : 1;
    words.backoff_limit = int(random_.Below(2));  // what fails the Job restarts the set
  }
  words.compute_domain = AsksForDomain(words.pods);
  if (trouble_.restart_whole > 0 && random_.Unit() < trouble_.restart_whole)
    words.annotations[crds::keys::kOnDegraded] = "restart";
  jobs_.emplace(words.name, words);
  if (words.sets > 0) {
    world_.job_sets().Submit(words);
  } else {
    world_.jobs().Submit(words);
  }
}

// Each node has one channel, so each pod needs a node of its own.
bool People::AsksForDomain(int pods) {
  if (!world_.has_compute_domains() || pods > world_.nodes_for_gangs()) return false;
  return random_.Unit() < trouble_.compute_domain;
}

// What the empty cluster has room for, and one at a time: of two that serve for ever each may wait for the other's room.
void People::Serve() {
  constexpr int kMost = 4;
  const bool serves =
      std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job.second.groups > 0; });
  if (serves || served_ >= kMost) return;
  const int gpus = world_.gpus_per_node();
  const Shape shape = gpus == 8 ? Draw(kServers, random_) : Draw(kTrays, random_);
  const int groups = shape.pods <= 2 ? 1 + int(random_.Below(2)) : 1;
  if (shape.pods * groups > gpus / shape.gpus * world_.nodes_for_gangs()) return;
  JobWords words{.name = fmt::format("serve-{}", served_++),
                 .pods = shape.pods * groups,
                 .gpus = shape.gpus,
                 .parallelism = shape.parallelism,
                 .groups = groups};
  if (random_.Below(3) == 0) words.priority = int(random_.Below(3)) * 100;
  words.compute_domain = AsksForDomain(words.pods);
  jobs_.emplace(words.name, words);
  world_.leader_sets().Submit(words);
}

const kube::Resource& People::KindOf(const std::string& job) const {
  const auto words = jobs_.find(job);
  if (words == jobs_.end()) return kube::kJobs;
  return words->second.groups > 0 ? LeaderSetKind() : words->second.sets > 0 ? JobSetKind() : kube::kJobs;
}

void People::DeleteJob(const std::string& name) {
  simulation_.Say("delete job " + name);
  world_.server().Remove(KindOf(name), {kTeam, name});
  jobs_.erase(name);
  suspended_.erase(name);
  first_sizes_.erase(name);
}

void People::DeleteAJob() {
  if (const std::string job = AnyJob(); !job.empty()) DeleteJob(job);
}

// Under its name at once, as `kubectl replace --force` does it, while pods of the one before still leave.
void People::RemakeJob() {
  const std::string name = AnyJob();
  if (name.empty() || KindOf(name) != kube::kJobs) return;
  JobWords words = jobs_.at(name);
  if (const auto first = first_sizes_.find(name); first != first_sizes_.end()) words.pods = first->second;
  words.scaled = false;
  DeleteJob(name);
  jobs_.emplace(name, words);
  world_.jobs().Submit(words);
}

void People::SetSuspended(const std::string& job, bool on) {
  if (KindOf(job) == LeaderSetKind()) return;  // cannot be
  const auto object = world_.server().Find(KindOf(job), {kTeam, job});
  if (!object || IsFinished(*object) || IsFinishedSet(*object)) return;
  simulation_.Say((on ? "suspend " : "resume ") + job);
  if (on) {
    suspended_.insert(job);
  } else {
    suspended_.erase(job);
  }
  world_.server().Edit(KindOf(job), {kTeam, job}, [on](Json& edited) { edited["spec"]["suspend"] = on; });
}

void People::Suspend() {
  if (const std::string job = AnyJob(); !job.empty()) SetSuspended(job, !suspended_.contains(job));
}

void People::DeletePod() {
  // Those that have ended, too: people tidy up. The Job controller's finalizer would keep one until it is counted;
  // here it may go before and its index comes again, as with controllers that have none.
  const auto pods = PodRows(world_.server());
  if (pods.empty()) return;
  world_.jobs().DeletePod(pods[std::size_t(random_.Below(pods.size()))].key, "a person wants it");
}

void People::DeleteGang() {
  const auto gangs = world_.server().All(extender::kGangs);
  if (gangs.empty()) return;
  const kube::ObjectKey key = kube::KeyOf(gangs[std::size_t(random_.Below(gangs.size()))]);
  simulation_.Say("a person deletes gang " + key.name);
  world_.server().Remove(extender::kGangs, key);
}

void People::EditGang() {
  const auto gangs = world_.server().All(extender::kGangs);
  if (gangs.empty()) return;
  const kube::ObjectKey key = kube::KeyOf(gangs[std::size_t(random_.Below(gangs.size()))]);
  constexpr std::array<const char*, 3> kFields{"conditions", "placement", "progress"};
  const char* field = kFields[std::size_t(random_.Below(kFields.size()))];
  simulation_.Say(fmt::format("a person removes status.{} of gang {}", field, key.name));
  world_.server().Edit(extender::kGangs, key, [field](Json& edited) {
    if (edited.contains("status")) edited["status"].erase(field);
  });
}

void People::LonePod() {
  const int gpus = 1 + int(random_.Below(std::uint64_t(world_.gpus_per_node())));
  Json pod = kube::NewObject(kube::kPods, {kOthers, fmt::format("lone-{}", lone_pods_++)});
  pod["spec"] = {{"schedulerName", world_.scheduler_name()},
                 {"containers",
                  Json::array({{{"name", "main"},
                                {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}})}};
  if (random_.Below(3) == 0) pod["spec"]["priority"] = 150;  // over most Jobs
  pod["status"] = {{"phase", "Pending"}};
  simulation_.Say(fmt::format("a pod of no gang wants {} GPUs", gpus));
  world_.server().Put(kube::kPods, pod);
  simulation_.After(seconds(20 + random_.Below(100)),
                    [this, key = kube::KeyOf(pod)] { world_.jobs().DeletePod(key, "its user is done"); });
}

void People::DeleteLonePods() {
  for (const Json& pod : world_.server().All(kube::kPods)) {
    if (kube::Namespace(pod) == kOthers) world_.jobs().DeletePod(kube::KeyOf(pod), "its user is done");
  }
}

void People::KillExtender() {
  Machine& machine = world_.machines()[std::size_t(random_.Below(world_.machines().size()))];
  if (machine.process != nullptr) simulation_.Kill(*machine.process);
}

void People::FreezeExtender() {
  Machine& machine = world_.machines()[std::size_t(random_.Below(world_.machines().size()))];
  if (machine.process != nullptr) simulation_.Freeze(*machine.process, seconds(1 + random_.Below(40)));
}

void People::FailOver() {
  world_.scheduler().FailOver(random_.Below(2) == 0);
}

void People::ServerDown() {
  world_.network().TakeServerDown(seconds(1 + random_.Below(30)));
}

void People::Throttle() {
  world_.network().Throttle(seconds(1 + random_.Below(20)));
}

void People::Compact() {
  world_.network().Compact();
}

void People::CutWatches() {
  simulation_.Say("every watch is cut");
  world_.network().CutWatches();
}

void People::KillNode() {
  const std::string node = AnyNode();
  world_.kubelets().KillNode(node);
  simulation_.After(seconds(10 + random_.Below(300)), [this, node] { world_.kubelets().ReviveNode(node); });
}

void People::RemoveNode() {
  const std::string node = AnyNode();
  world_.kubelets().RemoveNode(node);
  simulation_.After(seconds(2 + random_.Below(200)), [this, node] { world_.kubelets().ReviveNode(node); });
}

void People::RestartScheduler() {
  world_.scheduler().Restart();
}

// What the admission policy lets them: all but the gate and the plan.
void People::EditPod() {
  const auto pods = PodRows(world_.server());
  if (pods.empty()) return;
  const kube::ObjectKey key = pods[std::size_t(random_.Below(pods.size()))].key;
  const std::string word = std::to_string(random_.Below(100));
  simulation_.Say("a person labels pod " + key.name);
  world_.server().Edit(kube::kPods, key, [&word](Json& edited) {
    edited["metadata"]["labels"]["example.com/edited"] = word;
    edited["metadata"]["annotations"]["example.com/note"] = word;
  });
}

void People::CrashPod() {
  std::vector<kube::ObjectKey> running;
  for (const PodRow& pod : PodRows(world_.server())) {
    if (pod.phase == "Running" && !pod.terminating && pod.key.ns == kTeam) running.push_back(pod.key);
  }
  if (running.empty()) return;
  world_.kubelets().Crash(running[std::size_t(random_.Below(running.size()))]);
}

void People::SlowDisk() {
  world_.network().SlowDown(seconds(5 + random_.Below(40)));
}

void People::HoldPlan() {
  world_.network().HoldNextPlan(true);
}

// Only what has started: of what has not, a number that does not multiply is a mistake. And only to what the empty
// cluster has room for.
void People::Scale() {
  const std::string name = AnyJob();
  if (name.empty()) return;
  JobWords& words = jobs_.at(name);
  const auto job = world_.server().Find(kube::kJobs, {kTeam, name});
  const auto parallelism = crds::ParseParallelism(words.parallelism);
  if (words.sets > 0 || !job || !parallelism || IsFinished(*job)) return;
  if (kube::BoolAt(*job, {"spec", "suspend"}).value_or(false)) return;
  const std::vector<PodRow> pods = PodRows(world_.server());
  const bool started = std::any_of(pods.begin(), pods.end(), [uid = kube::Uid(*job)](const PodRow& pod) {
    return pod.owner == uid && !pod.gated && !pod.terminating && !pod.finished();
  });
  if (!started) return;
  const int replica = parallelism->tp * parallelism->cp * parallelism->pp;
  const int step = replica / std::gcd(replica, words.gpus);
  int most = std::min(12, world_.gpus_per_node() / words.gpus * world_.nodes_for_gangs());
  // A tensor group over trays takes two of a rack's three that are no spares.
  if (parallelism->tp > world_.gpus_per_node()) most = std::min(most, 4);
  if (words.compute_domain) most = std::min(most, world_.nodes_for_gangs());
  if (most < step) return;
  const int size = step * int(1 + random_.Below(std::uint64_t(most / step)));
  if (size == words.pods) return;
  first_sizes_.emplace(name, words.pods);
  words.pods = size;
  words.scaled = true;
  world_.jobs().Scale(name, size);
}

void People::ScaleBack(const std::string& name) {
  const auto first = first_sizes_.find(name);
  if (first == first_sizes_.end() || !jobs_.contains(name) || jobs_.at(name).pods == first->second) return;
  jobs_.at(name).pods = first->second;
  world_.jobs().Scale(name, first->second);
}

void People::SetCordoned(const std::string& node, bool on) {
  if (!world_.server().Find(kube::kNodes, {"", node})) return;
  simulation_.Say((on ? "cordon " : "uncordon ") + node);
  if (on) {
    cordoned_.insert(node);
  } else {
    cordoned_.erase(node);
  }
  world_.server().Edit(kube::kNodes, {"", node},
                       [on](Json& edited) { edited["spec"]["unschedulable"] = on; });
}

void People::Cordon() {
  const std::string node = AnyNode();
  SetCordoned(node, !cordoned_.contains(node));
}

void People::BreakGpu() {
  const std::pair<std::string, int> gpu{AnyNode(), int(random_.Below(std::uint64_t(world_.gpus_per_node())))};
  const bool sound = broken_.contains(gpu);
  if (sound) {
    broken_.erase(gpu);
  } else {
    broken_.insert(gpu);
  }
  world_.kubelets().SetHealthy(gpu.first, gpu.second, sound);
}

// Every second another word of the same GPU.
void People::FlapGpu() {
  const std::string node = AnyNode();
  const int gpu = int(random_.Below(std::uint64_t(world_.gpus_per_node())));
  if (broken_.contains({node, gpu})) return;
  for (int i = 0, times = 2 * int(1 + random_.Below(30)); i < times; ++i) {
    simulation_.After(seconds(i),
                      [this, node, gpu, i] { world_.kubelets().SetHealthy(node, gpu, i % 2 == 1); });
  }
}

void People::KillAgent() {
  const std::string node = AnyNode();
  world_.kubelets().SetAgent(node, false);
  simulation_.After(seconds(60 + random_.Below(600)),
                    [this, node] { world_.kubelets().SetAgent(node, true); });
}

void People::DeclareExcluded() {
  for (const std::string& name : world_.fabrics()) {
    const kube::ObjectKey key{"", name};
    if (!world_.server().Find(extender::kFabrics, key)) continue;
    world_.server().Edit(extender::kFabrics, key, [this](Json& edited) {
      edited["spec"]["excludedNodes"] = Json::array();
      for (const std::string& node : excluded_) edited["spec"]["excludedNodes"].push_back(node);
    });
  }
}

// A person takes a node out of its fabric or back into it, or deletes the Fabric, and the operator makes another.
void People::EditFabric() {
  if (random_.Below(4) == 0) {
    simulation_.Say("a person deletes every Fabric");
    excluded_.clear();
    for (const std::string& name : world_.fabrics()) world_.server().Remove(extender::kFabrics, {"", name});
    simulation_.After(seconds(1 + random_.Below(5)), [this] { world_.MakeFabrics(); });
    return;
  }
  const std::string node = AnyNode();
  const bool out = excluded_.insert(node).second;
  if (!out) excluded_.erase(node);
  simulation_.Say(node + (out ? " is excluded from its Fabric" : " is part of its Fabric again"));
  DeclareExcluded();
}

}  // namespace heddle::sim
