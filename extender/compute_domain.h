#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crds/gang.h"
#include "extender/gang_members.h"
#include "kube/object.h"
#include "topology/node.h"

namespace heddle::extender {

// NVLink between nodes needs an IMEX channel on each. NVIDIA's DRA driver (kubernetes-sigs/dra-driver-nvidia-gpu; its
// api/nvidia.com/resource/v1beta1 is the source of names and fields here) brings one into each pod with a claim of a
// ComputeDomain's ResourceClaimTemplate. Admission adds the claim, the extender makes the ComputeDomain.
inline const kube::Resource kComputeDomains =
    kube::CustomResource("resource.nvidia.com", "v1beta1", "computedomains", "ComputeDomain", true);
inline const kube::Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true};

// What the ComputeDomain of a pod's gang and its ResourceClaimTemplate are called, from what is certain when the pod is
// admitted: "<owner>-<8 of its UID>-heddle", and of gangs whose pods carry no UID of their owner
// "<LeaderWorkerSet>-<group>-lws-heddle" and "<MPIJob>-mpi-heddle". A DNS label; nothing where no name can be made. The
// policy heddle-compute-domain has the same rule in CEL: tests/fixtures/compute_domain_names.json is held against both.
std::optional<std::string> ComputeDomainName(const kube::Json& pod);

// Whether an entry of a pod's spec.resourceClaims is the one that admission adds.
bool IsComputeDomainClaim(const kube::Json& pod, const kube::Json& claim);
// The name in that entry; empty where the pod has none.
std::string ClaimedComputeDomain(const kube::Json& pod);

// Why a pod that says heddle.dev/compute-domain: "true" came without its claim, with what to do about it. Nothing where
// it has one, or asks for none.
std::optional<InputRefusal> MissingClaim(const kube::Json& pod);

// The object for a gang. It belongs to the gang's owner and not to the Gang, which is made anew with each attempt:
// claims keep the UID of their ComputeDomain, and another one under the same name would be none of theirs.
kube::Json ComputeDomainOf(const crds::Gang& gang, const std::string& name);

// What keeps the object that has the name from being `wanted`, as a sentence with what to do; nothing: it is.
std::optional<std::string> ComputeDomainFault(const kube::Json& there, const kube::Json& wanted);

// Claims of the gang's pods that are older than its ComputeDomain, by name: they were made from the template of another
// one of that name, and their pods would never start. Ask only while there is no ComputeDomain.
std::vector<std::string> OutdatedClaims(const GangMembers& members, const std::vector<kube::Json>& claims);

// Whether a node has an IMEX channel to give: its NVLink domain has other nodes too.
bool HasImexChannel(const topology::Node& node);
// The driver offers one channel a node (channel 0; several pods of a node in one ComputeDomain are its issue 309). The
// planner counts it as a resource of this name, which no Node and no pod ever shows.
inline constexpr std::string_view kImexChannel = "heddle.dev/imex-channel";
// A node's own resources with its channel, sorted by name as they were.
std::vector<std::pair<std::string, std::int64_t>> WithImexChannel(
    std::vector<std::pair<std::string, std::int64_t>> extended, const topology::Node* node);

}  // namespace heddle::extender
