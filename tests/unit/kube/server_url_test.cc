#include "kube/server_url.h"

#include <gmock/gmock.h>

namespace heddle::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

ServerUrl Must(std::string_view url) {
  const auto parsed = ParseServerUrl(url);
  EXPECT_TRUE(parsed) << url << ": " << parsed.error().message;
  return parsed.value_or(ServerUrl{});
}

TEST(ServerUrl, HasThePartsThatAConnectionNeeds) {
  const ServerUrl url = Must("https://api.test:6443/k8s/clusters/c-1/");
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "api.test");
  EXPECT_EQ(url.port, "6443");
  EXPECT_EQ(url.prefix, "/k8s/clusters/c-1");
  EXPECT_EQ(url.authority, "api.test:6443");
  EXPECT_EQ(url.login, "");
}

TEST(ServerUrl, TakesThePortOfItsScheme) {
  EXPECT_EQ(Must("https://api.test").port, "443");
  EXPECT_EQ(Must("HTTP://api.test/").port, "80");
  EXPECT_EQ(Must("https://api.test").authority, "api.test");
  EXPECT_EQ(Must("https://api.test").HostAndPort(), "api.test:443");
}

TEST(ServerUrl, TakesAnIPv6AddressOutOfItsBrackets) {
  const ServerUrl url = Must("https://[fd00::1]:6443");
  EXPECT_EQ(url.host, "fd00::1");
  EXPECT_EQ(url.port, "6443");
  EXPECT_EQ(url.authority, "[fd00::1]:6443");
  EXPECT_EQ(url.HostAndPort(), "[fd00::1]:6443");
  EXPECT_EQ(Must("https://[::1]").port, "443");
}

TEST(ServerUrl, DecodesALogin) {
  const ServerUrl url = Must("http://loom:p%40ss%3A@proxy.test:3128");
  EXPECT_EQ(url.login, "loom:p@ss:");
  EXPECT_EQ(url.host, "proxy.test");
  EXPECT_EQ(url.authority, "proxy.test:3128");
}

TEST(ServerUrl, RefusesWhatIsNone) {
  for (const char* url :
       {"", "no url", "api.test:6443", "ftp://api.test", "https://", "https://:6443", "https://[::1",
        "https://[]:1", "https://[::1]6443", "https://api.test:", "https://api.test:0",
        "https://api.test:65536", "https://api.test:64x", "https://api.test/?a=b", "https://api.test/#a",
        "https://api test", "https://api.test\r\nX: y", "https://a:%4@api.test", "https://\xc3\xa4.test"}) {
    const auto parsed = ParseServerUrl(url);
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(parsed.error().code, base::Code::kInvalid) << url;
  }
}

TEST(ServerUrl, NeverQuotesALogin) {
  const auto parsed = ParseServerUrl("https://loom:s3cret@api.test:no-port");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace heddle::kube
