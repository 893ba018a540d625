#pragma once

namespace heddle::nodeagent {

inline constexpr const char* kAbout =
    R"(Learns what one machine has of a training fabric and keeps it in Kubernetes.

It reads GPUs and NVLinks (NVML), the PCI tree and NUMA nodes (sysfs, hwloc), RDMA devices and interfaces (sysfs), and the
leaf switch of each NIC; measures which NIC serves which GPU on which rail; and publishes that as the status of the
NodeTopology of this node (kubectl get nt), on change only. It changes nothing on the machine.)";
inline constexpr const char* kExamples = R"(
Examples:
  heddle-nodeagent --print -o yaml                   what would be published of this machine
  heddle-nodeagent --machine DIR --print -o json     the same of a recorded machine
  heddle-nodeagent record DIR                        record this machine, to attach to a bug report
  heddle-nodeagent --node gpu-17                     in a DaemonSet, with its ServiceAccount
  heddle-nodeagent --machine DIR --kubeconfig FILE   publish a recorded machine, as demos and tests do)";

}  // namespace heddle::nodeagent
