#include "kube/events.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cut_utf8.h"

namespace heddle::kube {
namespace {

using base::Code;

constexpr std::size_t kMaxNoteBytes = 1024;       // what the API server takes (core/validation events.go)
constexpr std::size_t kMaxNamePrefixBytes = 200;  // leaves room for the suffix under 253
constexpr std::size_t kMaxSeries = 4096;          // client-go's event cache size
constexpr std::chrono::minutes kSeriesLife{10};   // as client-go's aggregation interval
constexpr int kMaxBackOffShift = 6;               // 64 s
const std::string kWake = "send";

std::string Cut(std::string_view text) {
  if (text.size() <= kMaxNoteBytes) return std::string(text);
  constexpr std::string_view kMore = "…";
  return base::CutUtf8(text, kMaxNoteBytes - kMore.size()) + std::string(kMore);
}

std::string_view TypeName(Severity severity) {
  return severity == Severity::kNormal ? "Normal" : "Warning";
}

bool WorthRepeating(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kThrottled ||
         code == Code::kInternal;
}

}  // namespace

ObjectReference ReferenceTo(const Json& object) {
  return ObjectReference{StringAt(object, {"apiVersion"}), StringAt(object, {"kind"}), Namespace(object),
                         Name(object), Uid(object)};
}

EventRecorder::EventRecorder(Client& client, base::Clock& clock, base::Random random,
                             EventRecorderOptions options)
    : client_(client), clock_(clock), options_(std::move(options)), wake_(clock), random_(random) {}

void EventRecorder::Record(const ObjectReference& about, Severity severity, std::string_view reason,
                           std::string_view note) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= options_.max_queued || !Allow(about)) {
      ++dropped_;
      return;
    }
    queue_.push_back(Note{about, severity, std::string(reason), Cut(note), clock_.WallNow()});
  }
  wake_.Add(kWake);
}

// A token bucket for each object, under the lock.
bool EventRecorder::Allow(const ObjectReference& about) {
  const base::MonotonicTime now = clock_.Now();
  if (budgets_.size() >= kMaxSeries && !budgets_.contains(about)) budgets_.clear();
  auto [entry, fresh] = budgets_.try_emplace(about, Budget{double(options_.burst), now});
  Budget& budget = entry->second;
  budget.tokens += double((now - budget.at).count()) / double(options_.refill.count());
  budget.tokens = std::min(budget.tokens, double(options_.burst));
  budget.at = now;
  if (budget.tokens < 1) return false;
  budget.tokens -= 1;
  return true;
}

void EventRecorder::Run(std::stop_token stop) {
  while (const auto key = wake_.Get(stop)) {
    Flush(stop);
    wake_.Done(*key);
  }
}

void EventRecorder::Flush(std::stop_token stop) {
  while (const auto note = Take()) Send(*note, stop);
}

std::optional<EventRecorder::Note> EventRecorder::Take() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return std::nullopt;
  Note note = std::move(queue_.front());
  queue_.pop_front();
  return note;
}

std::uint64_t EventRecorder::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void EventRecorder::Send(const Note& note, const std::stop_token& stop) {
  const std::string id = fmt::format("{}|{}|{}|{}|{}|{}", note.about.kind, note.about.ns, note.about.name,
                                     note.about.uid, note.reason, note.text);
  if (series_.size() >= kMaxSeries && !series_.contains(id)) series_.clear();
  Series& series = series_[id];
  const base::MonotonicTime now = clock_.Now();
  if (series.count > 0 && now - series.last > kSeriesLife) series = {};
  for (int attempt = 1;; ++attempt) {
    auto sent = series.count > 0 ? Raise(series, note, stop) : Create(series, note, stop);
    if (sent) {
      series.last = now;
      return;
    }
    if (sent.error().code == Code::kNotFound && series.count > 0) {
      series = {};  // the event lived out its hour
      continue;
    }
    const bool last = options_.tries > 0 && attempt >= options_.tries;
    if (last || !WorthRepeating(sent.error().code) ||
        !clock_.SleepFor(std::chrono::seconds(1 << std::min(attempt, kMaxBackOffShift)), stop)) {
      if (options_.log) options_.log("Dropped an event: " + base::ToString(sent.error()));
      const std::lock_guard lock(mutex_);
      ++dropped_;
      return;
    }
  }
}

base::Status EventRecorder::Raise(Series& series, const Note& note, const std::stop_token& stop) {
  const Json patch{{"count", series.count + 1}, {"lastTimestamp", base::FormatTime(note.at)}};
  TRY(client_.Patch(kEvents, series.event, PatchType::kMerge, patch, {}, stop));
  ++series.count;
  return {};
}

base::Status EventRecorder::Create(Series& series, const Note& note, const std::stop_token& stop) {
  const std::string ns = note.about.ns.empty() ? "default" : note.about.ns;
  std::uint64_t suffix = 0;
  {
    const std::lock_guard lock(mutex_);
    suffix = random_.Next();
  }
  const ObjectKey key{ns, fmt::format("{}.{:016x}", note.about.name.substr(0, kMaxNamePrefixBytes), suffix)};
  Json event = NewObject(kEvents, key);
  event["involvedObject"] = {
      {"apiVersion", note.about.api_version}, {"kind", note.about.kind}, {"name", note.about.name}};
  if (!note.about.ns.empty()) event["involvedObject"]["namespace"] = note.about.ns;
  if (!note.about.uid.empty()) event["involvedObject"]["uid"] = note.about.uid;
  event["reason"] = note.reason;
  event["message"] = note.text;
  event["type"] = TypeName(note.severity);
  event["count"] = 1;
  event["firstTimestamp"] = base::FormatTime(note.at);
  event["lastTimestamp"] = base::FormatTime(note.at);
  event["source"] = {{"component", options_.component}, {"host", options_.instance}};
  event["reportingComponent"] = options_.component;
  event["reportingInstance"] = options_.instance;
  TRY(client_.Create(kEvents, event, stop));
  series.event = key;
  series.count = 1;
  return {};
}

}  // namespace heddle::kube
