#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

namespace heddle::cli {

// Writes what ibnetdiscover would print of a fabric that a test cables together.
class IbDump {
 public:
  // Units of hosts with a leaf for each rail, every leaf with `cables` to every spine. Host h of the whole is
  // "gpu-<h>" with mlx5_0, mlx5_1, …; a host's port on a leaf is its place in the unit, counted from 1.
  static IbDump RailOptimised(int units, int hosts, int rails, int spines, int cables) {
    IbDump dump;
    for (int u = 0; u < units; ++u) {
      for (int r = 0; r < rails; ++r) {
        const std::string leaf = dump.Switch(fmt::format("leaf-{}-{}", u, r));
        for (int h = 0; h < hosts; ++h) {
          dump.Cable(dump.Adapter(fmt::format("gpu-{:02}", u * hosts + h), fmt::format("mlx5_{}", r)), 1,
                     leaf, h + 1);
        }
        for (int s = 0; s < spines; ++s) {
          const std::string spine = dump.Switch(fmt::format("spine-{}", s));
          for (int c = 0; c < cables; ++c) {
            dump.Cable(leaf, hosts + 1 + s * cables + c, spine, 1 + (u * rails + r) * cables + c);
          }
        }
      }
    }
    return dump;
  }

  // The node's id. A node of the same description is the same node.
  std::string Switch(const std::string& description) { return Node("S", description); }
  std::string Adapter(const std::string& host, const std::string& device) {
    return Node("H", host + " " + device);
  }

  void Cable(const std::string& a, int a_port, const std::string& b, int b_port,
             const std::string& width = "4xNDR") {
    links_[a][a_port] = {b, b_port, width};
    links_[b][b_port] = {a, a_port, width};
  }
  // Only what `id` says of its port goes.
  void Forget(const std::string& id, int port) { links_[id].erase(port); }
  void Unplug(const std::string& id, int port) {
    const Link link = links_[id][port];
    Forget(id, port);
    Forget(link.other, link.port);
  }
  void Slow(const std::string& id, int port, const std::string& width) {
    Link& link = links_[id][port];
    link.width = width;
    links_[link.other][link.port].width = width;
  }
  // As Slow, but that only `id` says so.
  void Say(const std::string& id, int port, const std::string& width) { links_[id][port].width = width; }
  // Each of the two ports of one node gets the other's cable.
  void Swap(const std::string& a, int a_port, const std::string& b, int b_port) {
    const Link one = links_[a][a_port], two = links_[b][b_port];
    Cable(a, a_port, two.other, two.port, two.width);
    Cable(b, b_port, one.other, one.port, one.width);
  }

  std::string Text() const {
    std::string text = "#\n# Topology file: generated on Sat Nov 21 10:00:00 2026\n#\n";
    for (const auto& [description, id] : ids_) {
      text += fmt::format("\n{} 65 \"{}\" # \"{}\" lid 1 lmc 0\n", id[0] == 'S' ? "Switch" : "Ca", id,
                          description);
      const auto links = links_.find(id);
      if (links == links_.end()) continue;
      for (const auto& [port, link] : links->second) {
        text += fmt::format("[{}] \"{}\"[{}] # \"x\" lid 1 {}\n", port, link.other, link.port, link.width);
      }
    }
    return text;
  }

 private:
  struct Link {
    std::string other;
    int port = 0;
    std::string width;
  };

  std::string Node(const char* letter, const std::string& description) {
    return ids_.try_emplace(description, fmt::format("{}-{:016x}", letter, 0x1000 + ids_.size()))
        .first->second;
  }

  std::map<std::string, std::string> ids_;
  std::map<std::string, std::map<int, Link>> links_;
};

}  // namespace heddle::cli
