#include <fmt/format.h>

#include "crds/codec.h"
#include "topology/node.h"

namespace heddle::crds::codec {
namespace {

std::size_t CountCharacters(std::string_view text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool IsCamelCase(std::string_view text) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !text.empty() && text[0] >= 'A' && text[0] <= 'Z' &&
         std::all_of(text.begin(), text.end(), letter_or_digit);
}

std::optional<ConditionStatus> ParseConditionStatus(std::string_view text) {
  if (text == "True") return ConditionStatus::kTrue;
  if (text == "False") return ConditionStatus::kFalse;
  if (text == "Unknown") return ConditionStatus::kUnknown;
  return std::nullopt;
}

OwnerReference ReadOwner(const Field& field) {
  OwnerReference owner;
  owner.api_version = field("apiVersion").Text(253);
  owner.kind = field("kind").Text(253);
  owner.name = field("name").Text(253);
  owner.uid = field("uid").Text(253);
  if (const Field controller = field("controller"); controller.present())
    owner.controller = controller.Bool();
  return owner;
}

}  // namespace

Field Field::operator()(std::string_view key) const& {
  const Json* child = nullptr;
  if (CheckObject() && present()) {
    const auto found = value_->find(key);
    if (found != value_->end() && !found->is_null()) child = &*found;
  }
  return Field(child, problem_, this, key, 0);
}

std::string Field::Path() const {
  if (parent_ == nullptr) return "";
  std::string path = parent_->Path();
  if (key_.empty()) return path + "[" + std::to_string(index_) + "]";
  return path.empty() ? std::string(key_) : path + "." + std::string(key_);
}

void Field::Refuse(std::string_view why) const {
  if (problem_->found()) return;
  const std::string path = Path();
  problem_->Note(path.empty() ? std::string(why) : path + ": " + std::string(why));
}

const Field& Field::Required() const {
  if (!present()) Refuse("is missing");
  return *this;
}

bool Field::CheckObject() const {
  if (!present() || value_->is_object()) return true;
  Refuse(fmt::format("must be an object, not {}", value_->type_name()));
  return false;
}

bool Field::CheckList(std::size_t max_items) const {
  if (!present() || problem_->found()) return false;
  if (!value_->is_array()) {
    Refuse(fmt::format("must be a list, not {}", value_->type_name()));
    return false;
  }
  if (value_->size() > max_items) {
    Refuse(fmt::format("has {} entries, at most {} are allowed", value_->size(), max_items));
    return false;
  }
  return true;
}

std::string Field::Text(std::size_t max_length) const {
  if (!present()) return "";
  if (!value_->is_string()) {
    Refuse(fmt::format("must be a string, not {}", value_->type_name()));
    return "";
  }
  const auto& text = value_->get_ref<const std::string&>();
  if (text.size() > max_length && CountCharacters(text) > max_length) {
    Refuse(fmt::format("has {} characters, at most {} are allowed", CountCharacters(text), max_length));
    return "";
  }
  return text;
}

std::string Field::Name(std::size_t max_length) const {
  std::string text = Text(max_length);
  if (text.empty()) Refuse(present() ? "must not be empty" : "is missing");
  return text;
}

std::string Field::CamelCase(std::size_t max_length) const {
  std::string text = Text(max_length);
  if (present() && !IsCamelCase(text)) Refuse("must be one CamelCase word");
  return text;
}

std::vector<std::string> Field::Keys() const {
  std::vector<std::string> keys;
  if (!CheckObject() || !present()) return keys;
  for (const auto& [key, value] : value_->items()) keys.push_back(key);
  return keys;
}

bool Field::Bool() const {
  if (!present()) return false;
  if (!value_->is_boolean()) {
    Refuse(fmt::format("must be true or false, not {}", value_->type_name()));
    return false;
  }
  return value_->get<bool>();
}

std::int64_t Field::Int64(std::int64_t min, std::int64_t max, std::int64_t absent) const {
  if (!present()) return absent;
  if (!value_->is_number_integer()) {
    Refuse(
        fmt::format("must be an integer, not {}", value_->is_number() ? "a fraction" : value_->type_name()));
    return absent;
  }
  const bool huge = value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t(kMaxInt64);
  const std::int64_t number = huge ? kMaxInt64 : value_->get<std::int64_t>();
  if (huge || number < min || number > max) {
    Refuse(fmt::format("is {}, must be {} to {}", value_->dump(), min, max));
    return absent;
  }
  return number;
}

std::optional<base::WallTime> Field::Time() const {
  if (!present()) return std::nullopt;
  auto time = base::ParseTime(Text(64));
  if (!time) Refuse("must be a time as 2026-01-31T12:00:00Z");
  return time;
}

std::vector<std::string> Field::Names(std::size_t max_items, std::size_t max_length) const {
  return List(max_items, [&](const Field& item) { return item.Name(max_length); });
}

std::map<std::string, std::string> Field::Texts(std::size_t max_items, std::size_t max_length) const {
  std::map<std::string, std::string> texts;
  if (!CheckObject() || !present()) return texts;
  if (value_->size() > max_items) Refuse(fmt::format("has more than {} entries", max_items));
  for (auto entry = value_->begin(); entry != value_->end() && !problem_->found(); ++entry) {
    texts[entry.key()] = (*this)(entry.key()).Text(max_length);
  }
  return texts;
}

std::string_view TransportWords() {
  static const std::string words = fmt::format("{}", fmt::join(topology::TransportNames(), ", "));
  return words;
}

topology::Fact<int> ReadFact(const Field& parent, std::string_view key, std::string_view missing_key,
                             std::int64_t max) {
  const Field value = parent(key);
  const Field missing = parent(missing_key);
  if (value.present() && missing.present()) missing.Refuse(fmt::format("stands beside {}: remove one", key));
  if (value.present()) return value.Int(0, max);
  return missing.Word(topology::ParseMissing, kMissingWords, topology::Missing::kUnknown);
}

void ReadHead(const Field& root, std::string_view kind, ObjectMeta& meta) {
  if (const Field field = root("apiVersion"); field.present() && field.Text(64) != keys::kApiVersion) {
    field.Refuse(fmt::format("must be {}", keys::kApiVersion));
  }
  if (const Field field = root("kind"); field.present() && field.Text(64) != kind) {
    field.Refuse(fmt::format("must be {}", kind));
  }
  const Field metadata = root("metadata");
  metadata.Required();
  meta.name = metadata("name").Name(253);
  meta.ns = metadata("namespace").Text(63);
  meta.uid = metadata("uid").Text(253);
  meta.resource_version = metadata("resourceVersion").Text(253);
  meta.generation = metadata("generation").Int64(0, kMaxInt64);
  meta.created_at = metadata("creationTimestamp").Time();
  meta.deleted_at = metadata("deletionTimestamp").Time();
  meta.owners = metadata("ownerReferences").List(1000, ReadOwner);
}

std::vector<Condition> ReadConditions(const Field& field, std::size_t max) {
  auto conditions = field.List(max, [](const Field& item) {
    Condition condition;
    condition.type = item("type").Required().CamelCase(64);
    condition.status = item("status").Required().Word(ParseConditionStatus, "True, False, Unknown",
                                                      ConditionStatus::kUnknown);
    condition.reason = item("reason").Required().CamelCase(64);
    condition.message = item("message").Required().Text(1024);
    condition.observed_generation = item("observedGeneration").Int64(0, kMaxInt64);
    if (const auto time = item("lastTransitionTime").Required().Time()) condition.last_transition = *time;
    return condition;
  });
  std::sort(conditions.begin(), conditions.end(),
            [](const auto& a, const auto& b) { return a.type < b.type; });
  const auto twice = std::adjacent_find(conditions.begin(), conditions.end(),
                                        [](const auto& a, const auto& b) { return a.type == b.type; });
  if (twice != conditions.end()) field.Refuse(fmt::format("{} stands twice", twice->type));
  return conditions;
}

}  // namespace heddle::crds::codec
