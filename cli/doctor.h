#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

// `kubectl heddle doctor`: whether this installation of Heddle is whole, and what in the cluster works around it. What
// is wrong with the machines is `status`'s.

enum class Verdict : std::uint8_t { kOk, kWarning, kProblem, kUnknown };
std::string_view VerdictName(Verdict verdict);  // "ok", "warning", "problem", "unknown"

struct Finding {
  std::string check;  // "server", "policies": what was looked at
  Verdict verdict = Verdict::kOk;
  std::string what;    // a sentence
  std::string remedy;  // what to do, as a clause; empty where there is nothing
  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

using Objects = std::vector<crds::Json>;

// What a pod with GPUs or RDMA devices, or one that waits for Heddle, says that matters here.
struct DevicePod {
  std::string ns, name, scheduler;
  bool by_hand = false;                  // whoever made it named its node
  std::vector<std::string> rdma_faults;  // why it cannot use the RDMA devices that it has
  bool gpus = true;                      // else RDMA devices, or none at all
  bool gated = false;                    // by Heddle's gate
  bool unbound = false;                  // has no node yet
  friend bool operator==(const DevicePod&, const DevicePod&) = default;
};

// Of the chart's values those that decide what an account needs, as far as an installation shows them: by its policies
// and by the flags of its daemons. Nothing shows operator.switches; there conditions of FabricSwitches and Fabrics say
// which right is missing.
enum class Option : std::uint8_t {
  kAny,             // needed whatever they are
  kPlacing,         // mode: place
  kObserving,       // mode: observe
  kPreemption,      // extender.preemption.enabled
  kComputeDomains,  // computeDomains.enabled
  kFollowedPlans,   // agent.devices.followPlans
  kOtherPlugins,    // otherPlugins names an image
};

// What an account has to be allowed so that its program can do its work.
struct NeededRight {
  std::string component;  // "operator"
  std::string verb, group, resource, subresource;
  std::string name;              // of the object, where only that is needed
  bool namespaced = false;       // in Heddle's own namespace
  Option option = Option::kAny;  // without which it is not needed
  std::string Title() const;     // "patch pods"
};
struct Right {
  NeededRight needed;
  base::Result<bool> allowed;
};

// Everything that is looked at, or why it could not be read. What is written there is other people's: anything may be
// missing or of another type.
struct DoctorReading {
  std::string ns;                      // where Heddle's daemons are, or would be
  base::Result<std::string> version;   // of the API server: "v1.36.3"
  base::Result<crds::Json> admission;  // what admissionregistration.k8s.io/v1 serves
  base::Result<Objects> definitions, mutating, mutating_bindings, validating, validating_bindings;
  base::Result<Objects> accounts;  // ServiceAccounts with Heddle's label
  base::Result<Objects> namespaces, nodes, deployments, daemon_sets, leases, topologies;
  base::Result<Objects> own_pods;        // Heddle's
  base::Result<Objects> failed_creates;  // events of that reason in Heddle's namespace
  base::Result<std::vector<DevicePod>> pods;
  std::vector<Right> rights;
  base::WallTime now;  // by the clock of the API server
};

// In the order of an installation, from the server to the jobs. Pure and total.
Findings Diagnose(const DoctorReading& reading);
// Every write of the programs, and of each kind that they read one of the verbs by which they do.
const std::vector<NeededRight>& NeededRights();

crds::Json DoctorJson(const Findings& findings);
std::string DoctorText(const Findings& findings, const Style& style);

// Exit codes: 0 no problem, 3 at least one, 1 nobody could be asked. `clock` is the API server's.
Output RunDoctor(kube::Client& client, base::Clock& clock, const OutputOptions& look,
                 const std::stop_token& stop);

}  // namespace heddle::cli
