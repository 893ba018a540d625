#include "tests/sim/pod_scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/keys.h"
#include "extender/node_constraints.h"

namespace heddle::sim {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLeaseDuration{15};
constexpr seconds kRenewPeriod{2};
const kube::ObjectKey kLease{std::string(crds::keys::kNamespace), std::string(crds::keys::kSchedulerLease)};

}  // namespace

PodScheduler::PodScheduler(Simulation& simulation, test::FakeApiServer& server,
                           std::vector<std::string> hosts, Verb verb, Wrong wrong)
    : simulation_(simulation),
      server_(server),
      random_(simulation.Fork()),
      hosts_(std::move(hosts)),
      verb_(std::move(verb)),
      wrong_(std::move(wrong)),
      pace_(simulation, milliseconds(200), [this] { Look(); }) {
  Take(hosts_.front());
  simulation_.After(kRenewPeriod, [this] { Renew(); });
}

void PodScheduler::Take(const std::string& host) {
  active_ = host;
  if (verb_) {
    simulation_.Say("scheduler of " + host + " leads");
    server_.Edit(kube::kLeases, kLease, [&](Json& lease) {
      const auto transitions = kube::IntAt(lease, {"spec", "leaseTransitions"}).value_or(0);
      lease["spec"] = {{"holderIdentity", host + fmt::format("_{:08x}", random_.Below(1u << 31))},
                       {"leaseDurationSeconds", kLeaseDuration.count()},
                       {"leaseTransitions", transitions + 1},
                       {"renewTime", base::FormatMicroTime(simulation_.wall())}};
    });
  }
  Kick();
}

void PodScheduler::Renew() {
  if (verb_ && !active_.empty()) {
    server_.Edit(kube::kLeases, kLease, [&](Json& lease) {
      lease["spec"]["renewTime"] = base::FormatMicroTime(simulation_.wall());
    });
  }
  simulation_.After(kRenewPeriod, [this] { Renew(); });
}

void PodScheduler::FailOver(bool released) {
  if (active_.empty() || hosts_.size() < 2) return;
  const auto now = std::find(hosts_.begin(), hosts_.end(), active_);
  const std::string next = std::next(now) == hosts_.end() ? hosts_.front() : *std::next(now);
  simulation_.Say("scheduler of " + active_ + (released ? " leaves" : " dies"));
  Forget();
  if (released && verb_) {
    server_.Edit(kube::kLeases, kLease, [](Json& lease) {
      lease["spec"]["holderIdentity"] = "";
      lease["spec"]["leaseDurationSeconds"] = 1;
    });
  }
  simulation_.After((released ? seconds(1) : kLeaseDuration) + random_.Jitter(seconds(3)),
                    [this, next] { Take(next); });
}

void PodScheduler::Restart() {
  if (active_.empty()) return;
  simulation_.Say("scheduler of " + active_ + " restarts");
  const std::string host = active_;
  Forget();
  simulation_.After((verb_ ? kLeaseDuration : seconds(1)) + random_.Jitter(seconds(3)),
                    [this, host] { Take(host); });
}

void PodScheduler::Forget() {
  active_.clear();
  for (const auto& [uid, assumed] : assumed_) {
    if (random_.Below(2) == 0) landing_.insert(uid);
  }
  assumed_.clear();
  attempts_.clear();
}

std::map<std::string, int> PodScheduler::FreeGpus(const std::vector<PodRow>& pods) const {
  std::map<std::string, int> free;
  server_.Visit(kube::kNodes, [&](const Json& object) {
    const extender::NodeFacts node = extender::ReadNode(object);
    if (node.ready && !node.cordoned) free[node.name] = node.gpus;
  });
  for (const PodRow& pod : pods) {
    if (pod.occupies() && free.contains(pod.node)) free[pod.node] -= pod.gpus;
  }
  for (const auto& [uid, assumed] : assumed_) {
    if (free.contains(assumed.node)) free[assumed.node] -= assumed.gpus;
  }
  return free;
}

std::set<std::string> PodScheduler::TakenChannels(const std::vector<PodRow>& pods) const {
  std::set<std::string> nodes;
  for (const PodRow& pod : pods) {
    if (pod.channel && pod.occupies()) nodes.insert(pod.node);
  }
  for (const auto& [uid, assumed] : assumed_) {
    if (assumed.channel) nodes.insert(assumed.node);
  }
  return nodes;
}

void PodScheduler::Look() {
  if (active_.empty()) return;
  const std::vector<PodRow> pods = PodRows(server_);
  std::optional<std::map<std::string, int>> free;
  for (const PodRow& pod : pods) {
    if (!pod.node.empty() || pod.finished() || pod.terminating || pod.gated || assumed_.contains(pod.uid))
      continue;
    const Attempt& attempt = attempts_[pod.uid];
    if (attempt.not_before > simulation_.now()) {
      pace_.KickAfter(attempt.not_before - simulation_.now());
      continue;
    }
    if (!free) free = FreeGpus(pods);
    if (const auto object = server_.Find(kube::kPods, pod.key)) TryPod(pod, *object, pods, *free);
  }
}

void PodScheduler::TryPod(const PodRow& pod, const Json& object, const std::vector<PodRow>& pods,
                          std::map<std::string, int>& free) {
  const extender::PodConstraints constraints(object);
  const std::set<std::string> taken = pod.channel ? TakenChannels(pods) : std::set<std::string>{};
  std::vector<std::string> places;
  server_.Visit(kube::kNodes, [&](const Json& node) {
    const std::string name = kube::Name(node);
    const auto room = free.find(name);
    if (room == free.end() || room->second < pod.gpus || taken.contains(name)) return;
    if (constraints.Admit(extender::ReadNode(node))) places.push_back(name);
  });
  std::rotate(places.begin(), places.begin() + std::ptrdiff_t(random_.Below(places.size() + 1)),
              places.end());
  const auto passed = places.empty() ? places : Filtered(object, places);
  if (!passed) return Refuse(object, "the extender did not answer");
  if (passed->empty()) {
    if (places.empty()) Preempt(pod, object, pods, free);
    return Refuse(object, "0/" + std::to_string(free.size()) + " nodes are available");
  }
  const std::string node = Best(object, *passed);
  free[node] -= pod.gpus;
  assumed_[pod.uid] = {node, pod.gpus, pod.channel};
  simulation_.After(milliseconds(5) + random_.Jitter(milliseconds(200)),
                    [this, key = pod.key, uid = pod.uid, node] { Bind(key, uid, node); });
}

// What is not in the answer has not passed.
std::optional<std::vector<std::string>> PodScheduler::Filtered(const Json& pod,
                                                               const std::vector<std::string>& nodes) {
  if (!verb_) return nodes;
  const auto told = verb_(active_, "/filter", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nodes}});
  if (!told) return std::nullopt;
  std::vector<std::string> passed;
  for (const Json& name : kube::ArrayAt(*told, {"NodeNames"})) {
    passed.push_back(name.is_string() ? name.get<std::string>() : "");
    if (std::find(nodes.begin(), nodes.end(), passed.back()) == nodes.end())
      wrong_("filter passed the node " + name.dump() + ", which it was not asked about");
  }
  return passed;
}

// It asks for scores only where there is a choice, and goes on without them where there is no answer.
std::string PodScheduler::Best(const Json& pod, const std::vector<std::string>& nodes) {
  if (!verb_ || nodes.size() == 1) return nodes.front();
  const auto told = verb_(active_, "/prioritize", {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nodes}});
  if (!told) return nodes.front();
  std::map<std::string, std::int64_t> scores;  // a node that is not told has 0
  for (const Json& one : *told) {
    const std::string node = kube::StringAt(one, {"Host"});
    const std::int64_t score = kube::IntAt(one, {"Score"}).value_or(-1);
    const bool asked = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    if (!asked || score < 0 || score > 10 || !scores.emplace(node, score).second) {
      wrong_(
          "prioritize named a node that it was not asked about, or one twice, or gave it no score from 0 to "
          "10: " +
          told->dump());
      return nodes.front();
    }
  }
  return *std::max_element(nodes.begin(), nodes.end(),
                           [&scores](const auto& a, const auto& b) { return scores[a] < scores[b]; });
}

// Where the fewest pods of less priority have to go, lowest first. Those of gangs that have a plan wait for their place:
// they were planned where there is room.
void PodScheduler::Preempt(const PodRow& pod, const Json& object, const std::vector<PodRow>& pods,
                           const std::map<std::string, int>& free) {
  if (!verb_ || pod.priority <= 0 || kube::Annotation(object, crds::keys::kGangUid)) return;
  Attempt& attempt = attempts_[pod.uid];
  const bool on_its_way = std::any_of(pods.begin(), pods.end(), [&attempt](const PodRow& other) {
    return other.node == attempt.nominated && other.terminating && other.occupies();
  });
  if (on_its_way) return;
  std::map<std::string, std::vector<PodRow>> victims;
  for (const auto& [node, room] : free) {
    std::vector<PodRow> lower;
    bool leaving = false;  // somebody makes room already
    for (const PodRow& other : pods) {
      if (other.node != node || !other.occupies()) continue;
      leaving = leaving || other.terminating;
      if (!other.terminating && other.priority < pod.priority && other.gpus > 0) lower.push_back(other);
    }
    std::stable_sort(lower.begin(), lower.end(),
                     [](const PodRow& a, const PodRow& b) { return a.priority < b.priority; });
    int found = room;
    std::size_t count = 0;
    while (found < pod.gpus && count < lower.size()) found += lower[count++].gpus;
    if (leaving || found < pod.gpus || count == 0) continue;
    lower.resize(count);
    victims[node] = std::move(lower);
  }
  if (victims.empty()) return;
  Json asked = Json::object();
  for (const auto& [node, rows] : victims) {
    Json list = Json::array();
    for (const PodRow& row : rows) list.push_back({{"UID", row.uid}});
    asked[node] = {{"Pods", list}, {"NumPDBViolations", 0}};
  }
  const auto told =
      verb_(active_, "/preempt",
            {{"Pod", object}, {"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", asked}});
  if (!told) return;
  const Json* kept = kube::Find(*told, {"NodeNameToMetaVictims"});
  if (kept == nullptr || !kept->is_object()) return wrong_("preempt answered " + told->dump());
  std::string best;
  for (const auto& [node, answer] : kept->items()) {
    if (!victims.contains(node) || kube::ArrayAt(answer, {"Pods"}) != asked[node]["Pods"])
      return wrong_("preempt names other victims on " + node + " than it was given: " + told->dump());
    if (best.empty() || victims[node].size() < victims[best].size()) best = node;
  }
  if (best.empty()) return;
  attempt.nominated = best;
  for (const PodRow& victim : victims[best]) {
    simulation_.Say("preempt pod " + victim.key.name + " on " + best + " for " + pod.key.name);
    server_.Edit(kube::kPods, victim.key, [this](Json& edited) {
      edited["metadata"]["deletionTimestamp"] = base::FormatTime(simulation_.wall());
    });
  }
}

void PodScheduler::Refuse(const Json& pod, const std::string& why) {
  Attempt& attempt = attempts_[kube::Uid(pod)];
  // 1 s doubling to 10 s (podInitialBackoffSeconds, podMaxBackoffSeconds).
  const seconds wait(std::min(10, 1 << std::min(attempt.failures++, 4)));
  attempt.not_before = simulation_.now() + wait;
  pace_.KickAfter(wait);
  const Json* told = kube::Condition(pod, "PodScheduled");
  if (told != nullptr && kube::StringAt(*told, {"message"}) == why) return;
  server_.Edit(kube::kPods, kube::KeyOf(pod), [&](Json& edited) {
    Json& conditions = edited["status"]["conditions"];
    if (!conditions.is_array()) conditions = Json::array();
    kube::SetCondition(conditions, {"PodScheduled", "False", "Unschedulable", why}, simulation_.wall());
  });
}

void PodScheduler::Bind(const kube::ObjectKey& key, const std::string& uid, const std::string& node) {
  if (assumed_.erase(uid) + landing_.erase(uid) == 0) return;  // another replica has taken over
  Kick();
  const auto pod = server_.Find(kube::kPods, key);
  if (!pod || kube::Uid(*pod) != uid || kube::DeletionTimestamp(*pod)) return;
  if (!kube::StringAt(*pod, {"spec", "nodeName"}).empty()) return;
  simulation_.Say("bind " + key.name + " to " + node);
  server_.Edit(kube::kPods, key, [&](Json& edited) {
    edited["spec"]["nodeName"] = node;
    Json& conditions = edited["status"]["conditions"];
    if (!conditions.is_array()) conditions = Json::array();
    kube::SetCondition(conditions, {"PodScheduled", "True", "", ""}, simulation_.wall());
  });
}

}  // namespace heddle::sim
