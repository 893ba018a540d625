#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/table.h"

namespace heddle::cli {

// Rows of short columns and one sentence that says what to do, which is as long as it has to be.
struct AdviceRow {
  std::vector<Cell> cells;
  std::string advice;
};

// One line a row where a terminal has room for it, and where there is no terminal (width 0), so that grep finds whole
// rows. On a narrower one the sentence is broken between words, in its column, or below its row where that would be
// too narrow.
std::string AdviceText(std::vector<std::string> header, const std::vector<AdviceRow>& rows,
                       const Style& style);

// A table. Where the terminal is narrower than it, the columns in `below` stand under their row instead, each by its
// name in small letters: nothing is left out.
std::string ColumnsText(const std::vector<std::string>& header, const std::vector<std::vector<Cell>>& rows,
                        const std::vector<std::size_t>& below, const Style& style);

// Text whose sentences are broken between words where the terminal is narrower, each as far from the edge as it began.
// Lines with two spaces inside are rows of tables and stay as they are. Colours may be in it.
std::string ProseText(const std::string& text, const Style& style);

// Two spaces apart on one line behind `first`. Where the terminal is narrower, what has no room begins a line of its
// own behind `next`, and is broken between words if it must be. Colours may be in the parts.
std::string PartsText(const std::string& first, const std::string& next,
                      const std::vector<std::string>& parts, const Style& style);

// What a rule found: how bad and where, what, and what to do; an empty line behind it.
struct FoundByRule {
  bool error = false;  // else a warning
  std::string rule, where, sentence, remedy;
};
std::string FoundText(const FoundByRule& found, const Style& style);

// A sentence, broken between words where the terminal is narrower.
std::string SentenceText(const std::string& sentence, const Style& style);

// "95s", "12m", "3h", "2d": as kubectl tells ages. "-" where nothing is known, "0s" where clocks disagree.
std::string AgeText(std::optional<base::WallTime> since, base::WallTime now);

// "gpu-001", "gpu-001 and gpu-002", "gpu-001, gpu-002, … 10 more".
std::string FirstNames(const std::vector<std::string>& names);

// At most so many characters of a terminal, the last of them … where something is left out.
std::string Shortened(const std::string& text, std::size_t width);

}  // namespace heddle::cli
