#include "kube/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

#include "kube/status_endpoints.h"

namespace heddle::kube {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

void Reach(int fd, const std::string& address) {
  int port = 0;
  const std::size_t colon = address.rfind(':');
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::uint16_t(port));
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
}

class Connection {
 public:
  explicit Connection(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    Reach(fd_, address);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends a POST and reads one answer with its announced length.
  std::string Post(const std::string& path, const std::string& body) {
    const std::string request = "POST " + path +
                                " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body;
    Send(request);
    return ReadAnswer();
  }
  void Send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t some = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (some <= 0) break;
      sent += std::size_t(some);
    }
  }
  // As much as is there; empty: the other side has closed it.
  std::string Read() {
    char buffer[4096];
    const ssize_t some = recv(fd_, buffer, sizeof buffer, 0);
    return some <= 0 ? "" : std::string(buffer, std::size_t(some));
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

ServedAnswer EchoAnswer(const ServedRequest& request) {
  if (request.path == "/throws") throw std::runtime_error("a bug");
  if (request.body_too_large) return {.status = 413, .body = "too large, and not kept: " + request.body};
  return {.content_type = "application/json",
          .body = request.method + " " + request.path + " " + request.body};
}

std::unique_ptr<HttpServer> Echo() {
  auto server = HttpServer::Start("127.0.0.1:0", 1 << 20, EchoAnswer);
  EXPECT_TRUE(server) << (server ? "" : server.error().message);
  return server ? *std::move(server) : nullptr;
}

TEST(HttpServer, TakesAFreePortAndAnswersManyCallsOnOneConnection) {
  const auto server = Echo();
  EXPECT_THAT(server->address(), testing::Not(HasSubstr(":0")));
  Connection connection(server->address());
  for (int i = 0; i < 3; ++i) {
    const std::string answer = connection.Post("/filter?x=1", R"({"a":1})");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: "));
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/json"));
    EXPECT_THAT(answer, testing::Not(HasSubstr("chunked")));
    EXPECT_THAT(answer, EndsWith(R"(POST /filter {"a":1})"));
  }
}

TEST(HttpServer, SurvivesFiveMegabytesAndSomebodyWhoLeavesInTheMiddleAndAHandlerThatThrows) {
  const auto server = Echo();
  const std::string refused = Connection(server->address()).Post("/filter", std::string(5'000'000, 'x'));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(refused, EndsWith("too large, and not kept: "));
  { Connection leaves(server->address()); }
  const std::string bug = Connection(server->address()).Post("/throws", "");
  EXPECT_THAT(bug, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(bug, HasSubstr("a bug"));
  EXPECT_THAT(Connection(server->address()).Post("/filter", "again"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, ListensOnAllAddressesWhereNoneIsNamed) {
  const auto server = HttpServer::Start(":0", 1 << 20, EchoAnswer);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_THAT(Connection((*server)->address()).Post("/filter", "x"), EndsWith("POST /filter x"));
}

TEST(HttpServer, AnswersSeveralConnectionsWhileAHandlerIsBusy) {
  std::promise<void> go_on;
  std::shared_future<void> told = go_on.get_future().share();
  const auto server = HttpServer::Start("127.0.0.1:0", 1 << 20, [&](const ServedRequest& request) {
    if (request.path == "/slow") told.wait();
    return EchoAnswer(request);
  });
  Connection slow((*server)->address()), quick((*server)->address());
  slow.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(quick.Post("/filter", "x"), EndsWith("POST /filter x"));
  go_on.set_value();
  EXPECT_THAT(slow.Read(), HasSubstr("200"));
}

TEST(HttpServer, TellsAClientThatWaitsForItToGoOn) {
  const auto server = Echo();
  Connection connection(server->address());
  connection.Send("POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(connection.Read(), StartsWith("HTTP/1.1 100"));
  connection.Send("x");
  EXPECT_THAT(connection.Read(), EndsWith("POST /filter x"));
}

TEST(HttpServer, RefusesWhatIsNoHttpAndHeadsWithoutAnEnd) {
  const auto server = Echo();
  Connection nonsense(server->address());
  nonsense.Send("\x16\x03\x01 a client that speaks TLS\r\n\r\n");
  EXPECT_THAT(nonsense.Read(), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(nonsense.Read(), "") << "and closes";
  Connection endless(server->address());
  endless.Send("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x'));
  EXPECT_THAT(endless.Read(), StartsWith("HTTP/1.1 400"));
}

TEST(HttpServer, HandsOverQueryAndHostAndSendsHeadersAndOfAHeadNoBody) {
  const auto server = HttpServer::Start("127.0.0.1:0", 1, [](const ServedRequest& request) {
    return ServedAnswer{.body = request.query + " at " + request.host,
                        .headers = {{"X-Content-Type-Options", "nosniff"}}};
  });
  ASSERT_TRUE(server);
  Connection connection((*server)->address());
  connection.Send("GET /view?since=1&b=%20 HTTP/1.1\r\nHost: localhost:8090\r\n\r\n");
  const std::string answer = connection.Read();
  EXPECT_THAT(answer, EndsWith("since=1&b=%20 at localhost:8090"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  connection.Send("HEAD /view?since=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(connection.Read(), testing::AllOf(HasSubstr("Content-Length: 12"), EndsWith("\r\n\r\n")));
  connection.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(connection.Read(), EndsWith(" at ")) << "and the connection still works";
}

TEST(HttpServer, EndsThoughClientsKeepTheirConnections) {
  auto server = Echo();
  Connection silent(server->address()), used(server->address());
  EXPECT_THAT(used.Post("/filter", "x"), StartsWith("HTTP/1.1 200"));
  server.reset();
  EXPECT_EQ(used.Read(), "");
  EXPECT_EQ(silent.Read(), "");
}

// While it lives, this process gets no more than so many further descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    int highest = 0;
    for (int fd = 0; fd < kLooked; ++fd) {
      if (fcntl(fd, F_GETFD) != -1) highest = fd;
    }
    for (int fd = 0; fd < highest; ++fd) {
      if (fcntl(fd, F_GETFD) == -1 && fcntl(highest, F_DUPFD, fd) == fd) filled_.push_back(fd);
    }
    limit_ = highest + 1 + more;
    rlimit few = before_;
    few.rlim_cur = rlim_t(limit_);
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() {
    setrlimit(RLIMIT_NOFILE, &before_);
    for (const int fd : filled_) close(fd);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

  int Left() const {
    int left = 0;
    for (int fd = 0; fd < limit_; ++fd) left += fcntl(fd, F_GETFD) == -1 ? 1 : 0;
    return left;
  }

 private:
  static constexpr int kLooked = 4096;
  rlimit before_{};
  std::vector<int> filled_;
  int limit_ = 0;
};

TEST(HttpServer, OutlivesATimeWithoutDescriptors) {
  const auto server = Echo();
  std::vector<int> sockets(8);
  for (int& one : sockets) one = socket(AF_INET, SOCK_STREAM, 0);
  const int late = socket(AF_INET, SOCK_STREAM, 0);
  {
    // The first connection and the session for the next one fit, and of a third session a part.
    const FewDescriptors few(6);
    for (const int one : sockets) Reach(one, server->address());
    for (int i = 0; i < 500 && few.Left() > 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_LE(few.Left(), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(250));  // it has tried again since
    // What sessions that have ended still hold is enough for another one.
    for (const int one : sockets) shutdown(one, SHUT_RDWR);
    Reach(late, server->address());
    constexpr std::string_view kRequest = "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    EXPECT_EQ(send(late, kRequest.data(), kRequest.size(), 0), ssize_t(kRequest.size()));
    pollfd answer{late, POLLIN, 0};
    EXPECT_EQ(poll(&answer, 1, 5000), 1);
  }
  close(late);
  for (const int one : sockets) close(one);
  EXPECT_THAT(Connection(server->address()).Post("/filter", "again"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, SaysWhyItCannotListen) {
  for (const char* listen : {"nonsense", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1"}) {
    const auto server = HttpServer::Start(listen, 1, EchoAnswer);
    ASSERT_FALSE(server) << listen;
    EXPECT_EQ(server.error().code, base::Code::kInvalid);
    EXPECT_THAT(server.error().message, HasSubstr("127.0.0.1:8010")) << "what to write instead";
  }
  const auto first = Echo();
  const auto second = HttpServer::Start(first->address(), 1, EchoAnswer);
  ASSERT_FALSE(second) << "the port is taken";
  EXPECT_EQ(second.error().code, base::Code::kUnavailable);
}

TEST(StatusEndpoints, SayWhetherTheDaemonIsReadyAndWhyNot) {
  std::string why = "the first list is not here yet";
  const StatusEndpoints endpoints{[] { return std::string("heddle_x 1\n"); }, [&] { return why; }};
  EXPECT_EQ(AnswerStatus({"GET", "/healthz", ""}, endpoints)->status, 200);
  EXPECT_EQ(AnswerStatus({"GET", "/readyz", ""}, endpoints)->status, 503);
  EXPECT_THAT(AnswerStatus({"GET", "/readyz", ""}, endpoints)->body, HasSubstr(why));
  why.clear();
  EXPECT_EQ(AnswerStatus({"GET", "/readyz", ""}, endpoints)->status, 200);
  const auto metrics = AnswerStatus({"GET", "/metrics", ""}, endpoints);
  EXPECT_EQ(metrics->body, "heddle_x 1\n");
  EXPECT_THAT(metrics->content_type, HasSubstr("version=0.0.4"));
  EXPECT_EQ(AnswerStatus({"POST", "/metrics", ""}, endpoints)->status, 405);
  EXPECT_FALSE(AnswerStatus({"GET", "/filter", ""}, endpoints)) << "not its own";
}

}  // namespace
}  // namespace heddle::kube
