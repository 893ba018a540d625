#include "nodeagent/pci/pcie_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace heddle::nodeagent {
namespace {

constexpr int kGeneration1 = 2500;

enum class Kind { kGpu, kNic, kSwitch };
enum class Lack { kNotJudged, kNothing, kLanes, kSpeed };

// The link above `device`, between it and the port over it.
struct Link {
  const PciDevice* device = nullptr;
  const PciDevice* port = nullptr;
  Kind kind = Kind::kSwitch;
  std::vector<std::string> carries;  // "GPU 3", "mlx5_3"
  std::vector<std::string> nics;     // of these
};

// What the link carries besides its line coding, in Gb/s: 8 of 10 bits to generation 2, 128 of 130 to generation 5,
// then 236 bytes of packets in each flit of 256 (PCI Express Base Specification 6.0).
int DataGbps(const PciLink& link) {
  const auto [data, wire] = link.speed <= 5000    ? std::pair(8, 10)
                            : link.speed <= 32000 ? std::pair(128, 130)
                                                  : std::pair(236, 256);
  constexpr std::int64_t kMost = 1'000'000;
  return int(std::min(kMost, std::int64_t{link.speed} * link.width * data / wire / 1000));
}

std::string Speed(int speed) {
  return speed % 1000 == 0 ? fmt::format("{} GT/s", speed / 1000)
                           : fmt::format("{}.{} GT/s", speed / 1000, speed % 1000 / 100);
}

class Judge {
 public:
  explicit Judge(const PciTree& tree) : tree_(tree) {}

  // From the root port down, a way is port, what is plugged into it, port, …: every second pair is a link, and
  // the others are inside a switch.
  void Follow(const std::string& address, Kind kind, const std::string& name) {
    const PciDevice* end = tree_.Find(address);
    if (end == nullptr) return;
    std::vector<const PciDevice*> way;
    for (const std::string& bridge : end->bridges) way.push_back(tree_.Find(bridge));
    way.push_back(end);
    for (std::size_t i = 1; i < way.size(); i += 2) {
      if (way[i] == nullptr || way[i - 1] == nullptr) continue;
      Link& link = links_[way[i]->address];
      link.device = way[i];
      link.port = way[i - 1];
      if (i + 1 == way.size()) link.kind = kind;
      link.carries.push_back(name);
      if (kind == Kind::kNic) link.nics.push_back(name);
    }
  }

  std::optional<std::vector<std::string>> Run() const {
    std::vector<std::string> faults;
    bool judged = false;
    for (const auto& [address, link] : links_) {
      const PciLink& below = link.device->link;
      switch (LackOf(link)) {
        case Lack::kNotJudged:
          continue;
        case Lack::kNothing:
          break;
        case Lack::kLanes:
          faults.push_back(
              fmt::format("{} has {} of {} PCIe lanes", NameOf(link), below.width, MostLanes(link)));
          break;
        case Lack::kSpeed:
          faults.push_back(fmt::format("{} runs at {} and could at {}", NameOf(link), Speed(below.speed),
                                       Speed(MostSpeed(link))));
          break;
      }
      judged = true;
    }
    if (!judged) return std::nullopt;
    return faults;
  }

  std::map<std::string, int> Limits() const {
    std::map<std::string, int> limits;
    for (const auto& [address, link] : links_) {
      const Lack lack = LackOf(link);
      const int gbps = DataGbps(link.device->link);
      if ((lack != Lack::kLanes && lack != Lack::kSpeed) || gbps <= 0) continue;
      for (const std::string& nic : link.nics) {
        int& limit = limits.emplace(nic, gbps).first->second;
        limit = std::min(limit, gbps);
      }
    }
    return limits;
  }

 private:
  static int MostLanes(const Link& link) {
    return std::min(link.device->link.max_width, link.port->link.max_width);
  }

  static int MostSpeed(const Link& link) {
    return std::min(link.device->link.max_speed, link.port->link.max_speed);
  }

  static Lack LackOf(const Link& link) {
    const PciLink &below = link.device->link, &above = link.port->link;
    const bool agree = below.width > 0 && below.width == above.width && below.speed == above.speed;
    if (!agree || below.max_width == 0 || above.max_width == 0) return Lack::kNotJudged;
    if (below.width < MostLanes(link)) return Lack::kLanes;
    return SpeedCounts(link) && below.speed < MostSpeed(link) ? Lack::kSpeed : Lack::kNothing;
  }

  static bool SpeedCounts(const Link& link) {
    if (link.kind == Kind::kGpu) return false;
    return link.device->link.speed > (link.kind == Kind::kNic ? 0 : kGeneration1);
  }

  static std::string NameOf(const Link& link) {
    if (link.kind != Kind::kSwitch) return fmt::format("{} ({})", link.carries.front(), link.device->address);
    return fmt::format("the PCIe switch at {} (above {})", link.device->address,
                       fmt::join(link.carries, ", "));
  }

  const PciTree& tree_;
  std::map<std::string, Link> links_;  // by the address of the lower end
};

Judge JudgeOf(const PciTree& tree, const topology::Node& node) {
  Judge judge(tree);
  for (const topology::Gpu& gpu : node.gpus)
    judge.Follow(gpu.pci, Kind::kGpu, fmt::format("GPU {}", gpu.index));
  for (const topology::Nic& nic : node.nics) {
    if (nic.role == topology::NicRole::kCompute) judge.Follow(nic.pci, Kind::kNic, nic.name);
  }
  return judge;
}

}  // namespace

std::optional<std::vector<std::string>> PcieFaults(const PciTree& tree, const topology::Node& node) {
  return JudgeOf(tree, node).Run();
}

std::map<std::string, int> PcieLimits(const PciTree& tree, const topology::Node& node) {
  return JudgeOf(tree, node).Limits();
}

}  // namespace heddle::nodeagent
