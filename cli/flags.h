#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench.h"
#include "cli/cables.h"
#include "cli/check.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/fabric_design.h"
#include "cli/import.h"
#include "cli/lint.h"
#include "cli/observed.h"
#include "cli/output.h"
#include "cli/plan.h"
#include "cli/prepare.h"
#include "cli/record.h"
#include "cli/release.h"
#include "cli/status.h"
#include "cli/switch_compare.h"
#include "cli/switch_render.h"

namespace heddle::cli {

enum class Command : std::uint8_t {
  kExplain,
  kTopology,
  kFabric,
  kImport,
  kDesign,
  kPlan,
  kLint,
  kCheck,
  kObserve,
  kPrepare,
  kRelease,
  kStatus,
  kDoctor,
  kCables,
  kSwitchRender,
  kSwitchCompare,
  kBench,
  kRecord,
  kWait,
  kComplete
};

// What stands on the command line.
struct Flags {
  Command command = Command::kPlan;
  Format format = Format::kText;
  std::string kubeconfig, context;
  std::string as;                      // whom to ask as; empty = as the kubeconfig says
  std::vector<std::string> as_groups;  // with `as` only
  bool all_namespaces = false;         // of commands that look at all anyway; then no namespace is given
  std::string request_timeout;         // one that ParseRequestTimeout takes, or empty: kRequestPatience
  std::string node;                    // of topology; empty = all
  std::vector<std::string> topology;   // of topology and fabric: files in place of a cluster
  ExplainOptions explain;
  PlanOptions plan;
  ImportOptions import;
  FabricDesignOptions design;
  LintOptions lint;
  CheckOptions check;
  ObservedOptions observed;
  PrepareOptions prepare;
  ReleaseOptions release;
  StatusOptions status;
  CablesOptions cables;
  SwitchRenderOptions switch_render;
  SwitchCompareOptions switch_compare;
  BenchOptions bench;
  RecordOptions record;
  NamesWanted names;  // of kComplete
};

struct CommandLine {
  Flags flags;
  std::optional<Output> instead;  // to print and to end with: what --help says, or what is wrong (kUsage)
};

// `argv` with the program's name first. `width`: columns of the terminal that --help goes to; 0 = it is none.
CommandLine ReadCommandLine(int argc, const char* const* argv, std::size_t width = 0);

}  // namespace heddle::cli
