#include "cli/flags_words.h"

namespace heddle::cli {

base::Status CheckWords(const Flags& flags) {
  switch (flags.command) {
    case Command::kExplain:
      return CheckWords(flags.explain);
    case Command::kObserve:
      return CheckWords(flags.observed);
    case Command::kCheck:
      return CheckWords(flags.check);
    case Command::kBench:
      return CheckWords(flags.bench);
    case Command::kRelease:
      return CheckWords(flags.release);
    default:
      return {};
  }
}

}  // namespace heddle::cli
