#include "cli/patience.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "cli/complete_names.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "kube/object.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Answers after so long, by the clock.
class SlowServer final : public kube::HttpTransport {
 public:
  SlowServer(base::Clock& clock, seconds takes) : clock_(clock), takes_(takes) {}

  base::Result<kube::HttpResponse> Do(const kube::HttpRequest&, std::stop_token stop) override {
    if (takes_.count() > 0) clock_.SleepFor(takes_, std::move(stop));
    return kube::HttpResponse{.status = 200, .headers = {}, .body = "{}"};
  }
  base::Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::ChunkReader&,
                                          std::stop_token stop) override {
    return Do(request, std::move(stop));
  }

 private:
  base::Clock& clock_;
  const seconds takes_;
};

class SayingTransportTest : public testing::Test {
 protected:
  // What is said while one request after the other waits for `takes`.
  std::vector<std::string> SaidOf(seconds takes, int requests) {
    SlowServer server(clock_, takes);
    std::vector<std::string> said;
    SayingTransport transport(server, clock_, "https://10.0.0.1:6443",
                              [&said](const std::string& line) { said.push_back(line); });
    kube::HttpRequest request;
    request.method = "GET";
    request.target = "/version";
    request.timeout = kRequestPatience;
    for (int i = 0; i < requests; ++i) {
      std::jthread asking([&] { EXPECT_TRUE(transport.Do(request, {})); });
      // The first request is watched by a second sleeper.
      if (takes.count() > 0) {
        EXPECT_TRUE(clock_.WaitForSleepers(said.empty() ? 2 : 1));
      }
      clock_.Advance(takes);
    }
    return said;
  }

  test::FakeClock clock_;
};

TEST_F(SayingTransportTest, SaysOnceWhichServerIsWaitedForAndForHowLong) {
  const std::vector<std::string> said = SaidOf(seconds(5), 3);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0],
            "Waiting for an answer of https://10.0.0.1:6443 (20 s at most; --request-timeout sets it)\n");
}

TEST_F(SayingTransportTest, SaysNothingOfAServerThatAnswersSoon) {
  EXPECT_THAT(SaidOf(seconds(0), 2), testing::IsEmpty());
  EXPECT_THAT(SaidOf(seconds(1), 1), testing::IsEmpty());
}

TEST_F(SayingTransportTest, WaitsAloneWhereNobodyReads) {
  SlowServer server(clock_, seconds(5));
  SayingTransport transport(server, clock_, "https://10.0.0.1:6443", nullptr);
  std::jthread asking([&] { EXPECT_TRUE(transport.Do({}, {})); });
  EXPECT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_EQ(clock_.sleepers(), 1U);
  clock_.Advance(seconds(5));
}

TEST(RequestTimeout, IsWrittenAsForKubectl) {
  EXPECT_EQ(*ParseRequestTimeout("5s"), milliseconds(5'000));
  EXPECT_EQ(*ParseRequestTimeout("2m30s"), milliseconds(150'000));
  EXPECT_EQ(*ParseRequestTimeout("45"), milliseconds(45'000));
  EXPECT_EQ(*ParseRequestTimeout("0"), milliseconds(std::chrono::hours(1)));
  EXPECT_EQ(*ParseRequestTimeout("0s"), *ParseRequestTimeout("0"));
  EXPECT_EQ(*ParseRequestTimeout("9h"), *ParseRequestTimeout("0"));
  for (const char* wrong : {"", "-1", "soon", "5 s", "5sec", "1.5s", "99999999999"}) {
    const auto refused = ParseRequestTimeout(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().code, base::Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("as 5s, 2m or 1h, or 0 for an hour"));
  }
}

TEST(RequestTimeout, IsCheckedBeforeAClusterIsAsked) {
  const std::vector<const char*> words{"kubectl-heddle", "status", "--request-timeout", "soon"};
  const CommandLine wrong = ReadCommandLine(int(words.size()), words.data());
  ASSERT_TRUE(wrong.instead);
  EXPECT_EQ(wrong.instead->exit_code, Output::kUsage);
  EXPECT_THAT(wrong.instead->err, HasSubstr("Error: --request-timeout \"soon\": write a time"));
  const std::vector<const char*> right{"kubectl-heddle", "status", "--request-timeout=5s"};
  const CommandLine good = ReadCommandLine(int(right.size()), right.data());
  EXPECT_FALSE(good.instead);
  EXPECT_EQ(good.flags.request_timeout, "5s");
}

TEST(RequestTimeout, BoundsEveryRequestAndIsShorterThanTheClientsOwn) {
  const kube::ClientOptions own;
  for (const char* words : {"", "5s"}) {
    Flags flags;
    flags.command = Command::kStatus;
    flags.request_timeout = words;
    const milliseconds limit = *words == '\0' ? milliseconds(kRequestPatience) : milliseconds(5'000);
    EXPECT_EQ(ClientOptionsOf(flags).request_timeout, limit);
    EXPECT_EQ(ClientOptionsOf(flags).list_timeout, limit);
    EXPECT_LT(ClientOptionsOf(flags).list_timeout, own.list_timeout);
    flags.command = Command::kRelease;
    EXPECT_EQ(ClientOptionsOf(flags).list_timeout, *words == '\0' ? own.list_timeout : limit);
    flags.command = Command::kComplete;
    EXPECT_EQ(ClientOptionsOf(flags).list_timeout, kCompletionPatience);
  }
}

// A request as it comes back from a server that answers every one so.
base::Error ErrorOfAServerThatAnswers(int status) {
  test::FakeClock clock;
  test::FakeApiServer server(clock);
  server.FailNext({.status = status});
  kube::Client client(server, clock);
  const auto read = client.List(kube::kPods, {}, {});
  EXPECT_FALSE(read);
  return read ? base::Error{} : read.error();
}

TEST(RequestTimeout, IsNamedWhereOurOwnWaitWasOverWhateverTheWords) {
  for (const char* words : {"https://10.0.0.1:6443: no answer for 20000 ms", "too late", ""}) {
    EXPECT_THAT(NextStep({base::Code::kTimeout, words, std::nullopt}),
                AllOf(HasSubstr("Is the cluster up"), HasSubstr("--request-timeout 2m")))
        << words;
    EXPECT_THAT(NextStep({base::Code::kUnavailable, words, std::nullopt}),
                AllOf(HasSubstr("Is the cluster up"), Not(HasSubstr("--request-timeout"))))
        << words;
  }
}

TEST(RequestTimeout, IsNotNamedWhereTheServerGaveUp) {
  for (const int status : {408, 503, 504}) {
    const base::Error error = ErrorOfAServerThatAnswers(status);
    EXPECT_EQ(error.code, base::Code::kUnavailable) << status;
    EXPECT_THAT(NextStep(error), AllOf(HasSubstr("Is the cluster up"), Not(HasSubstr("--request-timeout"))));
  }
}

}  // namespace
}  // namespace heddle::cli
