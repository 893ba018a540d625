#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crds/lossless_policy.h"
#include "crds/node_lossless.h"
#include "operator/policies.h"
#include "topology/node.h"

namespace heddle::operators {

// What one node says that decides its lossless settings.
struct LosslessNode {
  std::string name;
  std::map<std::string, std::string> labels;  // of the Node
  topology::Node node;                        // as its agent published it
  std::vector<crds::LosslessWish> wishes;     // that stand in its spec
  std::vector<crds::LosslessReport> reports;  // of its agent
  // Why nothing may be heard of what it is told: "its agent is silent", "the Node is not Ready"; empty = nothing says
  // so.
  std::string silence;
};

// What is to stand in the specs of nodes and in the statuses of policies.
struct LosslessRollout {
  std::map<std::string, std::vector<crds::LosslessWish>> wishes;  // by node; every node is in it
  std::map<std::string, crds::LosslessPolicyStatus> statuses;     // by policy
};

// Why a policy is not rolled out: its profile is not known, or the linter has an error against it. Nothing =
// it is sound. `findings`: all that the linter has to say, a sentence each.
struct LosslessSoundness {
  std::optional<lossless::ResolvedPolicy> resolved;  // nothing = refused
  std::string refusal;
  std::vector<std::string> findings;
};
LosslessSoundness CheckPolicy(const crds::LosslessPolicy& policy);

// Ports keep what policies that cannot be read told them, also where another policy selects them.
using LosslessPolicies = Policies<crds::LosslessPolicy>;

// From all policies and all nodes what each port should have. A port that several sound policies select gets
// none of them and names them all. A policy that contradicts itself is rolled out nowhere; ports keep what
// they were told by its earlier generation. With `canary: N` in mode Apply the first node of each kind of NIC
// (PCI id and driver) that the policy sets, and then as many as make N, get a new generation; the others keep
// the old one until every applicable port of those is compliant with the new; one that failed or drifted holds those up
// that have not got it yet. First are nodes that have been told it already, since one that fell silent after that may
// have done so because of it; then those of which something is heard; then the others; each by name. One that is
// silent is named in the condition.
// A port whose NIC cannot have what the policy wants (its model or driver, as its agent
// published it) is told the reason and no settings, and the policy is Refused there; the others get it, and it holds
// nobody up. A generation that tells a port nothing new keeps the old one's number there; other settings have a higher
// number than those that stand there, also where a policy made anew counts from 1 again. Pure: equal inputs give equal
// results. `now` is only the time of conditions whose status changes. `unread`: nodes that are told nothing new; a
// policy that selects one counts it, names it and is not Compliant.
LosslessRollout DecideRollout(const LosslessPolicies& policies, const std::vector<LosslessNode>& nodes,
                              base::WallTime now, const std::vector<UnreadNode>& unread = {});

// "mlx5_0:1", of the NICs whose role and rail the policy selects; sorted as the node has them.
std::vector<std::string> SelectedPorts(const crds::LosslessPolicySpec& spec, const topology::Node& node);

}  // namespace heddle::operators
