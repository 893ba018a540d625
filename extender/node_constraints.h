#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/object.h"

namespace heddle::extender {

struct Taint {
  std::string key, value, effect;
  friend bool operator==(const Taint&, const Taint&) = default;
};

// What a Node says that decides about pods, read once.
struct NodeFacts {
  std::string name;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  bool cordoned = false;
  bool ready = false;
  std::int64_t milli_cpu = 0, memory_bytes = 0, pods = 0;      // allocatable
  int gpus = 0;                                                // of all GPU resources together
  std::string gpu_resource;                                    // empty = none
  std::vector<std::pair<std::string, std::int64_t>> extended;  // the rest, sorted by name
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};
NodeFacts ReadNode(const kube::Json& node);

// A pod's own word on where it may run: nodeSelector, required node affinity with matchFields, tolerations.
// The same answer as kube-scheduler's NodeAffinity and TaintToleration plugins.
class PodConstraints {
 public:
  explicit PodConstraints(const kube::Json& pod);

  bool Admit(const NodeFacts& node) const;
  // All the nodes that Admit can accept, in any order, where their names alone confine the pod to them: so stands every
  // pod that was let go (release_patch.h), and then to ask thousands of others is time lost. Nothing = it may be any.
  const std::optional<std::vector<std::string>>& named() const { return named_; }
  // Equal for pods with equal constraints, so that a gang asks each node once.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  bool Tolerates(const Taint& taint) const;

  kube::Json selector_;     // object or null
  kube::Json required_;     // the NodeSelector, or null
  kube::Json tolerations_;  // array
  std::string fingerprint_;
  std::optional<std::vector<std::string>> named_;
};

}  // namespace heddle::extender
