#include "nodeagent/nic/uncabled.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/nic/name_globs.h"

namespace heddle::nodeagent {
namespace {

std::string WhyNoPort(std::string_view glob) {
  if (glob.empty()) return "no port stands behind the colon";
  if (std::string why = WhyNoGlob(glob); !why.empty()) return why;
  const bool plain = glob.find_first_of("*?[") == std::string_view::npos;
  const auto number = formats::Number<int>(glob);
  if (plain && (!number || *number < 1 || *number > 254)) return "a port is a number from 1 to 254";
  return {};
}

}  // namespace

base::Result<UncabledPorts> UncabledPorts::Parse(std::string_view text) {
  UncabledPorts ports;
  ports.text_ = text;
  const auto refused = [](std::string_view pattern, std::string_view why) {
    return base::Fail(base::Code::kInvalid,
                      fmt::format("\"{}\" names no ports without a cable: {}; write DEVICE or DEVICE:PORT, "
                                  "such as mlx5_1 or mlx5_[45]:2",
                                  formats::Printable(pattern, kMaxGlob), why));
  };
  const auto patterns = SplitGlobs(text);
  if (!patterns) return refused(patterns.error().pattern, patterns.error().why);
  for (const std::string_view pattern : *patterns) {
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
    return MatchesGlob(one.device, device) && MatchesGlob(one.port, number);
  });
  return found == patterns_.end() ? std::string_view() : std::string_view(found->text);
}

}  // namespace heddle::nodeagent
