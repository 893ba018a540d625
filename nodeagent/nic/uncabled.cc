#include "nodeagent/nic/uncabled.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxPatterns = 128;  // as many as a node has NICs
constexpr std::size_t kMaxPattern = 64;    // IB_DEVICE_NAME_MAX of the kernel

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

// Why fnmatch would match nothing with it that is a name; empty: it may.
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

std::string WhyNoPort(std::string_view glob) {
  if (glob.empty()) return "no port stands behind the colon";
  if (std::string why = WhyNoGlob(glob); !why.empty()) return why;
  const bool plain = glob.find_first_of("*?[") == std::string_view::npos;
  const auto number = formats::Number<int>(glob);
  if (plain && (!number || *number < 1 || *number > 254)) return "a port is a number from 1 to 254";
  return {};
}

bool IsEverything(std::string_view glob) {
  return !glob.empty() && glob.find_first_not_of('*') == std::string_view::npos;
}

bool Matches(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

base::Result<UncabledPorts> UncabledPorts::Parse(std::string_view text) {
  UncabledPorts ports;
  ports.text_ = text;
  const auto refused = [](std::string_view pattern, std::string_view why) {
    return base::Fail(base::Code::kInvalid,
                      fmt::format("\"{}\" names no ports without a cable: {}; write DEVICE or DEVICE:PORT, "
                                  "such as mlx5_1 or mlx5_[45]:2",
                                  formats::Printable(pattern, kMaxPattern), why));
  };
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view pattern = text.substr(0, comma);
    if (comma + 1 == text.size()) return refused(text, "nothing stands behind its last comma");
    text.remove_prefix(std::min(text.size(), comma + 1));
    if (pattern.empty()) return refused(pattern, "it is empty");
    if (pattern.size() > kMaxPattern)
      return refused(pattern, fmt::format("it has over {} characters", kMaxPattern));
    if (ports.patterns_.size() >= kMaxPatterns)
      return refused(pattern, fmt::format("over {} patterns are given", kMaxPatterns));
    const std::size_t colon = pattern.find(':');
    const std::string_view device = pattern.substr(0, colon);
    const bool any_port = colon == std::string_view::npos;
    const std::string_view port = any_port ? std::string_view("*") : pattern.substr(colon + 1);
    std::string why = device.empty() ? "no device stands before the colon" : WhyNoGlob(device);
    if (why.empty()) why = WhyNoPort(port);
    if (why.empty() && IsEverything(device) && IsEverything(port))
      why = "it is every port of the node, and no alarm would be left of any";
    if (!why.empty()) return refused(pattern, why);
    ports.patterns_.push_back({std::string(pattern), std::string(device), std::string(port)});
  }
  return ports;
}

std::string_view UncabledPorts::Naming(const std::string& device, int port) const {
  const std::string number = std::to_string(port);
  const auto found = std::find_if(patterns_.begin(), patterns_.end(), [&](const Pattern& one) {
    return Matches(one.device, device) && Matches(one.port, number);
  });
  return found == patterns_.end() ? std::string_view() : std::string_view(found->text);
}

}  // namespace heddle::nodeagent
