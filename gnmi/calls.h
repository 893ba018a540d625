#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gnmi/client.h"
#include "gnmi/gnmi.pb.h"
#include "gnmi/wire.h"

namespace heddle::gnmi {

// Inside of grpc_client.cc: what its calls and streams stand on.

// What of a dialer is still there, so that it can wait for the end.
struct Underway {
  std::mutex mutex;
  std::condition_variable fewer;
  int clients = 0;
  int connections = 0;  // those of clients that are gone may have calls for a moment more
};

// One call to a switch. It holds itself until gRPC has ended it.
class Call {
 public:
  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  // No callback of it runs any more, but the one that calls this.
  virtual void Cancel() = 0;
};

// What the calls of one client share; it lives as long as the last of them.
class Connection {
 public:
  Connection(const Endpoint& endpoint, std::shared_ptr<grpc::Channel> channel, AnswerLimits limits,
             std::shared_ptr<Underway> underway);

  // For calls whose answers come as they are. What gRPC reads itself it reads as an empty message where it cannot, and
  // a callback is not told: a switch that answers garbage would be one without ports.
  template <class Request>
  grpc::TemplatedGenericStub<Request, grpc::ByteBuffer> Stub() {
    return grpc::TemplatedGenericStub<Request, grpc::ByteBuffer>(channel_);
  }
  const AnswerLimits& limits() const { return limits_; }
  void SignIn(grpc::ClientContext& context) const;
  base::Error ErrorFrom(const grpc::Status& status, std::chrono::milliseconds timeout) const;
  // Of our own: "10.0.0.3:8080 has said nothing for 31 s".
  base::Error ErrorThat(base::Code code, std::string_view what) const;
  // Of what stands in an answer or a request.
  base::Error ErrorIn(const base::Error& error, std::string_view what) const;

  void Add(const std::shared_ptr<Call>& call);
  void Remove(Call* call);
  void CancelAll();  // and what is added later

 private:
  struct Token {
    explicit Token(std::shared_ptr<Underway> of);
    ~Token();
    const std::shared_ptr<Underway> underway;
  };

  const Token token_;  // the first, so that all else is gone when it goes
  const Endpoint endpoint_;
  const AnswerLimits limits_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::mutex mutex_;
  std::map<Call*, std::weak_ptr<Call>> calls_;
  bool closed_ = false;
};

// What of these bytes is a message; false: nothing. They are gone behind it.
template <class Message>
bool ReadMessage(grpc::ByteBuffer& bytes, Message& message) {
  return bytes.Valid() && grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok();
}

// Of gRPC's own clock, which its deadlines and alarms go by.
std::int64_t MonotonicNanoseconds();
gpr_timespec TimeOf(std::int64_t monotonic_nanoseconds);
// "31 s", "0.2 s"
std::string InSeconds(std::chrono::milliseconds span);

// Subscribes. `request` is one that ToWire takes.
std::shared_ptr<Call> StartStream(std::shared_ptr<Connection> connection, const SubscribeRequest& request,
                                  StreamEvents events);
// Tells `then` on one of gRPC's threads, soon.
std::shared_ptr<Call> StartLater(std::shared_ptr<Connection> connection, std::function<void()> then);

}  // namespace heddle::gnmi
