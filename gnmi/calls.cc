#include "gnmi/calls.h"

#include <fmt/format.h>
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include <utility>
#include <vector>

#include "gnmi/errors.h"
#include "gnmi/gate.h"

namespace heddle::gnmi {
namespace {

// A callback without a call: for what is refused before anything is sent.
class LaterCall final : public Call, public std::enable_shared_from_this<LaterCall> {
 public:
  LaterCall(std::shared_ptr<Connection> connection, std::function<void()> then)
      : connection_(std::move(connection)), then_(std::move(then)) {}

  void Start() {
    connection_->Add(shared_from_this());
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(TimeOf(MonotonicNanoseconds()), [self = shared_from_this()](bool) { self->Now(); });
  }
  void Cancel() override {
    if (gate_.Close()) then_ = nullptr;
  }

 private:
  void Now() {
    gate_.Pass([this] { then_(); });
    connection_->Remove(this);
    alarm_.reset();  // which holds the function that holds this
  }

  const std::shared_ptr<Connection> connection_;
  std::function<void()> then_;
  std::unique_ptr<grpc::Alarm> alarm_;
  Gate gate_;
};

}  // namespace

Connection::Token::Token(std::shared_ptr<Underway> of) : underway(std::move(of)) {
  const std::lock_guard lock(underway->mutex);
  ++underway->connections;
}

Connection::Token::~Token() {
  const std::lock_guard lock(underway->mutex);
  --underway->connections;
  underway->fewer.notify_all();
}

Connection::Connection(const Endpoint& endpoint, std::shared_ptr<grpc::Channel> channel, AnswerLimits limits,
                       std::shared_ptr<Underway> underway)
    : token_(std::move(underway)), endpoint_(endpoint), limits_(limits), channel_(std::move(channel)) {}

void Connection::SignIn(grpc::ClientContext& context) const {
  if (endpoint_.username.empty()) return;
  context.AddMetadata("username", endpoint_.username);
  context.AddMetadata("password", endpoint_.password);
}

base::Error Connection::ErrorFrom(const grpc::Status& status, std::chrono::milliseconds timeout) const {
  return ErrorOf(status, {endpoint_.address, endpoint_.password, timeout,
                          channel_->GetState(false) == GRPC_CHANNEL_READY});
}

base::Error Connection::ErrorThat(base::Code code, std::string_view what) const {
  return {code, fmt::format("{} {}", endpoint_.address, what), {}};
}

base::Error Connection::ErrorIn(const base::Error& error, std::string_view what) const {
  return error.In(fmt::format("{} {}", endpoint_.address, what));
}

void Connection::Add(const std::shared_ptr<Call>& call) {
  {
    const std::lock_guard lock(mutex_);
    calls_.emplace(call.get(), call);
    if (!closed_) return;
  }
  call->Cancel();
}

void Connection::Remove(Call* call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

void Connection::CancelAll() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [ignored, call] : calls_) {
      if (auto held = call.lock()) calls.push_back(std::move(held));
    }
  }
  for (const std::shared_ptr<Call>& call : calls) call->Cancel();
}

std::int64_t MonotonicNanoseconds() {
  const gpr_timespec now = gpr_now(GPR_CLOCK_MONOTONIC);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

gpr_timespec TimeOf(std::int64_t monotonic_nanoseconds) {
  return {monotonic_nanoseconds / 1'000'000'000, std::int32_t(monotonic_nanoseconds % 1'000'000'000),
          GPR_CLOCK_MONOTONIC};
}

std::string InSeconds(std::chrono::milliseconds span) {
  return fmt::format("{} s", double(span.count()) / 1000);
}

std::shared_ptr<Call> StartLater(std::shared_ptr<Connection> connection, std::function<void()> then) {
  auto call = std::make_shared<LaterCall>(std::move(connection), std::move(then));
  call->Start();
  return call;
}

}  // namespace heddle::gnmi
