// What the operator does with each look at a switch: 500 of 64 ports, every ten seconds, are fifty a second. And with
// all of them, whenever one of them says something new: both ends of every cable between two.
// build/release/bin/switches_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lossless/switch_render.h"
#include "switches/counter_window.h"
#include "switches/switch_links.h"

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

constexpr int kLeaves = 128, kSpines = 64;

// A switch of a port to each of `others`, who say so, too; its own number there is `number`.
void Cable(const std::string& name, int number, const std::string& other, int others, int mtu,
           formats::SonicConfig& config, Neighbours& seen) {
  static const lossless::PortSettings kSettings = [] {
    lossless::PortSettings settings =
        lossless::RenderSwitchPort(*lossless::Resolve({}), *lossless::FindSwitchProfile("sonic/v1"), {})
            .settings;
    settings.buffer_bytes.emplace().fill(lossless::kNotSaid);
    (*settings.buffer_bytes)[3] = 165'888;
    settings.lossless_queues = lossless::PrioritySet{3};
    return settings;
  }();
  config.hostname = fmt::format("{}-{}", name, number);
  for (int i = 0; i < others; ++i) {
    formats::SonicPort port{.name = fmt::format("Ethernet{}", 8 * i), .settings = kSettings};
    port.settings.mtu = mtu;
    port.alias = fmt::format("etp{}", i + 1);
    port.speed_mbps = 400'000;
    port.fec = "rs";
    config.ports.push_back(port);
    seen[port.name] = {fmt::format("{}-{}", other, i), "", fmt::format("etp{}", number + 1),
                       fmt::format("Ethernet{}", 8 * number)};
  }
}

// `kinds`: of leaves, which differ in their MTU; with more than one nearly every link has a finding.
struct TwoTiers {
  explicit TwoTiers(int kinds) : configs(std::size_t(kLeaves + kSpines)), seen(configs.size()) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const bool leaf = i < std::size_t(kLeaves);
      const int number = int(i) - (leaf ? 0 : kLeaves);
      const int mtu = 9216 - (leaf ? number % kinds : 0);
      Cable(leaf ? "leaf" : "spine", number, leaf ? "spine" : "leaf", leaf ? kSpines : kLeaves, mtu,
            configs[i], seen[i]);
      known.push_back(
          {.name = configs[i].hostname, .config = &configs[i], .neighbours = &seen[i], .tier = leaf ? 0 : 1});
    }
  }
  std::vector<formats::SonicConfig> configs;
  std::vector<Neighbours> seen;
  std::vector<KnownSwitch> known;
};

void Link(benchmark::State& bench) {
  const TwoTiers tiers(int(bench.range(0)));
  std::size_t links = 0;
  for (auto _ : bench) links += FindSwitchLinks(tiers.known).size();
  bench.SetItemsProcessed(std::int64_t(links));
}
BENCHMARK(Link)->ArgName("kinds")->Arg(1)->Arg(64)->Unit(benchmark::kMillisecond);

// One leaf sets a port otherwise, and back; all else is kept.
void LinkAgain(benchmark::State& bench) {
  TwoTiers tiers(int(bench.range(0)));
  formats::SonicConfig other = tiers.configs[0];
  other.ports[0].settings.mtu = 1500;
  KeptSwitchLinks kept;
  kept.Begin(tiers.known);
  for (auto _ : bench) {
    const formats::SonicConfig*& now = tiers.known[0].config;
    now = now == &other ? &tiers.configs[0] : &other;
    benchmark::DoNotOptimize(kept.Again(tiers.known, {0}));
  }
}
BENCHMARK(LinkAgain)->ArgName("kinds")->Arg(1)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heddle::switches
