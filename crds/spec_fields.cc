#include "crds/spec_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/nearest_word.h"
#include "crds/label_value.h"

namespace heddle::crds::codec {
namespace {

constexpr std::size_t kMaxNamed = 16;

}  // namespace

void UnknownFields::LookAt(const Field& field, std::span<const std::string_view> known) {
  for (const std::string& key : field.Keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (++found_ > kMaxNamed) return;
    const std::string path = field.Path();
    std::string one = Clean(path.empty() ? key : fmt::format("{}.{}", path, key), 200);
    const std::string near = base::NearestWord(key, std::vector<std::string>(known.begin(), known.end()));
    if (!near.empty()) one += fmt::format(" (is {} meant?)", near);
    text_ += (text_.empty() ? "" : ", ") + one;
  }
}

void UnknownFields::LookAtEach(const Field& list, std::span<const std::string_view> known) {
  list.Each(kMaxNamed, [&](const Field& item) { LookAt(item, known); });
}

base::Status UnknownFields::Refused(std::string_view kind, std::string_view name) const {
  if (found_ == 0) return {};
  const bool one = found_ == 1;
  return base::Fail(
      base::Code::kInvalid,
      fmt::format(
          "{0} {1}: {2}: the {0} of this version has no such {3}; the API server refuses or drops {4}", kind,
          name, text_, one ? "field" : "fields", one ? "it" : "them"));
}

void RefuseLabelsOfNoNode(const Field& selector) {
  for (const std::string& key : selector.Keys()) {
    if (!IsLabelKey(key)) return selector.Refuse("\"" + Clean(key, 80) + "\" is no key of a label");
    const Field value = selector(key);
    const std::string text = value.Text(63);
    if (!text.empty() && !IsLabelValue(text))
      return value.Refuse("\"" + Clean(text, 80) + "\" is no value of a label");
  }
}

}  // namespace heddle::crds::codec
