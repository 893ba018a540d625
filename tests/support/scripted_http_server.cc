#include "tests/support/scripted_http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/check.h"

namespace heddle::test {
namespace {

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = char(std::tolower(static_cast<unsigned char>(c)));
  return lowered;
}

SSL_CTX* MakeContext(const ScriptedHttpServer::Tls& tls) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  BIO* certificate = BIO_new_mem_buf(tls.certificate.certificate.data(), -1);
  BIO* key = BIO_new_mem_buf(tls.certificate.key.data(), -1);
  X509* x509 = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
  EVP_PKEY* pkey = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
  CHECK(SSL_CTX_use_certificate(context, x509) == 1);
  CHECK(SSL_CTX_use_PrivateKey(context, pkey) == 1);
  X509_free(x509);
  EVP_PKEY_free(pkey);
  BIO_free(certificate);
  BIO_free(key);
  if (!tls.client_authority.empty()) {
    BIO* reader = BIO_new_mem_buf(tls.client_authority.data(), -1);
    X509* authority = PEM_read_bio_X509(reader, nullptr, nullptr, nullptr);
    CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1);
    X509_free(authority);
    BIO_free(reader);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

std::string PeerName(SSL* tls) {
  X509* peer = SSL_get1_peer_certificate(tls);
  if (peer == nullptr) return "";
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name.data(), int(name.size()));
  X509_free(peer);
  return name.data();
}

}  // namespace

std::string ReceivedRequest::Header(std::string_view name) const {
  const std::string wanted = "\r\n" + Lowered(name) + ":";
  const auto at = Lowered(head).find(wanted);
  if (at == std::string::npos) return "";
  const auto first = head.find_first_not_of(' ', at + wanted.size());
  return head.substr(first, head.find("\r\n", first) - first);
}

bool ScriptedHttpServer::Connection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = tls_ != nullptr ? ssize_t(SSL_write(tls_, bytes.data(), int(bytes.size())))
                                      : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    sent_ += std::uint64_t(sent);
    bytes.remove_prefix(std::size_t(sent));
  }
  return true;
}

void ScriptedHttpServer::Connection::Close() {
  closed_ = true;
  ::shutdown(fd_, SHUT_RDWR);
}

void ScriptedHttpServer::Connection::WaitForClient() {
  // Its reading side ends, or the test's end shuts the socket down.
  pollfd gone{fd_, POLLRDHUP, 0};
  ::poll(&gone, 1, 30'000);
}

ScriptedHttpServer::ScriptedHttpServer(Script script) : script_(std::move(script)) {
  Listen();
}

ScriptedHttpServer::ScriptedHttpServer(Script script, const Tls& tls)
    : script_(std::move(script)), context_(MakeContext(tls)) {
  // SSL_write has no MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  Listen();
}

void ScriptedHttpServer::Listen() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(listener_ >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  CHECK(::listen(listener_, 64) == 0);
  socklen_t size = sizeof(address);
  CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

ScriptedHttpServer::~ScriptedHttpServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    for (Connection& connection : connections_) ::shutdown(connection.fd_, SHUT_RDWR);
  }
  accepting_.join();
  for (std::thread& thread : serving_) thread.join();
  for (Connection& connection : connections_) ::close(connection.fd_);
  ::close(listener_);
  SSL_CTX_free(context_);
}

void ScriptedHttpServer::Accept() {
  for (;;) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (fd < 0 || stopping_) {
      if (fd >= 0) ::close(fd);
      return;
    }
    Connection& connection = connections_.emplace_back();
    connection.fd_ = fd;
    connection.number_ = int(connections_.size());
    ++open_;
    serving_.emplace_back([this, &connection] { Serve(connection); });
  }
}

void ScriptedHttpServer::Serve(Connection& connection) {
  bool ready = true;
  if (context_ != nullptr) {
    connection.tls_ = SSL_new(context_);
    SSL_set_fd(connection.tls_, connection.fd_);
    ready = SSL_accept(connection.tls_) == 1;
    if (ready) connection.client_name_ = PeerName(connection.tls_);
  }
  ReceivedRequest request;
  while (ready && !connection.closed_ && ReadRequest(connection, request)) {
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      changed_.notify_all();
    }
    script_(request, connection);
  }
  if (connection.tls_ != nullptr && !connection.closed_) SSL_shutdown(connection.tls_);
  SSL_free(connection.tls_);
  connection.tls_ = nullptr;
  ::shutdown(connection.fd_, SHUT_RDWR);
  const std::lock_guard lock(mutex_);
  --open_;
  changed_.notify_all();
}

bool ScriptedHttpServer::Receive(Connection& connection) {
  std::array<char, 16384> bytes;
  const auto count = connection.tls_ != nullptr
                         ? ssize_t(SSL_read(connection.tls_, bytes.data(), int(bytes.size())))
                         : ::recv(connection.fd_, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  connection.buffered_.append(bytes.data(), std::size_t(count));
  return true;
}

bool ScriptedHttpServer::ReadRequest(Connection& connection, ReceivedRequest& request) {
  std::string& buffered = connection.buffered_;
  std::size_t end = 0;
  while ((end = buffered.find("\r\n\r\n")) == std::string::npos) {
    if (!Receive(connection)) return false;
  }
  request = {};
  request.connection = connection.number_;
  request.client_name = connection.client_name_;
  request.head = buffered.substr(0, end + 2);
  buffered.erase(0, end + 4);
  request.method = request.head.substr(0, request.head.find(' '));
  const auto target = request.method.size() + 1;
  request.target = request.head.substr(target, request.head.find(' ', target) - target);
  const std::size_t length = std::size_t(std::atoll(request.Header("Content-Length").c_str()));
  while (buffered.size() < length) {
    if (!Receive(connection)) return false;
  }
  request.body = buffered.substr(0, length);
  buffered.erase(0, length);
  return true;
}

std::string ScriptedHttpServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", context_ != nullptr ? "https" : "http", port_);
}

std::vector<ReceivedRequest> ScriptedHttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int ScriptedHttpServer::connections() const {
  const std::lock_guard lock(mutex_);
  return int(connections_.size());
}

std::uint64_t ScriptedHttpServer::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const Connection& connection : connections_) sum += connection.sent();
  return sum;
}

bool ScriptedHttpServer::WaitForRequests(std::size_t count, std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return requests_.size() >= count; });
}

bool ScriptedHttpServer::WaitForNoConnection(std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return open_ == 0; });
}

std::string PlainResponse(int status, std::string_view body, std::string_view extra_headers) {
  return fmt::format("HTTP/1.1 {} Any\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), extra_headers,
                     body);
}

std::string ChunkedHead(int status) {
  return fmt::format("HTTP/1.1 {} Any\r\nTransfer-Encoding: chunked\r\n\r\n", status);
}

std::string Chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace heddle::test
