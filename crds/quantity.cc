#include "crds/quantity.h"

#include <array>
#include <limits>
#include <utility>

namespace heddle::crds {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// mantissa · 10^ten · 1024^kibi
struct Scaled {
  std::int64_t mantissa = 0;
  int ten = 0;
  int kibi = 0;
};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Digits beyond the 18th only matter to numbers that no machine has; they are dropped and the scale kept.
bool TakeNumber(std::string_view& text, Scaled& scaled) {
  bool digits = false, point = false;
  int kept = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(c)) break;
    digits = true;
    if (kept == 18) {
      if (!point) ++scaled.ten;
      continue;
    }
    scaled.mantissa = scaled.mantissa * 10 + (c - '0');
    if (scaled.mantissa != 0) ++kept;
    if (point) --scaled.ten;
  }
  return digits;
}

bool TakeExponent(std::string_view text, Scaled& scaled) {
  text.remove_prefix(1);
  bool negative = false;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || text.size() > 3) return false;
  int exponent = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return false;
    exponent = exponent * 10 + (c - '0');
  }
  scaled.ten += negative ? -exponent : exponent;
  return true;
}

bool TakeSuffix(std::string_view text, Scaled& scaled) {
  constexpr std::array<std::pair<std::string_view, int>, 10> kDecimal{{{"", 0},
                                                                       {"n", -9},
                                                                       {"u", -6},
                                                                       {"m", -3},
                                                                       {"k", 3},
                                                                       {"M", 6},
                                                                       {"G", 9},
                                                                       {"T", 12},
                                                                       {"P", 15},
                                                                       {"E", 18}}};
  constexpr std::array<std::string_view, 6> kBinary{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  for (const auto& [suffix, power] : kDecimal) {
    if (text == suffix) {
      scaled.ten += power;
      return true;
    }
  }
  for (std::size_t i = 0; i < kBinary.size(); ++i) {
    if (text == kBinary[i]) {
      scaled.kibi = int(i) + 1;
      return true;
    }
  }
  return (text.front() == 'e' || text.front() == 'E') && TakeExponent(text, scaled);
}

std::int64_t Evaluate(Scaled scaled) {
  std::int64_t value = scaled.mantissa;
  if (value == 0) return 0;
  for (; scaled.kibi > 0; --scaled.kibi) {
    if (__builtin_mul_overflow(value, std::int64_t{1024}, &value)) return kLargest;
  }
  for (; scaled.ten > 0; --scaled.ten) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value)) return kLargest;
  }
  bool remainder = false;
  for (; scaled.ten < 0 && value > 0; ++scaled.ten) {
    remainder = remainder || value % 10 != 0;
    value /= 10;
  }
  return remainder ? value + 1 : value;
}

std::optional<std::int64_t> Parse(std::string_view text, int extra_tens) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  Scaled scaled;
  if (!TakeNumber(text, scaled) || !TakeSuffix(text, scaled)) return std::nullopt;
  scaled.ten += extra_tens;
  return Evaluate(scaled);
}

}  // namespace

std::optional<std::int64_t> ParseQuantity(std::string_view text) {
  return Parse(text, 0);
}
std::optional<std::int64_t> ParseMilliQuantity(std::string_view text) {
  return Parse(text, 3);
}

}  // namespace heddle::crds
