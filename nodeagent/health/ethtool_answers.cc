#include "nodeagent/health/ethtool_answers.h"

#include <linux/ethtool.h>

#include <cstring>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxName = 64;

// 0 where the answer is shorter.
template <class Number>
Number At(std::string_view answer, std::size_t offset) {
  Number number = 0;
  if (offset <= answer.size() && answer.size() - offset >= sizeof number)
    std::memcpy(&number, answer.data() + offset, sizeof number);
  return number;
}

// Whether `count` things of `size` bytes stand behind the structure.
bool Holds(std::string_view answer, std::size_t header, std::size_t count, std::size_t size) {
  return answer.size() >= header && (answer.size() - header) / size >= count;
}

}  // namespace

std::uint32_t StatsCountOf(std::string_view answer) {
  // The mask that comes back has the sets that the driver has; the number of the first stands behind the structure.
  const auto sets = At<std::uint64_t>(answer, offsetof(ethtool_sset_info, sset_mask));
  return sets == 0 ? 0 : At<std::uint32_t>(answer, sizeof(ethtool_sset_info));
}

std::optional<std::vector<std::string>> StatsNamesOf(std::string_view answer, std::size_t count) {
  if (At<std::uint32_t>(answer, offsetof(ethtool_gstrings, len)) != count) return std::nullopt;
  if (!Holds(answer, sizeof(ethtool_gstrings), count, ETH_GSTRING_LEN)) return std::nullopt;
  std::string_view text = answer.substr(sizeof(ethtool_gstrings));
  std::vector<std::string> names;
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view name = text.substr(0, ETH_GSTRING_LEN);
    names.push_back(formats::Printable(name.substr(0, name.find('\0')), kMaxName));
    text.remove_prefix(ETH_GSTRING_LEN);
  }
  return names;
}

std::optional<std::vector<std::uint64_t>> StatsValuesOf(std::string_view answer, std::size_t count) {
  if (At<std::uint32_t>(answer, offsetof(ethtool_stats, n_stats)) != count) return std::nullopt;
  if (!Holds(answer, sizeof(ethtool_stats), count, sizeof(std::uint64_t))) return std::nullopt;
  std::vector<std::uint64_t> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(At<std::uint64_t>(answer, sizeof(ethtool_stats) + i * sizeof(std::uint64_t)));
  return values;
}

}  // namespace heddle::nodeagent
