#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kube/http.h"

struct ssl_st;
struct ssl_ctx_st;

namespace heddle::test {

// A certificate authority and certificates under it, made in this process with EC P-256 keys.
struct TestCertificate {
  std::string certificate;  // PEM
  std::string key;          // PEM
};
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  TestAuthority(const std::string& name, const TestAuthority& above);  // which signs it
  const std::string& pem() const { return self_.certificate; }
  // subject_alt_names as OpenSSL writes them: "DNS:api.test,IP:127.0.0.1"; "" = a client's certificate.
  TestCertificate Issue(const std::string& common_name, const std::string& subject_alt_names) const {
    return Issue(common_name, subject_alt_names, std::chrono::hours(-24), std::chrono::hours(24));
  }
  // Good from and until so long from now.
  TestCertificate Issue(const std::string& common_name, const std::string& subject_alt_names,
                        std::chrono::seconds from, std::chrono::seconds until) const;

 private:
  TestCertificate self_;
};

// One that no authority has issued, as appliances make it on their first start.
TestCertificate SelfSigned(const std::string& common_name, const std::string& subject_alt_names);

// A request as it came over the wire.
struct ReceivedRequest {
  std::string head;  // request line and headers, with their line ends
  std::string method;
  std::string target;
  std::string body;
  int connection = 0;       // 1 = the first that was accepted
  std::string client_name;  // the client certificate's common name, "" = none

  std::string Header(std::string_view name) const;  // "" = none
};

// An HTTP server on 127.0.0.1 that answers by a script, down to the single byte: it can hang, cut, and lie.
// The script runs on the connection's thread, once for each request.
class ScriptedHttpServer {
 public:
  class Connection {
   public:
    bool Send(std::string_view bytes);  // false once the client is gone
    void Close();                       // the script returns after this
    void WaitForClient();               // until the client closes, or the test ends
    std::uint64_t sent() const { return sent_; }

   private:
    friend class ScriptedHttpServer;
    int fd_ = -1;
    ssl_st* tls_ = nullptr;
    int number_ = 0;
    std::string client_name_;
    std::atomic<std::uint64_t> sent_{0};
    bool closed_ = false;
    std::string buffered_;
  };
  using Script = std::function<void(const ReceivedRequest&, Connection&)>;
  struct Tls {
    TestCertificate certificate;
    std::string client_authority;  // PEM; "" = clients need no certificate
  };

  explicit ScriptedHttpServer(Script script);
  ScriptedHttpServer(Script script, const Tls& tls);
  ~ScriptedHttpServer();

  int port() const { return port_; }
  std::string url() const;  // "http://127.0.0.1:<port>", or https
  std::vector<ReceivedRequest> requests() const;
  int connections() const;           // accepted so far
  std::uint64_t bytes_sent() const;  // on all connections
  bool WaitForRequests(std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds(10)) const;
  // Until every accepted connection was closed by its client or script.
  bool WaitForNoConnection(std::chrono::milliseconds limit = std::chrono::seconds(10)) const;

 private:
  void Listen();
  void Accept();
  void Serve(Connection& connection);
  bool ReadRequest(Connection& connection, ReceivedRequest& request);
  bool Receive(Connection& connection);

  Script script_;
  ssl_ctx_st* context_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<ReceivedRequest> requests_;
  std::list<Connection> connections_;
  int open_ = 0;
  bool stopping_ = false;
  std::thread accepting_;
  std::vector<std::thread> serving_;
};

// Answers for scripts.
std::string PlainResponse(int status, std::string_view body, std::string_view extra_headers = "");
std::string ChunkedHead(int status = 200);
std::string Chunk(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace heddle::test
