#include "formats/mlnx_qos.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using lossless::kPriorities;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  // it prints some 2 KB
constexpr int kMaxCable = 1000;                          // metres; mlx5 takes fewer
constexpr int kMaxBuffer = 1 << 30;
constexpr std::array<std::string_view, 4> kFirstWords{"DCBX mode:", "Priority trust state",
                                                      "PFC configuration:", "dscp2prio mapping:"};

// What it prints of an interface once, whichever of these a version has: of a second interface they come again.
constexpr std::array<std::string_view, 5> kOnce{
    "DCBX mode:", "Priority trust state:", "Receive buffer size (bytes):", "Cable len:", "enabled"};

class Reader {
 public:
  // A sentence where the line is known and wrong.
  std::optional<std::string> Line(std::string_view line) {
    Scanner scan(line);
    scan.SkipBlanks();
    for (std::size_t i = 0; i < kOnce.size(); ++i) {
      if (scan.rest().starts_with(kOnce[i]) && std::exchange(seen_[i], true))
        return fmt::format("\"{}\" stands twice, and this is of one interface a file: split it", kOnce[i]);
    }
    if (scan.Take("DCBX mode:")) return DcbxMode(scan);
    if (scan.Take("Priority trust state:")) return TrustState(scan);
    if (scan.Take("prio:")) return DscpsOfPriority(scan);
    // Older versions go on without repeating the priority.
    const bool more =
        !scan.rest().empty() && scan.rest().find_first_not_of("0123456789, \t\r") == std::string_view::npos;
    if (more && dscp_priority_) return AddDscps(scan.rest());
    dscp_priority_.reset();
    if (scan.Take("Receive buffer size (bytes):")) return BufferSizes(scan);
    if (scan.Take("Cable len:")) return CableLength(scan);
    if (scan.Take("enabled")) return Enabled(scan);
    if (scan.Take("buffer ") || scan.Take("buffer\t") || scan.Take("buffer:")) return Buffers(scan);
    if (scan.Take("tc:")) return TrafficClass(scan);
    if (scan.Take("priority:")) return PriorityOfClass(scan);
    return std::nullopt;
  }

  lossless::PortSettings settings;
  bool read = false;

 private:
  std::optional<std::string> DcbxMode(Scanner& scan) {
    const std::string_view word = scan.Word();
    if (word == "OS") {
      settings.dcbx = lossless::Dcbx::kHost;
    } else if (word == "Firmware") {
      settings.dcbx = lossless::Dcbx::kFirmware;
    } else {
      return "the DCBX mode is neither OS nor Firmware controlled";
    }
    read = true;
    return std::nullopt;
  }

  std::optional<std::string> TrustState(Scanner& scan) {
    const std::string_view word = scan.Word();
    if (word == "dscp") {
      settings.trust = lossless::Trust::kDscp;
    } else if (word == "pcp") {
      settings.trust = lossless::Trust::kPcp;
    } else if (word != "none") {  // "none": it could not find out
      return "the trust state is neither dscp nor pcp";
    }
    read = true;
    return std::nullopt;
  }

  // "3 dscp:31,30,29,"; of a longer list the priority stands again on the next line, or the list just goes on.
  std::optional<std::string> DscpsOfPriority(Scanner& scan) {
    dscp_priority_ = Within(scan.Word(), 0, kPriorities - 1);
    scan.SkipBlanks();
    if (!dscp_priority_ || !scan.Take("dscp:")) return "a line of the dscp2prio mapping is prio:N dscp:N,N,…";
    return AddDscps(scan.rest());
  }

  std::optional<std::string> AddDscps(std::string_view list) {
    if (!settings.dscp_to_priority) settings.dscp_to_priority = lossless::AllDscps(lossless::kNotSaid);
    for (const auto& item : Items(list)) {
      const auto dscp = Within(item, 0, lossless::kDscps - 1);
      if (!dscp) return fmt::format("\"{}\" is no DSCP, which are 0 to 63", Printable(item, 20));
      (*settings.dscp_to_priority)[std::size_t(*dscp)] = std::int8_t(*dscp_priority_);
    }
    read = true;
    return std::nullopt;
  }

  std::optional<std::string> BufferSizes(Scanner& scan) {
    const auto items = Items(scan.rest());
    if (items.size() < kPriorities) return "there are 8 receive buffers";
    lossless::Numbers sizes{};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto size = Within(items[i], 0, kMaxBuffer);
      if (!size) return fmt::format("\"{}\" is no size of a buffer in bytes", Printable(items[i], 20));
      sizes[i] = *size;
    }
    settings.buffer_bytes = sizes;
    return std::nullopt;
  }

  std::optional<std::string> CableLength(Scanner& scan) {
    const auto metres = Within(scan.Word(), 0, 65535);
    if (!metres) return "the cable length is no number of metres";
    if (*metres <= kMaxCable) settings.cable_metres = *metres;
    return std::nullopt;
  }

  std::optional<std::string> Enabled(Scanner& scan) {
    scan.Take(":");
    lossless::PrioritySet pfc;
    for (int priority = 0; priority < kPriorities; ++priority) {
      const auto on = Within(scan.Word(), 0, 1);
      if (!on) return "PFC is 0 or 1 for each of 8 priorities";
      if (*on == 1) pfc.Insert(priority);
    }
    settings.pfc = pfc;
    read = true;
    return std::nullopt;
  }

  std::optional<std::string> Buffers(Scanner& scan) {
    lossless::PriorityTable buffers{};
    for (auto& buffer : buffers) {
      const auto number = Within(scan.Word(), 0, kPriorities - 1);
      if (!number) return "each of 8 priorities has a buffer from 0 to 7";
      buffer = std::int8_t(*number);
    }
    settings.priority_to_buffer = buffers;
    return std::nullopt;
  }

  // "0 ratelimit: unlimited, tsa: ets, bw: 10%"; only classes that a priority has are printed.
  std::optional<std::string> TrafficClass(Scanner& scan) {
    class_ = Within(scan.Word(), 0, kPriorities - 1);
    if (!class_) return "traffic classes are 0 to 7";
    const std::string_view rest = scan.rest();
    const std::size_t tsa = rest.find("tsa:");
    if (tsa == std::string_view::npos) return std::nullopt;
    if (!settings.class_algorithm) {
      settings.class_algorithm.emplace().fill(lossless::Algorithm::kAny);
      settings.class_percent.emplace().fill(lossless::kNotSaid);
    }
    Scanner words(rest.substr(tsa + 4));
    std::string_view word = words.Word();
    if (word.ends_with(',')) word.remove_suffix(1);
    const auto at = std::size_t(*class_);
    if (word == "strict") {
      (*settings.class_algorithm)[at] = lossless::Algorithm::kStrict;
    } else if (word == "vendor") {
      (*settings.class_algorithm)[at] = lossless::Algorithm::kVendor;
    } else if (word == "ets") {
      (*settings.class_algorithm)[at] = lossless::Algorithm::kEts;
      words.SkipBlanks();
      std::string_view share = words.Take("bw:") ? words.Word() : std::string_view();
      if (share.ends_with('%')) share.remove_suffix(1);
      const auto percent = Within(share, 0, 100);
      if (!percent) return "an ETS class has its share as bw: N%";
      (*settings.class_percent)[at] = *percent;
    } else if (word != "unknown") {
      return "the tsa is none of strict, ets and vendor";
    }
    return std::nullopt;
  }

  std::optional<std::string> PriorityOfClass(Scanner& scan) {
    if (!class_) return std::nullopt;  // the head of the PFC table in some versions
    const auto priority = Within(scan.Word(), 0, kPriorities - 1);
    if (!priority) return "priorities are 0 to 7";
    if (!settings.priority_to_class) settings.priority_to_class.emplace().fill(lossless::kNotSaid);
    (*settings.priority_to_class)[std::size_t(*priority)] = std::int8_t(*class_);
    return std::nullopt;
  }

  // Between commas, without blanks; a comma at the end ends the list.
  static std::vector<std::string_view> Items(std::string_view list) {
    std::vector<std::string_view> items;
    while (!list.empty() && items.size() < 128) {
      const std::size_t comma = list.find(',');
      Scanner item(list.substr(0, comma));
      if (const std::string_view word = item.Word(); !word.empty()) items.push_back(word);
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
    return items;
  }

  std::array<bool, kOnce.size()> seen_{};
  std::optional<int> class_;
  std::optional<int> dscp_priority_;  // whose list of DSCPs may go on
};

}  // namespace

bool LooksLikeMlnxQos(std::string_view text) {
  bool found = false;
  ForEachLine(text.substr(0, kMaxBytes), [&](std::string_view line, int) {
    Scanner scan(line);
    scan.SkipBlanks();
    found = found || std::any_of(kFirstWords.begin(), kFirstWords.end(),
                                 [&](std::string_view words) { return scan.rest().starts_with(words); });
  });
  return found;
}

base::Result<lossless::PortSettings> ParseMlnxQos(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return base::Fail(base::Code::kTooLarge,
                      "it is more than 1 MiB: mlnx_qos prints some 2 KB of an interface");
  }
  Reader reader;
  std::optional<std::string> fault;
  ForEachLine(text, [&](std::string_view line, int number) {
    if (fault) return;
    if (const auto why = reader.Line(line)) fault = fmt::format("line {}: {}", number, *why);
  });
  if (fault) return base::Fail(base::Code::kInvalid, *std::move(fault));
  if (!reader.read) {
    return base::Fail(base::Code::kInvalid,
                      "it is not what `mlnx_qos -i DEV` prints: no DCBX mode, trust or PFC");
  }
  return std::move(reader.settings);
}

}  // namespace heddle::formats
