#include "tests/sim/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "crds/keys.h"
#include "extender/resources.h"

namespace heddle::sim {
namespace {

using base::Code;
using base::Fail;
using kube::HttpRequest;
using kube::HttpResponse;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

auto Gone() {
  return Fail(Code::kUnavailable, "the process is gone");
}

nanoseconds Seconds(double count) {
  return nanoseconds(std::int64_t(count * 1e9));
}

constexpr const char* kHeldMark = "sim-held";  // in the query of a request that was held

// Of a release of a pod, what it writes to that annotation; "" = nothing.
std::string AnnotationIn(const kube::Json& patch, std::string_view key) {
  std::string path = "/metadata/annotations/" + std::string(key);
  path.replace(path.rfind('/'), 1, "~1");
  if (!patch.is_array()) return {};
  for (const kube::Json& op : patch) {
    if (kube::StringAt(op, {"path"}) == path) return kube::StringAt(op, {"value"});
  }
  return {};
}

}  // namespace

base::Result<HttpResponse> Link::Do(const HttpRequest& request, std::stop_token stop) {
  return network_.Send(process_, request, stop);
}

base::Result<HttpResponse> Link::Stream(const HttpRequest& request, const kube::ChunkReader& on_chunk,
                                        std::stop_token stop) {
  return network_.Follow(process_, request, on_chunk, stop);
}

Network::Network(Simulation& simulation, test::FakeApiServer& server, const Weather& weather)
    : simulation_(simulation), server_(server), weather_(weather), random_(simulation.Fork()) {}

void Network::TakeServerDown(nanoseconds duration) {
  simulation_.Say(
      fmt::format("server down for {} ms", std::chrono::duration_cast<milliseconds>(duration).count()));
  down_until_ = std::max(down_until_, simulation_.now() + duration);
  CutWatches();
}

void Network::Throttle(nanoseconds duration) {
  simulation_.Say(
      fmt::format("server throttles for {} ms", std::chrono::duration_cast<milliseconds>(duration).count()));
  throttled_until_ = std::max(throttled_until_, simulation_.now() + duration);
}

void Network::SlowDown(nanoseconds duration) {
  simulation_.Say(
      fmt::format("the disk is slow for {} ms", std::chrono::duration_cast<milliseconds>(duration).count()));
  slow_until_ = std::max(slow_until_, simulation_.now() + duration);
}

void Network::Compact() {
  simulation_.Say("compact");
  server_.ExpireHistory();
  CutWatches();
}

void Network::CutWatches() {
  const auto open = watches_;
  for (const auto& watch : open) Close(*watch, Watch::End::kCut);
}

std::uint64_t Network::all_requests() const {
  std::uint64_t all = 0;
  for (const auto& [process, count] : requests_) all += count;
  return all;
}

nanoseconds Network::Delay() {
  // Mostly near the average, now and then many times as long.
  const double factor = Chance(0.05) ? 20 * random_.Unit() : 0.5 + random_.Unit();
  return Seconds(double(weather_.latency.count()) * factor / 1e3);
}

Network::Fate Network::DrawFate(const HttpRequest& request) {
  const bool write = request.method != "GET", change = request.method == "PUT" || request.method == "PATCH";
  const std::pair<Fate, double> chances[] = {
      {Fate::kLostRequest, weather_.lost_request},
      {Fate::kDelayed, weather_.delayed},
      {Fate::kReset, weather_.reset},
      {Fate::kLostAnswer, weather_.lost_answer},
      {Fate::kDoubled, weather_.doubled},
      {Fate::kThrottled, weather_.throttled},
      {Fate::kFailing, weather_.failing},
      {Fate::kGateway, weather_.gateway},
      {Fate::kConflict, change ? weather_.conflict : 0},
      {Fate::kCrashBefore, write ? weather_.crash_before : 0},
      {Fate::kCrashAfter, write ? weather_.crash_after : 0},
  };
  double drawn = random_.Unit();
  if (write && request.target.find("/leases") == std::string::npos && ++writes_ == crash_at_)
    return crash_after_ ? Fate::kCrashAfter : Fate::kCrashBefore;
  for (const auto& [fate, chance] : chances) {
    if (drawn < chance) return fate;
    drawn -= chance;
  }
  return Fate::kFine;
}

base::Status Network::Await(Process& process, Exchange& exchange, const bool* ready,
                            base::MonotonicTime deadline, const std::stop_token& stop) {
  while (!exchange.result && (ready == nullptr || !*ready)) {
    exchange.waiter = simulation_.running();
    const Woke woke = simulation_.Wait(deadline, stop);
    exchange.waiter = nullptr;
    if (process.dead()) return Gone();
    if (exchange.result || (ready != nullptr && *ready)) break;
    if (woke == Woke::kStopped) return Fail(Code::kCancelled, "stopped");
    if (woke == Woke::kDeadline) return Fail(Code::kTimeout, "no answer in time");
  }
  return {};
}

base::Result<HttpResponse> Network::Send(Process& process, const HttpRequest& request,
                                         const std::stop_token& stop) {
  if (process.dead()) return Gone();
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  ++requests_[&process];
  auto exchange = std::make_shared<Exchange>();
  const Fate fate = DrawFate(request);
  if (fate == Fate::kReset) {
    simulation_.After(Delay(), [this, exchange] {
      Answer(exchange, Fail(Code::kUnavailable, "connection reset by peer"));
    });
  } else if (fate != Fate::kLostRequest) {
    const nanoseconds more = fate == Fate::kDelayed ? Seconds(40 * random_.Unit()) : nanoseconds(0);
    simulation_.After(Delay() + more, [=, this, &process] { Arrive(process, request, exchange, fate); });
  }
  TRY(Await(process, *exchange, nullptr, simulation_.now() + request.timeout, stop));
  return *std::move(exchange->result);
}

// What is answered without anything being done.
std::optional<HttpResponse> Network::Refusal(Fate fate) {
  if (fate == Fate::kThrottled || simulation_.now() < throttled_until_) {
    HttpResponse response = test::StatusResponse(429, "", "too many requests, please try again later");
    response.headers.push_back({"Retry-After", std::to_string(1 + random_.Below(5))});
    return response;
  }
  if (fate == Fate::kFailing) {
    HttpResponse response = test::StatusResponse(Chance(0.5) ? 500 : 503, "", "etcdserver: leader changed");
    if (Chance(0.3)) response.headers.push_back({"Retry-After", "1"});
    return response;
  }
  if (fate == Fate::kConflict) return test::StatusResponse(409, "", "the object has been modified");
  return std::nullopt;
}

void Network::Arrive(Process& process, const HttpRequest& request, const std::shared_ptr<Exchange>& exchange,
                     Fate fate) {
  if (simulation_.now() < down_until_) {
    return Answer(exchange, Fail(Code::kUnavailable, "connection refused"));
  }
  const test::ApiRequest taken = test::TakeApart(request);
  if (fate == Fate::kCrashBefore) {
    simulation_.Say(process.name() + " dies before " + taken.Line());
    return simulation_.Kill(process);
  }
  if (Hold(process, request, taken, exchange)) return;
  const bool behind = held_ && taken.write() && taken.plural == "gangs" && taken.key == held_->taken.key;
  if (auto refused = Refusal(behind ? Fate::kFailing : fate)) {
    simulation_.Say(fmt::format("{} {} -> {} (refused)", process.name(), taken.Line(), refused->status));
    simulation_.After(Delay(), [this, exchange, answer = *std::move(refused)] { Answer(exchange, answer); });
    return;
  }
  if (taken.write() && simulation_.now() < slow_until_) {
    simulation_.After(Seconds(1 + 9 * random_.Unit()),
                      [=, this, &process] { CarryOut(process, request, taken, exchange, fate); });
    return;
  }
  CarryOut(process, request, taken, exchange, fate);
}

void Network::CarryOut(Process& process, const HttpRequest& request, const test::ApiRequest& taken,
                       const std::shared_ptr<Exchange>& exchange, Fate fate) {
  const auto back = [this, &exchange](base::Result<HttpResponse> result) {
    simulation_.After(Delay(), [this, exchange, result = std::move(result)] { Answer(exchange, result); });
  };
  base::Result<HttpResponse> result;
  for (int times = fate == Fate::kDoubled ? 2 : 1; times > 0; --times) {
    result = Serve(request, taken);
    simulation_.Say(fmt::format("{} {} -> {}", process.name(), taken.Line(), result ? result->status : 0));
    if (result && observer_) observer_(process, taken, *result);
  }
  if (held_ && result && result->status == 200 && TellsAHeldNode(taken) && Chance(0.5)) {
    Land("as another gang is let go");
  }
  server_.ClearRequests();
  if (fate == Fate::kCrashAfter) {
    simulation_.Say(process.name() + " dies after " + taken.Line());
    return simulation_.Kill(process);
  }
  if (fate == Fate::kLostAnswer) {
    simulation_.Say("the answer is lost");
    if (Chance(0.5)) back(Fail(Code::kUnavailable, "connection reset by peer"));
    return;
  }
  if (fate == Fate::kGateway) return back(test::StatusResponse(504, "", "request did not complete in time"));
  back(std::move(result));
}

bool Network::Hold(Process& process, const HttpRequest& request, const test::ApiRequest& taken,
                   const std::shared_ptr<Exchange>& exchange) {
  if (!hold_next_ || held_ || taken.method != "PUT" || taken.plural != "gangs" ||
      taken.subresource != "status") {
    return false;
  }
  const kube::Json body = taken.json();
  const auto there = server_.Find(extender::kGangs, taken.key);
  const auto epoch = kube::IntAt(body, {"status", "placement", "epoch"});
  if (!epoch || !there || kube::IntAt(*there, {"status", "placement", "epoch"}) == epoch) return false;
  hold_next_ = false;
  held_ = HeldPlan{.sender = &process,
                   .request = request,
                   .taken = taken,
                   .exchange = exchange,
                   .gang = kube::Uid(body),
                   .nodes = {}};
  for (const kube::Json& node : kube::ArrayAt(body, {"status", "placement", "nodeNames"})) {
    if (node.is_string()) held_->nodes.insert(node.get<std::string>());
  }
  simulation_.Say(fmt::format("the plan of {} by {} is held", taken.key.ToString(), process.name()));
  simulation_.After(Seconds(60 + 30 * random_.Unit()), [this, number = ++plans_held_] {
    if (held_ && number == plans_held_) Land("after all");
  });
  const std::uint64_t what = random_.Below(3);
  if (what == 0) {
    simulation_.Kill(process);
  } else if (what == 1) {
    simulation_.Freeze(process, Seconds(5 + 25 * random_.Unit()));
  }
  return true;
}

bool Network::TellsAHeldNode(const test::ApiRequest& taken) const {
  if (taken.method != "PATCH" || taken.plural != "pods") return false;
  const kube::Json patch = taken.json();
  const std::string gang = AnnotationIn(patch, crds::keys::kGangUid);
  return !gang.empty() && gang != held_->gang &&
         held_->nodes.contains(AnnotationIn(patch, crds::keys::kNode));
}

void Network::Land(const std::string& when) {
  HeldPlan held = *std::move(held_);
  held_.reset();
  held.taken.query[kHeldMark] = "true";
  auto result = Serve(held.request, held.taken);
  simulation_.Say(fmt::format("the plan of {} by {} lands {} -> {}", held.taken.key.ToString(),
                              held.sender->name(), when, result ? result->status : 0));
  if (result && observer_) observer_(*held.sender, held.taken, *result);
  simulation_.After(
      Delay(), [this, exchange = held.exchange, answer = std::move(result)] { Answer(exchange, answer); });
}

bool Network::WasHeld(const test::ApiRequest& request) {
  return request.query.contains(kHeldMark);
}

base::Result<HttpResponse> Network::Serve(const HttpRequest& request, const test::ApiRequest& taken) {
  if (taken.method == "GET" && taken.key.name.empty() && Chance(weather_.stale)) {
    const std::int64_t newest = std::atoll(server_.resource_version().c_str());
    server_.set_cached_version(std::max<std::int64_t>(1, newest - std::int64_t(random_.Below(60))));
  }
  auto result = server_.Do(request, {});
  server_.set_cached_version(0);
  return result;
}

void Network::Answer(const std::shared_ptr<Exchange>& exchange, base::Result<HttpResponse> result) {
  exchange->result = std::move(result);
  if (exchange->waiter != nullptr) simulation_.Wake(*exchange->waiter);
}

base::Result<HttpResponse> Network::Follow(Process& process, const HttpRequest& request,
                                           const kube::ChunkReader& on_chunk, const std::stop_token& stop) {
  if (process.dead()) return Gone();
  if (stop.stop_requested()) return Fail(Code::kCancelled, "stopped");
  ++requests_[&process];
  auto watch = std::make_shared<Watch>(process);
  watch->name = process.name() + " " + test::TakeApart(request).plural;
  const Fate fate = DrawFate(request);
  if (fate == Fate::kReset) {
    simulation_.After(Delay(),
                      [this, watch] { Answer(watch, Fail(Code::kUnavailable, "connection reset by peer")); });
  } else if (fate != Fate::kLostRequest) {
    simulation_.After(Delay(), [=, this] { Accept(request, watch, fate); });
  }
  const base::Status opened =
      Await(process, *watch, &watch->accepted, simulation_.now() + request.timeout, stop);
  if (!opened) {
    Close(*watch, Watch::End::kCut);
    return Fail(opened.error());
  }
  if (watch->result) return *std::move(watch->result);
  auto read = Read(*watch, request.idle_timeout, on_chunk, stop);
  Close(*watch, Watch::End::kCut);
  return read;
}

void Network::Accept(const HttpRequest& request, const std::shared_ptr<Watch>& watch, Fate fate) {
  if (watch->closed) return;
  if (simulation_.now() < down_until_) {
    return Answer(watch, Fail(Code::kUnavailable, "connection refused"));
  }
  std::optional<HttpResponse> refused = Refusal(fate);
  if (!refused) {
    const bool again = Chance(weather_.replayed);
    refused = server_.Open(again ? FromEarlier(request) : request, watch->polled);
  }
  simulation_.Say(fmt::format("{} WATCH -> {}", watch->name, refused ? refused->status : 200));
  if (refused) {
    simulation_.After(Delay(), [this, watch, answer = *std::move(refused)] { Answer(watch, answer); });
    return;
  }
  const test::ApiRequest taken = test::TakeApart(request);
  watch->collection = taken.plural;
  watches_.push_back(watch);
  const auto timeout = taken.query.find("timeoutSeconds");
  PlanEnds(watch, seconds(timeout == taken.query.end() ? 1800 : std::atoi(timeout->second.c_str())));
  simulation_.After(Delay(), [this, watch] {
    watch->accepted = true;
    Pump(*watch, false);
  });
}

// A watch that goes on from some time before the version it asks for, so that its events come a second time: as from a
// proxy that had them buffered, or another server of the same cluster.
HttpRequest Network::FromEarlier(const HttpRequest& request) {
  constexpr std::string_view kWord = "resourceVersion=";
  constexpr std::int64_t kFirst = 1000;  // the fake's first version
  HttpRequest earlier = request;
  std::size_t at = request.target.find(kWord);
  while (at != std::string::npos && request.target[at - 1] != '?' && request.target[at - 1] != '&')
    at = request.target.find(kWord, at + 1);
  const bool goes_on =
      at != std::string::npos && request.target.find("sendInitialEvents=true") == std::string::npos;
  if (!goes_on) return earlier;
  const std::size_t begin = at + kWord.size(),
                    end = std::min(request.target.find('&', begin), request.target.size());
  const std::int64_t version = std::atoll(request.target.substr(begin, end - begin).c_str());
  if (version <= kFirst) return earlier;
  const std::int64_t back = std::min<std::int64_t>(version - kFirst, std::int64_t(random_.Below(40)));
  earlier.target.replace(begin, end - begin, std::to_string(version - back));
  return earlier;
}

void Network::PlanEnds(const std::shared_ptr<Watch>& watch, seconds timeout) {
  simulation_.After(timeout, [this, watch] {
    Pump(*watch, false);
    Close(*watch, Watch::End::kProper);
  });
  SendBookmark(watch);
  // The first of its minutes in which something befalls it.
  for (int minute = 0; minute * 60 < timeout.count(); ++minute) {
    const bool cut = Chance(weather_.cut), silent = Chance(weather_.half_open), gone = Chance(weather_.gone);
    if (!cut && !silent && !gone) continue;
    simulation_.After(Seconds(60 * (minute + random_.Unit())), [this, watch, cut, gone] {
      if (watch->closed) return;
      if (gone) return Expire(*watch);
      simulation_.Say(watch->name + (cut ? " watch cut" : " watch falls silent"));
      if (cut) return Close(*watch, Watch::End::kCut);
      watch->silent = true;
    });
    return;
  }
}

// What was compacted while the watch lagged: the server says so in the middle of it.
void Network::Expire(Watch& watch) {
  if (watch.silent) return;
  simulation_.Say(watch.name + " watch is told 410");
  const std::string status = test::StatusResponse(410, "Expired", "too old resource version").body;
  watch.lines.push_back(R"({"type":"ERROR","object":)" + status + "}\n");
  watch.last_line = simulation_.now();
  Close(watch, Watch::End::kProper);
}

void Network::SendBookmark(const std::shared_ptr<Watch>& watch) {
  simulation_.After(seconds(60), [this, watch] {
    if (watch->closed) return;
    Pump(*watch, true);
    SendBookmark(watch);
  });
}

void Network::Changed(const kube::Resource& resource) {
  for (const auto& watch : watches_) {
    if (watch->collection != resource.plural || watch->pump_due || watch->silent) continue;
    watch->pump_due = true;
    const nanoseconds late = Chance(weather_.late) ? Seconds(10 * random_.Unit()) : nanoseconds(0);
    simulation_.After(Delay() + late, [this, watch] {
      watch->pump_due = false;
      Pump(*watch, false);
    });
  }
}

void Network::Pump(Watch& watch, bool bookmark) {
  if (watch.closed || watch.silent || !watch.accepted) return;
  for (std::string& line : server_.Take(*watch.polled, bookmark)) watch.lines.push_back(std::move(line));
  watch.last_line = simulation_.now();
  if (test::FakeApiServer::Ended(*watch.polled)) Close(watch, Watch::End::kProper);
  if (watch.waiter != nullptr) simulation_.Wake(*watch.waiter);
}

void Network::Close(Watch& watch, Watch::End end) {
  if (watch.closed) return;
  watch.closed = true;
  watch.end = end;
  std::erase_if(watches_, [&watch](const auto& one) { return one.get() == &watch; });
  if (watch.waiter != nullptr) simulation_.Wake(*watch.waiter);
}

base::Result<HttpResponse> Network::Read(Watch& watch, milliseconds idle_timeout,
                                         const kube::ChunkReader& on_chunk, const std::stop_token& stop) {
  if (!on_chunk("")) return HttpResponse{200, {}, ""};
  for (;;) {
    while (!watch.lines.empty()) {
      const std::string line = std::move(watch.lines.front());
      watch.lines.pop_front();
      if (!on_chunk(line)) return HttpResponse{200, {}, ""};
    }
    if (watch.process.dead()) return Gone();
    if (watch.end == Watch::End::kProper) return HttpResponse{200, {}, ""};
    if (watch.end == Watch::End::kCut) return Fail(Code::kUnavailable, "unexpected end of the stream");
    watch.waiter = simulation_.running();
    const Woke woke = simulation_.Wait(watch.last_line + idle_timeout, stop);
    watch.waiter = nullptr;
    if (watch.process.dead()) return Gone();
    if (!watch.lines.empty()) continue;
    if (woke == Woke::kStopped) return Fail(Code::kCancelled, "stopped");
    if (woke == Woke::kDeadline) return Fail(Code::kTimeout, "the watch has been silent for too long");
  }
}

}  // namespace heddle::sim
