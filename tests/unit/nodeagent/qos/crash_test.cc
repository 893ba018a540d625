// A kill -9 at every moment: before and after each write, each note in the journal and each word to the gate.
#include <gmock/gmock.h>

#include "qos_bed.h"

namespace heddle::nodeagent {
namespace {

using crds::LosslessState;
using std::chrono::minutes;
using std::chrono::seconds;

struct Outcome {
  int points = 0;  // moments that a run without a crash passed
  bool killed = false;
};

// Runs agents one after the other: the first is killed at `kill_at` (-1: never), the last comes to an end.
Outcome RunWithCrash(QosBed& bed, test::CrashPoints& crash, int kill_at) {
  crash.KillAt(kill_at);
  Outcome outcome;
  bool written = false;
  bed.io.before_write = [&](const QosPort& port, auto) {
    written = true;
    EXPECT_TRUE(bed.gate->Withdrawn(port.name)) << "killed at " << kill_at;
    EXPECT_TRUE(bed.journal.records.at(port.name).unsettled) << "killed at " << kill_at;
  };
  try {
    bed.Start();
    bed.RunFor(minutes(10));
  } catch (const test::Killed&) {
    outcome.killed = true;
    crash.Never();
    bed.Start(false);
    try {
      // Before anything of the cluster is known.
      bed.loop->RunOnce();
    } catch (const test::Killed&) {
      ADD_FAILURE() << "killed twice";
    }
    const auto record = bed.journal.records.find("mlx5_0:1");
    if (record != bed.journal.records.end() && record->second.unsettled) {
      EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1")) << "killed at " << kill_at;
    }
    bed.loop->Have(bed.Machine());
    bed.loop->Want(bed.wishes);
    bed.RunFor(minutes(10));
  }
  outcome.points = crash.passed();
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1")) << "killed at " << kill_at;
  EXPECT_FALSE(bed.journal.records.at("mlx5_0:1").unsettled) << "killed at " << kill_at;
  return outcome;
}

TEST(QosCrash, AtEveryPointOfAnApplyTheNextAgentFinishesIt) {
  const int points = [] {
    test::CrashPoints crash;
    QosBed bed({"mlx5_0:1"}, &crash);
    return RunWithCrash(bed, crash, -1).points;
  }();
  ASSERT_GE(points, 2 * 9 + 8);  // nine settings, two notes at least, closing and opening
  int finished = 0;
  for (int point = 0; point < points; ++point) {
    SCOPED_TRACE(point);
    test::CrashPoints crash;
    QosBed bed({"mlx5_0:1"}, &crash);
    ASSERT_TRUE(RunWithCrash(bed, crash, point).killed);
    EXPECT_EQ(bed.State(), LosslessState::kCompliant);
    EXPECT_EQ(bed.io["mlx5_0:1"].have, AsWanted());
    // What stands is not written again: the crash adds one write of the rest at most.
    EXPECT_LE(bed.io.writes.size(), 2u);
    for (const QosEvent& event : bed.events)
      finished += event.note.find("begun before the agent restarted") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(finished, 2 * 9);  // and says so
}

TEST(QosCrash, AtEveryPointOfARollbackTheNextAgentTakesItAllBack) {
  const auto spoil = [](QosBed& bed) {
    bed.io["mlx5_0:1"].faults[lossless::Setting::kMtu] = {base::Code::kInvalid, "no", -1};
  };
  const int points = [&spoil] {
    test::CrashPoints crash;
    QosBed bed({"mlx5_0:1"}, &crash);
    spoil(bed);
    return RunWithCrash(bed, crash, -1).points;
  }();
  for (int point = 0; point < points; ++point) {
    SCOPED_TRACE(point);
    test::CrashPoints crash;
    QosBed bed({"mlx5_0:1"}, &crash);
    spoil(bed);
    ASSERT_TRUE(RunWithCrash(bed, crash, point).killed);
    EXPECT_EQ(bed.State(), LosslessState::kFailed);
    EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
    EXPECT_THAT(bed.Report().reason, testing::HasSubstr("what was there before is set again"));
  }
}

TEST(QosCrash, AnAgentThatDiesOfTheWriteDoesNotTryForEver) {
  test::CrashPoints crash;
  QosBed bed({"mlx5_0:1"}, &crash);
  int deaths = 0;
  bed.io["mlx5_0:1"].on_write = [](auto& port) {
    if (!port.have.pfc->empty()) {
      port.have.mtu = 1500;  // never all of it
      throw test::Killed();
    }
  };
  for (int agent = 0; agent < 10; ++agent) {
    try {
      bed.Start();
      bed.RunFor(minutes(10));
      break;
    } catch (const test::Killed&) {
      ++deaths;
    }
  }
  EXPECT_EQ(deaths, kMaxStarts);
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, testing::HasSubstr("the agent was stopped 3 times"));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
}

TEST(QosCrash, AMachineThatDiesOfTheWriteIsNotWrittenForEver) {
  test::CrashPoints crash;
  QosBed bed({"mlx5_0:1"}, &crash);
  int deaths = 0;
  bed.io["mlx5_0:1"].on_write = [](auto&) { throw test::Killed(); };
  for (int boot = 0; boot < 10; ++boot) {
    try {
      bed.io["mlx5_0:1"].have = Fresh();
      bed.options.boot = "boot-" + std::to_string(boot);
      bed.Start();
      bed.RunFor(minutes(10));
      break;
    } catch (const test::Killed&) {
      ++deaths;
    }
  }
  EXPECT_EQ(deaths, kMaxCrashes);
  EXPECT_EQ(bed.State(), LosslessState::kFailed);
  EXPECT_THAT(bed.Report().reason, testing::HasSubstr("the machine was restarted 2 times"));
}

TEST(QosCrash, WhatWasBegunIsFinishedWithoutAnApiServer) {
  test::CrashPoints crash;
  QosBed bed({"mlx5_0:1"}, &crash);
  int writes = 0;
  bed.io["mlx5_0:1"].on_write = [&writes](auto& port) {
    if (++writes > 1) return;
    port.have.mtu = 1500;
    throw test::Killed();
  };
  EXPECT_THROW(
      {
        bed.Start();
        bed.RunFor(minutes(10));
      },
      test::Killed);
  bed.Start(false);
  bed.RunFor(minutes(1));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, AsWanted());
  EXPECT_FALSE(bed.journal.records.at("mlx5_0:1").unsettled);
  EXPECT_FALSE(bed.readings.reports) << "nothing is published over what stands there until the spec is known";
}

TEST(QosCrash, WhatNobodyWantsAnyMoreIsNotFinishedFirst) {
  test::CrashPoints crash;
  QosBed bed({"mlx5_0:1"}, &crash);
  bed.io["mlx5_0:1"].on_write = [killed = false](auto& port) mutable {
    if (std::exchange(killed, true)) return;
    port.have.mtu = 1500;
    throw test::Killed();
  };
  EXPECT_THROW(
      {
        bed.Start();
        bed.RunFor(minutes(10));
      },
      test::Killed);
  bed.io.writes.clear();
  bed.Start(false);
  bed.loop->Have(bed.Machine());
  bed.RunFor(seconds(10));
  EXPECT_TRUE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_TRUE(bed.io.writes.empty()) << "the API server has not answered yet";
  bed.io.before_write = [&bed](const QosPort&, auto) { EXPECT_EQ(bed.io["mlx5_0:1"].have.mtu, 1500); };
  bed.loop->Want({});
  bed.RunFor(minutes(1));
  EXPECT_EQ(bed.io["mlx5_0:1"].have, Fresh());
  EXPECT_FALSE(bed.gate->Withdrawn("mlx5_0:1"));
  EXPECT_THAT(bed.Reasons(), testing::ElementsAre(kLosslessRolledBack));
}

}  // namespace
}  // namespace heddle::nodeagent
