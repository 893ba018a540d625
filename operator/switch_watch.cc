#include "operator/switch_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "crds/keys.h"
#include "formats/printable.h"
#include "operator/back_off.h"
#include "operator/policy_reads.h"
#include "operator/switch_endpoint.h"
#include "operator/switch_session.h"
#include "operator/switch_status.h"
#include "switches/neighbours.h"

namespace heddle::operators {
namespace {

using base::Code;
using gnmi::Notice;
using kube::Json;
using std::chrono::seconds;

constexpr const char* kOthers = "OTHERS";
constexpr std::size_t kMaxVersion = 128;
// Settings that change are written table by table, and read once they are.
constexpr seconds kChangesSettle(2);
// Readings that each say something else before the next waits for its poll.
constexpr int kMostDoubts = 5;
// Each has two Secrets to ask for, and few switches connect at once.
constexpr int kEndpointReaders = 4;

bool Same(const SwitchAnswer& a, const SwitchAnswer& b) {
  return a.trouble == b.trouble && a.version == b.version && a.chassis_id == b.chassis_id &&
         a.connecting == b.connecting && a.read_at.has_value() == b.read_at.has_value() &&
         a.counting.trouble == b.counting.trouble && a.counting.ports == b.counting.ports &&
         a.counting.flaps == b.counting.flaps &&
         a.counting.counted_at.has_value() == b.counting.counted_at.has_value() &&
         a.counting.notes == b.counting.notes && a.counting.noted == b.counting.noted &&
         a.config == b.config &&  // it stays the same object for as long as the switch says the same
         (a.neighbours == b.neighbours ||
          (a.neighbours != nullptr && b.neighbours != nullptr && *a.neighbours == *b.neighbours));
}

}  // namespace

gnmi::Path PathOf(const char* target, const std::vector<std::string>& elems) {
  gnmi::Path path{.target = target};
  for (const std::string& elem : elems) path.elems.push_back({elem, {}});
  return path;
}

gnmi::GetRequest RequestOf(const char* target, const std::vector<std::vector<std::string>>& paths) {
  gnmi::GetRequest request;
  for (const auto& elems : paths) request.paths.push_back(PathOf(target, elems));
  return request;
}

SwitchWatch::SwitchWatch(base::Clock& clock, base::Random random, Ways ways, Options options)
    : clock_(clock),
      random_(random),
      ways_(std::move(ways)),
      options_(options),
      queue_(clock),
      began_(clock.Now()) {}
SwitchWatch::~SwitchWatch() = default;

void SwitchWatch::Changed(const std::string& fabric_switch) {
  queue_.Add(fabric_switch);
}

SwitchAnswers SwitchWatch::Answers() const {
  const std::lock_guard lock(mutex_);
  return answers_;
}

SwitchSightings SwitchWatch::Sightings() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> claims;
  for (const auto& [object, told] : told_) {
    for (const std::string& name : told.names) ++claims[name];
  }
  SwitchSightings all;
  for (const auto& [object, told] : told_) {
    for (const auto& [name, ports] : told.sightings) {
      if (claims[name] == 1) all[name].insert(ports.begin(), ports.end());
    }
  }
  return all;
}

std::set<std::string> SwitchWatch::Unprimed() const {
  const kube::SortedObjects objects = ways_.fabric_switches.List();
  const base::MonotonicTime now = clock_.Now();
  const auto unprimed = [&](base::MonotonicTime began, const std::optional<base::MonotonicTime>& counting) {
    // As CounterWindow has it: trouble is over after the quiet time, or when nobody has counted it for twice as long.
    return counting ? now - *counting < switches::kSwitchQuiet : now - began < 2 * switches::kSwitchQuiet;
  };
  std::set<std::string> names;
  const std::lock_guard lock(mutex_);
  for (const kube::ObjectPtr& object : objects) {
    const auto told = told_.find(kube::Name(*object));
    std::string name = kube::StringAt(*object, {"spec", "name"});
    if (name.empty()) name = kube::StringAt(*object, {"spec", "chassisId"});
    if (told == told_.end() ? unprimed(began_, {}) : unprimed(told->second.began, told->second.counting))
      names.insert(std::move(name));
  }
  return names;
}

void SwitchWatch::Run(const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex_);
    began_ = clock_.Now();
  }
  std::vector<std::jthread> readers;
  readers.reserve(kEndpointReaders);
  for (int i = 0; i < kEndpointReaders; ++i) readers.emplace_back([this, stop] { ReadEndpoints(stop); });
  for (const kube::ObjectPtr& object : ways_.fabric_switches.List()) queue_.Add(kube::Name(*object));
  while (const std::optional<std::string> name = queue_.Get(stop)) {
    Handle(*name);
    queue_.Done(*name);
  }
  readers.clear();  // waits for them
  sessions_.clear();
  reads_.clear();
  const std::lock_guard lock(mutex_);
  answers_.clear();
  told_.clear();
}

bool SwitchWatch::RunOnce(const std::stop_token& stop) {
  if (ReadOneEndpoint(stop)) return true;
  const std::optional<std::string> name = queue_.TryGet();
  if (!name) return false;
  Handle(*name);
  queue_.Done(*name);
  return true;
}

std::chrono::nanoseconds SwitchWatch::Jittered(std::chrono::nanoseconds span) {
  return operators::Jittered(span, random_);
}

std::function<void(SwitchWatch::Event)> SwitchWatch::Post(const Session& session,
                                                          std::chrono::nanoseconds within) {
  return [this, within, name = session.name, begun = session.begun, mailbox = session.mailbox](Event event) {
    bool first = false;
    {
      const std::lock_guard lock(mailbox->mutex);
      first = mailbox->events.empty();
      mailbox->events.emplace_back(begun, std::move(event));
    }
    if (within.count() == 0) {
      queue_.Add(name);
    } else if (first) {
      queue_.AddAfter(name, within);  // one that is there already brings the thread in time
    }
  };
}

void SwitchWatch::Handle(const std::string& name) {
  const kube::ObjectPtr object = ways_.fabric_switches.Get({"", name});
  std::unique_ptr<Session>& session = sessions_[name];
  // Nearly always it is the switch that says something, a hundred times a minute: the object is read when it changes.
  if (session == nullptr || session->source != object) {
    auto read = object == nullptr
                    ? base::Result<crds::FabricSwitch>(base::Fail(Code::kNotFound, "it is gone"))
                    : ReadBySpec(*object, &crds::FabricSwitchFromJson);
    if (!read || read->deleted_at) return Forget(name);
    if (session == nullptr || session->object.spec != read->spec) {
      if (session != nullptr && session->object.spec.address != read->spec.address) Unsay(name);
      session = std::make_unique<Session>();
      session->name = name;
      session->object = *std::move(read);
      session->answer.address = session->object.spec.address;
      Introduce(*session);
    }
    session->source = object;
  }
  std::vector<std::pair<std::uint64_t, Event>> events;
  {
    const std::lock_guard lock(session->mailbox->mutex);
    events.swap(session->mailbox->events);
  }
  for (auto& [begun, event] : events) {
    if (begun == session->begun) event(*session);
  }
  if (!session->connected && !session->connecting && clock_.Now() >= session->retry_at) Begin(*session);
  Advance(*session);
}

void SwitchWatch::Forget(const std::string& name) {
  sessions_.erase(name);
  Unsay(name);
}

// What stood at another address may be another switch: nothing is known of this one until it answers.
void SwitchWatch::Unsay(const std::string& name) {
  bool had = false;
  {
    const std::lock_guard lock(mutex_);
    told_.erase(name);
    had = answers_.erase(name) > 0;
  }
  if (had) ways_.on_answers();
  if (had) ways_.on_sightings();
}

// What it claims to be counts from now on, whether or not it answers.
void SwitchWatch::Introduce(const Session& session) {
  Told told;
  told.names.insert(NameOf(session.object));
  told.began = clock_.Now();
  const std::lock_guard lock(mutex_);
  told_[session.name] = std::move(told);
}

void SwitchWatch::Begin(Session& session) {
  session.Disconnect();
  session.connecting = true;
  {
    const std::lock_guard lock(reads_mutex_);
    reads_.push_back([this, object = session.object, post = Post(session)](const std::stop_token& stop) {
      auto endpoint = std::make_shared<const base::Result<gnmi::Endpoint>>(ways_.endpoint(object, stop));
      post([this, endpoint](Session& to) { TookEndpoint(to, *endpoint); });
    });
  }
  more_reads_.notify_one();
}

bool SwitchWatch::ReadOneEndpoint(const std::stop_token& stop) {
  std::function<void(const std::stop_token&)> read;
  {
    const std::lock_guard lock(reads_mutex_);
    if (reads_.empty()) return false;
    read = std::move(reads_.front());
    reads_.pop_front();
  }
  read(stop);
  return true;
}

void SwitchWatch::ReadEndpoints(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(reads_mutex_);
      if (!more_reads_.wait(lock, stop, [this] { return !reads_.empty(); })) return;
    }
    ReadOneEndpoint(stop);
  }
}

void SwitchWatch::TookEndpoint(Session& session, const base::Result<gnmi::Endpoint>& endpoint) {
  if (!endpoint) return Fail(session, endpoint.error());
  auto client = ways_.dialer.Dial(*endpoint);
  if (!client) return Fail(session, client.error());
  session.client = *std::move(client);
  // All switches count, followed or not: beyond the bound there is no second connection at all.
  if (sessions_.size() <= options_.most_followed) {
    if (auto second = ways_.dialer.Dial(*endpoint)) session.changes_client = *std::move(second);
  }
  session.client->Capabilities(options_.call_timeout, [this, post = Post(session)](auto said) {
    post([this, said = std::move(said)](Session& to) { TookCapabilities(to, said); });
  });
}

void SwitchWatch::Fail(Session& session, const base::Error& error) {
  session.Disconnect();
  session.retry_at =
      clock_.Now() + Jittered(WaitAfter(session.failures++, options_.least_retry, options_.most_retry));
  session.answer.trouble = TroubleOf(error);
  session.answer.connecting = false;
  session.answer.counting.trouble = SwitchTrouble{"NotAsked", "it does not answer: see Reachable"};
  Judge(session);
}

void SwitchWatch::TookCapabilities(Session& session, const base::Result<gnmi::ServerCapabilities>& said) {
  session.connecting = false;
  if (!said) return Fail(session, said.error());
  const bool is_sonic = std::any_of(said->models.begin(), said->models.end(), [](const gnmi::Model& model) {
    return model.name == switches::kSonicModel;
  });
  if (session.sonic() && !is_sonic) {
    return Fail(
        session,
        {Code::kUnimplemented,
         session.object.spec.address +
             ": speaks gNMI and is no SONiC (its Capabilities lack sonic-db): set dialect to OpenConfig",
         std::nullopt});
  }
  session.connected = true;
  const base::MonotonicTime now = clock_.Now();
  session.config_at = session.ports_at = session.subscribe_at = session.watch_at = now;
  session.queues_at = now + options_.counters_every / 2;  // by then its settings say which
  if (session.sonic()) AskVersion(session);
}

// Everything that is due, and when the next is.
void SwitchWatch::Advance(Session& session) {
  const base::MonotonicTime now = clock_.Now();
  if (!session.connected) {
    if (!session.connecting)
      queue_.AddAfter(session.name, std::max(session.retry_at - now, std::chrono::nanoseconds(1)));
    return;
  }
  if (!session.asking_config && now >= session.config_at) AskHow(session);
  if (session.sonic()) {
    if (session.counters_stream == nullptr && now >= session.subscribe_at) SubscribeCounters(session);
    if (session.MayFollow() && now >= session.watch_at) SubscribeChanges(session);
  }
  if (now >= session.flush_at || (!session.sampling && now >= session.ports_at)) {
    session.flush_at = base::MonotonicTime::max();
    if (session.asking_ports == 0) AskPorts(session, now >= session.queues_at);
  }
  base::MonotonicTime next = session.flush_at;
  if (!session.asking_config) next = std::min(next, session.config_at);
  if (!session.sampling && session.asking_ports == 0) next = std::min(next, session.ports_at);
  if (session.sonic() && session.counters_stream == nullptr) next = std::min(next, session.subscribe_at);
  if (session.sonic() && session.MayFollow()) next = std::min(next, session.watch_at);
  if (next != base::MonotonicTime::max())
    queue_.AddAfter(session.name, std::max(next - now, std::chrono::nanoseconds(1)));
}

void SwitchWatch::AskHow(Session& session) {
  session.asking_config = true;
  if (!session.sonic()) return AskLldp(session);
  AskConfig(session);
}

void SwitchWatch::AskConfig(Session& session) {
  AskChassis(session);  // settings count when they were read twice, and by then it is known whose they are
  // Before it asks: what changes meanwhile is read after two seconds.
  session.config_at = clock_.Now() + Jittered(seconds(session.object.spec.poll_seconds));
  session.tables.clear();
  session.alone.clear();
  std::vector<std::string> tables;
  for (const std::string& table : switches::SonicConfigTables()) {
    if (session.absent.contains(table)) {
      session.tables[table] = "{}";
    } else {
      tables.push_back(table);
    }
  }
  AskTables(session, tables);
}

void SwitchWatch::AskTables(Session& session, const std::vector<std::string>& tables) {
  std::vector<std::vector<std::string>> paths;
  paths.reserve(tables.size());
  for (const std::string& table : tables) paths.push_back({table});
  session.client->Get(RequestOf(switches::kConfigDatabase, paths), options_.call_timeout,
                      [this, tables, post = Post(session)](auto said) {
                        auto kept = std::make_shared<base::Result<std::vector<Notice>>>(std::move(said));
                        post([this, tables, kept](Session& to) { TookTables(to, tables, std::move(*kept)); });
                      });
}

// Until 202311 one table without a row failed the whole Get by NOT_FOUND (sonic-gnmi e784b6f). So each is then asked
// for by itself, once, and those that are refused so have no row. One may have been refused for another reason: they
// are asked for again before settings that are new count, and now and then, since one may be made later.
void SwitchWatch::TookTables(Session& session, const std::vector<std::string>& tables,
                             base::Result<std::vector<Notice>> said) {
  const bool together = tables.size() > 1;
  const bool refused = !said && said.error().code == Code::kNotFound;
  const base::MonotonicTime now = clock_.Now();
  if (refused && together) {
    const std::vector<std::string>& all = switches::SonicConfigTables();
    session.tables.clear();
    session.alone.assign(all.rbegin(), all.rend());
    session.look_at = now + options_.look_again;
  } else if (refused && !switches::EverySonicHas(tables.front())) {
    session.absent.insert(tables.front());
    session.tables[tables.front()] = "{}";
  } else if (!said) {
    return Fail(session, said.error());
  } else {
    if (!together) session.tables.erase(tables.front());  // an answer that cannot be read is not none
    for (Notice& notice : *said) {
      for (gnmi::Update& update : notice.updates) {
        if (update.path.elems.size() == 1 && update.json)
          session.tables[update.path.elems[0].name] = *std::move(update.json);
      }
    }
    if (!together && session.absent.erase(tables.front()) > 0 && session.changes_stream != nullptr) {
      session.changes_stream.reset();  // it does not follow this one
      session.watch_at = now;
    }
    if (together && (session.doubtful != nullptr || now >= session.look_at)) {
      session.alone.assign(session.absent.begin(), session.absent.end());
      session.look_at = now + options_.look_again;
    }
  }
  if (session.alone.empty()) return TookConfig(session);
  const std::string next = std::move(session.alone.back());
  session.alone.pop_back();
  AskTables(session, {next});
}

void SwitchWatch::TookConfig(Session& session) {
  session.asking_config = false;
  auto text = switches::SonicConfigText(session.tables);
  session.tables.clear();
  const auto said_so = [&](const auto& before) {
    return before != nullptr && text.has_value() && switches::SaysSame(*before, *text);
  };
  // The same settings keep their object, and are not read again: whoever compares them looks at it first.
  if (!said_so(session.answer.config)) {
    if (!said_so(session.doubtful)) return Doubt(session, std::move(text));
    session.answer.config = std::move(session.doubtful);
    session.every_queue = !switches::WatchesLossless(session.answer.config->config);
    CountPause(session, switches::LosslessOf(session.answer.config->config));
  }
  session.doubtful.reset();
  session.doubts = 0;
  Heard(session);
  Publish(session);
  AskNeighbours(session);
}

// Only pause of what its settings make lossless is worth counting; of all, where they cannot be read.
void SwitchWatch::CountPause(Session& session, const lossless::PrioritySet& paused) {
  if (session.paused == paused) return;
  session.paused = paused;
  if (session.counters_stream == nullptr) return;
  session.counters_stream.reset();
  session.subscribe_at = clock_.Now();
}

// It says something new, or nothing that can be read.
void SwitchWatch::Doubt(Session& session, base::Result<std::string> text) {
  session.doubtful.reset();
  auto read = text ? switches::ReadSonicText(*std::move(text)) : base::Fail(text.error());
  if (!read) {
    session.answer.trouble = TroubleOf(read.error().In(session.object.spec.address));
    session.answer.connecting = false;
    if (session.answer.config == nullptr) CountPause(session, lossless::PrioritySet{0, 1, 2, 3, 4, 5, 6, 7});
    return Publish(session);
  }
  // Only a patch is made against it.
  if (session.object.spec.mode != crds::SwitchMode::kRender) read->text = {};
  session.doubtful = std::make_shared<const switches::SonicAnswer>(*std::move(read));
  if (++session.doubts <= kMostDoubts) session.config_at = clock_.Now() + kChangesSettle;
}

void SwitchWatch::Heard(Session& session) {
  session.failures = 0;
  session.answer.trouble.reset();
  session.answer.connecting = false;
  session.answer.read_at = clock_.WallNow();
  session.answer.read_ahead = WallAhead(clock_);
}

void SwitchWatch::AskVersion(Session& session) {
  session.client->Get(RequestOf(kOthers, {{"osversion", "build"}}), options_.call_timeout,
                      [this, post = Post(session)](auto said) {
                        if (!said || said->empty() || said->front().updates.empty()) return;
                        const auto& json = said->front().updates.front().json;
                        if (!json) return;
                        const auto value = gnmi::TreeOf(*json);
                        if (!value || !value->is_object()) return;
                        const std::string version =
                            formats::Printable(kube::StringAt(*value, {"build_version"}), kMaxVersion);
                        post([this, version](Session& to) {
                          to.answer.version = version;
                          if (to.answer.read_at) Publish(to);
                        });
                      });
}

void SwitchWatch::SubscribeChanges(Session& session) {
  gnmi::SubscribeRequest request;
  for (const std::string& table : switches::SonicConfigTables()) {
    if (session.absent.contains(table)) continue;  // it would be refused for it
    gnmi::Subscription one;
    one.path = PathOf(switches::kConfigDatabase, {table});
    one.mode = gnmi::Subscription::Mode::kOnChange;
    request.subscriptions.push_back(std::move(one));
  }
  // How things stand comes first, and is asked for anyway.
  auto synced = std::make_shared<std::atomic<bool>>(false);
  const auto post = Post(session);
  session.changes_stream = session.changes_client->Subscribe(
      request, {.notice =
                    [this, post, synced](Notice&&) {
                      if (!*synced) return;
                      post([this](Session& to) {
                        to.config_at = std::min(to.config_at, clock_.Now() + kChangesSettle);
                        to.look_at = clock_.Now();
                      });
                    },
                .synced = [synced] { *synced = true; },
                .ended =
                    [this, post](const base::Status&) {
                      post([this](Session& to) {
                        to.changes_stream.reset();
                        to.watch_at = clock_.Now() + Jittered(seconds(to.object.spec.poll_seconds));
                      });
                    }});
}

void SwitchWatch::Publish(Session& session) {
  const switches::SonicAnswer* const config = session.answer.config.get();
  const std::string& name = NameOf(session.object);
  // One that calls itself otherwise is not whom the hosts see, and who that is nobody knows before it has said so.
  // OpenConfig's LLDP need not say it at all.
  const std::string said = config == nullptr ? "" : config->config.hostname;
  const bool known = session.object.spec.name.empty() ||
                     (said.empty() ? !session.sonic() : said == session.object.spec.name);
  SwitchSightings sightings;
  if (known) {
    std::map<std::string, std::string> aliases;  // by name
    if (config != nullptr && !session.sightings.empty()) {
      for (const auto* ports : {&config->config.ports, &config->config.bare}) {
        for (const formats::SonicPort& port : *ports) aliases[port.name] = port.alias;
      }
    }
    const std::string& declared = session.object.spec.chassis_id;
    const std::string& chassis = declared.empty() ? session.answer.chassis_id : declared;
    for (const switches::PortSightings& one : session.sightings) {
      if (one.sightings.empty()) continue;  // a note
      sightings[name][one.port] = {aliases[one.port], one.sightings, chassis};
    }
  }
  bool changed = false, seen = false;
  {
    const std::lock_guard lock(mutex_);
    SwitchAnswer& before = answers_[session.name];
    changed = !Same(before, session.answer);
    before = session.answer;
    Told& told = told_[session.name];
    told.names = {name};
    if (!said.empty()) told.names.insert(said);
    seen = told.sightings != sightings;
    told.sightings = std::move(sightings);
    if (!told.counting && session.answer.counting.counted_at) told.counting = clock_.Now();
  }
  if (changed) ways_.on_answers();
  if (seen) ways_.on_sightings();
}

}  // namespace heddle::operators
