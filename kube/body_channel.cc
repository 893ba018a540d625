#include "kube/body_channel.h"

#include <utility>

namespace heddle::kube {
namespace {

// A few TCP windows: enough to keep a connection busy while a chunk is parsed.
constexpr std::size_t kMaxQueuedBytes = 1u << 20;

}  // namespace

void BodyChannel::PutHead(HttpResponse head) {
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  changed_.notify_all();
}

bool BodyChannel::PutChunk(std::string chunk) {
  const std::lock_guard lock(mutex_);
  if (abandoned_) return false;
  queued_ += chunk.size();
  chunks_.push_back(std::move(chunk));
  changed_.notify_all();
  return true;
}

bool BodyChannel::Full(std::function<void()> resume) {
  const std::lock_guard lock(mutex_);
  if (abandoned_ || queued_ <= kMaxQueuedBytes) return false;
  resume_ = std::move(resume);
  return true;
}

void BodyChannel::Finish() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void BodyChannel::Fail(base::Error error) {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

const HttpResponse* BodyChannel::WaitForHead(base::MonotonicTime deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, stop, deadline, [&] { return head_ || error_; });
  return head_ && !stop.stop_requested() ? &*head_ : nullptr;
}

BodyChannel::Next BodyChannel::WaitForChunk(std::string& chunk, base::MonotonicTime deadline,
                                            const std::stop_token& stop) {
  std::function<void()> resume;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, deadline, [&] { return ended_ || !chunks_.empty(); });
    if (stop.stop_requested()) return Next::kTimeout;
    // What came before a cut is still delivered: a watch's events count.
    if (chunks_.empty()) return error_ ? Next::kFailed : ended_ ? Next::kEnd : Next::kTimeout;
    chunk = std::move(chunks_.front());
    chunks_.pop_front();
    queued_ -= chunk.size();
    if (queued_ <= kMaxQueuedBytes / 2) resume = std::exchange(resume_, nullptr);
  }
  if (resume) resume();
  return Next::kChunk;
}

bool BodyChannel::Abandon() {
  std::function<void()> resume;
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    complete = ended_ && !error_;
    resume = std::exchange(resume_, nullptr);
  }
  if (resume) resume();
  return complete;
}

std::optional<base::Error> BodyChannel::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace heddle::kube
