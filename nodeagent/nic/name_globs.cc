#include "nodeagent/nic/name_globs.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

bool IsOfAName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

// What is wrong with what stands from `at`, a '[', on; empty: nothing, and `at` is its ']'.
std::string WhyNoBracket(std::string_view glob, std::size_t& at) {
  std::size_t from = at + 1;
  if (from < glob.size() && (glob[from] == '!' || glob[from] == '^')) ++from;
  const std::size_t end = glob.find(']', from);
  if (end == std::string_view::npos)
    return "a [ has no ] (between them stand no commas: [13], or [1-3] for a range)";
  const std::string_view inside = glob.substr(from, end - from);
  if (inside.empty()) return "nothing stands between [ and ]";
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (!IsOfAName(inside[i]))
      return fmt::format("'{}' stands between [ and ]", formats::Printable(inside.substr(i, 1)));
    const bool range = inside[i] == '-' && i > 0 && i + 1 < inside.size();
    if (range && inside[i - 1] > inside[i + 1])
      return fmt::format("the range {} runs backwards", inside.substr(i - 1, 3));
  }
  at = end;
  return {};
}

}  // namespace

tl::expected<std::vector<std::string_view>, RefusedGlob> SplitGlobs(std::string_view text) {
  std::vector<std::string_view> globs;
  const auto refused = [](std::string_view pattern, std::string why) {
    return tl::unexpected<RefusedGlob>(RefusedGlob{pattern, std::move(why)});
  };
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view pattern = text.substr(0, comma);
    if (comma + 1 == text.size()) return refused(text, "nothing stands behind its last comma");
    text.remove_prefix(std::min(text.size(), comma + 1));
    if (pattern.empty()) return refused(pattern, "it is empty");
    if (pattern.size() > kMaxGlob)
      return refused(pattern, fmt::format("it has over {} characters", kMaxGlob));
    if (globs.size() >= kMaxGlobs)
      return refused(pattern, fmt::format("over {} patterns are given", kMaxGlobs));
    globs.push_back(pattern);
  }
  return globs;
}

std::string WhyNoGlob(std::string_view glob) {
  for (std::size_t at = 0; at < glob.size(); ++at) {
    if (glob[at] == '[') {
      if (std::string why = WhyNoBracket(glob, at); !why.empty()) return why;
    } else if (glob[at] == ' ') {
      return "a blank stands in no device's name";
    } else if (glob[at] != '*' && glob[at] != '?' && !IsOfAName(glob[at])) {
      return fmt::format("'{}' stands in no device's name", formats::Printable(glob.substr(at, 1)));
    }
  }
  return {};
}

bool IsEverything(std::string_view glob) {
  return !glob.empty() && glob.find_first_not_of('*') == std::string_view::npos;
}

bool MatchesGlob(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace heddle::nodeagent
