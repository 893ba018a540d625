#include "nodeagent/health/ethtool_stats.h"

#include <fmt/format.h>
#include <linux/ethtool.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/health/ethtool_answers.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxName = 64;
// Reads after which names are asked for anew: five minutes of the agent's passes. It is a third of a megabyte.
constexpr int kReadsWithNames = 20;

base::Error FromErrno(int error, const std::string& netdev, std::string_view what) {
  const bool none = error == ENODEV || error == EOPNOTSUPP || error == EINVAL;
  return base::Error{none                                ? base::Code::kNotFound
                     : error == EPERM || error == EACCES ? base::Code::kForbidden
                                                         : base::Code::kUnavailable,
                     fmt::format("ethtool {} of {}: {}", what, netdev, std::strerror(error)), std::nullopt};
}

base::Result<int> IndexOf(EthtoolSocket& socket, const std::string& netdev) {
  int index = 0;
  const int error = socket.IndexOf(netdev, index);
  if (error != 0) return base::Fail(FromErrno(error, netdev, "statistics"));
  return index;
}

// The kernel's structures end in an array of no fixed length; what they are laid over is aligned for them.
template <class Header>
std::vector<std::uint64_t> BufferFor(std::size_t bytes_behind) {
  return std::vector<std::uint64_t>((sizeof(Header) + bytes_behind) / sizeof(std::uint64_t) + 1);
}

std::string_view Bytes(const std::vector<std::uint64_t>& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(std::uint64_t)};
}

// Kernels of before December 2025 write as many as the driver has now, whatever was asked for: room for more, should
// channels have come in between. Later ones write none then, and say 0.
std::size_t RoomFor(std::size_t count) {
  return 2 * count + 1024;
}

base::Error OtherNumber(const std::string& netdev) {
  return base::Error{
      base::Code::kUnavailable,
      fmt::format("ethtool statistics of {}: their number changed while they were read", netdev),
      std::nullopt};
}

base::Result<std::size_t> CountOf(EthtoolSocket& socket, const std::string& netdev) {
  auto buffer = BufferFor<ethtool_sset_info>(sizeof(std::uint32_t));
  auto* info = reinterpret_cast<ethtool_sset_info*>(buffer.data());
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = std::uint64_t(1) << ETH_SS_STATS;
  if (const int error = socket.Ask(netdev, info); error != 0)
    return base::Fail(FromErrno(error, netdev, "statistics"));
  const std::uint32_t count = StatsCountOf(Bytes(buffer));
  if (count <= kMaxEthtoolStats) return std::size_t(count);
  return base::Fail(base::Code::kTooLarge,
                    fmt::format("ethtool statistics of {}: there are {}, and at most {} are read", netdev,
                                count, kMaxEthtoolStats));
}

base::Result<std::vector<std::string>> NamesOf(EthtoolSocket& socket, const std::string& netdev,
                                               std::size_t count) {
  // The kernel warns in its log of a driver that is asked for the names of none (net/ethtool/ioctl.c).
  if (count == 0) return std::vector<std::string>();
  auto buffer = BufferFor<ethtool_gstrings>(RoomFor(count) * ETH_GSTRING_LEN);
  auto* strings = reinterpret_cast<ethtool_gstrings*>(buffer.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = std::uint32_t(count);
  if (const int error = socket.Ask(netdev, strings); error != 0)
    return base::Fail(FromErrno(error, netdev, "names of statistics"));
  auto names = StatsNamesOf(Bytes(buffer), count);
  if (!names) return base::Fail(OtherNumber(netdev));
  return *std::move(names);
}

base::Result<std::vector<std::uint64_t>> ValuesOf(EthtoolSocket& socket, const std::string& netdev,
                                                  std::size_t count) {
  if (count == 0) return std::vector<std::uint64_t>();
  auto buffer = BufferFor<ethtool_stats>(RoomFor(count) * sizeof(std::uint64_t));
  auto* stats = reinterpret_cast<ethtool_stats*>(buffer.data());
  stats->cmd = ETHTOOL_GSTATS;
  stats->n_stats = std::uint32_t(count);
  if (const int error = socket.Ask(netdev, stats); error != 0)
    return base::Fail(FromErrno(error, netdev, "statistics"));
  auto values = StatsValuesOf(Bytes(buffer), count);
  if (!values) return base::Fail(OtherNumber(netdev));
  return *std::move(values);
}

}  // namespace

base::Result<EthtoolStats> LiveEthtool::Read(const std::string& netdev) {
  if (const int error = socket_.Open(); error != 0) return base::Fail(FromErrno(error, netdev, "socket"));
  const auto index = IndexOf(socket_, netdev);
  const auto count = index ? CountOf(socket_, netdev) : base::Result<std::size_t>(base::Fail(index.error()));
  if (!count) {
    known_.erase(netdev);
    return base::Fail(count.error());
  }
  Known& known = known_[netdev];
  const bool same = known.names != nullptr && known.names->size() == *count && known.interface == *index;
  if (!same || ++known.reads > kReadsWithNames) {
    auto fresh = NamesOf(socket_, netdev, *count);
    if (!fresh) {
      known_.erase(netdev);
      return base::Fail(fresh.error());
    }
    if (!same || *known.names != *fresh)
      known.names = std::make_shared<const std::vector<std::string>>(*std::move(fresh));
    known.interface = *index;
    known.reads = 0;
  }
  auto values = ValuesOf(socket_, netdev, *count);
  if (!values) {
    known_.erase(netdev);
    return base::Fail(values.error());
  }
  return EthtoolStats{known.names, *std::move(values)};
}

base::Result<EthtoolStats> RecordedEthtool::Read(const std::string& netdev) {
  auto text = files_.Read("ethtool/" + netdev);
  if (!text) {
    known_.erase(netdev);
    return base::Fail(text.error());
  }
  Known& known = known_[netdev];
  if (known.stats.names == nullptr || known.text != *text) {
    EthtoolStats stats = ParseEthtoolStats(*text);
    if (known.stats.names != nullptr && *known.stats.names == *stats.names) stats.names = known.stats.names;
    known = {*std::move(text), std::move(stats)};
  }
  return known.stats;
}

EthtoolStats ParseEthtoolStats(std::string_view text) {
  std::vector<std::string> names;
  EthtoolStats stats;
  while (!text.empty() && names.size() < kMaxEthtoolStats) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    // A name may have colons and spaces in it; the value is behind the last colon.
    const std::size_t colon = line.rfind(": ");
    const std::size_t start = line.find_first_not_of(' ');
    if (colon == std::string_view::npos || start >= colon) continue;
    const auto value = formats::Number<std::uint64_t>(line.substr(colon + 2));
    std::string name = formats::Printable(line.substr(start, colon - start), kMaxName);
    if (!value || name.empty()) continue;
    names.push_back(std::move(name));
    stats.values.push_back(*value);
  }
  stats.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  return stats;
}

std::string FormatEthtoolStats(const EthtoolStats& stats) {
  std::string text = "NIC statistics:\n";
  for (std::size_t i = 0; i < stats.values.size(); ++i)
    text += fmt::format("     {}: {}\n", (*stats.names)[i], stats.values[i]);
  return text;
}

}  // namespace heddle::nodeagent
