#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "tests/sim/baton.h"

namespace heddle::sim {

class Simulation;

// A process of ours: its threads, its own clocks, and whether it was killed. A killed process has no effect on
// anything any more; its threads run to their ends without taking virtual time.
class Process final : public base::Clock {
 public:
  Process(Simulation& simulation, std::string name);

  const std::string& name() const { return name_; }
  bool dead() const { return dead_; }
  std::stop_token stop() const { return stop_.get_token(); }

  base::WallTime WallNow() override;
  base::MonotonicTime Now() override;
  bool SleepUntil(base::MonotonicTime deadline, std::stop_token stop) override;

  // How far its wall clock is off.
  void SetSkew(std::chrono::microseconds skew) { skew_ = skew; }

 private:
  friend class Simulation;
  Simulation& simulation_;
  const std::string name_;
  std::stop_source stop_;
  std::chrono::microseconds skew_{0};
  base::MonotonicTime frozen_until_{};
  bool dead_ = false;
  int threads_ = 0;  // ever started, for their names
};

// A thread of the code under test. It is a real one, but runs only while it holds the baton.
class Thread {
 public:
  const std::string& name() const { return name_; }
  Process& process() const { return process_; }

 private:
  friend class Simulation;
  enum class State : std::uint8_t { kReady, kRunning, kWaiting, kDone };

  Thread(Process& process, std::string name, int number)
      : process_(process), name_(std::move(name)), number_(number) {}

  Process& process_;
  const std::string name_;
  const int number_;
  State state_ = State::kReady;
  base::MonotonicTime deadline_ = base::MonotonicTime::max();
  std::vector<Thread*> joiners_;
  Baton baton_;
};

// Why a wait ended.
enum class Woke : std::uint8_t { kDeadline, kWoken, kStopped };

// Real threads, one at a time, in virtual time. The code under test starts threads as ever (threads.cc stands in for
// std::thread) and waits in two places, base::Clock and kube::HttpTransport; both end here. Whoever waits gives the
// baton back, and a seed says who gets it next. Time moves only when nobody can run. So the same seed gives the
// same run. Thread rule: the constructor, Run and Kill belong to one thread, which also runs the events; the
// members for threads say so. Nothing here is locked: exactly one thread runs at any moment.
class Simulation {
 public:
  Simulation(std::uint64_t seed, base::MonotonicTime start = base::MonotonicTime{std::chrono::hours(1)});
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  base::MonotonicTime now() const { return now_; }
  base::WallTime wall() const;
  // Called once when a process asks for the time again and again within one turn; it is killed then.
  void OnSpin(std::function<void(const Process& process)> spinning) { spinning_ = std::move(spinning); }
  // A stream of random numbers of its own, so that more draws in one place leave the other places alone.
  base::Random Fork() { return random_.Fork(); }

  // Events run on Run's thread, in the order of their times, then of their making.
  void At(base::MonotonicTime time, std::function<void()> event);
  void After(std::chrono::nanoseconds delay, std::function<void()> event) {
    At(now_ + delay, std::move(event));
  }

  // Starts a process whose first thread runs `main`.
  Process& Start(std::string name, std::chrono::microseconds skew, std::function<void(Process&)> main);
  // As kill -9.
  void Kill(Process& process);
  // As SIGSTOP and, later, SIGCONT: none of its threads runs for so long.
  void Freeze(Process& process, std::chrono::nanoseconds duration);

  // One event, or one turn of one thread. False when nothing is left to do.
  bool Step();
  // Kills what lives and takes every thread to its end.
  void End();
  std::uint64_t steps() const { return steps_; }

  // For the running thread of a process: waits for Wake, the deadline or stop. At once in a killed process.
  Woke Wait(base::MonotonicTime deadline, const std::stop_token& stop);
  // Null on Run's thread.
  Thread* running() const { return running_; }
  void Wake(Thread& thread);

  // For threads.cc.
  Thread& Born(Process& process);
  void SetHandle(Thread& thread, std::thread::native_handle_type handle) { handles_[handle] = &thread; }
  void Begin(Thread& thread);
  void Finish(Thread& thread);
  void Join(std::thread::native_handle_type handle);
  // The simulation whose thread the caller is, null outside of any.
  static Simulation* Current();

  // Lines of what happened: into a hash always, and to `sink` where there is one.
  void Say(const std::string& line);
  void SetSink(std::function<void(const std::string& line)> sink) { sink_ = std::move(sink); }
  std::uint64_t trace_hash() const { return hash_; }
  std::uint64_t trace_lines() const { return lines_; }

 private:
  friend class Process;
  void AskedForTime(Process& process);
  void GiveTurn(Thread& thread);
  bool AdvanceTime();
  void WakeDue();

  base::Random random_;
  base::Random turns_;
  base::MonotonicTime now_;
  const base::MonotonicTime start_;
  std::map<std::pair<base::MonotonicTime, std::uint64_t>, std::function<void()>> events_;
  std::uint64_t events_made_ = 0, steps_ = 0, lines_ = 0, hash_ = 14695981039346656037u;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;   // that are not done
  std::vector<std::unique_ptr<Thread>> finished_;  // whose end somebody may still ask for
  std::vector<std::thread> roots_;
  std::map<std::pair<base::MonotonicTime, int>, Thread*> deadlines_;
  std::map<std::thread::native_handle_type, Thread*> handles_;
  int numbers_ = 0;
  Thread* running_ = nullptr;
  std::uint64_t asked_ = 0;  // for the time, in this turn
  std::function<void(const Process&)> spinning_;
  Baton back_;
  std::function<void(const std::string&)> sink_;
};

}  // namespace heddle::sim
