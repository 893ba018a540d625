#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crds/lossless_policy.h"
#include "crds/node_topology.h"
#include "lossless/lint.h"
#include "lossless/render.h"

namespace heddle::cli {

// A policy of a file, and all that follows from it.
struct LintPolicy {
  std::string name;
  crds::LosslessPolicySpec spec;
  lossless::ResolvedPolicy resolved;
  std::int64_t generation = 0;  // as the cluster has it; 0 = no cluster has this version, as far as files say
};

// A port of a NodeTopology, as a policy is held against it.
struct LintPort {
  std::string node;
  std::string name;  // "gpu-017 mlx5_0:1"
  topology::NicRole role = topology::NicRole::kCompute;
  topology::Fact<int> rail;
  lossless::PortFacts facts;
  std::vector<std::string> policies;  // that its node was told, or has reported
};
std::vector<LintPort> PortsOf(const crds::NodeTopology& node);

// A port that the operator told nothing, because its NIC cannot have what the policy wants.
struct LintRefusal {
  std::string policy;
  std::string port;  // "gpu-017 mlx5_0:1"
  std::string reason;
};
// Of policies that are not among these, of which LintNics knows more: one finding for each policy and reason.
std::vector<lossless::Finding> LintRefusals(const std::vector<LintPolicy>& policies,
                                            const std::vector<LintRefusal>& refusals);

// By role and rail; with a nodeSelector, ports whose node names the policy only.
bool Selects(const LintPolicy& policy, const LintPort& port);

// Whether every Node that one of two nodeSelectors selects is one that the other does. Of others it depends on the
// labels of nodes whether there is a Node that both select.
bool Nested(const std::map<std::string, std::string>& one, const std::map<std::string, std::string>& other);

// Whether every Node that `narrow` selects is one that `wide` does.
bool IsWithin(const std::map<std::string, std::string>& narrow,
              const std::map<std::string, std::string>& wide);

// Of two versions of one policy, as a cluster has it and as it is to be, leaves the last, among the subjects, too. It
// has the generation of the first where it says the same, and else none.
// Ports whose node was told of the first keep that only where the last selects every node that the first did.
void KeepLastVersions(std::vector<LintPolicy>& policies, std::vector<lossless::Subject>& subjects,
                      std::vector<LintPort>& ports);

// Policies that a port's NIC or driver cannot have, by the operator's own rules (lossless/render.h). A policy with a
// nodeSelector is held against nodes that name it only: a NodeTopology does not say its Node's labels. One finding for
// each policy and kind of NIC. And what policies say for InfiniBand, where no port takes it or where two of a node
// contradict each other: one finding for each policy, and for each two. And policies that select one port: of
// these, or of whatever node has the labels of both; one finding for each two.
std::vector<lossless::Finding> LintNics(const std::vector<LintPolicy>& policies,
                                        const std::vector<LintPort>& ports);

// Policies that are to be set on NICs without a watchdog, by their profile. Nothing is said where a switch is among the
// subjects that says which of its priorities are watched: whether all are is a rule of its own.
std::vector<lossless::Finding> LintWatchdogs(const std::vector<LintPolicy>& policies,
                                             const std::vector<lossless::Subject>& subjects);

}  // namespace heddle::cli
