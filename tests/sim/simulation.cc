#include "tests/sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace heddle::sim {
namespace {

constexpr base::WallTime kWallStart{std::chrono::seconds(1'800'000'000)};
// In real time: longer than any planning takes on a machine that is loaded to the top.
constexpr std::chrono::seconds kStuck{180};

thread_local Simulation* current = nullptr;

}  // namespace

Process::Process(Simulation& simulation, std::string name)
    : simulation_(simulation), name_(std::move(name)) {}

base::WallTime Process::WallNow() {
  simulation_.AskedForTime(*this);
  return simulation_.wall() + skew_;
}

base::MonotonicTime Process::Now() {
  simulation_.AskedForTime(*this);
  return simulation_.now();
}

bool Process::SleepUntil(base::MonotonicTime deadline, std::stop_token stop) {
  while (!stop.stop_requested() && !dead_ && simulation_.now() < deadline) {
    simulation_.Wait(deadline, stop);
  }
  return !stop.stop_requested() && !dead_;
}

Simulation::Simulation(std::uint64_t seed, base::MonotonicTime start)
    : random_(seed), turns_(random_.Fork()), now_(start), start_(start) {}

Simulation::~Simulation() {
  End();
  for (std::thread& root : roots_) root.join();
}

base::WallTime Simulation::wall() const {
  return kWallStart + std::chrono::duration_cast<std::chrono::microseconds>(now_ - start_);
}

Simulation* Simulation::Current() {
  return current;
}

void Simulation::At(base::MonotonicTime time, std::function<void()> event) {
  events_.emplace(std::pair{std::max(time, now_), events_made_++}, std::move(event));
}

Process& Simulation::Start(std::string name, std::chrono::microseconds skew,
                           std::function<void(Process&)> main) {
  processes_.push_back(std::make_unique<Process>(*this, std::move(name)));
  Process& process = *processes_.back();
  process.SetSkew(skew);
  Say("start " + process.name());
  Thread& root = Born(process);
  roots_.emplace_back([this, &process, &root, main = std::move(main)] {
    Begin(root);
    main(process);
    Finish(root);
  });
  return process;
}

void Simulation::Kill(Process& process) {
  if (process.dead_) return;
  Say("kill " + process.name());
  process.dead_ = true;
  process.frozen_until_ = {};
  process.stop_.request_stop();
  for (const auto& thread : threads_) {
    if (&thread->process_ == &process && thread->state_ == Thread::State::kWaiting) Wake(*thread);
  }
}

void Simulation::Freeze(Process& process, std::chrono::nanoseconds duration) {
  if (process.dead_) return;
  Say(fmt::format("freeze {} for {} ms", process.name(),
                  std::chrono::duration_cast<std::chrono::milliseconds>(duration).count()));
  process.frozen_until_ = now_ + duration;
  At(process.frozen_until_, [] {});  // so that time stops there
}

bool Simulation::Step() {
  ++steps_;
  if (!events_.empty() && events_.begin()->first.first <= now_) {
    const auto event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    event();
    return true;
  }
  std::vector<Thread*> ready;
  for (const auto& thread : threads_) {
    if (thread->state_ == Thread::State::kReady && thread->process_.frozen_until_ <= now_)
      ready.push_back(thread.get());
  }
  if (ready.empty()) return AdvanceTime();
  GiveTurn(*ready[std::size_t(turns_.Below(ready.size()))]);
  return true;
}

bool Simulation::AdvanceTime() {
  base::MonotonicTime next = base::MonotonicTime::max();
  if (!events_.empty()) next = events_.begin()->first.first;
  if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first.first);
  if (next == base::MonotonicTime::max()) return false;
  now_ = std::max(now_, next);
  WakeDue();
  return true;
}

void Simulation::WakeDue() {
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now_) Wake(*deadlines_.begin()->second);
}

// Code that loops without a wait cannot be seen from outside, but hardly any loop lives without a clock.
void Simulation::AskedForTime(Process& process) {
  constexpr std::uint64_t kMost = 20'000;
  if (running_ == nullptr || ++asked_ != kMost || process.dead_) return;
  if (spinning_) spinning_(process);
  Kill(process);
}

void Simulation::GiveTurn(Thread& thread) {
  asked_ = 0;
  thread.state_ = Thread::State::kRunning;
  running_ = &thread;
  thread.baton_.Give();
  if (!back_.TakeWithin(kStuck)) {
    std::fprintf(stderr, "sim: %s has run for %lld s without a wait that the simulation can see\n",
                 thread.name_.c_str(), static_cast<long long>(kStuck.count()));
    std::abort();
  }
  running_ = nullptr;
  if (thread.state_ != Thread::State::kDone) return;
  const auto done = std::find_if(threads_.begin(), threads_.end(),
                                 [&thread](const auto& one) { return one.get() == &thread; });
  finished_.push_back(std::move(*done));
  threads_.erase(done);
}

void Simulation::End() {
  events_.clear();
  for (const auto& process : processes_) Kill(*process);
  while (!threads_.empty()) {
    Step();
    events_.clear();
  }
}

Woke Simulation::Wait(base::MonotonicTime deadline, const std::stop_token& stop) {
  Thread& self = *running_;
  if (self.process_.dead_ || stop.stop_requested()) return Woke::kStopped;
  if (deadline <= now_) return Woke::kDeadline;
  self.state_ = Thread::State::kWaiting;
  self.deadline_ = deadline;
  if (deadline != base::MonotonicTime::max()) deadlines_.emplace(std::pair{deadline, self.number_}, &self);
  {
    const std::stop_callback on_stop(stop, [this, &self] { Wake(self); });
    back_.Give();
    self.baton_.Take();
  }
  if (self.process_.dead_ || stop.stop_requested()) return Woke::kStopped;
  return now_ >= deadline ? Woke::kDeadline : Woke::kWoken;
}

void Simulation::Wake(Thread& thread) {
  if (thread.state_ != Thread::State::kWaiting) return;
  thread.state_ = Thread::State::kReady;
  deadlines_.erase({thread.deadline_, thread.number_});
}

Thread& Simulation::Born(Process& process) {
  threads_.push_back(std::unique_ptr<Thread>(
      new Thread(process, fmt::format("{}#{}", process.name_, process.threads_++), numbers_++)));
  return *threads_.back();
}

void Simulation::Begin(Thread& thread) {
  thread.baton_.Take();
  current = this;
}

void Simulation::Finish(Thread& thread) {
  current = nullptr;
  thread.state_ = Thread::State::kDone;
  for (Thread* joiner : thread.joiners_) Wake(*joiner);
  back_.Give();
}

void Simulation::Join(std::thread::native_handle_type handle) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return;
  Thread& thread = *found->second;
  handles_.erase(found);
  Thread& self = *running_;
  while (thread.state_ != Thread::State::kDone) {
    // Not Wait: a killed process's threads wait for each other's ends, too.
    thread.joiners_.push_back(&self);
    self.state_ = Thread::State::kWaiting;
    self.deadline_ = base::MonotonicTime::max();
    back_.Give();
    self.baton_.Take();
  }
}

void Simulation::Say(const std::string& line) {
  const std::string stamped =
      fmt::format("{:10.6f} {}", std::chrono::duration<double>(now_ - start_).count(), line);
  for (const char c : stamped) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
  ++lines_;
  if (sink_) sink_(stamped);
}

}  // namespace heddle::sim
