#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace CLI {
class App;
}

namespace heddle::cli {

// flags.cc: all of them, and the options that each has. `output`: what --output says, with its default; it and `flags`
// outlive `app`.
void DefineProgram(CLI::App& app, Flags& flags, std::string& output);

// The options of each command, and what stands under them: what it does, examples, exit codes. A command without such
// a text would show that of the whole program. What is said of a command in one line is in flags.cc.

// flags_looking.cc: what there is, and what is wrong with it.
void DefineStatus(CLI::App& status, StatusOptions& flags);
void DefineDoctor(CLI::App& doctor);
void DefineCables(CLI::App& cables, CablesOptions& flags);
void DefineExplain(CLI::App& explain, ExplainOptions& flags);
void DefineObserve(CLI::App& observe, ObservedOptions& flags);
void DefineTopology(CLI::App& topology, Flags& flags);
void DefineRecord(CLI::App& record, RecordOptions& flags);
// --topology of a command that shows a cluster: files in its place.
void DefineTopologyFiles(CLI::App& command, std::vector<std::string>& files);

// flags_fabric.cc: fabrics, also of files and of numbers, and plans on them.
void DefineFabric(CLI::App& fabric, Flags& flags);  // with its `import` and `design`
void DefinePlan(CLI::App& plan, PlanOptions& flags);

// flags_lossless.cc
void DefineLint(CLI::App& lint, LintOptions& flags);
void DefineSwitch(CLI::App& parent, Flags& flags);  // with its `render` and `compare`

// flags_workload.cc: manifests and jobs.
void DefineCheck(CLI::App& check, CheckOptions& flags);
void DefineBench(CLI::App& bench, BenchOptions& flags);
void DefinePrepare(CLI::App& prepare, PrepareOptions& flags);
void DefineRelease(CLI::App& release, ReleaseOptions& flags);

// flags_program.cc: of this program itself.
void DefineCompletion(CLI::App& completion);
void DefineMan(CLI::App& man);
void DefineVersion(CLI::App& version);

}  // namespace heddle::cli
