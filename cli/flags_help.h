#pragma once

#include <string>

namespace CLI {
class App;
}

namespace heddle::cli {

// What stands under the options of the commands that are defined without it: examples and exit codes of their own. A
// subcommand without a footer shows that of the whole program. `app` has all its commands.
void AddFooters(CLI::App& app);

// What to say to somebody who typed no command, or one that there is not: the commands, and which was meant.
std::string WhichCommand(const CLI::App& app);

}  // namespace heddle::cli
