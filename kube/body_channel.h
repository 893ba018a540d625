#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "kube/http.h"

namespace heddle::kube {

// Hands one answer from the network's threads to the thread that asked, with a bound on what lies between
// them. Thread rule: Put*, Finish and Fail from any thread; Wait* from the one that asked.
class BodyChannel {
 public:
  // The network's side. PutChunk returns false where the answer is not wanted any more. With more than the
  // bound waiting, the caller stops reading until `resume`, which is called once, from the asking thread.
  void PutHead(HttpResponse head);
  bool PutChunk(std::string chunk);
  bool Full(std::function<void()> resume);  // false: go on, resume is not kept
  void Finish();
  void Fail(base::Error error);

  // The asking side. Nothing means: not by the deadline, or stop.
  const HttpResponse* WaitForHead(base::MonotonicTime deadline, const std::stop_token& stop);
  enum class Next { kChunk, kEnd, kFailed, kTimeout };
  Next WaitForChunk(std::string& chunk, base::MonotonicTime deadline, const std::stop_token& stop);
  bool Abandon();  // whether the answer had come completely
  std::optional<base::Error> error() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<HttpResponse> head_;
  std::deque<std::string> chunks_;
  std::size_t queued_ = 0;
  std::function<void()> resume_;
  bool ended_ = false;
  bool abandoned_ = false;
  std::optional<base::Error> error_;
};

}  // namespace heddle::kube
