#pragma once

#include <string>
#include <vector>

#include "cli/flags.h"

namespace CLI {
class App;
}

namespace heddle::cli {

// --topology of a command that shows a cluster: files in its place.
void DefineTopologyFiles(CLI::App& command, std::vector<std::string>& files);

void DefineTopology(CLI::App& topology, Flags& flags);
// `fabric` itself, once its `import` and `design` are defined: they would take its help for theirs.
void DefineFabric(CLI::App& fabric, Flags& flags);

}  // namespace heddle::cli
