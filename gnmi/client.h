#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "gnmi/path.h"
#include "gnmi/value.h"

namespace heddle::gnmi {

// What a switch is asked over gNMI, and what it answers. grpc_client.h asks real ones.
//
// Errors, of a call and of a stream's end alike; each message begins with the switch's address:
//   kUnavailable    no connection: nobody listens, the name has no address, no TLS, a certificate that does not prove
//                   who the switch is; or the connection was cut, or the switch has fallen silent
//   kUnauthorized   the login, or who the client's certificate is for, is not accepted
//   kForbidden      accepted, but this may not be read
//   kUnimplemented  no gNMI there, or not this of it             kNotFound   the switch has no such path
//   kTimeout        no answer in time                            kThrottled  the switch asks us to slow down
//   kTooLarge       an answer over the client's limits           kInvalid    the request, or an answer that is none
//   kInternal       the switch failed

struct Model {
  std::string name;          // "openconfig-interfaces", "sonic-db"
  std::string organization;  // may be empty
  std::string version;       // likewise
  friend bool operator==(const Model&, const Model&) = default;
};

enum class Encoding : std::uint8_t { kJson, kBytes, kProto, kAscii, kJsonIetf };  // as gNMI numbers them

struct ServerCapabilities {
  std::string gnmi_version;  // "0.7.0"
  std::vector<Model> models;
  std::set<Encoding> encodings;
  friend bool operator==(const ServerCapabilities&, const ServerCapabilities&) = default;
};

struct Update {
  Path path;  // in full, the prefix joined in; where the switch names no target, the one that was asked
  // A text, within the client's limits and else as it came: see TreeOf. An error: why this one value cannot be read;
  // the others of its notice can.
  base::Result<std::string> json;
};

// What was so at one moment.
struct Notice {
  std::int64_t timestamp_ns = 0;  // since 1970 by the switch's clock, which may be wrong
  std::vector<Path> deletes;      // happened before the updates
  std::vector<Update> updates;
};

enum class DataType : std::uint8_t { kAll, kConfig, kState, kOperational };  // SONiC knows kAll only

struct GetRequest {
  std::vector<Path> paths;  // of one target, which may be empty
  Encoding encoding = Encoding::kJsonIetf;
  DataType type = DataType::kAll;
};

struct Subscription {
  // kTargetDefined: the switch chooses for each leaf.
  enum class Mode : std::uint8_t { kTargetDefined, kOnChange, kSample };

  Path path;
  Mode mode = Mode::kSample;
  std::chrono::nanoseconds interval{
      0};                           // kSample; 0 = as often as the switch can; SONiC takes no less than 1 s
  bool suppress_redundant = false;  // kSample: only what has changed
  std::chrono::nanoseconds heartbeat{0};  // says everything so often even where nothing changes; 0 = does not
};

struct SubscribeRequest {
  // kOnce: everything, once; then the stream ends.
  enum class Mode : std::uint8_t { kStream, kOnce };

  std::vector<Subscription> subscriptions;  // paths of one target, which may be empty
  Mode mode = Mode::kStream;
  Encoding encoding = Encoding::kJsonIetf;
  bool updates_only = false;  // leave out how things stand at the beginning
  // How long the first message may take, connection included; with kOnce, each.
  std::chrono::milliseconds patience{30'000};
  // How long a stream may say nothing after it; 0 = for ever. Nothing = what SilenceLimit finds right.
  std::optional<std::chrono::milliseconds> silence;
};

// Three times the shortest span in which these subscriptions bring a message even where nothing changes (samples
// without suppress_redundant, heartbeats), and a second; 0 where there is none. With samples of 10 s: 31 s.
std::chrono::milliseconds SilenceLimit(const std::vector<Subscription>& subscriptions);

struct StreamEvents {
  std::function<void(Notice&&)> notice;
  std::function<void()> synced;  // all that there was at the beginning has been said
  // Exactly once and last, unless the stream was destroyed before. No error only where kOnce has said everything: a
  // switch that ends a kStream, however politely, is kUnavailable.
  std::function<void(base::Status)> ended;
};

// A subscription. Destroying it cancels it.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;
};

// One switch.
//
// Thread rule: every member may be called from any thread, and calls run side by side. Nothing here blocks. Callbacks
// come on other threads than the caller's, which are few and shared by all switches, so they must not block; maybe
// before the call has returned. Those of one stream come one after the other, and the next message is read when the
// callback has returned; those of different calls may come at once.
// Destroying: a stream, or a client with all its calls and streams, may be destroyed on any thread, in their own
// callbacks too. No callback runs once the destructor has returned, but the one that called it. From other threads it
// waits for a callback that is running, so it must not hold a lock that such a callback takes.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // The callback comes exactly once, unless the client is destroyed before.
  virtual void Capabilities(std::chrono::milliseconds timeout,
                            std::function<void(base::Result<ServerCapabilities>)> done) = 0;
  virtual void Get(const GetRequest& request, std::chrono::milliseconds timeout,
                   std::function<void(base::Result<std::vector<Notice>>)> done) = 0;
  // Never null. A stream that outlives its client is ended and silent.
  [[nodiscard]] virtual std::unique_ptr<Stream> Subscribe(const SubscribeRequest& request,
                                                          StreamEvents events) = 0;
};

// Where a switch is and how it is spoken to. TLS always.
struct Endpoint {
  std::string address;      // host:port; an IPv6 address in brackets
  std::string server_name;  // that its certificate has to be for; empty = the host of address
  std::string ca_pem;       // whom it has to be from; empty = the authorities of this machine
  std::string username;     // sent with every call, as gNMI says; empty = none
  std::string password;     // printable ASCII, as user names; never logged and never quoted
  // Shown to a switch that asks for one, in the handshake and so before it has proved who it is (PEM, the client's own
  // first, then its chain); and its key, which is never sent and never logged. Both or neither, beside user name and
  // password or in their place. At most kMaxIdentityPem (trust.h) each.
  std::string certificate_pem;
  std::string key_pem;
};

class Dialer {
 public:
  Dialer() = default;
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;
  virtual ~Dialer() = default;

  // Connects with the first call, and again when one follows a loss. kInvalid: no such endpoint can be, and which part
  // of it is wrong.
  [[nodiscard]] virtual base::Result<std::unique_ptr<Client>> Dial(const Endpoint& endpoint) = 0;
};

}  // namespace heddle::gnmi
