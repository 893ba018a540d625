#include "cli/flags_help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "cli/nearest_word.h"

namespace heddle::cli {
namespace {

constexpr const char* kExplainHelp = R"(
Where each rank of a gang is and why there, what a step costs, and of one that waits what stands in its way, with each
way out tried on the cluster as it stands. KIND/NAME is what made the gang, or the Gang itself (kubectl get gangs).

Examples:
  kubectl heddle explain job/llama -n train
  kubectl heddle explain trainjob/llama -n train -o json
  kubectl heddle explain gang/llama-3f9c1a7e-0 -n train
  kubectl heddle explain job/llama -n train --parallelism "tp=8,pp=2,dp=8"   a Job that Heddle did not place

Exit codes: 0 it has its places, 3 it is refused, or waits for a reason, 1 its pods have no places yet, it is not there,
or the cluster could not be asked, 2 called wrongly.)";

constexpr const char* kObserveHelp = R"(
Where Heddle is installed with mode=observe it touches no pod. A row for each job that the cluster's own scheduler
placed, with what that costs a step and what Heddle's places would have cost, the latest first.

Examples:
  kubectl heddle observe
  kubectl heddle observe --last 100 --days 30 -n train
  kubectl heddle observe -o json

Exit codes: 0 shown, 1 no job was observed in these days, or the cluster could not be asked, 2 called wrongly.)";

constexpr const char* kImportHelp = R"(
What each FILE is, is told from its content. Notes say what no file tells and is taken for granted, warnings what
contradicts itself, or a cable that is not as its like; both go to standard error. docs/import.md says more.

Examples:
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json
  kubectl heddle fabric import topology.conf --gpus-per-node 4 --nvlink-blocks -o json > fabric.json
  kubectl heddle fabric import topo-m:notes.txt gpu-017=lldp.json --transport roce
  kubectl heddle plan --topology fabric.json --parallelism "tp=8,dp=16"

Exit codes: 0 done, 2 called wrongly, or a file could not be read.)";

constexpr const char* kPlanHelp = R"(
Examples:
  kubectl get nt,fabrics,gangs -A -o json | kubectl heddle plan --topology - --parallelism "tp=8,dp=16"
  kubectl heddle plan --synthetic "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100" \
      --parallelism "tp=8,pp=2,dp=8" --gpus-per-pod 4 --what-if
  kubectl heddle plan --topology now.json --suggest --gpus 256 --global-batch 2048 \
      --model "params=70e9,layers=80,hidden=8192,seq=8192"
  kubectl heddle plan --topology now.json --defragment 2     which gangs to move so that two NVLink domains are whole

Exit codes: 0 it fits, 3 it does not, 2 the question is wrong, or a file could not be read.)";

constexpr const char* kSwitchHelp = R"(
Both work on files, and nothing is sent to a switch; each has a --help of its own.

Examples:
  kubectl heddle switch render policy.yaml --config leaf-3.json --port Ethernet0,Ethernet4
  kubectl get nt -o json | kubectl heddle switch compare - leaf-*.json

Exit codes: 0 nothing is to change, or every cable is lossless, 3 it is not so, 2 a file could not be read.)";

constexpr const char* kCompletionHelp = R"(
Prints the file kubectl_complete-heddle, which kubectl runs when Tab is pressed behind `kubectl heddle`. It is one for
all shells: the shell asks kubectl, and kubectl asks it. Two things are to be done, once.

The file, executable, in a folder of $PATH. krew installs none for its plugins:
  kubectl heddle completion > ~/.local/bin/kubectl_complete-heddle && chmod +x ~/.local/bin/kubectl_complete-heddle

The completion of kubectl itself (1.26 or newer), in the shell that you use:
  bash   echo 'source <(kubectl completion bash)' >> ~/.bashrc                      with the package bash-completion
  zsh    echo 'source <(kubectl completion zsh)' >> ~/.zshrc                        behind compinit
  fish   echo 'kubectl completion fish | source' >> ~/.config/fish/config.fish

Then open another shell and press Tab behind: kubectl heddle ex. Behind kubectl-heddle, the program's own name, nothing
is completed.

Exit codes: 0 printed, 2 called wrongly.)";

constexpr const char* kManHelp = R"(
Examples:
  kubectl heddle man | man -l -
  kubectl heddle man > ~/.local/share/man/man1/kubectl-heddle.1     from then on: man kubectl-heddle

Exit codes: 0 printed, 2 called wrongly.)";

constexpr const char* kVersionHelp = R"(
`kubectl heddle doctor` compares it with what runs in the cluster.

Examples:
  kubectl heddle version
  kubectl heddle version -o json

Exit codes: 0 printed, 2 called wrongly.)";

}  // namespace

void AddFooters(CLI::App& app) {
  app.get_subcommand("explain")->footer(kExplainHelp);
  app.get_subcommand("observe")->footer(kObserveHelp);
  app.get_subcommand("plan")->footer(kPlanHelp);
  app.get_subcommand("switch")->footer(kSwitchHelp);
  app.get_subcommand("completion")->footer(kCompletionHelp);
  app.get_subcommand("man")->footer(kManHelp);
  app.get_subcommand("version")->footer(kVersionHelp);
  app.get_subcommand("fabric")->get_subcommand("import")->footer(kImportHelp);
}

std::string WhichCommand(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  const std::vector<std::string> typed = app.remaining();
  if (typed.empty()) return "say what to do: " + OneOf(names);
  const std::string meant = NearestWord(typed.front(), names);
  const std::string next = meant.empty() ? ": write " : fmt::format("; did you mean {}? Write ", meant);
  return "there is no command " + typed.front() + next + OneOf(names);
}

}  // namespace heddle::cli
