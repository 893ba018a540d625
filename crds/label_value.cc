#include "crds/label_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/lower_case.h"

namespace heddle::crds {
namespace {

constexpr std::size_t kMaxLength = 63;
constexpr std::size_t kHashLength =
    10;  // 40 bits: a collision among 10,000 names is a chance of 5 in 100,000

bool IsAlnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

void TrimEnds(std::string& text) {
  while (!text.empty() && !IsAlnum(text.back())) text.pop_back();
  std::size_t begin = 0;
  while (begin < text.size() && !IsAlnum(text[begin])) ++begin;
  text.erase(0, begin);
}

std::string Clean(std::string_view text, std::string_view allowed) {
  std::string clean;
  for (const char c : text.substr(0, 4 * kMaxLength)) {
    clean += IsAlnum(c) || allowed.find(c) != std::string_view::npos ? c : '-';
  }
  TrimEnds(clean);
  return clean;
}

std::string Hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bits
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash).substr(0, kHashLength);
}

std::string WithHash(std::string clean, std::string_view text) {
  if (clean.empty() && text.empty()) return clean;
  if (clean == text && clean.size() <= kMaxLength) return clean;
  clean.resize(std::min(clean.size(), kMaxLength - kHashLength - 1));
  TrimEnds(clean);
  return clean.empty() ? "x-" + Hash(text) : clean + "-" + Hash(text);
}

bool IsDnsLetter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

}  // namespace

bool IsLabelValue(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLength && IsAlnum(text.front()) && IsAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return IsAlnum(c) || std::string_view("-_.").find(c) != std::string_view::npos;
         });
}

bool IsLabelKey(std::string_view key) {
  constexpr std::size_t kMaxPrefix = 253;
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelValue(key);
  const std::string_view prefix = key.substr(0, slash);
  return !prefix.empty() && prefix.size() <= kMaxPrefix && IsDnsLetter(prefix.front()) &&
         IsDnsLetter(prefix.back()) &&
         std::all_of(prefix.begin(), prefix.end(),
                     [](char c) { return IsDnsLetter(c) || c == '-' || c == '.'; }) &&
         IsLabelValue(key.substr(slash + 1));
}

std::string ReadableLabel(std::string_view text) {
  std::string clean = Clean(text, "-_.");
  if (clean.size() > kMaxLength) return WithHash(std::move(clean), text);
  return clean;
}

std::string IdentityLabel(std::string_view text) {
  return WithHash(Clean(text, "-_."), text);
}

std::string DnsName(std::string_view text) {
  return WithHash(base::LowerCase(Clean(text, "-")), text);
}

}  // namespace heddle::crds
