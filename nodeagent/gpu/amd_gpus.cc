#include "nodeagent/gpu/amd_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

constexpr std::string_view kNodes = "sys/class/kfd/kfd/topology/nodes";
constexpr std::size_t kMaxNodes = 256;  // 8 GPUs in 8 partitions each, and the CPUs
constexpr std::size_t kMaxLinks = 64;   // io_links of one node
constexpr std::size_t kMaxBanks = 16;
constexpr int kMostLinksToOne = 16;
constexpr std::uint64_t kMostMemory = 1ULL << 50;  // bytes
constexpr std::uint64_t kMostSpeed = 10'000'000;   // MB/s
constexpr std::uint64_t kXgmi = 11;                // io link types: include/uapi and CRAT; 2 is PCIe
constexpr std::uint64_t kOneHop = 15;  // weight of an xGMI link; two hops weigh 30 and are no link
constexpr std::uint64_t kFrameBuffers[] = {1, 2};  // heap types: seen by the host, and not

// "name value" lines.
using Properties = std::map<std::string, std::uint64_t, std::less<>>;

struct KfdLink {
  int to = 0;
  int count = 0;
  int speed_mbps = 0;  // of each
};

struct KfdNode {
  int number = 0;
  std::string pci;
  std::uint64_t unique_id = 0;
  std::uint64_t target = 0;  // 90402 is gfx942
  std::uint64_t memory = 0;  // bytes
  std::vector<KfdLink> links;
};

Properties ReadProperties(const base::FileTree& files, const std::string& path) {
  Properties properties;
  const auto text = files.Read(path);
  if (!text) return properties;
  constexpr int kMostLines = 128;
  formats::ForEachLine(*text, [&properties](std::string_view line, int number) {
    if (number > kMostLines) return;
    formats::Scanner scan(line);
    std::string name(scan.Word());
    if (const auto value = formats::Number<std::uint64_t>(scan.Word()))
      properties.emplace(std::move(name), *value);
  });
  return properties;
}

std::uint64_t Get(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

// What of KFD's was looked at, and what was left out.
struct Kfd {
  const base::FileTree& files;
  std::vector<std::string>& problems;
};

std::vector<std::string> Names(const Kfd& kfd, const std::string& path, std::size_t most) {
  std::vector<std::string> names = kfd.files.List(path).value_or(std::vector<std::string>());
  if (names.size() > most) {
    kfd.problems.push_back(fmt::format("{} entries of {} are left out: {} are looked at", names.size() - most,
                                       formats::Printable(path), most));
    names.resize(most);
  }
  return names;
}

std::vector<KfdLink> ReadLinks(const Kfd& kfd, const std::string& base) {
  std::vector<KfdLink> links;
  for (const std::string& name : Names(kfd, base + "/io_links", kMaxLinks)) {
    const Properties link = ReadProperties(kfd.files, fmt::format("{}/io_links/{}/properties", base, name));
    const std::uint64_t weight = Get(link, "weight"), to = Get(link, "node_to");
    if (Get(link, "type") != kXgmi || weight == 0 || weight > kOneHop || to >= kMaxNodes) continue;
    // The least is one link's, the most is all of them together; old kernels say neither.
    const std::uint64_t one = Get(link, "min_bandwidth"), all = Get(link, "max_bandwidth");
    const bool said = one > 0 && one <= kMostSpeed && all >= one;
    const int count = said ? int(std::min<std::uint64_t>(all / one, kMostLinksToOne)) : 1;
    links.push_back({int(to), count, said ? int(one) : 0});
  }
  return links;
}

std::uint64_t ReadMemory(const Kfd& kfd, const std::string& base) {
  std::uint64_t memory = 0;
  for (const std::string& name : Names(kfd, base + "/mem_banks", kMaxBanks)) {
    const Properties bank = ReadProperties(kfd.files, fmt::format("{}/mem_banks/{}/properties", base, name));
    const std::uint64_t heap = Get(bank, "heap_type"), size = Get(bank, "size_in_bytes");
    const bool frame_buffer =
        std::find(std::begin(kFrameBuffers), std::end(kFrameBuffers), heap) != std::end(kFrameBuffers);
    if (frame_buffer && size <= kMostMemory) memory += size;
  }
  return memory;
}

std::optional<KfdNode> ReadNode(const Kfd& kfd, int number) {
  const std::string base = fmt::format("{}/{}", kNodes, number);
  const Properties properties = ReadProperties(kfd.files, base + "/properties");
  if (Get(properties, "simd_count") == 0) return std::nullopt;  // a CPU's, or not shown to us
  KfdNode node;
  node.number = number;
  const std::uint64_t at = Get(properties, "location_id"), domain = Get(properties, "domain");
  node.pci = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, at >> 8 & 0xff, at >> 3 & 0x1f, at & 7);
  node.unique_id = Get(properties, "unique_id");
  node.target = Get(properties, "gfx_target_version");
  node.memory = ReadMemory(kfd, base);
  node.links = ReadLinks(kfd, base);
  return node;
}

std::vector<KfdNode> ReadNodes(const Kfd& kfd) {
  std::vector<int> numbers;
  for (const std::string& name : Names(kfd, std::string(kNodes), kMaxNodes)) {
    const auto number = formats::Number<int>(name);
    if (number && *number >= 0) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<KfdNode> nodes;
  for (const int number : numbers) {
    if (auto node = ReadNode(kfd, number)) nodes.push_back(*std::move(node));
  }
  return nodes;
}

std::optional<std::uint64_t> ReadHex(const base::FileTree& files, const std::string& path) {
  const auto text = base::ReadTrimmed(files, path);
  if (!text) return std::nullopt;
  return formats::Number<std::uint64_t>(std::string_view(*text).substr(text->starts_with("0x") ? 2 : 0), 16);
}

// "ue: 0\nce: 12": of the memory controllers, since the driver was loaded.
std::optional<std::int64_t> UncorrectedOf(const base::FileTree& files, const std::string& base) {
  const auto text = files.Read(base + "/ras/umc_err_count");
  if (!text) return std::nullopt;
  std::optional<std::int64_t> uncorrected;
  formats::ForEachLine(*text, [&uncorrected](std::string_view line, int) {
    formats::Scanner scan(line);
    if (scan.Word() != "ue:") return;
    if (const auto count = formats::Number<std::int64_t>(scan.Word())) uncorrected = *count;
  });
  return uncorrected;
}

class AmdProbe {
 public:
  AmdProbe(const base::FileTree& files, const PciTree& tree, GpuReadings& readings)
      : files_(files), tree_(tree), readings_(readings) {}

  void Run() {
    std::vector<const PciDevice*> devices;
    for (const auto& [address, device] : tree_.devices) {
      if (IsGpu(device) && device.vendor == kVendorAmd) devices.push_back(&device);
    }
    if (devices.empty()) return;
    nodes_ = ReadNodes({files_, readings_.problems});
    for (const KfdNode& node : nodes_) pci_of_.emplace(node.number, node.pci);
    // In the order in which AMD's runtime counts them, which is KFD's; those that it does not show come last.
    const auto order = [this](const PciDevice* device) {
      const KfdNode* node = NodeOf(device->address);
      return node == nullptr ? int(kMaxNodes) : node->number;
    };
    std::stable_sort(devices.begin(), devices.end(),
                     [&order](const PciDevice* a, const PciDevice* b) { return order(a) < order(b); });
    int index = readings_.gpus.empty() ? 0 : readings_.gpus.back().index + 1;
    std::size_t unseen = 0;
    for (const PciDevice* device : devices) {
      const KfdNode* node = NodeOf(device->address);
      unseen += node == nullptr ? 1 : 0;
      readings_.gpus.push_back(Read(*device, node, index++));
    }
    if (unseen > 0) {
      readings_.problems.push_back(
          fmt::format("{} of {} AMD GPUs are not in /sys/class/kfd, so their xGMI links are unknown: is "
                      "amdgpu loaded, and may "
                      "this process use the GPUs?",
                      unseen, devices.size()));
    }
  }

 private:
  const KfdNode* NodeOf(const std::string& pci) const {
    const auto found =
        std::find_if(nodes_.begin(), nodes_.end(), [&pci](const KfdNode& node) { return node.pci == pci; });
    return found == nodes_.end() ? nullptr : &*found;
  }

  static std::string NameOf(const PciDevice& device, const KfdNode* node) {
    std::string name = fmt::format("AMD GPU {:04x}", device.device);
    if (node != nullptr && node->target > 0 && node->target < 10'000'000) {
      name +=
          fmt::format(" (gfx{}{}{:x})", node->target / 10'000, node->target / 100 % 100, node->target % 100);
    }
    return name;
  }

  GpuReading Read(const PciDevice& device, const KfdNode* node, int index) const {
    const std::string base = fmt::format("sys/bus/pci/devices/{}", device.address);
    GpuReading gpu;
    gpu.index = index;
    gpu.xgmi = true;
    gpu.pci = device.address;
    const auto product = base::ReadTrimmed(files_, base + "/product_name");
    gpu.name = product ? formats::Printable(*product, 128) : std::string();
    if (gpu.name.empty()) gpu.name = NameOf(device, node);
    std::uint64_t id = ReadHex(files_, base + "/unique_id").value_or(0);
    if (id == 0 && node != nullptr) id = node->unique_id;
    if (id != 0) gpu.uuid = fmt::format("GPU-{:016x}", id);
    const auto vram = base::ReadTrimmed(files_, base + "/mem_info_vram_total");
    std::uint64_t memory = vram ? formats::Number<std::uint64_t>(*vram).value_or(0) : 0;
    if (memory == 0 && node != nullptr) memory = node->memory;
    if (memory <= kMostMemory) gpu.memory_mib = int(memory >> 20);
    gpu.uncorrected_ecc = UncorrectedOf(files_, base);
    if (node != nullptr) AddLinks(*node, gpu);
    return gpu;
  }

  void AddLinks(const KfdNode& node, GpuReading& gpu) const {
    for (const KfdLink& link : node.links) {
      const auto to = pci_of_.find(link.to);
      if (to == pci_of_.end() || to->second == gpu.pci)
        continue;  // to a CPU, or another partition of this GPU
      for (int i = 0; i < link.count; ++i) {
        gpu.nvlinks.push_back({int(gpu.nvlinks.size()), true, LinkEnd::kGpu, to->second, link.speed_mbps});
      }
    }
  }

  const base::FileTree& files_;
  const PciTree& tree_;
  GpuReadings& readings_;
  std::vector<KfdNode> nodes_;         // of GPUs, by number
  std::map<int, std::string> pci_of_;  // of those
};

}  // namespace

void AddAmdGpus(const base::FileTree& files, const PciTree& tree, GpuReadings& readings) {
  AmdProbe(files, tree, readings).Run();
}

}  // namespace heddle::nodeagent
