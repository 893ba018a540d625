#pragma once

#include <string>
#include <vector>

#include "cli/ground.h"
#include "cli/table.h"
#include "placement/defragment.h"

namespace heddle::cli {

// Which gangs of the files to move so that whole domains or units stand free.
struct DefragmentAnswer {
  FabricPtr fabric;
  placement::DefragmentGoal goal;
  std::vector<placement::RunningGang> gangs;
  std::vector<std::string> names;  // by gang: "gang train/llama"
  int unmovable_holders = 0;       // who hold GPUs and are no gang that can be planned anew
  placement::Defragmentation found;
};

// On the fabric where it costs least; of refusals, the one of the fabric with the most GPUs. A gang costs its GPUs:
// files do not say when checkpoints were.
DefragmentAnswer AskDefragment(const Grounds& grounds, const placement::DefragmentGoal& goal);

// {"possible":…,"level":…,"wanted":…,"minGpus":…,"slowerPercent":…,"wholeBefore":…,"wholeAfter":…,"opened":[name],
//  "cost":…,"moves":[{"gang","gpus","cost","from":[node],"to":[{"pod","node","gpus":[index]}],"millisecondsBefore",
//   "millisecondsAfter"}],"refusal":null or {"reason","message","most","gang","why"}}
crds::Json DefragmentJson(const DefragmentAnswer& answer);
std::string DefragmentText(const DefragmentAnswer& answer, const Style& style);

}  // namespace heddle::cli
