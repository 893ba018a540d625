#include "nodeagent/pci/hwloc_probe.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

constexpr const char* kRootVariable = "HWLOC_FSROOT";

// Puts the variable back, so that a program that looks at several machines is not left with the last one.
class OtherRoot {
 public:
  explicit OtherRoot(const std::string& root) : active_(root != "/") {
    if (active_) ::setenv(kRootVariable, root.c_str(), 1);
  }
  OtherRoot(const OtherRoot&) = delete;
  OtherRoot& operator=(const OtherRoot&) = delete;
  ~OtherRoot() {
    if (active_) ::unsetenv(kRootVariable);
  }

 private:
  bool active_;
};

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Topology Load(const std::string& root, std::vector<std::string>& problems) {
  const OtherRoot other(root);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // Its CPUID backend would ask the processor under us about another machine, and we need no caches.
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_cache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  // Processors that this container may not use are part of the machine all the same.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) == 0) return topology;
  problems.emplace_back("hwloc could not read the processors and NUMA nodes");
  return nullptr;
}

// The largest number in "0-3,8" or "cpu12"; numbers of over nine digits count as the largest.
std::int64_t LargestIn(std::string_view text) {
  constexpr std::int64_t kLargest = 1'000'000'000;
  std::int64_t largest = 0, number = 0;
  for (const char c : text) {
    number = c < '0' || c > '9' ? 0 : std::min(number * 10 + (c - '0'), kLargest);
    largest = std::max(largest, number);
  }
  return largest;
}

// Where a recording has the numbers of processors or NUMA nodes, as a list.
bool IsList(std::string_view name) {
  return name.ends_with("list") || name == "online" || name == "possible" || name == "present" ||
         name == "offline";
}

// What hwloc would wait for, or count to the end, in a recording; the kernel writes neither. Empty: nothing.
std::string WhyNotForHwloc(const base::FileTree& files, const std::string& root) {
  namespace fs = std::filesystem;
  constexpr std::int64_t kMaxNumber = 8191;  // the kernel's NR_CPUS goes to 8192
  std::error_code error;
  fs::recursive_directory_iterator entries(root, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entries != end; entries.increment(error)) {
    const fs::file_type type = entries->symlink_status(error).type();
    const std::string path = entries->path().lexically_relative(root).string();
    const std::string name = entries->path().filename().string();
    if (type == fs::file_type::fifo) return fmt::format("{}: a named pipe and no file", path);
    if (!path.starts_with("sys/devices/system/")) continue;
    const bool numbered = name.starts_with("cpu") || name.starts_with("node");
    const std::int64_t number = type == fs::file_type::directory ? (numbered ? LargestIn(name) : 0)
                                : IsList(name)                   ? LargestIn(files.Read(path).value_or(""))
                                                                 : 0;
    if (number > kMaxNumber) return fmt::format("{}: more than a kernel can have", path);
  }
  return {};
}

std::string ProductOf(hwloc_topology_t topology) {
  const char* product = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "DMIProductName");
  return product == nullptr ? std::string() : formats::Printable(product, 128);
}

}  // namespace

Locality ProbeLocality(const base::FileTree& files, const std::string& root) {
  Locality locality;
  // Where there is nothing to read, hwloc makes up a machine with one NUMA node.
  if (const auto cpus = files.List("sys/devices/system/cpu"); !cpus) {
    locality.problems.push_back(fmt::format("the processors cannot be read ({})", cpus.error().message));
    return locality;
  }
  if (const std::string why = root == "/" ? std::string() : WhyNotForHwloc(files, root); !why.empty()) {
    locality.problems.push_back(fmt::format("{}, so processors and NUMA nodes are not read", why));
    return locality;
  }
  const Topology topology = Load(root, locality.problems);
  if (topology == nullptr) return locality;
  locality.product = ProductOf(topology.get());
  locality.numa_nodes = std::max(0, hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE));
  if (locality.numa_nodes < 2) return locality;
  for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology.get(), pci)) != nullptr;) {
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology.get(), pci);
    const int node =
        near == nullptr || hwloc_bitmap_weight(near->nodeset) != 1 ? -1 : hwloc_bitmap_first(near->nodeset);
    if (node < 0) continue;
    const auto& at = pci->attr->pcidev;
    locality.numa_of_pci.emplace(fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at.domain, at.bus, at.dev, at.func),
                                 node);
  }
  return locality;
}

void ReadForHwloc(const base::FileTree& files) {
  const std::string cpus = "sys/devices/system/cpu", nodes = "sys/devices/system/node";
  for (const char* name : {"online", "possible", "present"})
    (void)files.Read(fmt::format("{}/{}", cpus, name));
  for (const std::string& name : files.List(cpus).value_or(std::vector<std::string>())) {
    if (!name.starts_with("cpu") || !formats::Number<int>(std::string_view(name).substr(3))) continue;
    for (const std::string& file :
         files.List(fmt::format("{}/{}/topology", cpus, name)).value_or(std::vector<std::string>())) {
      (void)files.Read(fmt::format("{}/{}/topology/{}", cpus, name, file));
    }
  }
  (void)files.Read(nodes + "/online");
  for (const std::string& name : files.List(nodes).value_or(std::vector<std::string>())) {
    if (!name.starts_with("node") || !formats::Number<int>(std::string_view(name).substr(4))) continue;
    for (const char* file : {"cpulist", "cpumap", "distance", "meminfo"}) {
      (void)files.Read(fmt::format("{}/{}/{}", nodes, name, file));
    }
  }
  for (const char* file : {"product_name", "product_version", "sys_vendor", "board_name"}) {
    (void)files.Read(fmt::format("sys/class/dmi/id/{}", file));
  }
  const std::string pcis = "sys/bus/pci/devices";
  for (const std::string& name : files.List(pcis).value_or(std::vector<std::string>())) {
    for (const char* file : {"config", "local_cpus", "local_cpulist"})
      (void)files.Read(fmt::format("{}/{}/{}", pcis, name, file));
  }
}

}  // namespace heddle::nodeagent
