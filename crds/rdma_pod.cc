#include "crds/rdma_pod.h"

#include <algorithm>
#include <string_view>

#include "crds/json_at.h"
#include "crds/keys.h"

namespace heddle::crds {
namespace {

// Multus, "Kubernetes Network Custom Resource Definition De-facto Standard" 1.3, and its key for the default network.
constexpr std::string_view kNetworks = "k8s.v1.cni.cncf.io/networks";
constexpr std::string_view kDefaultNetwork = "v1.multus-cni.io/default-network";
constexpr std::string_view kIpcLock = "IPC_LOCK";

bool Asks(const Json& container, std::span<const std::string> resources) {
  const Json& limits = At(At(container, "resources"), "limits");
  return std::any_of(resources.begin(), resources.end(), [&](const std::string& resource) {
    const Json& count = At(limits, resource);
    return !count.is_null() && count != "0" && count != 0;
  });
}

}  // namespace

bool ClaimsOtherDevices(const Json& spec) {
  const Json& claims = ListOf(At(spec, "resourceClaims"));
  return std::any_of(claims.begin(), claims.end(), [](const Json& claim) {
    return TextOf(At(claim, "name")) != keys::kComputeDomainClaim;
  });
}

namespace {

bool HasInterface(const Json& pod) {
  const Json& spec = At(pod, "spec");
  const Json& annotations = At(At(pod, "metadata"), "annotations");
  return IsTrue(At(spec, "hostNetwork")) || !TextOf(At(annotations, kNetworks)).empty() ||
         !TextOf(At(annotations, kDefaultNetwork)).empty() || ClaimsOtherDevices(spec);
}

bool MayLock(const Json& container) {
  const Json& security = At(container, "securityContext");
  const Json& added = At(At(security, "capabilities"), "add");
  const auto lock = [](const Json& name) {
    return name == kIpcLock || name == "CAP_IPC_LOCK" || name == "ALL";
  };
  return IsTrue(At(security, "privileged")) ||
         (added.is_array() && std::any_of(added.begin(), added.end(), lock));
}

}  // namespace

std::vector<RdmaPodFault> FindRdmaPodFaults(const Json& pod, std::span<const std::string> resources,
                                            bool roce) {
  std::vector<RdmaPodFault> faults;
  bool asks = false;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : ListOf(At(pod, {"spec", list}))) {
      if (!Asks(container, resources)) continue;
      asks = true;
      if (!MayLock(container)) {
        faults.push_back(
            {RdmaPodFault::Kind::kMayNotPin,
             "container " + TextOf(At(container, "name")) + " may not pin memory, which RDMA needs",
             "add IPC_LOCK to securityContext.capabilities.add, unless the container runtime runs "
             "without a limit of locked memory"});
      }
    }
  }
  if (asks && roce && !HasInterface(pod)) {
    faults.push_back(
        {RdmaPodFault::Kind::kNoInterface,
         "it has no network interface of the NICs, and without one RoCE has no address",
         "set hostNetwork: true, attach one by Multus (annotation k8s.v1.cni.cncf.io/networks), or "
         "claim one from a DRA driver such as dranet"});
  }
  return faults;
}

std::vector<std::string> RdmaPodFaults(const Json& pod, std::span<const std::string> resources, bool roce) {
  std::vector<std::string> faults;
  for (const RdmaPodFault& fault : FindRdmaPodFaults(pod, resources, roce))
    faults.push_back(fault.fact + ": " + fault.remedy);
  return faults;
}

}  // namespace heddle::crds
