#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/process.h"
#include "crds/yaml.h"
#include "kube/config.h"
#include "kube/cpprest_transport.h"
#include "nodeagent/agent.h"
#include "nodeagent/flags.h"
#include "nodeagent/machine.h"
#include "nodeagent/nccl_export.h"
#include "nodeagent/nvml_process.h"
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

// The file is found as the shell would find it, not below the recorded machine.
base::Status UseNcclXml(const nodeagent::Flags& flags, nodeagent::Machine& machine) {
  if (flags.from_nccl_xml.empty()) return {};
  const std::filesystem::path path(flags.from_nccl_xml);
  const base::DiskFileTree folder(path.has_parent_path() ? path.parent_path().string() : ".");
  ASSIGN_OR_RETURN(auto supplied,
                   nodeagent::ReadSuppliedTopology(folder, path.filename().string(), path.string()));
  supplied.alone = flags.print && flags.machine.empty();
  machine.discovery->Use(std::move(supplied));
  return {};
}

int WriteNccl(const nodeagent::Flags& flags, const base::FileTree& files, nodeagent::Machine& machine) {
  const nodeagent::Readings readings = machine.discovery->Read();
  const std::string xml = nodeagent::NcclTopologyOf(files, readings, nodeagent::Assemble(readings));
  const auto written = nodeagent::WriteNcclTopology(xml, flags.nccl_topo);
  return written ? 0 : Failed(written.error());
}

int Publish(const nodeagent::Flags& flags, nodeagent::Machine& machine, const base::FileTree& root,
            base::Clock& clock, base::StopSignals& signals) {
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
  nodeagent::AgentOptions options{machine.identity.node, Seconds(flags.interval_s), Seconds(flags.jitter_s),
                                  flags.once, [](std::string_view line) { spdlog::info(line); }};
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
    const auto done =
        flags.machine.empty()
            ? nodeagent::Record(root, live_node, Driver(flags), clock, flags.scrub, flags.record_to)
            : nodeagent::RecordAgain(recorded, flags.machine, flags.node, flags.scrub, flags.record_to);
    return done ? 0 : Failed(done.error());
  }
  auto machine = flags.machine.empty() ? nodeagent::OpenLive(root, live_node, Driver(flags), clock)
                                       : nodeagent::OpenRecorded(recorded, flags.machine, flags.node);
  if (!machine) return Failed(machine.error());
  if (const auto used = UseNcclXml(flags, *machine); !used) return Failed(used.error());
  if (!flags.nccl_topo.empty()) return WriteNccl(flags, flags.machine.empty() ? root : recorded, *machine);
  if (!flags.print) return Publish(flags, *machine, root, clock, signals);
  crds::NodeTopology object;
  object.name = machine->identity.node;
  const auto json = crds::ToJson(nodeagent::Report(object, machine->discovery->Look(), clock.WallNow()));
  std::fputs((flags.output == "json" ? json.dump(2) + "\n" : crds::ToYaml(json)).c_str(), stdout);
  return 0;
}
