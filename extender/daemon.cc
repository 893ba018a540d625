#include "extender/daemon.h"

#include <thread>
#include <vector>

#include "base/process.h"
#include "crds/keys.h"
#include "extender/gang_controller.h"
#include "extender/metrics.h"
#include "extender/verbs.h"
#include "kube/heartbeats.h"
#include "kube/server_clock.h"

namespace heddle::extender {
namespace {

constexpr std::chrono::seconds kLeasePeriod{30};
constexpr std::chrono::seconds kComplainPeriod{10};
// At 20 ms a request 400 pods a second, more than kube-scheduler binds, and few of the seats that docs/operations.md
// gives the extender at the API server.
constexpr int kReleasesAtOnce = 8;
constexpr std::size_t kMaxStatusBody = 1024;  // nobody has anything to send there

void WatchAgents(kube::Client& client, base::Clock& clock, const std::string& ns, GangController& controller,
                 const std::stop_token& stop) {
  // An agent that never had a Lease is not late, it is not there: its node's own condition says so.
  kube::Heartbeats agents({.prefix = std::string(crds::keys::kNodeLeasePrefix), .slack = kLeasePeriod});
  do {
    // From the server's cache: half a minute old is young enough for this.
    const auto leases = client.ListAll(kube::kLeases, {.ns = ns, .resource_version = "0"}, stop);
    if (leases && agents.Observe(leases->items, std::nullopt, clock.Now())) {
      controller.SetStaleNodes(agents.Late());
    }
    base::ReturnFreeMemory();  // of whoever began to lead and read what there is, and of what has gone since
  } while (clock.SleepFor(kLeasePeriod, stop));
}

// Says what is missing until everything was seen once, so that a start without an API server does not look
// like a hang. The pages that it came in are freed then.
void AwaitFirstState(base::Clock& clock, const GangController& controller, const kube::Log& log,
                     const std::stop_token& stop) {
  while (clock.SleepFor(kComplainPeriod, stop) && !controller.ready()) {
    if (log) log("Waiting for the API server; reads that fail are logged as they are tried again");
  }
  base::ReturnFreeMemory();
}

}  // namespace

class Daemon::Impl {
 public:
  Impl(kube::HttpTransport& transport, base::Clock& clock, base::Random random, DaemonOptions options)
      : clock_(clock),
        options_(std::move(options)),
        wall_(clock),
        dated_(transport, clock, wall_, options_.log),
        client_(
            dated_, wall_,
            {.user_agent = "heddle-extender", .field_manager = std::string(crds::keys::kExtenderManager)}),
        controller_(client_, wall_, random.Fork(), metrics_,
                    {.mode = options_.mode,
                     .preemption = options_.preemption,
                     .spares = options_.spares,
                     .identity = options_.identity,
                     .releases_at_once = kReleasesAtOnce,
                     .log = options_.log}),
        leadership_(client_, clock, random.Fork(), options_.leadership,
                    [this](bool leading) { controller_.SetLeading(leading); }) {}

  kube::ServedAnswer Answer(const kube::ServedRequest& request) {
    // No scheduler asks an observer, and who else reaches its port would read names of pods and gangs in the answers.
    if (options_.mode == Mode::kObserve) return AnswerStatus(request);
    const base::MonotonicTime start = clock_.Now();
    kube::ServedAnswer answer = extender::Answer(request, endpoints_);
    metrics_.Verb(answer.status == 404 ? "other" : request.path.substr(1), answer.status,
                  clock_.Now() - start);
    return answer;
  }

  kube::ServedAnswer AnswerStatus(const kube::ServedRequest& request) {
    if (auto answer = kube::AnswerStatus(request, endpoints_.status)) return *std::move(answer);
    return {.status = 404, .body = "no such path; there are /metrics, /healthz and /readyz\n"};
  }

  void Run(const std::stop_token& stop) {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] { leadership_.Run(stop); });
    threads.emplace_back([&] { WatchAgents(client_, clock_, options_.leadership.ns, controller_, stop); });
    threads.emplace_back([&] { AwaitFirstState(clock_, controller_, options_.log, stop); });
    controller_.Run(stop);
  }

 private:
  base::Clock& clock_;
  const DaemonOptions options_;
  // Waits are measured against what others stamped and other leaders began, so in the API server's time.
  kube::ServerClock wall_;
  kube::ClockSettingTransport dated_;
  kube::Client client_;
  Metrics metrics_;
  GangController controller_;
  Leadership leadership_;
  const Endpoints endpoints_{
      .snapshot = [this] { return controller_.current(); },
      .kept_nodes = [this] { return controller_.kept_nodes(); },
      .slots_left = [this] { return controller_.slots_left(); },
      .is_gang_pod =
          [this](const std::string& uid) { return !controller_.ready() || controller_.KnowsGangPod(uid); },
      .status = {.metrics = [this] { return controller_.MetricsText(); },
                 .not_ready =
                     [this] {
                       return controller_.ready()
                                  ? ""
                                  : "the first full state of the cluster has not been read yet";
                     }}};
};

Daemon::Daemon(kube::HttpTransport& transport, base::Clock& clock, base::Random random, DaemonOptions options)
    : impl_(std::make_unique<Impl>(transport, clock, random, std::move(options))) {}

Daemon::~Daemon() = default;

kube::ServedAnswer Daemon::Answer(const kube::ServedRequest& request) {
  return impl_->Answer(request);
}

kube::ServedAnswer Daemon::AnswerStatus(const kube::ServedRequest& request) {
  return impl_->AnswerStatus(request);
}

void Daemon::Run(const std::stop_token& stop) {
  impl_->Run(stop);
}

base::Status RunDaemon(kube::HttpTransport& transport, base::Clock& clock, base::Random random,
                       const DaemonOptions& options, const std::stop_token& stop) {
  Daemon daemon(transport, clock, random, options);
  auto server = kube::HttpServer::Start(
      options.listen, kMaxBody,
      [&daemon](const kube::ServedRequest& request) { return daemon.Answer(request); });
  if (!server) return base::Fail(std::move(server).error());
  std::unique_ptr<kube::HttpServer> metrics;
  if (!options.metrics_listen.empty()) {
    auto started = kube::HttpServer::Start(
        options.metrics_listen, kMaxStatusBody,
        [&daemon](const kube::ServedRequest& request) { return daemon.AnswerStatus(request); });
    if (!started) return base::Fail(std::move(started).error());
    metrics = *std::move(started);
  }
  if (options.listening) options.listening((*server)->address());
  daemon.Run(stop);
  return {};
}

}  // namespace heddle::extender
