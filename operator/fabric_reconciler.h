#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "crds/fabric.h"
#include "crds/gang.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/heartbeats.h"
#include "operator/assembly.h"
#include "operator/cable_memory.h"
#include "operator/outcome.h"
#include "operator/port_sightings.h"
#include "operator/status_pace.h"
#include "operator/switch_reconciler.h"
#include "operator/switch_watch.h"
#include "operator/ufm_watch.h"
#include "operator/view.h"

namespace heddle::operators {

struct FabricView;

// Assembles the fabrics and keeps one Fabric object for each: makes it with an empty spec, which belongs to
// people from then on, and writes its status as field manager heddle-operator, on change only and at most
// once in 10 s; a new suspect, and cables that come to contradict, wait for that only if the last ones did
// not. A Fabric without nodes for ten minutes is deleted if nobody declared anything in it: it came from
// passing reports, as of a node whose NICs were not up yet. What a person declared stays. Thread rule:
// Reconcile on one thread at a time.
class FabricReconciler {
 public:
  struct Reads {
    const View& nodes;
    const View& topologies;
    const View& fabrics;
    const kube::Heartbeats& heartbeats;
    // What switches say, where any is asked; each may be absent.
    const View* gangs = nullptr;
    const CurrentVerdicts* verdicts = nullptr;
    std::function<SwitchSightings()> sightings;
    std::function<std::set<std::string>()> unprimed;  // switches whose silence says nothing yet
    // What the UFM of a Fabric says; nothing: it has none, or nobody has asked yet.
    std::function<std::optional<UfmAnswer>(const std::string& fabric)> ufm;
  };
  struct Options {
    std::chrono::nanoseconds least_interval = std::chrono::seconds(10);
    std::chrono::seconds keep_empty = std::chrono::minutes(10);
  };
  FabricReconciler(kube::Client& client, base::Clock& clock, Reads reads, CurrentAssembly& assembly,
                   kube::EventRecorder& events)
      : FabricReconciler(client, clock, std::move(reads), assembly, events, Options{}) {}
  FabricReconciler(kube::Client& client, base::Clock& clock, Reads reads, CurrentAssembly& assembly,
                   kube::EventRecorder& events, Options options);

  // All fabrics at once: one that fails does not hold up the others, and the first error is returned.
  [[nodiscard]] base::Result<Outcome> Reconcile(const std::stop_token& stop);

  // Of the last Reconcile, by fabric.
  const std::map<std::string, std::vector<topology::Suspect>>& suspects() const { return suspects_; }

 private:
  base::Result<Outcome> ReconcileOne(const std::string& name, const Assembly& assembly,
                                     const std::stop_token& stop);
  crds::FabricStatus Desired(const std::string& name, const Assembly& assembly, const crds::Fabric& before,
                             std::int64_t generation);
  std::vector<topology::Suspect> Suspected(const topology::Fabric& fabric, const FabricView& view,
                                           const crds::Fabric& before);
  std::vector<crds::Gang> ReadGangs() const;
  base::Result<Outcome> Retire(const crds::Fabric& empty, const std::stop_token& stop);
  base::Result<kube::Json> Make(const std::string& name, const std::stop_token& stop);
  void Tell(const kube::Json& object, const crds::FabricStatus& before, const crds::FabricStatus& after);

  void TellSuspects(const kube::ObjectReference& about, const crds::FabricStatus& before,
                    const crds::FabricStatus& after);
  // On the Node at the host's end, where whoever repairs it looks.
  void TellNode(const std::string& node, kube::Severity severity, std::string_view reason,
                const std::string& sentence);

  kube::Client& client_;
  base::Clock& clock_;
  const Reads reads_;
  CurrentAssembly& current_;
  kube::EventRecorder& events_;
  const Options options_;
  Assembler assembler_;
  CableMemory cables_;
  std::map<std::string, std::vector<topology::Suspect>> suspects_;
  bool ufm_unprimed_ = false;                        // of any fabric, in the last Reconcile
  StatusPace status_pace_{options_.least_interval};  // by fabric
};

}  // namespace heddle::operators
