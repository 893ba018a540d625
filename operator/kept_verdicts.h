#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "crds/fabric_switch.h"
#include "crds/lossless_policy.h"
#include "crds/node_topology.h"
#include "operator/node_verdict.h"
#include "operator/switch_status.h"
#include "operator/switch_verdicts.h"
#include "switches/cable_join.h"
#include "switches/cables.h"
#include "switches/switch_links.h"

namespace heddle::operators {

// DecideVerdicts for who looks again and again: what it says is what DecideVerdicts would, and only cables one of whose
// ends changed since the last look are joined, compared and put into words again. A NodeTopology, a configuration or
// whom a switch sees has changed where it is another object; so whoever passes them keeps the object while it says the
// same, and never changes one. Another policy, another list of switches or of nodes, and all is looked at anew.
// Thread rule: one owner.
class KeptVerdicts {
 public:
  // As DecideVerdicts.
  SwitchVerdicts Look(const std::vector<crds::FabricSwitch>& fabric_switches, const SwitchAnswers& answers,
                      const std::vector<CabledNode>& nodes, const Policies<crds::LosslessPolicy>& policies,
                      const Silent& silent, base::WallTime now);

 private:
  struct KeptNode {
    std::string name;
    std::shared_ptr<const crds::NodeTopology> topology;
    bool silent = false;
    std::shared_ptr<const NodeVerdict> verdict;
  };
  struct KeptSwitch {
    crds::FabricSwitch object;
    std::optional<SwitchAnswer> answer;  // nothing: nobody has asked it yet
    // What the join points to; null where it has none of it.
    std::shared_ptr<const switches::SonicAnswer> config;
    std::shared_ptr<const switches::Neighbours> neighbours;
    JudgedSwitch judged;                    // object and answer of the look that is on
    std::optional<HostCables> host_cables;  // in mode Render, where a cable of a host ends there
    std::set<std::string> policies;         // that alone select hosts' ends of cables that end there
    crds::FabricSwitchStatus status;
    bool settled = false;  // at any later time the status would be the same
  };
  // What of one look is another than of the last.
  struct Changes {
    std::vector<std::size_t> nodes;  // to be judged again, ascending
    std::vector<char> switches;      // by position: likewise
    std::vector<std::size_t>
        links;  // switches whose cables to other switches may be judged otherwise, ascending
    bool whole = false;
    std::vector<std::shared_ptr<const switches::SonicAnswer>> before;  // in whose place there is another now
  };

  bool IsSameFrame(const std::vector<crds::FabricSwitch>& fabric_switches,
                   const std::vector<CabledNode>& nodes, const Policies<crds::LosslessPolicy>& policies,
                   const Silent& silent) const;
  Changes Begin(const std::vector<JudgedSwitch>& judged, std::vector<switches::KnownSwitch> known,
                const std::vector<CabledNode>& nodes, const Policies<crds::LosslessPolicy>& policies,
                const Silent& silent);
  // Nothing: only Begin will do.
  std::optional<Changes> Follow(const std::vector<JudgedSwitch>& judged,
                                std::vector<switches::KnownSwitch> known,
                                const std::vector<CabledNode>& nodes, const Silent& silent);
  // The cables between switches. Marks those at which any may be another.
  void FollowLinks(Changes& changes, std::vector<char>& restated);
  void MarkSwitchesOf(std::size_t node, std::vector<char>& marked) const;
  // What the look says of the switches themselves. Marks those whose status may be another by it.
  void TakeSwitches(std::vector<JudgedSwitch> judged, std::vector<char>& restated);
  void JudgeNodes(const std::vector<std::size_t>& changed, const PoliciesByName& policies,
                  const std::set<std::string>& unread);
  // The cables of these switches, in the order of the nodes, and behind them those to other switches.
  void Gather(const std::vector<char>& changed, const PoliciesByName& policies);
  void GatherCable(const KeptNode& node, std::size_t cable, const PoliciesByName& policies);
  void GatherBetween(const std::vector<char>& changed);
  SwitchVerdicts Say(base::WallTime now) const;
  void SayFabricPorts(SwitchVerdicts& verdicts) const;

  std::vector<KeptNode> nodes_;
  std::vector<KeptSwitch> switches_;
  std::vector<switches::KnownSwitch> known_;  // of switches_
  std::vector<std::pair<std::string, crds::LosslessPolicySpec>> policies_;
  std::set<std::string> unread_, unread_policies_;
  switches::CableJoin join_;
  switches::KeptSwitchLinks links_;
  bool began_ = false;
};

}  // namespace heddle::operators
