#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "crds/fabric_switch.h"
#include "formats/sonic_config.h"
#include "gnmi/client.h"
#include "kube/work_queue.h"
#include "operator/port_sightings.h"
#include "operator/switch_verdicts.h"
#include "operator/view.h"
#include "switches/counter_window.h"
#include "switches/neighbours.h"

namespace heddle::operators {

// Asks every FabricSwitch over gNMI how it is set and what it counts, and keeps the last answers. How ports are set is
// read once in spec.pollSeconds, and soon when the switch says that something changed; what is new is read twice before
// it counts, since a table that is just being written reads as one whose other half is off. Counters are read every ten
// seconds, of SONiC by a subscription where it keeps one, else by asking; with those of OpenConfig comes all that it
// says of how ports are set, speed, FEC and MTU. Where queues are asked for rarer than ports, those of ports that moved
// as if one dropped packets or were stormed are asked for at once (switches/queue_looks.h). A switch that cannot be
// reached is tried again after two seconds, doubling to a minute; none holds up another, nor does a slow API server.
//
// Thread rule: Run on one thread; the rest from any. What is passed must outlive it.
class SwitchWatch {
 public:
  struct Options {
    std::chrono::seconds counters_every{10};
    // Of queues, which are most of what a switch counts: so long for each switch that is asked, so that an operator has
    // as much to read of 500 switches once a minute as of 80 every ten seconds; never oftener than counters.
    std::chrono::milliseconds queues_every_for_each{120};
    // Where there are no more switches than this, each says at once what somebody changes, over one more connection of
    // 160 KB. Where there are more, none of them has one, and a change is known within pollSeconds: so 500 stay within
    // 300 MB (docs/decisions/0017). Counted when one connects; whoever has one by then keeps it.
    std::size_t most_followed = 200;
    std::chrono::milliseconds call_timeout{20'000};
    std::chrono::seconds least_retry{2}, most_retry{60};
    // Tables that a switch refuses for having no row are looked for again with the first reading after so long, and
    // with each that something brings about: a change that it says, or settings that were read only once.
    std::chrono::minutes look_again{5};
    // SONiC sends a notice for each path of a sample; so long after the last one it is whole.
    std::chrono::milliseconds settle{300};
  };
  struct Ways {
    gnmi::Dialer& dialer;
    const View& fabric_switches;
    // Where a switch is, with its Secrets; may block. Errors: kNotFound or kInvalid names the Secret.
    std::function<base::Result<gnmi::Endpoint>(const crds::FabricSwitch&, const std::stop_token&)> endpoint;
    std::function<void()> on_answers;    // what Answers() says has changed, times aside
    std::function<void()> on_sightings;  // what Sightings() says has
  };
  SwitchWatch(base::Clock& clock, base::Random random, Ways ways)
      : SwitchWatch(clock, random, std::move(ways), Options{}) {}
  SwitchWatch(base::Clock& clock, base::Random random, Ways ways, Options options);
  ~SwitchWatch();
  SwitchWatch(const SwitchWatch&) = delete;
  SwitchWatch& operator=(const SwitchWatch&) = delete;

  void Changed(const std::string& fabric_switch);  // the object, or that it is gone
  void Run(const std::stop_token& stop);           // asks until stop, then forgets everything
  // Works off what is due now, without blocking; returns whether anything was. For tests, in place of Run.
  bool RunOnce(const std::stop_token& stop);

  SwitchAnswers Answers() const;
  // Nothing of a switch that calls itself otherwise than its FabricSwitch, or whose name two have: it would speak
  // against the cables of another.
  SwitchSightings Sightings() const;
  // Switches, by the names of Sightings(), whose counters are not known for long enough that silence would mean that
  // nothing stands against them: an operator that has just begun must not call well what its predecessor saw.
  std::set<std::string> Unprimed() const;

 private:
  struct Session;
  struct Mailbox;
  using Event = std::function<void(Session&)>;
  // What is told of one FabricSwitch.
  struct Told {
    std::set<std::string> names;  // that it claims: its own of Sightings(), and what it calls itself
    base::MonotonicTime began;
    std::optional<base::MonotonicTime> counting;  // since when
    SwitchSightings sightings;
  };

  void Handle(const std::string& name);
  void Forget(const std::string& name);
  void Unsay(const std::string& name);
  void Introduce(const Session& session);
  void Begin(Session& session);
  void TookEndpoint(Session& session, const base::Result<gnmi::Endpoint>& endpoint);
  // Works off what reads Secrets, until stop.
  void ReadEndpoints(const std::stop_token& stop);
  bool ReadOneEndpoint(const std::stop_token& stop);
  void Advance(Session& session);
  void AskHow(Session& session);
  void AskConfig(Session& session);
  void AskTables(Session& session, const std::vector<std::string>& tables);
  void AskVersion(Session& session);
  void AskChassis(Session& session);
  void KnowChassis(Session& session, const std::string& chassis_id);
  void AskPorts(Session& session, bool queues);
  void SubscribeCounters(Session& session);
  void SubscribeChanges(Session& session);
  void TookCapabilities(Session& session, const base::Result<gnmi::ServerCapabilities>& said);
  void TookTables(Session& session, const std::vector<std::string>& tables,
                  base::Result<std::vector<gnmi::Notice>> said);
  void TookConfig(Session& session);
  void Doubt(Session& session, base::Result<std::string> text);
  void AskNeighbours(Session& session);
  void TookNeighbours(Session& session, const base::Result<std::vector<gnmi::Notice>>& said);
  void KnowNeighbours(Session& session, switches::Neighbours neighbours);
  void AskLldp(Session& session);
  void TookLldp(Session& session, const base::Result<std::vector<gnmi::Notice>>& said);
  static void TookLines(Session& session, std::vector<formats::SonicPort> ports);
  void TookCounters(Session& session, const std::string& what, base::Result<std::vector<gnmi::Notice>> said);
  void Flush(Session& session);
  base::MonotonicTime NextQueues() const;
  void AskHinted(Session& session, const std::vector<switches::QueueHint>& hints);
  void TookHinted(Session& session, bool all, base::Result<std::vector<gnmi::Notice>> said);
  void Heard(Session& session);
  void Judge(Session& session);
  void Fail(Session& session, const base::Error& error);
  void Publish(Session& session);
  void CountPause(Session& session, const lossless::PrioritySet& paused);
  // A callback's way back to the thread that works: dropped when the session was begun anew meanwhile. What may wait
  // so long comes together with what follows it.
  std::function<void(Event)> Post(const Session& session, std::chrono::nanoseconds within = {});
  std::chrono::nanoseconds Jittered(std::chrono::nanoseconds span);

  base::Clock& clock_;
  base::Random random_;
  const Ways ways_;
  const Options options_;
  kube::WorkQueue queue_;
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // of the thread that works

  mutable std::mutex mutex_;
  SwitchAnswers answers_;
  std::map<std::string, Told> told_;  // by FabricSwitch
  base::MonotonicTime began_;

  // Reading a Secret waits for the API server, and so not on the thread that works.
  std::mutex reads_mutex_;
  std::condition_variable_any more_reads_;
  std::deque<std::function<void(const std::stop_token&)>> reads_;
};

}  // namespace heddle::operators
