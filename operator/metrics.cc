#include "operator/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <mutex>
#include <utility>

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

  // What stands on the cluster, as the leader sees it.
  void Stand(Gauges& family, const prometheus::Labels& labels, double value) {
    const std::lock_guard lock(mutex);
    prometheus::Gauge*& gauge = standing[{&family, labels}];
    if (gauge == nullptr) gauge = &family.Add(labels);
    gauge->Set(value);
  }
  template <class Gone>
  void Forget(const Gone& gone, const Gauges* only = nullptr) {
    const std::lock_guard lock(mutex);
    for (auto it = standing.begin(); it != standing.end();) {
      const auto& [family, labels] = it->first;
      if ((only != nullptr && family != only) || !gone(labels)) {
        ++it;
        continue;
      }
      family->Remove(it->second);
      it = standing.erase(it);
    }
  }

  std::mutex mutex;
  std::map<std::pair<Gauges*, prometheus::Labels>, prometheus::Gauge*> standing;
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
  Gauges& switches = AddGauge("heddle_switches", "FabricSwitches, by whether they answer");
  Gauges& cables = AddGauge(
      "heddle_cables", "Cables to and between switches that are asked, by what both of their ends come to");
  Gauges& ufms = AddGauge("heddle_ufm_answers", "UFMs that Fabrics name: 1 = it answers");
  Gauges& ufm_ports = AddGauge("heddle_ufm_ports_counted", "Ports of switches that a UFM counts");
  Gauges& suspects = AddGauge("heddle_fabric_suspects",
                              "Cables, hosts and leaves that are suspected, by the gravest symptom");
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
  // Whoever leads now says what stands; the last that this process saw would be an alert that nothing ends.
  if (!leading) series_->Forget([](const auto&) { return true; });
}

void Metrics::QueueDepth(std::size_t ready) {
  series_->queue.Add({}).Set(static_cast<double>(ready));
}

void Metrics::Assembled(const std::map<std::string, topology::Fabric>& fabrics, std::size_t stale,
                        std::size_t left_out) {
  for (const auto& [name, fabric] : fabrics) {
    const prometheus::Labels labels{{"fabric", name}};
    series_->Stand(series_->nodes, labels, static_cast<double>(fabric.nodes.size()));
    series_->Stand(series_->gpus, labels, fabric.gpu_count());
    series_->Stand(series_->faults, labels,
                   static_cast<double>(std::count_if(fabric.faults.begin(), fabric.faults.end(),
                                                     [](const auto& fault) { return !fault.ambiguous; })));
  }
  // A Fabric's UFM is asked before any node is part of it: Ufms says when that ends.
  for (const Series::Gauges* family : {&series_->nodes, &series_->gpus, &series_->faults, &series_->suspects})
    series_->Forget([&](const auto& labels) { return !fabrics.contains(labels.at("fabric")); }, family);
  series_->Stand(series_->stale, {}, static_cast<double>(stale));
  series_->Stand(series_->left_out, {}, static_cast<double>(left_out));
}

void Metrics::Switches(const SwitchAnswers& answers, const SwitchVerdicts& verdicts) {
  int answering = 0;
  for (const auto& [name, answer] : answers) answering += answer.trouble || answer.connecting ? 0 : 1;
  series_->Stand(series_->switches, {{"answers", "true"}}, answering);
  series_->Stand(series_->switches, {{"answers", "false"}}, double(verdicts.statuses.size()) - answering);
  crds::CableCounts all;
  for (const auto& [node, verdict] : verdicts.nodes) {
    const crds::CableCounts& counts = verdict->counts;
    all.lossless += counts.lossless;
    all.contradicting += counts.contradicting;
    all.unproved += counts.unproved;
  }
  // No node has these.
  for (const switches::SwitchLink& link : verdicts.between) all.Add(link.outcome.verdict);
  series_->Stand(series_->cables, {{"verdict", "Lossless"}}, all.lossless);
  series_->Stand(series_->cables, {{"verdict", "Contradiction"}}, all.contradicting);
  series_->Stand(series_->cables, {{"verdict", "Unproved"}}, all.unproved);
}

void Metrics::Ufms(const std::map<std::string, UfmAnswer>& answers) {
  for (const auto& [fabric, answer] : answers) {
    series_->Stand(series_->ufms, {{"fabric", fabric}}, answer.trouble || answer.connecting ? 0 : 1);
    series_->Stand(series_->ufm_ports, {{"fabric", fabric}}, answer.counting.ports);
  }
  for (const Series::Gauges* family : {&series_->ufms, &series_->ufm_ports})
    series_->Forget([&](const auto& labels) { return !answers.contains(labels.at("fabric")); }, family);
}

void Metrics::Suspects(const std::string& fabric, const std::vector<topology::Suspect>& suspects) {
  std::map<std::string_view, int> counts;
  for (int i = 0; i <= int(topology::Symptom::kDrops); ++i)
    counts[topology::SymptomName(topology::Symptom(i))] = 0;
  for (const topology::Suspect& suspect : suspects) ++counts[topology::SymptomName(suspect.symptom)];
  for (const auto& [symptom, count] : counts)
    series_->Stand(series_->suspects, {{"fabric", fabric}, {"symptom", std::string(symptom)}}, count);
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace heddle::operators
