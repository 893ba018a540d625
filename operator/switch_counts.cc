#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "operator/switch_endpoint.h"
#include "operator/switch_session.h"
#include "operator/switch_watch.h"
#include "switches/neighbours.h"
#include "switches/openconfig_ports.h"
#include "switches/port_counters.h"
#include "switches/queue_looks.h"

// SwitchWatch's reading of counters.

namespace heddle::operators {
namespace {

using base::Code;
using gnmi::Notice;
using std::chrono::seconds;

constexpr const char* kCountersDatabase = "COUNTERS_DB";
using switches::kApplicationDatabase;
constexpr const char* kPortTable = "PORT_TABLE";
// Answers in a row that do not come in time: then it hangs.
constexpr int kMostTimeouts = 3;
// Ports of which a note is told; the others are counted.
constexpr std::size_t kMostNotes = 3;
// What is asked for, in words.
constexpr const char* kOfPorts = "counters of ports";
constexpr const char* kOfLinks = "links of ports";
constexpr const char* kOfQueues = "counters of queues";
constexpr const char* kOfWatchedQueues = "counters of watched queues";
constexpr const char* kValues = "values";

bool CountsPackets(const switches::PortCounters& port) {
  const auto any = [](const auto& counts) {
    return std::any_of(counts.begin(), counts.end(), [](const auto& one) { return one.has_value(); });
  };
  return port.in_errors || port.uncorrected || port.in_discards || port.out_discards || port.in_packets ||
         port.out_packets || any(port.pfc_received) || any(port.pfc_sent);
}

bool KnowsLink(const switches::PortCounters& port) {
  return port.up || port.state_changes;
}

bool AnyOf(const switches::CounterSample& sample, bool (*has)(const switches::PortCounters&)) {
  return std::any_of(sample.ports.begin(), sample.ports.end(),
                     [has](const auto& port) { return has(port.second); });
}

// What is no JSON is left out.
std::map<switches::Steps, gnmi::Json> TreesOf(const std::map<switches::Steps, std::string>& texts) {
  std::map<switches::Steps, gnmi::Json> trees;
  for (const auto& [steps, text] : texts) {
    if (auto tree = gnmi::TreeOf(text)) trees[steps] = *std::move(tree);
  }
  return trees;
}

// Whether it may only have been busy, or out of reach: asked once more, it may say what it has.
bool IsPassing(Code code) {
  return code == Code::kTimeout || code == Code::kThrottled || code == Code::kUnavailable;
}

bool SaysAny(const base::Result<std::vector<Notice>>& said) {
  const auto any = [](const gnmi::Update& update) {
    return update.json && update.json->size() > 2;
  };  // than "{}"
  return said && std::any_of(said->begin(), said->end(), [&](const Notice& notice) {
           return std::any_of(notice.updates.begin(), notice.updates.end(), any);
         });
}

// Texts by path. Of thousands of values, which are taken over and not copied.
void Keep(std::map<switches::Steps, std::string>& texts, Notice notice) {
  for (gnmi::Update& update : notice.updates) {
    if (!update.json) continue;
    switches::Steps elems;
    // Entries of a list that come one by one differ by their keys alone, of which SONiC has none. They stand first, for
    // whoever reads looks at the last steps.
    for (const gnmi::Elem& elem : update.path.elems) {
      for (const auto& [key, value] : elem.keys) elems.push_back(fmt::format("{}={}", key, value));
    }
    for (gnmi::Elem& elem : update.path.elems) elems.push_back(std::move(elem.name));
    texts[std::move(elems)] = *std::move(update.json);
  }
}

// Empty where its settings are not known.
switches::NamesByAlias NamesIn(const switches::SonicAnswer* answer) {
  switches::NamesByAlias names;
  if (answer == nullptr) return names;
  for (const auto* ports : {&answer->config.ports, &answer->config.bare}) {
    for (const formats::SonicPort& port : *ports)
      names[port.alias.empty() ? port.name : port.alias] = port.name;
  }
  return names;
}

// Why there is no counter of some of what was asked for.
SwitchTrouble Uncounted(const std::string& what, const base::Error& error) {
  SwitchTrouble trouble = TroubleOf(error);
  trouble.message = what + ": " + trouble.message;
  return trouble;
}

}  // namespace

void SwitchWatch::SubscribeCounters(Session& session) {
  gnmi::SubscribeRequest request;
  for (const std::vector<std::string>& elems : switches::SonicCounterPaths(session.paused)) {
    gnmi::Subscription one;
    one.path = PathOf(kCountersDatabase, elems);
    one.interval = options_.counters_every;
    request.subscriptions.push_back(std::move(one));
  }
  const auto post = Post(session);
  session.counters_stream = session.client->Subscribe(
      request, {.notice =
                    [this, post_soon = Post(session, options_.settle)](Notice&& notice) {
                      auto kept = std::make_shared<Notice>(std::move(notice));
                      post_soon([kept, whole = clock_.Now() + options_.settle](Session& to) {
                        to.sampling = true;
                        to.uncounted.erase(kOfPorts);
                        Keep(to.counters, std::move(*kept));
                        to.flush_at = whole;
                      });
                    },
                .synced = [] {},
                .ended =
                    [this, post](const base::Status& why) {
                      const bool refused = !why && why.error().code == Code::kUnimplemented;
                      post([this, refused](Session& to) {
                        to.counters_stream.reset();
                        to.sampling = false;
                        to.ports_at = clock_.Now();
                        to.subscribe_at =
                            clock_.Now() + Jittered(refused ? seconds(3600) : options_.most_retry);
                      });
                    }});
}

// What is counted lies in two databases; what all answers say together makes one sample.
void SwitchWatch::AskPorts(Session& session, bool queues) {
  const base::MonotonicTime now = clock_.Now();
  session.ports_at = now + options_.counters_every;
  const auto ask = [&](const char* what, const gnmi::GetRequest& request) {
    ++session.asking_ports;
    session.client->Get(request, options_.call_timeout, [this, what, post = Post(session)](auto said) {
      auto kept = std::make_shared<base::Result<std::vector<Notice>>>(std::move(said));
      post([this, what, kept](Session& to) { TookCounters(to, what, std::move(*kept)); });
    });
  };
  // Its models do not say which queues are lossless, so counters of queues would be evidence of nothing.
  if (!session.sonic()) return ask(kOfPorts, RequestOf("", {{"interfaces"}}));
  ask(kOfLinks, RequestOf(kApplicationDatabase, {{kPortTable}}));
  if (!session.sampling)
    ask(kOfPorts, RequestOf(kCountersDatabase, switches::SonicCounterPaths(session.paused)));
  if (!queues) return;
  session.queues_told = ++session.queues_asked;  // from here on an answer that was asked for before is older
  session.queues_at = NextQueues();
  const bool all = session.every_queue;
  ask(all ? kOfQueues : kOfWatchedQueues,
      RequestOf(kCountersDatabase, switches::SonicQueuePaths({.all = true, .ports = {}}, !all, {})));
}

base::MonotonicTime SwitchWatch::NextQueues() const {
  const std::chrono::nanoseconds every = std::max<std::chrono::nanoseconds>(
      options_.counters_every, options_.queues_every_for_each * std::int64_t(sessions_.size()));
  return clock_.Now() + every - options_.counters_every / 2;  // samples do not come by the clock
}

void SwitchWatch::TookCounters(Session& session, const std::string& what,
                               base::Result<std::vector<Notice>> said) {
  --session.asking_ports;
  const bool of_queues = what == kOfQueues || what == kOfWatchedQueues;
  // One that did not answer in time has not said that it lacks them, and all are ten times as much to ask of it.
  const bool heard = said || !IsPassing(said.error().code);
  if (what == kOfWatchedQueues && heard && !SaysAny(said)) {
    // All of them, with the next sample.
    session.every_queue = true;
    session.queues_at = clock_.Now();
  } else if (said) {
    session.timeouts = 0;
    session.uncounted.erase(what);
    if (of_queues) {
      // Whichever of both could not be read is not asked for any more.
      session.uncounted.erase(kOfQueues);
      session.uncounted.erase(kOfWatchedQueues);
      session.queues_came = true;
    }
    for (Notice& notice : *said) Keep(session.counters, std::move(notice));
  } else {
    const base::Error& error = said.error();
    if (error.code == Code::kUnavailable && session.counters_stream == nullptr) return Fail(session, error);
    // Nothing else that OpenConfig has to have is asked, so nothing else would tell that it hangs, or refuses.
    const bool late = error.code == Code::kTimeout;
    if (!session.sonic() && late && ++session.timeouts >= kMostTimeouts) return Fail(session, error);
    // A connection keeps the login that it was made with, and stands while that is refused: only a new one reads the
    // Secret anew. Without interfaces nothing else that it says counts.
    const bool refused = error.code == Code::kUnauthorized || error.code == Code::kForbidden;
    if (!session.sonic() && refused) return Fail(session, error);
    if (!session.sonic() && !late) {
      session.answer.trouble = TroubleOf(error);
      session.answer.connecting = false;
    }
    session.uncounted[what] = Uncounted(what, error);
  }
  if (session.asking_ports == 0) Flush(session);
}

void SwitchWatch::Flush(Session& session) {
  const base::MonotonicTime now = clock_.Now();
  switches::CounterSample sample;
  std::vector<formats::SonicPort> lines;
  if (session.sonic()) {
    sample = switches::ReadSonicCounters(session.counters, NamesIn(session.answer.config.get()), now);
  } else {
    const std::map<switches::Steps, gnmi::Json> trees = TreesOf(session.counters);
    sample = switches::ReadOpenConfigCounters(trees, now);
    lines = switches::ReadOpenConfigPorts(trees);
  }
  session.counters.clear();
  const bool packets = AnyOf(sample, &CountsPackets), links = AnyOf(sample, &KnowsLink);
  SwitchCounting& counting = session.answer.counting;
  if (packets || links) {
    counting.counted_at = clock_.WallNow();
    counting.ports = int(sample.ports.size());
    if (!session.sonic()) {
      TookLines(session, std::move(lines));
      Heard(session);
    }
  }
  if (const switches::FlapsBy by = switches::FlapsSeenBy(sample); by != switches::FlapsBy::kUnknown)
    counting.flaps = by;
  session.uncounted.erase(kValues);
  // Whoever answers with values that are none answers, and says nothing.
  const char* const lacks = !packets ? kOfPorts : !links ? kOfLinks : nullptr;
  if (lacks != nullptr && !session.uncounted.contains(lacks)) {
    session.uncounted[kValues] = {
        "Unreadable", fmt::format("{}: it answers, and none can be read; look at its gnmi service", lacks)};
  }
  counting.trouble.reset();
  if (!session.uncounted.empty()) counting.trouble = session.uncounted.begin()->second;
  AskHinted(session, session.window.Add(sample));
  Judge(session);
}

// OpenConfig has no hints: it does not count pause by priority.
void SwitchWatch::AskHinted(Session& session, const std::vector<switches::QueueHint>& hints) {
  const auto ask = session.looks.Next(hints, std::exchange(session.queues_came, false));
  if ((!ask.all && ask.ports.empty()) || session.answer.config == nullptr) return;
  const auto paths =
      switches::SonicQueuePaths(ask, !session.every_queue, NamesIn(session.answer.config.get()));
  if (paths.empty()) return;
  session.client->Get(
      RequestOf(kCountersDatabase, paths), options_.call_timeout,
      [this, all = ask.all, number = ++session.queues_asked, post = Post(session)](auto said) {
        auto kept = std::make_shared<base::Result<std::vector<Notice>>>(std::move(said));
        post([this, all, number, kept](Session& to) {
          // One that a later one has overtaken is older: a counter must not seem to go back.
          if (number <= to.queues_told) return;
          to.queues_told = number;
          TookHinted(to, all, std::move(*kept));
        });
      });
}

// What is not answered is nobody's trouble: the turn comes to all.
void SwitchWatch::TookHinted(Session& session, bool all, base::Result<std::vector<Notice>> said) {
  if (!said) return;
  std::map<switches::Steps, std::string> texts;
  for (Notice& notice : *said) Keep(texts, std::move(notice));
  session.window.Add(switches::ReadSonicCounters(texts, NamesIn(session.answer.config.get()), clock_.Now()));
  if (all) session.queues_at = NextQueues();
  Judge(session);
}

// Also of a switch that has fallen silent: what stands against its ports grows old.
void SwitchWatch::Judge(Session& session) {
  session.sightings = session.window.Sightings(clock_.Now());
  SwitchCounting& counting = session.answer.counting;
  counting.noted = 0;
  counting.notes.clear();
  for (const switches::PortSightings& one : session.sightings) {
    if (one.note.empty()) continue;
    if (++counting.noted <= int(kMostNotes)) counting.notes.push_back(one.port + ": " + one.note);
  }
  Publish(session);
}

}  // namespace heddle::operators
