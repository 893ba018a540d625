#include "formats/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using base::Code;

constexpr std::size_t kMaxBrackets = 8;  // of one name; Slurm's own limit is 2 unless it is built for more
constexpr std::size_t kMaxDigits = 9;

// "001-016": every number is written at least as wide as the first.
struct Range {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  std::size_t width = 0;
};

// One name: literal, ranges, literal, ranges, … and a literal at the end.
struct Pattern {
  std::vector<std::string> literals;
  std::vector<std::vector<Range>> ranges;
};

base::Error Bad(std::string_view name, const std::string& why) {
  return {Code::kInvalid, fmt::format("`{}` {}", Printable(name, 80), why), std::nullopt};
}

base::Result<Range> ParseRange(std::string_view name, std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  const auto low = Number<std::uint32_t>(first), high = Number<std::uint32_t>(last);
  if (!low || !high || first.size() > kMaxDigits || last.size() > kMaxDigits) {
    return base::Fail(Bad(name, fmt::format("has `{}` where a number of at most {} digits, or two with a "
                                            "dash between them, should stand",
                                            Printable(text, 40), kMaxDigits)));
  }
  if (*high < *low) return base::Fail(Bad(name, fmt::format("counts backwards in `{}`", text)));
  return Range{*low, *high, first.size()};
}

base::Result<Pattern> ParsePattern(std::string_view name) {
  Pattern pattern;
  std::string_view rest = name;
  for (;;) {
    const std::size_t open = rest.find('[');
    const std::string_view literal = rest.substr(0, open);
    if (literal.find(']') != std::string_view::npos) {
      return base::Fail(Bad(name, "has a `]` without its `[`"));
    }
    pattern.literals.emplace_back(literal);
    if (open == std::string_view::npos) return pattern;
    const std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) return base::Fail(Bad(name, "has a `[` without its `]`"));
    if (pattern.ranges.size() == kMaxBrackets) {
      return base::Fail(Bad(name, fmt::format("has more than {} brackets", kMaxBrackets)));
    }
    std::string_view inner = rest.substr(open + 1, close - open - 1);
    auto& ranges = pattern.ranges.emplace_back();
    for (;;) {
      const std::size_t comma = inner.find(',');
      ASSIGN_OR_RETURN(const Range range, ParseRange(name, inner.substr(0, comma)));
      ranges.push_back(range);
      if (comma == std::string_view::npos) break;
      inner.remove_prefix(comma + 1);
    }
    rest.remove_prefix(close + 1);
  }
}

// How many names the pattern stands for; it stops counting past the limit, so nothing overflows.
std::uint64_t CountOf(const Pattern& pattern, std::uint64_t limit) {
  std::uint64_t count = 1;
  for (const auto& ranges : pattern.ranges) {
    std::uint64_t sum = 0;
    for (const Range& range : ranges) {
      sum += std::uint64_t{range.high} - range.low + 1;
      if (sum > limit) return sum;
    }
    count *= sum;
    if (count > limit) return count;
  }
  return count;
}

void Expand(const Pattern& pattern, std::size_t part, const std::string& prefix,
            std::vector<std::string>& names) {
  const std::string begun = prefix + pattern.literals[part];
  if (part == pattern.ranges.size()) {
    names.push_back(begun);
    return;
  }
  for (const Range& range : pattern.ranges[part]) {
    for (std::uint64_t i = range.low; i <= range.high; ++i) {
      Expand(pattern, part + 1, fmt::format("{}{:0{}}", begun, i, range.width), names);
    }
  }
}

// The comma that ends the first name: those in brackets are part of it.
std::size_t EndOfName(std::string_view list) {
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') ++depth;
    if (list[i] == ']') --depth;
    if (list[i] == ',' && depth <= 0) return i;
  }
  return std::string_view::npos;
}

bool IsBlankOrStrange(char c) {
  return c <= ' ' || c > '~';
}

}  // namespace

base::Result<std::vector<std::string>> ExpandHostlist(std::string_view list, std::size_t limit) {
  std::vector<std::string> names;
  for (;;) {
    const std::size_t comma = EndOfName(list);
    const std::string_view name = list.substr(0, comma);
    if (name.empty()) return base::Fail(Code::kInvalid, "a name in the list is empty");
    if (std::any_of(name.begin(), name.end(), IsBlankOrStrange)) {
      return base::Fail(Bad(name, "has a blank or a byte that is not printable ASCII"));
    }
    ASSIGN_OR_RETURN(const Pattern pattern, ParsePattern(name));
    const std::uint64_t count = CountOf(pattern, limit);
    if (count > limit - names.size()) {
      return base::Fail(Code::kTooLarge,
                        fmt::format("`{}` makes it more than {} names, the most that are read",
                                    Printable(name, 80), limit));
    }
    if (name.size() > kMaxHostName * 8) return base::Fail(Bad(name, "is longer than a host name can be"));
    const std::size_t before = names.size();
    Expand(pattern, 0, {}, names);
    for (std::size_t i = before; i < names.size(); ++i) {
      if (names[i].size() > kMaxHostName) {
        return base::Fail(Bad(name, fmt::format("is longer than {} bytes", kMaxHostName)));
      }
    }
    if (comma == std::string_view::npos) return names;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace heddle::formats
