#include "kube/packed.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace heddle::kube {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct Field {
  std::string_view in, name;
  bool moves;  // it is not in the rest, so that objects of two versions have the same rest
};
// In the order of their bytes: each two bytes of length, the higher first, and its text. The note follows, as another
// text, and then the maps, each two bytes of how many entries, and each entry two texts.
constexpr std::array<Field, 6> kHead = {{{"metadata", "resourceVersion", true},
                                         {"metadata", "name", true},
                                         {"metadata", "namespace", true},
                                         {"metadata", "uid", true},
                                         {"spec", "nodeName", false},
                                         {"status", "phase", false}}};
constexpr std::array<std::string_view, 2> kMaps = {"labels", "annotations"};  // in metadata, not in the rest
constexpr std::size_t kVersion = 0;
// As a length or a number of entries: there is no such text or map, which is not the empty one.
constexpr std::size_t kAbsent = 0xffff;

using Text = std::optional<std::string_view>;

Text TextAt(const Json& object, const Field& field) {
  const Json* value = Find(object, {field.in, field.name});
  const auto* text = value == nullptr ? nullptr : value->get_ptr<const std::string*>();
  return text == nullptr ? Text() : Text(*text);
}

class Writer {
 public:
  void Number(std::size_t number) {
    fits_ = fits_ && number <= kAbsent;
    bytes_.push_back(std::uint8_t(number >> 8));
    bytes_.push_back(std::uint8_t(number & 0xff));
  }
  void Add(const Text& text) {
    Number(text ? text->size() : kAbsent);
    fits_ = fits_ && (!text || text->size() < kAbsent);
    if (text) bytes_.insert(bytes_.end(), text->begin(), text->end());
  }
  void Add(const Json* map) {
    Number(map == nullptr ? kAbsent : map->size());
    if (map == nullptr) return;
    fits_ = fits_ && map->is_object() && map->size() < kAbsent;
    for (const auto& [key, value] : map->items()) {
      const auto* text = value.get_ptr<const std::string*>();
      fits_ = fits_ && text != nullptr;
      if (!fits_) return;
      Add(key);
      Add(*text);
    }
  }
  bool fits() const { return fits_; }
  Bytes& bytes() { return bytes_; }

 private:
  Bytes bytes_;
  bool fits_ = true;
};

// Bytes that end too early have no more texts, and no rest.
class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  std::size_t Number() {
    if (bytes_.size() - at_ < 2) {
      at_ = bytes_.size();
      return kAbsent;
    }
    const std::size_t number = std::size_t(bytes_[at_]) << 8 | bytes_[at_ + 1];
    at_ += 2;
    return number;
  }
  Text Next() {
    const std::size_t length = Number();
    if (length == kAbsent) return std::nullopt;
    if (bytes_.size() - at_ < length) {
      at_ = bytes_.size();
      return std::nullopt;
    }
    const auto* text = reinterpret_cast<const char*>(bytes_.data()) + at_;
    at_ += length;
    return std::string_view(text, length);
  }
  void Skip(std::size_t texts) {
    for (std::size_t i = 0; i < texts && at_ < bytes_.size(); ++i) (void)Next();
  }
  // Of a map, until `take` has what it wants; false = there is none.
  template <class Take>
  bool Entries(Take take) {
    const std::size_t count = Number();
    if (count == kAbsent) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const Text key = Next(), value = Next();
      if (!key || !value || take(*key, *value)) break;
    }
    return true;
  }
  std::size_t at() const { return at_; }

 private:
  const Bytes& bytes_;
  std::size_t at_ = 0;
};

// At the entries of the map of that name.
std::optional<Reader> ReaderOfMap(const Json& packed, std::string_view name) {
  if (!IsPacked(packed)) return std::nullopt;
  Reader reader(packed.get_binary());
  reader.Skip(kHead.size() + 1);
  for (const std::string_view map : kMaps) {
    if (map == name) return reader;
    reader.Entries([](std::string_view, std::string_view) { return false; });
  }
  return std::nullopt;
}

Json& ObjectIn(Json& whole, std::string_view name) {
  Json& in = whole[name];
  if (!in.is_object()) in = Json::object();
  return in;
}

}  // namespace

Json Packed(Json object, std::string_view note) {
  if (!object.is_object()) return object;
  Writer writer;
  for (const Field& field : kHead) writer.Add(TextAt(object, field));
  writer.Add(note);
  for (const std::string_view map : kMaps) writer.Add(Find(object, {"metadata", map}));
  if (!writer.fits()) return object;
  for (const Field& field : kHead) {
    if (field.moves && TextAt(object, field)) object[field.in].erase(std::string(field.name));
  }
  for (const std::string_view map : kMaps) {
    if (Find(object, {"metadata", map}) != nullptr) object["metadata"].erase(std::string(map));
  }
  Json::to_cbor(object, writer.bytes());
  writer.bytes().shrink_to_fit();  // it grew by doubling, and stays
  return Json::binary(std::move(writer.bytes()));
}

bool IsPacked(const Json& object) {
  return object.is_binary();  // no text is read as one
}

Json Unpacked(const Json& object) {
  if (!IsPacked(object)) return object;
  const Bytes& bytes = object.get_binary();
  Reader reader(bytes);
  std::array<Text, kHead.size()> head;
  for (Text& text : head) text = reader.Next();
  reader.Skip(1);
  std::array<std::optional<Json>, kMaps.size()> maps;
  for (auto& map : maps) {
    Json entries = Json::object();
    const bool there = reader.Entries([&entries](std::string_view key, std::string_view value) {
      entries.emplace(key, value);
      return false;
    });
    if (there) map = std::move(entries);
  }
  Json whole = Json::from_cbor(bytes.begin() + std::ptrdiff_t(reader.at()), bytes.end(), true, false);
  if (!whole.is_object()) whole = Json::object();
  for (std::size_t i = 0; i < kHead.size(); ++i) {
    if (head[i]) ObjectIn(whole, kHead[i].in)[kHead[i].name] = *head[i];
  }
  for (std::size_t i = 0; i < kMaps.size(); ++i) {
    if (maps[i]) ObjectIn(whole, "metadata")[kMaps[i]] = *std::move(maps[i]);
  }
  return whole;
}

std::string_view NoteOf(const Json& packed) {
  if (!IsPacked(packed)) return {};
  Reader reader(packed.get_binary());
  reader.Skip(kHead.size());
  return reader.Next().value_or(std::string_view());
}

bool SameButVersion(const Json& a, const Json& b) {
  if (IsPacked(a) && IsPacked(b)) {
    const Bytes &one = a.get_binary(), &other = b.get_binary();
    const auto rest = [](const Bytes& bytes) {
      Reader reader(bytes);
      reader.Skip(kVersion + 1);
      return bytes.begin() + std::ptrdiff_t(reader.at());
    };
    if (one.size() < 2 || other.size() < 2) return one == other;
    return std::equal(rest(one), one.end(), rest(other), other.end());
  }
  const auto without = [](Json object) {
    if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object())
      metadata->erase("resourceVersion");
    return object;
  };
  return without(a) == without(b);
}

std::string_view TextOfPacked(const Json& packed, Path path) {
  if (!IsPacked(packed) || path.size() != 2) return {};
  for (std::size_t i = 0; i < kHead.size(); ++i) {
    if (kHead[i].in != *path.begin() || kHead[i].name != *(path.begin() + 1)) continue;
    Reader reader(packed.get_binary());
    reader.Skip(i);
    return reader.Next().value_or(std::string_view());
  }
  return {};
}

std::optional<std::string> EntryOfPacked(const Json& packed, std::string_view map, std::string_view key) {
  std::optional<std::string> found;
  if (auto reader = ReaderOfMap(packed, map)) {
    reader->Entries([&](std::string_view name, std::string_view value) {
      if (name == key) found.emplace(value);
      return found.has_value();
    });
  }
  return found;
}

std::map<std::string, std::string> EntriesOfPacked(const Json& packed, std::string_view map) {
  std::map<std::string, std::string> entries;
  if (auto reader = ReaderOfMap(packed, map)) {
    reader->Entries([&entries](std::string_view key, std::string_view value) {
      entries.emplace(key, value);
      return false;
    });
  }
  return entries;
}

}  // namespace heddle::kube
