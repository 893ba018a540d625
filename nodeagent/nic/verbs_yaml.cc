#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/nic/verbs.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxEntries = 4096;  // 512 devices of 8 ports
constexpr std::size_t kMaxProblems = 20;
constexpr std::ptrdiff_t kMaxNodes =
    65'536;  // yaml-cpp makes a node of each value, and recurses for nested ones

std::string Text(const YAML::Node& entry, const char* key) {
  if (!entry.IsMap()) return {};
  const YAML::Node value = entry[key];
  return value.IsDefined() && value.IsScalar() ? formats::Printable(value.Scalar(), 64) : std::string();
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

bool IsMtu(int bytes) {
  return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

}  // namespace

VerbsFile ParseVerbsYaml(std::string_view yaml) {
  VerbsFile file;
  const auto marks = std::count_if(yaml.begin(), yaml.end(),
                                   [](char c) { return c == ',' || c == '\n' || c == '[' || c == '{'; });
  if (yaml.size() > kMaxBytes || marks > kMaxNodes) {
    file.problems.emplace_back("verbs.yaml is longer than any machine's");
    return file;
  }
  try {
    const YAML::Node list = YAML::Load(std::string(yaml));
    if (!list.IsSequence()) {
      file.problems.emplace_back("verbs.yaml is no list of ports");
      return file;
    }
    std::size_t bad = 0;
    for (std::size_t i = 0; i < std::min(list.size(), kMaxEntries); ++i) {
      const std::string device = Text(list[i], "device");
      const auto port = formats::Number<int>(Text(list[i], "port"));
      const auto mtu = formats::Number<int>(Text(list[i], "active_mtu"));
      if (device.empty() || !port || *port < 1 || *port > 255 || !mtu || !IsMtu(*mtu)) {
        if (++bad <= kMaxProblems)
          file.problems.push_back(
              fmt::format("verbs.yaml: entry {} has no device, port or active_mtu of 256 to 4096", i));
        continue;
      }
      file.ports[{device, *port}] = {topology::LinkState::kActive, Text(list[i], "link_layer"), *mtu};
    }
    if (bad > kMaxProblems)
      file.problems.push_back(fmt::format("verbs.yaml: {} more entries are no ports", bad - kMaxProblems));
    if (list.size() > kMaxEntries)
      file.problems.push_back(fmt::format("verbs.yaml: {} entries are left out: {} are looked at",
                                          list.size() - kMaxEntries, kMaxEntries));
  } catch (const std::exception& error) {  // yaml-cpp's own, and what its scanner throws on odd bytes
    file.ports.clear();
    file.problems.push_back(
        fmt::format("verbs.yaml is not YAML ({})", formats::Printable(error.what(), 120)));
  }
  return file;
}

std::string FormatVerbsYaml(const RdmaReadings& rdma) {
  std::string text;
  for (const RdmaDevice& device : rdma.devices) {
    for (const RdmaPort& port : device.ports) {
      if (port.active_mtu == 0) continue;
      text += fmt::format("- {{device: {}, port: {}, link_layer: {}, active_mtu: {}}}\n", Quoted(device.name),
                          port.number, Quoted(port.link_layer), port.active_mtu);
    }
  }
  return text;
}

}  // namespace heddle::nodeagent
