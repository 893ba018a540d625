#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/random.h"
#include "kube/client.h"
#include "nodeagent/devices/node_devices.h"
#include "nodeagent/grants/grants.h"
#include "nodeagent/monitor/monitor.h"
#include "nodeagent/publish/metrics.h"
#include "nodeagent/publish/publisher.h"
#include "nodeagent/qos/loop.h"

namespace heddle::nodeagent {

// What sets and watches the QoS of this machine's ports; all must outlive the agent.
struct LosslessParts {
  PortIo* io = nullptr;  // null: nobody looks at it, and what is published of it stays
  PortGate* gate = nullptr;
  Journal* journal = nullptr;
  QosLoopOptions options;
};

struct AgentOptions {
  std::string node;
  std::chrono::nanoseconds publish_jitter = std::chrono::seconds(10);
  bool once = false;  // return after the first successful publication
  kube::Log log;
  GrantSource* grants = nullptr;  // null = what containers hold is not published; it must outlive the call
  // Between two questions to it; more than 30 s are 30.
  std::chrono::nanoseconds grants_interval = std::chrono::seconds(30);
  // Of the kubelet's device plugins, where an allocation is heard at once; "" = nothing is heard between questions.
  std::string device_plugins;
  // What the kubelet is offered; nothing = this agent is no device plugin. Its `pods` is set where plans are followed.
  std::optional<NodeDevicesOptions> devices;
  const base::FileTree* files = nullptr;  // of the machine; with `devices`, and it must outlive the call
  bool follow_plans = false;              // watch this node's pods, which takes the right to
  LosslessParts lossless;
};

// The daemon: watches the machine and asks for the grants, publishes what changed, tells the Node's events, counts
// for Prometheus, and renews the Lease heddle-node-<node> as its sign of life. An API server that is away stops none
// of them; a SIGTERM (stop) ends them all. `monitor` should be patient: it is told what was published before.
void RunAgent(Monitor& monitor, kube::Client& client, base::Clock& clock, base::Random random,
              Metrics& metrics, const AgentOptions& options, std::stop_token stop);

}  // namespace heddle::nodeagent
