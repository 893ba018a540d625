// Lists in pages, while the server forgets, fails or falls silent between two of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fault;
using testing::ElementsAre;

// Three pages of 25 objects.
class ListPagesTest : public testing::Test {
 protected:
  ListPagesTest() {
    clock_.set_auto_advance(true);
    for (int i = 0; i < 25; ++i) {
      server_.Put(kConfigMaps, NewObject(kConfigMaps, {"a", "m" + std::to_string(100 + i)}));
    }
  }
  base::Result<ObjectList> List(std::stop_token stop = {}) {
    return client_.ListAll(kConfigMaps, {.limit = 10}, std::move(stop));
  }
  // What happens just before the second page is answered, for the first time that it is asked for.
  void AtTheSecondPage(const std::function<void()>& happens) {
    server_.ClearRequests();
    server_.Intercept([this, happens](const test::ApiRequest&) -> std::optional<HttpResponse> {
      if (server_.requests().size() == 2) happens();
      return std::nullopt;
    });
  }
  void FailSecondPage(const Fault& fault, int times) {
    AtTheSecondPage([this, fault, times] { server_.FailNext(fault, times); });
  }
  // Of each request, which page it asked for: "first", "next", or "all" at once.
  std::vector<std::string> Asked() const {
    std::vector<std::string> asked;
    for (const auto& request : server_.requests()) {
      const bool next = request.query.contains("continue");
      asked.push_back(next ? "next" : request.query.contains("limit") ? "first" : "all");
    }
    return asked;
  }
  static std::set<std::string> Names(const ObjectList& list) {
    std::set<std::string> names;
    for (const Json& item : list.items) names.insert(Name(item));
    return names;
  }

  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Client client_{server_, clock_, {.user_agent = "t", .field_manager = "tester"}};
};

TEST_F(ListPagesTest, BeginsAnewInPagesWhereATokenExpires) {
  AtTheSecondPage([this] {
    server_.Remove(kConfigMaps, {"a", "m100"});  // which the first page had
    server_.Put(kConfigMaps, NewObject(kConfigMaps, {"a", "m050"}));
    server_.ExpireHistory();
  });
  const auto all = List();
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(Asked(), ElementsAre("first", "next", "first", "next", "next"));
  EXPECT_EQ(all->items.size(), 25u);
  EXPECT_EQ(Names(*all).size(), 25u);
  EXPECT_TRUE(Names(*all).contains("m050"));
  EXPECT_FALSE(Names(*all).contains("m100"));
  EXPECT_EQ(all->resource_version, server_.resource_version()) << "a watch may begin here";
}

TEST_F(ListPagesTest, AsksForAllAtOnceWhereEveryTokenExpires) {
  server_.Intercept([this](const test::ApiRequest& request) -> std::optional<HttpResponse> {
    if (request.query.contains("continue")) server_.ExpireHistory();
    return std::nullopt;
  });
  const auto all = List();
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(Asked(), ElementsAre("first", "next", "first", "next", "first", "next", "all"));
  EXPECT_EQ(all->items.size(), 25u);
  EXPECT_EQ(Names(*all).size(), 25u);
}

TEST_F(ListPagesTest, AsksForAPageAgainThatDidNotCome) {
  for (const int status : {0, 429, 500, 503}) {  // 0 = the connection is lost
    FailSecondPage({.method = "GET", .status = status}, 2);
    const auto before = clock_.Now();
    const auto all = List();
    ASSERT_TRUE(all) << status << all.error().message;
    EXPECT_THAT(Asked(), ElementsAre("first", "next", "next", "next", "next")) << status;
    EXPECT_EQ(all->items.size(), 25u) << status;
    EXPECT_EQ(Names(*all).size(), 25u) << status;
    EXPECT_EQ(clock_.Now() - before, milliseconds(1500)) << status;
  }
}

TEST_F(ListPagesTest, GivesUpAPageThatNeverComes) {
  FailSecondPage({.method = "GET"}, 1000);
  const auto before = clock_.Now();
  const auto all = List();
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Code::kUnavailable);
  EXPECT_THAT(Asked(), ElementsAre("first", "next", "next", "next", "next"));
  EXPECT_EQ(clock_.Now() - before, milliseconds(3500));
}

TEST_F(ListPagesTest, LeavesAFirstPageThatDoesNotComeToWhoeverAsked) {
  server_.FailNext({.method = "GET"});
  EXPECT_EQ(List().error().code, Code::kUnavailable);
  EXPECT_THAT(Asked(), ElementsAre("first"));
}

TEST_F(ListPagesTest, AsksNoMoreForAPageThatIsRefused) {
  FailSecondPage({.method = "GET", .status = 403}, 1000);
  EXPECT_EQ(List().error().code, Code::kForbidden);
  EXPECT_THAT(Asked(), ElementsAre("first", "next"));
}

// A list may take 60 s, so that is how long it is waited for one page; more would be against the server's word.
TEST_F(ListPagesTest, DoesNotOutdoTheServersOwnWait) {
  FailSecondPage({.method = "GET", .status = 429, .retry_after_seconds = 20}, 1000);
  const auto all = List();
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().retry_after, seconds(20));
  EXPECT_THAT(Asked(), ElementsAre("first", "next", "next", "next", "next"));
}

TEST_F(ListPagesTest, StopsWhileItWaitsForAPage) {
  std::stop_source stop;
  AtTheSecondPage([this, &stop] {
    server_.FailNext({.method = "GET"});
    stop.request_stop();
  });
  EXPECT_EQ(List(stop.get_token()).error().code, Code::kCancelled);
  EXPECT_THAT(Asked(), ElementsAre("first", "next"));
}

}  // namespace
}  // namespace heddle::kube
