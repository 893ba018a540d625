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
                           std::vector<std::string> hosts, Filter filter)
    : simulation_(simulation),
      server_(server),
      random_(simulation.Fork()),
      hosts_(std::move(hosts)),
      filter_(std::move(filter)),
      pace_(simulation, milliseconds(200), [this] { Look(); }) {
  Take(hosts_.front());
  simulation_.After(kRenewPeriod, [this] { Renew(); });
}

void PodScheduler::Take(const std::string& host) {
  active_ = host;
  if (filter_) {
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
  if (filter_ && !active_.empty()) {
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
  active_.clear();
  assumed_.clear();
  if (released && filter_) {
    server_.Edit(kube::kLeases, kLease, [](Json& lease) {
      lease["spec"]["holderIdentity"] = "";
      lease["spec"]["leaseDurationSeconds"] = 1;
    });
  }
  simulation_.After((released ? seconds(1) : kLeaseDuration) + random_.Jitter(seconds(3)),
                    [this, next] { Take(next); });
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
    if (const auto object = server_.Find(kube::kPods, pod.key)) TryPod(pod, *object, *free);
  }
}

void PodScheduler::TryPod(const PodRow& pod, const Json& object, std::map<std::string, int>& free) {
  const extender::PodConstraints constraints(object);
  std::vector<std::string> places;
  server_.Visit(kube::kNodes, [&](const Json& node) {
    const std::string name = kube::Name(node);
    const auto room = free.find(name);
    if (room == free.end() || room->second < pod.gpus) return;
    if (constraints.Admit(extender::ReadNode(node))) places.push_back(name);
  });
  std::rotate(places.begin(), places.begin() + std::ptrdiff_t(random_.Below(places.size() + 1)),
              places.end());
  for (const std::string& node : places) {
    const std::optional<bool> passed = filter_ ? filter_(active_, object, node) : true;
    if (!passed) return Refuse(object, "the extender did not answer");
    if (!*passed) continue;
    free[node] -= pod.gpus;
    assumed_[pod.uid] = {node, pod.gpus};
    simulation_.After(milliseconds(5) + random_.Jitter(milliseconds(200)),
                      [this, key = pod.key, uid = pod.uid, node] { Bind(key, uid, node); });
    return;
  }
  Refuse(object, "0/" + std::to_string(free.size()) + " nodes are available");
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
  if (assumed_.erase(uid) == 0) return;  // another replica has taken over
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
