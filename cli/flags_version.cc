#include "cli/flags_version.h"

#include <CLI/CLI.hpp>
#include <string>

#include "base/version.h"

namespace heddle::cli {
namespace {

std::string Line() {
  return "kubectl-heddle " + std::string(base::kVersion);
}

}  // namespace

void DefineVersion(CLI::App& app) {
  app.set_version_flag("--version", Line(), "Print the version of this program and exit");
  app.add_subcommand("version", "Which version of Heddle this program is; asks no cluster");
}

Output VersionOf(Format format) {
  if (format == Format::kText) return {.out = Line() + "\n"};
  const crds::Json json{{"version", std::string(base::kVersion)}};
  return {.out = Printed(json, format)};
}

}  // namespace heddle::cli
