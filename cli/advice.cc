#include "cli/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/lower_case.h"

namespace heddle::cli {
namespace {

constexpr std::size_t kIndent = 4;
constexpr std::size_t kLeastWidth = 36;  // a narrower column is no pleasure to read
constexpr std::size_t kNamed = 2;

std::size_t WidestLine(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, DisplayWidth(line));
  return widest;
}

// Behind the escape sequences of a colour that begin there.
std::size_t EndOfColour(const std::string& text, std::size_t at) {
  while (at < text.size() && text[at] == '\x1b') {
    const std::size_t end = text.find('m', at);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return at;
}

std::string Uncoloured(const std::string& text) {
  std::string plain;
  for (std::size_t at = EndOfColour(text, 0); at < text.size(); at = EndOfColour(text, at + 1))
    plain += text[at];
  return plain;
}

// "bound by NVLink 2952 Gb/s, as NVLS", of the columns that say something.
std::string Named(const std::vector<std::string>& header, const std::vector<Cell>& row,
                  const std::vector<std::size_t>& columns) {
  std::string text;
  for (const std::size_t c : columns) {
    if (row[c].text.empty() || row[c].text == "-") continue;
    text += (text.empty() ? "" : ", ") + base::LowerCase(header[c]) + " " + WithoutControls(row[c].text);
  }
  return text;
}

// As lines of at most `width`, where words allow.
std::vector<std::string> Wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.empty() &&
        DisplayWidth(Uncoloured(lines.back())) + 1 + DisplayWidth(Uncoloured(word)) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(std::move(word));
    }
  }
  return lines;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(std::move(line));
  return lines;
}

// The rows of `lead`, each with its sentence beside it or below.
std::string BrokenText(const Table& lead, const std::vector<std::string>& sentences, const Style& style) {
  const std::vector<std::string> plain = LinesOf(lead.Format({})), shown = LinesOf(lead.Format(style));
  const std::size_t column = WidestLine(lead.Format({})) + 2;
  const bool beside = style.width >= column + kLeastWidth;
  const std::size_t indent = beside ? column : kIndent;
  const std::size_t width = std::max(style.width, indent + kLeastWidth) - indent;
  std::string text;
  for (std::size_t row = 0; row < shown.size(); ++row) {
    std::vector<std::string> lines = Wrapped(sentences[row], width);
    text += shown[row].substr(0, shown[row].find_last_not_of(' ') + 1);
    std::size_t next = 0;
    if (beside && !lines.empty()) {
      const std::size_t written = DisplayWidth(plain[row].substr(0, plain[row].find_last_not_of(' ') + 1));
      text +=
          std::string(column - written, ' ') + (row == 0 ? style.Paint(lines[0], Colour::kFaint) : lines[0]);
      next = 1;
    }
    text += "\n";
    if (row == 0 && !beside) continue;  // a heading of its own would stand over nothing
    for (; next < lines.size(); ++next) text += std::string(indent, ' ') + lines[next] + "\n";
  }
  return text;
}

}  // namespace

std::string AdviceText(std::vector<std::string> header, const std::vector<AdviceRow>& rows,
                       const Style& style) {
  Table narrow(std::vector<std::string>(header.begin(), header.end() - 1));
  std::vector<std::string> sentences{header.back()};
  Table wide(std::move(header));
  for (const AdviceRow& row : rows) {
    narrow.Add(row.cells);
    sentences.push_back(WithoutControls(row.advice));
    std::vector<Cell> cells = row.cells;
    cells.emplace_back(row.advice);
    wide.Add(std::move(cells));
  }
  const bool fits = style.width == 0 || WidestLine(wide.Format({})) <= style.width;
  return fits ? wide.Format(style) : BrokenText(narrow, sentences, style);
}

std::string ColumnsText(const std::vector<std::string>& header, const std::vector<std::vector<Cell>>& rows,
                        const std::vector<std::size_t>& below, const Style& style) {
  Table wide(header);
  for (const std::vector<Cell>& row : rows) wide.Add(row);
  if (style.width == 0 || WidestLine(wide.Format({})) <= style.width) return wide.Format(style);
  const auto is_below = [&below](std::size_t column) {
    return std::find(below.begin(), below.end(), column) != below.end();
  };
  std::vector<std::string> lead;
  for (std::size_t c = 0; c < header.size(); ++c) {
    if (!is_below(c)) lead.push_back(header[c]);
  }
  Table narrow(std::move(lead));
  std::vector<std::string> sentences{""};
  for (const std::vector<Cell>& row : rows) {
    std::vector<Cell> cells;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!is_below(c)) cells.push_back(row[c]);
    }
    narrow.Add(std::move(cells));
    sentences.push_back(Named(header, row, below));
  }
  return BrokenText(narrow, sentences, style);
}

std::string ProseText(const std::string& text, const Style& style) {
  if (style.width == 0) return text;
  std::string out;
  for (const std::string& line : LinesOf(text)) {
    const std::string shown = Uncoloured(line);
    const std::size_t indent = std::min(shown.find_first_not_of(' '), shown.size());
    const bool row = shown.find("  ", indent) != std::string::npos;
    if (row || DisplayWidth(shown) <= style.width || indent + kLeastWidth > style.width) {
      out += line + "\n";
      continue;
    }
    // The colour may begin before the spaces.
    std::size_t begin = 0;
    for (std::size_t spaces = 0; spaces < indent;) {
      begin = EndOfColour(line, begin);
      if (line[begin] == ' ') ++spaces;
      ++begin;
    }
    out += line.substr(0, begin);
    bool first = true;
    for (const std::string& part : Wrapped(line.substr(begin), style.width - indent)) {
      out += (first ? "" : std::string(indent, ' ')) + part + "\n";
      first = false;
    }
  }
  return out;
}

std::string PartsText(const std::string& first, const std::string& next,
                      const std::vector<std::string>& parts, const Style& style) {
  std::string text = first;
  std::size_t written = DisplayWidth(first);
  bool begun = false;
  for (const std::string& part : parts) {
    const std::size_t width = DisplayWidth(Uncoloured(part));
    if (style.width == 0 || written + (begun ? 2 : 0) + width <= style.width) {
      text += (begun ? "  " : "") + part;
      written += (begun ? 2 : 0) + width;
      begun = true;
      continue;
    }
    const std::size_t indent = DisplayWidth(begun ? next : first);
    const std::size_t room = std::max(style.width, indent + kLeastWidth) - indent;
    for (const std::string& line : width <= room ? std::vector<std::string>{part} : Wrapped(part, room)) {
      if (begun) text += "\n" + next;
      written = DisplayWidth(begun ? next : first) + DisplayWidth(Uncoloured(line));
      text += line;
      begun = true;
    }
  }
  return text + "\n";
}

std::string FoundText(const FoundByRule& found, const Style& style) {
  const std::string indent(9, ' '), where = WithoutControls(found.where);
  const std::size_t head = indent.size() + DisplayWidth(found.rule) + 2 + DisplayWidth(where);
  const bool fits = style.width == 0 || head <= style.width;
  std::string text = fmt::format(
      "{}  {}{}{}\n",
      style.Paint(found.error ? "ERROR  " : "WARNING", found.error ? Colour::kBad : Colour::kNone),
      found.rule, fits ? "  " : "\n" + indent, where);
  text += indent + WithoutControls(found.sentence) + "\n";
  text += style.Paint(indent + "to do: " + WithoutControls(found.remedy), Colour::kFaint) + "\n\n";
  return ProseText(text, style);
}

std::string SentenceText(const std::string& sentence, const Style& style) {
  if (style.width == 0 || DisplayWidth(sentence) <= style.width) return sentence + "\n";
  std::string text;
  for (const std::string& line : Wrapped(sentence, style.width)) text += line + "\n";
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
