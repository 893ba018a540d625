#include "base/nearest_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace heddle::base {
namespace {

// How many letters are missing, too many, wrong, or changed places with their neighbour.
std::size_t LettersBetween(std::string_view a, std::string_view b) {
  // rows[i][j]: between the first i letters of one and the first j of the other.
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const bool same = a[i - 1] == b[j - 1];
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string NearestWord(std::string_view typed, const std::vector<std::string>& words) {
  constexpr std::size_t kLongest = 40;  // whoever typed more meant no word
  if (typed.size() < 2 || typed.size() > kLongest) return "";
  for (const std::string& word : words) {
    if (word.starts_with(typed)) return word;
  }
  std::string nearest;
  std::size_t least = std::max<std::size_t>(typed.size() / 3, 1) + 1;
  for (const std::string& word : words) {
    const std::size_t letters = LettersBetween(typed, word);
    if (letters < least) {
      least = letters;
      nearest = word;
    }
  }
  return nearest;
}

std::string OneOf(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

}  // namespace heddle::base
