#include "sizing/request.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

namespace heddle::sizing {
namespace {

std::optional<int> Number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<Ratio> ParseRatio(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto down = Number(text.substr(0, colon)), up = Number(text.substr(colon + 1));
  if (!down || !up || *down < 1 || *up < 1 || *down > kMostRatio || *up > kMostRatio) return std::nullopt;
  return Ratio{*down, *up};
}

std::string RatioText(Ratio ratio) {
  const int common = std::gcd(ratio.down, ratio.up);
  return fmt::format("{}:{}", ratio.down / common, ratio.up / common);
}

std::string Grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ptrdiff_t(text.size()) - 3; at > first; at -= 3)
    text.insert(std::size_t(at), ",");
  return text;
}

std::string_view WiringWord(Wiring wiring) {
  return wiring == Wiring::kRailOptimised ? "rail-optimised"
         : wiring == Wiring::kFatTree     ? "fat-tree"
                                          : "rail-only";
}

std::optional<Wiring> ParseWiring(std::string_view word) {
  if (word == "rail-optimised" || word == "rail-optimized") return Wiring::kRailOptimised;
  if (word == "fat-tree" || word == "tor") return Wiring::kFatTree;
  if (word == "rail-only") return Wiring::kRailOnly;
  return std::nullopt;
}

}  // namespace heddle::sizing
