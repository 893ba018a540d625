#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "crds/gang.h"
#include "kube/object.h"

namespace heddle::cli {

// Whose gang `explain` is asked about.
struct ExplainKind {
  std::string kind;                // "JobSet", "Gang", "Pods"
  std::vector<std::string> words;  // what people type, the best first
  kube::Resource resource;         // of kind "Pods": none, its name is a label
  // What an object of this kind makes, which then makes the gang: a TrainJob's JobSet. Empty = it makes pods.
  std::string makes;
  // The version in which clusters serve it that do not serve that one; empty = there is none.
  std::string earlier = {};
};
const std::vector<ExplainKind>& ExplainKinds();
const ExplainKind* ExplainKindOf(const std::string& kind);  // by its kind; null where it is none of them

struct ExplainTarget {
  const ExplainKind* kind = nullptr;
  std::string name;
};
// "jobset/llama", "jobsets.jobset.x-k8s.io/llama", or "llama" of a Job. An unknown word is answered with all known
// ones.
[[nodiscard]] base::Result<ExplainTarget> ParseExplainTarget(const std::string& text);
// Whether this is the Gang that is named, or one of what is named, by its own word: also where no cluster can be asked
// what that made. Its namespace is not looked at.
bool IsGangOf(const crds::Gang& gang, const ExplainTarget& target);

}  // namespace heddle::cli
