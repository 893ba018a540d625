#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kube/http_server.h"

namespace heddle::kube {

// What kubelet and Prometheus ask every daemon. Both run on the server's threads.
struct StatusEndpoints {
  std::function<std::string()> metrics;    // the text exposition format
  std::function<std::string()> not_ready;  // empty = ready, else a sentence why not
};

// Answers /metrics, /healthz (the process runs) and /readyz; any other path is not its own and gets nothing.
std::optional<ServedAnswer> AnswerStatus(const ServedRequest& request, const StatusEndpoints& endpoints);

}  // namespace heddle::kube
