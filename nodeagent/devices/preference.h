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
  // metadata.resourceVersion. Of a pod that no kubelet has written to yet it is that of its binding, and of two pods
  // the one with the smaller was bound first: versions of one type are numbers that grow (Kubernetes KEP-5504, stable
  // in 1.35; before that those of etcd, which do as well). Nothing = it is no number.
  std::optional<std::uint64_t> version;
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
  // Who may be meant as well and would get something else; of a refusal, all who may be meant.
  std::vector<std::string> rivals;
  std::string refusal;  // mode Nics: why nobody's plan is followed, as a sentence; empty = it is not refused
  friend bool operator==(const Choice&, const Choice&) = default;
};

// Which of the available devices a container of `size` of them should get. The kubelet does not say whose it is. Meant
// can be every pod whose container asks for so many, holds none of them yet (`readings`), and whose planned devices are
// free. Where all of those would get the same, it is that. Where they differ, it is the one that was bound first and
// was not made after the others: a kubelet hears of pods as they are bound, and admits those that it hears of together
// as they were made (HandlePodAdditions of pkg/kubelet/kubelet.go, 1.36). Where these orders contradict each other, or
// nobody knows them, mode Nics follows no plan (`refusal`); with pairs the first is taken for it, and the others are
// `rivals`. Without a plan: devices that no waiting pod is to have, on as few NUMA nodes as can be, of those with the
// least room. docs/decisions/0011-nobody-says-whose-devices.md says why no Allocate fails. Pure and total.
Choice Choose(const Offer& offer, const PreferenceQuestion& question, const std::vector<PlannedPod>& pods,
              const GrantReadings& readings);

// The condition DevicesAsPlanned: whether pods hold the GPUs and NICs of their plans. Only what the kubelet granted is
// compared; a pod that has no NIC as a device has those of its host. Nothing where no pod with a plan holds devices.
std::optional<crds::Condition> PlanCondition(const std::vector<crds::Grant>& grants,
                                             const std::vector<PlannedPod>& pods);

}  // namespace heddle::nodeagent
