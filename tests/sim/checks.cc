#include "tests/sim/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "crds/gpu_indexes.h"
#include "crds/node_topology.h"
#include "extender/compute_domain.h"
#include "extender/gang_key.h"
#include "extender/node_constraints.h"
#include "extender/pod_facts.h"
#include "extender/resources.h"
#include "tests/sim/job_controller.h"

namespace heddle::sim {

using kube::Json;

namespace {

// In more than the node.
bool SpecDiffers(const Json& one, const Json& other) {
  const auto says_more = [](const Json& more, const Json& than) {
    for (const auto& [name, value] : more.items()) {
      if (name == "nodeName") continue;
      const auto found = than.find(name);
      if (found == than.end() || *found != value) return true;
    }
    return false;
  };
  return says_more(one, other) || says_more(other, one);
}

}  // namespace

void Checks::Violate(std::string rule, std::string what) {
  constexpr std::size_t kMost = 20;
  if (violations_.size() >= kMost) return;
  simulation_.Say("BROKEN " + rule + ": " + what);
  violations_.push_back({std::move(rule), std::move(what), simulation_.now()});
}

void Checks::Changed(const kube::Resource& resource, const Json& before, const Json& after) {
  if (resource == kube::kPods) {
    PodChanged(before, after);
  } else if (resource == extender::kGangs) {
    GangChanged(before, after);
  } else if (resource == kube::kJobs) {
    JobChanged(after);
  } else if (resource == extender::kComputeDomains && !after.is_null()) {
    domains_.insert(kube::KeyOf(after).ToString());
  } else if (resource == extender::kNodeTopologies && !after.is_null()) {
    TakeGrants(after);
  } else if (resource == kube::kNodes && !after.is_null()) {
    room_[kube::Name(after)] = extender::ReadNode(after).gpus;
  }
}

void Checks::PodChanged(const Json& before, const Json& after) {
  if (after.is_null()) {
    claims_.erase(kube::Uid(before));
    return;
  }
  const extender::PodFacts pod = extender::ReadPod(after);
  Claim claim{.name = pod.key.name, .gang = pod.gang.owner_uid, .count = pod.demand.gpus, .live = pod.live()};
  if (const auto owner = kube::ControllerOwner(after)) owners_[pod.key.name] = owner->uid;
  if (pod.occupies()) claim.bound = pod.node;
  if (pod.plan && !pod.gated) {
    claim.told = true;
    begun_.insert(claim.gang);
    claim.planned = pod.plan->node;
    claim.plan_of = pod.plan->gang_uid;
    claim.gpus = pod.plan->gpus == 0 ? ~0u : pod.plan->gpus;
  }
  const auto known = claims_.find(pod.uid);
  const bool fresh = known == claims_.end();
  if (fresh) ++born_[claim.name];
  if (!fresh && !claim.bound.empty()) claim.given = known->second.given;
  const bool bound_now = !claim.bound.empty() && (fresh || known->second.bound != claim.bound);
  const bool told_now =
      claim.told && (fresh || !known->second.told || known->second.planned != claim.planned ||
                     known->second.gpus != claim.gpus);
  claims_[pod.uid] = claim;
  if (told_now) CheckPlan(after);
  if (told_now) CheckDomain(after);
  if (bound_now || told_now) CheckAgainst(pod.uid, claim, bound_now, told_now);
  if (bound_now) CheckCount(claim.bound);
  if (before.is_null() || !kube::ArrayAt(before, {"spec", "schedulingGates"}).empty()) return;
  if (SpecDiffers(before["spec"], after["spec"]))
    Violate("SpecStays", "the spec of pod " + pod.key.name + " has changed past its gates");
}

// A kubelet that had given a planned GPU away gives another, and once that is published it is what counts: the planned
// one is free when the pod that has it goes.
void Checks::TakeGrants(const Json& object) {
  const auto topology = crds::NodeTopologyFromJson(object);
  if (!topology) return;
  for (auto& [uid, claim] : claims_) {
    if (claim.bound != topology->name) continue;
    std::uint32_t given = 0;
    for (const crds::Grant& grant : topology->status.grants) {
      if (grant.pod_name != claim.name) continue;
      for (const auto& gpu : grant.gpus) given |= gpu.index >= 0 && gpu.index < 32 ? 1u << gpu.index : 0u;
    }
    if (given != 0) claim.given = given;
  }
}

void Checks::CheckAgainst(const std::string& uid, const Claim& mine, bool bound_now, bool told_now) {
  for (const auto& [other_uid, other] : claims_) {
    std::uint32_t theirs = other.given != 0 ? other.given : other.gpus;
    // Of one gang the kubelet gives a rank what another, which got others than its own, has left: it may cross rails, as
    // its Gang says (DevicesDiffer), and no GPU is used twice.
    if (mine.gang == other.gang) theirs &= other.gpus;
    if (other_uid == uid || !mine.told || !other.told || (mine.gpus & theirs) == 0) continue;
    const std::string shared = crds::FormatGpuIndexes(mine.gpus & theirs & 0xffu);
    if (bound_now && mine.bound == other.bound && mine.planned == mine.bound &&
        other.planned == other.bound) {
      Violate("NoGpuTwice", fmt::format("pods {} and {} are both on {} with GPU {}", mine.name, other.name,
                                        mine.bound, shared));
    }
    // A pod that was bound elsewhere, to a substitute, has given its planned place up.
    const auto stands = [](const Claim& claim) {
      return claim.bound.empty() || claim.bound == claim.planned;
    };
    // A write that was under way when somebody deleted its Gang may land as late as it likes: what it tells is void,
    // and filter lets nobody be bound by it, which NoGpuTwice holds it to.
    if (told_now && !gone_.contains(mine.plan_of) && mine.live && other.live && mine.gang != other.gang &&
        mine.planned == other.planned && stands(mine) && stands(other)) {
      Violate("NoOverlap", fmt::format("pods {} and {} were both told GPU {} of {}", mine.name, other.name,
                                       shared, mine.planned));
    }
  }
}

void Checks::CheckCount(const std::string& node) {
  int used = 0;
  for (const auto& [uid, claim] : claims_) used += claim.bound == node ? claim.count : 0;
  if (used > room_[node]) {
    Violate("NoGpuTwice", fmt::format("{} GPUs are in use on {}, which has {}", used, node, room_[node]));
  }
}

void Checks::CheckPlan(const Json& object) {
  const extender::PodFacts pod = extender::ReadPod(object);
  const auto plans = plans_.find({pod.plan->gang_uid, pod.plan->epoch});
  if (plans != plans_.end()) {
    for (const auto& rows : plans->second) {
      const auto rank = std::size_t(pod.plan->rank);
      if (rank >= rows.size() || rows[rank].node != pod.plan->node) continue;
      // A row of 0 is the whole set, which a pod is told by its indexes.
      if (rows[rank].gpus == 0 || rows[rank].gpus == pod.plan->gpus) return;
    }
  }
  Violate("PlanBeforePod",
          fmt::format("pod {} was told rank {} on {} by epoch {} of Gang {}, which says no such thing",
                      pod.key.name, pod.plan->rank, pod.plan->node, pod.plan->epoch, pod.plan->gang_uid));
}

void Checks::KeepSpares(std::map<std::string, std::string> domains, int spares) {
  nvlink_ = std::move(domains);
  spares_ = spares;
}

// Who has begun may be under repair, or be planned anew around what runs, and those may use them.
void Checks::CheckSpares(const crds::Gang& gang) {
  if (spares_ == 0 || begun_.contains(extender::KeyOfGang(gang).owner_uid)) return;
  std::map<std::string, int> nodes;
  for (const auto& [node, domain] : nvlink_) ++nodes[domain];
  std::set<std::string> used;
  for (const crds::PlacedPod& row : crds::ToRows(*gang.status.placement)) used.insert(row.node);
  for (const std::string& node : used) {
    const auto domain = nvlink_.find(node);
    if (domain == nvlink_.end() || --nodes[domain->second] >= spares_) continue;
    Violate("SparesStay",
            fmt::format("Gang {} is new and leaves no {} nodes of {}", gang.name, spares_, domain->second));
  }
}

// One that was there and is gone went with the owner of its gang, whose name is not used again.
void Checks::CheckDomain(const Json& pod) {
  const std::string name = extender::ClaimedComputeDomain(pod);
  if (name.empty() || domains_.contains(kube::ObjectKey{kube::Namespace(pod), name}.ToString())) return;
  Violate("DomainBeforePod", fmt::format("pod {} is past the gate, and its ComputeDomain {} was never made",
                                         kube::Name(pod), name));
}

void Checks::GangChanged(const Json& before, const Json& after) {
  if (after.is_null()) {
    gone_.insert(kube::Uid(before));
    return;
  }
  if (!before.is_null() && before["spec"] != after["spec"]) {
    Violate("SpecStays", "the spec of Gang " + kube::Name(after) + " has changed");
  }
  const auto gang = crds::GangFromJson(after);
  if (!gang)
    return Violate("PlanBeforePod", "Gang " + kube::Name(after) + " cannot be read: " + gang.error().message);
  if (!gang->status.placement) return;
  if (before.is_null() || kube::Find(before, {"status", "placement"}) == nullptr) CheckSpares(*gang);
  auto& plans = plans_[{gang->uid, gang->status.placement->epoch}];
  auto rows = crds::ToRows(*gang->status.placement);
  if (std::find(plans.begin(), plans.end(), rows) == plans.end()) plans.push_back(std::move(rows));
}

void Checks::JobChanged(const Json& after) {
  const Json* failed = after.is_null() ? nullptr : kube::Condition(after, "Failed");
  if (failed == nullptr) return;
  const std::string uid = kube::Uid(after);
  for (const auto& [pod, owner] : deleted_by_us_) {
    if (owner == uid) {
      return Violate("NoJobFailedByUs",
                     "Job " + kube::Name(after) + " has failed, and an extender had deleted its pod " + pod);
    }
  }
}

void Checks::Requested(const Process& process, const test::ApiRequest& request,
                       const kube::HttpResponse& response) {
  if (!request.write() || response.status / 100 != 2) return;
  if (request.plural == "leases" || request.plural == "events") return;
  ++writes_;
  last_write_ = process.name() + " " + request.Line();
  if (request.plural == "pods" && request.method == "PATCH")
    let_go_by_[kube::Uid(Json::parse(response.body, nullptr, false))] = process.name();
  const bool evicts = request.method == "POST" && request.subresource == "eviction";
  if (request.plural != "pods" || (request.method != "DELETE" && !evicts)) return;
  if (const auto owner = owners_.find(request.key.name); owner != owners_.end()) {
    deleted_by_us_[owner->first] = owner->second;
  }
}

// Whoever let a pod go has seen its gate, and forgets it only when it is gone. Of one that another let go a process may
// not have heard yet; and where a name comes again, a watch that begins again from before tells of the earlier pod last.
void Checks::Preempted(const Process& process, const Json& answer) {
  const Json* nodes = kube::Find(answer, {"NodeNameToMetaVictims"});
  if (nodes == nullptr || !nodes->is_object()) return;  // the scheduler complains of that
  for (const auto& [node, victims] : nodes->items()) {
    for (const Json& pod : kube::ArrayAt(victims, {"Pods"})) {
      const std::string uid = kube::StringAt(pod, {"UID"});
      const auto claim = claims_.find(uid);
      const auto let_go = let_go_by_.find(uid);
      if (claim == claims_.end() || let_go == let_go_by_.end() || let_go->second != process.name()) continue;
      if (born_.at(claim->second.name) > 1) continue;
      Violate("NoGangTorn",
              fmt::format("{} lets pod {} of a gang, which it has let go, be stopped alone on {}",
                          process.name(), claim->second.name, node));
    }
  }
}

}  // namespace heddle::sim
