#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "nodeagent/leaf/probe.h"

namespace heddle::nodeagent {

// How long a directed-route answer counts while the port stays up and the switch is silent. InfiniBand sets no
// such time: this is LLDP's usual one, so that one lost packet takes no node from the rails.
inline constexpr std::chrono::seconds kIbProof{120};

// What was known of each cable, and since when nobody has confirmed it. A leaf that was known and is no longer
// becomes kStale, with the last value in a sentence. Where only the asking failed, the value stands until its
// proof expires: what lldpd or the switch said holds for a while, what they no longer say does not.
// Pure: the caller brings the time. Nothing is remembered across restarts.
class LeafMemory {
 public:
  void Apply(LeafReadings& readings, base::MonotonicTime now, base::WallTime wall);
  // Forgets what hung on interfaces and devices that this machine no longer has.
  void KeepNetdevs(const std::set<std::string, std::less<>>& netdevs);
  void KeepDevices(const std::set<std::string, std::less<>>& devices);

 private:
  struct Known {
    topology::LeafPort leaf;
    base::MonotonicTime confirmed;
    base::WallTime wall;  // of the same moment
    std::chrono::seconds proof{0};
  };
  static LeafFact Recall(const Known& known, bool unanswered, base::MonotonicTime now, std::string_view cable,
                         std::vector<std::string>& problems);

  std::map<std::string, Known, std::less<>> netdevs_;
  std::map<std::pair<std::string, int>, Known> ports_;
};

// Several sources behind one memory. `files` says which interfaces and devices exist.
// Thread rule: one thread.
class RememberedLeaves final : public LeafSource {
 public:
  RememberedLeaves(const base::FileTree& files, base::Clock& clock,
                   std::vector<std::unique_ptr<LeafSource>> sources)
      : files_(files), clock_(clock), sources_(std::move(sources)) {}
  LeafReadings Read(const RdmaReadings& rdma) override;

 private:
  const base::FileTree& files_;
  base::Clock& clock_;
  std::vector<std::unique_ptr<LeafSource>> sources_;
  LeafMemory memory_;
};

// Where a live machine is asked beside its kernel.
struct LeafPaths {
  std::string lldpd_socket;  // as AskLldpd takes it
  std::string labels_file;   // as GivenLabels takes it; empty: there is none
};

// The sources of a live machine: InfiniBand's and lldpd's, with a memory, and a file of labels.
// `stop` ends whatever they wait for.
std::vector<std::unique_ptr<LeafSource>> LiveLeaves(const base::FileTree& files, base::Clock& clock,
                                                    const std::stop_token& stop = {},
                                                    const LeafPaths& paths = {});

}  // namespace heddle::nodeagent
