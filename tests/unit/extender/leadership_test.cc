#include "extender/leadership.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace heddle::extender {
namespace {

using kube::Json;

TEST(Leadership, KnowsItsSchedulerByItsHostsName) {
  EXPECT_TRUE(IsHeldBy("gpu-a_0c2a", "gpu-a"));
  EXPECT_TRUE(IsHeldBy("gpu-a", "gpu-a"));
  EXPECT_FALSE(IsHeldBy("gpu-ab_0c2a", "gpu-a"));
  EXPECT_FALSE(IsHeldBy("", "gpu-a"));
  EXPECT_FALSE(IsHeldBy("gpu-a_1", "")) << "an unnamed scheduler is nobody's";
}

class LeadershipTest : public testing::Test {
 protected:
  void Start(LeadershipOptions options) {
    options.ns = "heddle-system";
    leadership_.emplace(client_, clock_, base::Random(1), options,
                        [this](bool leading) { leading_ = leading; });
    thread_ = std::jthread([this](std::stop_token stop) { leadership_->Run(stop); });
  }
  void Hold(const std::string& holder) {
    Json lease = kube::NewObject(kube::kLeases, {"heddle-system", "heddle-scheduler"});
    lease["spec"] = {{"holderIdentity", holder},
                     {"leaseDurationSeconds", 15},
                     {"renewTime", base::FormatMicroTime(clock_.WallNow())}};
    server_.Put(kube::kLeases, lease);
  }
  bool Until(bool leading, std::chrono::seconds limit = std::chrono::seconds(40)) {
    const auto end = clock_.Now() + limit;
    while (leading_ != leading && clock_.Now() < end) {
      clock_.WaitForSleepers(1);
      clock_.Advance(std::chrono::seconds(1));
    }
    return leading_ == leading;
  }

  test::FakeClock clock_;
  test::FakeApiServer server_{clock_};
  kube::Client client_{server_, clock_};
  std::atomic<bool> leading_{false};
  std::optional<Leadership> leadership_;
  std::jthread thread_;
};

TEST_F(LeadershipTest, LeadsWhileTheSchedulerBesideItDoes) {
  Hold("gpu-a_1");
  Start({.scheduler_identity = "gpu-a"});
  EXPECT_TRUE(Until(true));
  Hold("gpu-b_2");
  EXPECT_TRUE(Until(false));
  Hold("gpu-a_3");
  EXPECT_TRUE(Until(true));
  EXPECT_TRUE(Until(false)) << "a Lease that nobody renews runs out";
}

TEST_F(LeadershipTest, DoesNotWaitForAnAnswerWhereTheLeaseRanOut) {
  Hold("gpu-a_1");
  const auto runs_out = clock_.Now() + std::chrono::seconds(15);
  Start({.scheduler_identity = "gpu-a"});
  EXPECT_TRUE(Until(true));
  std::atomic<bool> led_too_long{false};
  server_.Intercept([&](const test::ApiRequest&) -> std::optional<kube::HttpResponse> {
    if (leading_ && clock_.Now() >= runs_out) led_too_long = true;
    return test::StatusResponse(503, "", "no answer");
  });
  EXPECT_TRUE(Until(false));
  EXPECT_FALSE(led_too_long);
  thread_.request_stop();
  thread_.join();
}

TEST_F(LeadershipTest, DoesNotLeadWithoutALease) {
  Start({.scheduler_identity = "gpu-a"});
  EXPECT_FALSE(Until(true, std::chrono::seconds(5)));
}

TEST_F(LeadershipTest, TakesALeaseOfItsOwnWhereItIsToldTo) {
  Start({.own_lease = true, .identity = "me_1"});
  EXPECT_TRUE(Until(true));
  const auto lease = server_.Find(kube::kLeases, {"heddle-system", "heddle-scheduler"});
  ASSERT_TRUE(lease);
  EXPECT_EQ(kube::StringAt(*lease, {"spec", "holderIdentity"}), "me_1");
  thread_.request_stop();
  thread_.join();
  EXPECT_FALSE(leading_);
}

}  // namespace
}  // namespace heddle::extender
