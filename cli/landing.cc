#include "cli/landing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "base/counted.h"
#include "cli/best_fabric.h"
#include "cli/named_gang.h"
#include "cli/node_selection.h"
#include "cli/quality_view.h"
#include "crds/condition.h"
#include "crds/gang.h"
#include "crds/keys.h"
#include "crds/parallelism.h"
#include "crds/pod_templates.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

namespace keys = crds::keys;
using base::Code;
using base::Fail;

struct Asked {
  placement::GangRequest request;
  std::int64_t gangs = 1;
  std::map<std::string, std::string> selector;
};

// The template that says how the gang is cut: the first that does, of those that ask for GPUs.
const Json* TemplateThatSays(const std::vector<crds::PodTemplate>& templates,
                             const crds::CheckedWorkload& checked) {
  for (const crds::PodTemplate& one : templates) {
    const bool has_gpus = std::any_of(checked.templates.begin(), checked.templates.end(),
                                      [&one](const auto& known) { return known.where == one.path; });
    if (has_gpus && kube::Annotation(*one.pod, keys::kParallelism)) return one.pod;
  }
  return nullptr;
}

// Who lands: of a Pod all that are of its gang.
std::string NameOf(const Json& object, const crds::CheckedWorkload& checked) {
  const auto gang = NamedGangOf(object);
  if (!gang) return checked.name;
  if (checked.gang_pods == 0) return Title(*gang);
  return fmt::format("{} ({})", Title(*gang), base::Counted(checked.gang_pods, "pod"));
}

bool HasItsPlace(const Json& object, const std::vector<crds::Gang>& gangs) {
  const std::string uid = kube::Uid(object);
  const auto named = NamedGangOf(object);
  const auto controller = kube::ControllerOwner(object);  // a Job's pods are its gang
  if (uid.empty()) return false;
  return std::any_of(gangs.begin(), gangs.end(), [&](const crds::Gang& gang) {
    const std::string& owner = gang.spec.owner.uid;
    const bool its_own = owner == uid || (controller && !owner.empty() && owner == controller->uid) ||
                         (named && gang.spec.group == named->group && gang.ns == named->ns);
    return its_own && gang.status.placement && !crds::IsTrue(gang.status.conditions, crds::kEnded);
  });
}

// One gang's pods, in the order of the templates, which is that of its ranks.
base::Status AddPods(const crds::CheckedWorkload& checked, Asked& asked) {
  const std::int64_t world = asked.request.parallelism.world();
  const std::int64_t times =
      std::max<std::int64_t>(checked.gang_pods, 1);  // a Pod brings the others of its gang
  std::int64_t gpus = 0;
  for (const auto& one : checked.templates) gpus += times * one.pods * one.gpus;
  if (gpus == 0 || gpus % world != 0) {
    return Fail(Code::kInvalid,
                fmt::format("heddle.dev/parallelism makes {} GPUs and its pods ask for {}", world, gpus));
  }
  asked.gangs = gpus / world;
  std::int64_t left = world;
  for (const auto& one : checked.templates) {
    for (std::int64_t pod = 0; pod < times * one.pods && left > 0; ++pod, left -= one.gpus) {
      if (one.gpus > std::min<std::int64_t>(left, crds::kMaxGpusPerPod) ||
          asked.request.pods.size() >= std::size_t(crds::kMaxPods)) {
        return Fail(Code::kInvalid, fmt::format("pods of {} GPUs do not make a gang of {}", one.gpus, world));
      }
      asked.request.pods.push_back({.gpus = int(one.gpus)});
    }
  }
  return {};
}

base::Result<Asked> AskedOf(const Json& object, const crds::CheckedWorkload& checked) {
  const std::vector<crds::PodTemplate> templates = crds::PodTemplatesOf(object);
  const Json* pod = TemplateThatSays(templates, checked);
  if (pod == nullptr) {
    return Fail(Code::kInvalid, "its pods have no heddle.dev/parallelism, so it is no gang of Heddle's");
  }
  Asked asked;
  ASSIGN_OR_RETURN(asked.request.parallelism,
                   crds::ParseParallelism(*kube::Annotation(*pod, keys::kParallelism)), keys::kParallelism);
  if (const auto text = kube::Annotation(*pod, keys::kModel)) {
    ASSIGN_OR_RETURN(asked.request.model, crds::ParseModel(*text), keys::kModel);
  }
  if (const auto text = kube::Annotation(*pod, keys::kRequire)) {
    ASSIGN_OR_RETURN(asked.request.require, crds::ParseConstraints(*text), keys::kRequire);
  }
  if (const auto text = kube::Annotation(*pod, keys::kPrefer)) {
    ASSIGN_OR_RETURN(asked.request.prefer, crds::ParseConstraints(*text), keys::kPrefer);
  }
  asked.selector = kube::StringMapAt(*pod, {"spec", "nodeSelector"});
  TRY(AddPods(checked, asked));
  return asked;
}

// Fabrics number their nodes apart, so each is asked with its own list.
BestFabric DecideWithSelector(const LandingGround& ground, const Asked& asked) {
  if (asked.selector.empty() || ground.nodes.empty())
    return DecideOnBest(ground.grounds.fabrics, asked.request);
  std::vector<Ground> grounds = ground.grounds.fabrics;
  for (Ground& one : grounds) {
    const auto allowed = NodesWithLabels(one, ground.nodes, asked.selector);
    for (std::size_t n = 0; n < one.nodes.size(); ++n) {
      const bool fits = std::binary_search(allowed.begin(), allowed.end(), topology::NodeId(n));
      if (!fits && one.nodes[n].unusable.empty()) one.nodes[n].unusable = "NotSelected";
    }
  }
  BestFabric best = DecideOnBest(grounds, asked.request);
  if (best.ground != nullptr)
    best.ground = &ground.grounds.fabrics[std::size_t(best.ground - grounds.data())];
  return best;
}

std::vector<std::string> NamesOf(const placement::Plan& plan, const topology::Fabric& fabric) {
  std::set<std::string> names;
  for (const placement::PodPlacement& pod : plan.pods)
    names.insert(fabric.nodes[std::size_t(pod.node)].node.name);
  return {names.begin(), names.end()};
}

std::string FirstOf(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  if (names.size() <= kShown + 1) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, … {} more", fmt::join(names.begin(), names.begin() + kShown, ", "),
                     names.size() - kShown);
}

std::int64_t CrossingsOf(const placement::Quality& quality) {
  std::int64_t sum = 0;
  for (const std::int64_t one : quality.leaf_crossings) sum += one;
  return sum;
}

}  // namespace

Landing LandingOf(const Json& object, const crds::CheckedWorkload& checked, const LandingGround& ground) {
  Landing landing{.workload = NameOf(object, checked), .in_files = ground.in_files};
  if (HasItsPlace(object, ground.grounds.gangs)) {
    landing.why_not_asked = "it has its place already; `kubectl heddle explain` says where and why";
    return landing;
  }
  auto asked = AskedOf(object, checked);
  if (!asked) {
    landing.why_not_asked = asked.error().message;
    return landing;
  }
  asked->request.spares = ground.spares;
  landing.gangs = asked->gangs;
  const BestFabric best = DecideWithSelector(ground, *asked);
  if (best.ground == nullptr) {
    landing.why_not_asked = "no node has reported its GPUs";
    return landing;
  }
  landing.fabric = Title(*best.ground->fabric);
  if (const auto* plan = std::get_if<placement::Plan>(&best.decision)) {
    landing.nodes = NamesOf(*plan, *best.ground->fabric);
    landing.quality = plan->quality;
  } else {
    landing.refusal = std::get<placement::Refusal>(best.decision);
  }
  return landing;
}

Json LandingWords(const Json& pod, const crds::CheckedWorkload& checked) {
  Json words{{"gangPods", checked.gang_pods},
             {"inCluster", !kube::Uid(pod).empty()},
             {"nodeSelector", kube::StringMapAt(pod, {"spec", "nodeSelector"})},
             {"gpus", Json::array()},
             {"annotations", Json::object()}};
  for (const auto& one : checked.templates) words["gpus"].push_back(one.gpus);
  for (const auto key : {keys::kParallelism, keys::kModel, keys::kRequire, keys::kPrefer}) {
    if (auto text = kube::Annotation(pod, key)) words["annotations"][std::string(key)] = *std::move(text);
  }
  return words;
}

Json LandingJson(const Landing& landing) {
  if (!landing.why_not_asked.empty()) return {{"asked", false}, {"why", landing.why_not_asked}};
  Json json{{"asked", true},
            {"feasible", landing.quality.has_value()},
            {"gangs", landing.gangs},
            {"fabric", landing.fabric}};
  if (landing.quality) {
    json["nodes"] = landing.nodes;
    json["milliseconds"] = double(landing.quality->step_micros) / 1000;
    json["leafCrossings"] = CrossingsOf(*landing.quality);
    json["tpGroups"] = landing.quality->tp_groups;
    json["tpGroupsInDomain"] = landing.quality->tp_groups_in_domain;
  } else {
    json["refusal"] = {{"reason", placement::RefusalReasonName(landing.refusal->reason)},
                       {"message", landing.refusal->sentence}};
  }
  return json;
}

std::string LandingText(const Landing& landing, const Style& style) {
  const std::string who = WithoutControls(landing.workload);
  if (!landing.why_not_asked.empty()) {
    return fmt::format("{}: where it would land was not asked: {}\n", who,
                       WithoutControls(landing.why_not_asked));
  }
  const std::string each = landing.gangs > 1 ? fmt::format(" (the first of {} gangs)", landing.gangs) : "";
  const std::string now = landing.in_files ? "" : " now";
  if (landing.refusal) {
    return fmt::format(
        "{}{} {}: {}: {}\n  {}\n", who, each, style.Paint("has no place" + now, Colour::kBad),
        placement::RefusalReasonName(landing.refusal->reason), WithoutControls(landing.refusal->sentence),
        landing.in_files ? "`kubectl heddle plan --what-if` on the same files says whether room can be made"
                         : "`kubectl heddle explain` says what would help, once it is submitted");
  }
  const placement::Quality& quality = *landing.quality;
  return fmt::format(
      "{}{} would land{} on {} of {}: {}\n  {:.3f} ms of communication a step; {}/{} TP groups "
      "inside one NVLink "
      "domain, {} leaf crossings\n",
      who, each, now, base::Counted(landing.nodes.size(), "node"), WithoutControls(landing.fabric),
      WithoutControls(FirstOf(landing.nodes)), double(quality.step_micros) / 1000,
      quality.tp_groups_in_domain, quality.tp_groups, CrossingsOf(quality));
}

}  // namespace heddle::cli
