#pragma once

#include <spdlog/spdlog.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "crds/newer_spec.h"
#include "operator/policies.h"
#include "operator/specs_ahead.h"
#include "operator/view.h"

namespace heddle::operators {

// An object for whoever goes by its spec. A status that cannot be read, as of a newer operator, is no reason to leave
// its spec alone: it is ours, and written anew it can be read.
template <class Policy>
base::Result<Policy> ReadBySpec(const kube::Json& object, base::Result<Policy> (*parse)(const kube::Json&)) {
  auto policy = parse(object);
  if (policy || !object.contains("status")) return policy;
  kube::Json without = object;
  without.erase("status");
  auto by_spec = parse(without);
  return by_spec ? by_spec : policy;
}

// One of them; nothing: it cannot be read, and is among the unreadable.
template <class Policy>
std::optional<Policy> ReadOne(const kube::ObjectPtr& object, std::string_view kind,
                              base::Result<Policy> (*parse)(const kube::Json&), Policies<Policy>& policies) {
  auto policy = ReadBySpec(*object, parse);
  if (policy) return *std::move(policy);
  spdlog::warn("Cannot read kind={} name={} error=\"{}\"", kind, kube::Name(*object), policy.error().message);
  policies.unreadable.insert_or_assign(kube::Name(*object), Unreadable{object, policy.error()});
  return std::nullopt;
}

template <class Policy>
Policies<Policy> ReadPolicies(const View& view, std::string_view kind,
                              base::Result<Policy> (*parse)(const kube::Json&)) {
  Policies<Policy> policies;
  for (const kube::ObjectPtr& object : view.List()) {
    if (auto policy = ReadOne(object, kind, parse, policies)) policies.read.push_back(*std::move(policy));
  }
  return policies;
}

// ReadPolicies for who looks again and again: an object is read once for as long as the view has the same one. Hundreds
// of switches take longer to be read than all of their cables to be compared.
// Thread rule: one owner.
template <class Policy>
class KeptPolicies {
 public:
  // Of this view, as it is now; until the next call.
  const Policies<Policy>& Read(const View& view, std::string_view kind,
                               base::Result<Policy> (*parse)(const kube::Json&)) {
    std::map<const kube::Json*, std::size_t> known;
    for (std::size_t i = 0; i < objects_.size(); ++i) known.emplace(objects_[i].get(), i);
    Policies<Policy> policies;
    std::vector<kube::ObjectPtr> objects;
    for (const kube::ObjectPtr& object : view.List()) {
      if (const auto before = known.find(object.get()); before != known.end()) {
        policies.read.push_back(std::move(policies_.read[before->second]));
      } else if (auto policy = ReadOne(object, kind, parse, policies)) {
        policies.read.push_back(*std::move(policy));
      } else {
        continue;
      }
      objects.push_back(object);
    }
    policies_ = std::move(policies);
    objects_ = std::move(objects);
    return policies_;
  }

 private:
  Policies<Policy> policies_;
  std::vector<kube::ObjectPtr> objects_;  // of policies_.read, in its order
};

// What else an object says whose spec cannot be read; without its status where that cannot be read either. `any_spec`:
// one of the kind that can be. Nothing: nothing of it can be read.
template <class Policy>
std::optional<Policy> KnownOf(const Unreadable& one, base::Result<Policy> (*parse)(const kube::Json&),
                              const kube::Json& any_spec) {
  kube::Json rest = *one.object;
  rest["spec"] = any_spec;
  auto known = ReadBySpec(rest, parse);
  if (!known) return std::nullopt;
  return *std::move(known);
}

// All nodes as some policies see them: a Node with its NodeTopology. Node is a struct with `name`, `labels` (of the
// Node; where it has such a member) and whatever else the policies look at.
template <class Node>
class PolicyNodes {
 public:
  // `take(node, topology)` fills in what the NodeTopology says; only what changed since the last look is taken
  // apart. Left out are those that cannot be read (unread() has them), that go, or whose Node is gone. Of a spec that a
  // newer operator wrote it is what can be read: left out, what that one said would stay there for good. `ahead`: what
  // we wrote ourselves stands there already, whatever `topologies` shows.
  template <class Take>
  std::vector<Node> Read(const View& nodes, const View& topologies, SpecsAhead& ahead,
                         base::MonotonicTime now, Take take) {
    std::map<std::string, Known> known;
    std::vector<Node> all;
    unread_.clear();
    for (const kube::ObjectPtr& object : topologies.List()) {
      const std::string name = kube::Name(*object);
      const auto before = known_.find(name);
      const std::optional<kube::Json> ours = ahead.Over(*object, now);
      Known one;
      if (before != known_.end() && before->second.object == object && !before->second.behind && !ours) {
        one = std::move(before->second);
      } else {
        one.object = object;
        one.behind = ours.has_value();
        auto topology = crds::NodeTopologyOfAnySpec(ours ? *ours : *object);
        if (!topology) {
          if (kube::Find(*object, {"metadata", "deletionTimestamp"}) == nullptr)
            one.unread = topology.error().message;
        } else if (!topology->deleted_at) {
          one.readable = true;
          one.node.name = name;
          take(one.node, *std::move(topology));
        }
      }
      if (const kube::ObjectPtr node = one.unread.empty() ? nullptr : nodes.Get({"", name}); node != nullptr)
        unread_.push_back({name, kube::Labels(*node), one.unread});
      if (one.readable) {
        const kube::ObjectPtr node = nodes.Get({"", name});
        if constexpr (kHasLabels) {
          if (node != one.labelled)
            one.node.labels = node == nullptr ? std::map<std::string, std::string>{} : kube::Labels(*node);
          one.labelled = node;
        }
        // Of a Node that is gone the object goes too: no writes on its way.
        if (node != nullptr) all.push_back(one.node);
      }
      known.emplace(name, std::move(one));
    }
    known_ = std::move(known);
    return all;
  }

  // Nodes that are there and whose NodeTopologies the last look could not read, by name.
  const std::vector<UnreadNode>& unread() const { return unread_; }

  // Of the NodeTopology that the last look found.
  std::string UidOf(const std::string& name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? "" : kube::Uid(*found->second.object);
  }

 private:
  static constexpr bool kHasLabels = requires(Node & node) { node.labels; };

  struct Known {
    kube::ObjectPtr object;
    kube::ObjectPtr labelled;  // the Node that `node` has its labels of
    Node node;
    bool readable = false;
    std::string unread;   // why it cannot be read
    bool behind = false;  // `node` says what we wrote, and `object` does not yet
  };
  std::map<std::string, Known> known_;  // by name
  std::vector<UnreadNode> unread_;
};

}  // namespace heddle::operators
