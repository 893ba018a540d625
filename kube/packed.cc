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
// In the order of their bytes: each two bytes of length, the higher first, and its text.
constexpr std::array<Field, 6> kHead = {{{"metadata", "resourceVersion", true},
                                         {"metadata", "name", true},
                                         {"metadata", "namespace", true},
                                         {"metadata", "uid", true},
                                         {"spec", "nodeName", false},
                                         {"status", "phase", false}}};
constexpr std::size_t kVersion = 0;
constexpr std::size_t kAbsent = 0xffff;  // as a length: there is no such text, which is not the empty one

const std::string* TextAt(const Json& object, const Field& field) {
  const Json* value = Find(object, {field.in, field.name});
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

struct Head {
  std::array<std::optional<std::string_view>, kHead.size()> texts;
  std::size_t size = 0;  // bytes
};

// Bytes that end too early have no more texts, and no rest.
Head HeadOf(const Bytes& bytes) {
  Head head;
  for (auto& text : head.texts) {
    if (bytes.size() - head.size < 2) return {{}, bytes.size()};
    const std::size_t length = std::size_t(bytes[head.size]) << 8 | bytes[head.size + 1];
    head.size += 2;
    if (length == kAbsent) continue;
    if (bytes.size() - head.size < length) return {{}, bytes.size()};
    text.emplace(reinterpret_cast<const char*>(bytes.data()) + head.size, length);
    head.size += length;
  }
  return head;
}

}  // namespace

Json Packed(Json object) {
  if (!object.is_object()) return object;
  Bytes bytes;
  for (const Field& field : kHead) {
    const std::string* text = TextAt(object, field);
    const std::size_t length = text == nullptr ? kAbsent : text->size();
    if (text != nullptr && length >= kAbsent) return object;
    bytes.push_back(std::uint8_t(length >> 8));
    bytes.push_back(std::uint8_t(length & 0xff));
    if (text != nullptr) bytes.insert(bytes.end(), text->begin(), text->end());
  }
  for (const Field& field : kHead) {
    if (field.moves && TextAt(object, field) != nullptr) object[field.in].erase(std::string(field.name));
  }
  Json::to_cbor(object, bytes);
  bytes.shrink_to_fit();  // it grew by doubling, and stays
  return Json::binary(std::move(bytes));
}

bool IsPacked(const Json& object) {
  return object.is_binary();  // no text is read as one
}

Json Unpacked(const Json& object) {
  if (!IsPacked(object)) return object;
  const Bytes& bytes = object.get_binary();
  const Head head = HeadOf(bytes);
  Json whole = Json::from_cbor(bytes.begin() + std::ptrdiff_t(head.size), bytes.end(), true, false);
  if (!whole.is_object()) whole = Json::object();
  for (std::size_t i = 0; i < kHead.size(); ++i) {
    if (!head.texts[i]) continue;
    Json& in = whole[kHead[i].in];
    if (!in.is_object()) in = Json::object();
    in[kHead[i].name] = *head.texts[i];
  }
  return whole;
}

bool SameButVersion(const Json& a, const Json& b) {
  if (IsPacked(a) && IsPacked(b)) {
    const Bytes &one = a.get_binary(), &other = b.get_binary();
    const auto rest = [](const Bytes& bytes) {
      return bytes.begin() + std::ptrdiff_t(2 + HeadOf(bytes).texts[kVersion].value_or("").size());
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
    if (kHead[i].in == *path.begin() && kHead[i].name == *(path.begin() + 1))
      return HeadOf(packed.get_binary()).texts[i].value_or(std::string_view());
  }
  return {};
}

}  // namespace heddle::kube
