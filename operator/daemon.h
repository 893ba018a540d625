#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "gnmi/client.h"
#include "kube/http.h"
#include "kube/http_server.h"
#include "operator/node_topology_reconciler.h"
#include "operator/plugin_objects.h"
#include "operator/ufm_client.h"

namespace heddle::operators {

class Metrics;

struct DaemonOptions {
  NodeSelection selection;
  bool leader_elect = true;
  std::string identity;              // unique among replicas
  std::string ns = "heddle-system";  // of the leader's and the agents' Leases
  OtherPlugins plugins;              // RDMA device plugins of others; its namespace is `ns`
  int workers = 4;
  // How UFMs are reached. Absent: none is asked.
  std::function<std::unique_ptr<kube::HttpTransport>(const UfmEndpoint&)> ufm_transport;
  bool page = false;                                          // whether the fabric page is served
  std::chrono::nanoseconds settle = std::chrono::seconds(1);  // changes within this are assembled together
  // Between two looks at the agents' Leases, which hold for minutes: of 10,000 nodes a look is some 6 MB.
  std::chrono::nanoseconds lease_period = std::chrono::seconds(30);
};

// The operator without its main: caches run from the start, the reconcilers while it leads.
// Thread rule: Run on one thread, the rest from any. What is passed must outlive it.
class Daemon {
 public:
  Daemon(kube::HttpTransport& transport, gnmi::Dialer& dialer, base::Clock& clock, base::Random random,
         Metrics& metrics, DaemonOptions options);
  ~Daemon();

  void Run(const std::stop_token& stop);  // blocks until stop; the Lease is released then
  bool ready() const;                     // all caches have been full once
  // As page::Page::Answer. Requires: options.page, or it never has a view to show.
  kube::ServedAnswer AnswerPage(const kube::ServedRequest& request);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle::operators
