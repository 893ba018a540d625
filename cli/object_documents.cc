#include "cli/object_documents.h"

#include <fmt/format.h>

#include <algorithm>

#include "crds/yaml.h"
#include "formats/json_bounds.h"
#include "kube/object.h"

namespace heddle::cli {
namespace {

using base::Code;
using crds::Json;
using Each = std::function<base::Status(const Json& object)>;

// 5,000 NodeTopologies with all they can have are 80 MB.
constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxValues = 20'000'000;

base::Status Document(const Json& document, const Each& each) {
  if (document.is_array()) {
    return base::Fail(Code::kInvalid,
                      "it is a list: give its objects as the items of a `kind: List`, or as documents with a "
                      "line --- between them");
  }
  if (!document.is_object()) return base::Fail(Code::kInvalid, "it holds no Kubernetes objects");
  const Json* items = kube::Find(document, {"items"});
  if (items == nullptr) return each(document);
  if (!items->is_array()) return base::Fail(Code::kInvalid, "items is no list");
  std::size_t number = 0;
  for (const Json& item : *items) {
    if (!item.is_object()) return base::Fail(Code::kInvalid, fmt::format("items[{}] is no object", number));
    TRY(each(item), fmt::format("items[{}]", number));
    ++number;
  }
  return {};
}

// Of a program, an archive or a picture: control characters, which neither YAML nor JSON may have. A byte order mark of
// UTF-16, as PowerShell writes it, begins a text with many zeros, which YAML reads.
bool IsBinary(std::string_view text) {
  constexpr std::size_t kLooksAt = std::size_t{64} << 10;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return false;
  const std::string_view start = text.substr(0, kLooksAt);
  return std::any_of(start.begin(), start.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' &&
           std::string_view("\a\b\t\n\v\f\r\x1b").find(c) == std::string_view::npos;
  });
}

}  // namespace

std::string InputName(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

base::Status IsText(const std::string& path, const std::string& text, std::string_view expected) {
  if (text.find_first_not_of(" \t\r\n\xef\xbb\xbf") == std::string::npos)
    return base::Fail(Code::kInvalid,
                      fmt::format("{} is empty; it should hold {}", InputName(path), expected));
  // What begins as JSON has a line that can be named.
  if (IsJson(text) || !IsBinary(text)) return {};
  return base::Fail(Code::kInvalid, fmt::format("{} is neither YAML nor JSON but binary; it should hold {}",
                                                InputName(path), expected));
}

base::Result<Json> JsonOf(const std::string& text) {
  if (text.size() > kMaxBytes || !formats::IsBounded(text, kMaxValues, 64))
    return base::Fail(Code::kTooLarge, "it is larger than 256 MiB, or nests deeper than objects do");
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& failure) {
    return base::Fail(Code::kInvalid,
                      fmt::format("line {}: this is no JSON", formats::LineOf(text, failure.byte)));
  } catch (const Json::out_of_range&) {
    return base::Fail(Code::kInvalid, "a number in it is beyond all bounds");
  }
}

bool IsJson(const std::string& text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return start != std::string::npos && (text[start] == '{' || text[start] == '[');
}

base::Status ForEachObject(const std::string& text, const Json* json, const Each& each) {
  if (json != nullptr) return Document(*json, each);
  if (IsJson(text)) {
    ASSIGN_OR_RETURN(const Json whole, JsonOf(text));
    return Document(whole, each);
  }
  const bool several = text.find("\n---") != std::string::npos;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find("\n---", begin);
    if (end == std::string::npos) end = text.size();
    const std::string where = several ? fmt::format("document {}", ++number) : std::string();
    auto document = crds::FromYaml(text.substr(begin, end - begin));
    begin = end == text.size() ? end : std::min(text.find('\n', end + 1), text.size());
    if (!document) return base::Fail(several ? document.error().In(where) : document.error());
    if (document->is_null()) continue;
    const base::Status done = Document(*document, each);
    if (!done) return base::Fail(several ? done.error().In(where) : done.error());
  }
  return {};
}

}  // namespace heddle::cli
