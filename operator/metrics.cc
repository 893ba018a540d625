#include "operator/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

namespace heddle::operators {

struct Metrics::Series {
  using Counters = prometheus::Family<prometheus::Counter>;
  using Gauges = prometheus::Family<prometheus::Gauge>;

  Counters& AddCounter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Gauges& AddGauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  Counters& reconciles =
      AddCounter("heddle_operator_reconciles_total", "Reconciles by reconciler and result");
  Counters& writes = AddCounter("heddle_operator_writes_total", "Writes to the API server by reconciler");
  Gauges& leading = AddGauge("heddle_operator_leading", "1 while this process holds the Lease");
  Gauges& queue = AddGauge("heddle_operator_queue_depth", "Keys that are ready and wait");
  Gauges& nodes = AddGauge("heddle_fabric_nodes", "Nodes of a fabric");
  Gauges& gpus = AddGauge("heddle_fabric_gpus", "GPUs of a fabric");
  Gauges& faults = AddGauge("heddle_fabric_cabling_faults", "Cabling faults of a fabric");
  Gauges& stale = AddGauge("heddle_nodes_stale", "Nodes whose agent does not renew its Lease");
  Gauges& left_out = AddGauge("heddle_nodes_left_out", "NodeTopologies that could not be read");
};

Metrics::Metrics() : series_(std::make_unique<Series>()) {}
Metrics::~Metrics() = default;

void Metrics::Reconciled(std::string_view reconciler, std::string_view result) {
  series_->reconciles.Add({{"reconciler", std::string(reconciler)}, {"result", std::string(result)}})
      .Increment();
}

void Metrics::Wrote(std::string_view reconciler, int writes) {
  series_->writes.Add({{"reconciler", std::string(reconciler)}}).Increment(writes);
}

void Metrics::Leading(bool leading) {
  series_->leading.Add({}).Set(leading ? 1 : 0);
}

void Metrics::QueueDepth(std::size_t ready) {
  series_->queue.Add({}).Set(static_cast<double>(ready));
}

void Metrics::Assembled(const std::map<std::string, topology::Fabric>& fabrics, std::size_t stale,
                        std::size_t left_out) {
  for (const auto& [name, fabric] : fabrics) {
    const prometheus::Labels labels{{"fabric", name}};
    series_->nodes.Add(labels).Set(static_cast<double>(fabric.nodes.size()));
    series_->gpus.Add(labels).Set(fabric.gpu_count());
    series_->faults.Add(labels).Set(static_cast<double>(std::count_if(
        fabric.faults.begin(), fabric.faults.end(), [](const auto& fault) { return !fault.ambiguous; })));
  }
  series_->stale.Add({}).Set(static_cast<double>(stale));
  series_->left_out.Add({}).Set(static_cast<double>(left_out));
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace heddle::operators
