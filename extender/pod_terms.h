#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crds/keys.h"
#include "extender/node_constraints.h"
#include "kube/object.h"

namespace heddle::extender {

// Annotations that all pods of a gang carry alike.
inline constexpr std::array<std::string_view, 7> kSaidAlike{
    crds::keys::kParallelism, crds::keys::kModel,      crds::keys::kRequire,      crds::keys::kPrefer,
    crds::keys::kWait,        crds::keys::kOnDegraded, crds::keys::kComputeDomain};

// What a pod says to the planner apart from its amounts. The thousands of pods that one template made say the same, and
// a gang that waits is asked again and again: this is read once a pod, and those that are equal may be one object.
struct PodTerms {
  std::map<std::string, std::string, std::less<>> said;  // of kSaidAlike, what the pod carries
  std::optional<std::string> unmodelled;                 // see UnmodelledConstraint
  std::vector<std::string> claims;                       // see ClaimNames
  std::string compute_domain;                            // see ClaimedComputeDomain
  // Of a pod at our gate. Past it each is confined to the node of its own slot (release_patch.h), seldom asked, and
  // would share its terms with nobody.
  std::optional<PodConstraints> constraints;

  friend bool operator<(const PodTerms& a, const PodTerms& b);
};
PodTerms ReadTerms(const kube::Json& pod, bool gated);
std::shared_ptr<const PodTerms> NoTerms();  // of a pod that says nothing

}  // namespace heddle::extender
