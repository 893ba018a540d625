#include "extender/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace heddle::extender {
namespace {

using Seconds = std::chrono::duration<double>;

const prometheus::Histogram::BucketBoundaries kBuckets{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                                       0.1,    0.3,    1,     3,     10};

auto& Counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
auto& Gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}
auto& Histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& verbs = Counters(
      registry, "heddle_extender_requests_total", "Requests of the scheduler by verb and HTTP status");
  prometheus::Family<prometheus::Histogram>& verb_seconds = Histograms(
      registry, "heddle_extender_request_seconds", "Time from a request's last byte to its answer");
  prometheus::Family<prometheus::Counter>& plans =
      Counters(registry, "heddle_extender_plans_total", "Plannings of gangs by outcome");
  prometheus::Histogram& plan_seconds =
      Histograms(registry, "heddle_extender_plan_seconds", "Time that planning a gang took")
          .Add({}, kBuckets);
  prometheus::Family<prometheus::Counter>& refusals =
      Counters(registry, "heddle_extender_refusals_total", "Refusals of gangs by reason");
  prometheus::Counter& released =
      Counters(registry, "heddle_extender_pods_released_total", "Pods pinned and let go").Add({});
  prometheus::Family<prometheus::Counter>& failures = Counters(
      registry, "heddle_extender_write_failures_total", "Writes to the API server that failed, by kind");
  prometheus::Family<prometheus::Counter>& observed =
      Counters(registry, "heddle_extender_observed_gangs_total",
               "Gangs that mode observe priced, by what Heddle would have done");
  prometheus::Family<prometheus::Counter>& observed_edges =
      Counters(registry, "heddle_extender_observed_dp_edges_total",
               "Data-parallel edges that leave NVLink, of observed gangs that can be compared, by who placed "
               "and whether "
               "they cross leaves");
  prometheus::Family<prometheus::Counter>& observed_seconds = Counters(
      registry, "heddle_extender_observed_step_seconds_total",
      "Predicted communication of a step, summed over observed gangs that can be compared, by who placed");
  prometheus::Gauge& leading =
      Gauges(registry, "heddle_extender_leading", "1 while this process plans gangs");
  prometheus::Gauge& waiting =
      Gauges(registry, "heddle_extender_gangs_waiting", "Complete gangs without a plan");
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {}
Metrics::~Metrics() = default;

void Metrics::Verb(const std::string& verb, int status, std::chrono::nanoseconds took) {
  families_->verbs.Add({{"verb", verb}, {"status", std::to_string(status)}}).Increment();
  families_->verb_seconds.Add({{"verb", verb}}, kBuckets).Observe(Seconds(took).count());
}
void Metrics::Planned(bool found, std::chrono::nanoseconds took) {
  families_->plans.Add({{"outcome", found ? "planned" : "refused"}}).Increment();
  families_->plan_seconds.Observe(Seconds(took).count());
}
void Metrics::Refused(const std::string& reason) {
  families_->refusals.Add({{"reason", reason}}).Increment();
}
void Metrics::Released(int pods) {
  families_->released.Increment(pods);
}
void Metrics::WriteFailed(const std::string& code) {
  families_->failures.Add({{"code", code}}).Increment();
}
void Metrics::Leading(bool leading) {
  families_->leading.Set(leading ? 1 : 0);
}
void Metrics::Waiting(int gangs) {
  families_->waiting.Set(gangs);
}

void Metrics::Observed(const placement::Quality& cluster, const std::optional<placement::Quality>& heddle) {
  families_->observed.Add({{"heddle", heddle ? "places" : "waits"}}).Increment();
  if (!heddle) return;
  constexpr auto kDp = std::size_t(placement::Axis::kDp);
  const auto add = [this](const char* by, const placement::Quality& quality) {
    const double crossing = double(quality.leaf_crossings[kDp]);
    families_->observed_edges.Add({{"by", by}, {"crosses", "true"}}).Increment(crossing);
    families_->observed_edges.Add({{"by", by}, {"crosses", "false"}})
        .Increment(double(quality.edges[kDp]) - crossing);
    families_->observed_seconds.Add({{"by", by}}).Increment(double(quality.step_micros) / 1e6);
  };
  add("cluster", cluster);
  add("heddle", *heddle);
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace heddle::extender
