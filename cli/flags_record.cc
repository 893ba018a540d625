#include "cli/flags_record.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {
namespace {

constexpr const char* kRecordHelp = R"(
The agent on NODE reads its machine once more, as `heddle-nodeagent record` does: GPUs, PCI tree, NICs, counters,
neighbours. What it read comes as a tar archive on standard output, through `kubectl exec` into its pod, which takes
the right to create pods/exec there. Nothing is changed on the machine or in the cluster.

Examples:
  kubectl heddle record gpu-017 --scrub > gpu-017.tar     under other names, to attach to a bug report
  mkdir gpu-017 && tar -xf gpu-017.tar -C gpu-017
  heddle-nodeagent --machine gpu-017 --print              what Heddle makes of it, anywhere

Exit codes: 0 the archive is whole, 1 it is not, 2 called wrongly.)";

}  // namespace

void DefineRecord(CLI::App& record, RecordOptions& flags) {
  record.add_option("NODE", flags.node, "Name of the Node")->required();
  record.add_flag(
      "--scrub", flags.scrub,
      "Under other names: GUIDs, MAC and IP addresses, UUIDs, serial numbers, hosts and switches");
  record.footer(kRecordHelp);
}

}  // namespace heddle::cli
