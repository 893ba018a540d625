#include "cli/patience.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>
#include <utility>

#include "cli/complete_names.h"
#include "cli/flags.h"
#include "crds/parallelism.h"

namespace heddle::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLongest = std::chrono::hours(1);  // what is written on the connection gives up then, too

// " (20 s at most; …)", or nothing where there is next to no limit.
std::string AtMost(milliseconds limit) {
  if (limit >= kLongest) return "";
  return fmt::format(" ({} s at most; --request-timeout sets it)", limit.count() / 1000);
}

}  // namespace

base::Result<milliseconds> ParseRequestTimeout(std::string_view text) {
  const auto limited = [](seconds limit) -> milliseconds {
    return limit.count() == 0 ? kLongest : std::min(limit, kLongest);
  };
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 0)
    return limited(seconds(number));
  const auto time = crds::ParseWait(text);
  if (time) return limited(*time);
  return base::Fail(base::Code::kInvalid,
                    fmt::format("--request-timeout \"{}\": write a time with its unit, as 5s, 2m or 1h, or 0 "
                                "for an hour",
                                text));
}

kube::ClientOptions ClientOptionsOf(const Flags& flags) {
  kube::ClientOptions options{.user_agent = "kubectl-heddle"};
  if (flags.command == Command::kComplete) {
    options.request_timeout = options.list_timeout = kCompletionPatience;
  } else if (!flags.request_timeout.empty() || flags.command != Command::kRelease) {
    const auto given = ParseRequestTimeout(flags.request_timeout);
    options.request_timeout = options.list_timeout = given ? *given : milliseconds(kRequestPatience);
  }
  return options;
}

SayingTransport::Say SayOnTerminal() {
  if (isatty(STDERR_FILENO) == 0) return nullptr;
  return [](const std::string& line) { std::fputs(line.c_str(), stderr); };
}

SayingTransport::SayingTransport(kube::HttpTransport& inner, base::Clock& clock, std::string server, Say say)
    : inner_(inner), clock_(clock), server_(std::move(server)), say_(std::move(say)) {}

base::Result<kube::HttpResponse> SayingTransport::Do(const kube::HttpRequest& request, std::stop_token stop) {
  if (!say_ || said_) return inner_.Do(request, std::move(stop));
  // Ends with the request: its own stop is asked for when this leaves.
  const std::jthread watching([this, limit = request.timeout](const std::stop_token& over) {
    if (!clock_.SleepFor(kSilence, over) || said_.exchange(true)) return;
    say_(fmt::format("Waiting for an answer of {}{}\n", server_, AtMost(limit)));
  });
  return inner_.Do(request, std::move(stop));
}

// A watch is silent as long as nothing happens.
base::Result<kube::HttpResponse> SayingTransport::Stream(const kube::HttpRequest& request,
                                                         const kube::ChunkReader& on_chunk,
                                                         std::stop_token stop) {
  return inner_.Stream(request, on_chunk, std::move(stop));
}

}  // namespace heddle::cli
