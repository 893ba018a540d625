#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "kube/http.h"
#include "tests/sim/simulation.h"
#include "tests/support/fake_api_server.h"

namespace heddle::sim {

// What goes wrong between the extenders and the API server. Chances are for one request, or for one write where they
// say so; rates are for one minute of an open watch. Most seeds have a few of them, each by itself and often.
struct Weather {
  double lost_request = 0;               // never arrives: silence until the timeout
  double delayed = 0;                    // arrives up to 40 s late, whether or not somebody still waits
  double reset = 0;                      // the connection breaks before anything happened
  double lost_answer = 0;                // carried out, then silence or a broken connection
  double doubled = 0;                    // carried out twice, as by a proxy that tries again
  double throttled = 0;                  // 429 with Retry-After
  double failing = 0;                    // 500 or 503, nothing happened
  double gateway = 0;                    // 504, and it happened
  double conflict = 0;                   // of a PUT or PATCH: 409 although nothing had changed
  double crash_before = 0;               // of a write: kill -9 as it arrives
  double crash_after = 0;                // of a write: kill -9 when it has been carried out
  double cut = 0;                        // a minute: an open watch breaks
  double gone = 0;                       // a minute: an open watch is told 410 and ends
  double half_open = 0;                  // a minute: an open watch falls silent for good
  double stale = 0;                      // of a list that allows it: from a cache that is some time behind
  double late = 0;                       // an event: is seconds late, and all behind it on its watch
  double replayed = 0;                   // of a watch that goes on: it is told again what it had been told
  std::chrono::milliseconds latency{5};  // one way, on the average
};

// The cluster's network and the face of its API server, for all processes: it takes requests at once, carries them out
// when they arrive, and answers when the answer has come back. Each watch runs behind in its own way; within one
// nothing changes its order. Thread rule: as Simulation.
class Network {
 public:
  Network(Simulation& simulation, test::FakeApiServer& server, const Weather& weather);

  void SetWeather(const Weather& weather) { weather_ = weather; }
  // The API server restarts: every watch breaks, and nothing is answered for so long.
  void TakeServerDown(std::chrono::nanoseconds duration);
  // Every answer is 429 with Retry-After for so long.
  void Throttle(std::chrono::nanoseconds duration);
  // The API server's disk is slow for so long: every write takes 1 to 10 s, and none waits for another.
  void SlowDown(std::chrono::nanoseconds duration);
  // What is older than now cannot be watched from any more, and every watch breaks, so that all of them notice.
  void Compact();
  void CutWatches();

  // Writes that were sent so far, those of Leases left out.
  std::uint64_t writes() const { return writes_; }
  // Whoever sends the write of that number, from 1 on, is killed as it arrives, or once it has been carried out.
  void CrashAtWrite(std::uint64_t number, bool carried_out) {
    crash_at_ = number;
    crash_after_ = carried_out;
  }

  // The next new plan that arrives is held on its way. Its sender dies, or freezes for a while, or waits in vain; other
  // writes to that Gang are answered 500 or 503 until it lands, so that it lands on the version that it was made for.
  // That is as soon as another gang's pod is told one of its nodes, at one of these pods by chance, or after 60 to 90 s.
  void HoldNextPlan(bool on) { hold_next_ = on; }
  bool holds_plan() const { return held_.has_value(); }
  // Of a request that is observed: it was held.
  static bool WasHeld(const test::ApiRequest& request);

  // To be called when an object of that kind has changed.
  void Changed(const kube::Resource& resource);

  // Told of every request that was carried out, before its answer leaves.
  using Observer = std::function<void(const Process& process, const test::ApiRequest& request,
                                      const kube::HttpResponse& response)>;
  void Observe(Observer observer) { observer_ = std::move(observer); }
  // Requests that a process has sent so far, watches too.
  const std::map<const Process*, std::uint64_t>& requests() const { return requests_; }
  std::uint64_t all_requests() const;

 private:
  friend class Link;
  enum class Fate : std::uint8_t {
    kFine,
    kLostRequest,
    kDelayed,
    kReset,
    kLostAnswer,
    kDoubled,
    kThrottled,
    kFailing,
    kGateway,
    kConflict,
    kCrashBefore,
    kCrashAfter
  };
  struct Exchange {
    Thread* waiter = nullptr;
    std::optional<base::Result<kube::HttpResponse>> result;
  };
  struct Watch : Exchange {
    explicit Watch(Process& of) : process(of) {}
    Process& process;
    std::string name;  // "ext-a pods"
    std::string collection;
    std::shared_ptr<test::FakeApiServer::PolledWatch> polled;
    std::deque<std::string> lines;
    base::MonotonicTime last_line{};
    bool accepted = false, pump_due = false, silent = false, closed = false;
    enum class End : std::uint8_t { kOpen, kProper, kCut } end = End::kOpen;
  };

  struct HeldPlan {
    Process* sender;
    kube::HttpRequest request;
    test::ApiRequest taken;
    std::shared_ptr<Exchange> exchange;
    std::string gang;             // its UID
    std::set<std::string> nodes;  // of the plan
  };

  base::Result<kube::HttpResponse> Send(Process& process, const kube::HttpRequest& request,
                                        const std::stop_token& stop);
  base::Result<kube::HttpResponse> Follow(Process& process, const kube::HttpRequest& request,
                                          const kube::ChunkReader& on_chunk, const std::stop_token& stop);
  base::Result<kube::HttpResponse> Read(Watch& watch, std::chrono::milliseconds idle_timeout,
                                        const kube::ChunkReader& on_chunk, const std::stop_token& stop);
  // Waits for the result or `ready`; an error where it ends otherwise.
  base::Status Await(Process& process, Exchange& exchange, const bool* ready, base::MonotonicTime deadline,
                     const std::stop_token& stop);
  void Arrive(Process& process, const kube::HttpRequest& request, const std::shared_ptr<Exchange>& exchange,
              Fate fate);
  void CarryOut(Process& process, const kube::HttpRequest& request, const test::ApiRequest& taken,
                const std::shared_ptr<Exchange>& exchange, Fate fate);
  std::optional<kube::HttpResponse> Refusal(Fate fate);
  bool Hold(Process& process, const kube::HttpRequest& request, const test::ApiRequest& taken,
            const std::shared_ptr<Exchange>& exchange);
  bool TellsAHeldNode(const test::ApiRequest& taken) const;
  void Land(const std::string& when);
  void Accept(const kube::HttpRequest& request, const std::shared_ptr<Watch>& watch, Fate fate);
  kube::HttpRequest FromEarlier(const kube::HttpRequest& request);
  void PlanEnds(const std::shared_ptr<Watch>& watch, std::chrono::seconds timeout);
  void Expire(Watch& watch);
  void SendBookmark(const std::shared_ptr<Watch>& watch);
  void Pump(Watch& watch, bool bookmark);
  void Close(Watch& watch, Watch::End end);
  base::Result<kube::HttpResponse> Serve(const kube::HttpRequest& request, const test::ApiRequest& taken);
  void Answer(const std::shared_ptr<Exchange>& exchange, base::Result<kube::HttpResponse> result);
  Fate DrawFate(const kube::HttpRequest& request);
  std::chrono::nanoseconds Delay();
  bool Chance(double probability) { return random_.Unit() < probability; }

  Simulation& simulation_;
  test::FakeApiServer& server_;
  Weather weather_;
  base::Random random_;
  base::MonotonicTime down_until_{}, throttled_until_{}, slow_until_{};
  std::vector<std::shared_ptr<Watch>> watches_;
  std::map<const Process*, std::uint64_t> requests_;
  std::uint64_t writes_ = 0, crash_at_ = 0;  // crash_at_ 0 = never
  bool crash_after_ = false, hold_next_ = false;
  std::optional<HeldPlan> held_;
  std::uint64_t plans_held_ = 0;
  Observer observer_;
};

// The network as one process sees it.
class Link final : public kube::HttpTransport {
 public:
  Link(Network& network, Process& process) : network_(network), process_(process) {}
  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token stop) override;
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override;

 private:
  Network& network_;
  Process& process_;
};

}  // namespace heddle::sim
