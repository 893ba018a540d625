#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "crds/condition.h"
#include "crds/object_meta.h"
#include "kube/client.h"
#include "kube/events.h"
#include "operator/outcome.h"
#include "operator/policy_reads.h"
#include "operator/specs_ahead.h"
#include "operator/status_pace.h"

namespace heddle::operators {

// How what policies make of the nodes is written. A server that is ahead of our cache is no failure: the look that
// follows finds out. Thread rule: one thread at a time.
class PolicyWrites {
 public:
  // `field`: of NodeTopologies' specs, the one that these policies have.
  PolicyWrites(kube::Client& client, base::Clock& clock, std::string field)
      : client_(client), clock_(clock), ahead_(std::move(field)) {}

  // Sets the field in one NodeTopology, or takes it away (null). `uid`: of the object that was decided on; one made
  // anew meanwhile is not written to.
  struct SpecChange {
    std::string node, uid;
    kube::Json value;
  };
  // Of many, kAtOnce at a time: one after the other a change of 5,000 nodes takes over a minute. What each came to, in
  // their order; one that fails holds up no other, and after stop the rest is left alone.
  std::vector<base::Result<Outcome>> Specs(std::vector<SpecChange> changes, const std::stop_token& stop);
  // What was written so and a cache may not show yet: who decides on specs reads them over it.
  SpecsAhead& ahead() { return ahead_; }
  std::optional<std::chrono::nanoseconds> BehindFor() { return ahead_.Left(clock_.Now()); }
  const std::string& field() const { return ahead_.field(); }
  // Nodes on whose NodeTopologies an event says that they are not told, as PolicyPass::TellRefused left them.
  std::set<std::string>& told() { return told_; }
  // Resource versions that PolicyPass::TellUnreadable told of, by kind and name.
  std::map<std::string, std::string>& unreadable() { return unreadable_; }
  // As many as kube-controller-manager has workers for most kinds (--concurrent-deployment-syncs).
  static constexpr int kAtOnce = 5;
  // Applies a policy's status, as often as StatusPace lets it: `again` of the outcome is when it may be written.
  [[nodiscard]] base::Result<Outcome> Status(const kube::Resource& kind, const std::string& name,
                                             const kube::Json& applied, bool urgent,
                                             const std::stop_token& stop);

 private:
  // What the server made of it.
  base::Result<kube::Json> Spec(SpecChange change, const std::stop_token& stop);

  kube::Client& client_;
  base::Clock& clock_;
  SpecsAhead ahead_;
  StatusPace status_pace_{std::chrono::seconds(10)};  // by kind and name
  std::set<std::string> told_;
  std::map<std::string, std::string> unreadable_;
};

// Whether the server, as it is set up, does not take what we write: a right is missing, its schema knows a field
// otherwise, it is too large, or a webhook says no or is away. Another try alone mends none of them; a server in
// trouble and a cache that is behind are not among them.
bool IsRefusal(const base::Error& error);

// The event on a NodeTopology whose spec the server does not take.
inline constexpr std::string_view kSpecNotWritten = "SpecNotWritten";

// Says on an object whose status the server does not take that it may be old, why and what to do: nothing of that can
// stand in the status itself. `error`: IsRefusal.
inline constexpr std::string_view kStatusNotWritten = "StatusNotWritten";
void TellStatusNotWritten(kube::EventRecorder& events, const kube::ObjectReference& about,
                          const base::Error& error);

// An event of a policy: what a condition turned to, for those of its reasons that people are to be told of; the others
// are on the way to one of these.
struct PolicyEvent {
  std::string_view reason, event;
  kube::Severity severity;
  std::string_view condition = crds::kReady;
  bool urgent = false;  // the status that says so waits for nothing
};

// The reason of Ready (of a FabricSwitch, of Compared) where nodes could not be told what it says.
inline constexpr std::string_view kNotTold = "NotTold";
struct NotTold {
  std::set<std::string> nodes;
  base::Error first;  // of the first that was added
  void Add(const std::string& node, const base::Error& error) {
    if (nodes.empty()) first = error;
    nodes.insert(node);
  }
};

// By policy, the nodes it speaks of whose spec could not be written. `refused`: as PolicyPass has it; `wishes`: what
// each node was to be told.
template <class Wish>
std::map<std::string, NotTold> NotToldOf(const std::map<std::string, base::Error>& refused,
                                         const std::map<std::string, std::vector<Wish>>& wishes) {
  std::map<std::string, NotTold> by_policy;
  for (const auto& [node, error] : refused) {
    const auto wanted = wishes.find(node);
    if (wanted == wishes.end()) continue;
    std::set<std::string> policies;
    for (const Wish& wish : wanted->second) policies.insert(wish.policies.begin(), wish.policies.end());
    for (const std::string& policy : policies) by_policy[policy].Add(node, error);
  }
  return by_policy;
}

// Makes the condition of this type say so where it would only say that all is well, or that there is something to wait
// for; false: it does not. `before`: the conditions that stand there.
bool SayNotTold(const NotTold& what, std::string_view type, const std::vector<crds::Condition>& before,
                base::WallTime now, std::vector<crds::Condition>& conditions);

// The reason of Ready (of a FabricSwitch, of Reachable) where the object's spec cannot be read.
inline constexpr std::string_view kNotUnderstood = "NotUnderstood";
// What became of what an object governs that cannot be read, as NotUnderstoodMessage takes it.
inline constexpr std::string_view kNodesKeepIt = "Nodes keep what they were told before";
// Which field it is, what became of what it governs (`kept`, a sentence without a full stop), and what to do.
std::string NotUnderstoodMessage(const base::Error& why, std::string_view kept);
// Makes Ready say so.
void SayNotUnderstood(const base::Error& why, std::int64_t generation, base::WallTime now,
                      std::vector<crds::Condition>& conditions);

// What one look at all nodes and policies of a kind writes: what differs, and the next where one fails.
class PolicyPass {
 public:
  PolicyPass(PolicyWrites& writes, kube::EventRecorder& events, std::span<const PolicyEvent> told,
             const std::stop_token& stop)
      : writes_(writes), events_(events), told_(told), stop_(stop) {}

  // The policies' field of a node's spec, null = none, where `wanted` is another than `has`. Written with the others
  // of the pass, before the first status and the sum.
  void Spec(const std::string& node, const std::string& uid, const kube::Json& has, kube::Json wanted);
  // A policy's status, where `applied` has another than `has`, and then its event; an event of its own where the server
  // does not take it.
  struct Conditions {
    const std::vector<crds::Condition>& before;
    const std::vector<crds::Condition>& now;
  };
  void Status(const kube::Resource& kind, const crds::ObjectMeta& policy, const kube::Json& has,
              const kube::Json& applied, const Conditions& conditions);
  // Nodes whose spec the server does not take from us (IsRefusal), and its words. Writes the specs first.
  const std::map<std::string, base::Error>& Refused();
  // An event on the NodeTopologies of those of them of which no status speaks, once while it lasts: what they were to
  // be told may be that nothing is said of them any more. `said`: those of which one does. At most ten events a look,
  // of which the first by name say how many there are.
  void TellRefused(const std::set<std::string>& said);
  // An event on an object of which not even so much can be read that its status could say why: of kNotUnderstood's
  // name, and once for each of its versions. `kept`: as NotUnderstoodMessage takes it.
  void TellUnreadable(const Unreadable& unreadable, std::string_view kept);
  void Take(const base::Result<Outcome>& one);
  // Or the first error. `again` is no later than when a cache that does not show what we wrote is believed all the
  // same.
  [[nodiscard]] base::Result<Outcome> Sum();

 private:
  void WriteSpecs();
  // The message of the condition that turned to what the event speaks of; null: it did not.
  static const std::string* Turned(const PolicyEvent& event, const Conditions& conditions);
  void Tell(const kube::Resource& kind, const crds::ObjectMeta& policy, const Conditions& conditions);

  PolicyWrites& writes_;
  kube::EventRecorder& events_;
  const std::span<const PolicyEvent> told_;
  const std::stop_token& stop_;
  std::vector<PolicyWrites::SpecChange> changes_;
  std::map<std::string, base::Error> refused_;
  std::map<std::string, std::string> refused_uids_;  // of the NodeTopologies, by node
  Outcome total_;
  std::optional<base::Error> failed_;
};

// Says in the status of a policy that cannot be read why not; all else stands there as it did. By an event, where
// nothing of it can be read. `parse` and `any_spec`: as KnownOf takes them; `status_of`: as PolicyPass compares it.
template <class Policy, class StatusOf>
void TellNotUnderstood(const Unreadable& unreadable, base::Result<Policy> (*parse)(const kube::Json&),
                       const kube::Json& any_spec, const kube::Resource& kind, StatusOf status_of,
                       base::WallTime now, PolicyPass& pass) {
  const std::optional<Policy> known = KnownOf(unreadable, parse, any_spec);
  if (!known) return pass.TellUnreadable(unreadable, kNodesKeepIt);
  Policy wanted = *known;
  SayNotUnderstood(unreadable.why, known->generation, now, wanted.status.conditions);
  pass.Status(kind, *known, status_of(known->status), crds::StatusApplyJson(wanted),
              {known->status.conditions, wanted.status.conditions});
}

}  // namespace heddle::operators
