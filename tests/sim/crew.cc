#include "tests/sim/crew.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "base/check.h"

namespace heddle::sim {
namespace {

constexpr int kMostJobs = 256;

// What the processes of a crew share.
struct Board {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> over{false};  // no further seed is begun
  std::atomic<std::uint64_t> seeds{0}, broken{0}, jobs{0}, requests{0}, restarts{0}, virtual_seconds{0};
  std::array<std::atomic<std::uint64_t>, kMostJobs> under_way{};  // the seed of each process; 0 = none
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "or it is not shared among processes");

Board* shared_board = nullptr;  // of the crew that runs, for SayWhichSeed
int own_place = 0;

// A CHECK or an assertion of the code under test: say of which seed before it ends us. The handler returns, and abort
// goes on.
void SayWhichSeed(int) {
  const std::uint64_t seed = shared_board->under_way[std::size_t(own_place)].load();
  std::array<char, 120> line{};
  const int length =
      std::snprintf(line.data(), line.size(), "the process ended itself in seed %llu: --seed %llu --trace\n",
                    static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
  if (length > 0) (void)!write(STDERR_FILENO, line.data(), std::size_t(length));
}

class Crew {
 public:
  Crew(const SeedRange& range, const CrewOptions& options,
       const std::function<Outcome(std::uint64_t seed)>& live)
      : range_(range), options_(options), live_(live) {
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    board_ = new (memory) Board;
    board_->next = range.first;
    shared_board = board_;
  }
  ~Crew() {
    shared_board = nullptr;
    munmap(board_, sizeof(Board));
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  Tally Run() {
    const std::uint64_t seeds = range_.last - range_.first + 1;
    const int jobs =
        int(std::min<std::uint64_t>(std::uint64_t(std::clamp(options_.jobs, 1, kMostJobs)), seeds));
    if (jobs == 1) {
      own_place = 0;
      const auto before = std::signal(SIGABRT, SayWhichSeed);
      Work();
      (void)std::signal(SIGABRT, before);
    } else {
      for (int place = 0; place < jobs; ++place) Hire(place);
      while (!hands_.empty()) Await();
    }
    return {.seeds = board_->seeds,
            .broken = board_->broken,
            .jobs = board_->jobs,
            .requests = board_->requests,
            .restarts = board_->restarts,
            .virtual_seconds = board_->virtual_seconds};
  }

 private:
  void Hire(int place) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) {
      hands_.emplace(pid, place);
      return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    own_place = place;
    Work();
    std::fflush(nullptr);
    _exit(0);
  }

  void Await() {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    const auto hand = hands_.find(pid);
    if (hand == hands_.end()) return;
    const int place = hand->second;
    hands_.erase(hand);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const std::uint64_t seed = board_->under_way[std::size_t(place)].exchange(0);
    const std::string how =
        WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : fmt::format("exit code {}", WEXITSTATUS(status));
    ++board_->seeds;
    ++board_->broken;
    Say(fmt::format("seed {} ended its process: {}\n{}", seed, how, Again(seed)));
    if (!options_.go_on) board_->over = true;
    if (!board_->over && board_->next <= range_.last) Hire(place);
  }

  // One process's share: seed by seed until there are none.
  void Work() {
    std::atomic<std::uint64_t>& mine = board_->under_way[std::size_t(own_place)];
    while (!board_->over) {
      const std::uint64_t seed = board_->next++;
      if (seed > range_.last) return;
      mine = seed;
      const Outcome outcome = live_(seed);
      Count(outcome);
      mine = 0;
    }
  }

  void Count(const Outcome& outcome) {
    ++board_->seeds;
    board_->jobs += std::uint64_t(outcome.jobs);
    board_->requests += outcome.requests;
    board_->restarts += std::uint64_t(outcome.kills);
    board_->virtual_seconds += std::uint64_t(outcome.virtual_time.count());
    if (outcome.violations.empty()) return;
    ++board_->broken;
    if (!options_.go_on) board_->over = true;
    const Violation& first = outcome.violations.front();
    const auto at =
        std::chrono::duration<double>(first.at.time_since_epoch() - std::chrono::hours(1)).count();
    std::string text =
        fmt::format("seed {} broke {} after {:.1f} s: {}\n", outcome.seed, first.rule, at, first.what);
    for (std::size_t i = 1; i < outcome.violations.size() && i < 4; ++i) {
      text += fmt::format("  and {}: {}\n", outcome.violations[i].rule, outcome.violations[i].what);
    }
    Say(text + Again(outcome.seed));
  }

  std::string Again(std::uint64_t seed) const {
    return fmt::format("  see it again: {} --seed {}\n", options_.again, seed);
  }

  // One write, so that two processes do not talk at once.
  static void Say(const std::string& text) {
    std::fflush(stdout);
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = write(STDOUT_FILENO, text.data() + done, text.size() - done);
      if (count <= 0) return;
      done += std::size_t(count);
    }
  }

  const SeedRange range_;
  const CrewOptions options_;
  const std::function<Outcome(std::uint64_t seed)>& live_;
  Board* board_ = nullptr;
  std::map<pid_t, int> hands_;  // processes, and their places on the board
};

}  // namespace

Tally RunSeeds(const SeedRange& range, const CrewOptions& options,
               const std::function<Outcome(std::uint64_t seed)>& live) {
  return Crew(range, options, live).Run();
}

}  // namespace heddle::sim
