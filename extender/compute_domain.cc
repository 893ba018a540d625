#include "extender/compute_domain.h"

#include <algorithm>
#include <array>
#include <set>

#include "crds/keys.h"
#include "crds/parallelism.h"
#include "extender/gang_key.h"
#include "extender/owner_kinds.h"

namespace heddle::extender {
namespace {

namespace keys = crds::keys;

constexpr std::size_t kLongestName = 63;
// Of the owner's name; with "-1a2b3c4d-heddle" behind it that makes 63. The UID tells owners apart whose names are cut.
constexpr std::size_t kLongestTitle = 47, kUidCharacters = 8;
constexpr std::string_view kManager = keys::kExtenderManager;

// Whose pods carry their UID, or that of what made them.
bool IsToldByUid(const crds::GangOwner& owner) {
  constexpr std::array<std::string_view, 5> kKinds{"batch/v1/Job", "apps/v1/StatefulSet",
                                                   "jobset.x-k8s.io/v1alpha2/JobSet",
                                                   "kubeflow.org/v1/PyTorchJob", "ray.io/v1/RayCluster"};
  return std::find(kKinds.begin(), kKinds.end(), owner.api_version + "/" + owner.kind) != kKinds.end();
}

// Without the ending; empty = nothing is certain.
std::string StemOf(const kube::Json& pod) {
  const Membership membership = MembershipOf(pod);
  const crds::GangOwner& owner = membership.owner;
  const bool of_jobset = owner.kind == "JobSet";
  // Its controller numbers the pod a moment after the first look; until then it belongs nowhere.
  const auto set = kube::Label(pod, lws::kName);
  if (set && !of_jobset) {
    const auto group = NumberMark(pod, lws::kGroupIndex);
    return group ? *set + "-" + std::to_string(*group) + "-lws" : "";
  }
  if (owner.kind == mpi::kKind && !membership.group.empty()) return owner.name + "-mpi";
  if (!membership.group.empty() || !IsToldByUid(owner)) return "";
  return owner.name.substr(0, kLongestTitle) + "-" + owner.uid.substr(0, kUidCharacters);
}

bool IsDnsLabel(const std::string& name) {
  const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kLongestName && alphanumeric(name.front()) &&
         alphanumeric(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return c == '-' || alphanumeric(c); });
}

bool BelongsTo(const kube::Json& object, const std::string& owner_uid) {
  const kube::Json& owners = kube::ArrayAt(object, {"metadata", "ownerReferences"});
  return std::any_of(owners.begin(), owners.end(), [&owner_uid](const kube::Json& owner) {
    return kube::StringAt(owner, {"uid"}) == owner_uid;
  });
}

std::string OwnerUidOf(const kube::Json& object) {
  const kube::Json& owners = kube::ArrayAt(object, {"metadata", "ownerReferences"});
  return owners.empty() ? "" : kube::StringAt(owners.front(), {"uid"});
}

}  // namespace

std::optional<std::string> ComputeDomainName(const kube::Json& pod) {
  std::string name = StemOf(pod) + std::string(keys::kComputeDomainSuffix);
  std::replace(name.begin(), name.end(), '.', '-');
  if (!IsDnsLabel(name)) return std::nullopt;
  return name;
}

bool IsComputeDomainClaim(const kube::Json& pod, const kube::Json& claim) {
  if (kube::StringAt(claim, {"name"}) != keys::kComputeDomainClaim) return false;
  return ComputeDomainName(pod) == kube::StringAt(claim, {"resourceClaimTemplateName"});
}

std::string ClaimedComputeDomain(const kube::Json& pod) {
  for (const kube::Json& claim : kube::ArrayAt(pod, {"spec", "resourceClaims"})) {
    if (IsComputeDomainClaim(pod, claim)) return kube::StringAt(claim, {"resourceClaimTemplateName"});
  }
  return "";
}

std::optional<InputRefusal> MissingClaim(const kube::Json& pod) {
  const auto said = kube::Annotation(pod, keys::kComputeDomain);
  if (!said || !crds::ParseComputeDomain(*said).value_or(false)) return std::nullopt;
  if (!ClaimedComputeDomain(pod).empty()) return std::nullopt;
  if (!ComputeDomainName(pod)) {
    return InputRefusal{
        "NoComputeDomain",
        "pod " + kube::Name(pod) +
            " asks for a ComputeDomain, and its owner gives none a name: Jobs, JobSets, StatefulSets, "
            "PyTorchJobs and RayClusters do, and LeaderWorkerSets and MPIJobs with names of up to about 45 "
            "characters; take heddle.dev/compute-domain out, or use one of these"};
  }
  return InputRefusal{"NoComputeDomain",
                      "pod " + kube::Name(pod) +
                          " asks for a ComputeDomain and got no claim of one when it was admitted: install "
                          "Heddle's chart with computeDomains.enabled=true and without "
                          "mutatingPolicies=never, and make the pods anew"};
}

kube::Json ComputeDomainOf(const crds::Gang& gang, const std::string& name) {
  kube::Json object = kube::NewObject(kComputeDomains, {gang.ns, name});
  const crds::GangOwner& owner = gang.spec.owner;
  object["metadata"]["labels"] = {{std::string(keys::kLabelManagedBy), kManager}};
  object["metadata"]["ownerReferences"] = kube::Json::array(
      {{{"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}}});
  // numNodes is deprecated, and 0 is what the driver recommends: it takes nodes as their pods come. A gang over several
  // cliques needs no more than one: the driver makes an IMEX domain of each clique in it.
  object["spec"] = {{"numNodes", 0},
                    {"channel", {{"resourceClaimTemplate", {{"name", name}}}, {"allocationMode", "Single"}}}};
  return object;
}

std::optional<std::string> ComputeDomainFault(const kube::Json& there, const kube::Json& wanted) {
  const std::string which = "the ComputeDomain " + kube::KeyOf(wanted).ToString();
  if (kube::DeletionTimestamp(there)) {
    return which + " is being deleted; the gang goes on with another one as soon as it is gone";
  }
  if (kube::Label(there, keys::kLabelManagedBy) != std::string(kManager)) {
    return which + " is not Heddle's, and that of the gang belongs there; delete it, or rename the job";
  }
  if (!BelongsTo(there, OwnerUidOf(wanted))) {
    return which +
           " belongs to an earlier job of the same name; it goes with that job, and the gang waits for it";
  }
  if (kube::StringAt(there, {"spec", "channel", "resourceClaimTemplate", "name"}) != kube::Name(wanted)) {
    return which + " was not made as Heddle makes it (its resourceClaimTemplate has another name); delete it";
  }
  return std::nullopt;
}

std::vector<std::string> OutdatedClaims(const GangMembers& members, const std::vector<kube::Json>& claims) {
  constexpr std::string_view kEntry = "resource.kubernetes.io/pod-claim-name";
  std::set<std::string> pods;
  for (const auto& rank : members.ranks) {
    if (rank && rank->facts->gated) pods.insert(rank->facts->uid);
  }
  std::vector<std::string> names;
  for (const kube::Json& claim : claims) {
    if (kube::Annotation(claim, kEntry) != std::string(keys::kComputeDomainClaim)) continue;
    const auto pod = kube::ControllerOwner(claim);
    if (pod && pods.contains(pod->uid)) names.push_back(kube::Name(claim));
  }
  return names;
}

bool HasImexChannel(const topology::Node& node) {
  return node.nvlink_domain && node.nvlink_domain->spans_nodes;
}

std::vector<std::pair<std::string, std::int64_t>> WithImexChannel(
    std::vector<std::pair<std::string, std::int64_t>> extended, const topology::Node* node) {
  if (node == nullptr || !HasImexChannel(*node)) return extended;
  std::pair<std::string, std::int64_t> channel(kImexChannel, 1);
  extended.insert(std::upper_bound(extended.begin(), extended.end(), channel), std::move(channel));
  return extended;
}

}  // namespace heddle::extender
