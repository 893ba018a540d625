#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace heddle::gnmi {

// Whether the thread is inside somebody's callback.
inline thread_local int callbacks_here = 0;

// Between a call and its callbacks: once it is closed, none runs any more. The callbacks of one gate come one after the
// other by themselves.
class Gate {
 public:
  // Calls back, unless it is closed.
  template <class Callback>
  void Pass(Callback&& callback) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      inside_ = std::this_thread::get_id();
    }
    ++callbacks_here;
    std::forward<Callback>(callback)();
    --callbacks_here;
    const std::lock_guard lock(mutex_);
    inside_ = {};
    left_.notify_all();  // under the lock: who waits may destroy this
  }

  // Waits for the callback that runs, unless it is the one that calls this: then false, and what it holds must stay.
  bool Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    if (inside_ == std::this_thread::get_id()) return false;
    left_.wait(lock, [this] { return inside_ == std::thread::id(); });
    return true;
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::thread::id inside_;
  bool closed_ = false;
};

}  // namespace heddle::gnmi
