#include "tests/sim/simulation.h"

#include <gtest/gtest.h>

#include <thread>

#include "kube/work_queue.h"

namespace heddle::sim {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Three threads that sleep and say so, the one a child of the other.
void Talk(Simulation& simulation, Process& process) {
  const auto talk = [&](const std::string& who, milliseconds pace) {
    for (int i = 0; i < 5; ++i) {
      process.SleepFor(pace, process.stop());
      simulation.Say(who + " " + std::to_string(i));
    }
  };
  const std::jthread first([&] {
    const std::jthread grandchild([&] { talk("grandchild", milliseconds(3)); });
    talk("first", milliseconds(3));
  });
  talk("root", milliseconds(3));
}

std::vector<std::string> TraceOf(std::uint64_t seed) {
  std::vector<std::string> trace;
  Simulation simulation(seed);
  simulation.SetSink([&](const std::string& line) { trace.push_back(line); });
  simulation.Start("a", {}, [&](Process& process) { Talk(simulation, process); });
  simulation.Start("b", {}, [&](Process& process) { Talk(simulation, process); });
  while (simulation.Step()) {
  }
  return trace;
}

TEST(Simulation, GivesTheSameRunForTheSameSeedAndAnotherForAnother) {
  const auto trace = TraceOf(1);
  EXPECT_EQ(trace.size(), 2 + 2 * 3 * 5 + 2u);  // two starts, what they say, two ends
  EXPECT_EQ(TraceOf(1), trace);
  EXPECT_NE(TraceOf(2), trace);
}

TEST(Simulation, MovesTimeOnlyWhenNobodyCanRun) {
  Simulation simulation(1);
  std::vector<base::MonotonicTime> seen;
  simulation.Start("a", {}, [&](Process& process) {
    seen.push_back(process.Now());
    EXPECT_TRUE(process.SleepFor(hours(1000), process.stop()));
    seen.push_back(process.Now());
  });
  const base::MonotonicTime start = simulation.now();
  while (simulation.Step()) {
  }
  EXPECT_EQ(seen, (std::vector{start, start + hours(1000)}));
}

TEST(Simulation, AKilledProcessEndsAndWaitsForNothing) {
  Simulation simulation(1);
  bool slept = true, ended = false;
  Process& process = simulation.Start("a", {}, [&](Process& self) {
    const std::jthread child([&] { slept = self.SleepFor(hours(1), std::stop_token{}); });
    self.SleepFor(hours(2), std::stop_token{});
    ended = true;
  });
  simulation.After(seconds(1), [&] { simulation.Kill(process); });
  const base::MonotonicTime start = simulation.now();
  while (simulation.Step()) {
  }
  EXPECT_FALSE(slept);
  EXPECT_TRUE(ended);
  EXPECT_EQ(simulation.now(), start + seconds(1));
}

TEST(Simulation, AFrozenProcessGoesOnLater) {
  Simulation simulation(1);
  base::MonotonicTime woke{};
  Process& process = simulation.Start("a", {}, [&](Process& self) {
    self.SleepFor(seconds(2), self.stop());
    woke = self.Now();
  });
  const base::MonotonicTime start = simulation.now();
  simulation.After(seconds(1), [&] { simulation.Freeze(process, seconds(10)); });
  while (simulation.Step()) {
  }
  EXPECT_EQ(woke, start + seconds(11));
}

TEST(Simulation, OwnsTheWaitsOfAWorkQueue) {
  Simulation simulation(1);
  std::vector<std::string> got;
  Process& process = simulation.Start("a", {}, [&](Process& self) {
    kube::WorkQueue queue(self);
    const std::jthread worker([&] {
      while (const auto key = queue.Get(self.stop())) {
        got.push_back(*key);
        queue.Done(*key);
      }
    });
    queue.AddAfter("late", seconds(5));
    queue.Add("now");
    self.SleepFor(seconds(60), self.stop());
  });
  simulation.After(seconds(30), [&] { simulation.Kill(process); });
  while (simulation.Step()) {
  }
  EXPECT_EQ(got, (std::vector<std::string>{"now", "late"}));
}

TEST(Simulation, AProcessMayHaveAnotherIdeaOfTheWallClock) {
  Simulation simulation(1);
  base::WallTime seen{};
  const base::WallTime truth = simulation.wall();
  simulation.Start("a", seconds(7), [&](Process& self) { seen = self.WallNow(); });
  while (simulation.Step()) {
  }
  EXPECT_EQ(seen, truth + seconds(7));
}

}  // namespace
}  // namespace heddle::sim
