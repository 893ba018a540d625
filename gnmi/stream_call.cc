#include <fmt/format.h>
#include <grpcpp/alarm.h>

#include <atomic>
#include <optional>
#include <utility>

#include "gnmi/calls.h"
#include "gnmi/gate.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using std::chrono::milliseconds;
const std::string kSubscribe = "/gnmi.gNMI/Subscribe";
using Reactor = grpc::ClientBidiReactor<::gnmi::SubscribeRequest, grpc::ByteBuffer>;

// gRPC calls OnReadDone for one message after the other, and OnDone when all is over: there and only there the stream
// is said to have ended. Whoever wants it to end earlier writes down why and cancels the context.
class StreamCall final : public Call, public Reactor, public std::enable_shared_from_this<StreamCall> {
 public:
  StreamCall(std::shared_ptr<Connection> connection, const SubscribeRequest& request, StreamEvents events)
      : connection_(std::move(connection)),
        once_(request.mode == SubscribeRequest::Mode::kOnce),
        patience_(request.patience),
        silence_(once_ ? request.patience : request.silence.value_or(SilenceLimit(request.subscriptions))),
        target_(TargetOf(request)),
        request_(*ToWire(request)),
        events_(std::move(events)) {}

  void Start() {
    self_ = shared_from_this();
    connection_->Add(self_);
    connection_->SignIn(context_);
    connection_->Stub<::gnmi::SubscribeRequest>().PrepareBidiStreamingCall(&context_, kSubscribe, {}, this);
    Hear();
    StartWrite(&request_);  // not the last: some take a half-closed stream for one that nobody reads
    StartRead(&bytes_);
    StartCall();
  }

  void Cancel() override {
    if (gate_.Close()) events_ = {};
    context_.TryCancel();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    first_ = false;
    Hear();
    Tell();
    if (!gate_.closed() && !leaving()) StartRead(&bytes_);
  }

  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<StreamCall> last = std::move(self_);
    base::Status end = End(status);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      alarm_.reset();
    }
    gate_.Pass([&] {
      if (events_.ended) events_.ended(std::move(end));
    });
    connection_->Remove(this);
  }

 private:
  // What the message in bytes_ comes to.
  void Tell() {
    ::gnmi::SubscribeResponse response;
    if (!ReadMessage(bytes_, response))
      return Leave(connection_->ErrorThat(Code::kInvalid, "sends what is no message of gNMI"));
    if (response.has_update()) {
      auto notice = NoticeOf(response.update(), target_, connection_->limits());
      if (!notice) return Leave(connection_->ErrorIn(std::move(notice).error(), "sends what cannot be read"));
      gate_.Pass([&] {
        if (events_.notice) events_.notice(*std::move(notice));
      });
    } else if (response.response_case() == ::gnmi::SubscribeResponse::kSyncResponse) {
      gate_.Pass([&] {
        if (events_.synced) events_.synced();
      });
      // Some servers then end it with an error, SONiC's among them, or not at all.
      if (once_) Leave(std::nullopt);
    }
  }

  // Ends the stream for this reason, nothing for none; the first counts.
  void Leave(std::optional<base::Error> why) {
    {
      const std::lock_guard lock(mutex_);
      if (leaving_) return;
      leaving_ = true;
      why_ = std::move(why);
    }
    context_.TryCancel();
  }
  bool leaving() {
    const std::lock_guard lock(mutex_);
    return leaving_;
  }

  base::Status End(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (leaving_) return why_ ? base::Status(base::Fail(*why_)) : base::Status();
    if (status.ok())
      return base::Fail(connection_->ErrorThat(
          Code::kUnavailable, once_ ? "ended the stream before it had said all" : "ended the stream"));
    return base::Fail(connection_->ErrorFrom(status, patience_));
  }

  // The switch has just said something, or is about to.
  void Hear() {
    const std::lock_guard lock(mutex_);
    heard_ = MonotonicNanoseconds();
    // One alarm goes off after the other; a message moves only the time that it looks at. The first changes the limit.
    if (alarm_ == nullptr || (!first_ && limit_ != silence_)) Watch(first_ ? patience_ : silence_);
  }
  // Under the lock.
  void Watch(milliseconds limit) {
    limit_ = limit;
    alarm_.reset();
    if (over_ || limit.count() <= 0) return;
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(TimeOf(heard_ + std::chrono::nanoseconds(limit).count()),
                [self = shared_from_this()](bool expired) {
                  if (expired) self->Look();
                });
  }
  void Look() {
    milliseconds limit;
    {
      const std::lock_guard lock(mutex_);
      if (over_ || alarm_ == nullptr) return;
      limit = limit_;
      if (MonotonicNanoseconds() < heard_ + std::chrono::nanoseconds(limit).count()) return Watch(limit);
    }
    Leave(first_ ? connection_->ErrorFrom({grpc::StatusCode::DEADLINE_EXCEEDED, ""}, limit)
                 : connection_->ErrorThat(Code::kUnavailable,
                                          fmt::format("has said nothing for {}", InSeconds(limit))));
  }

  const std::shared_ptr<Connection> connection_;
  const bool once_;
  const milliseconds patience_, silence_;
  const std::string target_;
  const ::gnmi::SubscribeRequest request_;
  StreamEvents events_;  // behind the gate
  Gate gate_;
  grpc::ClientContext context_;
  grpc::ByteBuffer bytes_;
  std::shared_ptr<StreamCall> self_;  // from Start to OnDone
  std::atomic<bool> first_ = true;    // no message yet

  std::mutex mutex_;  // guards what follows
  std::unique_ptr<grpc::Alarm> alarm_;
  milliseconds limit_{0};
  std::int64_t heard_ = 0;
  bool over_ = false;
  bool leaving_ = false;
  std::optional<base::Error> why_;
};

}  // namespace

std::shared_ptr<Call> StartStream(std::shared_ptr<Connection> connection, const SubscribeRequest& request,
                                  StreamEvents events) {
  auto call = std::make_shared<StreamCall>(std::move(connection), request, std::move(events));
  call->Start();
  return call;
}

}  // namespace heddle::gnmi
