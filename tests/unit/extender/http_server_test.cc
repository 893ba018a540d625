#include "extender/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

namespace heddle::extender {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Connection {
 public:
  explicit Connection(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    int port = 0;
    const std::size_t colon = address.rfind(':');
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(std::uint16_t(port));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends a POST and reads one answer with its announced length.
  std::string Post(const std::string& path, const std::string& body) {
    const std::string request = "POST " + path +
                                " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body;
    std::size_t sent = 0;
    while (sent < request.size()) {
      const ssize_t some = send(fd_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) break;
      sent += std::size_t(some);
    }
    return ReadAnswer();
  }

 private:
  std::string ReadAnswer() {
    std::string answer;
    char buffer[4096];
    for (;;) {
      const std::size_t end = answer.find("\r\n\r\n"), said = answer.find("Content-Length: ");
      if (end != std::string::npos && said != std::string::npos) {
        std::size_t length = 0;
        std::from_chars(answer.data() + said + 16, answer.data() + answer.size(), length);
        if (answer.size() >= end + 4 + length) return answer;
      }
      const ssize_t some = recv(fd_, buffer, sizeof buffer, 0);
      if (some <= 0) return answer;
      answer.append(buffer, std::size_t(some));
    }
  }
  int fd_;
};

std::unique_ptr<HttpServer> Echo() {
  auto server = HttpServer::Start(
      "127.0.0.1:0", [](const std::string& method, const std::string& path, const std::string& body) {
        return Answer(method, path, body,
                      {.snapshot = [] { return std::shared_ptr<const Snapshot>(); },
                       .metrics = [] { return std::string(); },
                       .not_ready = [] { return std::string(); }});
      });
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return server ? *std::move(server) : nullptr;
}

TEST(HttpServer, TakesAFreePortAndAnswersManyCallsOnOneConnection) {
  const auto server = Echo();
  EXPECT_THAT(server->address(), testing::Not(HasSubstr(":0")));
  Connection connection(server->address());
  for (int i = 0; i < 3; ++i) {
    const std::string answer = connection.Post("/filter", R"({"Pod":{},"NodeNames":["a"]})");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: "));
    EXPECT_THAT(answer, testing::Not(HasSubstr("chunked")));
    EXPECT_THAT(answer, HasSubstr(R"("NodeNames":["a"])"));
  }
}

TEST(HttpServer, SurvivesGarbageAndFiveMegabytesAndSomebodyWhoLeavesInTheMiddle) {
  const auto server = Echo();
  EXPECT_THAT(Connection(server->address()).Post("/filter", "garbage"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Connection(server->address()).Post("/prioritize", std::string(5'000'000, 'x')),
              StartsWith("HTTP/1.1 413"));
  { Connection leaves(server->address()); }
  EXPECT_THAT(Connection(server->address()).Post("/filter", R"({"Pod":{},"NodeNames":["a"]})"),
              StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const auto nothing = [](const std::string&, const std::string&, const std::string&) {
    return VerbAnswer{};
  };
  for (const char* listen : {"nonsense", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    const auto server = HttpServer::Start(listen, nothing);
    ASSERT_FALSE(server) << listen;
    EXPECT_THAT(server.error().message, HasSubstr("127.0.0.1:8010")) << "what to write instead";
  }
  const auto first = Echo();
  EXPECT_FALSE(HttpServer::Start(first->address(), nothing)) << "the port is taken";
}

}  // namespace
}  // namespace heddle::extender
