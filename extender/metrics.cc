#include "extender/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>
#include <set>

#include "extender/milestones.h"

namespace heddle::extender {
namespace {

using Seconds = std::chrono::duration<double>;

const prometheus::Histogram::BucketBoundaries kBuckets{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                                       0.1,    0.3,    1,     3,     10};

// From what nobody notices to what somebody asks about the next day.
const prometheus::Histogram::BucketBoundaries kWaitBuckets{1,   2,   5,    10,   30,    60,   120,
                                                           300, 600, 1800, 3600, 14400, 86400};
// Communication of a step: 0.1 ms to half a minute.
const prometheus::Histogram::BucketBoundaries kStepBuckets{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                                           0.1,    0.3,    1,     3,     10,   30};

auto& Counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
auto& Gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}
auto& GaugeFamily(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
auto& Histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

// A gauge keeps the last value that it was given: what was ever shown and is no more gets 0.
void SetEach(prometheus::Family<prometheus::Gauge>& family, const char* label,
             const std::map<std::string, int>& counts, std::set<std::string>& shown) {
  for (const auto& [value, count] : counts) shown.insert(value);
  for (const std::string& value : shown) {
    const auto found = counts.find(value);
    family.Add({{label, value}}).Set(found == counts.end() ? 0 : found->second);
  }
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
  prometheus::Gauge& devices_differ =
      Gauges(registry, "heddle_extender_gangs_devices_differ",
             "Gangs with a pod that was given other GPUs, or a NIC of another rail, than its plan says");
  prometheus::Family<prometheus::Histogram>& until_planned = Histograms(
      registry, "heddle_extender_gang_plan_wait_seconds",
      "Seconds from all pods of a gang seen to its plan committed, by whether it was planned at once");
  prometheus::Family<prometheus::Histogram>& until_running =
      Histograms(registry, "heddle_extender_gang_start_seconds",
                 "Seconds from all pods of a gang seen to all of them on nodes, again after each loss of "
                 "pods, by whether it was "
                 "planned at once");
  prometheus::Family<prometheus::Histogram>& planned_step = Histograms(
      registry, "heddle_extender_planned_step_seconds",
      "Predicted communication of a training step in seconds, of plans as they are committed, by what for");
  prometheus::Family<prometheus::Counter>& planned_edges = Counters(
      registry, "heddle_extender_planned_edges_total",
      "Edges of groups that leave NVLink, of plans as they are committed, by axis and whether they cross "
      "leaves");
  prometheus::Family<prometheus::Gauge>& gangs =
      GaugeFamily(registry, "heddle_extender_gangs", "Gangs that have not ended, by state");
  prometheus::Family<prometheus::Gauge>& gpus = GaugeFamily(
      registry, "heddle_extender_gpus",
      "GPUs by state: free, reserved for pods that are on no node yet, bound to pods, unhealthy, or unusable "
      "with their node");
  prometheus::Family<prometheus::Gauge>& unusable_nodes =
      GaugeFamily(registry, "heddle_extender_unusable_nodes", "GPU nodes that no gang may use, by reason");
  prometheus::Gauge& fragmentation =
      Gauges(registry, "heddle_extender_fragmentation_ratio",
             "Free GPUs on partly taken nodes over all free GPUs, 0 to 1; 0 where none is free");
  prometheus::Gauge& whole_nodes =
      Gauges(registry, "heddle_extender_whole_nodes_free", "Usable nodes whose every healthy GPU is free");
  prometheus::Family<prometheus::Gauge>& whole_domains =
      GaugeFamily(registry, "heddle_extender_whole_domains_free",
                  "NVLink domains whose every healthy GPU is free, by their size in GPUs");
  prometheus::Family<prometheus::Gauge>& fit = GaugeFamily(
      registry, "heddle_extender_gangs_that_fit",
      "Gangs of that many whole nodes that fit beside each other now, each within one scalable unit");
  prometheus::Gauge& largest = Gauges(
      registry, "heddle_extender_largest_gang_nodes",
      "Whole free nodes of the scalable unit that has the most: the largest gang that crosses no unit");
  prometheus::Family<prometheus::Gauge>& watch_age = GaugeFamily(
      registry, "heddle_extender_watch_age_seconds",
      "Seconds since the API server last said anything of a resource: an event, a list or a bookmark");
  prometheus::Gauge& queue_depth =
      Gauges(registry, "heddle_extender_queue_depth", "Keys that wait to be worked on");
  prometheus::Gauge& reconciled = Gauges(registry, "heddle_extender_last_reconcile_timestamp_seconds",
                                         "Unix time of the last key that was worked off without an error");

  std::mutex mutex;
  // What was ever shown: reasons of unusable nodes, sizes of NVLink domains.
  std::set<std::string> words, sizes;
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

void Metrics::Moved(const crds::Gang& before, const crds::GangStatus& after, base::WallTime now) {
  const Milestones reached = MilestonesOf(before, after, now);
  const char* at_once = reached.at_once ? "true" : "false";
  if (reached.until_planned) {
    families_->until_planned.Add({{"at_once", at_once}}, kWaitBuckets)
        .Observe(double(reached.until_planned->count()));
  }
  if (reached.until_running) {
    families_->until_running.Add({{"at_once", at_once}}, kWaitBuckets)
        .Observe(double(reached.until_running->count()));
  }
  if (!reached.planned) return;
  families_->planned_step.Add({{"for", reached.repair ? "repair" : "start"}}, kStepBuckets)
      .Observe(double(reached.planned->step_micros) / 1e6);
  for (std::size_t axis = 0; axis < reached.planned->edges.size(); ++axis) {
    if (reached.planned->edges[axis] == 0) continue;
    const std::string name(placement::AxisName(placement::Axis(axis)));
    const double crossing = double(reached.planned->leaf_crossings[axis]);
    families_->planned_edges.Add({{"axis", name}, {"crosses", "true"}}).Increment(crossing);
    families_->planned_edges.Add({{"axis", name}, {"crosses", "false"}})
        .Increment(double(reached.planned->edges[axis]) - crossing);
  }
}

void Metrics::Gangs(const GangCount& gangs) {
  for (int state = 0; state < kGangStates; ++state) {
    families_->gangs.Add({{"state", std::string(GangStateName(GangState(state)))}})
        .Set(gangs[std::size_t(state)]);
  }
}

void Metrics::DevicesDiffer(int gangs) {
  families_->devices_differ.Set(gangs);
}

void Metrics::Stands(const Census& census) {
  const auto gpus = [this](const char* state, std::int64_t count) {
    families_->gpus.Add({{"state", state}}).Set(double(count));
  };
  gpus("free", census.free);
  gpus("reserved", census.reserved);
  gpus("bound", census.bound);
  gpus("unhealthy", census.unhealthy);
  gpus("unusable", census.unusable);
  families_->fragmentation.Set(census.free == 0 ? 0
                                                : double(census.free_on_shared_nodes) / double(census.free));
  families_->whole_nodes.Set(census.whole_nodes);
  families_->largest.Set(census.largest);
  for (int size = 0; size < Census::kSizes; ++size) {
    families_->fit.Add({{"nodes", std::to_string(1 << size)}}).Set(double(census.fit[std::size_t(size)]));
  }
  std::map<std::string, int> whole_domains;
  for (const auto& [domain_gpus, whole] : census.whole_domains) {
    whole_domains[std::to_string(domain_gpus)] = whole;
  }
  const std::lock_guard lock(families_->mutex);
  SetEach(families_->unusable_nodes, "reason", census.unusable_nodes, families_->words);
  SetEach(families_->whole_domains, "gpus", whole_domains, families_->sizes);
}

void Metrics::Heard(const std::string& resource, std::chrono::nanoseconds ago) {
  families_->watch_age.Add({{"resource", resource}}).Set(Seconds(ago).count());
}
void Metrics::QueueDepth(std::size_t keys) {
  families_->queue_depth.Set(double(keys));
}
void Metrics::Reconciled(base::WallTime now) {
  families_->reconciled.Set(std::chrono::duration<double>(now.time_since_epoch()).count());
}

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace heddle::extender
