#include "nodeagent/publish/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "kube/status_endpoints.h"

namespace heddle::nodeagent {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using topology::LinkState;
using topology::Nic;
using topology::NicPort;

using LabelSet = std::vector<ClientMetric::Label>;

constexpr double kGigabit = 1e9;
// Of a pass: the counters are to take 2 ms, a look 20 ms; a driver may hold it for a minute.
const prometheus::Histogram::BucketBoundaries kSeconds{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                                       0.1,    0.5,   1,     5,     10,   60};
constexpr std::array kVerdicts{Verdict::kHealthy, Verdict::kDegraded, Verdict::kFlapping, Verdict::kDown,
                               Verdict::kUnknown};

MetricFamily Family(const char* name, const char* help, MetricType type = MetricType::Gauge) {
  return {name, help, type, {}};
}

void Add(MetricFamily& family, LabelSet labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

LabelSet With(LabelSet labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

LabelSet LabelsOf(const Nic& nic, const NicPort& port) {
  return {{"nic", nic.name},
          {"port", std::to_string(port.number)},
          {"rail", nic.rail.known() ? std::to_string(*nic.rail) : ""},
          {"leaf", port.leaf_port.known() ? port.leaf_port->leaf : ""}};
}

const PortHealth* FindHealth(const std::vector<PortHealth>& ports, const std::string& key) {
  for (const PortHealth& port : ports) {
    if (port.port.key == key) return &port;
  }
  return nullptr;
}

// What was last known of a port.
struct Known {
  std::optional<bool> up;
  int rate_gbps = 0, usable_gbps = 0;
};

void AddPort(const Nic& nic, const NicPort& port, const PortHealth& health, const Known& known,
             std::vector<MetricFamily>& link) {
  const LabelSet labels = LabelsOf(nic, port);
  LabelSet info = With(labels, "netdev", health.port.netdev);
  info = With(std::move(info), "role", std::string(topology::NicRoleName(nic.role)));
  info = With(std::move(info), "transport", std::string(topology::TransportName(nic.transport)));
  info = With(std::move(info), "leaf_port", port.leaf_port.known() ? port.leaf_port->port : "");
  Add(link[0], std::move(info), 1);
  if (known.up) Add(link[1], labels, *known.up ? 1 : 0);
  Add(link[2], labels, port.state == LinkState::kUnknown || health.state == LinkState::kUnknown ? 0 : 1);
  // Of a port that is not down a rate of zero is one that nobody could say, and what it counts with then is assumed.
  if (known.rate_gbps > 0 || (known.up && !*known.up)) {
    Add(link[3], labels, known.rate_gbps * kGigabit);
    Add(link[4], labels, known.usable_gbps * kGigabit);
  }
  for (const Verdict verdict : kVerdicts)
    Add(link[5], With(labels, "verdict", std::string(VerdictName(verdict))),
        health.verdict == verdict ? 1 : 0);
  for (const auto& [end, totals] :
       {std::pair("host", &health.totals), std::pair("leaf", &health.leaf_totals)}) {
    for (const auto& [id, total] : *totals) {
      LabelSet counted{{"nic", nic.name}, {"port", std::to_string(port.number)}};
      counted = With(std::move(counted), "counter", std::string(CounterName(id.counter)));
      counted = With(std::move(counted), "priority", id.priority < 0 ? "" : std::to_string(id.priority));
      counted = With(std::move(counted), "end", end);
      Add(link[6], std::move(counted), double(total));
    }
  }
  if (health.leaf_unread) Add(link[7], labels, health.leaf_unread->empty() ? 1 : 0);
}

std::vector<MetricFamily> LinkFamilies() {
  std::vector<MetricFamily> link;
  link.push_back(Family("heddle_link_info", "What a port is: always 1"));
  link.push_back(Family("heddle_link_up", "1 while the port is Active, 0 while it is down; as last known"));
  link.push_back(Family("heddle_link_readable", "0 while the port's state cannot be read"));
  link.push_back(Family("heddle_link_rate_bits_per_second", "What the port trained to; as last known"));
  link.push_back(Family("heddle_link_usable_bits_per_second", "What placement counts on; as last known"));
  link.push_back(Family("heddle_link_verdict", "1 for the verdict in force, 0 for the others"));
  link.push_back(
      Family("heddle_link_counter_total",
             "What an end of the cable (host, leaf) counted since the agent started, wraps and resets "
             "taken out",
             MetricType::Counter));
  link.push_back(Family("heddle_link_leaf_readable",
                        "0 while the leaf does not tell what its end of an InfiniBand cable has counted"));
  return link;
}

void AddGpus(const Sight& sight, std::vector<MetricFamily>& families) {
  const topology::Node& node = sight.seen.node;
  MetricFamily healthy = Family("heddle_gpu_healthy", "0 while there is evidence against the GPU");
  MetricFamily nvlinks = Family("heddle_gpu_nvlinks_up", "NVLinks of the GPU that are up");
  MetricFamily usable = Family("heddle_gpu_nvlink_usable_bits_per_second",
                               "What placement counts on of the GPU's NVLinks, in one direction");
  MetricFamily ecc = Family("heddle_gpu_ecc_uncorrected_total",
                            "Uncorrected ECC errors since the driver was loaded", MetricType::Counter);
  MetricFamily xid = Family("heddle_gpu_last_xid", "The last XID that the driver reported; 0 = none");
  const auto labels = [](int gpu, const std::string& pci) {
    return LabelSet{{"gpu", std::to_string(gpu)}, {"pci", pci}};
  };
  for (const topology::Gpu& gpu : node.gpus) {
    Add(healthy, labels(gpu.index, gpu.pci), gpu.healthy ? 1 : 0);
    if (node.nvlink.links_per_gpu == 0) continue;
    int up = node.nvlink.links_per_gpu;
    for (const auto& exception : node.nvlink.exceptions)
      up = exception.gpu == gpu.index ? exception.links_up : up;
    Add(nvlinks, labels(gpu.index, gpu.pci), up);
    if (node.nvlink.gbps_per_gpu > 0)
      Add(usable, labels(gpu.index, gpu.pci), double(node.nvlink.usable_gbps(gpu.index)) * kGigabit);
  }
  for (const GpuReading& gpu : sight.gpus) {
    if (gpu.uncorrected_ecc) Add(ecc, labels(gpu.index, gpu.pci), double(*gpu.uncorrected_ecc));
    Add(xid, labels(gpu.index, gpu.pci), gpu.last_xid);
  }
  MetricFamily expected = Family("heddle_node_nvlinks_per_gpu", "NVLinks that each GPU should have up");
  if (node.nvlink.links_per_gpu > 0) Add(expected, {}, node.nvlink.links_per_gpu);
  for (MetricFamily* family : {&healthy, &nvlinks, &usable, &ecc, &xid, &expected}) {
    if (!family->metric.empty()) families.push_back(std::move(*family));
  }
}

// What is not offered can be given to nobody.
void AddDevices(const std::vector<crds::DeviceReport>& devices, std::vector<MetricFamily>& families) {
  if (devices.empty()) return;
  MetricFamily family = Family(
      "heddle_devices", "Devices of a resource of this node, by whether the kubelet can give them out");
  for (const crds::DeviceReport& report : devices) {
    const bool given = report.state == crds::DeviceState::kOffered ||
                       report.state == crds::DeviceState::kElsewhere;  // by another plugin
    const int healthy = given ? report.healthy : 0;
    Add(family, {{"resource", report.resource}, {"health", "healthy"}}, healthy);
    Add(family, {{"resource", report.resource}, {"health", "unhealthy"}}, report.total - healthy);
  }
  families.push_back(std::move(family));
}

}  // namespace

struct Metrics::Series {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Histogram>& passes =
      prometheus::BuildHistogram()
          .Name("heddle_nodeagent_pass_duration_seconds")
          .Help(
              "What a full look, a pass over the counters, one over what leaves have counted, and one over "
              "lossless settings took")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& publications =
      prometheus::BuildCounter()
          .Name("heddle_nodeagent_publications_total")
          .Help("Attempts to write the status of the NodeTopology")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& heard = prometheus::BuildCounter()
                                                       .Name("heddle_nodeagent_kernel_events_total")
                                                       .Help("What the kernel said, by its kind")
                                                       .Register(registry);
  prometheus::Family<prometheus::Gauge>& sources =
      prometheus::BuildGauge()
          .Name("heddle_nodeagent_kernel_source_open")
          .Help("0 where the kernel cannot be heard by this source, and the counters alone must tell")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& told = prometheus::BuildCounter()
                                                      .Name("heddle_nodeagent_events_total")
                                                      .Help("Events of the Node, by reason")
                                                      .Register(registry);
  prometheus::Family<prometheus::Counter>& dropped =
      prometheus::BuildCounter()
          .Name("heddle_nodeagent_events_dropped_total")
          .Help("Events of the Node that were too many, or that the API server refused")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& problems =
      prometheus::BuildGauge()
          .Name("heddle_nodeagent_problems")
          .Help("What could not be read at the last look; DiscoveryComplete names each")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& stuck =
      prometheus::BuildGauge()
          .Name("heddle_nodeagent_pass_stuck")
          .Help("1 while a look or a pass over the counters does not end, and what was published is old")
          .Register(registry);

  prometheus::Family<prometheus::Gauge>& lossless =
      prometheus::BuildGauge()
          .Name("heddle_lossless_ports")
          .Help("Ports that a LosslessPolicy speaks of, by how they stand to it")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& withdrawn =
      prometheus::BuildGauge()
          .Name("heddle_lossless_ports_withdrawn")
          .Help("Ports that new pods do not get while their settings are changed")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& qos =
      prometheus::BuildCounter()
          .Name("heddle_lossless_actions_total")
          .Help(
              "What was done to lossless settings: write, failed_write, apply, roll_back, drift, conflict, "
              "and "
              "give_back of a port that was in use for too long")
          .Register(registry);

  std::mutex mutex;  // guards what follows
  SightPtr sight;
  std::string stuck_text;
  std::map<std::string, Known> known;  // by PortKey
  std::vector<crds::DeviceReport> devices;

  // Made when somebody asks: a pass over the counters is more frequent than that, and has to be quick.
  std::vector<MetricFamily> OfMachine() const;
};

Metrics::Metrics() : series_(std::make_unique<Series>()) {}
Metrics::~Metrics() = default;

std::vector<MetricFamily> Metrics::Series::OfMachine() const {
  if (sight == nullptr) return {};
  std::vector<MetricFamily> families = LinkFamilies();
  for (const Nic& nic : sight->seen.node.nics) {
    for (const NicPort& port : nic.ports) {
      const std::string key = PortKey(nic, port.number);
      const PortHealth* health = FindHealth(sight->ports, key);
      const auto before = known.find(key);
      if (health != nullptr && before != known.end()) AddPort(nic, port, *health, before->second, families);
    }
  }
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  AddGpus(*sight, families);
  AddDevices(devices, families);
  return families;
}

void Metrics::Saw(const SightPtr& sight) {
  std::map<std::string, Known> known;
  const std::lock_guard lock(series_->mutex);
  for (const Nic& nic : sight->seen.node.nics) {
    for (const NicPort& port : nic.ports) {
      const std::string key = PortKey(nic, port.number);
      const PortHealth* health = FindHealth(sight->ports, key);
      if (health == nullptr) continue;
      Known& now = known[key] = series_->known[key];
      if (port.state != LinkState::kUnknown && health->state != LinkState::kUnknown)
        now = {port.state == LinkState::kActive, port.rate_gbps, port.usable_gbps};
    }
  }
  series_->known = std::move(known);
  series_->sight = sight;
  series_->problems.Add({}).Set(double(sight->seen.problems.size()));
}

void Metrics::Passed(Pass pass, std::chrono::nanoseconds took) {
  series_->passes.Add({{"pass", std::string(PassName(pass))}}, kSeconds)
      .Observe(std::chrono::duration<double>(took).count());
}

void Metrics::Stuck(const std::vector<StuckPass>& passes) {
  for (const Pass pass : {Pass::kLook, Pass::kCounterPass}) {
    const bool is_stuck = std::any_of(passes.begin(), passes.end(),
                                      [pass](const StuckPass& stuck) { return stuck.pass == pass; });
    series_->stuck.Add({{"pass", std::string(PassName(pass))}}).Set(is_stuck ? 1 : 0);
  }
  const std::lock_guard lock(series_->mutex);
  series_->stuck_text = StuckText(passes);
}

void Metrics::Heard(const std::vector<KernelEvent>& events) {
  for (const KernelEvent& event : events)
    series_->heard.Add({{"kind", std::string(KernelEventKindName(event.kind))}}).Increment();
}

void Metrics::Sources(const std::vector<KernelSourceState>& sources) {
  for (const KernelSourceState& source : sources)
    series_->sources.Add({{"source", source.source}}).Set(source.closed.empty() ? 1 : 0);
}

void Metrics::Offered(const std::vector<crds::DeviceReport>& devices) {
  const std::lock_guard lock(series_->mutex);
  series_->devices = devices;
}

void Metrics::Wrote(bool written) {
  series_->publications.Add({{"result", written ? "written" : "failed"}}).Increment();
}

void Metrics::Told(std::string_view reason) {
  series_->told.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::Dropped(std::uint64_t events) {
  prometheus::Counter& dropped = series_->dropped.Add({});
  dropped.Increment(double(events) - dropped.Value());
}

void Metrics::Lossless(const LosslessReadings& readings) {
  if (!readings.reports) return;
  std::map<crds::LosslessState, std::size_t> ports;
  for (const crds::LosslessReport& report : *readings.reports) ports[report.state] += report.ports.size();
  for (int i = 0; i <= int(crds::LosslessState::kUnknown); ++i) {
    const auto state = crds::LosslessState(i);
    series_->lossless.Add({{"state", std::string(crds::LosslessStateName(state))}}).Set(double(ports[state]));
  }
  series_->withdrawn.Add({}).Set(double(readings.withdrawn.size()));
}

void Metrics::QosPassed(const QosCounts& counts, std::chrono::nanoseconds took) {
  const auto count = [this](const char* action, std::uint64_t total) {
    prometheus::Counter& counter = series_->qos.Add({{"action", action}});
    counter.Increment(double(total) - counter.Value());
  };
  count("write", counts.writes);
  count("failed_write", counts.failed_writes);
  count("apply", counts.applied);
  count("roll_back", counts.rolled_back);
  count("drift", counts.drifts);
  count("conflict", counts.conflicts);
  count("give_back", counts.given_back);
  series_->passes.Add({{"pass", "qos"}}, kSeconds).Observe(std::chrono::duration<double>(took).count());
}

std::string Metrics::NotReady() const {
  const std::lock_guard lock(series_->mutex);
  if (!series_->stuck_text.empty()) return series_->stuck_text;
  return series_->sight != nullptr ? "" : "the machine has not been looked at yet";
}

std::string Metrics::Text() const {
  std::vector<MetricFamily> families = series_->registry.Collect();
  {
    const std::lock_guard lock(series_->mutex);
    std::vector<MetricFamily> of_machine = series_->OfMachine();
    std::move(of_machine.begin(), of_machine.end(), std::back_inserter(families));
  }
  return prometheus::TextSerializer().Serialize(families);
}

base::Result<std::unique_ptr<kube::HttpServer>> Serve(const Metrics& metrics, const std::string& listen) {
  if (listen.empty()) return std::unique_ptr<kube::HttpServer>();
  const kube::StatusEndpoints status{.metrics = [&metrics] { return metrics.Text(); },
                                     .not_ready = [&metrics] { return metrics.NotReady(); }};
  auto server = kube::HttpServer::Start(listen, 0, [status](const kube::ServedRequest& request) {
    return kube::AnswerStatus(request, status)
        .value_or(kube::ServedAnswer{.status = 404, .body = "here are /metrics, /healthz and /readyz\n"});
  });
  if (!server) return base::Fail(server.error().In("choose another --listen, or \"\" for none"));
  return *std::move(server);
}

}  // namespace heddle::nodeagent
