#include "gnmi/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::gnmi {
namespace {

using base::Code;
using testing::HasSubstr;
using testing::Not;

TEST(Address, IsAHostAndAPort) {
  const std::vector<std::pair<std::string, HostPort>> cases = {
      {"leaf-3.example:8080", {"leaf-3.example", 8080}},
      {"10.0.0.3:1", {"10.0.0.3", 1}},
      {"[fd00::3]:65535", {"fd00::3", 65535}},
      {"[::ffff:10.0.0.3]:443", {"::ffff:10.0.0.3", 443}},
  };
  for (const auto& [text, parts] : cases) {
    const auto read = ParseAddress(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, parts);
  }
}

TEST(Address, IsNothingElse) {
  for (const std::string text : {"",
                                 ":",
                                 "leaf",
                                 "leaf:",
                                 ":8080",
                                 "leaf:0",
                                 "leaf:65536",
                                 "leaf:-1",
                                 "leaf:8080 ",
                                 "leaf:80x",
                                 "leaf:99999999999",
                                 "fd00::3:8080",
                                 "[fd00::3]",
                                 "[leaf]:80",
                                 "[]:80",
                                 "unix:/run/x:80",
                                 "dns:///leaf:80",
                                 "xds:///a:80",
                                 "a/b:80",
                                 "a b:80",
                                 "leaf%41:80",
                                 "[fe80::1%eth0]:80",
                                 "a,b:80",
                                 "l\xc3\xa9\x61\x66:80"}) {
    const auto read = ParseAddress(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalid);
    EXPECT_THAT(read.error().message, HasSubstr("host:port"));
  }
  EXPECT_FALSE(ParseAddress(std::string(254, 'a') + ":80"));
}

Endpoint With(std::string username, std::string password) {
  Endpoint endpoint;
  endpoint.address = "leaf:8080";
  endpoint.username = std::move(username);
  endpoint.password = std::move(password);
  return endpoint;
}

TEST(Endpoint, SaysWhereAWordCannotBeSentAndNotWhatItIs) {
  EXPECT_TRUE(CheckEndpoint(With("admin", "p~ ss!")));
  EXPECT_TRUE(CheckEndpoint(With("", "")));
  const auto newline = CheckEndpoint(With("admin", "s3cret\n"));
  ASSERT_FALSE(newline);
  EXPECT_EQ(newline.error().code, Code::kInvalid);
  EXPECT_THAT(newline.error().message, HasSubstr("password: character 7 of 7 is a line break"));
  EXPECT_THAT(newline.error().message, Not(HasSubstr("s3cret")));
  EXPECT_FALSE(CheckEndpoint(With("admin", "s3cr\xc3\xa9t")));
  EXPECT_FALSE(CheckEndpoint(With("admin", std::string("s3\0t", 4))));
  EXPECT_FALSE(CheckEndpoint(With("admin", " s3cret")));
  EXPECT_FALSE(CheckEndpoint(With("ad\nmin", "s3cret")));
  EXPECT_FALSE(CheckEndpoint(With("admin", std::string(2000, 'x'))));
  EXPECT_FALSE(CheckEndpoint(With("", "s3cret")));
}

TEST(Endpoint, HasAServerNameThatACertificateCanHave) {
  Endpoint endpoint = With("", "");
  for (const char* name : {"leaf-3.example", "10.0.0.3", "fd00::3"}) {
    endpoint.server_name = name;
    EXPECT_TRUE(CheckEndpoint(endpoint)) << name;
  }
  for (const char* name : {"https://leaf", "leaf:8080/", "a b", "[fd00::3]"}) {
    endpoint.server_name = name;
    EXPECT_FALSE(CheckEndpoint(endpoint)) << name;
  }
}

}  // namespace
}  // namespace heddle::gnmi
