#pragma once

#include <sys/socket.h>

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace heddle::kube {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  std::string ToString() const;  // "10.0.0.1:6443", "[fd00::1]:6443"
};

// The addresses of a host, a name or an address itself (IPv6 without brackets), at a decimal port, in the order to
// try them. A name is asked for on a thread of its own, which may outlive the call: the C library's resolver cannot
// be told to end. Errors: kUnavailable, kTimeout (without a text), kCancelled.
[[nodiscard]] base::Result<std::vector<SocketAddress>> LookUp(const std::string& host,
                                                              const std::string& port,
                                                              base::MonotonicTime deadline,
                                                              const std::stop_token& stop);

}  // namespace heddle::kube
