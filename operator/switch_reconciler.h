#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/client.h"
#include "kube/events.h"
#include "operator/kept_verdicts.h"
#include "operator/outcome.h"
#include "operator/policy_reads.h"
#include "operator/policy_writes.h"
#include "operator/switch_map.h"
#include "operator/switch_verdicts.h"
#include "operator/view.h"

namespace heddle::operators {

using SwitchVerdictsPtr = std::shared_ptr<const SwitchVerdicts>;

// The last verdicts, for whoever reads them. Null before the first.
// Thread rule: every member may be called from any thread.
class CurrentVerdicts {
 public:
  SwitchVerdictsPtr Get() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void Set(SwitchVerdictsPtr verdicts) {
    const std::lock_guard lock(mutex_);
    current_ = std::move(verdicts);
  }

 private:
  mutable std::mutex mutex_;
  SwitchVerdictsPtr current_;
};

// Writes what both ends of the cables say into NodeTopology.spec.cables and into the statuses of FabricSwitches, each
// on change only, a status at most once in 10 s; and of a switch in mode Render what it should have into a ConfigMap
// beside us (RenderMapName), again every ten minutes, in case that somebody changed it. What stands there of a switch
// that is no longer believed, or rendered, is taken away. Nothing is ever written to a switch. Where there is a switch,
// `again` says when what it said is stale, or the next ten minutes are over.
// Thread rule: Reconcile on one thread at a time.
class SwitchReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
    const View& policies;
    const View& fabric_switches;
    std::function<SwitchAnswers()> answers;
    std::function<std::set<std::string>()> late;  // nodes whose agents have fallen silent; absent = none has
  };
  // How long what was written of a switch stays while nobody has heard it: a new operator knows nothing at first.
  static constexpr std::chrono::seconds kPatience{60};
  static constexpr std::chrono::minutes kLookEvery{10};
  SwitchReconciler(kube::Client& client, base::Clock& clock, Reads reads, CurrentVerdicts& verdicts,
                   kube::EventRecorder& events, std::string ns)
      : client_(client),
        clock_(clock),
        writes_(client, clock, "cables"),
        reads_(std::move(reads)),
        verdicts_(verdicts),
        events_(events),
        ns_(std::move(ns)) {}

  // All switches and nodes at once: one write that fails does not hold up the others, and the first error is returned.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::stop_token& stop);

 private:
  std::vector<CabledNode> ReadNodes(bool any_switch);
  // FabricSwitches that have not been heard yet, for kPatience from when they were first looked at. Not one that was
  // heard at another address: what was written of it may be of another switch.
  std::set<std::string> Unheard(const std::vector<crds::FabricSwitch>& fabric_switches,
                                const SwitchAnswers& answers);
  // In the status of a FabricSwitch that cannot be read.
  void TellNotUnderstood(const Unreadable& unreadable, PolicyPass& pass, const std::stop_token& stop);
  std::chrono::nanoseconds UntilNextLook(const SwitchVerdicts& verdicts) const;
  void WriteMaps(const std::vector<crds::FabricSwitch>& fabric_switches, const SwitchAnswers& answers,
                 const Policies<crds::LosslessPolicy>& policies, SwitchVerdicts& verdicts, PolicyPass& pass,
                 const std::stop_token& stop);
  // To hold a configuration against SONiC's models takes milliseconds, and most looks are for another reason: the map
  // is made anew once something that it is made of is another.
  const SwitchMap& MadeMap(const crds::FabricSwitch& object,
                           const std::shared_ptr<const switches::SonicAnswer>& answer, HostCables cables,
                           const Policies<crds::LosslessPolicy>& policies);
  // Where it is to be written: where it has something of a policy, or takes such a thing away, and nobody did just now.
  base::Result<Outcome> PutMap(const crds::FabricSwitch& object, const SwitchMap& map, PolicyPass& pass,
                               const std::stop_token& stop);
  // Takes away what stands of a switch of which nothing is rendered any more, and what `status` says of it.
  void EndMap(const crds::FabricSwitch& object, const SwitchMap& map, crds::FabricSwitchStatus& status,
              PolicyPass& pass, const std::stop_token& stop);
  base::Result<Outcome> WriteMap(const crds::FabricSwitch& fabric_switch,
                                 const std::map<std::string, std::string>& data, const std::stop_token& stop);

  kube::Client& client_;
  base::Clock& clock_;
  PolicyWrites writes_;
  const Reads reads_;
  CurrentVerdicts& verdicts_;
  kube::EventRecorder& events_;
  const std::string ns_;
  PolicyNodes<CabledNode> nodes_;
  KeptPolicies<crds::FabricSwitch> kept_switches_;
  KeptVerdicts kept_;
  struct WrittenMap {
    std::map<std::string, std::string> data;
    base::MonotonicTime at;
  };
  std::map<std::string, WrittenMap> maps_;  // by the UID of the FabricSwitch
  struct Made {
    std::shared_ptr<const switches::SonicAnswer> answer;  // the same settings keep their object
    HostCables cables;
    std::vector<crds::LosslessPolicySpec> policies;  // of those that `cables` names, in their order
    SwitchMap map;
  };
  std::map<std::string, Made> made_;                    // likewise
  std::map<std::string, base::MonotonicTime> unheard_;  // since when, by UID
  std::map<std::string, std::string> heard_at_;         // the address at which it was heard last, likewise
};

// "heddle-switch-<name>", shortened with a hash where that is no name of an object.
std::string RenderMapName(const std::string& fabric_switch);

}  // namespace heddle::operators
