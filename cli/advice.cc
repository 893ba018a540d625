#include "cli/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace heddle::cli {
namespace {

constexpr std::size_t kIndent = 4;
constexpr std::size_t kLeastWidth = 40;  // narrower, words would be broken anyhow
constexpr std::size_t kNamed = 2;

std::size_t WidestLine(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, DisplayWidth(line));
  return widest;
}

// Lines of `text`, each below `indent` spaces.
std::string Wrapped(const std::string& text, std::size_t width) {
  const std::string margin(kIndent, ' ');
  std::string lines, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && kIndent + DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      lines += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? lines : lines + margin + line + "\n";
}

// Without the blanks that a table leaves at the end of a line.
std::string LineOf(std::istringstream& lines) {
  std::string line;
  std::getline(lines, line);
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string AdviceText(std::vector<std::string> header, const std::vector<AdviceRow>& rows,
                       const Style& style) {
  std::vector<std::string> narrow_header(header.begin(), header.end() - 1);
  Table wide(std::move(header)), narrow(std::move(narrow_header));
  for (const AdviceRow& row : rows) {
    narrow.Add(row.cells);
    std::vector<Cell> cells = row.cells;
    cells.emplace_back(row.advice);
    wide.Add(std::move(cells));
  }
  if (style.width == 0 || WidestLine(wide.Format({})) <= style.width) return wide.Format(style);
  std::istringstream lines(narrow.Format(style));
  std::string text = LineOf(lines);
  for (const AdviceRow& row : rows) {
    text += LineOf(lines);
    text += Wrapped(Printable(row.advice), std::max(style.width, kLeastWidth));
  }
  return text;
}

std::string AgeText(std::optional<base::WallTime> since, base::WallTime now) {
  if (!since) return "-";
  using namespace std::chrono;  // NOLINT(google-build-using-namespace): units only
  const auto age = std::max(duration_cast<seconds>(now - *since), seconds(0));
  if (age < minutes(2)) return fmt::format("{}s", age.count());
  if (age < hours(2)) return fmt::format("{}m", duration_cast<minutes>(age).count());
  if (age < hours(48)) return fmt::format("{}h", duration_cast<hours>(age).count());
  return fmt::format("{}d", duration_cast<hours>(age).count() / 24);
}

std::string FirstNames(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  if (names.size() == 1) return names.front();
  if (names.size() == kNamed) return names[0] + " and " + names[1];
  if (names.size() == kNamed + 1) return names[0] + ", " + names[1] + " and " + names[2];
  return fmt::format("{}, {}, … {} more", names[0], names[1], names.size() - kNamed);
}

std::string Shortened(const std::string& text, std::size_t width) {
  if (DisplayWidth(text) <= width) return text;
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) continue;
    if (++shown == width) break;
  }
  return text.substr(0, end) + "…";
}

}  // namespace heddle::cli
