#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <random>

#include "base/process.h"
#include "base/version.h"
#include "crds/keys.h"
#include "extender/daemon.h"
#include "extender/help_text.h"
#include "kube/api_transport.h"
#include "kube/config.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

constexpr int kMostSpares = 576;  // nodes; no NVLink domain has more GPUs

struct Flags {
  std::string kubeconfig, context, log_level = "info";
  extender::DaemonOptions daemon;
  bool check = false;
};

void Define(CLI::App& app, Flags& flags) {
  app.footer(extender::kExamples);
  app.set_version_flag("--version", "heddle-extender " + std::string(base::kVersion));
  extender::LeadershipOptions& lead = flags.daemon.leadership;
  app.add_option(
      "--kubeconfig", flags.kubeconfig,
      "File to reach the API server with (default: $KUBECONFIG, the pod's service account, ~/.kube/config)");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  app.add_option("--listen", flags.daemon.listen,
                 "ADDRESS:PORT for the verbs, of which mode observe has none; port 0 takes a free one, "
                 "printed on stdout")
      ->capture_default_str();
  app.add_option("--metrics-listen", flags.daemon.metrics_listen,
                 "ADDRESS:PORT for /metrics, /healthz and /readyz alone (default: only beside the verbs)");
  app.add_option(
         "--mode", flags.daemon.mode,
         "place: plan gangs and let their pods go. observe: touch no pod, and say what the cluster's own "
         "scheduler did and what Heddle would have done (give --own-lease too)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, extender::Mode>{
          {"place", extender::Mode::kPlace}, {"observe", extender::Mode::kObserve}}))
      ->default_str("place");
  app.add_option("--preemption", flags.daemon.preemption,
                 "on: gangs of lower priority are suspended or evicted whole where a gang of higher priority "
                 "finds no "
                 "room, and gangs that ask for it are restarted whole. off: nobody is ever stopped")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"on", true}, {"off", false}}))
      ->default_str("on");
  app.add_option(
         "--spares", flags.daemon.spares,
         "Free nodes that new gangs leave in each NVLink domain over several nodes; repairs may use them")
      ->check(CLI::Range(0, kMostSpares))
      ->capture_default_str();
  app.add_option("--scheduler-identity", lead.scheduler_identity,
                 "Host or pod name of the kube-scheduler beside this (default: this host's name)");
  app.add_flag("--own-lease", lead.own_lease,
               "Take the Lease heddle-scheduler instead of following a kube-scheduler that holds it");
  app.add_option("--namespace", lead.ns, "Where the Leases are")->capture_default_str();
  app.add_flag(
      "--check", flags.check,
      "Ask the extender at --listen whether it answers, and end with 0 or 1: a liveness probe for what "
      "listens on loopback");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
}

// One that hangs keeps its port open, and the scheduler beside it keeps its Lease: nobody else would notice.
int Check(const std::string& listen) {
  constexpr std::chrono::seconds kPatience{3};
  base::SystemClock clock;
  // ":8010" is every address of this host.
  const std::string server = (listen.starts_with(':') ? "http://localhost" : "http://") + listen;
  const auto transport = kube::MakeApiTransport({.server = server}, clock);
  const auto answer = transport->Do({.method = "GET", .target = "/healthz", .timeout = kPatience}, {});
  if (answer && answer->status == 200) return 0;
  spdlog::error("The extender does not answer address={} error=\"{}\"", listen,
                answer ? "status " + std::to_string(answer->status) : answer.error().message);
  return 1;
}

int Run(Flags flags, base::StopSignals& signals) {
  base::SystemClock clock;
  const base::DiskFileTree root("/");
  std::random_device device;
  base::Random random((std::uint64_t{device()} << 32) | device());
  extender::DaemonOptions& daemon = flags.daemon;
  daemon.identity = base::ReplicaIdentity(random);
  // Unlike any scheduler's, which begin with the name of their host: nobody takes us for the one beside them.
  daemon.leadership.identity = "heddle-extender_" + daemon.identity;
  if (daemon.leadership.scheduler_identity.empty()) daemon.leadership.scheduler_identity = base::HostName();
  daemon.log = daemon.leadership.log = [](std::string_view line) { spdlog::info("{}", line); };
  daemon.listening = [](const std::string& address) {
    std::printf("http://%s\n", address.c_str());
    std::fflush(stdout);
  };

  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  sources.kubeconfig_flag = flags.kubeconfig;
  sources.context = flags.context;
  auto config = kube::LoadConfig(sources, root, clock);
  if (!config) {
    spdlog::error("No API server to talk to error=\"{}\" advice=\"give --kubeconfig FILE\"",
                  config.error().message);
    return 1;
  }
  spdlog::info("Started server={} identity={}", config->server, daemon.identity);
  const auto transport = kube::MakeApiTransport(*std::move(config), clock);
  const std::stop_token stop = signals.Wait([](int signal) { spdlog::info("Stopping signal={}", signal); });
  if (const auto ran = extender::RunDaemon(*transport, clock, random.Fork(), daemon, stop); !ran) {
    spdlog::error("Failed to start error=\"{}\"", ran.error().message);
    return 1;
  }
  spdlog::info("Stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  base::ShareMemoryArenas();
  base::StopSignals signals;
  Flags flags;
  flags.daemon.leadership.ns = std::string(crds::keys::kNamespace);
  CLI::App app(extender::kAbout, "heddle-extender");
  Define(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  spdlog::set_default_logger(spdlog::stderr_logger_mt("heddle-extender"));
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  spdlog::flush_on(spdlog::level::info);
  return flags.check ? Check(flags.daemon.listen) : Run(std::move(flags), signals);
}
