#include "nodeagent/recording/identifiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kLow = 6;  // digits that a maker numbers its ports with: the last three bytes
constexpr std::uint32_t kFirstLow = 0xa00001;

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// What can stand in an address as sysfs, lldpd and NVML write one.
bool InToken(char c) {
  return IsHex(c) || c == ':' || c == '-';
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return lower;
}

std::string Digits(std::string_view text) {
  std::string digits;
  for (const char c : Lower(text)) {
    if (IsHex(c)) digits += c;
  }
  return digits;
}

bool NamesNothing(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos ||
         digits.find_first_not_of('f') == std::string_view::npos;
}

// Whether `text` is groups of `width` hex digits with `mark` between, and how many; 0: it is not.
std::size_t Groups(std::string_view text, std::size_t width, char mark) {
  if ((text.size() + 1) % (width + 1) != 0) return 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_mark = i % (width + 1) == width;
    if (at_mark ? text[i] != mark : !IsHex(text[i])) return 0;
  }
  return (text.size() + 1) / (width + 1);
}

std::string Grouped(std::string_view digits, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < digits.size(); i += width) {
    text += text.empty() ? "" : ":";
    text += digits.substr(i, width);
  }
  return text;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kShape = "00000000-0000-0000-0000-000000000000";
  if (text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kShape[i] == '-' ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return true;
}

bool IsMark(char c) {
  return c == ':' || c == '-';
}

// Calls `found(from, length)` for each longest run of what addresses consist of, without marks at its ends: those
// belong to what stands around it ("GPU-89ab…").
template <class Found>
void ForEachToken(std::string_view text, Found found) {
  for (std::size_t at = 0; at < text.size();) {
    if (!InToken(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && InToken(text[end])) ++end;
    std::size_t last = end;
    while (at < last && IsMark(text[at])) ++at;
    while (last > at && IsMark(text[last - 1])) --last;
    if (last > at) found(at, last - at);
    at = end;
  }
}

enum class Kind { kNone, kMac, kLongMac, kGuid, kGid, kUuid, kBareGuid, kBareMac };

// `before`: the character in front of it. Bare digits are a GUID after "0x" and at the end of a predictable
// interface name ("enx…" of a MAC address, "ibx…" of a GUID), where they follow an x.
Kind KindOf(std::string_view token, char before) {
  if (IsUuid(token)) return Kind::kUuid;
  switch (Groups(token, 2, ':')) {
    case 6:
      return Kind::kMac;
    case 20:
      return Kind::kLongMac;  // of IPoIB: flags and queue pair, then a GID
    default:
      break;
  }
  switch (Groups(token, 4, ':')) {
    case 4:
      return Kind::kGuid;
    case 8:
      return Kind::kGid;
    default:
      break;
  }
  if (before == 'x' && Groups(token, 16, ':') == 1) return Kind::kBareGuid;
  return before == 'x' && Groups(token, 12, ':') == 1 ? Kind::kBareMac : Kind::kNone;
}

}  // namespace

void Identifiers::Learn(std::string_view text) {
  ForEachToken(text, [&](std::size_t at, std::size_t length) {
    const std::string_view token = text.substr(at, length);
    const Kind kind = KindOf(token, at == 0 ? ' ' : text[at - 1]);
    if (kind == Kind::kNone || kind == Kind::kUuid) return;
    const std::string digits = Digits(token);
    taken_.insert(digits.substr(digits.size() - kLow));
  });
}

std::string Identifiers::Low(std::string_view digits) {
  const auto [entry, fresh] = lows_.try_emplace(std::string(digits), std::string());
  while (fresh && entry->second.empty()) {
    std::string low = fmt::format("{:06x}", (kFirstLow + next_low_++) & 0xffffff);
    if (!taken_.contains(low)) entry->second = std::move(low);
  }
  return entry->second;
}

// Two of them are no part of a serial number but say how an EUI-64 was made.
std::string Identifiers::Middle(std::string_view digits) {
  if (digits == "0300" || digits == "fffe") return std::string(digits);
  return middles_.try_emplace(std::string(digits), fmt::format("{:04x}", middles_.size() + 1)).first->second;
}

std::string Identifiers::Mac(std::string_view digits) {
  std::string lower = Lower(digits);
  if (NamesNothing(lower)) return lower;
  return lower.substr(0, 6) + Low(std::string_view(lower).substr(6));
}

std::string Identifiers::Guid(std::string_view digits) {
  std::string lower = Lower(digits);
  if (NamesNothing(lower)) return lower;
  const std::string_view all = lower;
  return lower.substr(0, 6) + Middle(all.substr(6, 4)) + Low(all.substr(10));
}

std::string Identifiers::Address4(std::string_view digits) {
  if (NamesNothing(digits)) return std::string(digits);
  return "0a" + Low(digits.substr(2));  // some address of 10.0.0.0/8
}

std::string Identifiers::Uuid(std::string_view text) {
  std::string lower = Lower(text);
  if (NamesNothing(Digits(lower))) return lower;
  // The number is in front: a ticket shows the first eight digits, which are to tell GPUs apart.
  return uuids_.try_emplace(lower, fmt::format("{:08x}-0000-4000-8000-000000000000", uuids_.size() + 1))
      .first->second;
}

std::uint64_t Identifiers::Chip(std::uint64_t original) {
  if (original == 0) return 0;
  // As Uuid: of sixteen digits the first eight.
  return chips_.try_emplace(original, (std::uint64_t{0x1000} + chips_.size()) << 32).first->second;
}

std::string Identifiers::Name(std::string_view kind, std::string_view original) {
  if (original.empty()) return {};
  auto& names = names_[std::string(kind)];
  return names.try_emplace(std::string(original), fmt::format("{}-{}", kind, names.size() + 1)).first->second;
}

std::string Identifiers::Replace(std::string_view text) {
  std::string replaced;
  std::size_t done = 0;
  ForEachToken(text, [&](std::size_t at, std::size_t length) {
    const std::string_view token = text.substr(at, length);
    const std::string digits = Digits(token);
    const std::string_view all = digits;
    std::string other;
    switch (KindOf(token, at == 0 ? ' ' : text[at - 1])) {
      case Kind::kNone:
        return;
      case Kind::kUuid:
        other = Uuid(token);
        break;
      case Kind::kMac:
        other = Grouped(Mac(all), 2);
        break;
      case Kind::kBareMac:
        other = Mac(all);
        break;
      case Kind::kGuid:
        other = Grouped(Guid(all), 4);
        break;
      case Kind::kBareGuid:
        other = Guid(all);
        break;
      case Kind::kLongMac:
        other = Grouped(std::string(all.substr(0, 24)) + Guid(all.substr(24)), 2);
        break;
      case Kind::kGid: {
        // An IPv4 address in a RoCE GID, or a subnet's prefix before an interface's number.
        const bool mapped = all.starts_with("00000000000000000000ffff");
        const bool local = all.starts_with("fe80000000000000");
        const std::string prefix = mapped || local ? std::string(all.substr(0, 16))
                                                   : "fd00" + Middle(all.substr(0, 4)) +
                                                         Middle(all.substr(4, 4)) + Middle(all.substr(8, 4));
        if (NamesNothing(all)) return;
        other = Grouped(mapped ? std::string(all.substr(0, 24)) + Address4(all.substr(24))
                               : prefix + Guid(all.substr(16)),
                        4);
        break;
      }
    }
    replaced += text.substr(done, at - done);
    replaced += other;
    done = at + length;
  });
  replaced += text.substr(done);
  return replaced;
}

}  // namespace heddle::nodeagent
