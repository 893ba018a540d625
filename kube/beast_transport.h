#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "kube/config.h"
#include "kube/http.h"

namespace heddle::kube {

struct BeastOptions {
  // 5,000 NodeTopologies of 16 KiB in one unpaged LIST are 80 MiB; a body over the bound is kTooLarge.
  std::size_t max_body_bytes = 256u << 20;
};

// HTTP/1.1, its answers parsed by Boost.Beast, over sockets that wait on the calling thread: no thread of its own, and
// a body's bytes go from the read buffer to their reader. Up to 16 connections that nobody uses are kept, for 80 s
// each. Connecting, and asking for a name's addresses, count into HttpRequest::timeout.
// A GET or HEAD is sent once more, on a new connection, where a kept one ended before an answer began; so is any
// request of which not a byte was sent. Other requests are not, as the write may have happened.
// The server's certificate is verified against config.tls alone, for tls.server_name or the URL's host, a name or an
// address. CA and client certificate are read anew for every new connection, which fails where they cannot be read.
// Redirects are answers like others. A proxy is spoken to over plain HTTP, with CONNECT where the server is https.
class BeastTransport final : public HttpTransport {
 public:
  BeastTransport(ClientConfig config, base::Clock& clock, BeastOptions options = {});
  ~BeastTransport() override;

  // Errors beyond HttpTransport's: kInvalid for a server or a proxy that is no URL, and for a request that HTTP cannot
  // carry (a line break in a header).
  [[nodiscard]] base::Result<HttpResponse> Do(const HttpRequest& request, std::stop_token stop) override;
  [[nodiscard]] base::Result<HttpResponse> Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                                  std::stop_token stop) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::kube
