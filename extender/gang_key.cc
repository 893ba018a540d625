#include "extender/gang_key.h"

#include <algorithm>
#include <charconv>

#include "crds/keys.h"
#include "extender/owner_kinds.h"

namespace heddle::extender {
namespace {

constexpr std::int64_t kMostGroups = 16384;  // of one owner, as many as a gang may have pods

std::optional<std::int64_t> ParseCount(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string GangKey::ToString() const {
  return ns + "/" + owner_uid + "/" + std::to_string(attempt);
}

std::optional<GangKey> GangKey::Parse(std::string_view text) {
  const std::size_t first = text.find('/'), last = text.rfind('/');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const auto attempt = ParseCount(text.substr(last + 1));
  if (!attempt) return std::nullopt;
  return GangKey{std::string(text.substr(0, first)), std::string(text.substr(first + 1, last - first - 1)),
                 *attempt};
}

std::optional<std::int64_t> NumberMark(const kube::Json& object, std::string_view key) {
  auto text = kube::Label(object, key);
  if (!text) text = kube::Annotation(object, key);
  return text ? ParseCount(*text) : std::nullopt;
}

namespace {

// Not by the name alone: the UID of an owner is one in all namespaces too, and that of a group is to be as good.
GangKey KeyOfGroup(const std::string& ns, const std::string& group) {
  return {ns, group + "@" + ns, 0};
}

Membership InGroup(const kube::Json& pod, const std::string& group, crds::GangOwner owner) {
  return {KeyOfGroup(kube::Namespace(pod), group), std::move(owner), group};
}

Membership AmongPods(const kube::Json& pod, const std::string& name) {
  return InGroup(pod, std::string(crds::kPodsGroup) + name, {"v1", "Pod", kube::Name(pod), kube::Uid(pod)});
}

// What the pod says of its gang itself, where no controller that numbers pods made it.
std::optional<Membership> OwnWords(const kube::Json& pod) {
  const auto name = kube::Label(pod, crds::keys::kGangName);
  if (name && !name->empty()) return AmongPods(pod, *name);
  if (std::string native = kube::StringAt(pod, {"spec", "schedulingGroup", "podGroupName"});
      !native.empty()) {
    return InGroup(pod, std::string(kPodGroup) + "/" + native,
                   {std::string(kPodGroupApiVersion), std::string(kPodGroup), native, ""});
  }
  const auto queued = kube::Label(pod, kueue::kGroupName);
  if (queued && !queued->empty()) return AmongPods(pod, *queued);
  return std::nullopt;
}

std::string MpiGroup(const std::string& name) {
  return std::string(mpi::kKind) + "/" + name;
}

// The launcher carries the MPIJob's name and not its UID, and the workers have to find it.
std::optional<Membership> OfMpiJob(const kube::Json& pod, const std::optional<kube::OwnerReference>& owner) {
  if (!owner) return std::nullopt;
  std::string name;
  if (owner->api_version == mpi::kApiVersion && owner->kind == mpi::kKind) {
    name = owner->name;
  } else if (owner->kind == "Job" && kube::Label(pod, mpi::kRole) == "launcher") {
    name = kube::Label(pod, mpi::kJobName).value_or("");
  }
  if (name.empty()) return std::nullopt;
  return InGroup(pod, MpiGroup(name), {std::string(mpi::kApiVersion), std::string(mpi::kKind), name, ""});
}

std::string LwsGroup(const std::string& name, std::int64_t index) {
  return std::string(lws::kKind) + "/" + name + "/" + std::to_string(index);
}

}  // namespace

Membership MembershipOf(const kube::Json& pod) {
  const std::string ns = kube::Namespace(pod);
  if (const auto uid = kube::Label(pod, jobset::kUid); uid && !uid->empty()) {
    return {{ns, *uid, NumberMark(pod, jobset::kAttempt).value_or(0)},
            {std::string(jobset::kApiVersion), "JobSet", kube::Label(pod, jobset::kName).value_or(""), *uid},
            ""};
  }
  const auto set = kube::Label(pod, lws::kName);
  const auto group = NumberMark(pod, lws::kGroupIndex);
  if (set && group) {
    return InGroup(pod, LwsGroup(*set, *group),
                   {std::string(lws::kApiVersion), std::string(lws::kKind), *set, ""});
  }
  const auto owner = kube::ControllerOwner(pod);
  if (auto of_mpi = OfMpiJob(pod, owner)) return *std::move(of_mpi);
  if (owner == std::nullopt || OwnerKindOf(owner->api_version, owner->kind) == nullptr) {
    if (auto said = OwnWords(pod)) return *std::move(said);
  }
  if (owner) return {{ns, owner->uid, 0}, {owner->api_version, owner->kind, owner->name, owner->uid}, ""};
  return {{ns, kube::Uid(pod), 0}, {"v1", "Pod", kube::Name(pod), kube::Uid(pod)}, ""};
}

std::optional<GangKey> GangOfOwner(const kube::Json& owner) {
  const std::string kind = kube::StringAt(owner, {"kind"});
  if (kind == "JobSet") {
    return GangKey{kube::Namespace(owner), kube::Uid(owner),
                   kube::IntAt(owner, {"status", "restarts"}).value_or(0)};
  }
  if (OwnerKindOf(kube::StringAt(owner, {"apiVersion"}), kind) == nullptr) return std::nullopt;
  const auto outer = kube::ControllerOwner(owner);
  if (outer && OwnerKindOf(outer->api_version, outer->kind) != nullptr) return std::nullopt;
  return GangKey{kube::Namespace(owner), kube::Uid(owner), 0};
}

std::vector<GangKey> GangsOfOwner(const kube::Json& owner) {
  const std::string kind = kube::StringAt(owner, {"kind"}), ns = kube::Namespace(owner);
  std::vector<GangKey> keys;
  if (kind == lws::kKind) {
    const std::int64_t groups = kube::IntAt(owner, {"spec", "replicas"}).value_or(1);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(groups, kMostGroups); ++i) {
      keys.push_back(KeyOfGroup(ns, LwsGroup(kube::Name(owner), i)));
    }
  } else if (kind == mpi::kKind) {
    keys.push_back(KeyOfGroup(ns, MpiGroup(kube::Name(owner))));
  } else if (kind == kPodGroup) {
    keys.push_back(KeyOfGroup(ns, std::string(kPodGroup) + "/" + kube::Name(owner)));
  } else if (auto one = GangOfOwner(owner)) {
    keys.push_back(*std::move(one));
  }
  return keys;
}

std::optional<GangKey> GangOfChildJob(const kube::Json& job) {
  if (kube::StringAt(job, {"kind"}) != kube::kJobs.kind) return std::nullopt;
  const auto outer = kube::ControllerOwner(job);
  if (!outer || outer->kind != "JobSet" || outer->api_version != jobset::kApiVersion) return std::nullopt;
  return GangKey{kube::Namespace(job), outer->uid, NumberMark(job, jobset::kAttempt).value_or(0)};
}

GangKey KeyOfGang(const crds::Gang& gang) {
  const crds::GangSpec& spec = gang.spec;
  if (!spec.group.empty()) return KeyOfGroup(gang.ns, spec.group);
  return {gang.ns, spec.owner.uid, spec.attempt};
}

GangKey KeyOfGangObject(const kube::Json& object) {
  const std::string group = kube::StringAt(object, {"spec", "group"}), ns = kube::Namespace(object);
  if (!group.empty()) return KeyOfGroup(ns, group);
  return {ns, kube::StringAt(object, {"spec", "owner", "uid"}),
          kube::IntAt(object, {"spec", "attempt"}).value_or(0)};
}

}  // namespace heddle::extender
