#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <random>

#include "base/process.h"
#include "kube/api_transport.h"
#include "kube/config.h"
#include "nodeagent/agent.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/flags.h"
#include "nodeagent/gpu/nvml_process.h"
#include "nodeagent/grants/pod_resources.h"
#include "nodeagent/lossless_parts.h"
#include "nodeagent/nccl_files.h"
#include "nodeagent/print.h"
#include "nodeagent/qos_verbs.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

int Failed(const base::Error& error) {
  spdlog::error("Failed error=\"{}\"", error.message);
  return 1;
}

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(std::int64_t(seconds * 1e9));
}

std::unique_ptr<nodeagent::GpuSource> Driver(const nodeagent::Flags& flags, const std::stop_token& stop) {
  nodeagent::NvmlProcessOptions options;
  options.library = flags.nvml;
  options.stop = stop;
  for (char** entry = environ; *entry != nullptr; ++entry) options.environment.emplace_back(*entry);
  return std::make_unique<nodeagent::NvmlProcess>(std::move(options));
}

int Publish(const nodeagent::Flags& flags, const std::string& node, nodeagent::Monitor& monitor,
            nodeagent::GrantSource* kubelet, const base::FileTree& root, const base::FileTree& machine_files,
            base::Clock& clock, const std::stop_token& stop) {
  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  sources.kubeconfig_flag = flags.kubeconfig;
  sources.context = flags.context;
  auto config = kube::LoadConfig(sources, root, clock);
  if (!config)
    return Failed(
        config.error().In("no API server to talk to (give --kubeconfig FILE, or --print to need none)"));
  spdlog::info("Started server={} node={} machine=\"{}\"", config->server, node, flags.machine);
  const auto transport = kube::MakeApiTransport(*std::move(config), clock);
  kube::Client client(*transport, clock,
                      {.user_agent = "heddle-nodeagent", .field_manager = "heddle-nodeagent"});
  nodeagent::Metrics metrics;
  const auto server = nodeagent::Serve(
      metrics, flags.listen.value_or(flags.machine.empty() ? nodeagent::kDefaultListen : ""));
  if (!server) return Failed(server.error());
  if (*server) spdlog::info("Serving metrics and health at=http://{}", (*server)->address());
  std::random_device device;
  nodeagent::AgentOptions options{node,
                                  Seconds(flags.jitter_s),
                                  flags.once,
                                  [](std::string_view line) { spdlog::info(line); },
                                  kubelet,
                                  Seconds(flags.interval_s),
                                  flags.AllocationsFolder()};
  const auto asked = nodeagent::OpenKubelet(machine_files, flags.PodResources(), std::chrono::seconds(1));
  options.devices = nodeagent::DevicesOf(flags, asked.get());
  options.files = &machine_files;
  options.follow_plans = flags.follow_plans;
  const nodeagent::OpenedLossless lossless(flags, machine_files);
  options.lossless = lossless.parts();
  nodeagent::RunAgent(monitor, client, clock, base::Random((std::uint64_t{device()} << 32) | device()),
                      metrics, options, stop);
  spdlog::info("Stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Else each of its twenty threads may have one, on a machine with a hundred processors.
  base::ShareMemoryArenas();
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
  if (const std::string why = nodeagent::WhyNotTogether(flags); !why.empty())
    return nodeagent::Refuse(why, 2);
  const auto fail = [&flags](const base::Error& error) {
    return flags.AnswersOnce() ? nodeagent::Refuse(error.message, 1) : Failed(error);
  };
  spdlog::set_default_logger(spdlog::stderr_logger_mt("heddle-nodeagent"));
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  const std::stop_token stop = signals.Wait([print = flags.print, once = record->parsed()](int signal) {
    // Half a recording is none.
    if (once) std::_Exit(128 + signal);
    if (!print) spdlog::info("Stopping signal={}", signal);
  });
  base::SystemClock clock;
  const base::DiskFileTree root("/"), recorded(flags.machine);
  const auto uncabled = nodeagent::UncabledPorts::Parse(flags.uncabled);
  if (!uncabled) return fail(uncabled.error().In("--uncabled"));
  const auto storage = nodeagent::StorageNics::Parse(flags.storage);
  if (!storage) return fail(storage.error().In("--storage"));
  const bool live = flags.machine.empty();
  flags.TakeNode(std::getenv("NODE_NAME"));
  const std::string live_node = flags.node.empty() ? base::HostName() : flags.node;
  if (record->parsed()) {
    const auto done = live ? nodeagent::Record(root, live_node, Driver(flags, stop), clock, flags.record_to,
                                               flags.Paths(), flags.scrub, *uncabled, *storage)
                           : nodeagent::RecordAgain(recorded, flags.machine, flags.node, flags.scrub,
                                                    flags.record_to, *uncabled, *storage);
    return done ? 0 : fail(done.error());
  }
  auto machine = live ? nodeagent::OpenLive(root, live_node, Driver(flags, stop), clock, stop, flags.Paths(),
                                            *uncabled, *storage)
                      : nodeagent::OpenRecorded(recorded, flags.machine, flags.node, *uncabled, *storage);
  if (!machine) return fail(machine.error());
  const auto once = nodeagent::ServeOnce(live ? root : recorded, *machine, flags, live, stop);
  if (!once || *once) return once ? 0 : fail(once.error());
  const auto kubelet = nodeagent::OpenKubelet(live ? root : recorded, flags.PodResources());
  if (flags.print && !flags.follow)
    return nodeagent::PrintNode(live ? root : recorded, *machine, kubelet.get(), flags, clock, stop);
  nodeagent::LiveEthtool live_ethtool;
  nodeagent::RecordedEthtool recorded_ethtool(recorded);
  nodeagent::CounterReader reader(live ? root : recorded,
                                  live ? static_cast<nodeagent::EthtoolSource&>(live_ethtool)
                                       : static_cast<nodeagent::EthtoolSource&>(recorded_ethtool),
                                  live ? "/" : flags.machine);
  const auto kernel = live ? nodeagent::OpenKernelEvents() : nullptr;
  nodeagent::MonitorOptions options;
  options.look_interval = Seconds(flags.interval_s);
  options.counters_interval = Seconds(flags.counters_interval_s);
  if (!flags.follow) options.patience = std::chrono::seconds(10);
  nodeagent::Monitor monitor(*machine->discovery, reader, kernel.get(), clock, options,
                             machine->leaf_counts.get());
  if (flags.follow) return nodeagent::FollowNode(monitor, machine->identity.node, flags, clock, stop);
  return Publish(flags, machine->identity.node, monitor, kubelet.get(), root, live ? root : recorded, clock,
                 stop);
}
