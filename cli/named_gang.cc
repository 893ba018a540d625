#include "cli/named_gang.h"

#include <string_view>

#include "crds/gang.h"
#include "crds/keys.h"
#include "crds/pod_group.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

constexpr std::string_view kPodGroup = "PodGroup/";
constexpr std::string_view kKueueGroup = "kueue.x-k8s.io/pod-group-name";

}  // namespace

std::optional<NamedGang> NamedGangOf(const Json& object) {
  if (kube::StringAt(object, {"kind"}) != "Pod") return std::nullopt;
  const std::string ns = kube::Namespace(object);
  // In the order in which the extender asks.
  if (const auto group = crds::PodGroupOf(object)) return NamedGang{ns, std::string(kPodGroup) + group->name};
  for (const std::string_view key : {crds::keys::kGangName, kKueueGroup}) {
    const auto name = kube::Label(object, key);
    if (name && !name->empty()) return NamedGang{ns, std::string(crds::kPodsGroup) + *name};
  }
  return std::nullopt;
}

std::string Title(const NamedGang& gang) {
  const std::string kind = gang.group.starts_with(kPodGroup) ? "PodGroup " : "gang ";
  const std::string name = gang.group.substr(gang.group.find('/') + 1);
  return kind + (gang.ns.empty() ? name : gang.ns + "/" + name);
}

}  // namespace heddle::cli
