#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/write_all.h"
#include "cli/bench.h"
#include "cli/cables.h"
#include "cli/check.h"
#include "cli/commands.h"
#include "cli/complete_names.h"
#include "cli/doctor.h"
#include "cli/fabric_design.h"
#include "cli/flags.h"
#include "cli/import.h"
#include "cli/kubectl.h"
#include "cli/lint.h"
#include "cli/live_cluster.h"
#include "cli/observed.h"
#include "cli/of_files.h"
#include "cli/patience.h"
#include "cli/plan.h"
#include "cli/prepare.h"
#include "cli/read_path.h"
#include "cli/record.h"
#include "cli/release.h"
#include "cli/status.h"
#include "cli/switch_compare.h"
#include "cli/switch_render.h"
#include "cli/wait.h"
#include "cli/write_path.h"
#include "kube/api_transport.h"
#include "kube/config.h"
#include "kube/proxy.h"
#include "kube/server_clock.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

cli::Output Record(kube::Client& client, cli::Flags& flags, const cli::OutputOptions& look) {
  flags.record.kubeconfig = flags.kubeconfig;
  flags.record.context = flags.context;
  flags.record.as = flags.as;
  flags.record.as_groups = flags.as_groups;
  flags.record.to_terminal = isatty(STDOUT_FILENO) != 0;
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const cli::RunKubectl kubectl = [&](const std::vector<std::string>& arguments) {
    return cli::KubectlToStdout(arguments, environment);
  };
  return cli::RunRecord(client, flags.record, kubectl, look, {});
}

cli::Output AskCluster(cli::Flags& flags, const cli::OutputOptions& look) {
  base::SystemClock clock;
  const base::DiskFileTree root("/");
  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  sources.kubeconfig_flag = flags.kubeconfig;
  sources.context = flags.context;
  sources.as = flags.as;
  sources.as_groups = flags.as_groups;
  sources.like_kubectl = true;
  auto config = kube::LoadConfig(sources, root, clock);
  const bool completes = flags.command == cli::Command::kComplete;
  if (!config) return completes ? cli::CompleteWithoutNames() : cli::NoCluster(sources, config.error());
  flags.observed.ns = flags.explain.ns;  // all namespaces, where none was given
  flags.record.ns = flags.explain.ns;
  if (flags.explain.ns.empty()) flags.explain.ns = config->ns;
  flags.check.ns = flags.bench.ns = flags.names.ns = flags.explain.ns;
  flags.release.ns = flags.status.ns = flags.observed.ns;
  std::string server = kube::WayTo(*config);
  const auto wire = kube::MakeApiTransport(*std::move(config), clock);
  cli::SayingTransport saying(*wire, clock, std::move(server), completes ? nullptr : cli::SayOnTerminal());
  kube::ServerClock server_clock(clock);  // what is old is old by the cluster's time
  kube::ClockSettingTransport transport(saying, clock, server_clock, [](std::string_view) {});
  kube::Client client(transport, clock, cli::ClientOptionsOf(flags));
  if (completes) return cli::CompleteOfCluster(client, flags.names, {});
  if (flags.command == cli::Command::kStatus)
    return cli::RunStatus(client, server_clock, flags.status, look, {});
  if (flags.command == cli::Command::kDoctor) return cli::RunDoctor(client, server_clock, look, {});
  if (flags.command == cli::Command::kCables) return cli::RunCables(client, flags.cables, look, {});
  if (flags.command == cli::Command::kExplain)
    return cli::RunExplain(client, server_clock, flags.explain, look, {});
  if (flags.command == cli::Command::kObserve) {
    return cli::RunObserved(client, flags.observed, clock.WallNow(), look, {});
  }
  if (flags.command == cli::Command::kTopology) return cli::RunTopology(client, flags.node, look, {});
  if (flags.command == cli::Command::kCheck)
    return cli::RunCheck(client, server_clock, flags.check, cli::ReadPath, look, {});
  if (flags.command == cli::Command::kBench)
    return cli::RunBench(client, flags.bench, cli::ReadPath, look, {});
  if (flags.command == cli::Command::kRecord) return Record(client, flags, look);
  if (flags.command == cli::Command::kRelease) return cli::RunRelease(client, clock, flags.release, look, {});
  return cli::RunFabric(client, look, {});
}

// 0 = standard output is no terminal.
std::size_t TerminalWidth() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

cli::Output Run(cli::Flags& flags) {
  const char* no_colour = std::getenv("NO_COLOR");  // no-color.org
  const bool colours = isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
  const cli::OutputOptions look{.format = flags.format,
                                .style = {.colours = colours, .width = TerminalWidth()}};
  switch (flags.command) {
    case cli::Command::kPlan:
      return cli::Plan(flags.plan, cli::ReadPath, look);
    case cli::Command::kImport:
      flags.import.now = base::SystemClock().WallNow();
      return cli::ImportFabric(flags.import, cli::ReadPath, look);
    case cli::Command::kDesign:
      flags.design.now = base::SystemClock().WallNow();
      return cli::FabricDesign(flags.design, cli::ReadPath, cli::WritePath, look);
    case cli::Command::kLint:
      return cli::Lint(flags.lint, cli::ReadPath, look);
    case cli::Command::kSwitchRender:
      return cli::SwitchRender(flags.switch_render, cli::ReadPath, look);
    case cli::Command::kSwitchCompare:
      return cli::SwitchCompare(flags.switch_compare, cli::ReadPath, look);
    case cli::Command::kPrepare:
      return cli::Prepare(flags.prepare, cli::ReadPath, look);
    case cli::Command::kWait:
      cli::WaitForSignal();
      return {};
    default:
      if (auto of_files = cli::OfFiles(flags, cli::ReadPath, base::SystemClock().WallNow(), look))
        return *std::move(of_files);
      return AskCluster(flags, look);
  }
}

}  // namespace

int main(int argc, char** argv) {
  cli::CommandLine line = cli::ReadCommandLine(argc, argv, TerminalWidth());
  const cli::Output output = line.instead ? *line.instead : Run(line.flags);
  const base::Status written = base::WriteAll(output.out, stdout);
  std::fputs(output.err.c_str(), stderr);
  if (written) return output.exit_code;
  // Whoever keeps the answer in a file would take what is there for all of it.
  const cli::Output cut = cli::Failure(written.error());
  std::fputs(cut.err.c_str(), stderr);
  return cut.exit_code;
}
