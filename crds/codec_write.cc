#include "crds/codec.h"

namespace heddle::crds::codec {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the UTF-8 character at the start of `text`, 0 where it is none: overlong forms, surrogates and
// values behind U+10FFFF are none (Unicode 15, table 3-7).
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? std::uint8_t(text[i]) : std::uint8_t(0); };
  const auto follows = [&](std::size_t i, std::uint8_t low = 0x80, std::uint8_t high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const std::uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const std::uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const std::uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string_view ConditionStatusName(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kUnknown:
      break;
  }
  return "Unknown";
}

Json WriteOwners(const std::vector<OwnerReference>& owners) {
  return WriteList(owners, owners.size(), [](const OwnerReference& owner) {
    return Json{{"apiVersion", Clean(owner.api_version, 253)},
                {"kind", Clean(owner.kind, 253)},
                {"name", Clean(owner.name, 253)},
                {"uid", Clean(owner.uid, 253)},
                {"controller", owner.controller}};
  });
}

}  // namespace

std::string Clean(std::string_view text, std::size_t max_length) {
  std::string clean;
  std::size_t characters = 0;
  std::size_t last = 0;  // where the last character of `clean` starts
  while (!text.empty()) {
    if (characters == max_length) {
      clean.replace(last, std::string::npos, "…");
      break;
    }
    const std::size_t length = CharacterLength(text);
    last = clean.size();
    clean += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
    ++characters;
  }
  return clean;
}

void PutText(Json& json, std::string_view key, std::string_view text, std::size_t max_length) {
  if (!text.empty()) json[std::string(key)] = Clean(text, max_length);
}

void PutPositive(Json& json, std::string_view key, std::int64_t value) {
  if (value != 0) json[std::string(key)] = value;
}

void PutTime(Json& json, std::string_view key, const std::optional<base::WallTime>& time) {
  if (time) json[std::string(key)] = base::FormatTime(*time);
}

void PutFact(Json& json, std::string_view key, std::string_view missing_key,
             const topology::Fact<int>& fact) {
  if (fact) {
    json[std::string(key)] = *fact;
  } else {
    json[std::string(missing_key)] = topology::MissingName(fact.missing());
  }
}

void PutList(Json& json, std::string_view key, Json list) {
  if (!list.empty()) json[std::string(key)] = std::move(list);
}

Json TextList(const std::vector<std::string>& texts, std::size_t max_items, std::size_t max_length) {
  return WriteList(texts, max_items, [&](const std::string& text) { return Clean(text, max_length); });
}

Json WriteHead(std::string_view kind, const ObjectMeta& meta) {
  Json json = ApplyHead(kind, meta, true);
  Json& metadata = json["metadata"];
  PutText(metadata, "resourceVersion", meta.resource_version, 253);
  PutPositive(metadata, "generation", meta.generation);
  PutTime(metadata, "creationTimestamp", meta.created_at);
  PutTime(metadata, "deletionTimestamp", meta.deleted_at);
  return json;
}

Json ApplyHead(std::string_view kind, const ObjectMeta& meta, bool with_owners) {
  Json metadata = Json::object();
  PutText(metadata, "name", meta.name, 253);
  PutText(metadata, "namespace", meta.ns, 63);
  PutText(metadata, "uid", meta.uid, 253);
  if (with_owners) PutList(metadata, "ownerReferences", WriteOwners(meta.owners));
  return Json{{"apiVersion", keys::kApiVersion}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

Json WriteConditions(const std::vector<Condition>& conditions, std::size_t max) {
  return WriteList(conditions, max, [](const Condition& condition) {
    Json json{{"type", Clean(condition.type, 64)},
              {"status", ConditionStatusName(condition.status)},
              // The API server refuses an empty reason; the type at least says what it is about.
              {"reason", Clean(condition.reason.empty() ? condition.type : condition.reason, 64)},
              {"message", Clean(condition.message, 1024)},
              {"lastTransitionTime", base::FormatTime(condition.last_transition)}};
    PutPositive(json, "observedGeneration", condition.observed_generation);
    return json;
  });
}

}  // namespace heddle::crds::codec
