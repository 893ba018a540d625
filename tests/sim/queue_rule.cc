#include "tests/sim/queue_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/condition.h"
#include "crds/gang.h"
#include "crds/keys.h"
#include "extender/resources.h"

namespace heddle::sim {

using kube::Json;

namespace {

constexpr std::chrono::seconds kLongestWalk{60};  // through the queue, with a slow server

}  // namespace

QueueRule::QueueRule(Simulation& simulation, test::FakeApiServer& server, Checks& checks, Ask ask)
    : simulation_(simulation), server_(server), checks_(checks), ask_(std::move(ask)) {}

// The Gang that this write gave a plan that it had not.
std::optional<crds::Gang> QueueRule::NewPlan(const test::ApiRequest& request,
                                             const kube::HttpResponse& response) {
  if (request.plural != "gangs" || request.subresource != "status" || response.status / 100 != 2) return {};
  auto gang = crds::GangFromJson(Json::parse(response.body, nullptr, false));
  if (!gang || !gang->status.placement) return {};
  uids_[gang->name].insert(gang->uid);
  std::int64_t& last = epochs_[gang->uid];
  if (last == gang->status.placement->epoch) return {};
  last = gang->status.placement->epoch;
  return *std::move(gang);
}

void QueueRule::Excuse(const test::ApiRequest& request, const kube::HttpResponse& response) {
  if (const auto gang = NewPlan(request, response)) planned_at_[int(gang->spec.priority)] = simulation_.now();
}

void QueueRule::Requested(const Process& process, const test::ApiRequest& request,
                          const kube::HttpResponse& response) {
  const auto gang = NewPlan(request, response);
  if (!gang) return;
  const auto planned_lately = [this, now = simulation_.now()](int priority) {
    const auto found = planned_at_.find(priority);
    return found != planned_at_.end() && now - found->second < kLongestWalk;
  };
  const Kept kept = ask_(process);
  planned_at_[int(gang->spec.priority)] = simulation_.now();
  if (kept.empty() || HasBegun(gang->name)) return;
  Suspicion suspicion{.gang = gang->uid, .name = gang->name, .priority = int(gang->spec.priority)};
  for (const crds::PlacedPod& row : crds::ToRows(*gang->status.placement)) {
    const auto keeper = kept.find(row.node);
    if (keeper == kept.end() || keeper->second <= suspicion.priority) continue;
    if (planned_lately(keeper->second)) continue;  // it may have been kept for that one
    if (auto waiting = Waiting(keeper->second); !waiting.empty())
      suspicion.waiting[row.node] = std::move(waiting);
  }
  if (suspicion.waiting.empty()) return;
  ++suspected_;
  LookAgain(process, std::move(suspicion));
}

void QueueRule::LookAgain(const Process& process, Suspicion suspicion) {
  constexpr int kLooks = 100;
  simulation_.After(std::chrono::milliseconds(50), [this, &process, suspicion]() mutable {
    if (process.dead()) return;
    const Kept kept = ask_(process);
    std::erase_if(suspicion.waiting, [&](const auto& one) {
      const auto keeper = kept.find(one.first);
      if (keeper == kept.end() || keeper->second <= suspicion.priority) return true;
      const std::set<std::string> waiting = Waiting(keeper->second);
      return std::none_of(one.second.begin(), one.second.end(),
                          [&waiting](const std::string& uid) { return waiting.contains(uid); });
    });
    if (suspicion.waiting.empty()) return;
    if (++suspicion.looks < kLooks) return LookAgain(process, std::move(suspicion));
    const std::string& node = suspicion.waiting.begin()->first;
    checks_.Violate("QueueRule",
                    fmt::format("Gang {} of priority {} was planned onto {}, which is kept for one of "
                                "priority {} that waits",
                                suspicion.name, suspicion.priority, node, kept.at(node)));
  });
}

std::set<std::string> QueueRule::Waiting(int priority) const {
  std::set<std::string> waiting;
  server_.Visit(extender::kGangs, [&](const Json& object) {
    if (kube::IntAt(object, {"spec", "priority"}).value_or(0) != priority) return;
    if (kube::Find(object, {"status", "placement"}) != nullptr) return;
    const Json* ended = kube::Condition(object, crds::kEnded);
    if (ended != nullptr && kube::StringAt(*ended, {"status"}) == "True") return;
    if (!kube::StringAt(object, {"status", "reason"}).empty()) waiting.insert(kube::Uid(object));
  });
  return waiting;
}

// Its pods may have been told by one of that name before it: an owner that is scaled gets another.
bool QueueRule::HasBegun(const std::string& gang) const {
  const auto uids = uids_.find(gang);
  if (uids == uids_.end()) return false;
  bool begun = false;
  server_.Visit(kube::kPods, [&](const Json& pod) {
    begun =
        begun || (uids->second.contains(kube::Annotation(pod, crds::keys::kGangUid).value_or("")) &&
                  kube::ArrayAt(pod, {"spec", "schedulingGates"}).empty() && !kube::DeletionTimestamp(pod));
  });
  return begun;
}

}  // namespace heddle::sim
