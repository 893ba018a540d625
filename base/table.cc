#include "base/table.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::base {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789./-%") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace

std::string Style::Paint(std::string_view text, Colour colour) const {
  if (!colours || colour == Colour::kNone || text.empty()) return std::string(text);
  const char* code = colour == Colour::kGood ? "32" : colour == Colour::kBad ? "31" : "2";
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t DisplayWidth(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string WithoutControls(std::string_view text) {
  std::string clean(text);
  for (char& c : clean) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return clean;
}

Table::Table(std::vector<std::string> header) {
  rows_.emplace_back(header.begin(), header.end());
}

void Table::Add(std::vector<Cell> row) {
  CHECK(row.size() == rows_.front().size());
  for (Cell& cell : row) cell.text = cell.text.empty() ? "-" : WithoutControls(cell.text);
  rows_.push_back(std::move(row));
}

std::string Table::Format(const Style& style) const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> numeric(columns, rows_.size() > 1);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], DisplayWidth(rows_[r][c].text));
      if (r > 0 && !IsNumber(rows_[r][c].text)) numeric[c] = false;
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const Cell& cell = rows_[r][c];
      const std::string padding(widths[c] - DisplayWidth(cell.text), ' ');
      const std::string shown = style.Paint(cell.text, r == 0 ? Colour::kFaint : cell.colour);
      text += numeric[c] ? padding + shown : c + 1 == columns ? shown : shown + padding;
      text += c + 1 == columns ? "\n" : "  ";
    }
  }
  return text;
}

}  // namespace heddle::base
