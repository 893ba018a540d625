#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "extender/verbs.h"

namespace heddle::extender {

// Serves kube-scheduler's verbs, health and metrics over plain HTTP; meant for loopback, beside the
// scheduler. The handler runs on the server's threads. Answers carry a Content-Length and nothing after the
// JSON: with chunked coding Go drops the connection after each call (facts 1.2).
class HttpServer {
 public:
  using Handler =
      std::function<VerbAnswer(const std::string& method, const std::string& path, const std::string& body)>;

  // "127.0.0.1:8010"; port 0 takes a free one.
  [[nodiscard]] static base::Result<std::unique_ptr<HttpServer>> Start(const std::string& listen,
                                                                       const Handler& handler);
  ~HttpServer();  // waits for requests in progress

  const std::string& address() const { return address_; }  // "127.0.0.1:38211"

 private:
  class Listener;
  HttpServer(std::string address, std::unique_ptr<Listener> listener);
  std::string address_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace heddle::extender
