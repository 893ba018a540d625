#include "operator/policy_writes.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "crds/keys.h"
#include "operator/resources.h"

namespace heddle::operators {
namespace {

// The API server names a webhook that it could not call, or that said no ("failed calling webhook",
// "admission webhook ... denied the request": apiserver, pkg/admission/plugin/webhook).
bool IsOfWebhook(const base::Error& error) {
  return error.message.find("webhook \"") != std::string::npos;
}

// The server is ahead of our cache, which is about to show it and brings the key back. A webhook may answer with these
// codes too, and no cache will ever show why.
bool CacheIsBehind(const base::Error& error) {
  return (error.code == base::Code::kNotFound || error.code == base::Code::kConflict) && !IsOfWebhook(error);
}

// Of Ready: nothing is wrong that people could mend elsewhere.
bool OnlyWaits(const crds::Condition& ready) {
  constexpr std::array<std::string_view, 3> kWaits{"Waiting", "Canary", "Applying"};
  return ready.status == crds::ConditionStatus::kTrue || ready.reason == kNotTold ||
         std::find(kWaits.begin(), kWaits.end(), ready.reason) != kWaits.end();
}

constexpr std::string_view kTooMuchToTell =
    "narrow the policies of these nodes, so that there is less to tell";
// More events of one look than this help nobody.
constexpr std::size_t kMaxEvents = 10;

// `too_large`: what to do about that.
std::string_view MendRefusal(const base::Error& error, std::string_view too_large) {
  if (IsOfWebhook(error))
    return "look at the webhook that it names: `kubectl get validatingwebhookconfigurations`";
  if (error.code == base::Code::kForbidden) return "`kubectl heddle doctor` names rights that it lacks";
  if (error.code == base::Code::kTooLarge) return too_large;
  return "bring the operator and the CRDs to one version";
}

}  // namespace

bool IsRefusal(const base::Error& error) {
  switch (error.code) {
    case base::Code::kForbidden:
    case base::Code::kInvalid:
    case base::Code::kTooLarge:
      return true;
    default:
      return IsOfWebhook(error);
  }
}

void TellStatusNotWritten(kube::EventRecorder& events, const kube::ObjectReference& about,
                          const base::Error& error) {
  // The schema bounds a status far below what a server takes. The error comes last: its end may be cut.
  constexpr std::string_view kTooLarge =
      "see what else stands in the object, as annotations, and what is between the operator and the server";
  events.Record(about, kube::Severity::kWarning, kStatusNotWritten,
                fmt::format("what its status says may be old, since the server does not take another from "
                            "the operator, which tries again by itself; {}: {}",
                            MendRefusal(error, kTooLarge), error.message));
}

bool SayNotTold(const NotTold& what, std::string_view type, const std::vector<crds::Condition>& before,
                base::WallTime now, std::vector<crds::Condition>& conditions) {
  const crds::Condition* stands = crds::FindCondition(conditions, type);
  if (stands == nullptr || !OnlyWaits(*stands)) return false;
  crds::Condition said = *stands;
  said.status = crds::ConditionStatus::kFalse;
  said.reason = std::string(kNotTold);
  said.message = fmt::format(
      "{} nodes are not told what it says, and keep what they had: {}. The operator tries again by itself; "
      "{}",
      what.nodes.size(), what.first.message, MendRefusal(what.first, kTooMuchToTell));
  // What it would say else may be that all is well since now.
  const crds::Condition* last = crds::FindCondition(before, type);
  said.last_transition = last != nullptr && last->status == said.status
                             ? last->last_transition
                             : std::chrono::floor<std::chrono::seconds>(now);
  crds::SetCondition(conditions, std::move(said));
  return true;
}

std::string NotUnderstoodMessage(const base::Error& why, std::string_view kept) {
  return fmt::format(
      "{}. {}. Correct that field, or bring the operator to the version of the CRDs that know it",
      why.message, kept);
}

void SayNotUnderstood(const base::Error& why, std::int64_t generation, base::WallTime now,
                      std::vector<crds::Condition>& conditions) {
  crds::Condition ready;
  ready.type = std::string(crds::kReady);
  ready.status = crds::ConditionStatus::kFalse;
  ready.reason = std::string(kNotUnderstood);
  ready.message = NotUnderstoodMessage(why, kNodesKeepIt);
  ready.observed_generation = generation;
  ready.last_transition = std::chrono::floor<std::chrono::seconds>(now);
  crds::SetCondition(conditions, std::move(ready));
}

base::Result<kube::Json> PolicyWrites::Spec(SpecChange change, const std::stop_token& stop) {
  // A merge patch, as the labels beside it are: an apply would fight with it. Without a resourceVersion, so that what
  // an agent writes of its status at the same time is no conflict.
  kube::Json patch = kube::Json::object();
  patch["spec"][field()] = std::move(change.value);
  if (!change.uid.empty()) patch["metadata"]["uid"] = change.uid;
  return client_.Patch(kNodeTopologies, {"", change.node}, kube::PatchType::kMerge, patch, {}, stop);
}

std::vector<base::Result<Outcome>> PolicyWrites::Specs(std::vector<SpecChange> changes,
                                                       const std::stop_token& stop) {
  std::vector<base::Result<Outcome>> done(changes.size(), Outcome{});
  std::atomic<std::size_t> next = 0;
  std::mutex noting;  // for the one thing that they share
  const auto work = [&] {
    for (std::size_t i = next++; i < changes.size() && !stop.stop_requested(); i = next++) {
      const std::string node = changes[i].node;
      const auto answer = Spec(std::move(changes[i]), stop);
      if (answer) {
        done[i] = Outcome{.writes = 1};
        const base::MonotonicTime now = clock_.Now();
        const std::lock_guard lock(noting);
        ahead_.Wrote(*answer, now);
      } else if (CacheIsBehind(answer.error())) {
        done[i] = Outcome{.writes = 1, .again = std::chrono::seconds(1)};
      } else {
        done[i] =
            base::Fail(answer.error().In(fmt::format("write spec.{} of NodeTopology {}", field(), node)));
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(changes.size(), std::size_t(kAtOnce)); ++i) others.emplace_back(work);
  work();
  others.clear();
  return done;
}

base::Result<Outcome> PolicyWrites::Status(const kube::Resource& kind, const std::string& name,
                                           const kube::Json& applied, bool urgent,
                                           const std::stop_token& stop) {
  const std::string key = kind.kind + "/" + name;
  const std::chrono::nanoseconds wait = status_pace_.UntilWrite(key, urgent, clock_.Now());
  if (wait > wait.zero()) return Outcome{.again = wait};
  const kube::ApplyOptions options{
      .field_manager = std::string(crds::keys::kOperatorManager), .force = true, .subresource = "status"};
  const auto done = client_.Apply(kind, applied, options, stop);
  status_pace_.Answered(key, !done && IsRefusal(done.error()));
  if (done) return Outcome{.writes = 1};
  if (CacheIsBehind(done.error())) return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  return base::Fail(done.error().In(fmt::format("write the status of {} {}", kind.kind, name)));
}

void PolicyPass::Spec(const std::string& node, const std::string& uid, const kube::Json& has,
                      kube::Json wanted) {
  if (has == wanted) return;
  spdlog::info("Telling NodeTopology node={} field={} entries={}", node, writes_.field(), wanted.size());
  changes_.push_back({node, uid, std::move(wanted)});
}

void PolicyPass::WriteSpecs() {
  std::vector<std::pair<std::string, std::string>> nodes;  // and their UIDs
  for (const PolicyWrites::SpecChange& change : changes_) nodes.emplace_back(change.node, change.uid);
  const auto done = writes_.Specs(std::exchange(changes_, {}), stop_);
  for (std::size_t i = 0; i < done.size(); ++i) {
    Take(done[i]);
    if (done[i] || !IsRefusal(done[i].error())) continue;
    refused_.emplace(nodes[i].first, done[i].error());
    refused_uids_.insert(nodes[i]);
  }
}

const std::map<std::string, base::Error>& PolicyPass::Refused() {
  WriteSpecs();
  return refused_;
}

void PolicyPass::TellRefused(const std::set<std::string>& said) {
  std::set<std::string> unsaid;
  for (const auto& [node, error] : Refused()) {
    if (!said.contains(node)) unsaid.insert(node);
  }
  std::size_t events = 0;
  for (const std::string& node : unsaid) {
    if (writes_.told().contains(node)) continue;
    if (++events > kMaxEvents) break;
    const base::Error& error = refused_.at(node);
    events_.Record(
        {kNodeTopologies.ApiVersion(), kNodeTopologies.kind, "", node, refused_uids_.at(node)},
        kube::Severity::kWarning, kSpecNotWritten,
        fmt::format(
            "spec.{} stays as it is, since the server does not take another from the operator ({} nodes "
            "in all), which tries again by itself; {}: {}",
            writes_.field(), unsaid.size(), MendRefusal(error, kTooMuchToTell), error.message));
  }
  writes_.told() = std::move(unsaid);
}

void PolicyPass::TellUnreadable(const Unreadable& unreadable, std::string_view kept) {
  const kube::Json& object = *unreadable.object;
  const kube::ObjectReference about = kube::ReferenceTo(object);
  const std::string version = kube::StringAt(object, {"metadata", "resourceVersion"});
  std::string& told = writes_.unreadable()[about.kind + "/" + about.name];
  if (!told.empty() && told == version) return;
  told = version;
  for (const PolicyEvent& one : told_) {
    if (one.reason == kNotUnderstood)
      events_.Record(about, one.severity, one.event, NotUnderstoodMessage(unreadable.why, kept));
  }
}

void PolicyPass::Status(const kube::Resource& kind, const crds::ObjectMeta& policy, const kube::Json& has,
                        const kube::Json& applied, const Conditions& conditions) {
  WriteSpecs();
  if (stop_.stop_requested() || has == applied.value("status", kube::Json())) return;
  const bool urgent = std::any_of(told_.begin(), told_.end(), [&](const PolicyEvent& one) {
    return one.urgent && Turned(one, conditions) != nullptr;
  });
  const auto done = writes_.Status(kind, policy.name, applied, urgent, stop_);
  if (done && done->writes > 0 && !done->again) Tell(kind, policy, conditions);
  if (!done && IsRefusal(done.error()))
    TellStatusNotWritten(events_, {kind.ApiVersion(), kind.kind, "", policy.name, policy.uid}, done.error());
  Take(done);
}

const std::string* PolicyPass::Turned(const PolicyEvent& event, const Conditions& conditions) {
  const crds::Condition* before = crds::FindCondition(conditions.before, event.condition);
  const crds::Condition* now = crds::FindCondition(conditions.now, event.condition);
  const bool turned =
      now != nullptr && now->reason == event.reason && (before == nullptr || before->reason != now->reason);
  return turned ? &now->message : nullptr;
}

void PolicyPass::Tell(const kube::Resource& kind, const crds::ObjectMeta& policy,
                      const Conditions& conditions) {
  for (const PolicyEvent& one : told_) {
    const std::string* const message = Turned(one, conditions);
    if (message == nullptr) continue;
    events_.Record({kind.ApiVersion(), kind.kind, "", policy.name, policy.uid}, one.severity, one.event,
                   *message);
  }
}

void PolicyPass::Take(const base::Result<Outcome>& one) {
  if (!one) {
    if (!failed_) failed_ = one.error();
    return;
  }
  total_.writes += one->writes;
  if (one->again) total_.again = total_.again ? std::min(*total_.again, *one->again) : *one->again;
}

base::Result<Outcome> PolicyPass::Sum() {
  WriteSpecs();
  if (failed_) return base::Fail(*failed_);
  if (const auto left = writes_.BehindFor()) Take(Outcome{.again = left});
  return total_;
}

}  // namespace heddle::operators
