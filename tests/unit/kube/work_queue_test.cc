#include "kube/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_clock.h"

namespace heddle::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkQueueTest : public testing::Test {
 protected:
  test::FakeClock clock_;
  WorkQueue queue_{clock_, {.base_delay = milliseconds(10), .max_delay = seconds(1)}};
};

TEST_F(WorkQueueTest, HoldsAKeyOnce) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.TryGet(), "a");
  EXPECT_EQ(queue_.TryGet(), "b");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, RunsAKeyAgainThatWasAddedWhileItWasWorkedOn) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryGet(), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt) << "never two at once";
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, BringsADelayedKeyWhenItsTimeComes) {
  queue_.AddAfter("late", seconds(5));
  queue_.AddAfter("soon", seconds(2));
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  clock_.Advance(seconds(2));
  EXPECT_EQ(queue_.TryGet(), "soon");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  clock_.Advance(seconds(3));
  EXPECT_EQ(queue_.TryGet(), "late");
}

TEST_F(WorkQueueTest, KeepsTheEarliestOfSeveralTimes) {
  queue_.AddAfter("a", seconds(5));
  queue_.AddAfter("a", seconds(2));
  queue_.AddAfter("a", seconds(9));
  EXPECT_EQ(queue_.NextDue(), clock_.Now() + seconds(2));
  clock_.Advance(seconds(10));
  EXPECT_EQ(queue_.TryGet(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST_F(WorkQueueTest, AddsAtOnceWhatHasNoDelay) {
  queue_.AddAfter("a", seconds(0));
  EXPECT_EQ(queue_.TryGet(), "a");
}

TEST_F(WorkQueueTest, DoublesTheDelayUpToACapUntilForgotten) {
  const auto delay = [&] {
    queue_.AddRateLimited("a");
    const auto due = *queue_.NextDue() - clock_.Now();
    clock_.Advance(due);
    EXPECT_EQ(queue_.TryGet(), "a");
    queue_.Done("a");
    return std::chrono::duration_cast<milliseconds>(due);
  };
  EXPECT_EQ(delay(), milliseconds(10));
  EXPECT_EQ(delay(), milliseconds(20));
  EXPECT_EQ(delay(), milliseconds(40));
  for (int i = 0; i < 100; ++i) delay();
  EXPECT_EQ(delay(), seconds(1));
  EXPECT_EQ(queue_.Requeues("a"), 104);
  queue_.Forget("a");
  EXPECT_EQ(queue_.Requeues("a"), 0);
  EXPECT_EQ(delay(), milliseconds(10));
}

TEST_F(WorkQueueTest, WakesAWaiterForANewKey) {
  std::optional<std::string> key;
  std::jthread waiter([&](std::stop_token stop) { key = queue_.Get(stop); });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  queue_.Add("a");
  waiter.join();
  EXPECT_EQ(key, "a");
}

TEST_F(WorkQueueTest, WakesAWaiterForADelayedKeyThatIsDueEarlier) {
  queue_.AddAfter("late", seconds(60));
  std::optional<std::string> key;
  std::jthread waiter([&](std::stop_token stop) { key = queue_.Get(stop); });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  queue_.AddAfter("soon", seconds(1));
  // The waiter wakes, and sleeps again until the new time.
  while (queue_.TryGet() == std::nullopt && !key) clock_.Advance(milliseconds(500));
  queue_.Add("last");
  waiter.join();
  EXPECT_TRUE(key == "soon" || key == "last");
}

TEST_F(WorkQueueTest, EndsAWaitOnStop) {
  std::jthread waiter([&](std::stop_token stop) { EXPECT_EQ(queue_.Get(stop), std::nullopt); });
  ASSERT_TRUE(clock_.WaitForSleepers(1));
  waiter.request_stop();
}

TEST_F(WorkQueueTest, GivesEveryKeyToExactlyOneOfManyWorkers) {
  constexpr int kKeys = 200;
  std::atomic<int> done = 0, wrong = 0;
  std::array<std::atomic<int>, kKeys> working{};
  {
    std::stop_source stop;
    std::vector<std::jthread> workers;
    for (int w = 0; w < 4; ++w) {
      workers.emplace_back([&] {
        while (const auto key = queue_.Get(stop.get_token())) {
          if (++working[std::size_t(std::stoi(*key))] != 1) ++wrong;
          --working[std::size_t(std::stoi(*key))];
          queue_.Done(*key);
          if (++done == kKeys) stop.request_stop();
        }
      });
    }
    for (int i = 0; i < kKeys; ++i) queue_.Add(std::to_string(i));
  }
  EXPECT_EQ(done, kKeys);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace heddle::kube
