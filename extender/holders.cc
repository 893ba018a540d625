#include "extender/holders.h"

#include <bit>
#include <set>

#include "base/counted.h"

namespace heddle::extender {
namespace {

constexpr std::size_t kMostNames = 3;  // `kubectl get gangs -A` has the rest

std::string Held(std::size_t count, const std::string& noun, int gpus) {
  return base::Counted(count, noun) + (count == 1 ? " holds " : " hold ") + base::Counted(gpus, "GPU");
}

std::string InBrackets(const std::set<std::string>& names) {
  std::string list;
  std::size_t said = 0;
  for (const std::string& name : names) {
    if (said++ == kMostNames) return " (" + list + ", …)";
    list += (list.empty() ? "" : ", ") + name;
  }
  return " (" + list + ")";
}

}  // namespace

std::string Holders(const Snapshot& snapshot, const GangKey& except) {
  std::set<std::string> gangs, pods;
  int of_gangs = 0, of_pods = 0;
  for (const auto& [node, on_node] : snapshot.holds) {
    for (const Hold& hold : on_node) {
      if (hold.IsOf(except)) continue;
      const auto gang = snapshot.gangs.find({hold.ns, hold.owner_uid});
      const bool known = gang != snapshot.gangs.end();
      (known ? gangs : pods).insert(known ? gang->second : hold.name);
      (known ? of_gangs : of_pods) += std::popcount(hold.gpus);
    }
  }
  std::string text;
  if (!gangs.empty()) text = Held(gangs.size(), "gang", of_gangs) + InBrackets(gangs);
  if (!pods.empty()) {
    if (!text.empty()) text += "; ";
    text += base::Counted(pods.size(), "pod") + " of no gang " + (pods.size() == 1 ? "holds " : "hold ") +
            base::Counted(of_pods, "GPU");
  }
  return text;
}

}  // namespace heddle::extender
