#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "kube/client.h"
#include "kube/http.h"

namespace heddle::cli {

// How long a command waits for one answer of the API server where nothing else is said. Pages of 500 objects
// come in a second or two, also from afar; who gets none for so long has a server that hangs, or a network that
// swallows.
inline constexpr std::chrono::seconds kRequestPatience{20};

// After so long without an answer the person at the terminal is told who is waited for.
inline constexpr std::chrono::seconds kSilence{2};

// What --request-timeout takes, as that of kubectl: "30s", "2m", "45" (seconds), and "0", which is an hour
// here, as is all that is longer. kInvalid for everything else.
[[nodiscard]] base::Result<std::chrono::milliseconds> ParseRequestTimeout(std::string_view text);

struct Flags;

// The bounds on one request of a command. Requires: flags.request_timeout is empty or one that
// ParseRequestTimeout takes. `release` has the client's own where nothing is said: it changes things, and runs
// where nobody looks on.
[[nodiscard]] kube::ClientOptions ClientOptionsOf(const Flags& flags);

// Hands requests on to `inner`, and says which server is waited for once one of them has had no answer for
// kSilence: one sentence with its line's end, and one only however many requests are slow. `say` is called on
// another thread, while the request goes on; empty = nobody reads it. `inner` and `clock` must outlive it.
// Thread rule: as HttpTransport.
class SayingTransport final : public kube::HttpTransport {
 public:
  using Say = std::function<void(const std::string&)>;

  SayingTransport(kube::HttpTransport& inner, base::Clock& clock, std::string server, Say say);

  base::Result<kube::HttpResponse> Do(const kube::HttpRequest& request, std::stop_token stop) override;
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader& on_chunk,
                                          std::stop_token stop) override;

 private:
  kube::HttpTransport& inner_;
  base::Clock& clock_;
  const std::string server_;
  const Say say_;
  std::atomic<bool> said_{false};
};

// Writes on standard error where that is a terminal; elsewhere nothing to call, as a script would find the line
// among its errors.
SayingTransport::Say SayOnTerminal();

}  // namespace heddle::cli
