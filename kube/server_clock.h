#pragma once

#include <atomic>

#include "base/clock.h"
#include "kube/client.h"
#include "kube/http.h"

namespace heddle::kube {

// The wall time of the API server, whose stamps stand on what others made: one's own is off by minutes on a host
// without NTP, and a wait that one leader began is ended by the next on another host. Follows the Date of its
// answers where that differs by more than a header of whole seconds and a slow answer explain (2 s); else it is
// one's own. Several servers with unequal clocks make it follow the last that answered. Thread rule: every member
// may be called from any thread.
class ServerClock final : public base::Clock {
 public:
  explicit ServerClock(base::Clock& own) : own_(own) {}

  base::WallTime WallNow() override;
  base::MonotonicTime Now() override { return own_.Now(); }
  bool SleepUntil(base::MonotonicTime deadline, std::stop_token stop) override {
    return own_.SleepUntil(deadline, std::move(stop));
  }

  // An answer to what was sent then, by one's own clock. Returns whether that moved this one.
  bool Saw(const HttpResponse& answer, base::WallTime sent);
  std::chrono::microseconds ahead() const { return std::chrono::microseconds(ahead_.load()); }

 private:
  base::Clock& own_;
  std::atomic<std::int64_t> ahead_{0};  // microseconds that the server is ahead of us
};

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7); nothing for any other form.
std::optional<base::WallTime> ParseHttpDate(std::string_view text);

// Hands every answer of `inner` to the clock. Both must outlive it.
class ClockSettingTransport final : public HttpTransport {
 public:
  ClockSettingTransport(HttpTransport& inner, base::Clock& own, ServerClock& clock, Log log);

  base::Result<HttpResponse> Do(const HttpRequest& request, std::stop_token stop) override;
  base::Result<HttpResponse> Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                    std::stop_token stop) override;

 private:
  HttpTransport& inner_;
  base::Clock& own_;
  ServerClock& clock_;
  const Log log_;
};

}  // namespace heddle::kube
