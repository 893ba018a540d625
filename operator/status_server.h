#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace heddle::operators {

// Answers /metrics, /healthz (the process runs) and /readyz (its caches are filled) over plain HTTP.
class StatusServer {
 public:
  struct Answers {
    std::function<std::string()> metrics;
    std::function<bool()> ready;
  };
  // listen: "127.0.0.1:8081", ":8081" for all addresses. Port 0 is refused: nobody could find it.
  // "" is no server, and null.
  [[nodiscard]] static base::Result<std::unique_ptr<StatusServer>> Start(const std::string& listen,
                                                                         Answers answers);
  ~StatusServer();

 private:
  class Listener;
  explicit StatusServer(std::unique_ptr<Listener> listener);
  std::unique_ptr<Listener> listener_;
};

}  // namespace heddle::operators
