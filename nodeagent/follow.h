#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "nodeagent/monitor/monitor.h"

namespace heddle::nodeagent {

enum class FollowFormat : std::uint8_t { kText, kJson };

// `--print --follow`: what a person or a script reads of a machine that is watched. First the whole observation, then
// one line for each change: "2026-11-22T01:46:30.123456Z health    mlx5_3 port 1 …". As JSON each line, the first
// included, is one object: {"time", "kind", "text"}, where the observation's has "object" in place of the text.
//   kind: observation, kernel, topology, health, condition, problem
// Pure: the caller brings the time and writes. Thread rule: one thread.
class Follow {
 public:
  Follow(std::string node, FollowFormat format) : node_(std::move(node)), format_(format) {}

  std::string Look(const Sight& sight, base::WallTime now);
  std::string Hear(const std::vector<KernelEvent>& events, base::WallTime now) const;

 private:
  std::string Line(base::WallTime now, std::string_view kind, std::string_view text) const;
  std::string First(const Sight& sight, base::WallTime now) const;
  std::string SayCongestion(const Observation& seen, base::WallTime now) const;
  std::string SayXids(const std::vector<GpuReading>& gpus, base::WallTime now);

  const std::string node_;
  const FollowFormat format_;
  bool first_ = true;
  Observation before_;
  std::map<int, int> xids_;  // the last that was told, by the index of its GPU
};

}  // namespace heddle::nodeagent
