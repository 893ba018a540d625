#include "tests/sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "crds/keys.h"
#include "extender/compute_domain.h"
#include "extender/owner_layout.h"
#include "extender/resources.h"
#include "tests/sim/people.h"
#include "tests/sim/world.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Each kind of bad luck is off in most runs, so that the others can show what they do alone (Groce et al., Swarm
// Testing, 2012).
class Draw {
 public:
  Draw(base::Random random, std::uint64_t seed) : random_(random), seed_(seed) {}

  double Sometimes(double most) { return Sometimes(most, random_); }

  Weather TheWeather() {
    Weather weather;
    for (double* chance :
         {&weather.lost_request, &weather.delayed, &weather.reset, &weather.lost_answer, &weather.doubled,
          &weather.throttled, &weather.failing, &weather.gateway, &weather.conflict}) {
      *chance = Sometimes(0.06);
    }
    for (double* chance : {&weather.crash_before, &weather.crash_after}) *chance = Sometimes(0.04);
    weather.cut = Sometimes(0.5);
    weather.half_open = Sometimes(0.2);
    weather.gone = Sometimes(0.5);
    weather.stale = Sometimes(1);
    weather.late = Sometimes(0.2);
    weather.replayed = Sometimes(1);
    weather.latency = milliseconds(std::array{1, 5, 30, 150}[std::size_t(random_.Below(4))]);
    return weather;
  }

  Trouble TheTrouble() {
    Trouble trouble;
    trouble.submit = 1 + 8 * random_.Unit();
    for (double* rate : {&trouble.delete_job, &trouble.suspend, &trouble.delete_pod, &trouble.delete_gang,
                         &trouble.edit_gang, &trouble.lone_pod, &trouble.kill_extender, &trouble.cordon,
                         &trouble.edit_pod, &trouble.crash_pod}) {
      *rate = Sometimes(3);
    }
    for (double* rate :
         {&trouble.freeze_extender, &trouble.fail_over, &trouble.server_down, &trouble.throttle,
          &trouble.compact, &trouble.cut_watches, &trouble.kill_node, &trouble.break_gpu, &trouble.flap_gpu,
          &trouble.kill_agent, &trouble.restart_scheduler, &trouble.remove_node, &trouble.slow_disk,
          &trouble.edit_fabric}) {
      *rate = Sometimes(1.5);
    }
    trouble.hold_plan = SometimesToo(1, 1.5);
    trouble.scale = SometimesToo(2, 3);
    trouble.serve = SometimesToo(kServe, 2);
    trouble.compute_domain = SometimesToo(kComputeDomain, 1);
    trouble.restart_whole = SometimesToo(kRestartWhole, 1);
    trouble.remake_job = SometimesToo(kRemakeJob, 1.5);
    return trouble;
  }

  Setting TheSetting() {
    constexpr std::array<const char*, 4> kClusters{
        "su:2 node:2 gpu:8 nic:8 rail:8 spine:2", "su:1 node:3 gpu:8 nic:8 rail:8 spine:2",
        "rack:2 tray:3 gpu:4 nic:4 rail:4 rate:400 nvl", "tor:2 node:2 gpu:8 nic:2 rate:100 transport:roce"};
    Setting setting;
    setting.cluster = kClusters[std::size_t(random_.Below(kClusters.size()))];
    setting.own_lease = random_.Below(2) == 0;
    setting.extenders = random_.Below(4) == 0 ? 1 : 2;
    setting.watch_list = random_.Below(3) != 0;
    if (random_.Below(3) == 0) setting.skew = milliseconds(std::int64_t(random_.Below(20'000)) - 10'000);
    if (random_.Below(3) == 0) setting.drift = milliseconds(std::int64_t(random_.Below(101)) - 50);
    setting.leader_sets = SometimesToo(kServe, 2) > 0;
    const bool racks = setting.cluster.starts_with("rack");
    setting.compute_domains = racks && SometimesToo(kComputeDomain, 1) > 0;
    // A tray more in each rack, so that what fits without spares fits beside them.
    if (racks && SometimesToo(kSpares, 1) > 0) {
      setting.cluster = "rack:2 tray:4 gpu:4 nic:4 rail:4 rate:400 nvl";
      setting.spares = 1;
    }
    return setting;
  }

  std::uint64_t Below(std::uint64_t bound) { return random_.Below(bound); }

 private:
  static double Sometimes(double most, base::Random& random) {
    return random.Below(3) == 0 ? most * random.Unit() : 0;
  }
  // What came to the simulation later has a stream of its own, each by its number: a seed that draws none of it lives
  // as it did before.
  double SometimesToo(std::uint64_t number, double most) {
    base::Random random = base::Random(seed_ + (number << 48)).Fork();
    return Sometimes(most, random);
  }

  // The later ones leave the seeds of checks_test.cc as they are, 1 to 6.
  static constexpr std::uint64_t kServe = 3, kComputeDomain = 4, kSpares = 24, kRestartWhole = 41,
                                 kRemakeJob = 55;
  base::Random random_;
  const std::uint64_t seed_;
};

// How a Job stands, for people.
struct Standing {
  int pods = 0, gated = 0, bound = 0;  // that exist and have not ended
  std::set<int> run;                   // indexes that run or are done
  std::size_t done = 0;                // indexes
  std::string gang;                    // as `kubectl get gangs` says it
  std::string reason;
  bool finished = false;
};

// Whose standing an object is part of, and which of its pods the object's first one is.
struct Part {
  Standing* of = nullptr;
  int first = 0;
  std::int64_t attempt = 0;
  std::int64_t completions = 0;
};

// Every Job's standing and every JobSet's by its name, that of a LeaderWorkerSet's group as "serve-0/1", read in one pass: this is asked every few seconds of virtual
// time.
std::map<std::string, Standing> Standings(World& world) {
  std::map<std::string, Standing> standings;
  std::map<std::string, Part> by_uid;
  world.server().Visit(JobSetKind(), [&](const Json& set) {
    Standing& standing = standings[kube::Name(set)];
    standing.finished = IsFinishedSet(set);
    by_uid[kube::Uid(set)] = {&standing, 0, kube::IntAt(set, {"status", "restarts"}).value_or(0), 0};
  });
  world.server().Visit(LeaderSetKind(), [&](const Json& set) {
    const auto size = kube::IntAt(set, {"spec", "leaderWorkerTemplate", "size"}).value_or(1);
    for (int group = 0; group < int(kube::IntAt(set, {"spec", "replicas"}).value_or(1)); ++group) {
      const std::string part = fmt::format("/{}", group);
      by_uid[kube::Uid(set) + part] = {&standings[kube::Name(set) + part], 0, 0, size};
    }
  });
  world.server().Visit(kube::kJobs, [&](const Json& job) {
    const auto set = by_uid.find(JobSetOf(job));
    if (set == by_uid.end() && !JobSetOf(job).empty()) return;  // about to go
    const bool alone = set == by_uid.end();
    Standing& standing = alone ? standings[kube::Name(job)] : *set->second.of;
    if (alone) standing.finished = IsFinished(job);
    const auto completions = kube::IntAt(job, {"spec", "completions"}).value_or(1);
    const Part& part = by_uid[kube::Uid(job)] = {&standing, FirstIndex(job), 0, completions};
    for (const int rank : extender::ReadRanksDone(job, completions)) {
      standing.run.insert(part.first + rank);
      ++standing.done;
    }
  });
  for (const PodRow& pod : PodRows(world.server())) {
    const auto found = by_uid.find(pod.group < 0 ? pod.owner : fmt::format("{}/{}", pod.owner, pod.group));
    if (found == by_uid.end() || pod.terminating || pod.phase == "Failed") continue;
    Standing& standing = *found->second.of;
    if (pod.index >= found->second.completions) continue;  // its Job was scaled down
    if (pod.phase == "Running" || pod.phase == "Succeeded")
      standing.run.insert(found->second.first + pod.index);
    if (pod.finished()) continue;
    ++standing.pods;
    standing.gated += pod.gated ? 1 : 0;
    standing.bound += pod.node.empty() ? 0 : 1;
  }
  world.server().Visit(extender::kGangs, [&](const Json& object) {
    std::string uid = kube::StringAt(object, {"spec", "owner", "uid"});
    const std::string group = kube::StringAt(object, {"spec", "group"});  // "LeaderWorkerSet/serve-0/1"
    if (!group.empty()) uid += group.substr(group.rfind('/'));
    const auto found = by_uid.find(uid);
    if (found == by_uid.end()) return;
    if (kube::IntAt(object, {"spec", "attempt"}).value_or(0) != found->second.attempt) return;
    found->second.of->reason = kube::StringAt(object, {"status", "reason"});
    found->second.of->gang = kube::StringAt(object, {"status", "summary"});
  });
  return standings;
}

std::string Words(const JobWords& job, const Standing& standing) {
  return fmt::format(
      "{} ({} pods of {} GPUs, {}): {} pods exist, {} wait at the gate, {} are on nodes, {} run or are done; "
      "its "
      "Gang says \"{}\"",
      job.name, job.pods, job.gpus, job.parallelism, standing.pods, standing.gated, standing.bound,
      standing.run.size(), standing.gang);
}

// Of the gangs that it is: how its standing is called, and how many pods it has.
std::vector<std::pair<std::string, int>> GangsOf(const JobWords& job) {
  if (job.groups == 0) return {{job.name, job.pods}};
  std::vector<std::pair<std::string, int>> gangs;
  for (int group = 0; group < job.groups; ++group)
    gangs.emplace_back(fmt::format("{}/{}", job.name, group), job.pods / job.groups);
  return gangs;
}

// What no extender could place: the numbers do not multiply, or the owner is no gang.
bool IsFeasible(const JobWords& job) {
  return job.parallelism != "tp=3,dp=5" && job.completions == 0;
}

// One life.
class Life {
 public:
  explicit Life(const RunOptions& options)
      : options_(options),
        simulation_(options.seed),
        draw_(simulation_.Fork(), options.seed),
        setting_(draw_.TheSetting()),
        world_(simulation_, setting_, draw_.TheWeather()),
        people_(world_, draw_.TheTrouble(), 9) {
    if (options_.trace) simulation_.SetSink(options_.trace);
  }

  Outcome Run() {
    if (options_.sabotage) options_.sabotage(world_);
    people_.Begin();
    Stage(&Life::Storm);
    Stage(&Life::Settle);
    Stage(&Life::Rest);
    Stage(&Life::Finish);
    Stage(&Life::Empty);
    Stage(&Life::FillWhole);
    Outcome outcome;
    outcome.seed = options_.seed;
    outcome.violations = world_.checks().violations();
    outcome.trace_hash = simulation_.trace_hash();
    outcome.steps = simulation_.steps();
    outcome.virtual_time = std::chrono::duration_cast<seconds>(simulation_.now() - start_);
    outcome.jobs = people_.submitted();
    for (const Machine& machine : world_.machines()) outcome.kills += machine.starts - 1;
    outcome.requests = world_.network().all_requests();
    return outcome;
  }

 private:
  void Stage(void (Life::*stage)()) {
    if (!world_.checks().violations().empty()) return;
    (this->*stage)();
  }

  bool Until(const std::function<bool()>& condition, std::chrono::nanoseconds limit) {
    return world_.Until([&] { return condition() || !world_.checks().violations().empty() || TooLong(); },
                        limit);
  }
  bool TooLong() const { return options_.most_steps > 0 && simulation_.steps() >= options_.most_steps; }
  void Pass(std::chrono::nanoseconds duration) {
    (void)Until([] { return false; }, duration);
  }

  void Storm() { Pass(minutes(2) + seconds(draw_.Below(240))); }

  // Calm: every gang that can start does, or says why it does not.
  void Settle() {
    people_.Rest();
    world_.network().SetWeather(Weather{});
    people_.DeleteLonePods();
    std::string waits;
    const auto settled = [&] {
      auto standings = Standings(world_);
      for (const auto& [name, job] : people_.jobs()) {
        for (const auto& [gang, pods] : GangsOf(job)) {
          const Standing& standing = standings[gang];
          if (standing.finished || int(standing.run.size()) == pods) continue;
          // New ranks of a Job that was scaled up may wait beside those that run.
          const int still = standing.gated + (job.scaled ? standing.bound : 0);
          if ((standing.bound == 0 || job.scaled) && still == standing.pods && !standing.reason.empty())
            continue;
          waits = Words(job, standing);
          return false;
        }
      }
      return true;
    };
    if (!Until(settled, minutes(30))) world_.checks().Violate("AllOrNothing", waits);
  }

  // Nothing has a reason to be written while nothing happens. A Job or rank that ends is something, and a rank that a person has
  // deleted may still be on its way back.
  void Rest() {
    int restless = 0;
    for (int look = 0; look < 30 && restless < 3; ++look) {
      const std::uint64_t before = world_.checks().writes();
      const std::size_t finished = Finished();
      Pass(minutes(2));
      if (!world_.checks().violations().empty() || TooLong()) return;
      if (Finished() != finished) continue;
      if (world_.checks().writes() == before) return;
      ++restless;
    }
    if (restless < 3) return;
    world_.checks().Violate("StatusSettles",
                            "three times there were writes within two minutes of rest, the last one: " +
                                world_.checks().last_write());
  }

  // Jobs and ranks.
  std::size_t Finished() {
    std::size_t finished = 0;
    for (const auto& [name, standing] : Standings(world_))
      finished += standing.done + (standing.finished ? 1 : 0);
    return finished;
  }

  // What ran for ever ends now, so everything that waits for room gets it.
  void Finish() {
    world_.kubelets().LetAllEnd();
    world_.kubelets().Kick();
    std::string waits;
    const auto done = [&] { return AllHaveRun(waits); };
    if (Until(done, minutes(20))) return;
    StopServing();
    if (!Until(done, minutes(60))) world_.checks().Violate("FeasibleRuns", waits);
  }

  // What serves for ever is taken down as soon as all of it runs: there is one such at a time, which has room beside
  // nobody, and who waits for its room gets it then.
  bool AllHaveRun(std::string& waits) {
    auto standings = Standings(world_);
    bool all = true;
    std::vector<std::string> served;
    for (const auto& [name, job] : people_.jobs()) {
      if (!IsFeasible(job)) continue;
      bool has_run = true;
      for (const auto& [gang, pods] : GangsOf(job)) {
        const Standing& standing = standings[gang];
        if (standing.finished || (job.groups > 0 && int(standing.run.size()) == pods)) continue;
        has_run = false;
        waits = Words(job, standing);
        // Where a pod is past the gate it is no mistake, and is to be followed.
        if (standing.reason == "WorldMismatch" && standing.gated == standing.pods) people_.ScaleBack(name);
      }
      all = all && has_run;
      if (has_run && job.groups > 0) served.push_back(name);
    }
    for (const std::string& name : served) people_.DeleteJob(name);
    return all;
  }

  // A group that serves never ends. Where a Job ahead waits for what it holds, its set's next group waits behind that Job
  // by the rule of the queue, and all three would for ever. Where nobody else waits, the groups have to run.
  void StopServing() {
    auto standings = Standings(world_);
    std::vector<std::string> serving;
    bool others_wait = false;
    for (const auto& [name, job] : people_.jobs()) {
      if (job.groups > 0) {
        serving.push_back(name);
        continue;
      }
      for (const auto& [gang, pods] : GangsOf(job))
        others_wait = others_wait || (IsFeasible(job) && !standings[gang].finished);
    }
    for (const std::string& name : serving) {
      if (others_wait) people_.DeleteJob(name);
    }
  }

  // Everybody goes home.
  void Empty() {
    const auto jobs = people_.jobs();
    for (const auto& [name, job] : jobs) people_.DeleteJob(name);
    const auto empty = [&] {
      return world_.server().All(kube::kPods).empty() && world_.server().All(extender::kGangs).empty() &&
             world_.server().All(extender::kComputeDomains).empty();
    };
    if (Until(empty, minutes(5))) return;
    std::string left;
    for (const auto& resource : {kube::kPods, extender::kGangs, extender::kComputeDomains}) {
      for (const Json& object : world_.server().All(resource)) {
        left += " " + resource.kind + " " + kube::KeyOf(object).ToString();
      }
    }
    world_.checks().Violate("NothingLeaked", "nobody owns these and they are still there:" + left);
  }

  // A Job over every GPU but the spares': a slot that leaked would be missing.
  void FillWhole() {
    const int pods = world_.nodes_for_gangs(), gpus = world_.gpus_per_node();
    const JobWords whole{.name = "whole",
                         .pods = pods,
                         .gpus = gpus,
                         .parallelism = fmt::format("tp={},dp={}", gpus, pods),
                         .runs = seconds(5)};
    world_.jobs().Submit(whole);
    if (Until([&] { return Standings(world_)["whole"].finished; }, minutes(5))) return;
    world_.checks().Violate("NothingLeaked", "the cluster is empty, and a Job over all of it does not run: " +
                                                 Words(whole, Standings(world_)["whole"]));
  }

  const RunOptions options_;
  Simulation simulation_;
  Draw draw_;
  const Setting setting_;
  World world_;
  People people_;
  const base::MonotonicTime start_ = simulation_.now();
};

}  // namespace

Outcome RunSeed(const RunOptions& options) {
  return Life(options).Run();
}

}  // namespace heddle::sim
