#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "extender/snapshot.h"

namespace heddle::extender {

// A planned pod that failed, or went without a grace period: nothing foretold it, unlike the end of a pod that is being
// deleted. kube-scheduler counts its GPUs as free at once and tries who waits for some, and its slot is reserved only
// in the next snapshot.
struct SlotLeft {
  std::string pod;            // "ns/name"
  std::string ns, owner_uid;  // of its gang, as in Hold
  friend bool operator==(const SlotLeft&, const SlotLeft&) = default;
};
using SlotsLeftByNode = std::map<std::string, std::vector<SlotLeft>, std::less<>>;

// The first of that node whose gang stands, so that another pod comes in its place; null = there is none.
const SlotLeft* FindLeft(const SlotsLeftByNode& left, std::string_view node, const Snapshot& snapshot);

// Those since the pods of the published snapshot were read. Thread rule: any thread.
class SlotsLeft {
 public:
  void Add(const PodFacts& pod);  // as it was while it held its node's GPUs
  // What a snapshot knows whose pods are read from now on.
  std::uint64_t Number() const;
  // That snapshot is published.
  void Forget(std::uint64_t number);
  // Never null. To be read before the snapshot that it is held beside, or one between the two would be missed.
  std::shared_ptr<const SlotsLeftByNode> current() const;

 private:
  struct Numbered {
    std::uint64_t number = 0;
    std::string node;
    SlotLeft slot;
  };
  mutable std::mutex mutex_;
  std::uint64_t number_ = 0;  // of the last
  std::vector<Numbered> all_;
  // Made when it is asked for: many pods may fail in one moment. Null = all_ has changed since.
  mutable std::shared_ptr<const SlotsLeftByNode> shown_;
};

}  // namespace heddle::extender
