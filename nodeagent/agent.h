#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "kube/client.h"
#include "nodeagent/discovery.h"
#include "nodeagent/grants.h"
#include "nodeagent/publisher.h"

namespace heddle::nodeagent {

struct AgentOptions {
  std::string node;
  std::chrono::nanoseconds interval = std::chrono::seconds(30);
  std::chrono::nanoseconds publish_jitter = std::chrono::seconds(10);
  bool once = false;  // return after the first successful publication
  kube::Log log;
  GrantSource* grants = nullptr;  // null = what containers hold is not published; it must outlive the call
  // Of the kubelet's device plugins, where an allocation is heard at once; "" = grants are asked for every interval.
  std::string device_plugins;
};

// The daemon: looks at the machine every interval and asks for the grants, publishes what changed, and renews the
// Lease heddle-node-<node> as its sign of life. An API server that is away stops none of them; a SIGTERM (stop)
// ends all.
void RunAgent(Discovery& discovery, kube::Client& client, base::Clock& clock, base::Random random,
              const AgentOptions& options, std::stop_token stop);

}  // namespace heddle::nodeagent
