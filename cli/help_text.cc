#include "cli/help_text.h"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/advice.h"

namespace heddle::cli {
namespace {

constexpr std::size_t kWidest = 120;      // longer lines are no pleasure to read
constexpr std::size_t kLeastColumn = 36;  // as AdviceText has it
constexpr std::size_t kBelow = 6;

std::vector<std::string> Lines(const std::string& sentence, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream stream(SentenceText(sentence, {.width = width}));
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// "  --last INT                  So many jobs at most (20)", the second half of one whose name took all the room, or an
// example with what it is for. The left half stays whole; the right one is broken in its column, or, where that has no
// room, below.
std::string RowText(const std::string& line, std::size_t width) {
  const std::size_t indent = line.find_first_not_of(' ');
  const std::size_t gap = line.find("  ", indent);
  if (DisplayWidth(line) <= width || (gap == std::string::npos && indent <= kBelow)) return line + "\n";
  const std::size_t column = gap == std::string::npos ? indent : line.find_first_not_of(' ', gap);
  const std::string right = line.substr(column);
  std::vector<std::string> lines;
  if (column + kLeastColumn <= width) lines = Lines(right, width - column);
  const bool beside =
      !lines.empty() && std::all_of(lines.begin(), lines.end(), [column, width](const std::string& part) {
        return column + DisplayWidth(part) <= width;
      });
  if (!beside) lines = Lines(right, std::max(width, kBelow + kLeastColumn) - kBelow);
  std::string text = beside                     ? line.substr(0, column)
                     : gap == std::string::npos ? ""
                                                : line.substr(0, gap) + "\n";
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (beside && i == 0 ? "" : std::string(beside ? column : kBelow, ' ')) + lines[i] + "\n";
  return text;
}

}  // namespace

std::string HelpText(const std::string& help, std::size_t width) {
  if (width == 0) return help;
  std::string text, paragraph;
  const auto end_paragraph = [&text, &paragraph, width] {
    if (!paragraph.empty()) text += SentenceText(paragraph, {.width = std::min(width, kWidest)});
    paragraph.clear();
  };
  bool rows = false;  // of options, commands, and examples with what they are for
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(' ') + 1);
    if (line.empty() || line.front() == ' ') {
      end_paragraph();
      rows = rows && !line.empty();
      text += rows || line.starts_with("  --") ? RowText(line, width) : line + "\n";
      continue;
    }
    rows = line == "Options:" || line == "Positionals:" || line == "Subcommands:" || line == "Examples:";
    // CLI11 puts these right below what the command is for.
    if (rows || line.starts_with("Usage:") || line.starts_with("[Exactly")) end_paragraph();
    paragraph += (paragraph.empty() ? "" : " ") + line;
    if (rows || line.starts_with("Usage:")) end_paragraph();
  }
  end_paragraph();
  return text;
}

}  // namespace heddle::cli
