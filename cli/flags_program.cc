#include <CLI/CLI.hpp>

#include "cli/flags_commands.h"

namespace heddle::cli {
namespace {

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

void DefineCompletion(CLI::App& completion) {
  completion.footer(kCompletionHelp);
}

void DefineMan(CLI::App& man) {
  man.footer(kManHelp);
}

void DefineVersion(CLI::App& version) {
  version.footer(kVersionHelp);
}

}  // namespace heddle::cli
