#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/config.h"
#include "kube/server_url.h"

namespace heddle::kube {

// What an environment (NAME=value) says of the way to a server.
struct EnvironmentProxy {
  std::string url;       // "http://proxy:3128"; the scheme is http:// where none was written
  std::string variable;  // that named it: "HTTPS_PROXY"
};

// As Go's programs choose (golang.org/x/net/http/httpproxy, proxy.go): $HTTPS_PROXY or $https_proxy for an https
// server, $HTTP_PROXY or $http_proxy for another, the upper-case one first; none for localhost, a loopback address, and
// what $NO_PROXY or $no_proxy lists: "*", an address, CIDR, "host" with all below it, ".domain" or "*.domain" without
// the domain itself, each but a CIDR also with ":port". What it lists otherwise is passed over. Whether the URL is one
// that can be used is not asked here: the transport refuses it by name, where Go ignores it. Pure and total.
[[nodiscard]] std::optional<EnvironmentProxy> ProxyFromEnvironment(
    const std::vector<std::string>& environment, const ServerUrl& server);

// Gives `config` the environment's proxy where it has none of its own. For a kubeconfig; the pod's own account goes
// directly.
void TakeProxyFromEnvironment(const std::vector<std::string>& environment, ClientConfig& config);

// "https://api:6443", or "https://api:6443 through proxy http://proxy:3128": never with a login.
[[nodiscard]] std::string WayTo(const ClientConfig& config);

}  // namespace heddle::kube
