#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <random>

#include "base/process.h"
#include "base/version.h"
#include "gnmi/grpc_client.h"
#include "gnmi/grpc_process.h"
#include "kube/api_transport.h"
#include "kube/config.h"
#include "kube/cpprest_transport.h"
#include "kube/http_server.h"
#include "kube/status_endpoints.h"
#include "operator/daemon.h"
#include "operator/metrics.h"
#include "operator/page/page.h"

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
  heddle-operator --listen 127.0.0.1:8081    then: curl 127.0.0.1:8081/metrics
  heddle-operator --page 127.0.0.1:8090      then open http://localhost:8090)";

constexpr const char* kUnread = "the Nodes, NodeTopologies and Fabrics have not all been read once yet";

struct Flags {
  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  std::string nodes = "all", listen, page, log_level = "info", rdma_shared_image, sriov_image;
  operators::DaemonOptions daemon;
};

void Define(CLI::App& app, Flags& flags) {
  operators::DaemonOptions& daemon = flags.daemon;
  app.footer(kExamples);
  app.set_version_flag("--version", "heddle-operator " + std::string(base::kVersion));
  app.add_option("--kubeconfig", flags.sources.kubeconfig_flag, "Default: as kubectl, or the pod's account");
  app.add_option("--context", flags.sources.context, "Context of the kubeconfig (default: its current one)");
  app.add_option("--nodes", flags.nodes, "Which get a NodeTopology: all, or gpu (resource or label)")
      ->check(CLI::IsMember({"all", "gpu"}))
      ->capture_default_str();
  app.add_option("--gpu-resource", daemon.selection.gpu_resources, "Resource of a GPU; repeat for several");
  app.add_flag("--leader-elect,!--no-leader-elect", daemon.leader_elect, "Wait for the Lease (default)");
  app.add_option("--identity", daemon.identity, "Name in the Lease (default: host name and a random number)");
  app.add_option("--namespace", daemon.ns, "Where the Leases are")->capture_default_str();
  app.add_option("--rdma-shared-image", flags.rdma_shared_image,
                 "Of k8s-rdma-shared-dev-plugin, which RdmaDevicePolicies may name then");
  app.add_option("--sriov-image", flags.sriov_image, "The same of sriov-network-device-plugin");
  app.add_option("--kubelet-root", daemon.plugins.kubelet_root,
                 "--root-dir of the kubelets, by which these two are mounted what they need")
      ->capture_default_str();
  app.add_option("--image-pull-secret", daemon.plugins.pods.pull_secrets,
                 "Secret of that namespace with a login for the registry of these two; repeat for several");
  app.add_option("--plugin-pod-label", daemon.plugins.pods.labels,
                 "KEY=VALUE, a further label of the pods of these two; repeat for several");
  app.add_option("--plugin-pod-annotation", daemon.plugins.pods.annotations, "The same of annotations");
  app.add_option("--listen", flags.listen, "ADDRESS:PORT of /metrics, /healthz and /readyz");
  app.add_option("--page", flags.page,
                 "ADDRESS:PORT, on loopback, of a page that shows the fabric and its gangs (default: none)");
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")->capture_default_str();
}

int Fail(const base::Error& error, std::string_view advice) {
  spdlog::error("Failed to start error=\"{}\" advice=\"{}\"", error.message, advice);
  return 1;
}

int Run(Flags& flags, base::StopSignals& signals) {
  base::SystemClock clock;
  const base::DiskFileTree root("/");
  std::random_device device;
  base::Random random((std::uint64_t{device()} << 32) | device());
  std::string& identity = flags.daemon.identity;
  if (identity.empty()) identity = base::ReplicaIdentity(random);
  flags.daemon.selection.all = flags.nodes == "all";
  auto& images = flags.daemon.plugins.images;
  if (!flags.rdma_shared_image.empty()) images[crds::DevicePlugin::kRdmaShared] = flags.rdma_shared_image;
  if (!flags.sriov_image.empty()) images[crds::DevicePlugin::kSriov] = flags.sriov_image;
  flags.daemon.page = !flags.page.empty();
  if (flags.daemon.page) {
    const base::Status loopback = operators::page::CheckAddress(flags.page);
    if (!loopback)
      return Fail(loopback.error(), "write --page 127.0.0.1:8090, and reach it by kubectl port-forward");
  }
  auto config = kube::LoadConfig(flags.sources, root, clock);
  if (!config) return Fail(config.error(), "give --kubeconfig FILE");
  spdlog::info("Started server={} identity={} nodes={}", config->server, identity, flags.nodes);
  kube::PassOverSystemAuthorities(*config);  // a UFM has an authority of its own, too
  const auto transport = kube::MakeApiTransport(*std::move(config), clock);
  flags.daemon.ufm_transport = [&clock](const operators::UfmEndpoint& endpoint) {
    return std::make_unique<kube::CpprestTransport>(
        operators::ConfigOf(endpoint), clock,
        kube::CpprestOptions{.max_body_bytes = operators::kMaxUfmAnswer});
  };
  operators::Metrics metrics;
  // What comes of each try stands in the switch's status; this is for who looks into one.
  heddle::gnmi::TakeGrpcLog([](bool, std::string_view line) { spdlog::debug("gRPC said: {}", line); });
  heddle::gnmi::TrustGrpcLocks();
  heddle::gnmi::GrpcDialer dialer;
  operators::Daemon daemon(*transport, dialer, clock, random.Fork(), metrics, flags.daemon);
  const kube::StatusEndpoints status{.metrics = [&] { return metrics.Text(); },
                                     .not_ready = [&] { return daemon.ready() ? "" : kUnread; }};
  std::unique_ptr<kube::HttpServer> server;
  if (!flags.listen.empty()) {
    auto started = kube::HttpServer::Start(flags.listen, 0, [&](const kube::ServedRequest& request) {
      return kube::AnswerStatus(request, status)
          .value_or(kube::ServedAnswer{.status = 404, .body = "here are /metrics, /healthz and /readyz\n"});
    });
    if (!started) return Fail(started.error(), "choose another --listen");
    server = *std::move(started);
    spdlog::info("Serving metrics and health at=http://{}", server->address());
  }
  std::unique_ptr<kube::HttpServer> page;
  if (flags.daemon.page) {
    auto started = kube::HttpServer::Start(
        flags.page, 0, [&](const kube::ServedRequest& request) { return daemon.AnswerPage(request); });
    if (!started) return Fail(started.error(), "choose another --page");
    page = *std::move(started);
    spdlog::info("Serving the fabric page at=http://{}", page->address());
  }
  daemon.Run(signals.Wait([](int signal) { spdlog::info("Stopping signal={}", signal); }));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  base::ShareMemoryArenas();
  base::MapLargeBuffers();  // of hundreds of switches
  base::StopSignals signals;
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
  return Run(flags, signals);
}
