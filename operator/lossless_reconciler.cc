#include "operator/lossless_reconciler.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "crds/keys.h"
#include "crds/node_topology.h"
#include "operator/resources.h"

namespace heddle::operators {
namespace {

constexpr std::chrono::nanoseconds kLeastInterval = std::chrono::seconds(10);

// The server is ahead of our cache, which is about to show it and brings the key back.
bool CacheIsBehind(const base::Error& error) {
  return error.code == base::Code::kNotFound || error.code == base::Code::kConflict;
}

// As it is written: what the schema cuts short is no difference that another write would mend.
kube::Json SpecOf(const std::string& node, const std::vector<crds::LosslessWish>& wishes) {
  crds::NodeTopology object;
  object.name = node;
  object.spec.lossless = wishes;
  return crds::SpecApplyJson(object).value("spec", kube::Json::object());
}

kube::Json StatusOf(const crds::LosslessPolicyStatus& status) {
  crds::LosslessPolicy object;
  object.status = status;
  return crds::StatusApplyJson(object).value("status", kube::Json::object());
}

void AddUp(Outcome& total, const Outcome& one) {
  total.writes += one.writes;
  if (one.again) total.again = total.again ? std::min(*total.again, *one.again) : *one.again;
}

}  // namespace

base::Result<Outcome> LosslessReconciler::Reconcile(const std::stop_token& stop) {
  const LosslessPolicies policies = ReadPolicies();
  const std::vector<LosslessNode> nodes = ReadNodes();
  const LosslessRollout rollout = DecideRollout(policies, nodes, clock_.WallNow());
  Outcome total;
  std::optional<base::Error> failed;
  const auto take = [&](const base::Result<Outcome>& one) {
    if (one) {
      AddUp(total, *one);
    } else if (!failed) {
      failed = one.error();
    }
  };
  for (const LosslessNode& node : nodes) {
    if (stop.stop_requested()) return total;
    const auto& wishes = rollout.wishes.at(node.name);
    if (wishes != node.wishes && SpecOf(node.name, wishes) != SpecOf(node.name, node.wishes))
      take(WriteWishes(node, wishes, stop));
  }
  for (const crds::LosslessPolicy& policy : policies.read) {
    const auto status = rollout.statuses.find(policy.name);
    if (status == rollout.statuses.end() || StatusOf(status->second) == StatusOf(policy.status)) continue;
    take(WriteStatus(policy, status->second, stop));
  }
  if (failed) return base::Fail(*failed);
  return total;
}

LosslessPolicies LosslessReconciler::ReadPolicies() const {
  LosslessPolicies policies;
  for (const kube::ObjectPtr& object : reads_.policies.List()) {
    auto policy = crds::LosslessPolicyFromJson(*object);
    if (policy) {
      policies.read.push_back(*std::move(policy));
    } else {
      spdlog::warn("Cannot read LosslessPolicy name={} error=\"{}\"", kube::Name(*object),
                   policy.error().message);
      policies.unreadable.insert(kube::Name(*object));
    }
  }
  return policies;
}

std::vector<LosslessNode> LosslessReconciler::ReadNodes() {
  std::map<std::string, Known> known;
  std::vector<LosslessNode> nodes;
  for (const kube::ObjectPtr& object : reads_.topologies.List()) {
    const std::string name = kube::Name(*object);
    const auto before = known_.find(name);
    Known one;
    if (before != known_.end() && before->second.object == object) {
      one = std::move(before->second);
    } else {
      one.object = object;
      if (auto topology = crds::NodeTopologyFromJson(*object); topology && !topology->deleted_at) {
        one.readable = true;
        one.node.name = name;
        one.node.node.nics = std::move(topology->status.node.nics);
        one.node.wishes = std::move(topology->spec.lossless);
        one.node.reports = std::move(topology->status.lossless);
      }
    }
    if (one.readable) {
      const kube::ObjectPtr node = reads_.nodes.Get({"", name});
      one.node.labels = node == nullptr ? std::map<std::string, std::string>{} : kube::Labels(*node);
      // Of a Node that is gone the object goes too: no writes on its way.
      if (node != nullptr) nodes.push_back(one.node);
    }
    known.emplace(name, std::move(one));
  }
  known_ = std::move(known);
  return nodes;
}

base::Result<Outcome> LosslessReconciler::WriteWishes(const LosslessNode& node,
                                                      const std::vector<crds::LosslessWish>& wishes,
                                                      const std::stop_token& stop) {
  const kube::Json spec = SpecOf(node.name, wishes);
  // null takes the list away. A merge patch, as the labels beside it are: an apply would fight with it.
  kube::Json patch{{"spec", {{"lossless", spec.value("lossless", kube::Json())}}}};
  if (const auto known = known_.find(node.name); known != known_.end())
    patch["metadata"]["uid"] = kube::Uid(*known->second.object);
  const auto patched =
      client_.Patch(kNodeTopologies, {"", node.name}, kube::PatchType::kMerge, patch, {}, stop);
  if (patched) {
    spdlog::info("Told NodeTopology its lossless settings node={} entries={}", node.name, wishes.size());
    return Outcome{.writes = 1};
  }
  if (CacheIsBehind(patched.error())) return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  return base::Fail(
      patched.error().In("write the lossless settings in the spec of NodeTopology " + node.name));
}

base::Result<Outcome> LosslessReconciler::WriteStatus(const crds::LosslessPolicy& policy,
                                                      const crds::LosslessPolicyStatus& status,
                                                      const std::stop_token& stop) {
  const base::MonotonicTime now = clock_.Now();
  const auto last = last_write_.find(policy.name);
  if (last != last_write_.end() && now - last->second < kLeastInterval)
    return Outcome{.again = last->second + kLeastInterval - now};
  last_write_[policy.name] = now;  // also when it fails: a server in trouble is not helped by more writes
  crds::LosslessPolicy wanted;
  wanted.name = policy.name;
  wanted.uid = policy.uid;
  wanted.status = status;
  const kube::ApplyOptions options{
      .field_manager = std::string(crds::keys::kOperatorManager), .force = true, .subresource = "status"};
  const auto applied = client_.Apply(kLosslessPolicies, crds::StatusApplyJson(wanted), options, stop);
  if (applied) {
    const auto* ready = crds::FindCondition(status.conditions, crds::kReady);
    spdlog::info("Wrote LosslessPolicy status name={} reason={} ports={} compliant={}", policy.name,
                 ready == nullptr ? "" : ready->reason, status.counts.ports, status.counts.compliant);
    return Outcome{.writes = 1};
  }
  if (CacheIsBehind(applied.error())) return Outcome{.writes = 1, .again = std::chrono::seconds(1)};
  return base::Fail(applied.error().In("write the status of LosslessPolicy " + policy.name));
}

}  // namespace heddle::operators
