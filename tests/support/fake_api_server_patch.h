#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"

namespace heddle::test {

// Lists that merge by a key (conditions by type, containers by name, …) do so; other lists are replaced; null
// removes.
kube::Json StrategicMerge(kube::Json current, const kube::Json& patch);

// Field ownership as server-side apply keeps it: manager → the leaves it set. Lists without a merge key are
// one leaf.
using FieldOwners = std::map<std::string, std::set<std::string>>;

struct AppliedObject {
  kube::Json object;
  FieldOwners owners;
  std::vector<std::string> conflicts;  // "conflict with "other": .spec.a"; with any, object is unchanged
};
AppliedObject ServerSideApply(const kube::Json& current, FieldOwners owners, const std::string& manager,
                              const kube::Json& wanted, bool force);

// After a plain write: what changed belongs to the writer.
void TakeOwnership(FieldOwners& owners, const std::string& manager, const kube::Json& before,
                   const kube::Json& after);

// "a=b,c!=d,e,!f,g in (x,y),h notin (z)" against labels.
bool MatchesLabels(const kube::Json& object, std::string_view selector);
// "metadata.name=x,status.phase!=Running" against dotted paths.
bool MatchesFields(const kube::Json& object, std::string_view selector);

}  // namespace heddle::test
