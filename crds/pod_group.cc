#include "crds/pod_group.h"

#include <utility>

#include "crds/json_at.h"
#include "crds/keys.h"
#include "crds/pod_templates.h"

namespace heddle::crds {

std::optional<PodGroupRef> PodGroupOf(const Json& object) {
  if (TextOf(At(object, "kind")) != "Pod") return std::nullopt;
  if (!TextOf(At(object, {"metadata", "labels", keys::kGangName})).empty()) return std::nullopt;
  std::string name = TextOf(At(object, {"spec", "schedulingGroup", "podGroupName"}));
  if (name.empty()) return std::nullopt;
  return PodGroupRef{TextOf(At(object, {"metadata", "namespace"})), std::move(name)};
}

bool IsPodGroup(const Json& object) {
  // Volcano and scheduler-plugins have kinds of this name, too.
  return TextOf(At(object, "kind")) == "PodGroup" &&
         TextOf(At(object, "apiVersion")).starts_with("scheduling.k8s.io/");
}

bool IsNamed(const Json& group, const PodGroupRef& by) {
  const std::string ns = TextOf(At(group, {"metadata", "namespace"}));
  return TextOf(At(group, {"metadata", "name"})) == by.name && (ns == by.ns || ns.empty() || by.ns.empty());
}

PodGroupFacts FactsOf(const Json& group) {
  const Json& gang = At(group, {"spec", "schedulingPolicy", "gang"});
  return {.pods = CountOf(At(gang, "minCount")), .asks_for_gang = gang.is_object()};
}

}  // namespace heddle::crds
