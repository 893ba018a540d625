#pragma once

#include <memory>

#include "kube/config.h"
#include "kube/http.h"

namespace heddle::kube {

struct CpprestOptions {
  // 5,000 NodeTopologies of 16 KiB in one unpaged LIST are 80 MiB; a body over the bound is kTooLarge.
  std::size_t max_body_bytes = 256u << 20;
  // cpprestsdk's own default is 40 threads in one pool for the whole process. Takes effect for the first user
  // only.
  int threads = 6;
};

// HTTP/1.1 over cpprestsdk with pooled connections. Connecting counts into HttpRequest::timeout. Where the
// server has closed a pooled connection, cpprestsdk sends the request once more on a new one, whatever its
// method. A server given as an IPv6 address is refused with a sentence: cpprestsdk cannot connect to it. The
// server's certificate is verified against config.tls alone (never the system's roots, where a CA is given),
// for tls.server_name or the URL's host. CA and client certificate are read anew for every new connection.
class CpprestTransport final : public HttpTransport {
 public:
  CpprestTransport(ClientConfig config, base::Clock& clock, CpprestOptions options = {});
  ~CpprestTransport() override;

  [[nodiscard]] base::Result<HttpResponse> Do(const HttpRequest& request, std::stop_token stop) override;
  [[nodiscard]] base::Result<HttpResponse> Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                                  std::stop_token stop) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// cpprestsdk reads the system's 140 authorities for every connection, 40 ms of CPU, even where config.tls names the
// one to trust and none of them is asked. Points OpenSSL's environment elsewhere, then. Once, before the first thread.
void PassOverSystemAuthorities(const ClientConfig& config);

}  // namespace heddle::kube
