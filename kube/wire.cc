#include "kube/wire.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "kube/tls_context.h"

namespace heddle::kube {
namespace {

using base::Code;
using base::Error;
using base::Fail;
using base::Result;
using base::Status;

// OpenSSL counts in int.
constexpr std::size_t kMostAtOnce = 1u << 30;

Error Failed(std::string_view what, int error) {
  return {Code::kUnavailable, fmt::format("{}: {}", what, std::generic_category().message(error)),
          std::nullopt};
}

Error Stopped() {
  return {Code::kCancelled, "stopped", std::nullopt};
}

// SNI has names alone (RFC 6066, 3).
bool IsAddress(const std::string& host) {
  in6_addr v6{};
  in_addr v4{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, host.c_str(), &v6) == 1;
}

}  // namespace

// OpenSSL's own BIO of a socket knows no deadline, and a write to a connection that has ended would raise SIGPIPE.
struct Wire::Bio {
  static Wire& Of(BIO* bio) { return *static_cast<Wire*>(BIO_get_data(bio)); }
  static int Read(BIO* bio, char* to, int room) {
    BIO_clear_retry_flags(bio);
    Wire& wire = Of(bio);
    const auto got = wire.Receive(to, std::size_t(room));
    if (got && !*got) BIO_set_retry_read(bio);
    if (!got) wire.below_ = got.error();
    if (!got || !*got) return -1;
    if (**got == 0) wire.below_ = Error{Code::kUnavailable, "the connection was cut", std::nullopt};
    return int(**got);
  }
  static int Write(BIO* bio, const char* from, int size) {
    BIO_clear_retry_flags(bio);
    Wire& wire = Of(bio);
    const auto sent = wire.Send(from, std::size_t(size));
    if (sent && !*sent) BIO_set_retry_write(bio);
    if (!sent) wire.below_ = sent.error();
    return sent && *sent ? int(**sent) : -1;
  }
  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  static int Create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }
  static BIO* Over(Wire& wire) {
    static const BIO_METHOD* const kMethod = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "heddle wire");
      if (method == nullptr) return method;
      BIO_meth_set_read(method, Read);
      BIO_meth_set_write(method, Write);
      BIO_meth_set_ctrl(method, Control);
      BIO_meth_set_create(method, Create);
      return method;
    }();
    BIO* bio = kMethod == nullptr ? nullptr : BIO_new(kMethod);
    if (bio != nullptr) BIO_set_data(bio, &wire);
    return bio;
  }
};

Wire::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

Wire::Wire(base::Clock& clock) : clock_(clock) {}

Wire::~Wire() {
  End();
  if (tls_ == nullptr) return;
  patient_ = false;
  if (!broken_ && SSL_is_init_finished(tls_) == 1) SSL_shutdown(tls_);
  SSL_free(tls_);
  ERR_clear_error();
}

Status Wire::Begin(const std::stop_token& stop) {
  End();
  sent_ = 0;
  if (!stop.stop_possible()) return {};
  wake_.number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_.number < 0) return Fail(Failed("cannot make an event", errno));
  stop_ = stop;
  alarm_.emplace(stop, [wake = wake_.number] { ::eventfd_write(wake, 1); });
  return {};
}

void Wire::End() {
  alarm_.reset();  // waits for one that is under way
  stop_ = {};
  if (wake_.number >= 0) ::close(std::exchange(wake_.number, -1));
}

Status Wire::Wait(short events, base::MonotonicTime deadline) {
  for (;;) {
    if (stop_.stop_requested()) return Fail(Stopped());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.Now()).count();
    if (left <= 0) return Fail(Code::kTimeout, "");
    std::array<pollfd, 2> both{{{socket_.number, events, 0}, {wake_.number, POLLIN, 0}}};
    const int ready = ::poll(both.data(), both.size(), int(std::min<std::int64_t>(left, INT_MAX)));
    if (ready < 0 && errno != EINTR) return Fail(Failed("cannot wait", errno));
    if (ready <= 0) continue;
    if (both[0].revents != 0 && both[1].revents == 0) return {};
  }
}

Status Wire::Connect(const std::vector<SocketAddress>& addresses) {
  Status last = Fail(Code::kUnavailable, "it has no address");
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const base::MonotonicTime now = clock_.Now();
    last = Connect(addresses[i], now + (deadline_ - now) / std::int64_t(addresses.size() - i));
    if (last || last.error().code == Code::kCancelled) return last;
  }
  return last;
}

Status Wire::Connect(const SocketAddress& address, base::MonotonicTime deadline) {
  if (socket_.number >= 0) ::close(socket_.number);
  socket_.number = ::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_.number < 0) return Fail(Failed("cannot make a socket", errno));
  const int on = 1;
  ::setsockopt(socket_.number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  int error = 0;
  if (::connect(socket_.number, reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0) {
    error = errno;
    if (error == EINPROGRESS || error == EINTR) {
      TRY(Wait(POLLOUT, deadline));
      socklen_t size = sizeof(error);
      if (::getsockopt(socket_.number, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    }
  }
  if (error != 0) return Fail(Failed("cannot connect to " + address.ToString(), error));
  return {};
}

Status Wire::Secure(const TlsSettings& settings, Authenticator* authenticator, const std::string& host) {
  diagnosis_ = std::make_shared<TlsDiagnosis>();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  if (context == nullptr) return Fail(Code::kUnavailable, "OpenSSL makes no context");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  // One read of the socket for a record in place of two, for its head and the rest.
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_verify(context.get(), settings.insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                     nullptr);
  if (!settings.authority && !settings.insecure_skip_verify &&
      SSL_CTX_set_default_verify_paths(context.get()) != 1) {
    return Fail(Code::kUnavailable, "the system's authorities cannot be read");
  }
  PrepareTls(context.get(), settings, authenticator, host, diagnosis_);
  // An authority, a name or a certificate that is of no use would only come out of the handshake as something else.
  if (std::string trouble = diagnosis_->Take(); !trouble.empty()) {
    return Fail(Code::kUnavailable, std::move(trouble));
  }
  tls_ = SSL_new(context.get());
  BIO* bio = tls_ == nullptr ? nullptr : Bio::Over(*this);
  if (bio == nullptr) return Fail(Code::kUnavailable, "OpenSSL makes no connection");
  SSL_set_bio(tls_, bio, bio);
  const std::string& name = settings.server_name.empty() ? host : settings.server_name;
  if (!IsAddress(name) && SSL_set_tlsext_host_name(tls_, name.c_str()) != 1) {
    return Fail(Code::kUnavailable, fmt::format("\"{}\" cannot be asked for by TLS", name));
  }
  ERR_clear_error();
  if (SSL_connect(tls_) == 1) return {};
  broken_ = WhyTlsFailed();
  return Fail(*broken_);
}

Error Wire::WhyTlsFailed() {
  if (below_ && below_->code != Code::kUnavailable) return *below_;
  std::string reason = diagnosis_->Take();
  if (reason.empty() && below_) return *below_;
  if (reason.empty()) {
    const char* told = ERR_reason_error_string(ERR_peek_last_error());
    reason = told == nullptr ? "no reason is known" : told;
  }
  ERR_clear_error();
  return {Code::kUnavailable, "TLS failed: " + reason, std::nullopt};
}

Result<std::optional<std::size_t>> Wire::Receive(char* to, std::size_t room) {
  for (;;) {
    const ssize_t got = ::recv(socket_.number, to, room, 0);
    if (got >= 0) return std::size_t(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Fail(Failed("cannot read", errno));
    if (!patient_) return std::nullopt;
    TRY(Wait(POLLIN, deadline_));
  }
}

Result<std::optional<std::size_t>> Wire::Send(const char* from, std::size_t size) {
  for (;;) {
    const ssize_t sent = ::send(socket_.number, from, size, MSG_NOSIGNAL);
    if (sent >= 0) {
      sent_ += std::uint64_t(sent);
      return std::size_t(sent);
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Fail(Failed("cannot write", errno));
    if (!patient_) return std::nullopt;
    TRY(Wait(POLLOUT, deadline_));
  }
}

Result<std::size_t> Wire::Read(char* to, std::size_t room) {
  // A server that never lets us wait must not keep us from ending.
  if (stop_.stop_requested()) return Fail(Stopped());
  if (clock_.Now() >= deadline_) return Fail(Code::kTimeout, "");
  if (broken_) return Fail(*broken_);
  if (ended_) return std::size_t{0};
  if (tls_ != nullptr) return ReadTls(to, room);
  ASSIGN_OR_RETURN(const std::optional<std::size_t> got, Receive(to, room));
  ended_ = got.value_or(0) == 0;
  return got.value_or(0);
}

// A record holds 16 KiB at most: whatever has come of them is taken at once.
Result<std::size_t> Wire::ReadTls(char* to, std::size_t room) {
  room = std::min(room, kMostAtOnce);
  std::size_t read = 0;
  while (read < room) {
    patient_ = read == 0;
    ERR_clear_error();
    const int got = SSL_read(tls_, to + read, int(room - read));
    if (got > 0) {
      read += std::size_t(got);
      continue;
    }
    const int why = SSL_get_error(tls_, got);
    if (why == SSL_ERROR_ZERO_RETURN) ended_ = true;
    if (why != SSL_ERROR_ZERO_RETURN &&
        (patient_ || (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)))
      broken_ = WhyTlsFailed();
    break;
  }
  patient_ = true;
  if (read == 0 && broken_) return Fail(*broken_);
  return read;
}

Status Wire::Write(std::string_view bytes) {
  if (broken_) return Fail(*broken_);
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kMostAtOnce);
    if (tls_ == nullptr) {
      ASSIGN_OR_RETURN(const std::optional<std::size_t> sent, Send(bytes.data(), size));
      bytes.remove_prefix(sent.value_or(0));
      continue;
    }
    ERR_clear_error();
    const int sent = SSL_write(tls_, bytes.data(), int(size));
    if (sent <= 0) {
      broken_ = WhyTlsFailed();
      return Fail(*broken_);
    }
    bytes.remove_prefix(std::size_t(sent));
  }
  return {};
}

bool Wire::Quiet() const {
  if (broken_ || ended_ || (tls_ != nullptr && SSL_has_pending(tls_) == 1)) return false;
  char byte = 0;
  return ::recv(socket_.number, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace heddle::kube
