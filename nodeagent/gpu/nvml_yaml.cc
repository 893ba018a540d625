#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/gpu/probe.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kMaxGpus = 64;
constexpr std::size_t kMaxLinks = 72;  // NVML_NVLINK_MAX_LINKS is 36 today

constexpr int kMaxLinkSpeed = 10'000'000;  // 10 TB/s: above all that is built

constexpr std::array<std::pair<FabricState, std::string_view>, 4> kFabricStates{
    {{FabricState::kNotSupported, "not_supported"},
     {FabricState::kNotStarted, "not_started"},
     {FabricState::kInProgress, "in_progress"},
     {FabricState::kCompleted, "completed"}}};

// 64 GPUs with 36 links that tell all counters make 35,000. A value costs yaml-cpp half a kilobyte.
constexpr std::ptrdiff_t kMaxValues = 100'000;

constexpr std::size_t kMaxProblems = 64;
constexpr std::size_t kMaxSentence = 512;

constexpr std::array<std::pair<GpuState, std::string_view>, 5> kGpuStates{
    {{GpuState::kAnswers, "answers"},
     {GpuState::kLost, "lost"},
     {GpuState::kResetRequired, "reset_required"},
     {GpuState::kSilent, "silent"},
     {GpuState::kFails, "fails"}}};

// yaml-cpp throws on a member of what is no map; every access goes through here instead.
YAML::Node Member(const YAML::Node& node, const char* name) {
  return node.IsDefined() && node.IsMap() ? node[name] : YAML::Node(YAML::NodeType::Undefined);
}

std::string Text(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? formats::Printable(node.Scalar()) : std::string();
}

template <class T>
std::optional<T> Int(const YAML::Node& node) {
  return formats::Number<T>(Text(node));
}

std::optional<bool> Bool(const YAML::Node& node) {
  const std::string text = Text(node);
  if (text == "true") return true;
  return text == "false" ? std::optional<bool>(false) : std::nullopt;
}

FabricReading ReadFabric(const YAML::Node& node) {
  FabricReading fabric;
  const std::string state = Text(Member(node, "state"));
  for (const auto& [value, name] : kFabricStates) {
    if (name == state) fabric.state = value;
  }
  fabric.cluster_uuid = Text(Member(node, "cluster_uuid"));
  if (fabric.cluster_uuid.find_first_not_of("0-") == std::string::npos) fabric.cluster_uuid.clear();
  fabric.clique = Int<std::uint32_t>(Member(node, "clique")).value_or(0);
  fabric.health_mask = Int<std::uint32_t>(Member(node, "health_mask")).value_or(0);
  fabric.health_summary = Int<int>(Member(node, "health_summary")).value_or(0);
  fabric.error = Int<int>(Member(node, "error")).value_or(0);
  fabric.unread = Int<int>(Member(node, "unread")).value_or(0);
  return fabric;
}

LinkWord WordOf(std::string_view unread) {
  return unread == "kept" ? LinkWord::kKept : unread == "untold" ? LinkWord::kUntold : LinkWord::kSaid;
}

// `beyond`: counts those that are left out.
std::vector<NvlinkReading> ReadLinks(const YAML::Node& list, std::size_t& beyond) {
  std::vector<NvlinkReading> links;
  if (!list.IsDefined() || !list.IsSequence()) return links;
  for (const YAML::Node& entry : list) {
    const auto number = Int<int>(Member(entry, "link"));
    if (!number || *number < 0) continue;
    if (links.size() >= kMaxLinks) {
      ++beyond;
      continue;
    }
    const std::string end = Text(Member(entry, "remote_type"));
    links.push_back(
        {*number,
         Text(Member(entry, "state")) == "active",
         end == "switch" ? LinkEnd::kSwitch
         : end == "gpu"  ? LinkEnd::kGpu
                         : LinkEnd::kUnknown,
         Text(Member(entry, "remote_pci")),
         std::clamp(Int<int>(Member(entry, "speed_mbps")).value_or(0), 0, kMaxLinkSpeed),
         {Int<std::uint64_t>(Member(entry, "crc")), Int<std::uint64_t>(Member(entry, "replays")),
          Int<std::uint64_t>(Member(entry, "recoveries")),
          Int<std::uint64_t>(Member(entry, "receive_errors")), Int<std::uint64_t>(Member(entry, "malformed")),
          Int<std::uint64_t>(Member(entry, "overruns")), Int<std::uint64_t>(Member(entry, "integrity")),
          Int<std::uint64_t>(Member(entry, "failed_recoveries"))},
         WordOf(Text(Member(entry, "unread")))});
  }
  return links;
}

std::optional<GpuReading> ReadGpu(const YAML::Node& node, std::vector<std::string>& problems) {
  GpuReading gpu;
  const auto index = Int<int>(Member(node, "index"));
  if (!index || *index < 0) return std::nullopt;
  gpu.index = *index;
  gpu.uuid = Text(Member(node, "uuid"));
  gpu.name = Text(Member(node, "name"));
  gpu.pci = Text(Member(node, "pci"));
  for (const auto& [value, name] : kGpuStates) {
    if (name == Text(Member(node, "state"))) gpu.state = value;
  }
  gpu.failure = Text(Member(node, "failure"));
  gpu.mig = Bool(Member(node, "mig"));
  gpu.memory_mib = std::max(0, Int<int>(Member(node, "memory_mib")).value_or(0));
  gpu.nvlink_generation = std::clamp(Int<int>(Member(node, "nvlink_version")).value_or(0), 0, 99);
  std::size_t beyond = 0;
  gpu.nvlinks = ReadLinks(Member(node, "nvlinks"), beyond);
  if (beyond > 0) {
    problems.push_back(fmt::format("nvml.yaml: {} NVLinks of GPU {} are left out: {} are looked at", beyond,
                                   gpu.index, kMaxLinks));
  }
  gpu.fabric = ReadFabric(Member(node, "fabric"));
  gpu.uncorrected_ecc = Int<std::int64_t>(Member(Member(node, "ecc"), "volatile_uncorrected"));
  const YAML::Node health = Member(node, "health");
  gpu.row_remap_pending = Bool(Member(health, "row_remap_pending"));
  gpu.row_remap_failure = Bool(Member(health, "row_remap_failure"));
  gpu.recovery_action = Int<int>(Member(health, "recovery_action"));
  gpu.last_xid = Int<int>(Member(health, "last_xid")).value_or(0);
  return gpu;
}

void ReadGpus(const YAML::Node& list, GpuReadings& readings) {
  if (list.size() > kMaxGpus) {
    readings.problems.push_back(fmt::format("nvml.yaml: {} GPU entries are left out: {} are looked at",
                                            list.size() - kMaxGpus, kMaxGpus));
  }
  for (std::size_t i = 0; i < list.size() && i < kMaxGpus; ++i) {
    auto gpu = ReadGpu(list[i], readings.problems);
    const bool doubled =
        gpu && std::any_of(readings.gpus.begin(), readings.gpus.end(),
                           [&](const GpuReading& other) { return other.index == gpu->index; });
    if (!gpu || doubled) {
      readings.problems.push_back(fmt::format("nvml.yaml: GPU entry {} has {} and is left out", i,
                                              doubled ? "an index that another has" : "no usable index"));
      continue;
    }
    readings.gpus.push_back(*std::move(gpu));
  }
  std::sort(readings.gpus.begin(), readings.gpus.end(),
            [](const GpuReading& a, const GpuReading& b) { return a.index < b.index; });
}

void ReadProblems(const YAML::Node& list, GpuReadings& readings) {
  if (!list.IsDefined() || !list.IsSequence()) return;
  for (std::size_t i = 0; i < list.size() && i < kMaxProblems; ++i) {
    if (list[i].IsScalar()) readings.problems.push_back(formats::Printable(list[i].Scalar(), kMaxSentence));
  }
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string FormatFabric(const FabricReading& fabric) {
  std::string_view state = "unknown";
  for (const auto& [value, name] : kFabricStates) {
    if (value == fabric.state) state = name;
  }
  std::string text = fmt::format("  fabric: {{state: {}, cluster_uuid: {}, clique: {}", state,
                                 Quoted(fabric.cluster_uuid), fabric.clique);
  if (fabric.health_mask != 0) text += fmt::format(", health_mask: {}", fabric.health_mask);
  if (fabric.health_summary != 0) text += fmt::format(", health_summary: {}", fabric.health_summary);
  if (fabric.error != 0) text += fmt::format(", error: {}", fabric.error);
  if (fabric.unread != 0) text += fmt::format(", unread: {}", fabric.unread);
  return text + "}\n";
}

std::string FormatGpu(const GpuReading& gpu) {
  std::string text = fmt::format("- index: {}\n  uuid: {}\n  name: {}\n  pci: {}\n", gpu.index,
                                 Quoted(gpu.uuid), Quoted(gpu.name), Quoted(gpu.pci));
  for (const auto& [value, name] : kGpuStates) {
    if (value == gpu.state && value != GpuState::kAnswers) text += fmt::format("  state: {}\n", name);
  }
  if (!gpu.failure.empty()) text += fmt::format("  failure: {}\n", Quoted(gpu.failure));
  if (gpu.mig) text += fmt::format("  mig: {}\n", *gpu.mig);
  text += fmt::format("  memory_mib: {}\n  nvlink_version: {}\n  nvlinks:{}\n", gpu.memory_mib,
                      gpu.nvlink_generation, gpu.nvlinks.empty() ? " []" : "");
  for (const NvlinkReading& link : gpu.nvlinks) {
    const std::string_view end = link.end == LinkEnd::kSwitch ? "switch"
                                 : link.end == LinkEnd::kGpu  ? "gpu"
                                                              : "unknown";
    text += fmt::format("  - {{link: {}, state: {}, remote_type: {}, remote_pci: {}", link.link,
                        link.active ? "active" : "inactive", end, Quoted(link.remote_pci));
    if (link.speed_mbps > 0) text += fmt::format(", speed_mbps: {}", link.speed_mbps);
    for (const auto& [name, count] :
         {std::pair("crc", link.errors.crc), std::pair("replays", link.errors.replays),
          std::pair("recoveries", link.errors.recoveries), std::pair("receive_errors", link.errors.receive),
          std::pair("malformed", link.errors.malformed), std::pair("overruns", link.errors.overruns),
          std::pair("integrity", link.errors.integrity),
          std::pair("failed_recoveries", link.errors.failed_recoveries)}) {
      if (count) text += fmt::format(", {}: {}", name, *count);
    }
    if (link.word != LinkWord::kSaid)
      text += fmt::format(", unread: {}", link.word == LinkWord::kKept ? "kept" : "untold");
    text += "}\n";
  }
  text += FormatFabric(gpu.fabric);
  if (gpu.uncorrected_ecc) text += fmt::format("  ecc: {{volatile_uncorrected: {}}}\n", *gpu.uncorrected_ecc);
  text += fmt::format("  health: {{last_xid: {}", gpu.last_xid);
  if (gpu.row_remap_pending) text += fmt::format(", row_remap_pending: {}", *gpu.row_remap_pending);
  if (gpu.row_remap_failure) text += fmt::format(", row_remap_failure: {}", *gpu.row_remap_failure);
  if (gpu.recovery_action) text += fmt::format(", recovery_action: {}", *gpu.recovery_action);
  return text + "}\n";
}

}  // namespace

GpuReadings ParseNvmlYaml(std::string_view yaml) {
  GpuReadings readings;
  if (std::count_if(yaml.begin(), yaml.end(), [](char c) { return c == ',' || c == '\n'; }) > kMaxValues) {
    readings.absent = fmt::format("nvml.yaml has over {} values", kMaxValues);
    readings.problems.push_back(readings.absent);
    return readings;
  }
  try {
    const YAML::Node document = YAML::Load(std::string(yaml));
    readings.driver = Text(Member(document, "driver_version"));
    readings.absent = Text(Member(document, "absent"));
    ReadProblems(Member(document, "problems"), readings);
    const YAML::Node gpus = Member(document, "gpus");
    if (gpus.IsDefined() && gpus.IsSequence()) {
      ReadGpus(gpus, readings);
    } else {
      readings.absent = "nvml.yaml has no list of `gpus`";
      readings.problems.push_back(readings.absent);
    }
  } catch (const std::exception& error) {  // yaml-cpp's own, and what its scanner throws on odd bytes
    readings.gpus.clear();
    readings.absent = fmt::format("nvml.yaml is not YAML ({})", formats::Printable(error.what(), 120));
    readings.problems.push_back(readings.absent);
  }
  return readings;
}

std::string FormatNvmlYaml(const GpuReadings& readings) {
  std::string text = fmt::format("driver_version: {}\n", Quoted(readings.driver));
  if (!readings.absent.empty()) text += fmt::format("absent: {}\n", Quoted(readings.absent));
  if (!readings.problems.empty()) text += "problems:\n";
  for (std::size_t i = 0; i < readings.problems.size() && i < kMaxProblems; ++i)
    text += fmt::format("- {}\n", Quoted(readings.problems[i]));
  text += readings.gpus.empty() ? "gpus: []\n" : "gpus:\n";
  for (const GpuReading& gpu : readings.gpus) text += FormatGpu(gpu);
  return text;
}

const GpuReadings& NvmlYaml::Read(std::string text) {
  if (text_ != text) {
    readings_ = ParseNvmlYaml(text);
    text_ = std::move(text);
  }
  return readings_;
}

GpuReadings RecordedGpus::Read() {
  auto text = files_.Read("nvml.yaml");
  if (text) return yaml_.Read(*std::move(text));
  GpuReadings readings;
  readings.absent = "the recorded machine has no nvml.yaml";
  if (text.error().code != base::Code::kNotFound) {
    readings.absent = text.error().message;
    readings.problems.push_back(text.error().message);
  }
  return readings;
}

}  // namespace heddle::nodeagent
