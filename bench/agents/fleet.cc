#include "bench/agents/fleet.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "crds/keys.h"
#include "kube/api_transport.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/lease.h"
#include "nodeagent/publish/publisher.h"

namespace heddle::bench {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);

nodeagent::Observation OfNode(nodeagent::Observation seen, const std::string& node) {
  if (seen.node.nvlink_domain && !seen.node.nvlink_domain->spans_nodes) {
    auto domain = *seen.node.nvlink_domain;
    domain.id = node;
    seen.node.nvlink_domain = domain;
  }
  seen.node.name = node;
  return seen;
}

class Agent {
 public:
  Agent(kube::ClientConfig config, const std::string& node, const nodeagent::Observation& seen,
        const FleetOptions& options, base::Clock& clock, base::Random random)
      : node_(node),
        clock_(clock),
        random_(random),
        transport_(kube::MakeApiTransport(std::move(config), clock)),
        client_(*transport_, clock, {.user_agent = "heddle-nodeagent", .field_manager = "heddle-nodeagent"}),
        publisher_(client_, clock, random_.Fork(), OptionsOf(options)),
        started_(clock.Now()) {
    publisher_.Offer(OfNode(seen, node));
    watcher_ = std::jthread([this](std::stop_token stop) { publisher_.Watch(std::move(stop)); });
    writer_ = std::jthread([this](std::stop_token stop) { publisher_.Run(std::move(stop)); });
  }

  // Seconds from start to published, once.
  std::optional<double> Published() {
    if (done_ || !publisher_.published()) return std::nullopt;
    done_ = true;
    return std::chrono::duration<double>(clock_.Now() - started_).count();
  }
  std::uint64_t writes() const { return publisher_.writes(); }
  void RequestStop() {
    watcher_.request_stop();
    writer_.request_stop();
    if (beating_.joinable()) beating_.request_stop();
  }

 private:
  nodeagent::PublisherOptions OptionsOf(const FleetOptions& options) {
    nodeagent::PublisherOptions publishing;
    publishing.node = node_;
    publishing.jitter = options.jitter;
    publishing.on_object = [this](const auto& owner, const auto&) {
      kube::HeartbeatOptions beat;
      beat.lease = {std::string(crds::keys::kNamespace), crds::keys::NodeLease(node_)};
      beat.identity = node_;
      beat.owner = owner;
      heartbeat_ = std::make_unique<kube::LeaseHeartbeat>(client_, clock_, random_.Fork(), std::move(beat));
      beating_ = std::jthread([this](std::stop_token stop) { heartbeat_->Run(std::move(stop)); });
    };
    return publishing;
  }

  const std::string node_;
  base::Clock& clock_;
  base::Random random_;
  std::unique_ptr<kube::HttpTransport> transport_;
  kube::Client client_;
  nodeagent::Publisher publisher_;
  const base::MonotonicTime started_;
  bool done_ = false;
  std::unique_ptr<kube::LeaseHeartbeat> heartbeat_;
  std::jthread watcher_, writer_, beating_;  // last: they end before what they use
};

}  // namespace

base::Result<FleetTimes> RunFleet(const FleetOptions& options, const nodeagent::Observation& seen,
                                  const base::FileTree& root, base::Clock& clock,
                                  const std::function<void(const FleetTimes&)>& on_published) {
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes, root.List(options.kubeconfigs));
  std::vector<std::pair<std::string, kube::ClientConfig>> configs;
  for (const std::string& node : nodes) {
    kube::ConfigSources sources;
    sources.kubeconfig_flag = options.kubeconfigs + "/" + node;
    ASSIGN_OR_RETURN(kube::ClientConfig config, kube::LoadConfig(sources, root, clock), node);
    configs.emplace_back(node, std::move(config));
  }
  FleetTimes times;
  times.agents = configs.size();
  base::Random random(20261122);
  std::vector<std::unique_ptr<Agent>> agents;
  const auto begin = clock.Now();
  for (auto& [node, config] : configs)
    agents.push_back(std::make_unique<Agent>(std::move(config), node, seen, options, clock, random.Fork()));
  times.started_s = std::chrono::duration<double>(clock.Now() - begin).count();
  while (times.published_s.size() < agents.size() && clock.Now() - begin < options.limit) {
    for (const auto& agent : agents) {
      if (const auto took = agent->Published()) times.published_s.push_back(*took);
    }
    clock.SleepFor(kPoll, {});
  }
  std::sort(times.published_s.begin(), times.published_s.end());
  on_published(times);
  clock.SleepFor(options.rest, {});
  for (const auto& agent : agents) {
    times.writes += agent->writes();
    agent->RequestStop();
  }
  return times;
}

}  // namespace heddle::bench
