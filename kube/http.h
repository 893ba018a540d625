#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::kube {

struct HttpHeader {
  std::string name;
  std::string value;
  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // path and query, already percent-encoded: "/api/v1/pods?limit=500"
  std::vector<HttpHeader> headers;
  std::string body;
  // Do: until the whole answer is here. Stream: until the answer's headers are here.
  std::chrono::milliseconds timeout{30'000};
  // Stream only: the longest silence between two chunks, so that a half-open connection ends.
  std::chrono::milliseconds idle_timeout{150'000};
};

struct HttpResponse {
  int status = 0;
  std::vector<HttpHeader> headers;
  std::string body;

  // The first header of that name, in any letter case.
  std::optional<std::string> Header(std::string_view name) const;
};

// Returns false to end the stream.
using ChunkReader = std::function<bool(std::string_view chunk)>;

// One API server. Errors are of the connection (kUnavailable, kTimeout, kCancelled, kTooLarge, kUnauthorized
// where credentials cannot be had); any HTTP status is a response. Thread rule: every member may be called
// from any thread, and calls run side by side.
class HttpTransport {
 public:
  HttpTransport() = default;
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;
  virtual ~HttpTransport() = default;

  [[nodiscard]] virtual base::Result<HttpResponse> Do(const HttpRequest& request, std::stop_token stop) = 0;

  // Hands a 2xx body to `on_chunk` piece by piece, on the calling thread: first one empty chunk as soon as
  // the headers are here, then the body as it comes. Returns when the server ended the body properly or
  // on_chunk asked to end; a body that is cut short is kUnavailable, silence kTimeout, stop kCancelled. A
  // body of another status is collected into the response.
  [[nodiscard]] virtual base::Result<HttpResponse> Stream(const HttpRequest& request,
                                                          const ChunkReader& on_chunk,
                                                          std::stop_token stop) = 0;
};

// Percent-encodes all but RFC 3986's unreserved characters.
std::string PercentEncode(std::string_view text);

}  // namespace heddle::kube
