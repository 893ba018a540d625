#include "kube/reflector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::seconds;
using test::Fault;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class ReflectorTest : public testing::Test {
 protected:
  ~ReflectorTest() override { Stop(); }

  Json Map(const std::string& name, const std::string& value = "", const std::string& ns = "a") {
    Json map = NewObject(kConfigMaps, {ns, name});
    map["data"]["v"] = value;
    return map;
  }
  void Put(const std::string& name, const std::string& value = "") {
    server_.Put(kConfigMaps, Map(name, value));
  }
  void Remove(const std::string& name) { server_.Remove(kConfigMaps, {"a", name}); }

  void Start(ReflectorOptions options = {}) {
    options.on_change = [this](ChangeType type, const ObjectKey& key, const ObjectPtr& old,
                               const ObjectPtr& current) {
      const std::lock_guard lock(mutex_);
      changes_.push_back(std::string(1, "+~-"[int(type)]) + key.name);
      EXPECT_EQ(old == nullptr, type == ChangeType::kAdded);
      EXPECT_EQ(current == nullptr, type == ChangeType::kDeleted);
    };
    options.on_synced = [this] { ++synced_; };
    reflector_ =
        std::make_unique<Reflector>(client_, clock_, base::Random(7), kConfigMaps, std::move(options));
    runner_ = std::jthread([this](std::stop_token stop) { reflector_->Run(stop); });
  }
  void Stop() {
    if (!runner_.joinable()) return;
    runner_.request_stop();
    runner_.join();
  }
  bool Eventually(const std::function<bool()>& condition) { return server_.WaitUntil(condition); }
  bool Has(const std::string& name, const std::string& value = "") {
    return Eventually([&] {
      const ObjectPtr object = reflector_->store().Get({"a", name});
      return object != nullptr && StringAt(*object, {"data", "v"}) == value;
    });
  }
  bool HasNo(const std::string& name) {
    return Eventually([&] { return reflector_->store().Get({"a", name}) == nullptr; });
  }
  bool Synced() {
    return Eventually([&] { return reflector_->store().synced() && synced_ > 0; });
  }
  // Ends every back-off that comes until the condition holds.
  bool EventuallyAsTimeGoesOn(const std::function<bool()>& condition) {
    return Eventually([&] {
      clock_.AdvanceToNextSleeper();
      return condition();
    });
  }
  // An object can be read a moment before its change is told: this waits for that many.
  std::vector<std::string> TakeChanges(std::size_t count) {
    EXPECT_TRUE(Eventually([&] {
      const std::lock_guard lock(mutex_);
      return changes_.size() >= count;
    }));
    const std::lock_guard lock(mutex_);
    return std::exchange(changes_, {});
  }
  std::vector<std::string> Lines() { return server_.lines(); }

  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Client client_{server_, clock_, {.user_agent = "t", .field_manager = "t"}};
  std::unique_ptr<Reflector> reflector_;
  std::mutex mutex_;
  std::vector<std::string> changes_;
  std::atomic<int> synced_ = 0;
  std::jthread runner_;
};

TEST_F(ReflectorTest, GetsTheStateAndThenEventsFromOneStream) {
  Put("x", "1");
  Put("y", "1");
  Start();
  ASSERT_TRUE(Synced());
  Put("x", "2");
  Put("z", "1");
  Remove("y");
  ASSERT_TRUE(Has("z", "1"));
  ASSERT_TRUE(HasNo("y"));
  EXPECT_THAT(TakeChanges(5), ElementsAre("+x", "+y", "~x", "+z", "-y"));
  EXPECT_THAT(Lines(), ElementsAre("WATCH configmaps"));
  const auto query = server_.requests()[0].query;
  EXPECT_EQ(query.at("sendInitialEvents"), "true");
  EXPECT_EQ(query.at("resourceVersionMatch"), "NotOlderThan");
  EXPECT_EQ(query.at("allowWatchBookmarks"), "true");
  EXPECT_FALSE(query.contains("resourceVersion"));
  const int timeout = std::stoi(query.at("timeoutSeconds"));
  EXPECT_GE(timeout, 300);
  EXPECT_LT(timeout, 600);
  EXPECT_EQ(synced_, 1);
  EXPECT_TRUE(reflector_->healthy());
}

TEST_F(ReflectorTest, FallsBackToListAndWatchOnAnOlderServer) {
  server_.set_watch_list(false);
  Put("x", "1");
  Start();
  ASSERT_TRUE(Synced());
  ASSERT_TRUE(server_.WaitForStreams(1));
  Put("y", "1");
  ASSERT_TRUE(Has("y", "1"));
  EXPECT_THAT(Lines(), ElementsAre("WATCH configmaps", "LIST configmaps", "WATCH configmaps"));
  EXPECT_EQ(server_.requests()[1].query.at("resourceVersion"), "0");
  EXPECT_FALSE(server_.requests()[2].query.contains("sendInitialEvents"));
  EXPECT_TRUE(server_.requests()[2].query.contains("resourceVersion"));
}

TEST_F(ReflectorTest, AServerThatEndsAWatchListBeforeItsTimeMayHaveItAllTheSame) {
  Put("x", "1");
  server_.Intercept([this](const test::ApiRequest&) -> std::optional<HttpResponse> {
    if (server_.requests().size() == 1) return HttpResponse{200, {}, ""};
    return std::nullopt;
  });
  Start();
  ASSERT_TRUE(Synced());
  ASSERT_TRUE(server_.WaitForStreams(1));
  EXPECT_THAT(Lines(), ElementsAre("WATCH configmaps", "LIST configmaps", "WATCH configmaps"));
  server_.ExpireHistory();
  server_.SendError(410);
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return server_.requests().size() >= 4; }));
  EXPECT_TRUE(server_.requests()[3].query.contains("sendInitialEvents"));
}

TEST_F(ReflectorTest, AServerThatNeverMarksTheEndInAWatchListsTimeHasNone) {
  Put("x", "1");
  server_.Intercept([this](const test::ApiRequest&) -> std::optional<HttpResponse> {
    if (server_.requests().size() != 1) return std::nullopt;
    clock_.Advance(seconds(600));
    return HttpResponse{200, {}, ""};
  });
  Start();
  ASSERT_TRUE(Synced());
  ASSERT_TRUE(server_.WaitForStreams(1));
  server_.ExpireHistory();
  server_.SendError(410);
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return server_.requests().size() >= 4; }));
  EXPECT_EQ(Lines()[3], "LIST configmaps");
}

TEST_F(ReflectorTest, WatchesOnFromTheLastVersionAfterANormalEnd) {
  Put("x", "1");
  Start();
  ASSERT_TRUE(Synced());
  Put("x", "2");
  ASSERT_TRUE(Has("x", "2"));
  const std::string version = server_.resource_version();
  // An object can be read a moment before its version is the last that was seen.
  ASSERT_TRUE(Eventually([&] { return reflector_->resource_version() == version; }));
  clock_.Advance(seconds(300));
  server_.EndStreams();
  ASSERT_TRUE(Eventually([&] { return server_.requests().size() == 2; }));
  EXPECT_EQ(server_.requests()[1].query.at("resourceVersion"), version);
  EXPECT_FALSE(server_.requests()[1].query.contains("sendInitialEvents"));
  EXPECT_EQ(clock_.sleepers(), 0u) << "no back-off after a normal end";
}

TEST_F(ReflectorTest, NeverTakesAVersionFromASyntheticEvent) {
  Put("old", "1");
  const std::string old_version = server_.resource_version();
  for (int i = 0; i < 5; ++i) server_.Put(kNodes, NewObject(kNodes, {"", "n"}));
  server_.set_deliver_events(false);
  Start();
  ASSERT_TRUE(Synced());
  EXPECT_NE(reflector_->resource_version(), old_version);
  EXPECT_EQ(reflector_->resource_version(), server_.resource_version());
}

TEST_F(ReflectorTest, FollowsBookmarks) {
  Start();
  ASSERT_TRUE(Synced());
  for (int i = 0; i < 5; ++i) server_.Put(kNodes, NewObject(kNodes, {"", "n"}));
  server_.SendBookmarks();
  EXPECT_TRUE(Eventually([&] { return reflector_->resource_version() == server_.resource_version(); }));
}

TEST_F(ReflectorTest, EmitsDeletesForKeysThatVanishedInAReplace) {
  Put("x", "1");
  Put("y", "1");
  Put("same", "1");
  Start();
  ASSERT_TRUE(Synced());
  TakeChanges(3);
  server_.set_deliver_events(false);
  Remove("x");
  Put("y", "2");
  server_.ExpireHistory();
  server_.SendError(410);
  server_.set_deliver_events(true);
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return reflector_->store().Get({"a", "x"}) == nullptr; }));
  ASSERT_TRUE(Has("y", "2"));
  const auto changes = TakeChanges(2);
  EXPECT_TRUE(std::count(changes.begin(), changes.end(), "-x") == 1);
  EXPECT_TRUE(std::count(changes.begin(), changes.end(), "~y") == 1);
  EXPECT_TRUE(std::count(changes.begin(), changes.end(), "~same") == 0)
      << "what did not change is not reported";
  EXPECT_EQ(synced_, 1) << "synced is told once";
}

TEST_F(ReflectorTest, AsksConsistentlyAfterItsVersionExpired) {
  Put("x", "1");
  Start();
  ASSERT_TRUE(Synced());
  server_.ExpireHistory();
  server_.CutStreams();
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return server_.requests().size() >= 3; }));
  const auto requests = server_.requests();
  EXPECT_TRUE(requests[1].query.contains("resourceVersion")) << "a cut stream is watched on";
  EXPECT_EQ(requests[2].query.at("sendInitialEvents"), "true");
  EXPECT_FALSE(requests[2].query.contains("resourceVersion")) << "after 410 no version is asked for";
  EXPECT_TRUE(Eventually([&] { return reflector_->healthy(); }));
}

TEST_F(ReflectorTest, ListsInPagesWithoutAVersionWhereTheListExpired) {
  server_.set_watch_list(false);
  Put("x", "1");
  server_.FailNext({.method = "GET", .status = 504, .reason = "Expired"});
  Start();
  ASSERT_TRUE(Synced());
  const auto requests = server_.requests();
  EXPECT_EQ(requests[1].query.at("resourceVersion"), "0");
  EXPECT_FALSE(requests[2].query.contains("resourceVersion"));
  EXPECT_EQ(requests[2].query.at("limit"), "500");
}

TEST_F(ReflectorTest, ReadsInPagesFromThenOnWhatIsTooLargeAtOnce) {
  server_.set_watch_list(false);
  for (int i = 0; i < 150; ++i) Put("m" + std::to_string(1000 + i), "1");
  server_.FailNext({.method = "GET", .status = 413});
  Start();
  ASSERT_TRUE(Synced());
  ASSERT_TRUE(server_.WaitForStreams(1));
  EXPECT_THAT(Lines(), ElementsAre("WATCH configmaps", "LIST configmaps", "LIST configmaps",
                                   "LIST configmaps", "WATCH configmaps"));
  EXPECT_EQ(server_.requests()[1].query.at("resourceVersion"), "0");
  EXPECT_EQ(server_.requests()[2].query.at("limit"), "100");
  EXPECT_FALSE(server_.requests()[2].query.contains("resourceVersion"));
  EXPECT_EQ(reflector_->store().size(), 150u);
  // What makes it list anew, though its version is still known.
  server_.SendError(403);
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return server_.requests().size() >= 6; }));
  EXPECT_EQ(Lines()[5], "LIST configmaps");
  EXPECT_EQ(server_.requests()[5].query.at("limit"), "100");
}

TEST_F(ReflectorTest, ReadsThousandsInPagesAndWatchesFromThere) {
  for (int i = 0; i < 250; ++i) Put("m" + std::to_string(1000 + i), "1");
  const std::string version = server_.resource_version();
  int transformed = 0;
  Start({.transform =
             [&transformed](Json object) {
               ++transformed;
               return object;
             },
         .in_pages = true});
  ASSERT_TRUE(Synced());
  ASSERT_TRUE(server_.WaitForStreams(1));
  EXPECT_THAT(Lines(),
              ElementsAre("LIST configmaps", "LIST configmaps", "LIST configmaps", "WATCH configmaps"));
  const auto requests = server_.requests();
  EXPECT_FALSE(requests[0].query.contains("resourceVersion"));
  EXPECT_TRUE(requests[1].query.contains("continue"));
  EXPECT_EQ(requests[3].query.at("resourceVersion"), version);
  EXPECT_FALSE(requests[3].query.contains("sendInitialEvents"));
  EXPECT_EQ(reflector_->store().size(), 250u);
  EXPECT_EQ(transformed, 250);
  Put("m1007", "2");
  ASSERT_TRUE(Has("m1007", "2"));
}

TEST_F(ReflectorTest, DropsWhatIsPrunedOfListsAndOfEvents) {
  for (const bool in_pages : {false, true}) {
    Put("x", "1");
    Start({.pruning = Pruning({"data.v", "metadata.annotations"}), .in_pages = in_pages});
    ASSERT_TRUE(Synced());
    Put("y", "2");
    ASSERT_TRUE(Has("y"));
    EXPECT_TRUE(Has("x"));
    Stop();
    Remove("y");
  }
}

TEST_F(ReflectorTest, ReportsAnObjectMadeAnewInAGapAsDeletedAndAdded) {
  Put("x", "1");
  Start();
  ASSERT_TRUE(Synced());
  TakeChanges(1);
  server_.set_deliver_events(false);
  Remove("x");
  Json again = Map("x", "2");
  again["metadata"]["uid"] = "another";
  server_.Put(kConfigMaps, again);
  server_.ExpireHistory();
  server_.SendError(410);
  server_.set_deliver_events(true);
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] {
    const ObjectPtr x = reflector_->store().Get({"a", "x"});
    return x != nullptr && Uid(*x) == "another";
  }));
  EXPECT_THAT(TakeChanges(2), ElementsAre("-x", "+x"));
}

TEST_F(ReflectorTest, BacksOffAndWatchesOnWhereTheServerIsAway) {
  Put("x", "1");
  Start();
  ASSERT_TRUE(Synced());
  server_.FailNext({.method = "WATCH"}, 3);
  server_.CutStreams();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_FALSE(reflector_->healthy());
  ASSERT_TRUE(reflector_->last_error());
  EXPECT_EQ(reflector_->last_error()->code, Code::kUnavailable);
  EXPECT_NE(reflector_->store().Get({"a", "x"}), nullptr) << "the cache stays";
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return server_.requests().size() >= 5; }));
  for (const auto& line : Lines()) EXPECT_EQ(line, "WATCH configmaps");
  for (std::size_t i = 1; i < 5; ++i) EXPECT_FALSE(server_.requests()[i].query.contains("sendInitialEvents"));
  EXPECT_TRUE(Eventually([&] { return reflector_->healthy(); }));
  EXPECT_FALSE(reflector_->last_error());
}

TEST_F(ReflectorTest, WaitsAsLongAsTheServerSays) {
  Start();
  ASSERT_TRUE(Synced());
  server_.FailNext({.method = "WATCH", .status = 429, .retry_after_seconds = 45});
  clock_.Advance(seconds(2));
  server_.EndStreams();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  const auto before = server_.requests().size();
  clock_.Advance(seconds(44));
  EXPECT_EQ(server_.requests().size(), before);
  clock_.Advance(seconds(2));
  EXPECT_TRUE(Eventually([&] { return server_.requests().size() == before + 1; }));
}

TEST_F(ReflectorTest, ListsAnewAfterTooManyInternalErrors) {
  Start();
  ASSERT_TRUE(Synced());
  server_.FailNext({.method = "WATCH", .status = 500}, 4);
  server_.CutStreams();
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] {
    const auto requests = server_.requests();
    return requests.size() >= 6 && requests.back().query.contains("sendInitialEvents");
  }));
  const auto requests = server_.requests();
  const auto lists = std::count_if(requests.begin(), requests.end(), [](const auto& request) {
    return request.query.contains("sendInitialEvents");
  });
  EXPECT_EQ(lists, 2) << "the first and the one after the errors";
}

TEST_F(ReflectorTest, TakesAWatchThatDiesAtOnceForAFailure) {
  server_.set_watch_list(false);
  Start();
  ASSERT_TRUE(server_.WaitForStreams(1));
  server_.EndStreams();
  EXPECT_TRUE(clock_.WaitForSleepers(1)) << "or it would spin";
}

TEST_F(ReflectorTest, KeepsTryingWhileItMayNotRead) {
  server_.FailNext({.status = 403}, 6);
  Put("x", "1");
  Start();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  EXPECT_FALSE(reflector_->healthy());
  EXPECT_EQ(reflector_->last_error()->code, Code::kForbidden);
  EXPECT_FALSE(reflector_->store().synced());
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return reflector_->store().synced(); }));
}

TEST_F(ReflectorTest, StartsBeforeItsServer) {
  server_.FailNext({}, 5);
  Put("x", "1");
  Start();
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return reflector_->store().synced(); }));
  for (const auto& line : Lines())
    EXPECT_EQ(line, "WATCH configmaps") << "a refused connection is no reason to list";
}

TEST_F(ReflectorTest, BacksOffLongerAndLongerButNotOverThirtySeconds) {
  server_.FailNext({}, 1000);
  Start();
  std::chrono::nanoseconds longest{0};
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(clock_.WaitForSleepers(1));
    const auto before = clock_.Now();
    clock_.AdvanceToNextSleeper();
    longest = std::max<std::chrono::nanoseconds>(longest, clock_.Now() - before);
  }
  EXPECT_GT(longest, seconds(10));
  EXPECT_LE(longest, seconds(30));
}

TEST_F(ReflectorTest, KeepsOnlyWhatTheTransformLeaves) {
  Json map = Map("x", "1");
  map["metadata"]["managedFields"] = Json::array({{{"manager", "m"}}});
  map["binaryData"]["large"] = "…";
  server_.Put(kConfigMaps, map);
  ReflectorOptions options;
  options.transform = [](Json object) {
    object.erase("binaryData");
    return DropManagedFields(std::move(object));
  };
  Start(std::move(options));
  ASSERT_TRUE(Has("x", "1"));
  const ObjectPtr x = reflector_->store().Get({"a", "x"});
  EXPECT_FALSE(x->contains("binaryData"));
  EXPECT_EQ(Find(*x, {"metadata", "managedFields"}), nullptr);
}

TEST_F(ReflectorTest, SeesAnObjectLeaveItsSelector) {
  Json map = Map("x", "1");
  map["metadata"]["labels"]["in"] = "yes";
  server_.Put(kConfigMaps, map);
  server_.Put(kConfigMaps, Map("other", "1", "elsewhere"));
  Start({.ns = "a", .label_selector = "in=yes"});
  ASSERT_TRUE(Has("x", "1"));
  map["metadata"]["labels"]["in"] = "no";
  server_.Put(kConfigMaps, map);
  EXPECT_TRUE(HasNo("x"));
  EXPECT_EQ(reflector_->store().size(), 0u);
}

TEST_F(ReflectorTest, ListsItsStoreInOrder) {
  for (const char* name : {"c", "a", "b"}) Put(name);
  Start();
  ASSERT_TRUE(Synced());
  std::vector<std::string> names;
  for (const ObjectPtr& object : reflector_->store().List()) names.push_back(Name(*object));
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST_F(ReflectorTest, ListsItsStoreAnewOnlyAfterAChange) {
  Put("a");
  Start();
  ASSERT_TRUE(Synced());
  const SortedObjects before = reflector_->store().List();
  EXPECT_TRUE(before.SharesWith(reflector_->store().List()));
  Put("b");
  ASSERT_TRUE(Has("b"));
  EXPECT_EQ(before.size(), 1u) << "who has a list keeps it";
  EXPECT_EQ(reflector_->store().List().size(), 2u);
  server_.Remove(kConfigMaps, {"a", "b"});
  ASSERT_TRUE(HasNo("b"));
  EXPECT_EQ(reflector_->store().List().size(), 1u);
}

TEST_F(ReflectorTest, LetsOthersWaitForTheFirstState) {
  server_.FailNext({}, 1);
  Start();
  std::atomic<bool> result = false;
  std::jthread waiter(
      [&](std::stop_token stop) { result = reflector_->WaitForSync(stop, std::chrono::hours(1)); });
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  clock_.AdvanceToNextSleeper();
  waiter.join();
  EXPECT_TRUE(result);
}

TEST_F(ReflectorTest, TellsAWaiterThatTimeIsUp) {
  server_.FailNext({}, 1000);
  Start();
  std::atomic<int> result = -1;
  std::jthread waiter([&] { result = int(reflector_->WaitForSync({}, std::chrono::milliseconds(1))); });
  ASSERT_TRUE(EventuallyAsTimeGoesOn([&] { return result >= 0; }));
  EXPECT_EQ(result, 0);
}

TEST_F(ReflectorTest, StopsAtOnceWhereverItIs) {
  Start();
  ASSERT_TRUE(Synced());
  Stop();
  EXPECT_EQ(server_.open_streams(), 0u);
  server_.FailNext({}, 1000);
  Start();
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  Stop();
}

}  // namespace
}  // namespace heddle::kube
