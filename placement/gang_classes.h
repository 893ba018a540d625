#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/dense.h"
#include "placement/gang.h"
#include "placement/plan.h"

namespace heddle::placement {

// Which pods must share a cell of which tier. "In the same cell" is an equivalence, so joining the pods of
// every required group decides nested requirements exactly; leaves and spines are judged per GPU on top of
// it.
struct GangClasses {
  std::vector<Requirement> require;      // with tp=nvlink unless tp is required elsewhere
  std::vector<std::int32_t> first_rank;  // by pod, one more at the end
  std::vector<std::int32_t> pod_of_rank;
  std::array<std::vector<std::int32_t>, kTierCount> of_pod;  // class by pod; numbered by first pod
  std::array<std::vector<int>, kTierCount> gpus;             // by class
  std::array<std::vector<int>, kTierCount> pods;             // pods with GPUs, by class
  std::vector<bool> needs_nvlink;                            // by class of Tier::kDomain
  bool judged_by_gpu = false;                                // a leaf or spine is required
  // All pods with GPUs are alike, free to move, and every tier's classes hold equally many of them.
  bool uniform = false;
  int gpu_pods = 0;
};
GangClasses ClassesOf(const GangRequest& request, const std::vector<Requirement>& require);

// Whether what fits into the cells is what fits. An NVLink domain that spans units, or of which one node's unit is not
// known, leaves only units and what is above them in doubt: a gang of which nothing has to share those does not ask.
inline bool CellsDecide(const DenseFabric& dense, const GangClasses& classes) {
  const auto classes_at = [&classes](Tier tier) { return classes.gpus[std::size_t(tier)].size(); };
  return dense.nested() || classes_at(Tier::kDomain) == classes_at(Tier::kSite);
}

// `require` with the default for tp.
std::vector<Requirement> EffectiveRequirements(const GangRequest& request);

// The cell that a level's groups must share. A leaf lies in one unit, so its groups share the unit at least.
Tier TierOf(Level level);
std::string_view LevelPhrase(Level level);  // "one NVLink domain", "one scalable unit", …

// The first requirement that an assignment breaks. A group inside one node or one NVLink domain never reaches
// a leaf and meets `leaf`, `su` and `spine`; inside one unit it meets `spine`. What nobody knows proves
// nothing.
std::optional<Requirement> FirstBroken(const DenseFabric& dense, const GangRequest& request,
                                       const GangClasses& classes, const std::vector<PodPlacement>& pods);

// Whether the pods of each class share its cell, also those without GPUs, which FirstBroken does not see; pods that are
// nowhere yet aside. `cells` is written over.
bool KeepsClasses(const DenseFabric& dense, const GangClasses& classes, const std::vector<PodPlacement>& pods,
                  std::vector<std::int32_t>& cells);

// Why the request contradicts itself, as a sentence; empty = sound.
std::string WhyBadRequest(const topology::Fabric& fabric, const GangRequest& request);

}  // namespace heddle::placement
