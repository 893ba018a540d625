// The client over real sockets and TLS, against a server that answers by a script.
#include "operator/ufm_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>

#include "kube/base64.h"
#include "kube/cpprest_transport.h"
#include "tests/support/scripted_http_server.h"
#include "tests/support/ufm_answers.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using namespace std::chrono_literals;
using test::PlainResponse;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using Connection = test::ScriptedHttpServer::Connection;

class UfmClientTest : public testing::Test {
 protected:
  UfmClientTest() {
    fabric.At("1c34da0300728606", 1).system = "su1-r3";
    fabric.At("1c34da0300728606", 1).counters["LinkDowned"] = 3;
  }

  test::ScriptedHttpServer::Script Answers() {
    return [this](const test::ReceivedRequest& request, Connection& to) {
      const bool ports = request.target.find("/resources/ports?") != std::string::npos;
      to.Send(PlainResponse(200, (ports ? fabric.PortsJson() : fabric.CountersJson()).dump()));
    };
  }
  static test::ScriptedHttpServer::Script Always(std::string response) {
    return [response](const test::ReceivedRequest&, Connection& to) { to.Send(response); };
  }
  UfmClient ClientOf(const test::ScriptedHttpServer& server, const std::string& authority_pem,
                     std::size_t most = 1 << 20) {
    const UfmEndpoint endpoint{.address = fmt::format("127.0.0.1:{}", server.port()),
                               .ca_pem = authority_pem,
                               .authorization = "Basic " + kube::EncodeBase64("heddle:loom")};
    return {std::make_unique<kube::CpprestTransport>(ConfigOf(endpoint), clock,
                                                     kube::CpprestOptions{.max_body_bytes = most}),
            endpoint.base_path, 1000ms};
  }
  // What comes of asking for counters a server that does this.
  base::Error ErrorOf(test::ScriptedHttpServer::Script script, std::size_t most = 1 << 20) {
    test::ScriptedHttpServer server(std::move(script), {ufm, ""});
    const auto counters = ClientOf(server, authority.pem(), most).Counters(never);
    EXPECT_FALSE(counters);
    return counters ? base::Error{} : counters.error();
  }
  static std::string ReasonOf(const base::Error& error) { return UfmTroubleOf(error).reason; }

  base::SystemClock clock;
  std::stop_token never;
  test::TestAuthority authority{"site"};
  test::TestCertificate ufm = authority.Issue("ufm", "IP:127.0.0.1");
  test::UfmFabric fabric;
};

TEST_F(UfmClientTest, AsksForPortsAndCountersWithItsLoginAndSendsNothingButGet) {
  test::ScriptedHttpServer server(Answers(), {ufm, ""});
  UfmClient client = ClientOf(server, authority.pem());
  const auto ports = client.Ports(never);
  ASSERT_TRUE(ports) << ports.error().message;
  ASSERT_THAT(*ports, SizeIs(1));
  EXPECT_EQ(ports->front().system, "su1-r3");
  const auto counters = client.Counters(never);
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_EQ(counters->ports.at("1c34da0300728606_1").link_downs, 3U);
  for (const test::ReceivedRequest& request : server.requests()) {
    EXPECT_EQ(request.method, "GET");
    EXPECT_EQ(request.Header("Authorization"), "Basic aGVkZGxlOmxvb20=");
  }
  EXPECT_EQ(server.requests()[0].target, "/ufmRest/resources/ports?page_number=1&rpp=1000");
  EXPECT_EQ(server.requests()[1].target, "/ufmRest/monitoring/session/0/data");
}

TEST_F(UfmClientTest, ReadsAllPagesAndNotForEver) {
  std::atomic<int> pages = 0;
  // It says for ever that there is more.
  test::ScriptedHttpServer server(
      [&](const test::ReceivedRequest&, Connection& to) {
        kube::Json page = fabric.PortsJson();
        page["filtered_resources"] = 1'000'000'000;
        ++pages;
        to.Send(PlainResponse(200, page.dump()));
      },
      {ufm, ""});
  const auto ports = ClientOf(server, authority.pem()).Ports(never);
  ASSERT_TRUE(ports) << ports.error().message;
  EXPECT_EQ(pages, kMaxUfmPages);
}

TEST_F(UfmClientTest, TellsApartWhatUfmRefuses) {
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(401, "{}")))), "PasswordRefused");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(403, "{}")))), "NotAllowed");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(404, "<html>")))), "NoUfm");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(429, "")))), "TooSlow");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(503, "")))), "Unreachable");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(204, "")))), "Unreadable");
  const base::Error elsewhere =
      ErrorOf(Always(PlainResponse(302, "", "Location: https://elsewhere.example/\r\n")));
  EXPECT_EQ(ReasonOf(elsewhere), "Unreadable");
}

TEST_F(UfmClientTest, NeverQuotesItsLogin) {
  const SwitchTrouble trouble = UfmTroubleOf(ErrorOf(Always(PlainResponse(401, "loom"))));
  EXPECT_THAT(trouble.message, Not(HasSubstr("loom")));
  EXPECT_THAT(trouble.message, Not(HasSubstr("aGVkZGxlOmxvb20")));
  EXPECT_THAT(trouble.message, HasSubstr("credentialsSecret"));
}

TEST_F(UfmClientTest, GivesUpOnOneThatHangsAndOnOneThatDoesNotEnd) {
  EXPECT_EQ(ReasonOf(ErrorOf([](const auto&, Connection& to) { to.WaitForClient(); })), "TooSlow");
  EXPECT_EQ(ReasonOf(ErrorOf([](const auto&, Connection& to) {
              to.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{");
              to.WaitForClient();
            })),
            "TooSlow");
}

TEST_F(UfmClientTest, UsesNothingOfHalfAnAnswerOfGarbageOrOfOneThatIsTooLarge) {
  const std::string whole = fabric.CountersJson().dump();
  const std::string half = whole.substr(0, whole.size() / 2);
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(200, half)))), "Unreadable");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(200, "\x16\x03\x01\xff")))), "Unreadable");
  EXPECT_EQ(ReasonOf(ErrorOf(Always(PlainResponse(200, std::string(5000, ' '))), 4096)), "Unreadable");
  // Cut off on the wire.
  EXPECT_EQ(ReasonOf(ErrorOf([&](const auto&, Connection& to) {
              to.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + half);
              to.Close();
            })),
            "Unreachable");
}

TEST_F(UfmClientTest, GoesToNobodyWhoDoesNotProveWhoHeIs) {
  const test::TestAuthority stranger("stranger");
  const auto asked_with = [&](const test::TestCertificate& certificate) {
    test::ScriptedHttpServer server(Answers(), {certificate, ""});
    const auto counters = ClientOf(server, authority.pem()).Counters(never);
    EXPECT_FALSE(counters);
    EXPECT_THAT(server.requests(), SizeIs(0));  // no login has gone there
    return counters ? "" : UfmTroubleOf(counters.error()).reason;
  };
  EXPECT_EQ(asked_with(stranger.Issue("ufm", "IP:127.0.0.1")), "CertificateRefused");
  EXPECT_EQ(asked_with(authority.Issue("ufm", "DNS:another.example")), "CertificateRefused");
  EXPECT_EQ(asked_with(authority.Issue("ufm", "IP:127.0.0.1", -48h, -24h)), "CertificateRefused");
}

TEST_F(UfmClientTest, SaysThatNobodyListens) {
  std::unique_ptr<UfmClient> client;
  {
    test::ScriptedHttpServer gone(Answers(), {ufm, ""});
    client = std::make_unique<UfmClient>(ClientOf(gone, authority.pem()));
  }
  const auto counters = client->Counters(never);
  ASSERT_FALSE(counters);
  EXPECT_EQ(ReasonOf(counters.error()), "Unreachable");
}

const kube::Resource kSecrets{"", "v1", "secrets", "Secret", true};

class UfmEndpointTest : public Stage {
 protected:
  UfmEndpointTest() { server.Serve(kSecrets); }
  void Put(const std::string& name, const std::map<std::string, std::string>& data) {
    Json secret = {{"apiVersion", "v1"},
                   {"kind", "Secret"},
                   {"metadata", {{"name", name}, {"namespace", "heddle-system"}}}};
    for (const auto& [key, value] : data) secret["data"][key] = kube::EncodeBase64(value);
    server.Put(kSecrets, secret);
  }
  base::Result<UfmEndpoint> Read() {
    return ReadUfmEndpoint(client, "heddle-system", {"ufm.example:443", "ufm-login", "", "ufm-ca"}, never);
  }
};

TEST_F(UfmEndpointTest, ComesFromSecretsOfItsOwnNamespace) {
  Put("ufm-ca", {{"ca.crt", "PEM"}});
  Put("ufm-login", {{"username", "heddle"}, {"password", "loom"}});
  const auto endpoint = Read();
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->authorization, "Basic aGVkZGxlOmxvb20=");
  EXPECT_EQ(endpoint->base_path, "/ufmRest");
  EXPECT_EQ(endpoint->ca_pem, "PEM");
}

TEST_F(UfmEndpointTest, OfATokenGoesWhereTokensAreTaken) {
  Put("ufm-ca", {{"ca.crt", "PEM"}});
  Put("ufm-login", {{"token", "OGUY7Twh"}});
  ASSERT_TRUE(Read());
  EXPECT_EQ(Read()->authorization, "Basic OGUY7Twh");
  EXPECT_EQ(Read()->base_path, "/ufmRestV3");
  Put("ufm-login", {{"token", "two\r\nlines"}});
  ASSERT_FALSE(Read());
  EXPECT_THAT(Read().error().message, testing::AllOf(HasSubstr("token"), Not(HasSubstr("lines\r"))));
}

TEST_F(UfmEndpointTest, NamesTheSecretOrTheKeyThatIsNotThere) {
  EXPECT_THAT(Read().error().message, HasSubstr("no Secret ufm-ca"));
  Put("ufm-ca", {{"ca.crt", "PEM"}});
  Put("ufm-login", {{"username", "heddle"}});
  EXPECT_THAT(Read().error().message, HasSubstr("Secret ufm-login has no key password"));
  EXPECT_EQ(UfmTroubleOf(Read().error()).reason, "NotFound");
}

}  // namespace
}  // namespace heddle::operators
