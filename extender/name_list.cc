#include "extender/name_list.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace heddle::extender {
namespace {

// Compilers make of these what the processor has; each comparison gives 0 or 0xff a byte.
constexpr std::size_t kAtOnce = 16;
using Bytes = unsigned char __attribute__((vector_size(kAtOnce)));

Bytes Load(const char* at) {
  Bytes bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}
Bytes Is(const Bytes& bytes, char c) {
  return Bytes(bytes == static_cast<unsigned char>(c));
}

// What a node's name is made of (RFC 1123).
Bytes Plain(const Bytes& bytes) {
  const Bytes letter = Bytes(bytes - 'a' < 26), digit = Bytes(bytes - '0' < 10);
  return letter | digit | Is(bytes, '-') | Is(bytes, '.');
}

// Where a list goes wrong, of so many bytes from `at`; a byte is read before them and one behind. A list is right where
// each of its bytes is right beside its two neighbours: a comma between two quotes; a quote with a comma, or an end of
// the list, on one side and not on both; and what a name is made of.
Bytes Wrong(const char* at) {
  const Bytes here = Load(at), before = Load(at - 1), after = Load(at + 1);
  const Bytes opens = Is(before, ',') | Is(before, '['), closes = Is(after, ',') | Is(after, ']');
  const Bytes quote = Is(here, '"') & (opens ^ closes);
  const Bytes comma = Is(here, ',') & Is(before, '"') & Is(after, '"');
  return ~(Plain(here) | quote | comma);
}

bool AnySet(const Bytes& bytes) {
  static constexpr char kNone[kAtOnce] = {};
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): a vector has no padding.
  return std::memcmp(&bytes, kNone, sizeof bytes) != 0;
}

// `list` stands between its brackets, "a","b" or nothing at all, and a byte can be read on both sides.
bool IsPlainList(std::string_view list) {
  if (list.empty()) return true;
  if (list.front() != '"' || list.back() != '"') return false;
  Bytes wrong{};
  std::size_t at = 0;
  for (; at + kAtOnce <= list.size(); at += kAtOnce) wrong |= Wrong(list.data() + at);
  char last[1 + kAtOnce + 1];
  std::fill(std::begin(last), std::end(last), 'a');
  std::memcpy(last, list.data() + at - 1, 1 + (list.size() - at) + 1);
  const Bytes of_last = Wrong(last + 1);
  for (std::size_t i = 0; at + i < list.size(); ++i) wrong[i] |= of_last[i];
  return !AnySet(wrong);
}

}  // namespace

std::optional<NamesApart> TakeNamesApart(std::string_view body) {
  constexpr std::string_view key = R"("NodeNames")", opening = R"("NodeNames":[)";
  const std::size_t at = body.find(key);  // inside of a string its quotes are escaped
  if (at == std::string_view::npos || (at > 0 && body[at - 1] == '\\') ||
      !body.substr(at).starts_with(opening))
    return std::nullopt;
  const std::size_t first = at + opening.size(), last = body.find_last_not_of(" \n\r\t");
  // The brace closes the request, or what is left would be no JSON.
  if (last < first + 1 || body.substr(last - 1, 2) != "]}") return std::nullopt;
  const std::string_view names = body.substr(first, last - 1 - first);
  if (!IsPlainList(names)) return std::nullopt;
  return NamesApart{std::string(body.substr(0, first)) + "]}", names};
}

std::vector<std::string_view> NamesOf(const NamesApart& apart) {
  std::vector<std::string_view> names;
  const std::string_view list = apart.names;
  names.reserve(list.size() / (list.find('"', 1) + 2) + 1);  // they are mostly of one length
  for (std::size_t quote = 0; quote < list.size();) {
    const std::size_t first = quote + 1, behind = list.find('"', first);
    names.push_back(list.substr(first, behind - first));
    quote = behind + 2;
  }
  return names;
}

bool IsPlainName(std::string_view name) {
  Bytes wrong{};
  if (name.size() < kAtOnce) {
    char whole[kAtOnce];
    std::fill(std::begin(whole), std::end(whole), 'a');
    std::copy(name.begin(), name.end(), whole);
    return !AnySet(~Plain(Load(whole)));
  }
  for (std::size_t at = 0; at + kAtOnce <= name.size(); at += kAtOnce)
    wrong |= ~Plain(Load(name.data() + at));
  wrong |= ~Plain(Load(name.data() + name.size() - kAtOnce));
  return !AnySet(wrong);
}

}  // namespace heddle::extender
