#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gnmi/grpc_client.h"
#include "tests/support/gnmi/gnmi_server.h"

namespace heddle::gnmi {

inline constexpr std::chrono::seconds kLong{20};  // for what comes at once

// A callback, and what it was called with.
template <class T>
class Answered {
 public:
  std::function<void(base::Result<T>)> callback() {
    return [state = state_](base::Result<T> result) {
      const std::lock_guard lock(state->mutex);
      state->results.push_back(std::move(result));
      state->more.notify_all();
    };
  }
  base::Result<T> Wait() {
    std::unique_lock lock(state_->mutex);
    if (!state_->more.wait_for(lock, kLong, [this] { return !state_->results.empty(); }))
      return base::Fail(base::Code::kCancelled, "the test has waited in vain");
    return state_->results.front();
  }
  std::size_t count() {
    const std::lock_guard lock(state_->mutex);
    return state_->results.size();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable more;
    std::vector<base::Result<T>> results;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// What a stream said.
class StreamLog {
 public:
  StreamEvents events() {
    StreamEvents events;
    events.notice = [state = state_](Notice&& notice) {
      state->Change([&] { state->notices.push_back(std::move(notice)); });
    };
    events.synced = [state = state_] { state->Change([&] { ++state->syncs; }); };
    events.ended = [state = state_](base::Status why) {
      state->Change([&] { state->ends.push_back(std::move(why)); });
    };
    return events;
  }
  bool WaitForNotices(std::size_t count) {
    return Wait([&] { return state_->notices.size() >= count; });
  }
  bool WaitForNoticeOrEnd() {
    return Wait([&] { return !state_->notices.empty() || !state_->ends.empty(); });
  }
  // Whether it was synced.
  bool WaitForSyncOrEnd() {
    return Wait([&] { return state_->syncs > 0 || !state_->ends.empty(); }) && state_->Synced();
  }
  bool WaitForSync() {
    return Wait([&] { return state_->syncs > 0; });
  }
  base::Status WaitForEnd() {
    if (!Wait([&] { return !state_->ends.empty(); }))
      return base::Fail(base::Code::kCancelled, "the test has waited in vain");
    const std::lock_guard lock(state_->mutex);
    return state_->ends.front();
  }
  std::vector<Notice> notices() {
    const std::lock_guard lock(state_->mutex);
    return state_->notices;
  }
  std::size_t ends() {
    const std::lock_guard lock(state_->mutex);
    return state_->ends.size();
  }

 private:
  struct State {
    template <class Change_>
    void Change(Change_ change) {
      const std::lock_guard lock(mutex);
      change();
      changed.notify_all();
    }
    bool Synced() {
      const std::lock_guard lock(mutex);
      return syncs > 0;
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Notice> notices;
    int syncs = 0;
    std::vector<base::Status> ends;
  };
  template <class Condition>
  bool Wait(Condition condition) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, kLong, condition);
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// A flag that one thread sets and another waits for.
class Signal {
 public:
  void Set() {
    const std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool Wait(std::chrono::milliseconds limit = kLong) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// An authority, a switch of it, and a dialer.
class GnmiBed : public testing::Test {
 protected:
  using Server = test::GnmiServer;

  Server::Options ServerOptions() const {
    Server::Options options;
    options.certificate = certificate_;
    return options;
  }
  Endpoint EndpointAt(const std::string& address) const {
    Endpoint endpoint;
    endpoint.address = address;
    endpoint.ca_pem = authority_.pem();
    return endpoint;
  }
  std::unique_ptr<Client> DialTo(const Endpoint& endpoint) {
    auto client = dialer_->Dial(endpoint);
    EXPECT_TRUE(client) << client.error().message;
    return client ? *std::move(client) : nullptr;
  }
  std::unique_ptr<Client> DialTo(const std::string& address) { return DialTo(EndpointAt(address)); }
  void Redial(DialerOptions options) { dialer_ = std::make_unique<GrpcDialer>(options); }

  static GetRequest Asking(const std::string& path) {
    GetRequest request;
    request.paths = {*ParsePath(path)};
    return request;
  }
  static SubscribeRequest Following(const std::string& path) {
    SubscribeRequest request;
    request.subscriptions = {Subscription{*ParsePath(path), Subscription::Mode::kOnChange}};
    return request;
  }
  // The error of a call, or of a test that got an answer.
  static base::Error ErrorOfCapabilities(Client& client, std::chrono::milliseconds timeout = kLong) {
    Answered<ServerCapabilities> answered;
    client.Capabilities(timeout, answered.callback());
    const auto result = answered.Wait();
    return result ? base::Error{base::Code::kCancelled, "it has answered", {}} : result.error();
  }

  const test::TestAuthority authority_{"Fabric authority"};
  const test::TestCertificate certificate_ = authority_.Issue("leaf-3", "DNS:leaf-3.test,IP:127.0.0.1");
  std::unique_ptr<GrpcDialer> dialer_ = std::make_unique<GrpcDialer>();
};

}  // namespace heddle::gnmi
