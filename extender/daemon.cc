#include "extender/daemon.h"

#include <thread>
#include <vector>

#include "crds/keys.h"
#include "extender/gang_controller.h"
#include "extender/metrics.h"
#include "extender/verbs.h"
#include "kube/heartbeats.h"

namespace heddle::extender {
namespace {

constexpr std::chrono::seconds kLeasePeriod{30};
constexpr std::chrono::seconds kComplainPeriod{10};

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
  } while (clock.SleepFor(kLeasePeriod, stop));
}

// Says what is missing until everything was seen once, so that a start without an API server does not look
// like a hang.
void Complain(base::Clock& clock, const GangController& controller, const kube::Log& log,
              const std::stop_token& stop) {
  while (clock.SleepFor(kComplainPeriod, stop) && !controller.ready()) {
    if (log) log("Waiting for the API server; reads that fail are logged as they are tried again");
  }
}

}  // namespace

base::Status RunDaemon(kube::HttpTransport& transport, base::Clock& clock, base::Random random,
                       const DaemonOptions& options, const std::stop_token& stop) {
  kube::Client client(
      transport, clock,
      {.user_agent = "heddle-extender", .field_manager = std::string(crds::keys::kExtenderManager)});
  Metrics metrics;
  GangController controller(client, clock, random.Fork(), metrics,
                            {.mode = options.mode, .identity = options.identity, .log = options.log});
  const Endpoints endpoints{
      .snapshot = [&controller] { return controller.current(); },
      .status = {.metrics = [&metrics] { return metrics.Text(); },
                 .not_ready =
                     [&controller] {
                       return controller.ready()
                                  ? ""
                                  : "the first full state of the cluster has not been read yet";
                     }}};
  auto server = kube::HttpServer::Start(options.listen, kMaxBody, [&](const kube::ServedRequest& request) {
    const base::MonotonicTime start = clock.Now();
    kube::ServedAnswer answer = Answer(request, endpoints);
    metrics.Verb(answer.status == 404 ? "other" : request.path.substr(1), answer.status, clock.Now() - start);
    return answer;
  });
  if (!server) return base::Fail(std::move(server).error());
  if (options.listening) options.listening((*server)->address());

  Leadership leadership(client, clock, random.Fork(), options.leadership,
                        [&controller](bool leading) { controller.SetLeading(leading); });
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { leadership.Run(stop); });
  threads.emplace_back([&] { WatchAgents(client, clock, options.leadership.ns, controller, stop); });
  threads.emplace_back([&] { Complain(clock, controller, options.log, stop); });
  controller.Run(stop);
  return {};
}

}  // namespace heddle::extender
