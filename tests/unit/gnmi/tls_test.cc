// Who a switch has to prove to be, on real handshakes.
#include "gnmi/grpc_process.h"
#include "gnmi/trust.h"
#include "tests/unit/gnmi/gnmi_bed.h"

namespace heddle::gnmi {
namespace {

using base::Code;
using std::chrono::hours;
using testing::HasSubstr;
using testing::StartsWith;

class TlsTest : public GnmiBed {
 protected:
  // What a call comes to: the error of a switch with this certificate, asked for by this name.
  base::Error Ask(const test::TestCertificate& certificate, const std::string& server_name,
                  const std::string& ca_pem) {
    Server::Options options;
    options.certificate = certificate;
    test::GnmiServer::Scripts scripts;
    scripts.capabilities = [](const auto&, const auto&, auto&) { return grpc::Status::OK; };
    Server server(options, scripts);
    Endpoint endpoint = EndpointAt(server.address());
    endpoint.server_name = server_name;
    endpoint.ca_pem = ca_pem;
    const base::Error error = ErrorOfCapabilities(*DialTo(endpoint));
    if (error.message != "it has answered") {
      EXPECT_EQ(error.code, Code::kUnavailable) << error.message;
      EXPECT_THAT(error.message, StartsWith(server.address() + " "));
    }
    return error;
  }
};

TEST_F(TlsTest, TakesACertificateForTheAddressOrTheServerName) {
  EXPECT_EQ(Ask(certificate_, "", authority_.pem()).message, "it has answered");
  EXPECT_EQ(Ask(certificate_, "leaf-3.test", authority_.pem()).message, "it has answered");
  EXPECT_EQ(Ask(authority_.Issue("x", "DNS:*.lab.test"), "leaf-9.lab.test", authority_.pem()).message,
            "it has answered");
  // Older switches have no alternative names.
  EXPECT_EQ(Ask(authority_.Issue("leaf-3.test", ""), "leaf-3.test", authority_.pem()).message,
            "it has answered");
}

TEST_F(TlsTest, TakesAnyOfSeveralAuthorities) {
  const test::TestAuthority other("Another authority");
  EXPECT_EQ(Ask(certificate_, "", other.pem() + authority_.pem()).message, "it has answered");
}

TEST_F(TlsTest, TakesACertificateThatWasGivenItself) {
  const test::TestCertificate self = test::SelfSigned("leaf-3", "DNS:leaf-3.test");
  EXPECT_EQ(Ask(self, "leaf-3.test", self.certificate).message, "it has answered");
  EXPECT_THAT(Ask(self, "", self.certificate).message, HasSubstr("for leaf-3.test, not for 127.0.0.1"));
}

TEST_F(TlsTest, RefusesACertificateForAnother) {
  const base::Error name = Ask(certificate_, "leaf-4.test", authority_.pem());
  EXPECT_THAT(name.message, HasSubstr("has a certificate for leaf-3.test, 127.0.0.1, not for leaf-4.test: "));
  const base::Error address = Ask(authority_.Issue("leaf-3", "IP:10.0.0.3"), "", authority_.pem());
  EXPECT_THAT(address.message, HasSubstr("has a certificate for 10.0.0.3, not for 127.0.0.1: "));
  const base::Error none = Ask(authority_.Issue("leaf-3", ""), "", authority_.pem());
  EXPECT_THAT(none.message, HasSubstr("has a certificate for CN = leaf-3, not for 127.0.0.1: "));
  const base::Error many =
      Ask(authority_.Issue("x", "DNS:a,DNS:b,DNS:c,DNS:d,DNS:e,DNS:f"), "", authority_.pem());
  EXPECT_THAT(many.message, HasSubstr("for a, b, c, d, e, "));
  EXPECT_THAT(Ask(authority_.Issue("x", "DNS:*.lab.test"), "a.b.lab.test", authority_.pem()).message,
              HasSubstr("not for a.b.lab.test"));
}

TEST_F(TlsTest, RefusesACertificateOfAnUnknownAuthority) {
  const test::TestAuthority other("Another authority");
  const base::Error given = Ask(other.Issue("leaf-3", "IP:127.0.0.1"), "", authority_.pem());
  EXPECT_THAT(
      given.message,
      HasSubstr("has a certificate from CN = Another authority, which is not the authority that was given"));
  const base::Error of_this_machine = Ask(certificate_, "", "");
  EXPECT_THAT(of_this_machine.message,
              HasSubstr("has a certificate from CN = Fabric authority, which this machine does not know"));
  const base::Error itself = Ask(test::SelfSigned("leaf-3", "IP:127.0.0.1"), "", authority_.pem());
  EXPECT_THAT(itself.message, HasSubstr("has a certificate from CN = leaf-3, which is not the authority"));
}

TEST_F(TlsTest, RefusesACertificateThatAnImpostorOfTheSameNameHasSigned) {
  const test::TestAuthority impostor("Fabric authority");
  const base::Error error = Ask(impostor.Issue("leaf-3", "IP:127.0.0.1"), "", authority_.pem());
  EXPECT_THAT(error.message, HasSubstr("has a certificate that CN = Fabric authority has not signed"));
}

TEST_F(TlsTest, RefusesACertificateOutOfItsTime) {
  const base::Error over =
      Ask(authority_.Issue("leaf-3", "IP:127.0.0.1", hours(-48), hours(-24)), "", authority_.pem());
  EXPECT_THAT(over.message, HasSubstr("has a certificate that expired on 20"));
  const base::Error early =
      Ask(authority_.Issue("leaf-3", "IP:127.0.0.1", hours(24), hours(48)), "", authority_.pem());
  EXPECT_THAT(early.message, HasSubstr("has a certificate that is good only from 20"));
}

TEST_F(TlsTest, LooksAtTheCertificateAgainWithEveryConnection) {
  DialerOptions options;
  options.reconnect_max = std::chrono::milliseconds(100);
  Redial(options);
  test::GnmiServer::Scripts scripts;
  scripts.capabilities = [](const auto&, const auto&, auto&) { return grpc::Status::OK; };
  auto server = std::make_unique<Server>(ServerOptions(), scripts);
  Server::Options again;
  again.port = server->port();
  again.certificate = test::TestAuthority("Another authority").Issue("leaf-3", "IP:127.0.0.1");
  const auto client = DialTo(server->address());
  ASSERT_EQ(ErrorOfCapabilities(*client).message, "it has answered");
  server.reset();
  server = std::make_unique<Server>(again, scripts);
  const auto until = std::chrono::steady_clock::now() + kLong;
  base::Error error;
  do {
    error = ErrorOfCapabilities(*client);
    ASSERT_NE(error.message, "it has answered");
  } while (error.message.find("Another authority") == std::string::npos &&
           std::chrono::steady_clock::now() < until);
  EXPECT_THAT(error.message, HasSubstr("has a certificate from CN = Another authority"));
}

TEST_F(TlsTest, SaysThatASwitchSpeaksNoTls) {
  Server::Options options;
  options.plain = true;
  Server server(options);
  const base::Error error = ErrorOfCapabilities(*DialTo(server.address()));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("does not speak TLS on this port"));
}

TEST_F(TlsTest, SaysThatASwitchSpeaksTlsAndNoGrpc) {
  test::ScriptedHttpServer server([](const auto&, auto& connection) { connection.Close(); },
                                  test::ScriptedHttpServer::Tls{certificate_, ""});
  const base::Error error = ErrorOfCapabilities(*DialTo("127.0.0.1:" + std::to_string(server.port())));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("speaks TLS on this port, but no gRPC"));
}

std::mutex log_mutex;
std::string logged;

TEST_F(TlsTest, LeavesWhatGrpcSaysOfItToTheDaemon) {
  TakeGrpcLog([](bool error, std::string_view line) {
    const std::lock_guard lock(log_mutex);
    if (error) logged += std::string(line) + "\n";
  });
  testing::internal::CaptureStderr();
  Server::Options options;
  options.plain = true;
  Server server(options);
  Endpoint endpoint = EndpointAt(server.address());
  endpoint.username = "heddle";
  endpoint.password = "s3cret";
  ErrorOfCapabilities(*DialTo(endpoint));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const std::lock_guard lock(log_mutex);
  EXPECT_THAT(logged, HasSubstr("Handshake failed"));
  EXPECT_THAT(logged, testing::Not(HasSubstr("s3cret")));
}

TEST_F(TlsTest, RefusesAnAuthorityThatIsNone) {
  Endpoint endpoint = EndpointAt("127.0.0.1:1");
  endpoint.ca_pem = "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n";
  const auto client = dialer_->Dial(endpoint);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, Code::kInvalid);
  EXPECT_THAT(client.error().message, HasSubstr("ca.crt"));
  endpoint.ca_pem = authority_.pem();
  endpoint.address = "unix:/run/gnmi";
  EXPECT_FALSE(dialer_->Dial(endpoint));
}

// A switch that lets nobody in who shows no certificate of its authority, as SONiC does unless it is told otherwise.
class ClientCertificateTest : public TlsTest {
 protected:
  ClientCertificateTest() {
    Server::Options options = ServerOptions();
    options.client_authority = authority_.pem();
    server_ = std::make_unique<Server>(options, Answering());
  }
  static Server::Scripts Answering() {
    Server::Scripts scripts;
    scripts.capabilities = [](const auto&, const auto&, auto&) { return grpc::Status::OK; };
    return scripts;
  }
  Endpoint Showing(const test::TestCertificate& certificate) const {
    Endpoint endpoint = EndpointAt(server_->address());
    endpoint.certificate_pem = certificate.certificate;
    endpoint.key_pem = certificate.key;
    return endpoint;
  }
  std::string WhyNot(const std::string& certificate_pem, const std::string& key_pem) const {
    Endpoint endpoint = EndpointAt(server_->address());
    endpoint.certificate_pem = certificate_pem;
    endpoint.key_pem = key_pem;
    const auto client = dialer_->Dial(endpoint);
    EXPECT_FALSE(client);
    if (client) return "it is taken";
    EXPECT_EQ(client.error().code, Code::kInvalid);
    return client.error().message;
  }

  std::unique_ptr<Server> server_;
  const test::TestCertificate ours_ = authority_.Issue("heddle", "");
};

TEST_F(ClientCertificateTest, IsShownToASwitchThatWantsOne) {
  EXPECT_EQ(ErrorOfCapabilities(*DialTo(Showing(ours_))).message, "it has answered");
  const base::Error none = ErrorOfCapabilities(*DialTo(server_->address()));
  EXPECT_EQ(none.code, Code::kUnavailable) << none.message;
  EXPECT_THAT(none.message, StartsWith(server_->address() + " "));
}

TEST_F(ClientCertificateTest, HasToBeOfTheSwitchsAuthority) {
  const test::TestAuthority stranger("Another authority");
  const base::Error error = ErrorOfCapabilities(*DialTo(Showing(stranger.Issue("heddle", ""))));
  EXPECT_EQ(error.code, Code::kUnavailable) << error.message;
}

TEST_F(ClientCertificateTest, IsShownBesideALogin) {
  Endpoint endpoint = Showing(ours_);
  endpoint.username = "heddle";
  endpoint.password = "s3cret";
  EXPECT_EQ(ErrorOfCapabilities(*DialTo(endpoint)).message, "it has answered");
  EXPECT_EQ(server_->metadata().find("username")->second, "heddle");
}

TEST_F(ClientCertificateTest, GoesToASwitchThatWantsNone) {
  Server server(ServerOptions(), Answering());
  Endpoint endpoint = Showing(ours_);
  endpoint.address = server.address();
  EXPECT_EQ(ErrorOfCapabilities(*DialTo(endpoint)).message, "it has answered");
}

TEST_F(ClientCertificateTest, IsRefusedBeforeAnybodyIsAskedWhereItCannotBeShown) {
  const test::TestCertificate other = authority_.Issue("other", "");
  EXPECT_THAT(WhyNot(ours_.certificate, ""), HasSubstr("tls.crt without tls.key"));
  EXPECT_THAT(WhyNot("", ours_.key), HasSubstr("tls.key without tls.crt"));
  EXPECT_THAT(WhyNot("s3cret", ours_.key), HasSubstr("tls.crt holds no certificate in PEM"));
  EXPECT_THAT(WhyNot(ours_.certificate, "s3cret"), HasSubstr("tls.key holds no private key in PEM"));
  EXPECT_THAT(WhyNot(ours_.key, ours_.certificate), HasSubstr("tls.crt holds no certificate in PEM"));
  EXPECT_THAT(WhyNot(ours_.certificate, other.key),
              HasSubstr("tls.key is not the key of the certificate in tls.crt (CN = heddle)"));
  EXPECT_THAT(WhyNot(ours_.certificate,
                     "-----BEGIN ENCRYPTED PRIVATE KEY-----\ns3cret\n"
                     "-----END ENCRYPTED PRIVATE KEY-----\n"),
              testing::AllOf(HasSubstr("passphrase"), testing::Not(HasSubstr("s3cret"))));
  const test::TestCertificate over = authority_.Issue("heddle", "", hours(-48), hours(-24));
  EXPECT_THAT(WhyNot(over.certificate, over.key), HasSubstr("tls.crt has a certificate that expired on 20"));
  const test::TestCertificate early = authority_.Issue("heddle", "", hours(24), hours(48));
  EXPECT_THAT(WhyNot(early.certificate, early.key), HasSubstr("is good only from 20"));
  EXPECT_THAT(WhyNot(ours_.certificate + std::string(kMaxIdentityPem, '\n'), ours_.key),
              HasSubstr("tls.crt: "));
  EXPECT_THAT(WhyNot(ours_.certificate, ours_.key + std::string(kMaxIdentityPem, '\n')),
              HasSubstr("tls.key: "));
}

TEST(ClientCertificate, MayHaveItsChainBehindItAndMayBeNone) {
  const test::TestAuthority authority("Fabric authority");
  const test::TestCertificate ours = authority.Issue("heddle", "");
  EXPECT_TRUE(CheckIdentity(ours.certificate + authority.pem(), ours.key));
  EXPECT_TRUE(CheckIdentity("", ""));
}

}  // namespace
}  // namespace heddle::gnmi
