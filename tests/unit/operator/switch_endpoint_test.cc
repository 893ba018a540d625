#include "operator/switch_endpoint.h"

#include <gmock/gmock.h>

#include <map>

#include "kube/base64.h"
#include "tests/support/scripted_http_server.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators {
namespace {

using base::Code;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const kube::Resource kSecrets{"", "v1", "secrets", "Secret", true};

class SwitchEndpointTest : public Stage {
 protected:
  SwitchEndpointTest() { server.Serve(kSecrets); }
  void Put(const std::string& name, const std::map<std::string, std::string>& data) {
    Json secret = {{"apiVersion", "v1"},
                   {"kind", "Secret"},
                   {"metadata", {{"name", name}, {"namespace", "heddle-system"}}}};
    for (const auto& [key, value] : data) secret["data"][key] = kube::EncodeBase64(value);
    server.Put(kSecrets, secret);
  }
  base::Result<gnmi::Endpoint> Read() {
    crds::FabricSwitch leaf;
    leaf.spec.address = "leaf-3.example:8080";
    leaf.spec.credentials_secret = "leaf-login";
    leaf.spec.tls = {.server_name = "leaf-3.example", .ca_secret = "leaf-ca"};
    return ReadEndpoint(client, "heddle-system", leaf, never);
  }
  // What is said of a Secret with these keys, as a condition has it.
  SwitchTrouble TroubleWith(const std::map<std::string, std::string>& data) {
    Put("leaf-login", data);
    const auto endpoint = Read();
    EXPECT_FALSE(endpoint);
    return endpoint ? SwitchTrouble{} : TroubleOf(endpoint.error());
  }

  const test::TestAuthority authority{"Fabric authority"};
  const test::TestCertificate ours = authority.Issue("heddle", "");
};

TEST_F(SwitchEndpointTest, HasALoginACertificateOrBoth) {
  Put("leaf-ca", {{"ca.crt", "PEM"}});
  Put("leaf-login", {{"username", "heddle"}, {"password", "loom"}});
  auto endpoint = Read();
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->address, "leaf-3.example:8080");
  EXPECT_EQ(endpoint->server_name, "leaf-3.example");
  EXPECT_EQ(endpoint->ca_pem, "PEM");
  EXPECT_EQ(endpoint->username, "heddle");
  EXPECT_EQ(endpoint->password, "loom");
  EXPECT_THAT(endpoint->certificate_pem, IsEmpty());

  Put("leaf-login", {{"tls.crt", ours.certificate}, {"tls.key", ours.key}});
  endpoint = Read();
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->certificate_pem, ours.certificate);
  EXPECT_EQ(endpoint->key_pem, ours.key);
  EXPECT_THAT(endpoint->username, IsEmpty());

  Put("leaf-login",
      {{"username", "heddle"}, {"password", "loom"}, {"tls.crt", ours.certificate}, {"tls.key", ours.key}});
  endpoint = Read();
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->password, "loom");
  EXPECT_EQ(endpoint->key_pem, ours.key);
}

TEST_F(SwitchEndpointTest, TakesACertificateThatWasRotatedWithTheNextReading) {
  Put("leaf-ca", {{"ca.crt", "PEM"}});
  Put("leaf-login", {{"tls.crt", ours.certificate}, {"tls.key", ours.key}});
  ASSERT_TRUE(Read());
  const test::TestCertificate next = authority.Issue("heddle", "");
  Put("leaf-login", {{"tls.crt", next.certificate}, {"tls.key", next.key}});
  const auto endpoint = Read();
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->certificate_pem, next.certificate);
}

TEST_F(SwitchEndpointTest, NamesTheSecretAndTheKeyThatIsMissingOrOfNoUse) {
  EXPECT_THAT(TroubleOf(Read().error()).message, HasSubstr("no Secret leaf-ca"));
  Put("leaf-ca", {{"tls.crt", "PEM"}});
  EXPECT_THAT(TroubleOf(Read().error()).message, HasSubstr("Secret leaf-ca has no key ca.crt"));
  Put("leaf-ca", {{"ca.crt", "PEM"}});
  const test::TestCertificate other = authority.Issue("other", "");
  struct Case {
    std::map<std::string, std::string> data;
    const char* words;
  };
  const std::vector<Case> cases{
      {{{"token", "x"}}, "Secret leaf-login has neither username and password nor tls.crt and tls.key"},
      {{{"username", "heddle"}}, "Secret leaf-login has no key password"},
      {{{"password", "loom"}, {"tls.crt", ours.certificate}, {"tls.key", ours.key}},
       "Secret leaf-login has no key username"},
      {{{"username", "heddle"}, {"password", "loom"}, {"tls.crt", ours.certificate}},
       "Secret leaf-login has no key tls.key"},
      {{{"tls.key", ours.key}}, "Secret leaf-login has no key tls.crt"},
      {{{"tls.crt", ""}, {"tls.key", ""}}, "Secret leaf-login: tls.crt and tls.key are empty"},
      {{{"tls.crt", "loom"}, {"tls.key", ours.key}},
       "Secret leaf-login: tls.crt holds no certificate in PEM"},
      {{{"tls.crt", ours.certificate}, {"tls.key", other.key}}, "Secret leaf-login: tls.key is not the key"}};
  for (const Case& one : cases) {
    const SwitchTrouble trouble = TroubleWith(one.data);
    EXPECT_EQ(trouble.reason, "NotFound") << one.words;
    EXPECT_THAT(trouble.message,
                AllOf(StartsWith(one.words), Not(HasSubstr("loom")), Not(HasSubstr("BEGIN"))));
  }
}

}  // namespace
}  // namespace heddle::operators
