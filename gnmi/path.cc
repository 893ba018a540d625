#include "gnmi/path.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"

namespace heddle::gnmi {
namespace {

using base::Code;

// SONiC calls its databases CONFIG_DB and COUNTERS_DB, gNMI its origins openconfig, cli and sonic-db.
bool IsTarget(std::string_view word) {
  return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

void Append(std::string& text, std::string_view word, std::string_view special) {
  for (const char c : word) {
    if (special.find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
}

// What is left of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  std::size_t at() const { return at_; }
  bool Take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Up to the first of `ends`, or all; nothing where a backslash has nothing behind it.
  std::optional<std::string> Word(std::string_view ends) {
    std::string word;
    for (; !done() && ends.find(text_[at_]) == std::string_view::npos; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) return std::nullopt;
      word += text_[at_];
    }
    return word;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

tl::unexpected<base::Error> Refuse(std::string_view text, const Reader& reader, std::string_view why) {
  return base::Fail(Code::kInvalid, fmt::format("path \"{}\", byte {}: {}", base::Printable(text, 120),
                                                reader.at() + 1, why));
}

constexpr const char* kUnended = "a backslash with nothing behind it";
static_assert(kMaxElems == 64 && kMaxKeys == 16, "as the sentences below say");
// A backslash before every character, and what stands between them.
constexpr std::size_t kMaxText = 2 * kMaxPathBytes + kMaxElems * (1 + 3 * kMaxKeys) + 4;

// TARGET: or origin: or both, up to the first slash. Null, or why not.
const char* ReadStart(Reader& reader, Path& path) {
  std::vector<std::string> words;
  while (!reader.Take('/')) {
    auto word = reader.Word(":/");
    if (!word) return kUnended;
    if (!reader.Take(':')) return "a path begins with /, TARGET:/ or origin:/";
    words.push_back(*std::move(word));
    if (words.size() > 2) return "before the first / stand a target and an origin at most";
  }
  if (words.empty()) return nullptr;
  if (std::all_of(words.begin(), words.end(), [](const std::string& word) { return word.empty(); }))
    return "nothing stands before the colon";
  if (words.size() == 2) {
    path.target = std::move(words[0]);
    path.origin = std::move(words[1]);
  } else {
    (IsTarget(words[0]) ? path.target : path.origin) = std::move(words[0]);
  }
  return nullptr;
}

// name[key=value]…, up to a slash or the end. Null, or why not.
const char* ReadElem(Reader& reader, Elem& elem) {
  auto name = reader.Word("/[");
  if (!name) return kUnended;
  if (name->empty()) return "an element has no name";
  elem.name = *std::move(name);
  while (reader.Take('[')) {
    const auto key = reader.Word("=]");
    if (!key) return kUnended;
    if (key->empty()) return "a key has no name";
    if (!reader.Take('=')) return "a key is written [name=value]";
    auto value = reader.Word("]");
    if (!value) return kUnended;
    if (!reader.Take(']')) return "a key does not end: ] is missing";
    if (!elem.keys.emplace(*key, *std::move(value)).second) return "a key stands twice";
    if (elem.keys.size() > kMaxKeys) return "an element has more than 16 keys";
  }
  return nullptr;
}

}  // namespace

base::Status CheckPath(const Path& path) {
  std::size_t bytes = 0;
  bool utf8 = true;
  const auto count = [&](const std::string& text) {
    bytes += text.size();
    utf8 = utf8 && simdjson::validate_utf8(text);
  };
  if (path.elems.size() > kMaxElems)
    return base::Fail(Code::kTooLarge,
                      fmt::format("a path of {} elements; {} at most", path.elems.size(), kMaxElems));
  count(path.target);
  count(path.origin);
  for (const Elem& elem : path.elems) {
    if (elem.name.empty()) return base::Fail(Code::kInvalid, "a path with an element that has no name");
    if (elem.keys.size() > kMaxKeys)
      return base::Fail(Code::kTooLarge, fmt::format("a path with an element of {} keys; {} at most",
                                                     elem.keys.size(), kMaxKeys));
    count(elem.name);
    for (const auto& [key, value] : elem.keys) {
      if (key.empty()) return base::Fail(Code::kInvalid, "a path with a key that has no name");
      count(key);
      count(value);
    }
  }
  if (bytes > kMaxPathBytes)
    return base::Fail(Code::kTooLarge, fmt::format("a path of {} bytes; {} at most", bytes, kMaxPathBytes));
  if (!utf8) return base::Fail(Code::kInvalid, "a path that is not UTF-8");
  return {};
}

std::string FormatPath(const Path& path) {
  constexpr std::string_view kStart = ":/\\";
  std::string text;
  if (!path.target.empty()) {
    Append(text, path.target, kStart);
    text += !path.origin.empty() || IsTarget(path.target) ? ":" : "::";
  }
  if (!path.origin.empty()) {
    if (path.target.empty() && IsTarget(path.origin)) text += ':';
    Append(text, path.origin, kStart);
    text += ':';
  }
  for (const Elem& elem : path.elems) {
    text += '/';
    Append(text, elem.name, "/[\\");
    for (const auto& [key, value] : elem.keys) {
      text += '[';
      Append(text, key, "=]\\");
      text += '=';
      Append(text, value, "]\\");
      text += ']';
    }
  }
  if (path.elems.empty()) text += '/';
  return text;
}

base::Result<Path> ParsePath(std::string_view text) {
  if (text.size() > kMaxText)
    return base::Fail(Code::kTooLarge,
                      fmt::format("a path of {} bytes; {} at most", text.size(), kMaxPathBytes));
  Reader reader(text);
  Path path;
  if (const char* why = ReadStart(reader, path)) return Refuse(text, reader, why);
  while (!reader.done()) {
    if (path.elems.size() == kMaxElems) return Refuse(text, reader, "more than 64 elements");
    if (const char* why = ReadElem(reader, path.elems.emplace_back())) return Refuse(text, reader, why);
    if (reader.done()) break;
    if (!reader.Take('/')) return Refuse(text, reader, "behind ] comes another key, a / or the end");
    if (reader.done()) return Refuse(text, reader, "a path does not end with /");
  }
  TRY(CheckPath(path), fmt::format("path \"{}\"", base::Printable(text, 120)));
  return path;
}

}  // namespace heddle::gnmi
