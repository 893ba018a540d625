#pragma once

#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "crds/fabric.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/heartbeats.h"
#include "operator/assembly.h"
#include "operator/outcome.h"
#include "operator/view.h"

namespace heddle::operators {

// Assembles the fabrics and keeps one Fabric object for each: makes it with an empty spec, which belongs to
// people from then on, and writes its status as field manager heddle-operator, on change only and at most
// once in 10 s. A Fabric without nodes for ten minutes is deleted if nobody declared anything in it: it came
// from passing reports, as of a node whose NICs were not up yet. What a person declared stays. Thread rule:
// Reconcile on one thread at a time.
class FabricReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
    const View& fabrics;
    const kube::Heartbeats& heartbeats;
  };
  struct Options {
    std::chrono::nanoseconds least_interval = std::chrono::seconds(10);
    std::chrono::seconds keep_empty = std::chrono::minutes(10);
  };
  FabricReconciler(kube::Client& client, base::Clock& clock, Reads reads, CurrentAssembly& assembly,
                   kube::EventRecorder& events)
      : FabricReconciler(client, clock, reads, assembly, events, Options{}) {}
  FabricReconciler(kube::Client& client, base::Clock& clock, Reads reads, CurrentAssembly& assembly,
                   kube::EventRecorder& events, Options options);

  // All fabrics at once: one that fails does not hold up the others, and the first error is returned.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::stop_token& stop);

 private:
  base::Result<Outcome> ReconcileOne(const std::string& name, const Assembly& assembly,
                                     const std::stop_token& stop);
  base::Result<Outcome> Retire(const crds::Fabric& empty, const std::stop_token& stop);
  base::Result<kube::Json> Make(const std::string& name, const std::stop_token& stop);
  void Tell(const kube::Json& object, const crds::FabricStatus& before, const crds::FabricStatus& after);

  // On the Node at the host's end, where whoever repairs it looks.
  void TellNode(const topology::CablingFault& fault, kube::Severity severity, std::string_view reason,
                const std::string& sentence);

  kube::Client& client_;
  base::Clock& clock_;
  const Reads reads_;
  CurrentAssembly& current_;
  kube::EventRecorder& events_;
  const Options options_;
  Assembler assembler_;
  std::map<std::string, base::MonotonicTime> last_write_;  // of a status, tried or done
};

}  // namespace heddle::operators
