#include "nodeagent/pci/pcie_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace heddle::nodeagent {
namespace {

constexpr int kGeneration1 = 2500;

enum class Kind { kGpu, kNic, kSwitch };

// The link above `device`, between it and the port over it.
struct Link {
  const PciDevice* device = nullptr;
  const PciDevice* port = nullptr;
  Kind kind = Kind::kSwitch;
  std::vector<std::string> carries;  // "GPU 3", "mlx5_3"
};

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
    }
  }

  std::optional<std::vector<std::string>> Run() const {
    std::vector<std::string> faults;
    bool judged = false;
    for (const auto& [address, link] : links_) {
      const PciLink &below = link.device->link, &above = link.port->link;
      const bool agree = below.width > 0 && below.width == above.width && below.speed == above.speed;
      if (!agree || below.max_width == 0 || above.max_width == 0) continue;
      judged = true;
      const int lanes = std::min(below.max_width, above.max_width);
      const int speed = std::min(below.max_speed, above.max_speed);
      if (below.width < lanes) {
        faults.push_back(fmt::format("{} has {} of {} PCIe lanes", NameOf(link), below.width, lanes));
      } else if (SpeedCounts(link) && below.speed < speed) {
        faults.push_back(
            fmt::format("{} runs at {} and could at {}", NameOf(link), Speed(below.speed), Speed(speed)));
      }
    }
    if (!judged) return std::nullopt;
    return faults;
  }

 private:
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

}  // namespace

std::optional<std::vector<std::string>> PcieFaults(const PciTree& tree, const topology::Node& node) {
  Judge judge(tree);
  for (const topology::Gpu& gpu : node.gpus)
    judge.Follow(gpu.pci, Kind::kGpu, fmt::format("GPU {}", gpu.index));
  for (const topology::Nic& nic : node.nics) {
    if (nic.role == topology::NicRole::kCompute) judge.Follow(nic.pci, Kind::kNic, nic.name);
  }
  return judge.Run();
}

}  // namespace heddle::nodeagent
