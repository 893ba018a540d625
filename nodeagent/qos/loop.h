#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/work_queue.h"
#include "nodeagent/health/own_changes.h"
#include "nodeagent/qos/apply.h"
#include "nodeagent/qos/port_gate.h"
#include "nodeagent/qos/report.h"

namespace heddle::nodeagent {

struct QosLoopOptions {
  // Between two readings of every port. A difference is to be known after 60 s at the latest; the publication takes
  // up to 10 s of that.
  std::chrono::nanoseconds interval = std::chrono::seconds(30);
  std::chrono::nanoseconds wake_settle = std::chrono::milliseconds(200);  // from Wake to a reading
  bool may_write = false;
  std::string boot;  // of this machine's run; empty = not known
  QosTimings timings;
};

// Since the loop was made.
struct QosCounts {
  std::uint64_t writes = 0, failed_writes = 0, applied = 0, rolled_back = 0, drifts = 0, conflicts = 0,
                given_back = 0;
  friend bool operator==(const QosCounts&, const QosCounts&) = default;
};

// What a QosLoop tells, on its thread. All may be empty.
struct QosCallbacks {
  std::function<void(const LosslessReadings& readings)> on_readings;  // where they changed
  std::function<void(const std::vector<QosEvent>& events)> on_events;
  // Before a write that may take the link down, and once more when it is known how often it did.
  std::function<void(const OwnLinkChanges& changes)> on_own_changes;
  std::function<void(const QosCounts& counts, std::chrono::nanoseconds took)> on_pass;
  std::function<void(std::string_view line)> log;
};

// Holds the ports of this machine against what their policies want, and sets what differs where it may: one port
// after the other, each by the steps of apply.h, and each of them written down before it matters.
// Thread rule: Run, or RunOnce, on one thread, the others from any. What is passed must outlive it.
class QosLoop {
 public:
  QosLoop(PortIo& io, PortGate& gate, Journal& journal, base::Clock& clock, QosLoopOptions options,
          QosCallbacks callbacks);

  // spec.lossless of the own object.
  void Want(std::vector<crds::LosslessWish> wishes);
  void Have(std::vector<QosPort> ports);
  // status.lossless, as it stood before this agent started; before Want. `boot`: of the machine's run in which that was
  // written; empty = not known. Of another run it says nothing: drivers have their own settings again since.
  void Restore(std::vector<crds::LosslessReport> published, const std::string& boot = {});
  void Wake();  // something may have changed

  void Run(std::stop_token stop);  // blocks until stop; what is under way stays in the journal
  // What is due now, without blocking; returns whether anything was.
  bool RunOnce();
  std::optional<base::MonotonicTime> NextDue() const { return queue_.NextDue(); }

 private:
  struct Port {
    QosPort port;
    std::optional<crds::LosslessWish> wish;
    QosReading reading;
    std::optional<Judgement> judged;
    PortRecord record, kept;  // kept: as it stands in the journal
    ApplyProgress progress;
    LinkEvidence link;  // just before a write
    crds::LosslessReport shown;
    std::string waiting;               // NextApplyStep::reason
    std::string given_back;            // StepFacts::given_back
    std::string about;                 // AboutOf what was judged last
    base::MonotonicTime hear_until{};  // what was begun, or failed, waits for its wish, once its NIC is back
    int in_vain = 0;                   // times that it was given back since it was last set
    // Pods that were given it, and since when this agent knows that.
    std::map<std::string, base::MonotonicTime> pods;
    bool known = false;                 // of the machine, now
    bool resumed = false;               // an agent before this one began it
    std::optional<OwnLinkChanges> own;  // told to on_own_changes of the write that is under way
  };

  void Pass();
  void Load();
  void Resume(PortRecord record);
  void TakeInputs(bool& all);
  void Look(Port& port);
  void Forget();
  std::vector<Port*> Turns();  // those that were waited for in vain least often first
  void Work(Port& port, base::MonotonicTime& when);
  std::string Before(const Port& port) const;
  void KnowPods(Port& port);
  bool GrantedOfLate(const Port& port) const;
  // What was begun by an agent that might set ports, and can neither be gone on with nor taken back by this one.
  bool MayNotSettle(const Port& port) const;
  void Do(Port& port, const NextApplyStep& next);
  bool Begin(Port& port);
  void Write(Port& port);
  void Refused(Port& port, const std::vector<lossless::Setting>& left, const base::Error& error);
  void NotKept(Port& port, const std::vector<lossless::Setting>& left);
  void TurnBack(Port& port, std::string why, bool conflict);
  void WriteBack(Port& port);
  // `lost`: what could not be set back.
  void RolledBack(Port& port, const std::vector<lossless::Setting>& lost);
  void Settle(Port& port);
  // A write is about to bounce the link.
  void ExpectBounces(Port& port);
  // How often it did: "; its link went down twice by that". Empty: it did not, or that is not known.
  std::string CountBounces(Port& port);
  void Open(Port& port);
  void GiveBack(Port& port, const NextApplyStep& next);
  // Who uses it, as the end of a sentence; `in_use`: somebody does.
  std::string Holders(const Port& port, bool in_use);
  bool Keep(Port& port);
  void Tell(bool warning, std::string_view reason, const Port& port, std::string note);
  void Log(const Port& port, std::string_view what) const;
  crds::LosslessReport Shown(const Port& port) const;
  // Of a port that is not there, and whose wish may have gone with it.
  crds::LosslessReport Vanished(const Port& port) const;
  void Publish();
  std::chrono::nanoseconds BackOff(int tries) const;

  PortIo& io_;
  PortGate& gate_;
  Journal& journal_;
  base::Clock& clock_;
  const QosLoopOptions options_;
  const QosCallbacks callbacks_;
  kube::WorkQueue queue_;

  std::mutex mutex_;  // guards what follows
  std::optional<std::vector<crds::LosslessWish>> new_wishes_;
  std::optional<std::vector<QosPort>> new_ports_;
  std::optional<std::vector<crds::LosslessReport>> new_published_;
  bool woken_ = false;

  // Of the loop's thread.
  bool loaded_ = false, wished_ = false, seen_ = false;
  base::MonotonicTime hear_until_{};   // what was begun, or failed, waits so long for the first wishes
  bool freed_ = false;                 // in this pass a port was given back
  std::map<std::string, Port> ports_;  // by name
  std::vector<crds::LosslessWish> wishes_;
  std::vector<crds::LosslessReport> published_;  // by an agent before this one, until this one reports
  std::vector<std::string> problems_;
  base::MonotonicTime next_look_{};
  NodePause pause_;  // of this agent's time only: one that starts anew tries anew
  std::vector<QosEvent> events_;
  QosCounts counts_;
  std::optional<LosslessReadings> told_;
};

}  // namespace heddle::nodeagent
