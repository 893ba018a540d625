#include "tests/support/nvml/script.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace heddle::test::nvml {
namespace {

template <class T>
T Or(const YAML::Node& node, T otherwise) {
  return node.IsDefined() && node.IsScalar() ? node.as<T>() : otherwise;
}

template <class T>
std::optional<T> Maybe(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? std::optional<T>(node.as<T>()) : std::nullopt;
}

void ReadUuid(const std::string& text, unsigned char (&bytes)[16]) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != '-'; });
  digits.resize(32, '0');
  for (std::size_t i = 0; i < 16; ++i)
    bytes[i] = static_cast<unsigned char>(std::strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16));
}

Link ReadLink(const YAML::Node& node) {
  const auto end = Or<std::string>(node["remote_type"], "unknown");
  return {node["link"].as<unsigned>(),
          Or<std::string>(node["state"], "") == "active",
          end == "gpu"      ? 0U
          : end == "switch" ? 2U
                            : 0xffU,
          Or<std::string>(node["remote_pci"], ""),
          Or<unsigned>(node["speed_mbps"], 0),
          Maybe<unsigned long long>(node["crc"]),
          Maybe<unsigned long long>(node["replays"]),
          Maybe<unsigned long long>(node["recoveries"]),
          Maybe<unsigned long long>(node["receive_errors"]),
          Maybe<unsigned long long>(node["malformed"]),
          Maybe<unsigned long long>(node["overruns"]),
          Maybe<unsigned long long>(node["integrity"]),
          Maybe<unsigned long long>(node["failed_recoveries"])};
}

Gpu ReadGpu(const YAML::Node& node) {
  Gpu gpu;
  gpu.uuid = Or<std::string>(node["uuid"], "");
  gpu.name = Or<std::string>(node["name"], "");
  gpu.pci = Or<std::string>(node["pci"], "");
  gpu.memory_mib = Maybe<unsigned long long>(node["memory_mib"]);
  gpu.mig = Maybe<bool>(node["mig"]);
  gpu.generation = Or<int>(node["nvlink_version"], 0);
  for (const YAML::Node& link : node["nvlinks"]) gpu.links.push_back(ReadLink(link));
  if (const YAML::Node fabric = node["fabric"]; fabric.IsDefined()) {
    const auto state = Or<std::string>(fabric["state"], "unknown");
    gpu.has_fabric = state != "unknown";
    gpu.fabric_state = state == "completed" ? 3 : state == "in_progress" ? 2 : state == "not_started" ? 1 : 0;
    ReadUuid(Or<std::string>(fabric["cluster_uuid"], ""), gpu.cluster);
    gpu.clique = Or<unsigned>(fabric["clique"], 0);
    gpu.health_mask = Or<unsigned>(fabric["health_mask"], 0);
    gpu.health_summary = Or<int>(fabric["health_summary"], 0);
    gpu.fabric_error = Or<int>(fabric["error"], 0);
  }
  if (node["ecc"].IsDefined())
    gpu.uncorrected = Maybe<unsigned long long>(node["ecc"]["volatile_uncorrected"]);
  if (node["health"].IsDefined()) {
    gpu.remap_pending = Maybe<bool>(node["health"]["row_remap_pending"]);
    gpu.remap_failure = Maybe<bool>(node["health"]["row_remap_failure"]);
    gpu.recovery_action = Maybe<unsigned>(node["health"]["recovery_action"]);
    gpu.xid = Or<int>(node["health"]["last_xid"], 0);
  }
  return gpu;
}

void ReadFake(const YAML::Node& fake, Script& script) {
  script.init = Or<int>(fake["init"], 0);
  script.unknown_event = Or<int>(fake["unknown_event"], 3);
  script.fabric_version = Or<int>(fake["fabric_version"], 3);
  script.speeds = Or<std::string>(fake["speeds"], "all");
  script.link_states = Or<bool>(fake["link_states"], false);
  script.prints = Or<std::string>(fake["prints"], "");
  script.crashes = Or<std::string>(fake["crashes"], "");
  for (const auto& entry : fake["fails"])
    script.fails[entry.first.as<std::string>()] = entry.second.as<int>();
  for (const auto& entry : fake["link_fails"])
    script.link_fails[entry.first.as<std::string>()] = entry.second.as<int>();
  for (const auto& entry : fake["hangs"])
    script.hangs[entry.first.as<std::string>()] = entry.second.as<int>();
  for (const auto& entry : fake["gpu_fails"])
    script.gpu_fails[entry.first.as<unsigned>()] = entry.second.as<int>();
  for (const auto& entry : fake["lost"]) script.lost[entry.first.as<unsigned>()] = entry.second.as<int>();
}

}  // namespace

const Link* Gpu::FindLink(unsigned number) const {
  const auto found =
      std::find_if(links.begin(), links.end(), [number](const Link& link) { return link.number == number; });
  return found == links.end() ? nullptr : &*found;
}

Script ReadScript(const char* path) {
  Script script;
  try {
    const YAML::Node document = YAML::LoadFile(path);
    script.driver = Or<std::string>(document["driver_version"], "");
    for (const YAML::Node& gpu : document["gpus"]) script.gpus.push_back(ReadGpu(gpu));
    if (document["fake"].IsDefined()) ReadFake(document["fake"], script);
  } catch (const YAML::Exception& error) {
    std::fprintf(stderr, "test NVML: %s: %s\n", path, error.what());
    std::abort();
  }
  return script;
}

}  // namespace heddle::test::nvml
