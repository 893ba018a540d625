#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::base {

enum class Colour : std::uint8_t { kNone, kGood, kBad, kFaint };

// How output looks: colours only on a terminal that wants them.
struct Style {
  bool colours = false;
  std::size_t width = 0;  // columns of the terminal; 0 = it is none
  std::string Paint(std::string_view text, Colour colour) const;
};

struct Cell {
  Cell(std::string content) : text(std::move(content)) {}  // NOLINT(google-explicit-constructor)
  Cell(const char* content) : text(content) {}             // NOLINT(google-explicit-constructor)
  Cell(std::string content, Colour tint) : text(std::move(content)), colour(tint) {}
  std::string text;
  Colour colour = Colour::kNone;
};

// Rows with columns two spaces apart, each as wide as its widest cell; columns of numbers stand to the right.
// The first row is the header. Control characters become '?': names come from a cluster and end on a
// terminal.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void Add(std::vector<Cell> row);
  bool empty() const { return rows_.size() == 1; }
  std::string Format(const Style& style) const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

// Characters a terminal shows, not bytes.
std::size_t DisplayWidth(std::string_view utf8);
// Its control characters as "?": they would move the cursor.
std::string WithoutControls(std::string_view text);

}  // namespace heddle::base
