#include "kube/status_endpoints.h"

namespace heddle::kube {

std::optional<ServedAnswer> AnswerStatus(const ServedRequest& request, const StatusEndpoints& endpoints) {
  const std::string& path = request.path;
  if (path != "/metrics" && path != "/healthz" && path != "/readyz") return std::nullopt;
  if (request.method != "GET") return ServedAnswer{.status = 405, .body = path + " takes GET only\n"};
  if (path == "/healthz") return ServedAnswer{.body = "ok\n"};
  if (path == "/metrics") {
    return ServedAnswer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                        .body = endpoints.metrics()};
  }
  const std::string why = endpoints.not_ready();
  if (why.empty()) return ServedAnswer{.body = "ok\n"};
  return ServedAnswer{.status = 503, .body = "not ready: " + why + "\n"};
}

}  // namespace heddle::kube
