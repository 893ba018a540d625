#include "nodeagent/grants/grant_watch.h"

#include <string>
#include <utility>

namespace heddle::nodeagent {
namespace {

constexpr const char* kQuestion = "grants";

}  // namespace

GrantWatch::GrantWatch(GrantSource& source, base::Clock& clock, GrantWatchOptions options,
                       std::function<void(const GrantReadings&)> on_answer)
    : source_(source), options_(options), on_answer_(std::move(on_answer)), clock_(clock), queue_(clock) {
  queue_.Add(kQuestion);
}

void GrantWatch::Run(std::stop_token stop) {
  while (const auto key = queue_.Get(stop)) Ask(*key, stop);
}

bool GrantWatch::RunOnce(std::stop_token stop) {
  const auto key = queue_.TryGet();
  if (key) Ask(*key, std::move(stop));
  return key.has_value();
}

void GrantWatch::Wake() {
  queue_.AddAfter(kQuestion, options_.settle);
}

bool GrantWatch::Doubts(const GrantReadings& readings) {
  if (readings.state != GrantsState::kRead || !readings.containers.empty() || !granted_) {
    if (readings.state == GrantsState::kRead) {
      granted_ = !readings.containers.empty();
      doubted_since_.reset();
    }
    return false;
  }
  const base::MonotonicTime now = clock_.Now();
  if (!doubted_since_) doubted_since_ = now;
  if (now - *doubted_since_ < options_.disbelief) return true;
  granted_ = false;
  doubted_since_.reset();
  return false;
}

void GrantWatch::Ask(const std::string& key, std::stop_token stop) {
  const GrantReadings readings = source_.Read(stop);
  if (!stop.stop_requested() && Doubts(readings)) {
    answered_ = true;
    queue_.AddAfter(key, options_.doubt_interval);
    queue_.Done(key);
    return;
  }
  const bool answered = readings.state == GrantsState::kRead;
  // What a question came to that was broken off says nothing.
  if (!stop.stop_requested() && (answered || !std::exchange(answered_, false))) {
    answered_ = answered;
    on_answer_(readings);
  }
  queue_.AddAfter(key, options_.interval);
  queue_.Done(key);
}

}  // namespace heddle::nodeagent
