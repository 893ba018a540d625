#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/store.h"
#include "nodeagent/devices/endpoint.h"
#include "nodeagent/devices/offer.h"
#include "nodeagent/grants/grants.h"

namespace heddle::nodeagent {

// A pod of this node, as far as its devices go.
struct PlannedPod {
  std::string ns, name;
  base::WallTime created{};
  std::vector<std::map<std::string, int>> containers;  // what each asks for: resource → count
  // Of its plan (annotations heddle.dev/gpus and heddle.dev/nics); nothing = the pod has none.
  std::optional<std::uint32_t> gpus;  // bit = GPU index
  std::vector<std::string> nics;      // sorted

  std::string Title() const { return ns + "/" + name; }
  friend bool operator==(const PlannedPod&, const PlannedPod&) = default;
};

// Nothing for a pod that has ended. Annotations that make no sense are no plan.
std::optional<PlannedPod> PlannedPodOf(const kube::Json& pod);

std::vector<PlannedPod> PlannedPodsOf(const std::vector<kube::ObjectPtr>& pods);

struct Choice {
  std::vector<std::string> ids;  // as many as were asked for, or none where there are not so many
  std::string pod;               // whose plan it is: "train/llama-0"; empty = nobody's
  // Others that may be meant as well and would get something else.
  std::vector<std::string> rivals;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// Which of the available devices a container of `size` of them should get. The kubelet does not say whose it is. Meant
// can be every pod whose container asks for so many, holds none of them yet (`readings`), and whose planned devices are
// free. Where all of those would get the same, it is that. Where they differ, the one that was made first is taken for
// it, because a kubelet admits the pods that it hears of together in that order (HandlePodAdditions of
// pkg/kubelet/kubelet.go, 1.36), and the others are `rivals`: what each really got is compared afterwards. Without a
// plan: devices that no waiting pod is to have, on as few NUMA nodes as can be, of those with the least room.
// docs/decisions/0011-nobody-says-whose-devices.md says why nothing is refused. Pure and total.
Choice Choose(const Offer& offer, const PreferenceQuestion& question, const std::vector<PlannedPod>& pods,
              const GrantReadings& readings);

// The condition DevicesAsPlanned: whether pods hold the GPUs and NICs of their plans. Only what the kubelet granted is
// compared; a pod that has no NIC as a device has those of its host. Nothing where no pod with a plan holds devices.
std::optional<crds::Condition> PlanCondition(const std::vector<crds::Grant>& grants,
                                             const std::vector<PlannedPod>& pods);

}  // namespace heddle::nodeagent
