#pragma once

#include <string>
#include <vector>

#include "cli/ground.h"
#include "cli/table.h"
#include "placement/gang.h"

namespace heddle::cli {

// How far a cluster is from holding a gang.
struct WhatIf {
  struct Ending {
    std::string name;  // as Holder::name
    int gpus = 0;      // on this fabric
    friend bool operator==(const Ending&, const Ending&) = default;
  };
  int copies = 0;               // how many of these gangs fit beside each other now
  bool more = false;            // … and nobody counted further
  bool possible = false;        // once `endings` have ended; true when copies > 0
  std::vector<Ending> endings;  // none of whom could be spared
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};
inline constexpr int kMostCopies = 1000;

WhatIf AskWhatIf(const Ground& ground, const std::vector<Holder>& holders,
                 const placement::GangRequest& request);
crds::Json WhatIfJson(const WhatIf& answer);
std::string WhatIfText(const WhatIf& answer, const Style& style);

}  // namespace heddle::cli
