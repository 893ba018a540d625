#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "crds/fabric_switch.h"
#include "gnmi/client.h"
#include "kube/object.h"
#include "operator/switch_watch.h"
#include "switches/counter_window.h"
#include "switches/queue_looks.h"

// What the files of SwitchWatch share, and nobody else reads.

namespace heddle::operators {

gnmi::GetRequest RequestOf(const char* target, const std::vector<std::vector<std::string>>& paths);
gnmi::Path PathOf(const char* target, const std::vector<std::string>& elems);

// Whether it answered, if only that it has no such thing. One that cannot be heard has taken nothing back.
inline bool Answered(const base::Result<std::vector<gnmi::Notice>>& said) {
  return said || said.error().code == base::Code::kNotFound ||
         said.error().code == base::Code::kUnimplemented;
}

// Whoever posts and whoever takes are different threads; what is posted for a session that ended meanwhile is nobody's.
struct SwitchWatch::Mailbox {
  std::mutex mutex;
  std::vector<std::pair<std::uint64_t, Event>> events;
};

// One switch. Of the thread that works, but for the mailbox.
struct SwitchWatch::Session {
  std::string name;
  kube::ObjectPtr source;  // what `object` was read from
  crds::FabricSwitch object;
  std::uint64_t begun = 0;  // how often; events of an earlier time are dropped
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();

  bool connected = false, connecting = false;
  base::MonotonicTime retry_at{};
  int failures = 0;

  // All are asked for: its settings are not known, or its watchdog looks at too few, or it says nothing of those.
  bool every_queue = true;

  bool asking_config = false;
  // Of SONiC, what a reading that is under way has heard, JSON by table, and which tables are still to be asked for by
  // themselves, the next one last.
  std::map<std::string, std::string> tables;
  std::vector<std::string> alone;
  // Tables that it refuses for having no row, which SONiC does until 202311; looked for again from look_at on.
  std::set<std::string> absent;
  base::MonotonicTime look_at{};
  std::string system_name;  // of OpenConfig what it calls itself, by its LLDP; empty = it has not said
  // Settings that were read once and are others than those that count.
  std::shared_ptr<const switches::SonicAnswer> doubtful;
  int doubts = 0;                // readings in a row that each said something else
  lossless::PrioritySet paused;  // the priorities whose pause is counted; none before its settings are known
  int asking_ports = 0;          // answers that have not come yet
  int timeouts = 0;              // answers in a row that did not come in time
  base::MonotonicTime config_at{}, ports_at{}, queues_at{}, flush_at = base::MonotonicTime::max();
  std::map<std::vector<std::string>, std::string> counters;  // of the sample that is coming in, JSON by path
  std::map<std::string, SwitchTrouble> uncounted;            // why something is not, by what was asked for
  bool sampling = false;                                     // the switch keeps a subscription of counters
  base::MonotonicTime subscribe_at{}, watch_at{};

  SwitchAnswer answer;
  switches::CounterWindow window;
  switches::QueueLooks looks;  // at queues, out of turn
  bool queues_came = false;    // with the sample that is coming in, of all ports
  // Looks at queues, in turn or not: how many there were, and the number of the last one that counts.
  std::uint64_t queues_asked = 0, queues_told = 0;
  std::vector<switches::PortSightings> sightings;

  // A switch as SONiC keeps one subscription a connection (sonic-gnmi, gnmi_server/server.go), so changes have
  // their own. Last, so that they go first: their callbacks use what stands above.
  std::unique_ptr<gnmi::Client> client, changes_client;
  std::unique_ptr<gnmi::Stream> counters_stream, changes_stream;

  void Disconnect() {
    counters_stream.reset();
    changes_stream.reset();
    changes_client.reset();
    client.reset();
    connected = connecting = asking_config = sampling = false;
    asking_ports = timeouts = 0;
    tables.clear();
    alone.clear();
    absent.clear();
    counters.clear();
    queues_came = false;
    uncounted.clear();
    flush_at = base::MonotonicTime::max();
    ++begun;
  }
  // Nothing follows its tables, and which there are is known: a reading comes first, and asks for all.
  bool MayFollow() const { return !asking_config && changes_stream == nullptr && changes_client != nullptr; }
  bool sonic() const { return object.spec.dialect == crds::SwitchDialect::kSonic; }
};

}  // namespace heddle::operators
