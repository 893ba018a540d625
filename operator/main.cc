#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <random>
#include <thread>

#include "kube/config.h"
#include "kube/cpprest_transport.h"
#include "operator/daemon.h"
#include "operator/metrics.h"
#include "operator/status_server.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace)

constexpr const char* kAbout =
    R"(Assembles the training fabric of a Kubernetes cluster from what the node agents report.

It makes one NodeTopology for each Node, writes one Fabric for each transport and site (kubectl get fabrics), and labels
the nodes (heddle.dev/nvlink-domain, su, site, rails, leaf-N, machine, fabric). One replica works at a time; the Lease
heddle-operator in heddle-system says which.)";
constexpr const char* kExamples = R"(
Examples:
  heddle-operator --kubeconfig ~/.kube/config --nodes gpu
  heddle-operator --metrics-listen 127.0.0.1:8081    then: curl 127.0.0.1:8081/metrics)";

struct Flags {
  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  std::string nodes = "all", metrics_listen, log_level = "info";
  operators::DaemonOptions daemon;
};

void Define(CLI::App& app, Flags& flags) {
  operators::DaemonOptions& daemon = flags.daemon;
  app.footer(kExamples);
  app.add_option("--kubeconfig", flags.sources.kubeconfig_flag, "Default: as kubectl, or the pod's account");
  app.add_option("--context", flags.sources.context, "Context of the kubeconfig (default: its current one)");
  app.add_option("--nodes", flags.nodes, "Which get a NodeTopology: all, or gpu (resource or label)")
      ->check(CLI::IsMember({"all", "gpu"}))
      ->capture_default_str();
  app.add_option("--gpu-resource", daemon.selection.gpu_resources, "Resource of a GPU; repeat for several");
  app.add_flag("--leader-elect,!--no-leader-elect", daemon.leader_elect, "Wait for the Lease (default)");
  app.add_option("--identity", daemon.identity, "Name in the Lease (default: host name and a random number)");
  app.add_option("--namespace", daemon.ns, "Where the Leases are")->capture_default_str();
  app.add_option("--metrics-listen", flags.metrics_listen, "ADDRESS:PORT of /metrics, /healthz and /readyz");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")->capture_default_str();
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int Fail(const base::Error& error, std::string_view advice) {
  spdlog::error("Failed to start error=\"{}\" advice=\"{}\"", error.message, advice);
  return 1;
}

int Run(Flags& flags) {
  base::SystemClock clock;
  const base::DiskFileTree root("/");
  std::random_device device;
  base::Random random((std::uint64_t{device()} << 32) | device());
  std::string& identity = flags.daemon.identity;
  if (identity.empty()) identity = fmt::format("{}_{:08x}", HostName(), random.Below(1ULL << 32));
  flags.daemon.selection.all = flags.nodes == "all";
  auto config = kube::LoadConfig(flags.sources, root, clock);
  if (!config) return Fail(config.error(), "give --kubeconfig FILE");
  spdlog::info("Started server={} identity={} nodes={}", config->server, identity, flags.nodes);
  kube::CpprestTransport transport(*std::move(config), clock);
  operators::Metrics metrics;
  operators::Daemon daemon(transport, clock, random.Fork(), metrics, flags.daemon);
  auto server = operators::StatusServer::Start(
      flags.metrics_listen,
      {.metrics = [&] { return metrics.Text(); }, .ready = [&] { return daemon.ready(); }});
  if (!server) return Fail(server.error(), "choose another --metrics-listen");
  std::stop_source stop;
  std::thread([stop]() mutable {
    const sigset_t signals = StopSignals();
    int received = 0;
    sigwait(&signals, &received);
    spdlog::info("Stopping signal={}", received);
    stop.request_stop();
  }).detach();
  daemon.Run(stop.get_token());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Blocked before any thread starts, so that only sigwait sees them.
  sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Flags flags;
  CLI::App app(kAbout, "heddle-operator");
  Define(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("operator"));  // stderr: every line at once
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  return Run(flags);
}
