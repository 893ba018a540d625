#pragma once

#include <string>

namespace CLI {
class App;
}

namespace heddle::cli {

// All commands, options and examples of --help as one manual page of section 1, in man(7) macros:
// `kubectl heddle man | man -l -`. Pure.
std::string ManPage(const CLI::App& app);

}  // namespace heddle::cli
