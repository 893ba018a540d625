#pragma once

#include "cli/bench.h"

namespace CLI {
class App;
}

namespace heddle::cli {

void DefineBench(CLI::App& bench, BenchOptions& flags);

}  // namespace heddle::cli
