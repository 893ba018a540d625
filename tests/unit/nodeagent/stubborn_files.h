#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"

namespace heddle::test {

// Another tree, whose reads hang from when it is told to until they are let go, as those of a NIC whose firmware does
// not answer. Whoever makes it hang lets go before the threads that read are joined.
class StubbornFileTree final : public base::FileTree {
 public:
  explicit StubbornFileTree(const base::FileTree& files) : files_(files) {}

  void Hang(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  // Whether somebody's read hangs.
  bool hanging() const {
    const std::lock_guard lock(mutex_);
    return hanging_ > 0;
  }

  base::Result<std::string> Read(std::string_view path) const override {
    Wait();
    return files_.Read(path);
  }
  base::Result<std::vector<std::string>> List(std::string_view path) const override {
    Wait();
    return files_.List(path);
  }
  base::Result<std::string> ReadLink(std::string_view path) const override {
    Wait();
    return files_.ReadLink(path);
  }

 private:
  void Wait() const {
    std::unique_lock lock(mutex_);
    ++hanging_;
    changed_.wait(lock, [this] { return !hangs_; });
    --hanging_;
  }

  const base::FileTree& files_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool hangs_ = false;
  mutable int hanging_ = 0;
};

}  // namespace heddle::test
