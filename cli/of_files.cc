#include "cli/of_files.h"

#include "cli/complete_names.h"

namespace heddle::cli {
namespace {

// `ns`: none where none was given, since no kubeconfig says another.
template <class Options>
Options Within(Options options, const std::string& ns) {
  options.ns = ns;
  return options;
}

}  // namespace

std::optional<Output> OfFiles(const Flags& flags, const ReadFile& read, base::WallTime now,
                              const OutputOptions& look) {
  const std::string& ns = flags.explain.ns;
  switch (flags.command) {
    case Command::kStatus:
      if (flags.status.topology.empty()) return std::nullopt;
      return ShowStatus(Within(flags.status, ns), now, read, look);
    case Command::kExplain:
      if (flags.explain.topology.empty()) return std::nullopt;
      return ShowExplain(flags.explain, read, look);
    case Command::kObserve:
      if (flags.observed.topology.empty()) return std::nullopt;
      return ShowObserved(Within(flags.observed, ns), now, read, look);
    case Command::kTopology:
      if (flags.topology.empty()) return std::nullopt;
      return ShowTopology(flags.topology, flags.node, read, look);
    case Command::kFabric:
      if (flags.topology.empty()) return std::nullopt;
      return ShowFabric(flags.topology, read, look);
    case Command::kCables:
      if (flags.cables.topology.empty()) return std::nullopt;
      return ShowCables(flags.cables, read, look);
    case Command::kCheck:
      if (AsksCluster(flags.check)) return std::nullopt;
      return CheckFiles(flags.check, read, look);
    case Command::kBench:
      if (AsksCluster(flags.bench)) return std::nullopt;
      return Bench(Within(flags.bench, ns), read, look);
    case Command::kComplete:
      if (flags.names.topology.empty()) return std::nullopt;
      return CompleteOfFiles(flags.names, read);
    default:
      return std::nullopt;
  }
}

}  // namespace heddle::cli
