#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crds/gang.h"
#include "extender/gang_controller.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::test {

struct JobWords {
  std::string name = "train";
  int pods = 8;
  int gpus = 8;
  std::string parallelism = "tp=8,dp=8";
  int priority = 0;
  kube::Json annotations = kube::Json::object();  // on the pod template, beside parallelism
  kube::Json pod_spec = kube::Json::object();     // merged over the pod's spec
};

// A cluster on a fake API server: nodes with topologies from a synthetic line, Jobs and their gated pods, and
// a scheduler and kubelet played by the test.
class Cluster {
 public:
  explicit Cluster(std::string_view synthetic);

  // Puts the Job and all its pods; returns the Job's UID.
  std::string Submit(const JobWords& words);
  std::string PutJob(const JobWords& words);
  void PutPod(const JobWords& words, const std::string& job_uid, int index, const std::string& name = "");
  void PutLonePod(const std::string& name, const std::string& node, int gpus);
  // Does what kube-scheduler and the kubelet would: binds every released pod to the node its annotation
  // names.
  int BindReleased();

  kube::Json Pod(const std::string& name) const;
  std::vector<kube::Json> Pods(const std::string& job) const;
  int Released(const std::string& job) const;  // pods past our gate
  std::optional<crds::Gang> GangOf(const std::string& job) const;
  std::string Summary(const std::string& job) const;  // as `kubectl get gangs` shows it; "" = no Gang
  // Broken promises: GPUs that two live pods hold, pods without a gate and without a plan. Empty = all kept.
  std::vector<std::string> Violations() const;

  FakeClock clock;
  FakeApiServer server{clock};
};

// A transport that dies: after so many writes have been carried out, every call fails, as for a killed
// process.
class MortalTransport final : public kube::HttpTransport {
 public:
  MortalTransport(kube::HttpTransport& inner, int writes) : inner_(inner), left_(writes) {}
  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token stop) override;
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override;
  bool dead() const { return dead_; }

 private:
  kube::HttpTransport& inner_;
  std::atomic<int> left_;
  std::atomic<bool> dead_{false};
};

// An extender at work on a cluster, until it goes out of scope.
class RunningExtender {
 public:
  explicit RunningExtender(Cluster& cluster) : RunningExtender(cluster, cluster.server) {}
  RunningExtender(Cluster& cluster, kube::HttpTransport& transport,
                  extender::Mode mode = extender::Mode::kPlace, bool preemption = true, int spares = 0,
                  int releases_at_once = 1);
  ~RunningExtender();

  extender::GangController& controller() { return controller_; }
  // Lets time pass until the condition holds; false when it does not within so much of the cluster's time.
  bool Until(const std::function<bool()>& condition, std::chrono::seconds limit = std::chrono::seconds(60));
  void Pass(std::chrono::seconds time);

 private:
  Cluster& cluster_;
  kube::Client client_;
  extender::Metrics metrics_;
  extender::GangController controller_;
  std::jthread thread_;
};

// Until the extender knows this pod of a gang, and with it whatever was done to pods before. Time stands meanwhile.
void WaitUntilKnown(Cluster& cluster, RunningExtender& extender, const std::string& pod);
// Plannings that ended in a refusal, so far.
int PlansRefused(RunningExtender& extender);

// A repair that comes while the extender has other work: the gang "runs" of two whole nodes is at work, and the node of
// its second pod is cordoned, so that this pod, made anew, has to go elsewhere.
class RepairAmidst {
 public:
  // Submits the gang, and returns once it runs and the extender knows of the node. That it came so far is expected.
  RepairAmidst(Cluster& cluster, RunningExtender& extender);
  // The pod goes and is made anew, and the extender knows. Time stands meanwhile.
  void Begin();
  // Expects that the new plan was written, and before the last of the requests that `other` names.
  void ExpectPlannedBeforeTheLast(const std::function<bool(const ApiRequest&)>& other) const;

 private:
  Cluster& cluster_;
  RunningExtender& extender_;
  std::string job_uid_;
};

}  // namespace heddle::test
