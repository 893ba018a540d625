#include "formats/dcb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/json_bounds.h"
#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::formats {
namespace {

using Json = nlohmann::json;
using lossless::kPriorities;
using lossless::PortSettings;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxValues = 20'000;
constexpr int kMaxDepth = 8;
constexpr std::int64_t kMaxBuffer = 1 << 30;
constexpr int kMaxCable = 1000;

// Text and JSON in one form: a word, and what stands behind it as "key:value" or "value".
struct Entry {
  std::string word;  // as in the text: "prio-pfc"
  std::vector<std::pair<std::string, std::string>> values;
};

// iproute2's etc/iproute2/rt_dsfield by DSCP.
std::optional<int> DscpOf(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, int>, 21> kNames{
      {{"default", 0}, {"CS1", 8},   {"AF11", 10}, {"AF12", 12}, {"AF13", 14}, {"CS2", 16},  {"AF21", 18},
       {"AF22", 20},   {"AF23", 22}, {"CS3", 24},  {"AF31", 26}, {"AF32", 28}, {"AF33", 30}, {"CS4", 32},
       {"AF41", 34},   {"AF42", 36}, {"AF43", 38}, {"CS5", 40},  {"EF", 46},   {"CS6", 48},  {"CS7", 56}}};
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == name; });
  if (found != kNames.end()) return found->second;
  const auto number = Number<int>(name);
  return number && *number >= 0 && *number < lossless::kDscps ? number : std::nullopt;
}

// "130944b", "128Kb", "1.5Mb" as print_size writes them (lib/utils.c, powers of 1024), or plain bytes.
std::optional<int> Bytes(std::string_view text) {
  double factor = 1;
  for (const auto& [unit, bytes] :
       {std::pair{std::string_view("Kb"), 1024.0}, {"Mb", 1048576.0}, {"b", 1.0}}) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    factor = bytes;
    break;
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !(number >= 0) || number * factor > double(kMaxBuffer)) return std::nullopt;
  return int(number * factor);
}

std::optional<lossless::Algorithm> AlgorithmOf(std::string_view word) {
  if (word == "strict") return lossless::Algorithm::kStrict;
  if (word == "ets") return lossless::Algorithm::kEts;
  if (word == "cbs") return lossless::Algorithm::kCbs;
  if (word == "vendor") return lossless::Algorithm::kVendor;
  return std::nullopt;
}

class Reader {
 public:
  // A sentence where the entry is known and wrong.
  std::optional<std::string> Take(const Entry& entry) {
    for (std::size_t i = 0; i < kWords.size(); ++i) {
      const auto& [word, take] = kWords[i];
      if (word != entry.word) continue;
      if (std::exchange(seen_[i], true))
        return fmt::format("{} stands twice, and this is of one interface a file: split it", word);
      return (this->*take)(entry);
    }
    return std::nullopt;
  }
  static bool Knows(std::string_view word) {
    return std::any_of(kWords.begin(), kWords.end(), [&](const auto& known) { return known.first == word; });
  }
  bool known() const {
    return std::any_of(seen_.begin(), seen_.end(), [](bool seen) { return seen; });
  }

  PortSettings Finish() {
    if (!dscps_.empty()) {
      settings_.dscp_to_priority = lossless::AllDscps(default_priority_);
      for (const auto& [dscp, priority] : dscps_)
        (*settings_.dscp_to_priority)[std::size_t(dscp)] = std::int8_t(priority);
      // No driver has DSCP entries and does not look at them; apptrust says it where there is an order.
      if (!settings_.trust) settings_.trust = lossless::Trust::kDscp;
    }
    return std::move(settings_);
  }

 private:
  using Problem = std::optional<std::string>;
  static Problem Bad(const Entry& entry, std::string_view value, std::string_view want) {
    return fmt::format("{}: \"{}\" is not {}", entry.word, Printable(value, 20), want);
  }

  // Calls put(index 0 to 7, value) for each; what put refuses is named.
  template <class Put>
  static Problem Each(const Entry& entry, std::string_view want, Put put) {
    for (const auto& [key, value] : entry.values) {
      const auto index = Within(key, 0, kPriorities - 1);
      if (!index) return Bad(entry, key, "0 to 7");
      if (!put(std::size_t(*index), std::string_view(value))) return Bad(entry, value, want);
    }
    return std::nullopt;
  }

  static Problem Table(const Entry& entry, std::optional<lossless::PriorityTable>& table) {
    table.emplace().fill(lossless::kNotSaid);
    return Each(entry, "0 to 7", [&](std::size_t at, std::string_view value) {
      const auto number = Within(value, 0, kPriorities - 1);
      if (number) (*table)[at] = std::int8_t(*number);
      return number.has_value();
    });
  }

  Problem Pfc(const Entry& entry) {
    lossless::PrioritySet pfc;
    Problem problem = Each(entry, "on or off", [&](std::size_t at, std::string_view value) {
      const bool on = value == "on" || value == "true";
      if (on) pfc.Insert(int(at));
      return on || value == "off" || value == "false";
    });
    if (!problem) settings_.pfc = pfc;
    return problem;
  }
  Problem Delay(const Entry& entry) {
    const std::string value = entry.values.empty() ? "" : entry.values.front().second;
    const auto delay = Within(value, 0, 65535);
    if (!delay) return Bad(entry, value, "0 to 65535");
    if (*delay > 0 && *delay <= kMaxCable) settings_.cable_metres = *delay;  // mlx5 takes it for metres
    return std::nullopt;
  }
  Problem Shares(const Entry& entry) {
    settings_.class_percent.emplace().fill(lossless::kNotSaid);
    return Each(entry, "0 to 100", [&](std::size_t at, std::string_view value) {
      const auto percent = Within(value, 0, 100);
      if (percent) (*settings_.class_percent)[at] = *percent;
      return percent.has_value();
    });
  }
  Problem AlgorithmsOf(const Entry& entry) {
    settings_.class_algorithm.emplace().fill(lossless::Algorithm::kAny);
    return Each(entry, "strict, cbs, ets or vendor", [&](std::size_t at, std::string_view value) {
      const auto algorithm = AlgorithmOf(value);
      if (algorithm) (*settings_.class_algorithm)[at] = *algorithm;
      return algorithm.has_value();
    });
  }
  Problem Classes(const Entry& entry) { return Table(entry, settings_.priority_to_class); }
  Problem Buffers(const Entry& entry) { return Table(entry, settings_.priority_to_buffer); }
  Problem BufferSizes(const Entry& entry) {
    settings_.buffer_bytes.emplace().fill(lossless::kNotSaid);
    return Each(entry, "a size in bytes", [&](std::size_t at, std::string_view value) {
      const auto bytes = Bytes(value);
      if (bytes) (*settings_.buffer_bytes)[at] = *bytes;
      return bytes.has_value();
    });
  }
  Problem Dscps(const Entry& entry) {
    for (const auto& [key, value] : entry.values) {
      const auto dscp = DscpOf(key);
      const auto priority = Within(value, 0, kPriorities - 1);
      if (!dscp) return Bad(entry, key, "a DSCP, 0 to 63 or as AF31");
      if (!priority) return Bad(entry, value, "a priority, 0 to 7");
      if (dscps_.size() >= 512) return Bad(entry, key, "one of the first 512 entries");
      dscps_.emplace_back(*dscp, *priority);
    }
    return std::nullopt;
  }
  Problem Default(const Entry& entry) {
    const std::string value = entry.values.empty() ? "" : entry.values.back().second;
    const auto priority = Within(value, 0, kPriorities - 1);
    if (!priority) return Bad(entry, value, "a priority, 0 to 7");
    default_priority_ = *priority;
    return std::nullopt;
  }
  Problem Order(const Entry& entry) {
    for (const auto& [key, value] : entry.values) {
      if (value != "dscp" && value != "pcp") continue;
      settings_.trust = value == "dscp" ? lossless::Trust::kDscp : lossless::Trust::kPcp;
      break;
    }
    return std::nullopt;
  }
  Problem DcbxMode(const Entry& entry) {
    const auto has = [&entry](std::string_view flag) {
      return std::any_of(entry.values.begin(), entry.values.end(),
                         [flag](const auto& value) { return value.second == flag; });
    };
    if (has("lld-managed")) {
      settings_.dcbx = lossless::Dcbx::kFirmware;
    } else if (has("host") && !settings_.dcbx) {
      settings_.dcbx = has("cee") && !has("ieee") ? lossless::Dcbx::kHostCee : lossless::Dcbx::kHost;
    }
    return std::nullopt;
  }

  using TakeWord = Problem (Reader::*)(const Entry&);
  static constexpr std::array<std::pair<std::string_view, TakeWord>, 11> kWords{
      {{"prio-pfc", &Reader::Pfc},
       {"delay", &Reader::Delay},
       {"tc-bw", &Reader::Shares},
       {"tc-tsa", &Reader::AlgorithmsOf},
       {"prio-tc", &Reader::Classes},
       {"prio-buffer", &Reader::Buffers},
       {"buffer-size", &Reader::BufferSizes},
       {"dscp-prio", &Reader::Dscps},
       {"default-prio", &Reader::Default},
       {"order", &Reader::Order},
       {"dcbx", &Reader::DcbxMode}}};

  PortSettings settings_;
  std::vector<std::pair<int, int>> dscps_;
  int default_priority_ = 0;
  std::array<bool, kWords.size()> seen_{};
};

bool IsDcbxFlag(std::string_view word) {
  constexpr std::array<std::string_view, 5> kFlags{"host", "lld-managed", "cee", "ieee", "static"};
  return std::find(kFlags.begin(), kFlags.end(), word) != kFlags.end();
}

// A line as entries: "pfc-cap 8 macsec-bypass off delay 7", "prio-pfc 0:off 1:off", "order: dscp pcp",
// "host ieee". A word without a colon behind a known one is its value; any other begins an entry.
std::vector<Entry> EntriesOf(std::string_view line) {
  std::vector<Entry> entries;
  Scanner scan(line);
  for (std::string_view word = scan.Word(); !word.empty(); word = scan.Word()) {
    const std::size_t colon = word.find(':');
    if (entries.empty() && IsDcbxFlag(word)) entries.push_back({"dcbx", {}});
    if (entries.empty() ||
        (!entries.empty() && entries.back().word != "dcbx" && entries.back().word != "order" &&
         colon == std::string_view::npos && !entries.back().values.empty())) {
      if (colon != std::string_view::npos) word.remove_suffix(word.size() - colon);  // "order:"
      entries.push_back({std::string(word.substr(0, 40)), {}});
    } else if (colon != std::string_view::npos) {
      entries.back().values.emplace_back(word.substr(0, colon), word.substr(colon + 1));
    } else {
      entries.back().values.emplace_back("", word);
    }
    if (entries.size() > 32 || entries.back().values.size() > 512) break;
  }
  return entries;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_structured() ? "" : value.dump();
}

// {"prio_pfc": [false, …]} by position, {"dscp_prio": [[26, 3]]} by pairs, {"host": true} as DCBX flags.
std::vector<Entry> EntriesOf(const Json& object) {
  std::vector<Entry> entries;
  Entry dcbx{"dcbx", {}};
  for (const auto& [key, value] : object.items()) {
    Entry entry{key, {}};
    std::replace(entry.word.begin(), entry.word.end(), '_', '-');
    if (IsDcbxFlag(entry.word) && value.is_boolean()) {
      if (value.get<bool>()) dcbx.values.emplace_back("", entry.word);
      continue;
    }
    if (!value.is_array()) entry.values.emplace_back("", TextOf(value));
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      const Json& item = value[i];
      const bool pair = item.is_array() && item.size() == 2;
      entry.values.emplace_back(pair ? TextOf(item[0]) : std::to_string(i), TextOf(pair ? item[1] : item));
    }
    entries.push_back(std::move(entry));
  }
  if (!dcbx.values.empty()) entries.push_back(std::move(dcbx));
  return entries;
}

std::string_view WithoutBlanks(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start == std::string_view::npos ? std::string_view() : text.substr(start);
}

bool IsJson(std::string_view text) {
  const std::string_view start = WithoutBlanks(text);
  return start.starts_with('{') || start.starts_with('[');
}

base::Status TakeJson(std::string_view whole, Reader& reader) {
  if (!IsBounded(whole, kMaxValues, kMaxDepth)) {
    return base::Fail(base::Code::kTooLarge, "it has more values than dcb has to say of one interface");
  }
  for (std::string_view text = WithoutBlanks(whole); !text.empty();) {
    const std::size_t end = EndOfValue(text);
    const auto line = LineOf(whole, std::size_t(text.data() - whole.data()));
    const Json document = Json::parse(text.substr(0, end), nullptr, false);
    if (document.is_discarded() || !document.is_structured()) {
      return base::Fail(base::Code::kInvalid, fmt::format("line {}: this is no JSON object", line));
    }
    const Json objects = document.is_array() ? document : Json::array({document});
    for (const Json& object : objects) {
      if (!object.is_object()) {
        return base::Fail(base::Code::kInvalid, fmt::format("line {}: this is no JSON object", line));
      }
      for (const Entry& entry : EntriesOf(object)) {
        if (const auto why = reader.Take(entry))
          return base::Fail(base::Code::kInvalid, fmt::format("line {}: {}", line, *why));
      }
    }
    text = WithoutBlanks(text.substr(end));
  }
  return {};
}

base::Status TakeText(std::string_view text, Reader& reader) {
  std::optional<std::string> fault;
  ForEachLine(text, [&](std::string_view line, int number) {
    if (fault) return;
    for (const Entry& entry : EntriesOf(line)) {
      const auto why = reader.Take(entry);
      if (why && !fault) fault = fmt::format("line {}: {}", number, *why);
    }
  });
  if (fault) return base::Fail(base::Code::kInvalid, *std::move(fault));
  return {};
}

}  // namespace

bool LooksLikeDcb(std::string_view text) {
  if (text.size() > kMaxBytes) return false;
  if (IsJson(text)) {
    if (!IsBounded(text, kMaxValues, kMaxDepth)) return false;
    const std::string_view start = WithoutBlanks(text);
    const Json document = Json::parse(start.substr(0, EndOfValue(start)), nullptr, false);
    const Json& first = document.is_array() && !document.empty() ? document.front() : document;
    if (!first.is_object()) return false;
    const auto entries = EntriesOf(first);
    return std::any_of(entries.begin(), entries.end(),
                       [](const Entry& entry) { return Reader::Knows(entry.word); });
  }
  bool found = false;
  ForEachLine(text, [&](std::string_view line, int) {
    if (found) return;
    for (const Entry& entry : EntriesOf(line))
      found = found || (Reader::Knows(entry.word) && !entry.values.empty());
  });
  return found;
}

base::Result<PortSettings> ParseDcb(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return base::Fail(base::Code::kTooLarge, "it is more than 1 MiB: dcb prints some 2 KB of an interface");
  }
  Reader reader;
  TRY(IsJson(text) ? TakeJson(text, reader) : TakeText(text, reader));
  if (!reader.known()) {
    return base::Fail(
        base::Code::kInvalid,
        "it is not what `dcb … show dev DEV` prints: no prio-pfc, prio-tc, dscp-prio or the like");
  }
  return reader.Finish();
}

}  // namespace heddle::formats
