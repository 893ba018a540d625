// What holds for every HttpTransport over real sockets and TLS, against a server that answers by a script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "base/clock.h"
#include "kube/beast_transport.h"
#include "kube/cpprest_transport.h"
#include "tests/support/scripted_http_server.h"

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::milliseconds;
using test::Chunk;
using test::ChunkedHead;
using test::PlainResponse;
using test::ReceivedRequest;
using test::ScriptedHttpServer;
using Connection = ScriptedHttpServer::Connection;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RecordingAuthenticator final : public Authenticator {
 public:
  explicit RecordingAuthenticator(std::string token, ClientCertificate pair = {})
      : token_(std::move(token)), pair_(std::move(pair)) {}
  base::Result<std::vector<HttpHeader>> Headers() override {
    return std::vector<HttpHeader>{{"Authorization", "Bearer " + token_}};
  }
  base::Result<ClientCertificate> Certificate() override { return pair_; }
  void Rejected() override { ++rejected; }

  std::atomic<int> rejected = 0;

 private:
  const std::string token_;
  const ClientCertificate pair_;
};

enum class Over { kCpprest, kBeast };

class TransportTest : public testing::TestWithParam<Over> {
 protected:
  static ClientConfig Config(const ScriptedHttpServer& server) {
    ClientConfig config;
    config.server = server.url();
    return config;
  }
  std::unique_ptr<HttpTransport> Make(ClientConfig config, std::size_t max_body_bytes = 256 << 20) {
    if (GetParam() == Over::kBeast) {
      return std::make_unique<BeastTransport>(std::move(config), clock_,
                                              BeastOptions{.max_body_bytes = max_body_bytes});
    }
    return std::make_unique<CpprestTransport>(std::move(config), clock_,
                                              CpprestOptions{.max_body_bytes = max_body_bytes});
  }
  base::Result<HttpResponse> Get(const ScriptedHttpServer& server, HttpRequest request = Request()) {
    const auto transport = Make(Config(server));
    return transport->Do(request, {});
  }
  static HttpRequest Request() {
    HttpRequest request;
    request.method = "GET";
    request.target = "/api/v1/pods?limit=5";
    request.timeout = std::chrono::seconds(10);
    request.idle_timeout = std::chrono::seconds(10);
    return request;
  }

  base::SystemClock clock_;
};

TEST_P(TransportTest, SendsExactlyWhatItIsGiven) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "{}")); });
  ClientConfig config = Config(server);
  config.authenticator = std::make_shared<RecordingAuthenticator>("s3cret");
  const auto transport = Make(config);
  HttpRequest request = Request();
  request.method = "PATCH";
  request.target = "/apis/heddle.dev/v1alpha1/fabrics/a%2Fb?fieldManager=heddle%20x&force=true";
  request.body = R"({"a":1})";
  request.headers = {{"Content-Type", "application/merge-patch+json"}, {"Accept", "application/json"}};
  ASSERT_TRUE(transport->Do(request, {}));
  const ReceivedRequest received = server.requests().at(0);
  EXPECT_EQ(received.head.substr(0, received.head.find("\r\n")),
            "PATCH /apis/heddle.dev/v1alpha1/fabrics/a%2Fb?fieldManager=heddle%20x&force=true HTTP/1.1");
  EXPECT_EQ(received.Header("Content-Type"), "application/merge-patch+json");
  EXPECT_EQ(received.Header("Accept"), "application/json");
  EXPECT_EQ(received.Header("Authorization"), "Bearer s3cret");
  EXPECT_EQ(received.Header("Content-Length"), "7");
  EXPECT_EQ(received.Header("Host"), server.url().substr(7));
  EXPECT_EQ(received.body, R"({"a":1})");
}

TEST_P(TransportTest, KeepsAPathPrefixOfTheServer) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "{}")); });
  ClientConfig config = Config(server);
  config.server += "/k8s/clusters/c-1";
  const auto transport = Make(config);
  ASSERT_TRUE(transport->Do(Request(), {}));
  EXPECT_EQ(server.requests().at(0).target, "/k8s/clusters/c-1/api/v1/pods?limit=5");
}

TEST_P(TransportTest, ReadsBodiesWithALengthAndInChunks) {
  ScriptedHttpServer server([](const ReceivedRequest& request, Connection& c) {
    if (request.connection == 1) {
      c.Send(PlainResponse(404, "not here", "Retry-After: 3\r\n"));
    } else {
      c.Send(ChunkedHead() + Chunk("not ") + Chunk("here") + std::string(test::kLastChunk));
    }
  });
  const auto first = Get(server);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->status, 404);
  EXPECT_EQ(first->body, "not here");
  EXPECT_EQ(first->Header("retry-after"), "3");
  const auto second = Get(server);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->body, "not here");
}

TEST_P(TransportTest, KeepsItsConnection) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "{}")); });
  const auto transport = Make(Config(server));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(transport->Do(Request(), {}));
  // With cpprestsdk the answer is here a moment before the pool has its connection back, so now and then a second one
  // is made.
  EXPECT_LE(server.connections(), GetParam() == Over::kBeast ? 1 : 3);
}

TEST_P(TransportTest, TriesAgainWhereThePooledConnectionWasClosed) {
  ScriptedHttpServer server([](const ReceivedRequest& request, Connection& c) {
    c.Send(PlainResponse(200, request.connection == 1 ? "first" : "second"));
    if (request.connection == 1) c.Close();
  });
  const auto transport = Make(Config(server));
  ASSERT_TRUE(transport->Do(Request(), {}));
  ASSERT_TRUE(server.WaitForNoConnection());
  const auto again = transport->Do(Request(), {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->body, "second");
}

TEST_P(TransportTest, FollowsNoRedirect) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(PlainResponse(302, "", "Location: http://127.0.0.1:1/elsewhere\r\n"));
  });
  const auto response = Get(server);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 302);
}

TEST_P(TransportTest, SaysThatNobodyListens) {
  ClientConfig config;
  {
    ScriptedHttpServer server([](const ReceivedRequest&, Connection&) {});
    config.server = server.url();
  }
  const auto transport = Make(config);
  const auto response = transport->Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr(config.server));
}

TEST_P(TransportTest, RefusesWhatItCannotConnectToWithASentence) {
  for (const char* server : {"no url", ""}) {
    ClientConfig config;
    config.server = server;
    const auto transport = Make(config);
    const auto response = transport->Do(Request(), {});
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kInvalid) << server;
  }
}

TEST_P(TransportTest, GivesUpOnAServerThatHangs) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.WaitForClient(); });
  HttpRequest request = Request();
  request.timeout = milliseconds(100);
  const auto response = Get(server, request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_TRUE(server.WaitForNoConnection()) << "the connection must not stay open";
}

TEST_P(TransportTest, GivesUpOnABodyThatDoesNotEnd) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
    c.WaitForClient();
  });
  HttpRequest request = Request();
  request.timeout = milliseconds(100);
  const auto response = Get(server, request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
}

TEST_P(TransportTest, SaysThatABodyWasCut) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
    c.Close();
  });
  const auto response = Get(server);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_P(TransportTest, SaysThatAnAnswerIsNoHttp) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send("SSH-2.0-OpenSSH_9.2\r\n\r\n");
    c.Close();
  });
  const auto response = Get(server);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_P(TransportTest, SurvivesAChunkSizeThatIsNoNumber) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + "zz\r\nabc\r\n");
    c.WaitForClient();
  });
  const auto response = Get(server);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

TEST_P(TransportTest, StopsReadingABodyOverItsBound) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead());
    const std::string chunk = Chunk(std::string(64 << 10, 'x'));
    while (c.Send(chunk)) {
    }
  });
  const auto transport = Make(Config(server), 1 << 20);
  const auto response = transport->Do(Request(), {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTooLarge);
  ASSERT_TRUE(server.WaitForNoConnection());
  // What was read, what may lie in the channel, and the kernel's buffers on both sides.
  EXPECT_LT(server.bytes_sent(), 20u << 20);
}

TEST_P(TransportTest, StopsAtOnce) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) { c.WaitForClient(); });
  const auto transport = Make(Config(server));
  std::stop_source stop;
  std::thread asker([&] {
    const auto response = transport->Do(Request(), stop.get_token());
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kCancelled);
  });
  ASSERT_TRUE(server.WaitForRequests(1));
  stop.request_stop();
  asker.join();
  EXPECT_TRUE(server.WaitForNoConnection());
}

TEST_P(TransportTest, ForgetsCredentialsAfter401AndNeverQuotesThem) {
  ScriptedHttpServer server([](const ReceivedRequest& request, Connection& c) {
    if (request.connection == 1) {
      c.Send(PlainResponse(401, "no"));
    }
    c.Close();
  });
  ClientConfig config = Config(server);
  const auto authenticator = std::make_shared<RecordingAuthenticator>("s3cret");
  config.authenticator = authenticator;
  const auto transport = Make(config);
  ASSERT_TRUE(transport->Do(Request(), {}));
  EXPECT_EQ(authenticator->rejected, 1);
  const auto cut = transport->Do(Request(), {});
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, Not(HasSubstr("s3cret")));
}

TEST_P(TransportTest, StreamsChunksAsTheyCome) {
  std::latch second_may_come(1);
  ScriptedHttpServer server([&](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + Chunk("one"));
    second_may_come.wait();
    c.Send(Chunk("two") + std::string(test::kLastChunk));
  });
  const auto transport = Make(Config(server));
  std::vector<std::string> chunks;
  const auto response = transport->Stream(Request(),
                                          [&](std::string_view chunk) {
                                            chunks.emplace_back(chunk);
                                            if (chunk == "one") second_may_come.count_down();
                                            return true;
                                          },
                                          {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_THAT(chunks, ElementsAre("", "one", "two"));
}

TEST_P(TransportTest, CollectsAStreamsRefusal) {
  ScriptedHttpServer server(
      [](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(410, "gone")); });
  const auto transport = Make(Config(server));
  const auto response = transport->Stream(Request(),
                                          [](std::string_view) {
                                            ADD_FAILURE() << "a refusal is no stream";
                                            return true;
                                          },
                                          {});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 410);
  EXPECT_EQ(response->body, "gone");
}

TEST_P(TransportTest, DeliversWhatCameBeforeACutAndTellsTheCut) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + Chunk("last words"));
    c.Close();
  });
  const auto transport = Make(Config(server));
  std::string seen;
  const auto response = transport->Stream(Request(),
                                          [&](std::string_view chunk) {
                                            seen += chunk;
                                            return true;
                                          },
                                          {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_EQ(seen, "last words");
}

TEST_P(TransportTest, EndsAStreamThatFallsSilent) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + Chunk("hello"));
    c.WaitForClient();
  });
  const auto transport = Make(Config(server));
  HttpRequest request = Request();
  request.idle_timeout = milliseconds(100);
  const auto response = transport->Stream(request, [](std::string_view) { return true; }, {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_TRUE(server.WaitForNoConnection());
}

TEST_P(TransportTest, EndsAStreamWhenItsReaderHasEnough) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead() + Chunk("hello"));
    c.WaitForClient();
  });
  const auto transport = Make(Config(server));
  const auto response =
      transport->Stream(Request(), [](std::string_view chunk) { return chunk.empty(); }, {});
  ASSERT_TRUE(response);
  EXPECT_TRUE(server.WaitForNoConnection());
}

TEST_P(TransportTest, ReadsNoFasterThanItsReader) {
  ScriptedHttpServer server([](const ReceivedRequest&, Connection& c) {
    c.Send(ChunkedHead());
    const std::string chunk = Chunk(std::string(64 << 10, 'x'));
    for (int i = 0; i < 2000 && c.Send(chunk); ++i) {
    }
    c.Send(test::kLastChunk);
  });
  const auto transport = Make(Config(server));
  std::uint64_t read = 0, largest_lead = 0;
  const auto response = transport->Stream(Request(),
                                          [&](std::string_view chunk) {
                                            read += chunk.size();
                                            const std::uint64_t sent = server.bytes_sent();
                                            largest_lead =
                                                std::max(largest_lead, sent > read ? sent - read : 0);
                                            return true;
                                          },
                                          {});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(read, 2000u * (64 << 10));
  EXPECT_LT(largest_lead, 24u << 20);
}

TEST_P(TransportTest, RunsManyRequestsSideBySide) {
  std::latch all_here(8);
  ScriptedHttpServer server([&](const ReceivedRequest&, Connection& c) {
    all_here.arrive_and_wait();
    c.Send(PlainResponse(200, "{}"));
  });
  const auto transport = Make(Config(server));
  std::vector<std::jthread> askers;
  for (int i = 0; i < 8; ++i) {
    askers.emplace_back([&] { EXPECT_TRUE(transport->Do(Request(), {})); });
  }
}

constexpr auto kNameOf = [](const testing::TestParamInfo<Over>& over) {
  return over.param == Over::kBeast ? "Beast" : "Cpprest";
};
INSTANTIATE_TEST_SUITE_P(Over, TransportTest, testing::Values(Over::kCpprest, Over::kBeast), kNameOf);

class TlsTransportTest : public TransportTest {
 protected:
  static ScriptedHttpServer::Script Fine() {
    return [](const ReceivedRequest&, Connection& c) { c.Send(PlainResponse(200, "fine")); };
  }
  ClientConfig Trusting(const ScriptedHttpServer& server, const std::string& pem) {
    ClientConfig config = Config(server);
    config.tls.authority = [pem] { return base::Result<std::string>(pem); };
    return config;
  }
  base::Result<HttpResponse> Ask(ClientConfig config) {
    const auto transport = Make(std::move(config));
    return transport->Do(Request(), {});
  }

  const test::TestAuthority authority_{"heddle test CA"};
};

TEST_P(TlsTransportTest, AcceptsAServerOfItsAuthorityForAnAddress) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "IP:127.0.0.1"), ""});
  const auto response = Ask(Trusting(server, authority_.pem()));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "fine");
}

TEST_P(TlsTransportTest, AcceptsAServerOfAnAuthorityWhoseOwnIsNotToldOf) {
  const test::TestAuthority below("heddle test CA below", authority_);
  ScriptedHttpServer server(Fine(), {below.Issue("apiserver", "IP:127.0.0.1"), ""});
  const auto response = Ask(Trusting(server, below.pem()));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "fine");
  EXPECT_FALSE(Ask(Trusting(server, test::TestAuthority("heddle test CA below").pem())))
      << "of its name alone";
}

TEST_P(TlsTransportTest, RefusesAServerOfAnotherAuthorityAndSaysWhy) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "IP:127.0.0.1"), ""});
  const auto response = Ask(Trusting(server, test::TestAuthority("another CA").pem()));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("the server's certificate is refused"));
}

TEST_P(TlsTransportTest, RefusesACertificateForAnotherName) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "DNS:elsewhere.test,IP:10.0.0.1"), ""});
  const auto response = Ask(Trusting(server, authority_.pem()));
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("mismatch"));
}

TEST_P(TlsTransportTest, AcceptsTheNameThatTheConfigGives) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "DNS:api.test"), ""});
  ClientConfig config = Trusting(server, authority_.pem());
  config.tls.server_name = "api.test";
  const auto response = Ask(config);
  ASSERT_TRUE(response) << response.error().message;
  config.tls.server_name = "other.test";
  EXPECT_FALSE(Ask(config));
}

TEST_P(TlsTransportTest, AcceptsAnythingOnlyWhereItIsToldTo) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "DNS:elsewhere.test"), ""});
  ClientConfig config = Config(server);
  EXPECT_FALSE(Ask(config)) << "the system's roots do not know this authority";
  config.tls.insecure_skip_verify = true;
  const auto response = Ask(config);
  EXPECT_TRUE(response) << response.error().message;
}

TEST_P(TlsTransportTest, ShowsItsClientCertificate) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "IP:127.0.0.1"), authority_.pem()});
  ClientConfig config = Trusting(server, authority_.pem());
  const test::TestCertificate pair = authority_.Issue("system:heddle", "");
  config.authenticator =
      std::make_shared<RecordingAuthenticator>("t", ClientCertificate{pair.certificate, pair.key});
  const auto response = Ask(config);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(server.requests().at(0).client_name, "system:heddle");
}

TEST_P(TlsTransportTest, SaysThatAClientKeyIsUnusable) {
  ScriptedHttpServer server(Fine(), {authority_.Issue("apiserver", "IP:127.0.0.1"), authority_.pem()});
  ClientConfig config = Trusting(server, authority_.pem());
  const test::TestCertificate pair = authority_.Issue("system:heddle", "");
  config.authenticator =
      std::make_shared<RecordingAuthenticator>("t", ClientCertificate{pair.certificate, "no key"});
  EXPECT_FALSE(Ask(config));
}

TEST_P(TlsTransportTest, ReadsTheAuthorityAnewForANewConnection) {
  ScriptedHttpServer server(
      [](const ReceivedRequest&, Connection& c) {
        c.Send(PlainResponse(200, "fine"));
        c.Close();
      },
      {authority_.Issue("apiserver", "IP:127.0.0.1"), ""});
  std::string pem = test::TestAuthority("the old CA").pem();
  ClientConfig config = Config(server);
  config.tls.authority = [&pem] { return base::Result<std::string>(pem); };
  const auto transport = Make(config);
  EXPECT_FALSE(transport->Do(Request(), {}));
  pem = authority_.pem();
  const auto response = transport->Do(Request(), {});
  EXPECT_TRUE(response) << response.error().message;
}

INSTANTIATE_TEST_SUITE_P(Over, TlsTransportTest, testing::Values(Over::kCpprest, Over::kBeast), kNameOf);

TEST(CpprestTransport, RefusesAnIPv6AddressWithASentence) {
  base::SystemClock clock;
  CpprestTransport transport({.server = "https://[fd00::1]:6443"}, clock);
  const auto response = transport.Do({.method = "GET", .target = "/"}, {});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kInvalid);
}

TEST(SystemAuthorities, ArePassedOverOnlyWhereTheConfigNamesItsOwn) {
  const char* before = std::getenv("SSL_CERT_FILE");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("SSL_CERT_FILE");
  PassOverSystemAuthorities(ClientConfig{});
  EXPECT_EQ(std::getenv("SSL_CERT_FILE"), nullptr);
  ClientConfig config;
  config.tls.authority = [] { return base::Result<std::string>("CA"); };
  PassOverSystemAuthorities(config);
  EXPECT_STREQ(std::getenv("SSL_CERT_FILE"), "/dev/null");
  if (before == nullptr) {
    ::unsetenv("SSL_CERT_FILE");
  } else {
    ::setenv("SSL_CERT_FILE", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace heddle::kube
