#include "nodeagent/publish/publisher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crds/keys.h"
#include "nodeagent/health/conditions.h"
#include "nodeagent/publish/report.h"

namespace heddle::nodeagent {
namespace {

using base::Code;
using kube::Json;

// Congestion begins on all of a job's nodes at once, and nobody waits to hear of it: alone it waits so many times as
// long as another change.
constexpr int kCongestionWaits = 6;

const Json& StatusOf(const Json& object) {
  static const Json kNone = Json::object();
  const Json* status = kube::Find(object, {"status"});
  return status == nullptr ? kNone : *status;
}

// What a status says, without the times at which it was said.
Json Said(Json status) {
  if (!status.is_object()) return status;
  status.erase("observedAt");
  const auto conditions = status.find("conditions");
  if (conditions == status.end() || !conditions->is_array()) return status;
  for (Json& condition : *conditions) {
    if (condition.is_object()) condition.erase("lastTransitionTime");
  }
  return status;
}

kube::ReflectorOptions WatchOf(const PublisherOptions& options) {
  kube::ReflectorOptions watch;
  watch.field_selector = "metadata.name=" + options.node;
  watch.log = options.log;
  return watch;
}

bool SamePorts(const topology::Nic& a, const topology::Nic& b) {
  const auto same = [](const topology::NicPort& one, const topology::NicPort& other) {
    return one.number == other.number && one.state == other.state && one.fault == other.fault &&
           one.usable_gbps == other.usable_gbps;
  };
  return a.name == b.name && std::equal(a.ports.begin(), a.ports.end(), b.ports.begin(), b.ports.end(), same);
}

// What to do about an error, for the log.
std::string_view Advice(Code code) {
  switch (code) {
    case Code::kForbidden:
      return "; give this agent's service account update on nodetopologies/status";
    case Code::kUnauthorized:
      return "; check the agent's token or kubeconfig";
    case Code::kInvalid:
      return "; the CRD is of another version than this agent: install the chart of this version";
    default:
      return "; trying again";
  }
}

}  // namespace

const kube::Resource& NodeTopologies() {
  static const kube::Resource resource = kube::CustomResource(
      std::string(crds::keys::kGroup), std::string(crds::keys::kVersion),
      std::string(crds::keys::kNodeTopology.plural), std::string(crds::keys::kNodeTopology.kind), false);
  return resource;
}

bool HealthDiffers(const topology::Node& before, const topology::Node& now) {
  const auto same_gpu = [](const topology::Gpu& one, const topology::Gpu& other) {
    return one.index == other.index && one.healthy == other.healthy;
  };
  return !std::equal(before.nics.begin(), before.nics.end(), now.nics.begin(), now.nics.end(), SamePorts) ||
         !std::equal(before.gpus.begin(), before.gpus.end(), now.gpus.begin(), now.gpus.end(), same_gpu) ||
         before.nvlink.exceptions != now.nvlink.exceptions || before.nvlink_domain != now.nvlink_domain;
}

Publisher::Publisher(kube::Client& client, base::Clock& clock, base::Random random, PublisherOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      queue_(clock, {std::chrono::milliseconds(500), options_.max_back_off}),
      random_(random),
      urgent_left_(options_.urgent_burst),
      first_at_(clock.Now() + random_.Jitter(options_.jitter + std::chrono::nanoseconds(1))),
      reflector_(client, clock, random_.Fork(), NodeTopologies(), [this] {
        kube::ReflectorOptions watch = WatchOf(options_);
        watch.on_change = [this](kube::ChangeType type, const kube::ObjectKey&, const kube::ObjectPtr&,
                                 const kube::ObjectPtr& current) { ObjectChanged(type, current); };
        return watch;
      }()) {}

void Publisher::Offer(const Observation& observation) {
  const std::lock_guard lock(mutex_);
  // First what a node at rest offers every few seconds: the conditions, a text for each, are not made for that.
  if (wanted_ && *wanted_ == observation) return;
  const bool same =
      wanted_ && wanted_->node == observation.node && ConditionsOf(*wanted_) == ConditionsOf(observation);
  if (same && wanted_->congestion == observation.congestion) {
    wanted_ = observation;
    return;
  }
  const bool urgent = wanted_ && HealthDiffers(wanted_->node, observation.node) && TakeUrgent();
  wanted_ = observation;
  published_ = false;
  const int times = same && settled_ ? kCongestionWaits : 1;
  queue_.AddAfter(options_.node, urgent ? UrgentWait() : times * Wait());
}

std::chrono::nanoseconds Publisher::UrgentWait() {
  constexpr std::chrono::nanoseconds kAny{1};
  return random_.Jitter(std::min(options_.jitter, options_.urgent_jitter) + kAny);
}

std::chrono::nanoseconds Publisher::Wait() {
  const std::chrono::nanoseconds before_first = first_at_ - clock_.Now();
  if (!settled_) return std::max(before_first, std::chrono::nanoseconds(0));
  return random_.Jitter(options_.jitter + std::chrono::nanoseconds(1));
}

bool Publisher::TakeUrgent() {
  const base::MonotonicTime now = clock_.Now();
  urgent_left_ += double((now - urgent_at_).count()) / double(options_.urgent_refill.count());
  urgent_left_ = std::min(urgent_left_, double(options_.urgent_burst));
  urgent_at_ = now;
  if (urgent_left_ < 1) return false;
  urgent_left_ -= 1;
  return true;
}

template <class News>
void Publisher::Take(std::optional<News>& last, const News& news) {
  const std::lock_guard lock(mutex_);
  if (last == news) return;
  last = news;
  published_ = false;
  queue_.AddAfter(options_.node, Wait());
}

void Publisher::Offer(const GrantReadings& grants) {
  Take(grants_, grants);
}

void Publisher::Offer(const DeviceNews& devices) {
  Take(devices_, devices);
}

void Publisher::Offer(const LosslessReadings& lossless) {
  const std::lock_guard lock(mutex_);
  if (lossless_ == lossless) return;
  const bool urgent =
      (lossless_ ? lossless_->withdrawn : decltype(lossless.withdrawn)()) != lossless.withdrawn;
  lossless_ = lossless;
  published_ = false;
  queue_.AddAfter(options_.node, urgent && settled_ && TakeUrgent() ? UrgentWait() : Wait());
}

void Publisher::Stuck(const std::vector<StuckPass>& passes) {
  const std::lock_guard lock(mutex_);
  if (stuck_ == passes) return;
  stuck_ = passes;
  published_ = false;
  queue_.AddAfter(options_.node, Wait());
}

void Publisher::Watch(std::stop_token stop) {
  if (!clock_.SleepFor(std::max(first_at_ - clock_.Now(), std::chrono::nanoseconds(0)), stop)) return;
  reflector_.Run(std::move(stop));
}

void Publisher::ObjectChanged(kube::ChangeType type, const kube::ObjectPtr& current) {
  if (type == kube::ChangeType::kDeleted || current == nullptr || kube::Name(*current) != options_.node)
    return;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = !std::exchange(seen_object_, true);
  }
  if (first && options_.on_object) {
    const auto owner = kube::ControllerOwner(*current);
    options_.on_object(owner && owner->kind == "Node" ? owner : std::nullopt, *current);
  }
  if (options_.on_change) options_.on_change(*current);
  // Only now: what they make others offer belongs in the same write.
  const std::lock_guard lock(mutex_);
  told_ = true;
  queue_.AddAfter(options_.node, Wait());
}

void Publisher::Run(std::stop_token stop) {
  while (const auto key = queue_.Get(stop)) Handle(*key, stop);
}

bool Publisher::RunOnce(std::stop_token stop) {
  const auto key = queue_.TryGet();
  if (key) Handle(*key, std::move(stop));
  return key.has_value();
}

void Publisher::Handle(const std::string& key, std::stop_token stop) {
  if (Reconcile(std::move(stop)) == Outcome::kRetry) {
    queue_.AddRateLimited(key);
  } else {
    queue_.Forget(key);
  }
  queue_.Done(key);
}

Publisher::Outcome Publisher::Reconcile(std::stop_token stop) {
  std::optional<Observation> wanted;
  std::optional<GrantReadings> grants;
  std::optional<DeviceNews> devices;
  std::optional<LosslessReadings> lossless;
  std::vector<StuckPass> stuck;
  bool told = false;
  {
    const std::lock_guard lock(mutex_);
    told = told_;
    wanted = wanted_;
    grants = grants_;
    devices = devices_;
    lossless = lossless_;
    stuck = stuck_;
  }
  const kube::ObjectPtr object = Current();
  if (!wanted && stuck.empty()) return Outcome::kDone;
  if (object == nullptr) {
    // The watch wakes us when it comes.
    Say(fmt::format("Waiting for the operator to make the NodeTopology node={}", options_.node));
    return Outcome::kDone;
  }
  // The watch's store has it before those who make devices of its spec were told: that they were wakes us.
  if (!told) return Outcome::kDone;
  const auto current = crds::OwnNodeTopologyFromJson(*object);
  if (!current) {
    Say(fmt::format("Could not read the NodeTopology node={} error=\"{}\"", options_.node,
                    current.error().message));
    return Outcome::kRetry;
  }
  // A condition alone is no status: without one, silence and /readyz must do.
  if (!wanted && !current->has_status) return Outcome::kDone;
  crds::NodeTopology next = current->object;
  if (wanted)
    next = Report(current->object, *wanted, clock_.WallNow(), grants ? &*grants : nullptr,
                  devices ? &*devices : nullptr, lossless ? &*lossless : nullptr, current->not_understood);
  if (!stuck.empty()) ReportStuck(current->object, stuck, clock_.WallNow(), next);
  const Json wanted_status = Said(StatusOf(crds::ToJson(next)));
  {
    const std::lock_guard lock(mutex_);
    const Json& have = StatusOf(*object);
    published_ = Said(have) == wanted_status || (sent_ == wanted_status && stored_ == have);
    settled_ = settled_ || published_;
    if (published_) return Outcome::kDone;
  }
  return Write(next, wanted_status, std::move(stop));
}

kube::ObjectPtr Publisher::Current() const {
  kube::ObjectPtr watched = reflector_.store().Get({"", options_.node});
  const std::lock_guard lock(mutex_);
  const bool behind =
      watched != nullptr && written_ != nullptr && kube::ResourceVersion(*watched) == written_over_;
  return behind ? written_ : watched;
}

Publisher::Outcome Publisher::Write(const crds::NodeTopology& object, const Json& wanted,
                                    std::stop_token stop) {
  const auto written = client_.UpdateStatus(NodeTopologies(), crds::ToJson(object), std::move(stop));
  if (options_.on_write) options_.on_write(written.has_value());
  if (written) {
    const std::lock_guard lock(mutex_);
    sent_ = wanted;
    stored_ = StatusOf(*written);
    written_ = std::make_shared<const Json>(*written);
    written_over_ = object.resource_version;
    ++writes_;
    published_ = settled_ = true;
    last_line_.clear();
    if (options_.log)
      options_.log(fmt::format("Published node={} hash={}", options_.node, object.status.hash));
    return Outcome::kDone;
  }
  const base::Error& error = written.error();
  // Gone or changed under us: the watch brings what is there now, and the retry finds it.
  if (error.code != Code::kNotFound && error.code != Code::kConflict && error.code != Code::kCancelled) {
    Say(fmt::format("Could not publish node={} error=\"{}\"{}", options_.node, error.message,
                    Advice(error.code)));
  }
  return Outcome::kRetry;
}

void Publisher::Say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (line == std::exchange(last_line_, line) || !options_.log) return;
  options_.log(line);
}

bool Publisher::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

std::uint64_t Publisher::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

}  // namespace heddle::nodeagent
