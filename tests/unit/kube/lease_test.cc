#include "kube/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using base::Code;
using std::chrono::seconds;

class LeaseTest : public testing::Test {
 protected:
  struct Candidate {
    std::unique_ptr<LeaseElector> elector;
    std::atomic<bool> working = false;
    std::optional<base::Status> ended;
    std::jthread runner;
  };

  std::unique_ptr<Candidate> Start(const std::string& identity, bool release = true) {
    auto candidate = std::make_unique<Candidate>();
    LeaseOptions options{.lease = key_, .identity = identity, .release_on_exit = release};
    LeaseCallbacks callbacks;
    callbacks.started = [raw = candidate.get()] { raw->working = true; };
    callbacks.stopped = [raw = candidate.get()] { raw->working = false; };
    candidate->elector =
        std::make_unique<LeaseElector>(client_, clock_, base::Random(seed_++), std::move(options), callbacks);
    candidate->runner =
        std::jthread([raw = candidate.get()](std::stop_token stop) { raw->ended = raw->elector->Run(stop); });
    return candidate;
  }
  void Stop(Candidate& candidate) {
    candidate.runner.request_stop();
    candidate.runner.join();
  }
  bool Eventually(const std::function<bool()>& condition) { return server_.WaitUntil(condition); }
  Json Lease() { return server_.Find(kLeases, key_).value_or(Json()); }
  std::string HolderOnServer() { return StringAt(Lease(), {"spec", "holderIdentity"}); }
  void HoldAs(const std::string& holder) {
    server_.Edit(kLeases, key_, [&](Json& lease) {
      lease["spec"] = {{"holderIdentity", holder},
                       {"leaseDurationSeconds", 15},
                       {"leaseTransitions", 4},
                       {"renewTime", base::FormatMicroTime(clock_.WallNow())},
                       {"strategy", "kept"}};
    });
  }

  const ObjectKey key_{"heddle-system", "heddle-operator"};
  std::uint64_t seed_ = 1;
  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  Client client_{server_, clock_, {}};
};

TEST_F(LeaseTest, MakesTheLeaseAndLeads) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  EXPECT_TRUE(a->elector->IsLeader());
  EXPECT_EQ(HolderOnServer(), "a");
  EXPECT_EQ(IntAt(Lease(), {"spec", "leaseDurationSeconds"}), 15);
  EXPECT_EQ(IntAt(Lease(), {"spec", "leaseTransitions"}), 0);
  Stop(*a);
}

TEST_F(LeaseTest, RenewsWithOnePutAndKeepsItsAcquireTime) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  const std::string acquired = StringAt(Lease(), {"spec", "acquireTime"});
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  server_.ClearRequests();
  clock_.Advance(seconds(6));
  EXPECT_THAT(server_.lines(), testing::Each("PUT leases heddle-system/heddle-operator"));
  EXPECT_GE(server_.lines().size(), 2u);
  EXPECT_EQ(StringAt(Lease(), {"spec", "acquireTime"}), acquired);
  EXPECT_NE(StringAt(Lease(), {"spec", "renewTime"}), acquired);
  EXPECT_TRUE(a->elector->IsLeader());
  Stop(*a);
}

TEST_F(LeaseTest, ReleasesOnExitAndTheOtherTakesOverAtOnce) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  auto b = Start("b");
  ASSERT_TRUE(clock_.WaitForSleepers(2));
  EXPECT_FALSE(b->elector->IsLeader());
  EXPECT_EQ(b->elector->Holder(), "a");
  Stop(*a);
  ASSERT_TRUE(a->ended);
  EXPECT_TRUE(*a->ended);
  EXPECT_EQ(HolderOnServer(), "");
  EXPECT_EQ(IntAt(Lease(), {"spec", "leaseDurationSeconds"}), 1);
  clock_.Advance(seconds(5));
  ASSERT_TRUE(Eventually([&] { return b->working.load(); }));
  EXPECT_EQ(HolderOnServer(), "b");
  EXPECT_EQ(IntAt(Lease(), {"spec", "leaseTransitions"}), 1);
  Stop(*b);
}

TEST_F(LeaseTest, TakesOverOnlyAfterItHasSeenNoChangeForTheDuration) {
  HoldAs("dead");
  // The holder's clock is an hour behind: renewTime says nothing.
  server_.Edit(kLeases, key_,
               [](Json& lease) { lease["spec"]["renewTime"] = "2001-01-01T00:00:00.000000Z"; });
  auto b = Start("b");
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  clock_.Advance(seconds(14));
  EXPECT_FALSE(b->working);
  EXPECT_EQ(HolderOnServer(), "dead");
  clock_.Advance(seconds(7));
  ASSERT_TRUE(Eventually([&] { return b->working.load(); }));
  EXPECT_EQ(IntAt(Lease(), {"spec", "leaseTransitions"}), 5);
  EXPECT_EQ(StringAt(Lease(), {"spec", "strategy"}), "kept") << "fields that are not ours stay";
  Stop(*b);
}

TEST_F(LeaseTest, WaitsOnWhileTheHolderRenews) {
  HoldAs("alive");
  auto b = Start("b");
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(seconds(5));
    HoldAs("alive");
  }
  EXPECT_FALSE(b->working);
  Stop(*b);
  EXPECT_EQ(HolderOnServer(), "alive");
}

TEST_F(LeaseTest, StopsLeadingAtTheRenewDeadline) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  server_.FailNext({}, 1000);
  clock_.Advance(seconds(9));
  EXPECT_TRUE(a->elector->IsLeader());
  clock_.Advance(seconds(4));
  EXPECT_FALSE(a->elector->IsLeader());
  ASSERT_TRUE(Eventually([&] { return !a->working.load(); }));
  a->runner.join();
  ASSERT_FALSE(*a->ended);
  EXPECT_EQ(a->ended->error().code, Code::kTimeout);
}

TEST_F(LeaseTest, IsNotLeaderPastTheDeadlineThoughARequestHangs) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  std::mutex hang;
  hang.lock();
  server_.Intercept([&](const test::ApiRequest&) -> std::optional<HttpResponse> {
    const std::lock_guard wait(hang);
    return std::nullopt;
  });
  clock_.Advance(seconds(11));
  EXPECT_FALSE(a->elector->IsLeader());
  hang.unlock();
  Stop(*a);
}

TEST_F(LeaseTest, StopsAtOnceWhereSomebodyElseHoldsIt) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  HoldAs("usurper");
  clock_.Advance(seconds(3));
  a->runner.join();
  EXPECT_FALSE(a->working);
  ASSERT_FALSE(*a->ended);
  EXPECT_EQ(a->ended->error().code, Code::kConflict);
  EXPECT_EQ(HolderOnServer(), "usurper") << "what is not ours is not released";
}

TEST_F(LeaseTest, LeadsOnThroughAConflictThatChangedNothingOfOurs) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  server_.Edit(kLeases, key_, [](Json& lease) { lease["metadata"]["labels"]["touched"] = "yes"; });
  clock_.Advance(seconds(3));
  EXPECT_TRUE(a->working);
  EXPECT_TRUE(a->elector->IsLeader());
  EXPECT_EQ(Label(Lease(), "touched"), "yes");
  Stop(*a);
}

TEST_F(LeaseTest, ReleasesThoughStopCutARenewalThatTheServerTook) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  server_.FailNext({.method = "PUT", .after_the_fact = true});
  clock_.Advance(seconds(2));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  Stop(*a);
  EXPECT_TRUE(*a->ended);
  EXPECT_EQ(HolderOnServer(), "");
}

TEST_F(LeaseTest, ReleasesNothingThatSomebodyElseTookMeanwhile) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  HoldAs("b");
  Stop(*a);
  EXPECT_EQ(HolderOnServer(), "b");
}

TEST_F(LeaseTest, ReleasesNothingThatItSawTakenInTheMomentOfStopping) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  HoldAs("b");
  // After the conflict: the answer to this is still read, and then stop is seen.
  server_.Intercept([&](const test::ApiRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "GET") a->runner.request_stop();
    return std::nullopt;
  });
  clock_.Advance(seconds(3));
  a->runner.join();
  ASSERT_TRUE(a->ended);
  EXPECT_TRUE(*a->ended);
  EXPECT_EQ(HolderOnServer(), "b");
}

TEST_F(LeaseTest, LeadsOnWhereADeletedLeaseIsMadeAnewAtTheSecondTry) {
  auto a = Start("a");
  ASSERT_TRUE(Eventually([&] { return a->working.load(); }));
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  server_.Remove(kLeases, key_);
  // As a real server says of a uid that is not there.
  server_.FailNext({.method = "PUT", .status = 409});
  server_.FailNext({.method = "POST"});
  server_.ClearRequests();
  clock_.Advance(seconds(5));
  EXPECT_THAT(server_.lines(),
              testing::ElementsAre("PUT leases heddle-system/heddle-operator",
                                   "GET leases heddle-system/heddle-operator", "POST leases heddle-system",
                                   "GET leases heddle-system/heddle-operator", "POST leases heddle-system"));
  EXPECT_TRUE(a->elector->IsLeader());
  EXPECT_EQ(HolderOnServer(), "a");
  Stop(*a);
}

TEST_F(LeaseTest, OneOfTwoLeads) {
  auto a = Start("a");
  auto b = Start("b");
  ASSERT_TRUE(Eventually([&] { return a->working || b->working; }));
  for (int i = 0; i < 20; ++i) {
    // Else time would run away from a thread that has no processor now.
    ASSERT_TRUE(clock_.WaitForSleepers(2));
    clock_.Advance(seconds(2));
    EXPECT_NE(a->elector->IsLeader(), b->elector->IsLeader());
  }
  Stop(*a);
  Stop(*b);
}

TEST_F(LeaseTest, ObserverTellsTheHolderUntilItFallsSilent) {
  LeaseObserver observer(client_, clock_, base::Random(1), {.lease = key_});
  EXPECT_EQ(observer.Holder(), std::nullopt);
  EXPECT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(observer.Holder(), std::nullopt) << "no Lease yet";
  EXPECT_TRUE(observer.healthy());
  HoldAs("scheduler-1");
  EXPECT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(observer.Holder(), "scheduler-1");
  clock_.Advance(seconds(14));
  EXPECT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(observer.Holder(), "scheduler-1");
  clock_.Advance(seconds(2));
  EXPECT_EQ(observer.Holder(), std::nullopt) << "it did not change for its duration";
  HoldAs("scheduler-2");
  EXPECT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(observer.Holder(), "scheduler-2");
  server_.FailNext({});
  EXPECT_FALSE(observer.ObserveOnce({}));
  EXPECT_FALSE(observer.healthy());
  EXPECT_EQ(observer.Holder(), "scheduler-2");
}

TEST_F(LeaseTest, ObserverCountsFromBeforeALateAnswer) {
  LeaseObserver observer(client_, clock_, base::Random(1), {.lease = key_});
  HoldAs("scheduler-1");
  server_.Intercept([&](const test::ApiRequest&) -> std::optional<HttpResponse> {
    clock_.Advance(seconds(4));
    return std::nullopt;
  });
  ASSERT_TRUE(observer.ObserveOnce({}));
  clock_.Advance(seconds(10));
  EXPECT_EQ(observer.Holder(), "scheduler-1");
  clock_.Advance(seconds(1));
  EXPECT_EQ(observer.Holder(), std::nullopt) << "it may have been renewed 15 s ago";
}

// Says how long its client would wait.
class PatienceTransport final : public HttpTransport {
 public:
  explicit PatienceTransport(HttpTransport& server) : server_(server) {}
  base::Result<HttpResponse> Do(const HttpRequest& request, std::stop_token stop) override {
    patience_ = request.timeout;
    return server_.Do(request, std::move(stop));
  }
  base::Result<HttpResponse> Stream(const HttpRequest& request, const ChunkReader& on_chunk,
                                    std::stop_token stop) override {
    return server_.Stream(request, on_chunk, std::move(stop));
  }
  std::chrono::milliseconds patience() const { return patience_; }

 private:
  HttpTransport& server_;
  std::chrono::milliseconds patience_{0};
};

TEST_F(LeaseTest, ObserverDoesNotWaitLongerThanALeaseHolds) {
  PatienceTransport transport(server_);
  Client client(transport, clock_, {});
  LeaseObserver observer(client, clock_, base::Random(1), {.lease = key_});
  HoldAs("scheduler-1");
  ASSERT_TRUE(observer.ObserveOnce({}));
  EXPECT_EQ(transport.patience(), kObservationTimeout);
}

TEST_F(LeaseTest, ObserverReportsChanges) {
  std::vector<std::string> holders;
  LeaseObserver observer(
      client_, clock_, base::Random(1),
      {.lease = key_, .on_change = [&](const std::string& holder) { holders.push_back(holder); }});
  HoldAs("one");
  ASSERT_TRUE(observer.ObserveOnce({}));
  ASSERT_TRUE(observer.ObserveOnce({}));
  HoldAs("");
  ASSERT_TRUE(observer.ObserveOnce({}));
  EXPECT_THAT(holders, testing::ElementsAre("one", ""));
}

TEST_F(LeaseTest, HeartbeatMakesItsLeaseAndThenOnlyPuts) {
  LeaseHeartbeat heartbeat(
      client_, clock_, base::Random(1),
      {.lease = key_, .identity = "a1", .owner = OwnerReference{"v1", "Node", "a1", "u", false}});
  ASSERT_TRUE(heartbeat.BeatOnce({}));
  clock_.Advance(seconds(10));
  ASSERT_TRUE(heartbeat.BeatOnce({}));
  EXPECT_THAT(server_.lines(),
              testing::ElementsAre("GET leases heddle-system/heddle-operator", "POST leases heddle-system",
                                   "PUT leases heddle-system/heddle-operator"));
  EXPECT_EQ(StringAt(Lease(), {"spec", "renewTime"}), base::FormatMicroTime(clock_.WallNow()));
  EXPECT_EQ(Lease()["metadata"]["ownerReferences"][0]["uid"], "u");
  EXPECT_EQ(IntAt(Lease(), {"spec", "leaseDurationSeconds"}), 240);
}

TEST_F(LeaseTest, HeartbeatIsSilentWhileItIsWithheld) {
  std::string why = "nothing moves";
  LeaseHeartbeat heartbeat(client_, clock_, base::Random(1),
                           {.lease = key_, .identity = "a1", .withheld = [&why] { return why; }});
  EXPECT_FALSE(heartbeat.BeatOnce({}));
  EXPECT_EQ(heartbeat.last_error()->code, Code::kUnavailable);
  EXPECT_EQ(heartbeat.last_error()->message, "nothing moves");
  EXPECT_THAT(server_.lines(), testing::IsEmpty());
  why.clear();
  ASSERT_TRUE(heartbeat.BeatOnce({}));
  EXPECT_FALSE(heartbeat.last_error());
  EXPECT_EQ(StringAt(Lease(), {"spec", "renewTime"}), base::FormatMicroTime(clock_.WallNow()));
}

TEST_F(LeaseTest, HeartbeatSurvivesDeletionAndOtherWriters) {
  LeaseHeartbeat heartbeat(client_, clock_, base::Random(1), {.lease = key_, .identity = "a1"});
  ASSERT_TRUE(heartbeat.BeatOnce({}));
  server_.Remove(kLeases, key_);
  ASSERT_TRUE(heartbeat.BeatOnce({}));
  server_.Edit(kLeases, key_, [](Json& lease) { lease["metadata"]["labels"]["touched"] = "yes"; });
  ASSERT_TRUE(heartbeat.BeatOnce({}));
  EXPECT_EQ(Label(Lease(), "touched"), "yes");
  server_.FailNext({.status = 403}, 2);
  EXPECT_FALSE(heartbeat.BeatOnce({}));
  EXPECT_EQ(heartbeat.last_error()->code, Code::kForbidden);
  ASSERT_TRUE(heartbeat.BeatOnce({}) || heartbeat.BeatOnce({}));
  EXPECT_FALSE(heartbeat.last_error());
}

}  // namespace
}  // namespace heddle::kube
