#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace heddle::formats {

// Takes a line apart from left to right. Nothing here throws, and nothing reads past the line.
class Scanner {
 public:
  explicit Scanner(std::string_view line) : rest_(line) {}

  void SkipBlanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r')) {
      rest_.remove_prefix(1);
    }
  }
  bool AtEnd() {
    SkipBlanks();
    return rest_.empty();
  }
  // Takes `literal` if it stands here.
  bool Take(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }
  // Up to the next blank; empty at the end.
  std::string_view Word() {
    SkipBlanks();
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t\r"));
    rest_.remove_prefix(word.size());
    return word;
  }
  // Between two marks; nothing, and nothing taken, where they do not stand here.
  std::optional<std::string_view> Between(char open, char close) {
    if (rest_.empty() || rest_.front() != open) return std::nullopt;
    const std::size_t end = rest_.find(close, 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inner = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return inner;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// The whole of `text` as a number that fits T.
template <class T>
std::optional<T> Number(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Nothing also where it is less than `least` or more than `most`.
template <class T>
std::optional<T> Within(std::string_view text, T least, T most) {
  const auto number = Number<T>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

// Calls `each(line, number)` for every line, counted from 1, without its newline.
template <class Each>
void ForEachLine(std::string_view text, Each each) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    each(text.substr(0, end), number);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace heddle::formats
