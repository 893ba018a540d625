#pragma once

namespace heddle::extender {

inline constexpr const char* kAbout =
    R"text(Plans training gangs onto the fabric and answers kube-scheduler's extender calls.

Pods with the annotation heddle.dev/parallelism wait at the gate heddle.dev/gang until all of their gang exist.
The plan is written to the gang's Gang object (kubectl get gangs), then every pod is pinned to its node and let
go. Run it beside a kube-scheduler whose profile is named heddle: it leads while that scheduler holds the
Lease heddle-scheduler.)text";
inline constexpr const char* kExamples = R"text(
Examples:
  heddle-extender --scheduler-identity "$(hostname)"     beside a kube-scheduler on this host
  heddle-extender --own-lease                            without one (it takes that Lease itself)
  heddle-extender --kubeconfig ~/.kube/config --own-lease --listen 127.0.0.1:0

The scheduler's configuration:
  extenders:
  - {urlPrefix: "http://127.0.0.1:8010", filterVerb: filter, prioritizeVerb: prioritize, preemptVerb: preempt,
     weight: 150, nodeCacheCapable: true, managedResources: [{name: nvidia.com/gpu}]})text";

}  // namespace heddle::extender
