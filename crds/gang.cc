#include "crds/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "crds/label_value.h"

namespace heddle::crds {
namespace {

constexpr std::size_t kMaxSubstituteSets = 4096;
constexpr std::size_t kMaxSubstitutes = 7;

}  // namespace

Placement ToColumns(const std::vector<PlacedPod>& pods, std::int64_t epoch) {
  Placement placement;
  placement.epoch = epoch;
  std::map<std::string_view, std::int32_t> names;
  const auto index_of = [&](std::string_view name) {
    const auto [place, fresh] = names.try_emplace(name, std::int32_t(placement.node_names.size()));
    if (fresh) placement.node_names.emplace_back(name);
    return place->second;
  };
  std::map<std::vector<std::int32_t>, std::int32_t> sets;
  for (const PlacedPod& pod : pods) {
    placement.nodes.push_back(index_of(pod.has_slot() ? std::string_view(pod.node) : kNoNode));
    placement.gpus.push_back(pod.gpus);
  }
  for (const PlacedPod& pod : pods) {
    std::vector<std::int32_t> set;
    for (std::size_t i = 0; i < std::min(pod.substitutes.size(), kMaxSubstitutes); ++i) {
      set.push_back(index_of(pod.substitutes[i]));
    }
    const auto next = std::int32_t(placement.substitute_sets.size());
    // Substitutes are a convenience: behind the schema's limit a pod has none, and its plan stands all the
    // same.
    if (set.empty() || (next == kMaxSubstituteSets && !sets.contains(set))) {
      placement.substitutes.push_back(-1);
      continue;
    }
    const auto [place, fresh] = sets.try_emplace(set, next);
    if (fresh) placement.substitute_sets.push_back(std::move(set));
    placement.substitutes.push_back(place->second);
  }
  const auto whole = [](std::uint32_t gpus) { return gpus == 0; };
  if (std::all_of(placement.gpus.begin(), placement.gpus.end(), whole)) placement.gpus.clear();
  if (sets.empty()) placement.substitutes.clear();
  return placement;
}

std::vector<PlacedPod> ToRows(const Placement& placement) {
  const auto name = [&](std::int32_t index) {
    CHECK(index >= 0 && std::size_t(index) < placement.node_names.size());
    return placement.node_names[std::size_t(index)];
  };
  std::vector<PlacedPod> pods(placement.nodes.size());
  CHECK(placement.gpus.empty() || placement.gpus.size() == pods.size());
  CHECK(placement.substitutes.empty() || placement.substitutes.size() == pods.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    std::string node = name(placement.nodes[i]);
    if (node == kNoNode) continue;
    pods[i].node = std::move(node);
    if (!placement.gpus.empty()) pods[i].gpus = placement.gpus[i];
    if (placement.substitutes.empty() || placement.substitutes[i] < 0) continue;
    const auto set = std::size_t(placement.substitutes[i]);
    CHECK(set < placement.substitute_sets.size());
    for (const std::int32_t other : placement.substitute_sets[set])
      pods[i].substitutes.push_back(name(other));
  }
  return pods;
}

std::string Summarise(const GangSpec& spec, const GangStatus& status) {
  const auto is = [&](std::string_view type) { return IsTrue(status.conditions, type); };
  const auto count = [&](std::string_view word, int done) {
    return fmt::format("{} {}/{}", word, done, spec.pods);
  };
  const auto because = [&](std::string_view word) {
    return status.reason.empty() ? std::string(word) : fmt::format("{}: {}", word, status.reason);
  };
  if (is(kEnded)) return because("Ended");
  if (is(kPreempted)) return "Preempted";
  if (is(kDegraded)) return because("Degraded");
  if (is(kRepairing)) return count("Repairing", status.progress.bound);
  if (is(kRunning)) return because(count("Running", status.progress.bound));
  if (is(kReleased)) return because(count("Starting", status.progress.bound));
  if (is(kPlanned)) return because(count("Releasing", status.progress.released));
  if (!status.reason.empty()) return because("Waiting");
  if (is(kCollected)) return "Planning";
  return count("Collecting", status.progress.seen);
}

std::string GangTitle(const GangSpec& spec) {
  const std::size_t slash = spec.group.find('/');
  return slash == std::string::npos ? spec.owner.name : spec.group.substr(slash + 1);
}

std::string GangName(const GangSpec& spec) {
  // The API server gave the owner its name and UID, but a Gang's name must be valid whatever stands there.
  const auto dns = [](std::string_view text) {
    std::string name;
    for (char c : text) {
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
      const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (good || !name.empty()) name += good ? c : '-';
    }
    return name;
  };
  const std::string whose =
      spec.group.starts_with(kPodsGroup) ? std::string("pods") : dns(spec.owner.uid).substr(0, 8);
  const std::string end = fmt::format("{}-{}", whose, spec.attempt);
  const std::string title = GangTitle(spec);
  std::string start = dns(title);
  // Groups of one owner, and of one namespace's pods, are told apart by nothing but their titles: what would make two
  // of them equal here, as "train_a" and "train.a", has a hash instead.
  std::string dashed = title;
  std::replace(dashed.begin(), dashed.end(), '/', '-');
  if (!spec.group.empty() && (start != dashed || start.size() > 62 - end.size()))
    return DnsName(title + "/" + end);
  start = start.substr(0, 62 - end.size());
  while (!start.empty() && start.back() == '-') start.pop_back();
  return (start.empty() ? "gang" : start) + "-" + end;
}

}  // namespace heddle::crds
