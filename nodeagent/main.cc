#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "base/process.h"
#include "crds/yaml.h"
#include "kube/config.h"
#include "kube/cpprest_transport.h"
#include "nodeagent/agent.h"
#include "nodeagent/allocation_events.h"
#include "nodeagent/flags.h"
#include "nodeagent/machine.h"
#include "nodeagent/nvml_process.h"
#include "nodeagent/pod_resources.h"
#include "nodeagent/report.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

int Failed(const base::Error& error) {
  spdlog::error("Failed error=\"{}\"", error.message);
  return 1;
}

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(std::int64_t(seconds * 1e9));
}

std::unique_ptr<nodeagent::GpuSource> Driver(const nodeagent::Flags& flags) {
  nodeagent::NvmlProcessOptions options;
  options.library = flags.nvml;
  for (char** entry = environ; *entry != nullptr; ++entry) options.environment.emplace_back(*entry);
  return std::make_unique<nodeagent::NvmlProcess>(std::move(options));
}

// Null where nobody wants to ask a kubelet.
std::unique_ptr<nodeagent::GrantSource> Kubelet(const nodeagent::Flags& flags, const base::FileTree& files) {
  if (flags.PodResources().empty()) return nullptr;
  return std::make_unique<nodeagent::PodResources>(files,
                                                   nodeagent::PodResourcesOptions{flags.PodResources()});
}

int Publish(const nodeagent::Flags& flags, nodeagent::Machine& machine, nodeagent::GrantSource* grants,
            const base::FileTree& root, base::Clock& clock, base::StopSignals& signals) {
  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  sources.kubeconfig_flag = flags.kubeconfig;
  sources.context = flags.context;
  auto config = kube::LoadConfig(sources, root, clock);
  if (!config)
    return Failed(
        config.error().In("no API server to talk to (give --kubeconfig FILE, or --print to need none)"));
  spdlog::info("Started server={} node={} machine=\"{}\"", config->server, machine.identity.node,
               flags.machine);
  const std::stop_token stop = signals.Wait([](int signal) { spdlog::info("Stopping signal={}", signal); });
  kube::CpprestTransport transport(*std::move(config), clock);
  kube::Client client(transport, clock,
                      {.user_agent = "heddle-nodeagent", .field_manager = "heddle-nodeagent"});
  std::random_device device;
  nodeagent::AgentOptions options{machine.identity.node,
                                  Seconds(flags.interval_s),
                                  Seconds(flags.jitter_s),
                                  flags.once,
                                  [](std::string_view line) { spdlog::info(line); },
                                  grants,
                                  nodeagent::DevicePluginsFolder(flags.PodResources())};
  nodeagent::RunAgent(*machine.discovery, client, clock,
                      base::Random((std::uint64_t{device()} << 32) | device()), options, stop);
  spdlog::info("Stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  base::StopSignals signals;
  nodeagent::Flags flags;
  CLI::App app(nodeagent::kAbout, "heddle-nodeagent");
  CLI::App* record = nodeagent::Define(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!flags.probe.empty()) return nodeagent::ServeNvml(flags.probe);
  spdlog::set_default_logger(spdlog::stderr_logger_mt("heddle-nodeagent"));
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  base::SystemClock clock;
  const base::DiskFileTree root("/"), recorded(flags.machine);
  if (flags.node.empty()) flags.node = std::getenv("NODE_NAME") != nullptr ? std::getenv("NODE_NAME") : "";
  const std::string live_node = flags.node.empty() ? base::HostName() : flags.node;
  if (record->parsed()) {
    if (const auto done = nodeagent::Record(root, live_node, Driver(flags), clock, flags.record_to); !done)
      return Failed(done.error());
    return 0;
  }
  auto machine = flags.machine.empty() ? nodeagent::OpenLive(root, live_node, Driver(flags), clock)
                                       : nodeagent::OpenRecorded(recorded, flags.machine, flags.node);
  if (!machine) return Failed(machine.error());
  const auto kubelet = Kubelet(flags, flags.machine.empty() ? root : recorded);
  if (!flags.print) return Publish(flags, *machine, kubelet.get(), root, clock, signals);
  crds::NodeTopology object;
  object.name = machine->identity.node;
  auto grants = kubelet ? kubelet->Read({}) : nodeagent::GrantReadings();
  // Who prints a machine that is no node has not asked for its kubelet.
  if (!flags.pod_resources && grants.state == nodeagent::GrantsState::kNoSocket) grants = {};
  const auto json =
      crds::ToJson(nodeagent::Report(object, machine->discovery->Look(), clock.WallNow(), &grants));
  std::fputs((flags.output == "json" ? json.dump(2) + "\n" : crds::ToYaml(json)).c_str(), stdout);
  return 0;
}
