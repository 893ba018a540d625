#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "crds/gang.h"
#include "kube/object.h"

namespace heddle::operators::page {

// "waiting", "starting", "running", "degraded" or "ended": what a gang is, for the page's filters.
std::string_view GangStateOf(const crds::GangStatus& status);

// One gang as an object: see docs/page.md. `nodes` are positions by name; a gang's node that is not there is left out.
kube::Json GangPiece(const crds::Gang& gang, const std::map<std::string, int, std::less<>>& nodes);
// One that cannot be read, and why: in trouble, on no nodes.
kube::Json UnreadGangPiece(const kube::ObjectKey& key, const std::string& error);

}  // namespace heddle::operators::page
