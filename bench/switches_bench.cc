// What the operator does with each look at a switch: 500 of 64 ports, every ten seconds, are fifty a second.
// build/release/bin/switches_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "switches/counter_window.h"

namespace heddle::switches {
namespace {

using crds::Json;

constexpr int kPorts = 64;

std::map<Steps, std::string> Answers(int value) {
  std::map<Steps, Json> answers;
  for (const Steps& steps : SonicCounterPaths({3, 4})) {
    Json& table = answers[steps] = Json::object();
    for (int port = 1; port <= kPorts; ++port)
      table[fmt::format("etp{}", port)] = {{steps[2], std::to_string(value)}};
  }
  Json& ports = answers[{"PORT_TABLE"}] = Json::object();
  for (int port = 1; port <= kPorts; ++port) {
    ports[fmt::format("Ethernet{}", 8 * (port - 1))] = {{"alias", fmt::format("etp{}", port)},
                                                        {"oper_status", "up"},
                                                        {"flap_count", "1"},
                                                        {"speed", "400000"}};
  }
  std::map<Steps, std::string> texts;
  for (const auto& [steps, answer] : answers) texts[steps] = answer.dump();
  return texts;
}

void Read(benchmark::State& bench) {
  const std::map<Steps, std::string> answers = Answers(12'345);
  for (auto _ : bench) benchmark::DoNotOptimize(ReadSonicCounters(answers, {}, base::MonotonicTime()));
}
BENCHMARK(Read)->Unit(benchmark::kMicrosecond);

// `moving`: what every counter counts between two looks; 0 = all is quiet.
void Add(benchmark::State& bench) {
  CounterWindow window;
  CounterSample sample = ReadSonicCounters(Answers(0), {}, base::MonotonicTime());
  for (auto _ : bench) {
    sample.at += std::chrono::seconds(10);
    for (auto& [name, port] : sample.ports) {
      for (auto& count : port.pfc_received) *count += std::uint64_t(bench.range(0));
      *port.in_errors += std::uint64_t(bench.range(0));
    }
    window.Add(sample);
    benchmark::DoNotOptimize(window.Sightings(sample.at));
  }
  bench.counters["bytes"] = double(window.bytes());
}
BENCHMARK(Add)->ArgName("moving")->Arg(0)->Arg(100'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace heddle::switches
