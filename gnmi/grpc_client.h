#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "gnmi/client.h"
#include "gnmi/wire.h"

namespace heddle::gnmi {

struct DialerOptions {
  AnswerLimits answers;
  int max_message_bytes = 16 << 20;  // SONiC's whole CONFIG_DB is 1 MiB
  // Until a connection stands with TLS. One that fails is tried again after a second, doubling to reconnect_max; calls
  // meanwhile fail at once with what the last try came to.
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds reconnect_max{30'000};
  // A ping on connections that carry a call, and how long its answer may take. Go's servers close a connection whose
  // pings come more often than every five minutes while they send nothing (grpc-go, keepalive.EnforcementPolicy), and
  // SONiC's, which are Go's, allowed more only lately (sonic-gnmi issue 619): quicker is a stream's limit of silence.
  std::chrono::milliseconds keepalive{310'000};
  std::chrono::milliseconds keepalive_answer{20'000};
};

struct Underway;  // gnmi/calls.h

// Asks real switches. Every client has a connection of its own, made with its first call: TLS 1.2 or newer, no proxy
// whatever the environment says, no compression, no retry but the caller's. Takes no thread for a client.
class GrpcDialer final : public Dialer {
 public:
  explicit GrpcDialer(DialerOptions options = {});
  // Waits a moment for what gRPC has still to end of calls that were cancelled. Every client must have been destroyed
  // before, and no callback may come here: both are CHECKed.
  ~GrpcDialer() override;

  [[nodiscard]] base::Result<std::unique_ptr<Client>> Dial(const Endpoint& endpoint) override;

 private:
  class Anchor;

  const DialerOptions options_;
  const std::shared_ptr<Underway> underway_;
  const std::unique_ptr<Anchor> anchor_;
};

}  // namespace heddle::gnmi
