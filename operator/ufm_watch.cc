#include "operator/ufm_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <set>
#include <thread>
#include <utility>

#include "kube/object.h"
#include "operator/back_off.h"
#include "operator/policy_reads.h"

namespace heddle::operators {
namespace {

using base::Code;
using base::Error;

// Ports of which a note is told; the others are counted.
constexpr std::size_t kMostNotes = 3;
// What was counted of a switch that UFM lists no longer is kept for so long: while one boots UFM leaves it out.
constexpr std::chrono::hours kKeepUnlisted(1);

// Whether all of it is over, and not only one of the things that were asked for.
bool IsOfConnection(const Error& error) {
  switch (error.code) {
    case Code::kUnavailable:
    case Code::kTimeout:
    case Code::kUnauthorized:
    case Code::kForbidden:
    case Code::kThrottled:
    case Code::kCancelled:
      return true;
    default:
      return false;
  }
}

// Times aside, which move at each look.
UfmAnswer WithoutTimes(UfmAnswer answer) {
  if (answer.read_at) answer.read_at = base::WallTime{};
  if (answer.counting.counted_at) answer.counting.counted_at = base::WallTime{};
  return answer;
}

using Ports = std::vector<switches::UfmPort>;

// The one that stood where it says the same, so that equal answers share it.
std::shared_ptr<const Ports> Shared(const std::shared_ptr<const Ports>& before, Ports&& now) {
  if (before != nullptr && *before == now) return before;
  return std::make_shared<const Ports>(std::move(now));
}

}  // namespace

struct UfmWatch::Session {
  struct Counted {
    switches::CounterWindow window;
    base::MonotonicTime listed{};  // when last
  };
  crds::FabricUfm spec;
  std::unique_ptr<UfmClient> client;  // null: not connected, and its Secrets are read anew
  base::MonotonicTime began{}, next_at{}, ports_at{};
  int failures = 0;
  std::string taken;  // when UFM took the last sample, as it says
  base::MonotonicTime taken_at{};
  std::optional<base::MonotonicTime> counting;  // since when
  std::map<std::string, Counted> windows;       // by GUID
  UfmAnswer answer;
};

UfmWatch::UfmWatch(base::Clock& clock, base::Random random, Ways ways, Options options)
    : clock_(clock), ways_(std::move(ways)), options_(options), queue_(clock), random_(random) {}
UfmWatch::~UfmWatch() = default;

void UfmWatch::Changed(const std::string& fabric) {
  queue_.Add(fabric);
}

std::optional<UfmAnswer> UfmWatch::Of(const std::string& fabric) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(fabric);
  return found == answers_.end() ? std::nullopt : std::optional(found->second);
}

std::map<std::string, UfmAnswer> UfmWatch::Answers() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

void UfmWatch::Run(const std::stop_token& stop) {
  for (const kube::ObjectPtr& object : ways_.fabrics.List()) queue_.Add(kube::Name(*object));
  std::vector<std::jthread> workers;
  workers.reserve(std::size_t(options_.workers));
  for (int i = 0; i < options_.workers; ++i) {
    workers.emplace_back([this, stop] {
      while (const std::optional<std::string> fabric = queue_.Get(stop)) {
        Handle(*fabric, stop);
        queue_.Done(*fabric);
      }
    });
  }
  workers.clear();  // waits for them
  const std::lock_guard lock(mutex_);
  sessions_.clear();
  answers_.clear();
}

bool UfmWatch::RunOnce(const std::stop_token& stop) {
  const std::optional<std::string> fabric = queue_.TryGet();
  if (!fabric) return false;
  Handle(*fabric, stop);
  queue_.Done(*fabric);
  return true;
}

std::chrono::nanoseconds UfmWatch::Jittered(std::chrono::nanoseconds span) {
  const std::lock_guard lock(mutex_);
  return operators::Jittered(span, random_);
}

void UfmWatch::Handle(const std::string& fabric, const std::stop_token& stop) {
  const kube::ObjectPtr object = ways_.fabrics.Get({"", fabric});
  const auto read = object == nullptr ? base::Result<crds::Fabric>(base::Fail(Code::kNotFound, "it is gone"))
                                      : ReadBySpec(*object, &crds::FabricFromJson);
  if (!read || !read->ufm || read->deleted_at) {
    bool had = false;
    {
      const std::lock_guard lock(mutex_);
      sessions_.erase(fabric);
      had = answers_.erase(fabric) > 0;
    }
    if (had) ways_.on_answers();
    return;
  }
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Session>& known = sessions_[fabric];
    if (known == nullptr || known->spec != *read->ufm) {
      known = std::make_shared<Session>();
      known->spec = *read->ufm;
      known->began = clock_.Now();
    }
    session = known;
  }
  const base::MonotonicTime now = clock_.Now();
  if (now < session->next_at) return queue_.AddAfter(fabric, session->next_at - now);
  const base::Status asked = Ask(*session, stop);
  if (stop.stop_requested()) return;
  session->answer.connecting = false;
  std::chrono::nanoseconds wait = std::chrono::seconds(session->spec.poll_seconds);
  if (asked) {
    session->failures = 0;
    session->answer.trouble.reset();
    session->answer.read_at = clock_.WallNow();
  } else {
    session->client.reset();
    session->answer.trouble = UfmTroubleOf(asked.error());
    wait = Jittered(WaitAfter(session->failures++, options_.least_retry, options_.most_retry));
    spdlog::debug("Could not ask UFM fabric={} error=\"{}\"", fabric, base::ToString(asked.error()));
  }
  Judge(*session);
  Publish(fabric, *session);
  session->next_at = clock_.Now() + wait;
  queue_.AddAfter(fabric, wait);
}

base::Status UfmWatch::Ask(Session& session, const std::stop_token& stop) {
  if (session.client == nullptr) {
    ASSIGN_OR_RETURN(UfmEndpoint endpoint, ways_.endpoint(session.spec, stop));
    session.client =
        std::make_unique<UfmClient>(ways_.transport(endpoint), endpoint.base_path, options_.call_timeout);
    session.ports_at = {};
  }
  if (clock_.Now() >= session.ports_at) {
    ASSIGN_OR_RETURN(Ports ports, session.client->Ports(stop));
    // As one does that begins and has not looked at its fabric yet: no fabric loses all of its switches.
    if (ports.empty() && session.answer.ports != nullptr && !session.answer.ports->empty())
      return base::Fail(Code::kInvalid, "UFM lists no port of a switch any more, as while it starts");
    session.answer.ports = Shared(session.answer.ports, std::move(ports));
    session.ports_at = clock_.Now() + options_.ports_every;
  }
  auto counters = session.client->Counters(stop);
  if (counters) {
    TakeCounters(session, *std::move(counters));
  } else if (IsOfConnection(counters.error())) {
    return base::Fail(counters.error());
  } else {
    // Who is cabled to whom is known all the same.
    session.answer.counting.trouble = UfmTroubleOf(counters.error());
  }
  return {};
}

void UfmWatch::TakeCounters(Session& session, switches::UfmCounters counters) {
  const base::MonotonicTime now = clock_.Now();
  SwitchCounting& counting = session.answer.counting;
  if (!session.taken.empty() && counters.taken == session.taken) {
    if (now - session.taken_at >= options_.stands_still) {
      counting.trouble = SwitchTrouble{
          "StandsStill",
          fmt::format("UFM has taken no counters since {}; look at its telemetry", session.taken)};
    }
    return;
  }
  const std::size_t unread = counters.unread;
  session.taken = counters.taken;
  session.taken_at = now;
  auto samples = switches::SamplesOf(*session.answer.ports, std::move(counters), now);
  std::size_t counted = 0, cabled = 0;
  std::set<std::string> guids;
  for (const switches::UfmPort& port : *session.answer.ports) {
    guids.insert(port.guid);
    cabled += port.peer.empty() ? 0 : 1;
  }
  for (auto& [guid, kept] : session.windows) {
    if (guids.contains(guid)) kept.listed = now;
  }
  std::erase_if(session.windows, [now](const auto& one) { return now - one.second.listed > kKeepUnlisted; });
  for (const auto& [guid, sample] : samples) {
    counted += sample.ports.size();
    Session::Counted& kept = session.windows[guid];
    kept.listed = now;
    kept.window.Add(sample);
  }
  counting.ports = int(counted);
  counting.trouble.reset();
  if (counted == 0) {
    counting.trouble = SwitchTrouble{"Unreadable",
                                     "UFM counts no port of a switch; look at what its monitoring "
                                     "session 0 has"};
    return;
  }
  counting.counted_at = clock_.WallNow();
  if (!session.counting) session.counting = now;
  // Of some ports, as those of aggregation nodes, it may never count anything.
  if (counted * 2 < cabled) {
    counting.trouble = SwitchTrouble{
        "Partial",
        fmt::format("UFM counts {} ports of switches, and {} have a cable ({} could not be read); look at "
                    "its telemetry",
                    counted, cabled, unread)};
  }
}

// Also of one that has fallen silent: what stands against its ports grows old.
void UfmWatch::Judge(Session& session) {
  const base::MonotonicTime now = clock_.Now();
  UfmAnswer& answer = session.answer;
  std::map<std::string, std::string> systems;
  if (answer.ports != nullptr) {
    for (const switches::UfmPort& port : *answer.ports) systems.emplace(port.guid, port.system);
  }
  answer.sightings.clear();
  answer.counting.noted = 0;
  answer.counting.notes.clear();
  for (const auto& [guid, kept] : session.windows) {
    const auto system = systems.find(guid);
    if (system == systems.end()) continue;  // not listed now
    std::vector<switches::PortSightings> seen = kept.window.Sightings(now);
    for (const switches::PortSightings& one : seen) {
      if (one.note.empty()) continue;
      if (++answer.counting.noted <= int(kMostNotes))
        answer.counting.notes.push_back(fmt::format("{} port {}: {}", system->second, one.port, one.note));
    }
    if (!seen.empty()) answer.sightings.emplace(guid, std::move(seen));
  }
  // As CounterWindow has it: trouble is over after the quiet time, or when nobody has counted it for twice as long.
  answer.primed = session.counting ? now - *session.counting >= switches::kSwitchQuiet
                                   : now - session.began >= 2 * switches::kSwitchQuiet;
}

void UfmWatch::Publish(const std::string& fabric, const Session& session) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    // Its Fabric may have come to name another meanwhile.
    const auto current = sessions_.find(fabric);
    if (current == sessions_.end() || current->second.get() != &session) return;
    const auto before = answers_.find(fabric);
    news = before == answers_.end() || WithoutTimes(before->second) != WithoutTimes(session.answer);
    answers_[fabric] = session.answer;
  }
  if (news) ways_.on_answers();
}

}  // namespace heddle::operators
