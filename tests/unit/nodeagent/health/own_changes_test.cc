// A link that the agent itself takes down, by setting the port, does not flap.
#include <gmock/gmock.h>

#include "nodeagent/health/link_health.h"

namespace heddle::nodeagent {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::LinkState;

class OwnChanges : public testing::Test {
 protected:
  OwnChanges() {
    reading_.port.key = "0000:1b:00.0 0x1/1";
    reading_.port.nic = "mlx5_3";
    reading_.state = LinkState::kActive;
    Count(100, 50);
    Look();
  }
  void Count(std::uint64_t carrier_changes, std::uint64_t link_downed) {
    reading_.samples = {{{Counter::kLinkDowned, -1}, link_downed, Width{32, false}},
                        {{Counter::kCarrierChanges, -1}, carrier_changes, Width{64, false}}};
    std::sort(reading_.samples.begin(), reading_.samples.end(),
              [](const CounterSample& a, const CounterSample& b) { return a.id < b.id; });
  }
  std::vector<HealthChange> Look(seconds after = seconds(5)) {
    now_ += after;
    return health_.Look({{reading_}}, now_,
                        wall_ + std::chrono::duration_cast<std::chrono::microseconds>(now_ - start_));
  }
  const PortHealth& Health() const { return health_.ports().front(); }

  LinkHealth health_;
  PortReading reading_;
  const base::MonotonicTime start_{std::chrono::hours(1)};
  const base::WallTime wall_{seconds(1'800'000'000)};
  base::MonotonicTime now_ = start_;
};

TEST_F(OwnChanges, WithinTheTimeOfTheWriteAreNamedAndDoNotCount) {
  health_.Expect({"mlx5_3:1", now_, now_ + seconds(70), 8});
  Count(102, 51);
  EXPECT_THAT(Look(), IsEmpty());
  Count(104, 52);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(Health().verdict, Verdict::kHealthy);
  EXPECT_EQ(Health().own, "4 link changes by setting its lossless settings are not counted");
  // What it counted is still what it counted.
  EXPECT_EQ(Health().totals.at({Counter::kCarrierChanges, -1}), 4u);
}

TEST_F(OwnChanges, WithoutAWriteAreAFlap) {
  Count(104, 52);
  EXPECT_THAT(Look(), testing::SizeIs(1));
  EXPECT_EQ(Health().verdict, Verdict::kFlapping);
  EXPECT_EQ(Health().own, "");
}

TEST_F(OwnChanges, BeyondWhatAWriteMayDoCount) {
  health_.Expect({"mlx5_3:1", now_, now_ + seconds(70), 8});
  Count(108, 54);
  Look();
  EXPECT_EQ(Health().verdict, Verdict::kHealthy);
  Count(111, 54);
  Look();
  EXPECT_EQ(Health().verdict, Verdict::kFlapping);
  EXPECT_THAT(Health().evidence, HasSubstr("3 link changes in 10 min"));
}

TEST_F(OwnChanges, AfterTheTimeOfTheWriteCount) {
  health_.Expect({"mlx5_3:1", now_, now_ + seconds(70), 8});
  Count(102, 51);
  Look();
  Look(seconds(75));
  Count(104, 53);
  Look();
  EXPECT_EQ(Health().verdict, Verdict::kFlapping);
}

// The last look may be some seconds old when the port is given back: what came since is told from the write's by number.
TEST_F(OwnChanges, AreAsManyAsTheWriteIsKnownToHaveMade) {
  OwnLinkChanges own{"mlx5_3:1", now_, now_ + seconds(70), 8};
  health_.Expect(own);
  own.until = now_ + seconds(4);
  own.most = 2;
  health_.Expect(own);
  Count(105, 51);
  Look();
  EXPECT_EQ(Health().verdict, Verdict::kFlapping);
  EXPECT_THAT(Health().evidence, HasSubstr("3 link changes"));
}

TEST_F(OwnChanges, OfAnotherPortExcuseNothing) {
  health_.Expect({"mlx5_30:1", now_, now_ + seconds(70), 8});
  health_.Expect({"mlx5_3:2", now_, now_ + seconds(70), 8});
  Count(104, 52);
  Look();
  EXPECT_EQ(Health().verdict, Verdict::kFlapping);
}

TEST_F(OwnChanges, OfANewWriteHaveTheirOwnNumber) {
  health_.Expect({"mlx5_3:1", now_, now_ + seconds(10), 2});
  Count(102, 51);
  Look();
  Look(minutes(2));
  health_.Expect({"mlx5_3:1", now_, now_ + seconds(10), 2});
  Count(104, 52);
  Look();
  EXPECT_EQ(Health().verdict, Verdict::kHealthy);
  EXPECT_EQ(Health().own, "2 link changes by setting its lossless settings are not counted");
  Look(minutes(61));
  Look(minutes(1));
  EXPECT_EQ(Health().own, "");
}

TEST_F(OwnChanges, SayWhyThePortIsDownMeanwhile) {
  health_.Expect({"mlx5_3:1", now_, now_ + seconds(70), 8});
  Count(101, 51);
  reading_.state = LinkState::kDown;
  const auto changes = Look();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].what, "Down: its lossless settings are being set");
}

}  // namespace
}  // namespace heddle::nodeagent
