#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "crds/gang.h"
#include "tests/sim/checks.h"
#include "tests/sim/simulation.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// The check QueueRule: a plan that is committed never uses nodes that are kept for a gang of higher priority. What is
// kept is what the leader publishes, as kube-scheduler hears it: a pod worth less than all others is refused there,
// and the sentence names the priority. Published is what the last walk through the queue came to, so a plan that meets
// such a node only breaks the rule where the node stays kept for five seconds more, without a gap (where a GPU flaps,
// what is kept is given up and kept again), for a gang that has waited all the while, and where no gang of that
// priority was planned just before. Gangs that have begun are before all others, and may. Only priorities are
// published and not for whom, so two gangs of equal priority are not told apart. Thread rule: as Simulation.
class QueueRule {
 public:
  // Node → the priority of the gang for which it is kept, as the extender of that process says it, or, of a process
  // without one, as any of them does.
  using Kept = std::map<std::string, int>;
  using Ask = std::function<Kept(const Process& writer)>;
  QueueRule(Simulation& simulation, test::FakeApiServer& server, Checks& checks, Ask ask);

  void Requested(const Process& process, const test::ApiRequest& request, const kube::HttpResponse& response);
  // Of a write that was late on its way: it kept the rule when it was sent.
  void Excuse(const test::ApiRequest& request, const kube::HttpResponse& response);
  // Plans that were looked at again.
  std::uint64_t suspected() const { return suspected_; }

 private:
  struct Suspicion {
    std::string gang, name;  // its UID
    int priority = 0;
    std::map<std::string, std::set<std::string>> waiting;  // by node: UIDs of gangs for which it may be kept
    int looks = 0;
  };
  std::optional<crds::Gang> NewPlan(const test::ApiRequest& request, const kube::HttpResponse& response);
  void LookAgain(const Process& process, Suspicion suspicion);
  std::set<std::string> Waiting(int priority) const;  // UIDs of gangs without a plan that say why
  bool HasBegun(const std::string& gang) const;       // by the Gang's name

  Simulation& simulation_;
  test::FakeApiServer& server_;
  Checks& checks_;
  const Ask ask_;
  std::map<std::string, std::int64_t> epochs_;         // of the last plan, by Gang UID
  std::map<std::string, std::set<std::string>> uids_;  // of Gangs that had a plan, by their name
  std::map<int, base::MonotonicTime> planned_at_;      // the last plan of any gang of that priority
  std::uint64_t suspected_ = 0;
};

}  // namespace heddle::sim
