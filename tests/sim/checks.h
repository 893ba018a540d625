#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crds/gang.h"
#include "kube/http.h"
#include "tests/sim/simulation.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// A promise that was broken, in words, with the objects named.
struct Violation {
  std::string rule;  // "NoGpuTwice"
  std::string what;
  base::MonotonicTime at{};
};

// Looks at every change of the cluster as it happens, with nothing of the extender but its readers of objects:
//
//   NoGpuTwice         two pods on one node never have the same GPU by their plans, nor more than there are
//   NoOverlap          pods of two gangs are never past the gate with one GPU in both their plans, unless the later one
//                      was told it by a Gang that is gone
//   PlanBeforePod      what a pod was told was committed in its Gang before, under that epoch
//   SpecStays          of a pod past its gates only the node is set, of a Gang nothing in spec changes
//   NoJobFailedByUs    no Job fails of pods that an extender has deleted
//   DomainBeforePod    a pod that claims a channel is past the gate only once its ComputeDomain has been made
//   SparesStay         a gang of which no pod was ever let go is planned on no more nodes of an NVLink domain than leave
//                      the spares
//   NoGangTorn         preempt never lets a pod of a gang be stopped alone, by the process that has let it go itself
//   NoHotLoop          a process sends no more requests a minute than it has reasons for
//
// and, when it is asked to, at rest: AllOrNothing, FeasibleRuns, NothingLeaked, StatusSettles. Thread rule: as
// Simulation.
class Checks {
 public:
  explicit Checks(Simulation& simulation) : simulation_(simulation) {}

  void Changed(const kube::Resource& resource, const kube::Json& before, const kube::Json& after);
  void Requested(const Process& process, const test::ApiRequest& request, const kube::HttpResponse& response);
  // What a process answers to the question whom kube-scheduler may stop.
  void Preempted(const Process& process, const kube::Json& answer);
  // The NVLink domain of each node whose domain is over several, and how many nodes of each are spares.
  void KeepSpares(std::map<std::string, std::string> domains, int spares);
  void Violate(std::string rule, std::string what);
  const std::vector<Violation>& violations() const { return violations_; }

  // Writes of the extenders that took effect, Leases and Events left out.
  std::uint64_t writes() const { return writes_; }
  const std::string& last_write() const { return last_write_; }

 private:
  // What a pod claims.
  struct Claim {
    std::string name, gang, planned, bound;  // gang = its owner's UID
    std::string plan_of;                     // the UID of the Gang whose plan it was told
    std::uint32_t gpus = 0;                  // by the plan; all bits = the whole node
    std::uint32_t given = 0;  // as the agent published what the kubelet gave it; 0 = it has not
    int count = 0;            // that it asks for
    bool told = false, live = false;
  };
  void PodChanged(const kube::Json& before, const kube::Json& after);
  void GangChanged(const kube::Json& before, const kube::Json& after);
  void JobChanged(const kube::Json& after);
  void TakeGrants(const kube::Json& topology);
  void CheckPlan(const kube::Json& pod);
  void CheckDomain(const kube::Json& pod);
  void CheckAgainst(const std::string& uid, const Claim& mine, bool bound_now, bool told_now);
  void CheckCount(const std::string& node);
  void CheckSpares(const crds::Gang& gang);

  Simulation& simulation_;
  std::vector<Violation> violations_;
  std::map<std::string, Claim> claims_;  // by pod UID
  std::map<std::string, int> room_;      // GPUs by node
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::vector<crds::PlacedPod>>>
      plans_;                                         // gang UID, epoch
  std::set<std::string> domains_;                     // every ComputeDomain there ever was, by its key
  std::map<std::string, std::string> nvlink_;         // of each node: its NVLink domain
  int spares_ = 0;                                    // of each of them
  std::set<std::string> begun_;                       // gangs of which a pod was let go, by their owner's UID
  std::set<std::string> gone_;                        // UIDs of deleted Gangs
  std::map<std::string, std::string> owners_;         // of every pod there ever was, by name
  std::map<std::string, std::string> deleted_by_us_;  // pod → its owner's UID
  std::map<std::string, std::string> let_go_by_;      // pod's UID → the process
  std::map<std::string, int> born_;                   // pods that had that name
  std::uint64_t writes_ = 0;
  std::string last_write_;
};

}  // namespace heddle::sim
