#include "nodeagent/grant_watch.h"

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
    if (!states.empty()) {
      readings.state = states.front();
      states.pop_front();
    }
    return readings;
  }
  std::deque<GrantsState> states;
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
  GrantWatch watch_{source_, clock_, {seconds(30), seconds(1)}, [this](const GrantReadings& readings) {
                      told_.push_back(readings.state);
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
