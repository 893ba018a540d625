#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

// What may stand next on a command line.
struct Candidate {
  std::string word;
  std::string about;  // may be empty
};

// How a shell goes on, in the numbers of kubectl's completion (ShellCompDirective of spf13/cobra).
enum class AfterWord : int {
  kFiles = 0,    // with the names of files, where no candidate fits
  kNoSpace = 2,  // the word goes on
  kNoFiles = 4,
};

// What only a cluster, or the files in its place, can tell: complete_names.h asks them.
struct NamesWanted {
  enum class What : std::uint8_t {
    kNodes,   // that have a NodeTopology
    kOwners,  // of the kind that stands before the slash of `typed`
  };
  What what = What::kNodes;
  std::string typed;                    // what each candidate begins with: "gpu-0", "job/ll"
  std::string kubeconfig, context, ns;  // as given so far; empty = as ever
  std::string as;                       // whom to ask as
  std::vector<std::string> as_groups;
  std::vector<std::string> topology;  // files in place of the cluster
};

struct Completion {
  std::vector<Candidate> candidates;  // in the order of --help
  AfterWord after = AfterWord::kNoFiles;
  std::optional<NamesWanted> names = std::nullopt;  // then there are no candidates yet
};

// `words`: what follows the program's name; the last is the one being typed and may be empty. Pure.
Completion Complete(const CLI::App& app, const std::vector<std::string>& words);

// A candidate a line, its meaning behind a tab, and the directive on the last: what kubectl reads from
// kubectl_complete-heddle.
std::string Printed(const Completion& completion);

// The file kubectl_complete-heddle, which kubectl looks for in $PATH when Tab is pressed behind `kubectl heddle`.
extern const std::string_view kCompletionFile;

}  // namespace heddle::cli
