#include "cli/release.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "crds/keys.h"
#include "kube/suspend_switch.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;
using crds::Json;

constexpr std::chrono::seconds kPatience{90};  // a Job controller under load takes its pods away in seconds
constexpr std::chrono::milliseconds kLookAgain{500};
// API servers learn of a policy's end a moment late, and gate what is made in between: then once more.
constexpr std::chrono::seconds kPolicyEnds{3};
constexpr int kRounds = 4;
const std::string kAdmission = "heddle-gang";
constexpr std::string_view kReleasing = "kubectl heddle release";

bool IsGated(const Json& pod) {
  for (const Json& gate : kube::ArrayAt(pod, {"spec", "schedulingGates"})) {
    if (kube::StringAt(gate, {"name"}) == keys::kGangGate) return true;
  }
  return false;
}

std::string TitleOf(const Json& object) {
  return kube::StringAt(object, {"kind"}) + " " + kube::KeyOf(object).ToString();
}

// Lists do not repeat apiVersion and kind in their items.
Json Named(Json object, const kube::Resource& resource) {
  object["apiVersion"] = resource.ApiVersion();
  object["kind"] = resource.kind;
  return object;
}

class Releasing {
 public:
  Releasing(kube::Client& client, base::Clock& clock, const ReleaseOptions& options,
            const std::stop_token& stop)
      : client_(client), clock_(clock), options_(options), stop_(stop) {}

  base::Result<std::vector<Held>> Read() {
    held_.clear();
    running_.clear();
    const std::string ns = options_.ns;
    kube::ListOptions of_pods;
    of_pods.ns = ns;
    ASSIGN_OR_RETURN(const auto pods, client_.ListAll(kube::kPods, of_pods, stop_), "read the pods");
    for (const Json& item : pods.items) {
      Json pod = Named(item, kube::kPods);
      if (IsGated(pod)) {
        TRY(AddPod(std::move(pod)));
      } else if (!kube::StringAt(pod, {"spec", "nodeName"}).empty()) {
        running_.push_back(std::move(pod));
      }
    }
    for (const kube::SuspendSwitch& one : kube::SuspendSwitches()) TRY(AddSuspended(one));
    std::vector<Held> held;
    for (auto& [key, one] : held_) held.push_back(std::move(one));
    for (Held& one : held) LeaveWhatRuns(one);
    return held;
  }

  base::Status HandBackOne(const Held& held) {
    if (held.how == HandBack::kReplacePod) {
      auto gone =
          client_.Delete(kube::kPods, kube::KeyOf(held.object), {.uid = kube::Uid(held.object)}, stop_);
      if (!gone && gone.error().code != Code::kNotFound) return base::Fail(std::move(gone).error());
      return {};
    }
    if (held.how == HandBack::kSuspendAndResume) {
      TRY(Switch(held.object, true));
      TRY(WaitUntilGone(held));
    }
    return Switch(held.object, false);
  }

 private:
  base::Status AddPod(Json pod) {
    ASSIGN_OR_RETURN(Json owner, OutermostWithSwitch(pod));
    const bool switched = !owner.is_null();
    const auto controller = kube::ControllerOwner(pod);
    const std::string name = kube::KeyOf(pod).ToString();
    Held one{.how = switched     ? HandBack::kSuspendAndResume
                    : controller ? HandBack::kReplacePod
                                 : HandBack::kLeave,
             .object = switched ? std::move(owner) : std::move(pod)};
    if (one.how == HandBack::kLeave) {
      one.why = "nobody makes it again: delete it and create it anew, without Heddle's gate and scheduler";
    }
    held_.try_emplace(one.Title(), std::move(one)).first->second.pods.push_back(name);
    return {};
  }

  // Null where neither the pod's controller nor what controls that has a switch. One that is gone takes its pods along.
  base::Result<Json> OutermostWithSwitch(const Json& pod) {
    constexpr int kDeepest = 5;  // TrainJob, JobSet, Job: real ones have three
    Json found, object = pod;
    for (int depth = 0; depth < kDeepest; ++depth) {
      const auto outer = kube::ControllerOwner(object);
      const kube::SuspendSwitch* one =
          outer ? kube::SuspendSwitchOf(outer->api_version, outer->kind) : nullptr;
      if (one == nullptr) break;
      auto owner = client_.Get(one->resource, {kube::KeyOf(pod).ns, outer->name}, stop_);
      if (!owner && owner.error().code == Code::kNotFound) break;
      if (!owner) return base::Fail(std::move(owner).error());
      if (kube::Uid(*owner) != outer->uid) break;
      found = object = Named(*std::move(owner), one->resource);
    }
    return found;
  }

  base::Status AddSuspended(const kube::SuspendSwitch& one) {
    kube::ListOptions all;
    all.ns = options_.ns;
    auto owners = client_.ListAll(one.resource, all, stop_);
    if (!owners && owners.error().code == Code::kNotFound) return {};  // the kind is not served
    if (!owners) return base::Fail(std::move(owners).error());
    for (Json& item : owners->items) {
      Json owner = Named(std::move(item), one.resource);
      if (!kube::Annotation(owner, keys::kPreemptedBy) || !kube::IsSuspended(owner)) continue;
      Held held{.how = HandBack::kResume, .object = std::move(owner)};
      held_.insert_or_assign(held.Title(), std::move(held));
    }
    return {};
  }

  // To suspend what computes would end it. Its missing rank is for its owner to decide on.
  void LeaveWhatRuns(Held& held) const {
    if (held.how != HandBack::kSuspendAndResume) return;
    const std::string name = kube::Name(held.object);
    const auto runs = std::count_if(running_.begin(), running_.end(), [&](const Json& pod) {
      return kube::KeyOf(pod).ns == kube::KeyOf(held.object).ns && IsOf(pod, held.object);
    });
    if (runs == 0) return;
    held.how = HandBack::kLeave;
    held.why = fmt::format(
        "{} of its pods run: when their work is saved, suspend and resume it yourself (spec.suspend)", runs);
  }

  bool IsOf(const Json& pod, const Json& owner) const {
    const auto controller = kube::ControllerOwner(pod);
    if (!controller) return false;
    if (controller->uid == kube::Uid(owner)) return true;
    // Inner owners carry the outer one's name first: JobSet llama makes Job llama-workers-0.
    return controller->name.starts_with(kube::Name(owner) + "-") &&
           kube::SuspendSwitchOf(controller->api_version, controller->kind) != nullptr;
  }

  base::Status Switch(const Json& owner, bool suspended) {
    Json patch = kube::SwitchPatch(owner, suspended);
    if (suspended) {
      // Who is ended between the two steps, by a deadline or a drain, left it suspended: the next one resumes it.
      patch["metadata"]["annotations"] = {{keys::kPreemptedBy, kReleasing}};
    } else {
      patch["metadata"]["annotations"] = {{keys::kPreemptedBy, nullptr}, {keys::kPreemptedGang, nullptr}};
    }
    const kube::SuspendSwitch* one =
        kube::SuspendSwitchOf(kube::StringAt(owner, {"apiVersion"}), kube::StringAt(owner, {"kind"}));
    TRY(client_.Patch(one->resource, kube::KeyOf(owner), kube::PatchType::kMerge, patch, {}, stop_),
        suspended ? "suspend " + TitleOf(owner) : "resume " + TitleOf(owner));
    return {};
  }

  base::Status WaitUntilGone(const Held& held) {
    const base::MonotonicTime limit = clock_.Now() + kPatience;
    const std::string ns = kube::KeyOf(held.object).ns;
    for (;;) {
      kube::ListOptions in_namespace;
      in_namespace.ns = ns;
      ASSIGN_OR_RETURN(const auto pods, client_.ListAll(kube::kPods, in_namespace, stop_));
      const bool left = std::any_of(pods.items.begin(), pods.items.end(), [&](const Json& pod) {
        return IsGated(pod) &&
               std::find(held.pods.begin(), held.pods.end(), kube::KeyOf(pod).ToString()) != held.pods.end();
      });
      if (!left) return {};
      if (clock_.Now() >= limit || !clock_.SleepFor(kLookAgain, stop_)) {
        return base::Fail(Code::kTimeout,
                          TitleOf(held.object) +
                              " is suspended, but its pods are still there; when they are gone, "
                              "resume it: spec.suspend: false");
      }
    }
  }

  kube::Client& client_;
  base::Clock& clock_;
  const ReleaseOptions& options_;
  const std::stop_token& stop_;
  std::map<std::string, Held> held_;  // by title
  std::vector<Json> running_;
};

std::string Words(const Held& held, bool done) {
  switch (held.how) {
    case HandBack::kSuspendAndResume:
      return done ? "suspended and resumed" : "suspend and resume";
    case HandBack::kReplacePod:
      return done ? "deleted; its controller makes another" : "delete; its controller makes another";
    case HandBack::kResume:
      return done ? "resumed" : "resume";
    case HandBack::kLeave:
      break;
  }
  return "left: " + held.why;
}

// Of what is held by the same name later, or by another pod of the same controller.
std::string SourceOf(const Held& held) {
  const auto controller =
      held.how == HandBack::kReplacePod ? kube::ControllerOwner(held.object) : std::nullopt;
  return controller ? controller->uid : held.Title();
}

// What failed, by title.
std::map<std::string, std::string> HandBackAll(Releasing& releasing, base::Clock& clock,
                                               std::vector<Held> held, const std::stop_token& stop) {
  std::map<std::string, std::string> failed;
  for (int round = 0; round < kRounds; ++round) {
    std::set<std::string> done;
    for (const Held& one : held) {
      if (one.how == HandBack::kLeave) continue;
      if (const auto handed = releasing.HandBackOne(one); !handed) {
        failed[one.Title()] = handed.error().message;
      } else {
        done.insert(SourceOf(one));
      }
    }
    if (done.empty() || !clock.SleepFor(kPolicyEnds, stop)) return failed;
    auto again = releasing.Read();
    if (!again) return failed;  // what was done is done
    std::erase_if(*again, [&](const Held& one) { return !done.contains(SourceOf(one)); });
    held = *std::move(again);
  }
  for (const Held& one : held)
    failed[one.Title()] = "it was gated again each time: is Heddle still installed?";
  return failed;
}

// Whether what is handed back would be gated again.
base::Result<bool> AdmissionInForce(kube::Client& client, const std::stop_token& stop) {
  const kube::Resource bindings{"admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings",
                                "MutatingAdmissionPolicyBinding", false};
  const auto there = client.Get(bindings, {"", kAdmission}, stop);
  if (there) return true;
  if (there.error().code == Code::kNotFound) return false;
  return base::Fail(there.error());
}

Json AsJson(const std::vector<Held>& held, const std::map<std::string, std::string>& failed, bool done) {
  Json items = Json::array();
  for (const Held& one : held) {
    Json item{{"kind", kube::StringAt(one.object, {"kind"})},
              {"namespace", kube::KeyOf(one.object).ns},
              {"name", kube::Name(one.object)},
              {"pods", one.pods.size()},
              {"how", Words(one, done)},
              {"done", done && one.how != HandBack::kLeave && !failed.contains(one.Title())}};
    if (const auto why = failed.find(one.Title()); why != failed.end()) item["error"] = why->second;
    items.push_back(std::move(item));
  }
  return {{"items", std::move(items)}};
}

std::string AsText(const std::vector<Held>& held, const std::map<std::string, std::string>& failed, bool done,
                   const Style& style) {
  if (held.empty()) return "No pod waits at Heddle's gate, and nothing is suspended for a preemption.\n";
  Table table({"HELD", "PODS", done ? "DONE" : "TO DO"});
  for (const Held& one : held) {
    const auto why = failed.find(one.Title());
    const bool bad = why != failed.end() || one.how == HandBack::kLeave;
    table.Add({one.Title(), std::to_string(one.pods.size()),
               Cell(why != failed.end() ? "failed: " + why->second : Words(one, done),
                    bad ? Colour::kBad : Colour::kNone)});
  }
  return table.Format(style);
}

}  // namespace

std::string Held::Title() const {
  return TitleOf(object);
}

base::Status CheckWords(const ReleaseOptions& options) {
  if (options.all) return {};
  return base::Fail(Code::kInvalid,
                    "say --all: every pod at Heddle's gate is handed back, in all namespaces or that of -n; "
                    "--dry-run shows them first");
}

Output RunRelease(kube::Client& client, base::Clock& clock, const ReleaseOptions& options,
                  const OutputOptions& look, const std::stop_token& stop) {
  const base::Status words = CheckWords(options);
  if (!words) return Failure(words.error());
  Releasing releasing(client, clock, options, stop);
  const auto held = releasing.Read();
  if (!held) return Failure(held.error());
  const auto in_force = AdmissionInForce(client, stop);
  if (!in_force) return Failure(in_force.error());
  const bool act = !options.dry_run && !*in_force;
  std::map<std::string, std::string> failed;
  if (act) failed = HandBackAll(releasing, clock, *held, stop);
  Output output;
  output.out = look.format == Format::kText ? AsText(*held, failed, act, look.style)
                                            : Printed(AsJson(*held, failed, act), look.format);
  const bool left =
      std::any_of(held->begin(), held->end(), [](const Held& one) { return one.how == HandBack::kLeave; });
  if (!failed.empty()) {
    output.exit_code = Output::kFailed;
  } else if (left || (*in_force && !options.dry_run && !held->empty())) {
    output.exit_code = Output::kRefused;
  }
  if (*in_force && !held->empty()) {
    output.err =
        "Heddle is in force here, and what is handed back would be gated again. Uninstall it first: helm "
        "uninstall heddle -n heddle-system\n";
  }
  return output;
}

}  // namespace heddle::cli
