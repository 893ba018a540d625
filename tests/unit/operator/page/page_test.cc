#include "operator/page/page.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/version.h"
#include "tests/unit/operator/page/sights.h"
#include "tests/unit/operator/stage.h"

namespace heddle::operators::page {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

class PageTest : public Stage {
 protected:
  PageTest() { server.Serve(kGangs); }

  kube::ServedAnswer Get(const std::string& path, const std::string& query = "",
                         const std::string& host = "localhost:8090", const std::string& method = "GET") {
    return page.Answer({.method = method, .path = path, .query = query, .host = host});
  }
  // A question that waits, on a thread of its own; returns once it does.
  std::future<kube::ServedAnswer> Ask(const std::string& query) {
    auto answer = std::async(std::launch::async, [this, query] { return Get("/fabric/view.json", query); });
    EXPECT_TRUE(clock.WaitForSleepers(1));
    return answer;
  }
  // Its body; ends the program where it never comes, since the future would wait for ever.
  static std::string BodyOf(std::future<kube::ServedAnswer>& answer) {
    if (answer.wait_for(10s) != std::future_status::ready) std::abort();
    return answer.get().body;
  }
  static std::string HeaderOf(const kube::ServedAnswer& answer, std::string_view name) {
    for (const kube::HttpHeader& header : answer.headers) {
      if (header.name == name) return header.value;
    }
    return "";
  }

  ServerView gangs{server, kGangs};
  Page page{clock, {.topologies = topologies, .gangs = gangs}, "abc"};
  Sight sight{kFourNodes};
};

TEST_F(PageTest, ServesItsFilesWithTheirTypesAndNothingElse) {
  EXPECT_THAT(Get("/").body, StartsWith("<!doctype html>"));
  EXPECT_EQ(Get("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(Get("/app.mjs").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(Get("/page.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(Get("/icon.svg").content_type, "image/svg+xml");
  for (const char* path :
       {"", "/../main.cc", "/static/app.mjs", "//", "/etc/passwd", "/app.mjs/", "/%2e%2e", "/metrics"})
    EXPECT_EQ(Get(path).status, 404) << path;
}

TEST_F(PageTest, LetsABrowserLoadNothingFromElsewhere) {
  for (const char* path : {"/", "/fabric/about.json", "/nothing"}) {
    const kube::ServedAnswer answer = Get(path);
    EXPECT_THAT(HeaderOf(answer, "Content-Security-Policy"), StartsWith("default-src 'self';")) << path;
    EXPECT_EQ(HeaderOf(answer, "X-Content-Type-Options"), "nosniff") << path;
    EXPECT_EQ(HeaderOf(answer, "Cache-Control"), "no-store") << path;
  }
}

TEST_F(PageTest, AnswersToTheNamesOfThisMachineOnly) {
  for (const char* host :
       {"localhost", "localhost:8090", "LOCALHOST:1", "127.0.0.1:8090", "[::1]:8090", "[::1]"})
    EXPECT_EQ(Get("/", "", host).status, 200) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example:8090", "localhost:", "localhost:80x", "10.0.0.7:8090",
        "127.0.0.1.nip.io", ":8090", "[::1", "localhost:8090:1", "localhost:123456"})
    EXPECT_EQ(Get("/", "", host).status, 403) << host;
  EXPECT_THAT(Get("/", "", "evil.example").body, HasSubstr("http://localhost:PORT"));
}

TEST_F(PageTest, CanOnlyBeRead) {
  EXPECT_EQ(Get("/", "", "localhost", "HEAD").status, 200);
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", ""}) {
    EXPECT_EQ(Get("/", "", "localhost", method).status, 405) << method;
    EXPECT_EQ(HeaderOf(Get("/", "", "localhost", method), "Allow"), "GET, HEAD");
  }
}

TEST_F(PageTest, TakesOnlyAnAddressOnLoopback) {
  for (const char* address : {"127.0.0.1:8090", "localhost:0", "[::1]:8090"})
    EXPECT_TRUE(CheckAddress(address)) << address;
  for (const char* address : {"0.0.0.0:8090", ":8090", "10.0.0.7:8090", "localhost", "[::]:8090", ""})
    EXPECT_FALSE(CheckAddress(address)) << address;
}

TEST_F(PageTest, WaitsForTheFirstViewAndSaysWhereToLookIfItDoesNotCome) {
  EXPECT_FALSE(page.wanted());
  auto first = Ask("");
  EXPECT_TRUE(page.wanted());
  page.Publish(sight.Shown());
  EXPECT_THAT(BodyOf(first), HasSubstr(R"("full":true)"));

  Page unread{clock, {.topologies = topologies, .gangs = gangs}, "xyz"};
  auto none = std::async(std::launch::async, [&] {
    return unread.Answer({.method = "GET", .path = "/fabric/view.json", .host = "localhost"});
  });
  ASSERT_TRUE(clock.WaitForSleepers(1));
  clock.Advance(Page::kLongestWait);
  const kube::ServedAnswer answer = none.get();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("kubectl logs"));
}

TEST_F(PageTest, SaysOfWhichVersionTheViewIs) {
  page.Publish(sight.Shown());
  for (const char* query : {"", "since=abc-1"})
    EXPECT_EQ(HeaderOf(Get("/fabric/view.json", query), "Heddle-Version"), base::kVersion) << query;
}

TEST_F(PageTest, TellsNewsAsSoonAsThereAreAnyAndSaysSoIfThereAreNone) {
  page.Publish(sight.Shown());
  auto waiting = Ask("since=abc-1&wait=10");
  sight.stale = {"node-02"};
  page.Publish(sight.Shown());
  const kube::Json news = kube::Json::parse(BodyOf(waiting));
  EXPECT_EQ(news["revision"], "abc-2");
  EXPECT_EQ(news["nodes"].size(), 1U);

  auto quiet = Ask("since=abc-2&wait=10");
  page.Publish(sight.Shown());  // nothing new: it goes on waiting
  clock.Advance(10s);
  EXPECT_EQ(BodyOf(quiet), "{\"revision\":\"abc-2\",\"full\":false}\n");
  EXPECT_EQ(Get("/fabric/view.json", "since=abc-2").body, "{\"revision\":\"abc-2\",\"full\":false}\n");
}

TEST_F(PageTest, SaysThatThereAreNoNewsOfNoRevisionButTheOneThatWasAskedFor) {
  const Pieces one = sight.Shown();
  sight.stale = {"node-02"};
  const Pieces other = sight.Shown();
  page.Publish(one);
  // Publishes as close to each question as it can, a little later every time.
  std::atomic<int> asked{0};
  const std::jthread publisher([&](const std::stop_token& stop) {
    for (int round = 0; !stop.stop_requested(); ++round) {
      const int seen = asked;
      while (asked == seen && !stop.stop_requested()) std::this_thread::yield();
      for (int left = round % 512; left > 0 && asked > 0;) --left;
      page.Publish(round % 2 == 0 ? other : one);
    }
  });
  std::string known = "abc-1";
  for (int i = 0; i < 10'000; ++i) {
    ++asked;
    const auto answer = kube::Json::parse(Get("/fabric/view.json", "since=" + known).body);
    const auto revision = answer["revision"].get<std::string>();
    if (!answer.contains("nodes")) {
      ASSERT_EQ(revision, known) << "what came in between would never be told";
    }
    known = revision;
  }
}

TEST_F(PageTest, NobodyWaitsLongerThanTheLimitNorInAProcessThatEnds) {
  page.Publish(sight.Shown());
  auto greedy = Ask("since=abc-1&wait=99999");
  clock.Advance(Page::kLongestWait);
  EXPECT_EQ(greedy.wait_for(10s), std::future_status::ready);
  auto last = Ask("since=abc-1&wait=20");
  page.Stop();
  EXPECT_EQ(last.wait_for(10s), std::future_status::ready);
  EXPECT_THAT(Get("/fabric/view.json", "since=abc-1&wait=20").body, HasSubstr(R"("full":false)"));
}

TEST_F(PageTest, IsWantedForAMinuteAfterTheLastQuestion) {
  page.Publish(sight.Shown());
  Get("/fabric/view.json", "since=abc-1");
  clock.Advance(59s);
  EXPECT_TRUE(page.wanted());
  clock.Advance(1s);
  EXPECT_FALSE(page.wanted());
}

TEST_F(PageTest, TellsMoreOfOneNode) {
  const auto cluster = ReportCluster(std::string(kFourNodes) + " down:node-01/rail-1");
  const kube::ServedAnswer answer = Get("/fabric/about.json", "node=node-01");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const kube::Json about = kube::Json::parse(answer.body);
  EXPECT_EQ(about["gpus"].size(), 2U);
  EXPECT_EQ(about["gpus"][1]["nics"][0][0], 1);
  EXPECT_EQ(about["nics"][1]["rail"], 1);
  EXPECT_EQ(about["nics"][1]["ports"][0]["state"], "Down");
  EXPECT_EQ(Get("/fabric/about.json", "node=nobody").status, 404);
  EXPECT_EQ(Get("/fabric/about.json").status, 400);
}

TEST_F(PageTest, TellsWhyAGangLiesWhereItLies) {
  crds::Gang gang = RunningGang({"node-01"});
  gang.status.explanation = {"su-0 has room for all of it"};
  server.Put(kGangs, crds::ToJson(gang));
  const kube::ServedAnswer answer = Get("/fabric/about.json", "gang=team%2Ftrain-12345678-0");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(kube::Json::parse(answer.body)["why"], kube::Json({"su-0 has room for all of it"}));
  EXPECT_EQ(Get("/fabric/about.json", "gang=team/other").status, 404);
}

TEST_F(PageTest, AnObjectThatCannotBeReadIsNamed) {
  kube::Json broken = kube::NewObject(kNodeTopologies, {"", "node-07"});
  broken["status"]["gpus"] = "eight";
  server.Put(kNodeTopologies, broken);
  EXPECT_EQ(Get("/fabric/about.json", "node=node-07").status, 422);
  EXPECT_THAT(Get("/fabric/about.json", "node=node-07").body, HasSubstr("gpus"));
}

}  // namespace
}  // namespace heddle::operators::page
