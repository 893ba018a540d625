#include "nodeagent/monitor/pass_times.h"

#include <fmt/format.h>

namespace heddle::nodeagent {

std::string_view PassName(Pass pass) {
  switch (pass) {
    case Pass::kLook:
      return "look";
    case Pass::kCounterPass:
      return "counters";
    case Pass::kLeafPass:
      break;
  }
  return "leaf";
}

std::string StuckText(const std::vector<StuckPass>& passes) {
  std::string text;
  for (const StuckPass& stuck : passes) {
    text += fmt::format("{}the {} has not ended since {}", text.empty() ? "" : ", and ",
                        stuck.pass == Pass::kLook          ? "look at the machine"
                        : stuck.pass == Pass::kCounterPass ? "pass over the counters"
                                                           : "pass over the leaves",
                        base::FormatTime(stuck.since));
  }
  if (!text.empty())
    text +=
        ": a driver or the firmware of a NIC does not answer, and what it would tell is published as it was "
        "before";
  return text;
}

void PassTimes::Began(Pass pass, base::MonotonicTime now, base::WallTime wall) {
  const std::lock_guard lock(mutex_);
  under_way_[pass] = {now, wall};
}

void PassTimes::Ended(Pass pass) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(pass);
}

std::vector<StuckPass> PassTimes::Stuck(const std::map<Pass, std::chrono::nanoseconds>& at_most,
                                        base::MonotonicTime now) const {
  std::vector<StuckPass> stuck;
  const std::lock_guard lock(mutex_);
  for (const auto& [pass, begin] : under_way_) {
    const auto limit = at_most.find(pass);
    if (limit != at_most.end() && now - begin.at > limit->second) stuck.push_back({pass, begin.wall});
  }
  return stuck;
}

}  // namespace heddle::nodeagent
