#include "cli/release.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "crds/gang_gate.h"
#include "crds/keys.h"
#include "crds/pod_templates.h"
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
constexpr std::size_t kDeepest = 5;  // TrainJob, JobSet, Job: real ones have three
const std::string kAdmission = "heddle-gang";
constexpr std::string_view kReleasing = "kubectl heddle release";
// What LeaderWorkerSet puts on its pods.
constexpr std::string_view kLwsName = "leaderworkerset.sigs.k8s.io/name";
constexpr std::string_view kLwsGroupIndex = "leaderworkerset.sigs.k8s.io/group-index";

// For Heddle, at its gate or for its scheduler: admission names that on every pod with a GPU, of a gang or not, and a
// gang's pod may not be bound yet when its gate is off.
bool Waits(const Json& pod) {
  if (!kube::StringAt(pod, {"spec", "nodeName"}).empty()) return false;
  return crds::HasGangGate(pod) || (kube::StringAt(pod, {"spec", "schedulerName"}) == keys::kSchedulerName &&
                                    kube::StringAt(pod, {"status", "phase"}) == "Pending");
}

// What has ended on its node computes nothing that a suspension would end.
bool Runs(const Json& pod) {
  const std::string phase = kube::StringAt(pod, {"status", "phase"});
  return !kube::StringAt(pod, {"spec", "nodeName"}).empty() && phase != "Succeeded" && phase != "Failed";
}

// By `kubectl heddle prepare`, or a person's own hand: admission changes pods and never what they are made of, so here
// each new pod would wait as the old one does.
bool NamesHeddle(const Json& owner) {
  const auto templates = crds::PodTemplatesOf(owner);
  return std::any_of(templates.begin(), templates.end(), [](const crds::PodTemplate& one) {
    return crds::HasGangGate(*one.pod) ||
           kube::StringAt(*one.pod, {"spec", "schedulerName"}) == keys::kSchedulerName;
  });
}

// What makes pods, has no switch, and shows the template of its pods: of a Deployment's and a LeaderWorkerSet's, too.
std::optional<kube::Resource> MakerOf(const kube::OwnerReference& owner) {
  if (owner.api_version != "apps/v1") return std::nullopt;
  for (const auto& [plural, kind] : {std::pair{"replicasets", "ReplicaSet"},
                                     {"statefulsets", "StatefulSet"},
                                     {"daemonsets", "DaemonSet"}}) {
    if (owner.kind == kind) return kube::Resource{"apps", "v1", plural, kind, true};
  }
  return std::nullopt;
}

// A list of those that do, as others take a deleted pod for a failed step: Argo's Workflow, Tekton's TaskRun, Spark.
bool MakesAgain(const kube::OwnerReference& controller) {
  return MakerOf(controller) || kube::SuspendSwitchOf(controller.api_version, controller.kind) != nullptr;
}

// LeaderWorkerSet makes a group anew where one of its pods is deleted (RecreateGroupOnPodRestart, its default), and the
// workers' StatefulSet is the leader pod's: kubernetes-sigs/lws, pkg/controllers/pod_controller.go,
// handleRestartPolicy and setControllerReferenceWithStatefulSet.
bool InOneGroup(const Json& pod, const Json& other) {
  const auto set = kube::Label(pod, kLwsName);
  const auto group = kube::Label(pod, kLwsGroupIndex);
  return set && group && kube::KeyOf(pod).ns == kube::KeyOf(other).ns &&
         kube::Label(other, kLwsName) == set && kube::Label(other, kLwsGroupIndex) == group;
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

// Something with a switch, as listed.
struct Listed {
  std::string outer;     // UID of its controller, or ""
  std::string prepared;  // its title where its template names Heddle, or ""
};

class Releasing {
 public:
  Releasing(kube::Client& client, base::Clock& clock, const ReleaseOptions& options,
            const std::stop_token& stop)
      : client_(client), clock_(clock), options_(options), stop_(stop) {}

  base::Result<std::vector<Held>> Read() {
    held_.clear();
    running_.clear();
    owners_.clear();
    listed_.clear();
    const std::string ns = options_.ns;
    kube::ListOptions of_pods;
    of_pods.ns = ns;
    ASSIGN_OR_RETURN(const auto pods, client_.ListAll(kube::kPods, of_pods, stop_), "read the pods");
    for (const Json& item : pods.items) {
      Json pod = Named(item, kube::kPods);
      if (Waits(pod)) {
        TRY(AddPod(std::move(pod)));
      } else if (Runs(pod)) {
        running_.push_back(std::move(pod));
      }
    }
    for (const kube::SuspendSwitch& one : kube::SuspendSwitches()) TRY(AddSuspended(one));
    LeaveWhoseInnerOwnersNameHeddle();
    std::vector<Held> held;
    for (auto& [key, one] : held_) held.push_back(std::move(one));
    for (Held& one : held) TRY(LeaveWhatRuns(one));
    return held;
  }

  base::Status HandBackOne(const Held& held) {
    if (held.how == HandBack::kReplacePod) {
      // One that was bound since it was read has another version, and runs.
      kube::DeleteOptions as_read;
      as_read.uid = kube::Uid(held.object);
      as_read.resource_version = kube::ResourceVersion(held.object);
      auto gone = client_.Delete(kube::kPods, kube::KeyOf(held.object), as_read, stop_);
      if (!gone && gone.error().code != Code::kNotFound) return base::Fail(std::move(gone).error());
      return {};
    }
    if (held.how == HandBack::kSuspendAndResume) {
      TRY(StillWaits(held));
      TRY(Switch(held.object, true));
      TRY(WaitUntilGone(held));
    }
    return Switch(held.object, false);
  }

 private:
  base::Status AddPod(Json pod) {
    ASSIGN_OR_RETURN(const std::vector<const Json*> owners, OwnersWithSwitch(pod));
    const bool switched = !owners.empty();
    // By a person or a queue, who will resume it; its pods go.
    if (switched && kube::IsSuspended(*owners.back()) &&
        !kube::Annotation(*owners.back(), keys::kPreemptedBy)) {
      return {};
    }
    ASSIGN_OR_RETURN(const std::string prepared, Prepared(pod, owners));
    const auto controller = kube::ControllerOwner(pod);
    const bool made_again = controller && MakesAgain(*controller);
    const std::string name = kube::KeyOf(pod).ToString();
    Held one{.how = switched     ? HandBack::kSuspendAndResume
                    : made_again ? HandBack::kReplacePod
                                 : HandBack::kLeave,
             .object = switched ? Json(*owners.back()) : std::move(pod)};
    if (one.how == HandBack::kLeave) {
      one.why =
          controller
              ? fmt::format(
                    "whether {} {} makes it again is not known: delete the pod, or run what made it anew",
                    controller->kind, controller->name)
              : "nobody makes it again: delete it and create it anew, without Heddle's gate and scheduler";
    }
    Held& held = held_.try_emplace(one.Title(), std::move(one)).first->second;
    held.pods.push_back(name);
    if (!prepared.empty()) LeaveWhatNamesHeddle(held, prepared);
    return {};
  }

  static void LeaveWhatNamesHeddle(Held& held, const std::string& maker) {
    held.how = HandBack::kLeave;
    held.why =
        "the pod template of " + maker +
        " names Heddle: delete what you created, and create it from the manifest that was not prepared";
  }

  // Null where it is gone, with its pods to follow. Who has it is asked once for all its pods.
  base::Result<const Json*> Owner(const kube::Resource& resource, const std::string& ns,
                                  const kube::OwnerReference& wanted) {
    const auto [known, is_new] = owners_.try_emplace(wanted.uid);
    Json& owner = known->second;
    if (is_new) {
      auto read = client_.Get(resource, {ns, wanted.name}, stop_);
      if (!read && read.error().code != Code::kNotFound) return base::Fail(std::move(read).error());
      if (read && kube::Uid(*read) == wanted.uid) owner = Named(*std::move(read), resource);
    }
    return owner.is_null() ? nullptr : &owner;
  }

  // The pod's controller, what controls that, and so on outwards, as far as they have a switch.
  base::Result<std::vector<const Json*>> OwnersWithSwitch(const Json& pod) {
    std::vector<const Json*> owners;
    for (const Json* object = &pod; owners.size() < kDeepest; object = owners.back()) {
      const auto outer = kube::ControllerOwner(*object);
      const kube::SuspendSwitch* one =
          outer ? kube::SuspendSwitchOf(outer->api_version, outer->kind) : nullptr;
      if (one == nullptr) break;
      ASSIGN_OR_RETURN(const Json* owner, Owner(one->resource, kube::KeyOf(pod).ns, *outer));
      if (owner == nullptr) break;
      owners.push_back(owner);
    }
    return owners;
  }

  // The title of what makes the pod from a template that names Heddle; "" = it has none, or none that can be read.
  base::Result<std::string> Prepared(const Json& pod, const std::vector<const Json*>& owners) {
    for (const Json* owner : owners) {
      if (NamesHeddle(*owner)) return TitleOf(*owner);
    }
    const auto controller = kube::ControllerOwner(pod);
    const auto maker = controller ? MakerOf(*controller) : std::nullopt;
    if (!maker) return std::string();
    ASSIGN_OR_RETURN(const Json* owner, Owner(*maker, kube::KeyOf(pod).ns, *controller));
    return owner != nullptr && NamesHeddle(*owner) ? TitleOf(*owner) : std::string();
  }

  base::Status AddSuspended(const kube::SuspendSwitch& one) {
    kube::ListOptions all;
    all.ns = options_.ns;
    auto owners = client_.ListAll(one.resource, all, stop_);
    if (!owners && owners.error().code == Code::kNotFound) return {};  // the kind is not served
    if (!owners) return base::Fail(std::move(owners).error());
    for (Json& item : owners->items) {
      Json owner = Named(std::move(item), one.resource);
      const auto outer = kube::ControllerOwner(owner);
      listed_[kube::Uid(owner)] = {.outer = outer ? outer->uid : "",
                                   .prepared = NamesHeddle(owner) ? TitleOf(owner) : ""};
      if (!kube::Annotation(owner, keys::kPreemptedBy) || !kube::IsSuspended(owner)) continue;
      Held held{.how = HandBack::kResume, .object = std::move(owner)};
      held_.insert_or_assign(held.Title(), std::move(held));
    }
    return {};
  }

  // A TrainJob shows no template: its JobSet does, and stands while both are suspended.
  void LeaveWhoseInnerOwnersNameHeddle() {
    std::map<std::string, std::string> prepared;  // titles, by the UIDs of these and of what controls them
    for (const auto& [uid, inner] : listed_) {
      if (inner.prepared.empty()) continue;
      prepared[uid] = inner.prepared;
      std::string outer = inner.outer;
      for (std::size_t depth = 0; depth < kDeepest && !outer.empty(); ++depth) {
        prepared.try_emplace(outer, inner.prepared);
        const auto next = listed_.find(outer);
        outer = next == listed_.end() ? "" : next->second.outer;
      }
    }
    for (auto& [title, held] : held_) {
      if (held.how != HandBack::kResume) continue;
      const auto found = prepared.find(kube::Uid(held.object));
      if (found != prepared.end()) LeaveWhatNamesHeddle(held, found->second);
    }
  }

  // To suspend what computes would end it. Its missing rank is for its owner to decide on.
  base::Status LeaveWhatRuns(Held& held) {
    if (held.how == HandBack::kReplacePod &&
        std::any_of(running_.begin(), running_.end(),
                    [&](const Json& pod) { return InOneGroup(held.object, pod); })) {
      held.how = HandBack::kLeave;
      held.why = "pods of its group run, and would go with it: delete it when their work is saved";
      return {};
    }
    if (held.how != HandBack::kSuspendAndResume) return {};
    std::size_t runs = 0;
    for (const Json& pod : running_) {
      if (kube::KeyOf(pod).ns != kube::KeyOf(held.object).ns) continue;
      ASSIGN_OR_RETURN(const bool its, IsOf(pod, held.object));
      if (its) ++runs;
    }
    if (runs == 0) return {};
    held.how = HandBack::kLeave;
    held.why = fmt::format(
        "{} of its pods run: when their work is saved, suspend and resume it yourself (spec.suspend)", runs);
    return {};
  }

  // With many to hand back, minutes may lie between the reading and this one's turn.
  base::Status StillWaits(const Held& held) {
    kube::ListOptions in_namespace;
    in_namespace.ns = kube::KeyOf(held.object).ns;
    ASSIGN_OR_RETURN(const auto pods, client_.ListAll(kube::kPods, in_namespace, stop_));
    for (const Json& pod : pods.items) {
      if (!Runs(pod)) continue;
      ASSIGN_OR_RETURN(const bool its, IsOf(pod, held.object));
      if (!its) continue;
      return base::Fail(Code::kConflict,
                        kube::KeyOf(pod).ToString() +
                            " of it runs since: when its work is saved, suspend and resume it yourself "
                            "(spec.suspend)");
    }
    return {};
  }

  // By UID all the way: Job train-2 is no part of JobSet train or of Job train, though its name begins like theirs.
  base::Result<bool> IsOf(const Json& pod, const Json& owner) {
    const auto controller = kube::ControllerOwner(pod);
    if (!controller) return false;
    if (controller->uid == kube::Uid(owner)) return true;
    // Nothing between a Job and its pods: what else runs here has not to be read.
    if (kube::StringAt(owner, {"kind"}) == kube::kJobs.kind) return false;
    ASSIGN_OR_RETURN(const std::vector<const Json*> owners, OwnersWithSwitch(pod));
    return std::any_of(owners.begin(), owners.end(),
                       [&](const Json* one) { return kube::Uid(*one) == kube::Uid(owner); });
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
        return Waits(pod) &&
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
  std::map<std::string, Held> held_;      // by title
  std::map<std::string, Json> owners_;    // by UID, null = gone
  std::map<std::string, Listed> listed_;  // what has a switch, by UID
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
      if (one.how == HandBack::kLeave) {
        if (round > 0) failed[one.Title()] = one.why;  // seen only in what was made anew
        continue;
      }
      if (const auto handed = releasing.HandBackOne(one); !handed) {
        failed[one.Title()] = handed.error().message;
      } else {
        done.insert(SourceOf(one));
        failed.erase(one.Title());  // in an earlier round
      }
    }
    if (done.empty() || !clock.SleepFor(kPolicyEnds, stop)) return failed;
    auto again = releasing.Read();
    if (!again) return failed;  // what was done is done
    std::erase_if(*again, [&](const Held& one) { return !done.contains(SourceOf(one)); });
    held = *std::move(again);
  }
  for (const Held& one : held)
    failed[one.Title()] = "what was made anew waits for Heddle again each time: is it still installed?";
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
  if (held.empty())
    return "No pod waits at Heddle's gate or for its scheduler, and nothing is suspended for a preemption.\n";
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
  return base::Fail(
      Code::kInvalid,
      "say --all: every pod that waits for Heddle is handed back, in all namespaces or that of -n; "
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
