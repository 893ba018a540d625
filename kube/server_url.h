#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace heddle::kube {

// The parts of "https://user:password@[fd00::1]:6443/k8s/clusters/c-1" that a connection and a request need.
struct ServerUrl {
  bool tls = false;
  std::string login;      // "user:password", decoded; "" = none
  std::string host;       // without brackets
  std::string port;       // decimal, 1 to 65535; where the URL has none, of its scheme
  std::string prefix;     // of every path, without a slash at its end; "" = none
  std::string authority;  // host and port as the URL has them, for a Host header

  std::string HostAndPort() const;  // "[fd00::1]:6443", always with a port
};

// http and https. Errors: kInvalid, which names the part but never quotes a login.
[[nodiscard]] base::Result<ServerUrl> ParseServerUrl(std::string_view url);

}  // namespace heddle::kube
