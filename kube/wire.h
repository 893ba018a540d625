#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/config.h"
#include "kube/name_lookup.h"

struct bio_st;
struct ssl_st;

namespace heddle::kube {

class TlsDiagnosis;

// One TCP connection, with TLS over it once Secure was called. It reads and writes on the calling thread and waits
// there, until WaitUntil's deadline or Begin's stop.
// Errors: kUnavailable with the reason, which names no server; kTimeout without a text; kCancelled "stopped". After an
// error the connection is of no more use.
// Thread rule: one caller at a time; only the stop token is another's.
class Wire {
 public:
  explicit Wire(base::Clock& clock);
  ~Wire();  // ends TLS in order, if that needs no waiting
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // What is called until End heeds `stop`. An idle connection takes one descriptor and no second one to be woken by.
  [[nodiscard]] base::Status Begin(const std::stop_token& stop);
  void End();
  void WaitUntil(base::MonotonicTime deadline) { deadline_ = deadline; }

  // To the first that takes it, in this order. Of the time left each gets an even share of what those before it left.
  [[nodiscard]] base::Status Connect(const std::vector<SocketAddress>& addresses);
  // TLS 1.2 or newer. The server must prove by settings.authority (or the system's authorities) to be `host`, or
  // settings.server_name, unless settings.insecure_skip_verify. Authority and client certificate are read now.
  [[nodiscard]] base::Status Secure(const TlsSettings& settings, Authenticator* authenticator,
                                    const std::string& host);

  // What is there, up to `room` > 0 bytes, as soon as there is any; 0 = the server ended the connection in order.
  // Without TLS a cut looks like that too.
  [[nodiscard]] base::Result<std::size_t> Read(char* to, std::size_t room);
  [[nodiscard]] base::Status Write(std::string_view bytes);

  // Whether a request can be sent on it: the server has neither ended it nor said anything unasked.
  bool Quiet() const;
  std::uint64_t sent() const { return sent_; }  // bytes given to the kernel since Begin, with those of TLS

 private:
  struct Descriptor {
    ~Descriptor();
    int number = -1;
  };
  // How OpenSSL reads and writes.
  struct Bio;

  base::Status Connect(const SocketAddress& address, base::MonotonicTime deadline);
  base::Status Wait(short events, base::MonotonicTime deadline);
  // Nothing where that would be waiting and `patient_` is not set.
  base::Result<std::optional<std::size_t>> Receive(char* to, std::size_t room);
  base::Result<std::optional<std::size_t>> Send(const char* from, std::size_t size);
  base::Result<std::size_t> ReadTls(char* to, std::size_t room);
  base::Error WhyTlsFailed();

  base::Clock& clock_;
  Descriptor socket_, wake_;  // wake_: an eventfd that the stop token's callback sets, from Begin to End
  base::MonotonicTime deadline_{};
  std::stop_token stop_;
  std::optional<std::stop_callback<std::function<void()>>> alarm_;
  std::uint64_t sent_ = 0;
  ssl_st* tls_ = nullptr;
  std::shared_ptr<TlsDiagnosis> diagnosis_;
  bool patient_ = true;
  bool ended_ = false;                // by the server, in order
  std::optional<base::Error> below_;  // what OpenSSL was not able to read or write for
  std::optional<base::Error> broken_;
};

}  // namespace heddle::kube
