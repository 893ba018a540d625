// What BeastTransport does beyond what holds for every transport (transport_test.cc).
#include "kube/beast_transport.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "kube/http_server.h"
#include "kube/lease.h"
#include "tests/support/fake_clock.h"
#include "tests/support/scripted_http_server.h"

namespace heddle::kube {
namespace {

using base::Code;
using test::Chunk;
using test::ChunkedHead;
using test::PlainResponse;
using test::ReceivedRequest;
using test::ScriptedHttpServer;
using Connection = ScriptedHttpServer::Connection;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

HttpRequest Request(const std::string& method = "GET") {
  HttpRequest request;
  request.method = method;
  request.target = "/api/v1/pods";
  request.timeout = request.idle_timeout = std::chrono::seconds(10);
  return request;
}

class BeastTransportTest : public testing::Test {
 protected:
  // What comes of one request to a server that sends this and, if so, closes the connection.
  base::Result<HttpResponse> Answered(const std::string& bytes, bool closes = false,
                                      HttpRequest request = Request()) {
    ScriptedHttpServer server([&](const ReceivedRequest&, Connection& c) {
      c.Send(bytes);
      if (closes) c.Close();
    });
    BeastTransport transport({.server = server.url()}, clock_, {.max_body_bytes = 1 << 20});
    return transport.Do(request, {});
  }

  base::SystemClock clock_;
};

TEST_F(BeastTransportTest, PassesOverAnswersThatAnnounceTheAnswer) {
  const auto response =
      Answered("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
               PlainResponse(200, "the answer"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "the answer");
  EXPECT_FALSE(response->Header("Link"));
}

TEST_F(BeastTransportTest, ReadsABodyThatEndsWithTheConnection) {
  const auto response = Answered("HTTP/1.0 200 OK\r\n\r\nall of it", true);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "all of it");
}

TEST_F(BeastTransportTest, ReadsAnswersWithoutABody) {
  const auto none = Answered("HTTP/1.1 204 No Content\r\n\r\n");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->body, "");
  const auto head = Answered("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", false, Request("HEAD"));
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->Header("content-length"), "100");
}

TEST_F(BeastTransportTest, ReadsTrailersAndKeepsThemOutOfTheHead) {
  const auto response = Answered(ChunkedHead() + Chunk("body") + "0\r\nX-Late: yes\r\n\r\n");
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "body");
  EXPECT_FALSE(response->Header("X-Late"));
}

TEST_F(BeastTransportTest, RefusesALengthOverItsBoundBeforeTheBodyComes) {
  const auto response = Answered("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTooLarge);
  EXPECT_THAT(response.error().message, HasSubstr("an answer over 1048576 bytes"));
}

TEST_F(BeastTransportTest, RefusesAHeadThatDoesNotEnd) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send("HTTP/1.1 200 OK\r\n");
    while (c.Send("X-More: and more of it\r\n")) {
    }
  });
  BeastTransport transport({.server = server.url()}, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("this is no HTTP answer"));
}

TEST_F(BeastTransportTest, RefusesAChunkHeadThatDoesNotEnd) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + "1;");
    while (c.Send("an=extension;")) {
    }
  });
  BeastTransport transport({.server = server.url()}, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_F(BeastTransportTest, RefusesALengthBesideChunks) {
  const auto response =
      Answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + Chunk("abc") +
               std::string(test::kLastChunk));
  ASSERT_FALSE(response) << "two readers would see two answers";
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_F(BeastTransportTest, DropsAConnectionThatTheServerWantsToEnd) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(PlainResponse(200, "{}", "Connection: close\r\n"));
    c.WaitForClient();
  });
  BeastTransport transport({.server = server.url()}, clock_);
  ASSERT_TRUE(transport.Do(Request(), {}));
  EXPECT_TRUE(server.WaitForNoConnection());
  ASSERT_TRUE(transport.Do(Request(), {}));
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(BeastTransportTest, TakesNothingThatStandsBehindAnAnswerForTheNext) {
  ScriptedHttpServer server([](const ReceivedRequest& request, Connection& c) {
    c.Send(PlainResponse(200, "mine") + (request.connection == 1 ? PlainResponse(200, "injected") : ""));
  });
  BeastTransport transport({.server = server.url()}, clock_);
  for (int i = 0; i < 2; ++i) {
    const auto response = transport.Do(Request(), {});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "mine");
  }
}

TEST_F(BeastTransportTest, StreamsALongChunkInPieces) {
  const std::string sent(3 << 20, 'x');
  ScriptedHttpServer server([&](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + Chunk(sent) + std::string(test::kLastChunk));
  });
  BeastTransport transport({.server = server.url()}, clock_, {.max_body_bytes = 1 << 20});
  std::size_t pieces = 0;
  std::string read;
  const auto response = transport.Stream(Request(),
                                         [&](std::string_view piece) {
                                           ++pieces;
                                           read += piece;
                                           return true;
                                         },
                                         {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_TRUE(read == sent);
  EXPECT_GT(pieces, 2u) << "the stream's bound is its reader's own";
}

// A server that answers the first request of its first connection, and ends that connection at the second.
ScriptedHttpServer::Script EndsAtTheSecond() {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  return [asked](const ReceivedRequest& request, Connection& c) {
    if (++*asked == 2 && request.connection == 1) return c.Close();
    c.Send(PlainResponse(200, "{}"));
  };
}

TEST_F(BeastTransportTest, ReadsAgainWhereAKeptConnectionEndsBeforeTheAnswer) {
  ScriptedHttpServer server(EndsAtTheSecond());
  BeastTransport transport({.server = server.url()}, clock_);
  ASSERT_TRUE(transport.Do(Request(), {}));
  const auto response = transport.Do(Request(), {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(BeastTransportTest, WritesOnlyOnceWhereAKeptConnectionEndsBeforeTheAnswer) {
  ScriptedHttpServer server(EndsAtTheSecond());
  BeastTransport transport({.server = server.url()}, clock_);
  ASSERT_TRUE(transport.Do(Request(), {}));
  HttpRequest write = Request("POST");
  write.body = "{}";
  const auto response = transport.Do(write, {});
  ASSERT_FALSE(response) << "the server may have done it";
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(BeastTransportTest, KeepsAConnectionFromOneRenewalOfALeaseToTheNextAndNotUntilTheServerEndsIt) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "{}")); });
  test::FakeClock clock;
  BeastTransport transport({.server = server.url()}, clock);
  ASSERT_TRUE(transport.Do(Request("PUT"), {}));
  clock.Advance(kHeartbeatPeriod * 6 / 5);  // with all of its jitter
  ASSERT_TRUE(transport.Do(Request("PUT"), {}));
  EXPECT_EQ(server.connections(), 1);
  clock.Advance(std::chrono::seconds(85));  // an API server ends it after 90 s
  ASSERT_TRUE(transport.Do(Request("PUT"), {}));
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(BeastTransportTest, WritesOnAnotherConnectionWhereTheServerEndedTheKeptOneMeanwhile) {
  ScriptedHttpServer server([](const ReceivedRequest& request, Connection& c) {
    c.Send(PlainResponse(200, "{}"));
    if (request.connection == 1) c.Close();
  });
  BeastTransport transport({.server = server.url()}, clock_);
  ASSERT_TRUE(transport.Do(Request("PUT"), {}));
  ASSERT_TRUE(server.WaitForNoConnection());
  const auto response = transport.Do(Request("PUT"), {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(server.requests().size(), 2u) << "none was sent twice";
}

TEST_F(BeastTransportTest, SendsNoHeaderThatWouldBeTwo) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "{}")); });
  BeastTransport transport({.server = server.url()}, clock_);
  HttpRequest request = Request();
  request.headers = {{"Authorization", "Bearer s3cret\r\nX-Other: yes"}};
  const auto response = transport.Do(request, {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kInvalid);
  EXPECT_THAT(response.error().message, Not(HasSubstr("s3cret")));
  request = Request();
  request.target = "/api HTTP/1.1\r\nX-Other: yes";
  EXPECT_FALSE(transport.Do(request, {}));
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(BeastTransportTest, ConnectsToAnIPv6Address) {
  const auto server =
      HttpServer::Start("[::1]:0", 0, [](const ServedRequest&) { return ServedAnswer{.body = "over IPv6"}; });
  if (!server) GTEST_SKIP() << "a kernel without IPv6: " << server.error().message;
  BeastTransport transport({.server = "http://" + (*server)->address()}, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "over IPv6");
}

TEST_F(BeastTransportTest, SaysWhichNameHasNoAddress) {
  const std::string host(64, 'x');  // longer than a name's part may be, so that no server is asked
  BeastTransport transport({.server = "http://" + host}, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("cannot look up " + host));
}

TEST_F(BeastTransportTest, RefusesALoginInTheServersUrlAndNeverQuotesIt) {
  BeastTransport transport({.server = "https://loom:s3cret@127.0.0.1:1"}, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kInvalid);
  EXPECT_THAT(response.error().message, Not(HasSubstr("s3cret")));
}

class BeastTlsTest : public BeastTransportTest {
 protected:
  ClientConfig Trusting(const ScriptedHttpServer& server) const {
    ClientConfig config{.server = server.url()};
    config.tls.authority = [pem = authority_.pem()] { return base::Result<std::string>(pem); };
    return config;
  }
  static ScriptedHttpServer::Script Fine() {
    return [](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "fine")); };
  }

  const test::TestAuthority authority_{"heddle test CA"};
  const test::TestCertificate local_ = authority_.Issue("apiserver", "IP:127.0.0.1");
};

TEST_F(BeastTlsTest, ReadsALongBodyOverOneConnection) {
  const std::string sent(5 << 20, 'y');
  ScriptedHttpServer server([&](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, sent)); },
                            {local_, ""});
  BeastTransport transport(Trusting(server), clock_);
  for (int i = 0; i < 3; ++i) {
    const auto response = transport.Do(Request(), {});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_TRUE(response->body == sent);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(BeastTlsTest, TakesABodyThatIsCutWithoutTheEndOfTlsForCut) {
  ScriptedHttpServer server(
      [](const ReceivedRequest&, Connection& c) {
        c.Send("HTTP/1.0 200 OK\r\n\r\nnot all of it");
        c.Close();
      },
      {local_, ""});
  BeastTransport transport(Trusting(server), clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response) << "whoever is between could cut it anywhere";
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_F(BeastTlsTest, TrustsNobodyForANameThatNoCertificateCanCarry) {
  ScriptedHttpServer server(Fine(), {local_, ""});
  ClientConfig config = Trusting(server);
  config.tls.server_name = std::string("\0api.test", 9);
  BeastTransport transport(config, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(BeastTlsTest, RefusesAnAddressThatStandsInTheCertificateAsANameAlone) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("127.0.0.1", "DNS:127.0.0.1"), ""});
  BeastTransport transport(Trusting(server), clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("mismatch"));
}

TEST_F(BeastTlsTest, SaysWhichOfItsOwnFilesIsOfNoUse) {
  ScriptedHttpServer server(Fine(), {local_, ""});
  ClientConfig config = Trusting(server);
  config.tls.authority = [] { return base::Result<std::string>("no PEM"); };
  BeastTransport transport(config, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("the certificate authority holds no certificate"));
}

// A proxy that takes one connection: reads a head, says this, and passes bytes on to a port of this host.
class OneTunnel {
 public:
  OneTunnel(int to_port, std::string answer) : to_port_(to_port), answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = Local(0);
    socklen_t size = sizeof(address);
    CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(::listen(listener_, 1) == 0);
    CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    passing_ = std::thread([this] { Pass(); });
  }
  ~OneTunnel() {
    ::shutdown(listener_, SHUT_RDWR);
    if (passing_.joinable()) passing_.join();
    ::close(listener_);
  }
  OneTunnel(const OneTunnel&) = delete;
  OneTunnel& operator=(const OneTunnel&) = delete;

  std::string url(const std::string& login = "") const {
    return "http://" + login + "127.0.0.1:" + std::to_string(port_);
  }
  // Of the request, once the client has gone.
  std::string Head() {
    passing_.join();
    return head_;
  }

 private:
  static sockaddr_in Local(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(std::uint16_t(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static bool Move(int from, int to) {
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    return got > 0 && ::send(to, bytes.data(), std::size_t(got), MSG_NOSIGNAL) == got;
  }
  void Pass() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    char byte = 0;
    while (!head_.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1) head_ += byte;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Local(to_port_);
    bool open = ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    open = ::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL) == ssize_t(answer_.size()) && open;
    while (open) {
      std::array<pollfd, 2> both{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
      if (::poll(both.data(), both.size(), 30'000) <= 0) break;
      if (both[0].revents != 0) open = Move(client, server);
      if (open && both[1].revents != 0) open = Move(server, client);
    }
    ::close(server);
    ::close(client);
  }

  const int to_port_;
  const std::string answer_;
  int listener_ = -1, port_ = 0;
  std::string head_;
  std::thread passing_;
};

TEST_F(BeastTlsTest, AsksAProxyForATunnelAndTheServerForItsCertificate) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "DNS:api.test"), ""});
  OneTunnel proxy(server.port(), "HTTP/1.1 200 Connection established\r\n\r\n");
  ClientConfig config = Trusting(server);
  config.server = "https://api.test:6443";  // no address of ours: the proxy looks it up
  config.proxy_url = proxy.url("loom:p%40ss@");
  {
    BeastTransport transport(config, clock_);
    const auto response = transport.Do(Request(), {});
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "fine");
  }
  const std::string head = proxy.Head();
  EXPECT_THAT(head, StartsWith("CONNECT api.test:6443 HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nProxy-Authorization: Basic bG9vbTpwQHNz\r\n"));
  EXPECT_THAT(server.requests().at(0).head, Not(HasSubstr("Proxy-")));
}

TEST_F(BeastTlsTest, SaysThatAProxyMakesNoTunnel) {
  ScriptedHttpServer server(Fine(), {local_, ""});
  OneTunnel proxy(server.port(), "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
  ClientConfig config = Trusting(server);
  config.proxy_url = proxy.url("loom:s3cret@");
  BeastTransport transport(config, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("is answered 407"));
  EXPECT_THAT(response.error().message, HasSubstr(" through proxy " + proxy.url("") + ": "));
  EXPECT_THAT(response.error().message, Not(HasSubstr("s3cret")));
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(BeastTransportTest, NamesTheProxyThatCannotBeReached) {
  BeastTransport transport({.server = "http://api.test:8080", .proxy_url = "http://loom:s3cret@127.0.0.1:1"},
                           clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(
      response.error().message,
      StartsWith("http://api.test:8080 through proxy http://127.0.0.1:1: cannot connect to 127.0.0.1:1"));
}

TEST_F(BeastTransportTest, GivesAProxyTheWholeUrlOfAPlainServer) {
  ScriptedHttpServer proxy([](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "{}")); });
  BeastTransport transport({.server = "http://api.test:8080/base", .proxy_url = proxy.url()}, clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(proxy.requests().at(0).target, "http://api.test:8080/base/api/v1/pods");
  EXPECT_EQ(proxy.requests().at(0).Header("Host"), "api.test:8080");
}

TEST_F(BeastTransportTest, RefusesAProxyThatItCannotSpeakTo) {
  for (const char* url : {"https://proxy.test", "socks5://proxy.test:1080"}) {
    BeastTransport transport({.server = "https://api.test", .proxy_url = url}, clock_);
    const auto response = transport.Do(Request(), {});
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kInvalid) << url;
    EXPECT_THAT(response.error().message, StartsWith("proxy-url: "));
    EXPECT_THAT(response.error().message, HasSubstr("over http:// only"));
  }
  BeastTransport transport({.server = "https://api.test",
                            .proxy_url = "socks5://loom:s3cret@proxy.test",
                            .proxy_from = "HTTPS_PROXY"},
                           clock_);
  const auto response = transport.Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, StartsWith("HTTPS_PROXY: "));
  EXPECT_THAT(response.error().message, HasSubstr("name the server's host in NO_PROXY"));
  EXPECT_THAT(response.error().message, Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace heddle::kube
