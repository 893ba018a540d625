#include "operator/specs_ahead.h"

#include <algorithm>
#include <utility>

namespace heddle::operators {

void SpecsAhead::Wrote(const kube::Json& answer, base::MonotonicTime now) {
  std::erase_if(written_, [&](const auto& one) { return now - one.second.at >= kPatience; });
  const kube::Json* value = kube::Find(answer, {"spec", field_});
  Written written;
  written.uid = kube::Uid(answer);
  written.generation = kube::Generation(answer);
  if (value != nullptr) written.value = *value;
  written.at = now;
  written_.insert_or_assign(kube::Name(answer), std::move(written));
}

std::optional<kube::Json> SpecsAhead::Over(const kube::Json& shown, base::MonotonicTime now) {
  if (written_.empty()) return std::nullopt;
  const auto found = written_.find(kube::Name(shown));
  if (found == written_.end()) return std::nullopt;
  Written& written = found->second;
  if (written.uid != kube::Uid(shown) || written.generation <= kube::Generation(shown) ||
      now - written.at >= kPatience) {
    written_.erase(found);
    return std::nullopt;
  }
  written.behind = true;
  kube::Json ours = shown;
  kube::Json& spec = ours["spec"];
  if (!spec.is_object()) spec = kube::Json::object();
  if (written.value.is_null()) {
    spec.erase(field_);
  } else {
    spec[field_] = written.value;
  }
  return ours;
}

std::optional<std::chrono::nanoseconds> SpecsAhead::Left(base::MonotonicTime now) const {
  std::optional<std::chrono::nanoseconds> left;
  for (const auto& [node, written] : written_) {
    const std::chrono::nanoseconds one = written.at + kPatience - now;
    // One that is over is of a node that is gone: nobody asked for it since.
    if (written.behind && one > one.zero()) left = left ? std::min(*left, one) : one;
  }
  return left;
}

}  // namespace heddle::operators
