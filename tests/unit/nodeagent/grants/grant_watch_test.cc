#include "nodeagent/grants/grant_watch.h"

#include <gmock/gmock.h>

#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// Answers what it is told to, and by default that it read nothing.
class Source final : public GrantSource {
 public:
  GrantReadings Read(std::stop_token) override {
    ++questions;
    GrantReadings readings;
    readings.state = GrantsState::kRead;
    if (holds) readings.containers.emplace_back();
    if (!states.empty()) {
      readings.state = states.front();
      states.pop_front();
    }
    return readings;
  }
  std::deque<GrantsState> states;
  bool holds = false;  // the answer has a container
  int questions = 0;
};

class GrantWatchTest : public testing::Test {
 protected:
  // Every answer that is due within so many seconds.
  void Pass(int count) {
    for (int second = 0; second < count; ++second) {
      while (watch_.RunOnce({})) {
      }
      clock_.Advance(seconds(1));
    }
  }

  test::FakeClock clock_;
  Source source_;
  std::vector<GrantsState> told_;
  std::size_t containers_ = 0;  // of the answer that was told last
  GrantWatch watch_{source_, clock_, {seconds(30), seconds(1)}, [this](const GrantReadings& readings) {
                      told_.push_back(readings.state);
                      containers_ = readings.containers.size();
                    }};
};

TEST_F(GrantWatchTest, AsksAtOnceAndThenEveryInterval) {
  Pass(1);
  EXPECT_EQ(source_.questions, 1);
  Pass(29);
  EXPECT_EQ(source_.questions, 1);
  Pass(1);
  EXPECT_EQ(source_.questions, 2);
  Pass(300);
  EXPECT_EQ(source_.questions, 12);
}

TEST_F(GrantWatchTest, AsksOnceSoonAfterItWasWokenHoweverOften) {
  Pass(5);
  for (int i = 0; i < 100; ++i) watch_.Wake();
  EXPECT_FALSE(watch_.RunOnce({}));
  Pass(2);
  EXPECT_EQ(source_.questions, 2);
  Pass(20);
  EXPECT_EQ(source_.questions, 2);
}

TEST_F(GrantWatchTest, PassesOverOneFailureAfterAnAnswer) {
  source_.states = {GrantsState::kRead, GrantsState::kNoSocket, GrantsState::kRead};
  Pass(70);
  EXPECT_THAT(told_, ElementsAre(GrantsState::kRead, GrantsState::kRead));
}

TEST_F(GrantWatchTest, TellsOfAFailureThatLasts) {
  source_.states = {GrantsState::kRead, GrantsState::kNoSocket, GrantsState::kNoSocket,
                    GrantsState::kNoAnswer};
  Pass(100);
  EXPECT_THAT(told_, ElementsAre(GrantsState::kRead, GrantsState::kNoSocket, GrantsState::kNoAnswer));
}

TEST_F(GrantWatchTest, TellsOfAFailureAtTheStartAtOnce) {
  source_.states = {GrantsState::kForbidden};
  Pass(1);
  EXPECT_THAT(told_, ElementsAre(GrantsState::kForbidden));
}

TEST_F(GrantWatchTest, KeepsWhatContainersHoldWhileAKubeletThatHasJustStartedListsNone) {
  source_.holds = true;
  Pass(1);
  ASSERT_EQ(containers_, 1u);
  source_.holds = false;
  Pass(48);  // asked after 30, 35, 40 and 45 s
  EXPECT_EQ(containers_, 1u);
  source_.holds = true;
  Pass(5);
  EXPECT_EQ(told_.size(), 2u);
  EXPECT_EQ(containers_, 1u);
}

TEST_F(GrantWatchTest, BelievesThatContainersAreGoneOnceTheKubeletHasSaidSoForAWhile) {
  source_.holds = true;
  Pass(1);
  source_.holds = false;
  Pass(51);
  EXPECT_EQ(containers_, 0u);
  EXPECT_EQ(told_.size(), 2u);
  const int questions = source_.questions;
  Pass(27);
  EXPECT_EQ(source_.questions, questions) << "nothing is doubted any more";
}

TEST_F(GrantWatchTest, SaysNothingOfAQuestionThatWasBrokenOff) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(watch_.RunOnce(stop.get_token()));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(GrantWatchTest, EndsWhenAsked) {
  std::jthread runner([this](std::stop_token stop) { watch_.Run(std::move(stop)); });
  EXPECT_TRUE(clock_.WaitForSleepers(1));
  runner.request_stop();
  runner.join();
  EXPECT_EQ(source_.questions, 1);
}

}  // namespace
}  // namespace heddle::nodeagent
