#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/cut_utf8.h"
#include "kube/client.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Error;
using std::chrono::milliseconds;
using std::chrono::seconds;

// More than a person reads, less than a log line may be.
constexpr std::size_t kMaxMessageBytes = 1024;
// An API server itself asks for 32 s at most (apiserver util/flowcontrol/dropped_requests_tracker.go, maxRetryAfter).
// Whatever asks for more, as a proxy in front of it, must not keep a daemon away for hours from a server that is back.
constexpr std::int64_t kLongestRetryAfter = 60;

Code CodeOfHttp(int status) {
  switch (status) {
    case 401:
      return Code::kUnauthorized;
    case 403:
      return Code::kForbidden;
    case 404:
      return Code::kNotFound;
    case 405:
    case 406:
    case 415:
    case 501:
      return Code::kUnimplemented;
    case 409:
      return Code::kConflict;
    case 410:
      return Code::kExpired;
    case 413:
      return Code::kTooLarge;
    case 429:
      return Code::kThrottled;
    // Of these the last one is the server's own wait, or a proxy's, and the first that for us; kTimeout is ours.
    case 408:
    case 502:
    case 503:
    case 504:
      return Code::kUnavailable;
    default:
      return status / 100 == 4 ? Code::kInvalid : Code::kInternal;
  }
}

// The server has not reached the resource version that we asked for, or serves an older history: 504 in HTTP,
// but what helps is to list without it (apimachinery, ResourceVersionTooLarge).
bool IsTooLargeResourceVersion(const Json& status) {
  for (const Json& cause : ArrayAt(status, {"details", "causes"})) {
    if (StringAt(cause, {"reason"}) == "ResourceVersionTooLarge") return true;
  }
  return StringAt(status, {"message"}).starts_with("Too large resource version");
}

Code CodeOfStatus(const Json& status, Code fallback) {
  const std::string reason = StringAt(status, {"reason"});
  if (reason == "AlreadyExists") return Code::kAlreadyExists;
  if (reason == "Expired" || reason == "Gone" || IsTooLargeResourceVersion(status)) return Code::kExpired;
  return fallback;
}

std::string Shortened(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  if (text.size() <= kMaxMessageBytes) return text;
  return base::CutUtf8(text, kMaxMessageBytes) + "…";
}

milliseconds Bounded(std::int64_t retry_after_seconds) {
  return seconds(std::min(retry_after_seconds, kLongestRetryAfter));
}

std::optional<milliseconds> RetryAfter(std::string_view text) {
  std::int64_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
  // The other form, an HTTP date, is not what a Kubernetes API server sends. A proxy may send 0; who took that for a
  // wait would ask again without one, for ever.
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || count <= 0) return std::nullopt;
  return Bounded(count);
}

}  // namespace

Error ErrorFromStatus(const Json& status) {
  const int http = int(IntAt(status, {"code"}).value_or(500));
  Error error{CodeOfStatus(status, CodeOfHttp(http)), Shortened(StringAt(status, {"message"})), std::nullopt};
  if (error.message.empty()) error.message = fmt::format("{} (HTTP {})", StringAt(status, {"reason"}), http);
  if (const auto after = IntAt(status, {"details", "retryAfterSeconds"}); after && *after > 0) {
    error.retry_after = Bounded(*after);
  }
  return error;
}

Error ErrorFromResponse(const HttpResponse& response) {
  Json body = Json::parse(response.body, nullptr, false);
  Error error;
  if (body.is_object() && StringAt(body, {"kind"}) == "Status") {
    body["code"] = response.status;
    error = ErrorFromStatus(body);
  } else {
    // Not from an API server: a proxy's page, or plain text.
    error.code = CodeOfHttp(response.status);
    const std::string text = Shortened(response.body.substr(0, 200));
    error.message = fmt::format("HTTP {}{}{}", response.status, text.empty() ? "" : ": ", text);
  }
  if (const auto header = response.Header("Retry-After")) {
    if (const auto after = RetryAfter(*header)) error.retry_after = after;
  }
  return error;
}

}  // namespace heddle::kube
