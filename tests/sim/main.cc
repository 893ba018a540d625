#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "tests/sim/run.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

constexpr const char* kAbout =
    "Runs the real extenders against a simulated cluster in virtual time. A seed decides what people do, "
    "what breaks,\n"
    "which request is lost and which thread runs next; the same seed gives the same run. Exits with 1 when a "
    "promise\n"
    "was broken and says which, of what, and how to see it again.";
constexpr const char* kExamples =
    "\nExamples:\n"
    "  heddle_sim                       seeds 1 to 300\n"
    "  heddle_sim --seeds 1..10000      as many as you like\n"
    "  heddle_sim --seed 17 --trace     one of them, with every request and every decision\n"
    "  heddle_sim --seed 17 --twice     does it really run the same way twice?\n";

struct Flags {
  std::uint64_t seed = 0, steps = 0;
  std::string seeds = "1..300";
  bool trace = false, twice = false, go_on = false;
};

std::atomic<std::uint64_t> seed_under_way{0};

// A CHECK or an assertion of the code under test: say of which seed before it ends us.
void SayWhichSeed(int) {
  std::array<char, 120> line{};
  const int length =
      std::snprintf(line.data(), line.size(), "the process ended itself in seed %llu: --seed %llu --trace\n",
                    static_cast<unsigned long long>(seed_under_way.load()),
                    static_cast<unsigned long long>(seed_under_way.load()));
  if (length > 0) (void)!write(STDERR_FILENO, line.data(), std::size_t(length));
}

struct Range {
  std::uint64_t first = 1, last = 1;
};

bool ReadRange(const Flags& flags, Range& range) {
  if (flags.seed != 0) {
    range = {flags.seed, flags.seed};
    return true;
  }
  const std::size_t dots = flags.seeds.find("..");
  if (dots == std::string::npos) return false;
  try {
    range = {std::stoull(flags.seeds.substr(0, dots)), std::stoull(flags.seeds.substr(dots + 2))};
  } catch (const std::exception&) {
    return false;
  }
  return range.first <= range.last;
}

void Tell(const sim::Outcome& outcome, const std::string& program, std::uint64_t steps) {
  const sim::Violation& first = outcome.violations.front();
  const auto at = std::chrono::duration<double>(first.at.time_since_epoch() - std::chrono::hours(1)).count();
  fmt::print("seed {} broke {} after {:.1f} s: {}\n", outcome.seed, first.rule, at, first.what);
  for (std::size_t i = 1; i < outcome.violations.size() && i < 4; ++i) {
    fmt::print("  and {}: {}\n", outcome.violations[i].rule, outcome.violations[i].what);
  }
  fmt::print("  see it again: {} --seed {}{} --trace\n", program, outcome.seed,
             steps == 0 ? "" : fmt::format(" --steps {}", steps));
  std::fflush(stdout);
}

int Run(const Flags& flags, const Range& range, const std::string& program) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t runs = 0, broken = 0, requests = 0, jobs = 0, kills = 0;
  double hours = 0;
  for (std::uint64_t seed = range.first; seed <= range.last; ++seed) {
    seed_under_way = seed;
    sim::RunOptions options{.seed = seed, .most_steps = flags.steps};
    if (flags.trace) options.trace = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
    const sim::Outcome outcome = sim::RunSeed(options);
    if (flags.twice) {
      const sim::Outcome again = sim::RunSeed(options);
      if (again.trace_hash != outcome.trace_hash) {
        fmt::print("seed {} ran differently the second time: trace {:016x}, then {:016x}\n", seed,
                   outcome.trace_hash, again.trace_hash);
        return 1;
      }
    }
    ++runs;
    requests += outcome.requests;
    jobs += std::uint64_t(outcome.jobs);
    kills += std::uint64_t(outcome.kills);
    hours += double(outcome.virtual_time.count()) / 3600;
    if (outcome.violations.empty()) continue;
    ++broken;
    Tell(outcome, program, flags.steps);
    if (!flags.go_on) break;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(
      "{} seeds, {} broken: {:.1f} hours of a cluster in {:.1f} s, {} Jobs, {} requests, {} restarts\n", runs,
      broken, hours, seconds, jobs, requests, kills);
  return broken == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout, "heddle_sim");
  app.footer(kExamples);
  app.add_option("--seed", flags.seed, "One seed");
  app.add_option("--seeds", flags.seeds, "FIRST..LAST")->capture_default_str();
  app.add_option("--steps", flags.steps, "End each run after so many steps (0: at its end)");
  app.add_flag("--trace", flags.trace, "Print what happens, line by line, with the virtual time in seconds");
  app.add_flag("--twice", flags.twice, "Run each seed twice and compare the traces");
  app.add_flag("--go-on", flags.go_on, "Go on after a seed that broke a promise");
  CLI11_PARSE(app, argc, argv);
  Range range;
  if (!ReadRange(flags, range)) {
    fmt::print(stderr, "--seeds {}: write it as FIRST..LAST, for example 1..300\n", flags.seeds);
    return 2;
  }
  // The handler returns, and abort goes on.
  (void)std::signal(SIGABRT, SayWhichSeed);
  return Run(flags, range, argv[0]);
}
