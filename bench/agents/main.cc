// What agents cost:
//   build/release/bin/agents_bench look DIR                 a look and a pass over the counters, CPU time
//   build/release/bin/agents_bench fleet DIR --kubeconfigs  many agents that start at once; bench/agent_fleet.py has the
//                                                           API server for it
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/clock.h"
#include "bench/agents/fleet.h"
#include "bench/growth/clock.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/health/counters.h"
#include "nodeagent/health/link_health.h"
#include "nodeagent/publish/report.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

int Failed(const base::Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

void Row(const char* what, const growth::Times& times) {
  fmt::print("| {} | {:.2f} ms | {:.2f} ms | {:.2f} ms | {} |\n", what, times.p50 / 1000, times.p99 / 1000,
             times.max / 1000, times.runs);
}

int Look(const std::string& folder) {
  const base::DiskFileTree files(folder);
  auto machine = nodeagent::OpenRecorded(files, folder, "");
  if (!machine) return Failed(machine.error());
  nodeagent::RecordedGpus gpus(files);
  const std::string yaml = files.Read("nvml.yaml").value_or("");
  constexpr double kSeconds = 3;
  const auto time = [](auto&& work) { return growth::TimeOf(growth::Clock::kThread, kSeconds, 20, work); };
  fmt::print("| CPU of one thread | p50 | p99 | max | runs |\n|---|---|---|---|---|\n");
  nodeagent::Observation seen = machine->discovery->Look();
  Row("whole look", time([&] { seen = machine->discovery->Look(); }));
  Row("of it reading nvml.yaml", time([&] { (void)nodeagent::ParseNvmlYaml(yaml); }));
  Row("of it the PCI tree", time([&] { (void)nodeagent::ProbePci(files); }));
  nodeagent::RdmaProbe rdma(files);
  Row("of it the RDMA devices", time([&] { (void)rdma.Read(); }));
  Row("of it the interfaces", time([&] { (void)nodeagent::ProbeNet(files); }));
  nodeagent::RecordedEthtool ethtool(files);
  nodeagent::CounterReader reader(files, ethtool, folder);
  const nodeagent::Readings readings = machine->discovery->Read();
  reader.Watch(nodeagent::WatchedPorts(readings, seen.node));
  nodeagent::LinkHealth links;
  base::MonotonicTime now{};
  const auto pass = [&](nodeagent::Ask ask) {
    now += std::chrono::seconds(5);
    (void)links.Look(reader.Read(ask), now,
                     base::WallTime(now.time_since_epoch().count() / 1000 * std::chrono::microseconds(1)));
  };
  Row("a pass over the counters", time([&] { pass(nodeagent::Ask::kFiles); }));
  Row("one with ethtool's", time([&] { pass(nodeagent::Ask::kFilesAndEthtool); }));
  Row("the object's JSON of it", time([&] {
        (void)crds::ToJson(nodeagent::Report({}, seen, base::WallTime(std::chrono::seconds(1)))).dump();
      }));
  return 0;
}

double At(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, std::size_t(double(sorted.size()) * share))];
}

int Fleet(const std::string& folder, const bench::FleetOptions& options) {
  base::SystemClock clock;
  const base::DiskFileTree recorded(folder), root("/");
  auto machine = nodeagent::OpenRecorded(recorded, folder, "");
  if (!machine) return Failed(machine.error());
  const auto times = bench::RunFleet(options, machine->discovery->Look(), root, clock, [](const auto& now) {
    fmt::print(
        "published {} of {} agents; s from start: p50 {:.2f}, p99 {:.2f}, max {:.2f}; starting them took "
        "{:.1f} s\n",
        now.published_s.size(), now.agents, At(now.published_s, 0.5), At(now.published_s, 0.99),
        now.published_s.empty() ? 0 : now.published_s.back(), now.started_s);
    std::fflush(stdout);
  });
  if (!times) return Failed(times.error());
  fmt::print("status writes {}\n", times->writes);
  std::fflush(stdout);
  std::_Exit(times->published_s.size() == times->agents ? 0 : 1);  // thousands of threads need not be joined
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What node agents cost", "agents_bench");
  std::string machine;
  bench::FleetOptions options;
  int rest = 0, jitter = 10;
  CLI::App* look = app.add_subcommand("look", "Time one look at a recorded machine");
  CLI::App* fleet = app.add_subcommand("fleet", "Start many agents at once");
  for (CLI::App* one : {look, fleet}) one->add_option("DIR", machine, "A recorded machine")->required();
  fleet
      ->add_option("--kubeconfigs", options.kubeconfigs,
                   "A folder with a kubeconfig for each node, called like it")
      ->required();
  fleet->add_option("--rest", rest, "Seconds to stay after all have published");
  fleet->add_option("--jitter", jitter, "The agent's --publish-jitter")->capture_default_str();
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  if (look->parsed()) return Look(machine);
  options.rest = std::chrono::seconds(rest);
  options.jitter = std::chrono::seconds(jitter);
  return Fleet(machine, options);
}
