// How KubeRay makes its pods (v1.5): one head, and groups of workers. A RayJob makes a RayCluster for each try,
// and that is the gang.
#include <algorithm>

#include "extender/owner_layout.h"

namespace heddle::extender {
namespace {

constexpr std::string_view kGroup = "ray.io/group";
constexpr std::string_view kHeadGroup = "headgroup";
// With the gate RayMultiHostIndexing: on from v1.6, and in v1.5 where somebody turned it on.
constexpr std::string_view kReplicaIndex = "ray.io/worker-group-replica-index";
constexpr std::string_view kReplicaName =
    "ray.io/worker-group-replica-name";  // only where a replica has several hosts
constexpr std::string_view kHostIndex = "ray.io/replica-host-index";    // as well
constexpr std::string_view kMadeBy = "ray.io/originated-from-cr-name";  // the RayJob's name
constexpr std::string_view kMadeByKind = "ray.io/originated-from-crd";  // "RayJob", "RayService"

// Far more than any gang has, so that products fit; what is beyond is refused all the same.
std::int64_t Count(const kube::Json& group, std::string_view field, std::int64_t unsaid) {
  return std::clamp<std::int64_t>(kube::IntAt(group, {field}).value_or(unsaid), 0, 1 << 20);
}

}  // namespace

OwnerLayout LayoutOfRayCluster(const kube::Json& owner) {
  OwnerLayout layout;
  layout.segment_mark = kGroup;
  // Its pods have names by chance. Of a group, rank is replica times hosts plus host, where its pods say both; the
  // hosts of a replica are one unit of KubeRay's, made and deleted together.
  layout.job_mark = kReplicaIndex;
  layout.index_mark = kHostIndex;
  layout.unit_mark = kReplicaName;
  layout.one_unnumbered = true;
  layout.own_ranks = true;  // Ray does not go by it
  layout.elastic = kube::BoolAt(owner, {"spec", "enableInTreeAutoscaling"}).value_or(false);
  // A RayService has two clusters while it is upgraded, and each needs a file of its own.
  const bool of_job = kube::Label(owner, kMadeByKind) == "RayJob";
  layout.rank_file_for = (of_job ? kube::Label(owner, kMadeBy) : std::nullopt).value_or(kube::Name(owner));
  const kube::Json& groups = kube::ArrayAt(owner, {"spec", "workerGroupSpecs"});
  const auto wants = [](const kube::Json& one) { return WantsGang(one, {"template"}); };
  const bool said = std::any_of(groups.begin(), groups.end(), wants);
  if (WantsGang(owner, {"spec", "headGroupSpec", "template"})) layout.Append(std::string(kHeadGroup), 1, 1);
  for (const kube::Json& group : groups) {
    // Where none says that it is a gang, which happens to clusters that are only observed, GPUs make one.
    const kube::Json* pod = kube::Find(group, {"template"});
    const bool in = said ? wants(group) : pod != nullptr && AsksForGpus(*pod);
    if (!in || kube::BoolAt(group, {"suspend"}).value_or(false)) continue;
    const std::int64_t least = Count(group, "minReplicas", 0);
    layout.Append(kube::StringAt(group, {"groupName"}), Count(group, "replicas", least),
                  Count(group, "numOfHosts", 1));
  }
  return layout;
}

}  // namespace heddle::extender
