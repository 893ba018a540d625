#include "kube/completed_indexes.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace heddle::kube {

std::optional<std::int64_t> ReadIndex(std::string_view digits) {
  std::int64_t index = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, index);
  if (digits.empty() || digits.front() == '-' || error != std::errc{} || stop != end) return std::nullopt;
  return index;
}

std::set<int> ReadIndexes(std::string_view text, std::int64_t pods) {
  std::set<int> indexes;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t dash = part.find('-');
    const auto first = ReadIndex(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ReadIndex(part.substr(dash + 1));
    if (first && last) {
      for (std::int64_t index = *first; index <= std::min(*last, pods - 1); ++index)
        indexes.insert(int(index));
    }
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return indexes;
}

}  // namespace heddle::kube
