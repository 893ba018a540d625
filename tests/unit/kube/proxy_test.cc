#include "kube/proxy.h"

#include <gtest/gtest.h>

namespace heddle::kube {
namespace {

// The proxy on the way to a server, "" = none.
std::string Chosen(const std::string& server, const std::vector<std::string>& environment) {
  const auto url = ParseServerUrl(server);
  EXPECT_TRUE(url) << server;
  const auto proxy = url ? ProxyFromEnvironment(environment, *url) : std::nullopt;
  return proxy ? proxy->url : "";
}

TEST(ProxyFromEnvironment, TakesTheVariableOfTheServersScheme) {
  const std::vector<std::string> both{"HTTP_PROXY=http://plain:1", "HTTPS_PROXY=http://tls:2"};
  EXPECT_EQ(Chosen("https://api.test:6443", both), "http://tls:2");
  EXPECT_EQ(Chosen("http://api.test:8080", both), "http://plain:1");
  EXPECT_EQ(Chosen("https://api.test", {"HTTP_PROXY=http://plain:1", "ALL_PROXY=http://all:1"}), "");
  EXPECT_EQ(Chosen("https://api.test", {}), "");
}

TEST(ProxyFromEnvironment, TakesTheUpperCaseVariableFirstUnlessItIsEmpty) {
  EXPECT_EQ(Chosen("https://api.test", {"https_proxy=http://lower", "HTTPS_PROXY=http://upper"}),
            "http://upper");
  EXPECT_EQ(Chosen("https://api.test", {"HTTPS_PROXY=", "https_proxy=http://lower"}), "http://lower");
  EXPECT_EQ(Chosen("https://api.test", {"HTTPS_PROXY=http://p", "no_proxy=api.test", "NO_PROXY=other"}),
            "http://p");
  EXPECT_EQ(Chosen("https://api.test", {"HTTPS_PROXY=http://p", "no_proxy=api.test", "NO_PROXY="}), "");
  const auto proxy = ProxyFromEnvironment({"https_proxy=p"}, *ParseServerUrl("https://api.test"));
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->variable, "https_proxy");
}

TEST(ProxyFromEnvironment, WritesTheSchemeThatIsMissing) {
  EXPECT_EQ(Chosen("https://api.test", {"HTTPS_PROXY=proxy.test:3128"}), "http://proxy.test:3128");
  EXPECT_EQ(Chosen("https://api.test", {"HTTPS_PROXY=me:pw@proxy.test"}), "http://me:pw@proxy.test");
  EXPECT_EQ(Chosen("https://api.test", {"HTTPS_PROXY=socks5://proxy.test"}), "socks5://proxy.test");
}

TEST(ProxyFromEnvironment, NeverProxiesThisMachine) {
  for (const char* server : {"https://localhost:6443", "https://127.0.0.1:6443", "https://127.9.9.9",
                             "https://[::1]:6443", "https://[::ffff:127.0.0.1]"})
    EXPECT_EQ(Chosen(server, {"HTTPS_PROXY=http://p"}), "") << server;
  EXPECT_EQ(Chosen("https://localhost.test", {"HTTPS_PROXY=http://p"}), "http://p");
}

// Whether NO_PROXY keeps a server from the proxy: by Go's rules.
TEST(ProxyFromEnvironment, LeavesOutWhatNoProxyLists) {
  struct Case {
    const char* unproxied;
    const char* server;
    bool direct;
  };
  for (const Case& one : std::vector<Case>{{"*", "https://api.test", true},
                                           {"*", "https://10.0.0.1", true},
                                           {"api.test", "https://api.test:6443", true},
                                           {"API.test", "https://api.TEST", true},
                                           {"test", "https://api.test", true},
                                           {"pi.test", "https://api.test", false},
                                           {".test", "https://api.test", true},
                                           {".api.test", "https://api.test", false},
                                           {"*.test", "https://api.test", true},
                                           {"*.api.test", "https://api.test", false},
                                           {"a*.test", "https://api.test", false},
                                           {"api.test:6443", "https://api.test:6443", true},
                                           {"api.test:443", "https://api.test:6443", false},
                                           {"api.test:443", "https://api.test", true},
                                           {"api.test:", "https://api.test", true},
                                           {"10.0.0.1", "https://10.0.0.1:6443", true},
                                           {"10.0.0.1", "https://10.0.0.10", false},
                                           {"10.0.0.1:6443", "https://10.0.0.1:6443", true},
                                           {"10.0.0.1:443", "https://10.0.0.1:6443", false},
                                           {"10.0.0.0/8", "https://10.200.0.1", true},
                                           {"10.0.0.0/8", "https://11.0.0.1", false},
                                           {"10.0.0.128/25", "https://10.0.0.200", true},
                                           {"10.0.0.128/25", "https://10.0.0.100", false},
                                           {"0.0.0.0/0", "https://10.0.0.1", true},
                                           {"10.0.0.0/8", "https://10.test", false},
                                           {"::/0", "https://10.0.0.1", false},
                                           {"0.0.0.0/0", "https://[fd00::1]", false},
                                           {"::ffff:10.0.0.0/104", "https://10.0.0.1", true},
                                           {"fd00::/8", "https://[fd12::1]:6443", true},
                                           {"fd00::/8", "https://[fe80::1]", false},
                                           {"fd00::1", "https://[fd00:0::1]", true},
                                           {"[fd00::1]:6443", "https://[fd00::1]:6443", true},
                                           {"[fd00::1]:443", "https://[fd00::1]:6443", false},
                                           {"other, api.test", "https://api.test", true},
                                           {"other,,\tapi.test ,", "https://api.test", true},
                                           {"", "https://api.test", false},
                                           {",", "https://api.test", false},
                                           {" ", "https://api.test", false}}) {
    const std::string chosen =
        Chosen(one.server, {"HTTPS_PROXY=http://p", std::string("NO_PROXY=") + one.unproxied});
    EXPECT_EQ(chosen, one.direct ? "" : "http://p") << one.unproxied << " and " << one.server;
  }
}

TEST(ProxyFromEnvironment, PassesOverWhatIsNoItem) {
  for (const char* odd :
       {":", ":443", "[", "]", "[]:", "[]:443", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8",
        "fd00::/129", "10.0.0.0/8/8", "::::", "[::1", "*.", "\x80\xff", ".", "10.0.0.0/99999999999"})
    EXPECT_EQ(Chosen("https://10.0.0.1:6443", {"HTTPS_PROXY=http://p", std::string("NO_PROXY=") + odd}),
              "http://p")
        << odd;
}

TEST(WayTo, NamesTheProxyWithoutItsLogin) {
  ClientConfig config;
  config.server = "https://api.test:6443";
  EXPECT_EQ(WayTo(config), "https://api.test:6443");
  config.proxy_url = "http://loom:s3cret@proxy.test:3128/x";
  EXPECT_EQ(WayTo(config), "https://api.test:6443 through proxy http://proxy.test:3128");
  config.proxy_url = "socks5://loom:s3cret@proxy.test";
  EXPECT_EQ(WayTo(config), "https://api.test:6443");
}

TEST(TakeProxyFromEnvironment, LeavesTheProxyThatIsThere) {
  ClientConfig config;
  config.server = "https://api.test";
  config.proxy_url = "http://own.test";
  TakeProxyFromEnvironment({"HTTPS_PROXY=http://p"}, config);
  EXPECT_EQ(config.proxy_url, "http://own.test");
  config.proxy_url = "";
  config.server = "no url";
  TakeProxyFromEnvironment({"HTTPS_PROXY=http://p"}, config);
  EXPECT_EQ(config.proxy_url, "");
}

}  // namespace
}  // namespace heddle::kube
