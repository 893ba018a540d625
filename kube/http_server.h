#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/http.h"

namespace heddle::kube {

// What somebody asks of us.
struct ServedRequest {
  std::string method;  // "POST"
  std::string path;    // "/filter", without the query
  std::string body;
  bool body_too_large = false;  // it was longer than the server's limit and is not in `body`
  std::string query;            // what stands behind the path's '?', still percent-encoded
  std::string host;             // the Host header as it came; empty = none
};

struct ServedAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;                 // of a HEAD only its length is sent
  std::vector<HttpHeader> headers;  // beside those of the connection, the type and the length
};

// Serves a daemon's own endpoints over plain HTTP. Answers carry a Content-Length and nothing after the body:
// with chunked coding Go's clients drop the connection after each call (facts 1.2).
class HttpServer {
 public:
  // Runs on the server's threads, several at a time. What it throws is answered with 500.
  using Handler = std::function<ServedAnswer(const ServedRequest&)>;

  // listen: "127.0.0.1:8010", or ":8010" for all addresses; port 0 takes a free one. max_body in bytes.
  // Errors: kInvalid where the address cannot be read, kUnavailable where it cannot be had.
  [[nodiscard]] static base::Result<std::unique_ptr<HttpServer>> Start(const std::string& listen,
                                                                       std::size_t max_body,
                                                                       const Handler& handler);
  ~HttpServer();  // waits for requests in progress

  const std::string& address() const { return address_; }  // "127.0.0.1:38211"

 private:
  class Listener;
  HttpServer(std::string address, std::unique_ptr<Listener> listener);
  std::string address_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace heddle::kube
