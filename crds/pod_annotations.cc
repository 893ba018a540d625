#include "crds/pod_annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/nearest_word.h"
#include "crds/keys.h"

namespace heddle::crds {
namespace {

// What people and their programs write.
constexpr std::array kWritten{keys::kParallelism, keys::kModel,      keys::kRequire,       keys::kPrefer,
                              keys::kWait,        keys::kOnDegraded, keys::kComputeDomain, keys::kCheckpoint,
                              keys::kGangSize,    keys::kGangRank};
// What Heddle writes, and anybody may keep.
constexpr std::array kPlanned{keys::kRank,  keys::kGpus, keys::kNics,       keys::kGangUid,
                              keys::kEpoch, keys::kNode, keys::kSubstitutes};

constexpr std::string_view kPrefix = "heddle.dev/";

bool IsIn(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::optional<std::string> UnknownAnnotation(std::string_view name) {
  if (!name.starts_with(kPrefix) || IsIn(kWritten, name) || IsIn(kPlanned, name)) return std::nullopt;
  if (name == keys::kGangName) return fmt::format("{} is a label of the pod, not an annotation", name);
  std::vector<std::string> words;
  words.reserve(kWritten.size());
  for (const std::string_view one : kWritten) words.emplace_back(one.substr(kPrefix.size()));
  const std::string near = base::NearestWord(name.substr(kPrefix.size()), words);
  return fmt::format("the annotation {} is none of Heddle's; {} knows {}", name,
                     near.empty() ? "it" : fmt::format("is {}{} meant? It", kPrefix, near),
                     fmt::join(words, ", "));
}

}  // namespace heddle::crds
