#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::nodeagent {

// What a driver and the kernel wrote into the buffers of SIOCETHTOOL (linux/ethtool.h): an answer is the whole buffer,
// from the structure's first byte on. Whatever the bytes are, none is read past the answer's end, and no more is taken
// than stands in it. Pure and total; may be called from any thread.

// More statistics than this are asked of no driver: mlx5 with all channels of a large host has some 10,000; the kernel
// itself sets no bound.
inline constexpr std::uint32_t kMaxEthtoolStats = 65'536;

// ETHTOOL_GSSET_INFO, asked for ETH_SS_STATS alone: how many statistics there are, which may be over kMaxEthtoolStats;
// 0 where the driver has none.
std::uint32_t StatsCountOf(std::string_view answer);
// ETHTOOL_GSTRINGS: `count` names, made printable; one may be empty. Nothing: the driver has another number of them.
std::optional<std::vector<std::string>> StatsNamesOf(std::string_view answer, std::size_t count);
// ETHTOOL_GSTATS: `count` values. Nothing: the driver has another number of them now.
std::optional<std::vector<std::uint64_t>> StatsValuesOf(std::string_view answer, std::size_t count);

}  // namespace heddle::nodeagent
