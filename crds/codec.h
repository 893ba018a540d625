#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "crds/condition.h"
#include "crds/keys.h"
#include "crds/object_meta.h"
#include "topology/fact.h"

// Shared by our own codecs and included by nobody else.
namespace heddle::crds::codec {

// Reading. The first thing that does not fit is remembered with its path; everything after it reads as
// nothing, so a codec is straight code and looks at the problem once, at its end.
class Problem {
 public:
  bool found() const { return error_.has_value(); }
  void Note(std::string message) {
    if (!error_) error_ = base::Error{base::Code::kInvalid, std::move(message), std::nullopt};
  }
  const base::Error& error() const { return *error_; }

 private:
  std::optional<base::Error> error_;
};

inline constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

// One value inside the JSON and the way to it. null is the same as absent, as it is for the API server.
// A child borrows its parent: give every level a name.
class Field {
 public:
  Field(const Json& root, Problem& problem) : value_(&root), problem_(&problem) {}

  Field operator()(std::string_view key) const&;
  Field operator()(std::string_view key) const&& = delete;

  bool present() const { return value_ != nullptr; }
  const Field& Required() const;
  void Refuse(std::string_view why) const;  // "status.gpus[3].index: <why>"
  std::string Path() const;

  // Absent reads as "" or `absent`. Length is counted in characters, as the schema counts it.
  std::string Text(std::size_t max_length) const;
  std::string Name(std::size_t max_length) const;  // not empty
  std::string CamelCase(std::size_t max_length) const;
  std::int64_t Int64(std::int64_t min, std::int64_t max, std::int64_t absent = 0) const;
  int Int(std::int64_t min, std::int64_t max, int absent = 0) const { return int(Int64(min, max, absent)); }
  bool Bool() const;
  std::optional<base::WallTime> Time() const;

  // One of a few words; `words` lists them for the refusal.
  template <class T>
  T Word(std::optional<T> (*parse)(std::string_view), std::string_view words, T absent) const {
    if (!present()) return absent;
    const std::string text = Text(64);
    if (auto word = parse(text)) return *word;
    Refuse("\"" + text + "\" is not one of " + std::string(words));
    return absent;
  }

  // Calls `read` with a Field per element. Absent is empty.
  template <class Read>
  void Each(std::size_t max_items, Read read) const {
    if (!CheckList(max_items)) return;
    for (std::size_t i = 0; i < value_->size() && !problem_->found(); ++i) read(Item(i));
  }
  template <class Read>
  auto List(std::size_t max_items, Read read) const {
    std::vector<decltype(read(*this))> values;
    Each(max_items, [&](const Field& item) { values.push_back(read(item)); });
    return values;
  }
  std::vector<std::string> Keys() const;  // of an object, sorted; absent has none
  std::vector<std::string> Names(std::size_t max_items, std::size_t max_length) const;
  // An object of texts. Absent is empty.
  std::map<std::string, std::string> Texts(std::size_t max_items, std::size_t max_length) const;
  template <class T>
  std::vector<T> Ints(std::size_t max_items, std::int64_t min, std::int64_t max) const {
    return List(max_items, [&](const Field& item) { return T(item.Int64(min, max)); });
  }
  // Is it an object (absent is one too)? Notes the problem otherwise.
  bool CheckObject() const;

 private:
  Field(const Json* value, Problem* problem, const Field* parent, std::string_view key, std::size_t index)
      : value_(value), problem_(problem), parent_(parent), key_(key), index_(index) {}
  Field Item(std::size_t index) const { return Field(&(*value_)[index], problem_, this, {}, index); }
  bool CheckList(std::size_t max_items) const;

  const Json* value_;
  Problem* problem_;
  const Field* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

inline constexpr std::string_view kMissingWords = "Unknown, NotApplicable, Stale, Ambiguous";
std::string_view TransportWords();  // all of topology::TransportNames(), as a refusal lists them

// `key` or `key`Missing; neither is Unknown, both are refused.
topology::Fact<int> ReadFact(const Field& parent, std::string_view key, std::string_view missing_key,
                             std::int64_t max);
// Reads metadata and refuses another apiVersion or kind. Lists leave both out of their items.
void ReadHead(const Field& root, std::string_view kind, ObjectMeta& meta);
// `max`: what that kind's schema takes.
std::vector<Condition> ReadConditions(const Field& field, std::size_t max = 16);

// Writing. Text from machines is cut to the schema's length and made valid UTF-8: one strange cable label
// must not keep a whole node from being published.
std::string Clean(std::string_view text, std::size_t max_length);
// Leaves the key out when `text` is empty.
void PutText(Json& json, std::string_view key, std::string_view text, std::size_t max_length);
// Leaves the key out when `value` is 0, for numbers whose zero says "not said".
void PutPositive(Json& json, std::string_view key, std::int64_t value);
void PutTime(Json& json, std::string_view key, const std::optional<base::WallTime>& time);
void PutFact(Json& json, std::string_view key, std::string_view missing_key, const topology::Fact<int>& fact);
// Leaves the key out when the list is empty.
void PutList(Json& json, std::string_view key, Json list);
Json TextList(const std::vector<std::string>& texts, std::size_t max_items, std::size_t max_length);
template <class T, class Write>
Json WriteList(const std::vector<T>& values, std::size_t max_items, Write write) {
  Json list = Json::array();
  for (std::size_t i = 0; i < std::min(values.size(), max_items); ++i) list.push_back(write(values[i]));
  return list;
}

Json WriteHead(std::string_view kind, const ObjectMeta& meta);
Json WriteConditions(const std::vector<Condition>& conditions, std::size_t max = 16);
// apiVersion, kind and what identifies the object, for server-side apply.
Json ApplyHead(std::string_view kind, const ObjectMeta& meta, bool with_owners);

}  // namespace heddle::crds::codec
