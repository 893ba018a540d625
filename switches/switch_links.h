#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lossless/cable_compare.h"
#include "switches/cables.h"

namespace heddle::switches {

// A cable between two switches that are both asked, by whom either sees at its other end, with both ends compared. What
// is lossless from a NIC to its leaf is lost above it where leaf and spine have decided otherwise.
struct SwitchLink {
  std::string lower, upper;            // system names; of two of one tier the lower by name
  std::string lower_port, upper_port;  // as each of them names its own
  int lower_at = -1, upper_at = -1;    // which of the switches
  lossless::CableOutcome outcome;      // `host` of its findings is the lower end, `leaf` the upper
  bool both_say_so = false;            // each end sees the other, lately, and nobody says otherwise
  friend bool operator==(const SwitchLink&, const SwitchLink&) = default;
};

// The name that a switch goes by: its system name, else its chassis id.
const std::string& NameOf(const KnownSwitch& known);

// By their ends, in the order of the switches and of their ports' names. One of the ends has to say so; where the other
// end, or a third, says otherwise, or only one that says it no longer (neighbours_stale), nothing is proved. Both are
// set alike where PFC, the priority and the group of every DSCP that is lossless at either, MTU and speed are the same,
// both have a watchdog and the maps by which pause reaches a queue, with entries for what is lossless, both say what
// buffers hold it (FindUnsaidBuffers), neither is lossy by itself, and no two codings are named. Of an end of
// OpenConfig speed, coding and MTU are all that is known (openconfig_ports.h); its MTU differs where no reading of it
// makes both ends one. That they see each other says that the link is up. Pure and total.
std::vector<SwitchLink> FindSwitchLinks(std::span<const KnownSwitch> switches);

// The same, kept for who looks again and again: where a switch only sets ports otherwise, which all keep their names,
// the links to it are compared again, and none is looked for. What stands after Again is what FindSwitchLinks finds.
// Thread rule: one owner.
class KeptSwitchLinks {
 public:
  KeptSwitchLinks();
  ~KeptSwitchLinks();
  KeptSwitchLinks(KeptSwitchLinks&&) noexcept;
  KeptSwitchLinks& operator=(KeptSwitchLinks&&) noexcept;

  // Forgets all, and looks for all. Configurations have to live until a later call has another in their place.
  void Begin(std::span<const KnownSwitch> switches);
  // `changed`: positions of switches of which anything but name, chassis id and tier may be another; who sees the same
  // as before has the same Neighbours object. Which of links() may be another, ascending; nothing: who is connected
  // with whom may be, or too much is kept, and only Begin helps. Requires: Begin.
  std::optional<std::vector<std::size_t>> Again(std::span<const KnownSwitch> switches,
                                                const std::vector<std::size_t>& changed);
  const std::vector<SwitchLink>& links() const;  // requires: Begin

 private:
  class Linking;
  friend std::vector<SwitchLink> FindSwitchLinks(std::span<const KnownSwitch> switches);
  static std::vector<SwitchLink> Find(std::span<const KnownSwitch> switches);

  std::unique_ptr<Linking> kept_;
};

}  // namespace heddle::switches
