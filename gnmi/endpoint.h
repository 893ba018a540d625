#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "gnmi/client.h"

namespace heddle::gnmi {

// host:port in its parts. An IPv6 address has brackets in the text and none in `host`.
struct HostPort {
  std::string host;
  int port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};
[[nodiscard]] base::Result<HostPort> ParseAddress(std::string_view address);

// kInvalid: what of an endpoint cannot be: its address, its server name, or a character in user name or password that
// HTTP/2 does not carry. Says where it stands and never what it is.
[[nodiscard]] base::Status CheckEndpoint(const Endpoint& endpoint);

}  // namespace heddle::gnmi
