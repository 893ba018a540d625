#include "extender/pod_terms.h"

#include <tuple>

#include "extender/compute_domain.h"
#include "extender/unmodelled.h"

namespace heddle::extender {

bool operator<(const PodTerms& a, const PodTerms& b) {
  const auto nodes = [](const PodTerms& terms) {
    return terms.constraints ? std::string_view(terms.constraints->fingerprint()) : std::string_view();
  };
  return std::forward_as_tuple(a.constraints.has_value(), nodes(a), a.said, a.unmodelled, a.claims,
                               a.compute_domain) < std::forward_as_tuple(b.constraints.has_value(), nodes(b),
                                                                         b.said, b.unmodelled, b.claims,
                                                                         b.compute_domain);
}

std::shared_ptr<const PodTerms> NoTerms() {
  static const auto none = std::make_shared<const PodTerms>();
  return none;
}

PodTerms ReadTerms(const kube::Json& pod, bool gated) {
  PodTerms terms;
  for (const std::string_view name : kSaidAlike) {
    if (auto text = kube::Annotation(pod, name)) terms.said.emplace(name, *std::move(text));
  }
  terms.unmodelled = UnmodelledConstraint(pod);
  terms.claims = ClaimNames(pod);
  terms.compute_domain = ClaimedComputeDomain(pod);
  if (gated) terms.constraints.emplace(pod);
  return terms;
}

}  // namespace heddle::extender
