#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gnmi/gnmi.grpc.pb.h"
#include "tests/support/scripted_http_server.h"

namespace heddle::test {

using SentMetadata = std::multimap<std::string, std::string>;

// One subscription at the server. Thread rule: every member may be called from any thread.
class GnmiSession final
    : public grpc::ServerBidiReactor<::gnmi::SubscribeRequest, ::gnmi::SubscribeResponse> {
 public:
  explicit GnmiSession(std::function<void(GnmiSession&)> begun) : begun_(std::move(begun)) {}

  const ::gnmi::SubscriptionList& list() const { return request_.subscribe(); }
  void Send(::gnmi::SubscribeResponse response);  // behind what is being sent
  void SendJson(const std::string& target, const std::vector<std::string>& elems, const std::string& json);
  void SendSync();
  void End(grpc::Status status);                                                // once all has been sent
  bool WaitForEnd(std::chrono::milliseconds limit = std::chrono::seconds(20));  // it is over on this side
  bool cancelled();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void KeepUntilDone(std::shared_ptr<GnmiSession> self);

 private:
  void PushLocked();

  const std::function<void(GnmiSession&)> begun_;
  ::gnmi::SubscribeRequest request_, more_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<::gnmi::SubscribeResponse> queue_;
  std::optional<grpc::Status> end_;
  bool writing_ = false, finished_ = false, done_ = false, cancelled_ = false, asked_ = false;
  std::shared_ptr<GnmiSession> self_;
};

// A gNMI server on 127.0.0.1 that answers by a script, with TLS as switches have it. Scripts run on gRPC's threads.
class GnmiServer {
 public:
  struct Options {
    TestCertificate certificate;
    std::string client_authority;  // PEM: clients have to show a certificate of it; empty = need none
    int port = 0;                  // 0 = a free one
    bool plain = false;            // no TLS
    bool no_gnmi = false;          // a gRPC server of something else
    bool compress = false;         // answers
    std::string raw;               // answers every call with these bytes for a message
  };
  // No status: the call hangs until the client gives up.
  template <class Request, class Answer>
  using Script = std::function<std::optional<grpc::Status>(const SentMetadata&, const Request&, Answer&)>;
  struct Scripts {
    Script<::gnmi::CapabilityRequest, ::gnmi::CapabilityResponse> capabilities;
    Script<::gnmi::GetRequest, ::gnmi::GetResponse> get;
    std::function<void(GnmiSession&)> subscribed;  // nothing = a session that the test goes on with
  };

  explicit GnmiServer(Options options, Scripts scripts = {});
  ~GnmiServer();

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // The next subscription that nobody took yet; null after a while.
  std::shared_ptr<GnmiSession> NextSession(std::chrono::milliseconds limit = std::chrono::seconds(20));
  int hanging();  // unary calls
  bool WaitForHanging(int count, std::chrono::milliseconds limit = std::chrono::seconds(20));
  SentMetadata metadata();  // of the last call

 private:
  struct Service;
  struct Raw;

  std::unique_ptr<Service> service_;
  std::unique_ptr<Raw> raw_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// Stands between a client and a server on 127.0.0.1, and can stop to pass anything on.
class Relay {
 public:
  explicit Relay(int to_port);
  ~Relay();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void Freeze();  // connections stand and are made, and nothing goes through
  void Cut();     // those that stand end
  int connections();

 private:
  struct Pair {
    int client = -1, server = -1;
  };
  void Run();
  bool Pass(int from, int to);

  const int to_port_;
  int port_ = 0, listener_ = -1, wake_[2] = {-1, -1};
  std::mutex mutex_;
  bool frozen_ = false, stopping_ = false, cut_ = false;
  int accepted_ = 0;
  std::vector<Pair> pairs_;  // of the thread alone
  std::thread thread_;
};

}  // namespace heddle::test
