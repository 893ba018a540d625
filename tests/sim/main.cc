#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/sim/crew.h"
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
  int jobs = 0;
  bool trace = false, twice = false, go_on = false;
};

bool ReadRange(const Flags& flags, sim::SeedRange& range) {
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

// One life, or two that have to be the same.
sim::Outcome Live(const Flags& flags, std::uint64_t seed) {
  sim::RunOptions options{.seed = seed, .most_steps = flags.steps};
  if (flags.trace) options.trace = [](const std::string& line) { std::printf("%s\n", line.c_str()); };
  sim::Outcome outcome = sim::RunSeed(options);
  if (!flags.twice) return outcome;
  const sim::Outcome again = sim::RunSeed(options);
  if (again.trace_hash != outcome.trace_hash) {
    outcome.violations.push_back(
        {"SameTwice",
         fmt::format("it ran differently the second time: trace {:016x}, then {:016x}", outcome.trace_hash,
                     again.trace_hash),
         {}});
  }
  return outcome;
}

// A trace is for one reader, and a process more than cores only waits.
int JobsOf(const Flags& flags) {
  if (flags.trace) return 1;
  return flags.jobs > 0 ? flags.jobs : std::max(1, int(std::thread::hardware_concurrency()));
}

int Run(const Flags& flags, const sim::SeedRange& range, const std::string& program) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string again =
      program + (flags.steps == 0 ? "" : fmt::format(" --steps {}", flags.steps)) + " --trace";
  const sim::Tally tally = sim::RunSeeds(range, {.jobs = JobsOf(flags), .go_on = flags.go_on, .again = again},
                                         [&flags](std::uint64_t seed) { return Live(flags, seed); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(
      "{} seeds, {} broken: {:.1f} hours of a cluster in {:.1f} s ({:.0f} seeds a minute by {} processes), "
      "{} "
      "Jobs, {} requests, {} restarts\n",
      tally.seeds, tally.broken, double(tally.virtual_seconds) / 3600, seconds,
      60 * double(tally.seeds) / seconds, JobsOf(flags), tally.jobs, tally.requests, tally.restarts);
  return tally.broken == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout, "heddle_sim");
  app.footer(kExamples);
  app.add_option("--seed", flags.seed, "One seed");
  app.add_option("--seeds", flags.seeds, "FIRST..LAST")->capture_default_str();
  app.add_option("--jobs", flags.jobs, "Processes that share the seeds (0: as many as cores)");
  app.add_option("--steps", flags.steps, "End each run after so many steps (0: at its end)");
  app.add_flag("--trace", flags.trace, "Print what happens, line by line, with the virtual time in seconds");
  app.add_flag("--twice", flags.twice, "Run each seed twice and compare the traces");
  app.add_flag("--go-on", flags.go_on, "Go on after a seed that broke a promise");
  CLI11_PARSE(app, argc, argv);
  sim::SeedRange range;
  if (!ReadRange(flags, range)) {
    fmt::print(stderr, "--seeds {}: write it as FIRST..LAST, for example 1..300\n", flags.seeds);
    return 2;
  }
  return Run(flags, range, argv[0]);
}
