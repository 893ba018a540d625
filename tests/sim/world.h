#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crds/keys.h"
#include "extender/daemon.h"
#include "tests/sim/checks.h"
#include "tests/sim/collector.h"
#include "tests/sim/domain_driver.h"
#include "tests/sim/job_controller.h"
#include "tests/sim/job_sets.h"
#include "tests/sim/kubelets.h"
#include "tests/sim/leader_sets.h"
#include "tests/sim/network.h"
#include "tests/sim/pod_scheduler.h"
#include "tests/sim/queue_rule.h"
#include "tests/sim/simulation.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// What differs from seed to seed before anything happens.
struct Setting {
  std::string cluster = "su:2 node:4 gpu:8 nic:8 rail:8 spine:2";  // topology/synthetic.h
  bool own_lease =
      false;  // the extenders elect a leader themselves; else each follows the scheduler beside it
  int extenders = 2;
  bool leader_sets = false;            // LeaderWorkerSet is installed
  bool compute_domains = false;        // NVIDIA's DRA driver is installed; for NVLink domains over nodes
  int spares = 0;                      // see placement::GangRequest
  bool watch_list = true;              // false: an API server from before it
  std::chrono::milliseconds skew{0};   // between the wall clocks of the two
  std::chrono::milliseconds drift{0};  // by so much a second the second one's grows
};

// Where an extender runs: started again whenever it has died.
struct Machine {
  std::string host;  // "host-a"
  std::chrono::milliseconds skew{0};
  Process* process = nullptr;
  extender::Daemon* daemon = nullptr;
  int starts = 0;
  bool wanted = true;  // false: nobody starts it again
};

// A cluster in one process: the API server, everything of Kubernetes that has a say over pods as small actors, and
// real extenders. Thread rule: as Simulation.
class World {
 public:
  World(Simulation& simulation, const Setting& setting, const Weather& weather);
  ~World();

  Simulation& simulation() { return simulation_; }
  test::FakeApiServer& server() { return server_; }
  Network& network() { return network_; }
  Checks& checks() { return checks_; }
  JobController& jobs() { return jobs_; }
  JobSets& job_sets() { return job_sets_; }
  LeaderSets& leader_sets() { return *leader_sets_; }  // Requires: Setting::leader_sets
  Kubelets& kubelets() { return kubelets_; }
  PodScheduler& scheduler() { return scheduler_; }
  Collector& collector() { return collector_; }
  QueueRule& queue_rule() { return queue_rule_; }
  std::vector<Machine>& machines() { return machines_; }
  // Of pods: where the extenders elect a leader themselves, there is no scheduler of ours.
  std::string scheduler_name() const {
    return setting_.own_lease ? "default-scheduler" : std::string(crds::keys::kSchedulerName);
  }
  const std::vector<std::string>& nodes() const { return nodes_; }
  // So many of them can be used at once, without the spares.
  int nodes_for_gangs() const { return int(nodes_.size()) - spare_nodes_; }
  const std::vector<std::string>& fabrics() const { return fabrics_; }  // names of the Fabrics of these nodes
  int gpus_per_node() const { return gpus_per_node_; }
  bool has_compute_domains() const { return domain_driver_ != nullptr; }

  // As the operator makes them: a Fabric that is missing, with nothing declared.
  void MakeFabrics();

  // The nodes that the extender of that process keeps, or any of them where it is none of theirs.
  QueueRule::Kept KeptNodes(const Process& process);

  void RunUntil(base::MonotonicTime time);
  void Pass(std::chrono::nanoseconds duration) { RunUntil(simulation_.now() + duration); }
  // Lets time pass until the condition holds; false when it does not within the limit.
  bool Until(const std::function<bool()>& condition, std::chrono::nanoseconds limit);

 private:
  // The wall clock of the API server's machine.
  class ServerClock final : public base::Clock {
   public:
    explicit ServerClock(Simulation& simulation) : simulation_(simulation) {}
    base::WallTime WallNow() override { return simulation_.wall(); }
    base::MonotonicTime Now() override { return simulation_.now(); }
    bool SleepUntil(base::MonotonicTime, std::stop_token) override { return false; }

   private:
    Simulation& simulation_;
  };

  std::optional<kube::Json> AskAsScheduler(const std::string& host, const std::string& path,
                                           const kube::Json& body);
  void AddNodes(const Setting& setting);
  void StartExtender(Machine& machine);
  void KeepExtenders();
  void CountRequests();
  void Drift();
  void Listen();

  Simulation& simulation_;
  const Setting setting_;
  base::Random random_;
  ServerClock clock_{simulation_};
  test::FakeApiServer server_{clock_};
  Network network_;
  Checks checks_;
  QueueRule queue_rule_;
  JobController jobs_;
  JobSets job_sets_;
  Kubelets kubelets_;
  PodScheduler scheduler_;
  Collector collector_;
  std::vector<Machine> machines_;
  std::unique_ptr<LeaderSets> leader_sets_;      // null where it is not installed
  std::unique_ptr<DomainDriver> domain_driver_;  // the same
  std::vector<std::string> nodes_, fabrics_;
  int gpus_per_node_ = 0, spare_nodes_ = 0;
  std::map<const Process*, std::uint64_t> requests_before_;
};

}  // namespace heddle::sim
