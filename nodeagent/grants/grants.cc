#include "nodeagent/grants/grants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "crds/keys.h"
#include "formats/scanner.h"
#include "nodeagent/pci/probe.h"

namespace heddle::nodeagent {
namespace {

// The schema's limits for one grant.
constexpr std::size_t kMaxGpus = 32;
constexpr std::size_t kMaxNics = 128;
constexpr std::size_t kMaxResources = 16;
constexpr std::size_t kMaxUnmatched = 32;
constexpr std::size_t kMaxNotes = 8;
constexpr std::size_t kUuid = 40;  // "GPU-" and 36 characters

bool Digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

void SortSets(std::vector<DeviceSet>& sets) {
  std::map<std::pair<std::string, bool>, std::set<std::string>> merged;
  for (DeviceSet& set : sets) {
    for (std::string& id : set.ids) {
      if (!id.empty()) merged[{set.resource, set.claim}].insert(std::move(id));
    }
  }
  sets.clear();
  for (auto& [key, ids] : merged) sets.push_back({key.first, key.second, {ids.begin(), ids.end()}});
}

// "nvidia3" of Google's plugin, also with "/gi1" or "/vgpu0" behind it, and "gpu-3" of NVIDIA's DRA driver: the
// number is the minor of /dev/nvidia3, which need not be the index.
std::optional<std::string_view> NvidiaMinor(const DeviceSet& set, std::string_view id) {
  constexpr std::string_view kPlugin = "nvidia", kDra = "gpu-";
  if (set.claim && set.resource == "gpu.nvidia.com" && id.starts_with(kDra)) {
    id.remove_prefix(kDra.size());
  } else if (!set.claim && id.starts_with(kPlugin)) {
    id = id.substr(kPlugin.size(), id.find('/') - kPlugin.size());
  } else {
    return std::nullopt;
  }
  return Digits(id) ? std::optional(id) : std::nullopt;
}

// /proc/driver/nvidia/gpus/<address>/information has a line "Device Minor: 	 3".
std::map<std::string, std::string, std::less<>> ReadMinors(const base::FileTree& files) {
  constexpr std::string_view kGpus = "proc/driver/nvidia/gpus";
  std::map<std::string, std::string, std::less<>> minors;
  const auto addresses = files.List(kGpus);
  if (!addresses) return minors;
  for (const std::string& address : *addresses) {
    const auto text = files.Read(fmt::format("{}/{}/information", kGpus, address));
    if (!text || !IsPciAddress(address)) continue;
    formats::ForEachLine(*text, [&](std::string_view line, int) {
      formats::Scanner scanner(line);
      if (!scanner.Take("Device Minor:")) return;
      const std::string_view minor = scanner.Word();
      if (Digits(minor)) minors.emplace(minor, address);
    });
  }
  return minors;
}

// DRA drivers name devices by DNS labels: "pci-0000-1b-00-0", "0000-1b-00-0". Empty where it is none.
std::string AddressOfLabel(std::string_view label) {
  if (label.starts_with("pci-")) label.remove_prefix(4);
  std::string address(label);
  const std::size_t last = address.rfind('-');
  if (last == std::string::npos) return {};
  address[last] = '.';
  std::replace(address.begin(), address.end(), '-', ':');
  return IsPciAddress(address) ? address : std::string();
}

// The UUID of the whole GPU that an id names or has a share of; empty where it names none.
std::string_view UuidIn(std::string_view id) {
  // Before driver 470 MIG devices were MIG-GPU-<uuid>/<gpu instance>/<compute instance>.
  const bool old_mig = id.starts_with("MIG-GPU-");
  if (old_mig) id.remove_prefix(4);
  if (!id.starts_with("GPU-") || id.size() < kUuid) return {};
  std::string_view rest = id.substr(kUuid);
  const bool share = (rest.starts_with("::") && Digits(rest.substr(2))) ||  // NVIDIA's time slices and MPS
                     (rest.starts_with("-") && Digits(rest.substr(1)));     // HAMi's
  if (!rest.empty() && !share && !(old_mig && rest.starts_with("/"))) return {};
  return id.substr(0, kUuid);
}

using Functions = decltype(GrantReadings::functions);

// What a node's devices can be called.
class Names {
 public:
  Names(const topology::Node& node, const Functions& functions) : functions_(functions) {
    for (const topology::Gpu& gpu : node.gpus) {
      if (!gpu.uuid.empty()) gpus_.emplace(gpu.uuid, &gpu);
      if (!gpu.pci.empty()) gpus_.emplace(gpu.pci, &gpu);
    }
    for (const topology::Nic& nic : node.nics) {
      nics_.emplace(nic.name, &nic);
      // An interface may be called as another one's device.
      if (!nic.netdev.empty()) nics_.emplace(nic.netdev, &nic);
      if (!nic.pci.empty()) nics_.emplace(nic.pci, &nic);
    }
  }

  const topology::Gpu* Gpu(const std::string& resource, const std::string& id) const {
    if (const auto uuid = UuidIn(id); !uuid.empty()) return Find(gpus_, uuid);
    return Find(gpus_, Address(resource, id));
  }
  const topology::Nic* Nic(const std::string& resource, const std::string& id) const {
    const topology::Nic* named = Find(nics_, id);
    return named != nullptr ? named : Find(nics_, Address(resource, id));
  }

 private:
  template <class Device>
  using ByName = std::map<std::string, const Device*, std::less<>>;

  template <class Device>
  static const Device* Find(const ByName<Device>& devices, std::string_view name) {
    const auto found = devices.find(name);
    return name.empty() || found == devices.end() ? nullptr : found->second;
  }
  std::string Address(const std::string& resource, const std::string& id) const {
    const auto found = functions_.find({resource, id});
    if (found != functions_.end()) return found->second;
    return IsPciAddress(id) ? id : AddressOfLabel(id);
  }

  const Functions& functions_;
  ByName<topology::Gpu> gpus_;  // by UUID and by PCI address
  ByName<topology::Nic> nics_;  // by name, interface and PCI address
};

template <class T>
void Cut(std::vector<T>& list, std::size_t most, std::string_view what, const crds::Grant& grant,
         std::vector<std::string>& notes) {
  if (list.size() <= most) return;
  notes.push_back(fmt::format("{} {} of {}/{} are left out: {} are shown", list.size() - most, what,
                              grant.pod_namespace, grant.pod_name, most));
  list.erase(list.begin() + std::ptrdiff_t(most), list.end());
}

crds::Grant Join(const ContainerDevices& container, const GrantReadings& readings, const Names& names,
                 std::vector<std::string>& notes) {
  crds::Grant grant;
  grant.pod_namespace = container.pod_namespace;
  grant.pod_name = container.pod;
  grant.container = container.container;
  std::map<int, std::string> gpus;
  std::set<std::string> nics, resources;
  for (const DeviceSet& set : container.devices) {
    // Our own stands for the node's files; it is no device.
    if (set.resource.empty() || set.resource == crds::keys::kFabricResource) continue;
    resources.insert(set.resource);
    for (const std::string& id : set.ids) {
      const auto own = readings.own.find({set.resource, id});
      const auto called = own == readings.own.end() ? std::vector<std::string>{id} : own->second;
      for (const std::string& name : called) {
        if (const topology::Gpu* gpu = names.Gpu(set.resource, name)) {
          gpus.emplace(gpu->index, gpu->uuid);
        } else if (const topology::Nic* nic = names.Nic(set.resource, name)) {
          nics.insert(nic->name);
        } else {
          grant.unmatched.push_back({set.resource, name});
        }
      }
    }
  }
  for (const auto& [index, uuid] : gpus) grant.gpus.push_back({index, uuid});
  grant.nics.assign(nics.begin(), nics.end());
  grant.resources.assign(resources.begin(), resources.end());
  Cut(grant.gpus, kMaxGpus, "GPUs", grant, notes);
  Cut(grant.nics, kMaxNics, "NICs", grant, notes);
  Cut(grant.resources, kMaxResources, "resources", grant, notes);
  Cut(grant.unmatched, kMaxUnmatched, "device ids that name nothing here", grant, notes);
  return grant;
}

std::string PodOf(const ContainerDevices& container) {
  return container.pod_namespace + "/" + container.pod;
}

// Kubelets before 1.34 go on listing a pod that has ended, and give its devices to the next one meanwhile.
void NoteDoubles(const GrantReadings& readings, const Names& names, std::vector<std::string>& notes) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> holders;
  for (const ContainerDevices& container : readings.containers) {
    for (const DeviceSet& set : container.devices) {
      if (set.claim) continue;  // a claim can be shared
      for (const std::string& id : set.ids) {
        if (names.Gpu(set.resource, id) != nullptr || names.Nic(set.resource, id) != nullptr)
          holders[{set.resource, id}].insert(PodOf(container));
      }
    }
  }
  for (const auto& [device, pods] : holders) {
    if (pods.size() > 1)
      notes.push_back(fmt::format("{} {} is listed for {}: has one of them ended?", device.first,
                                  device.second, fmt::join(pods, " and ")));
  }
}

void NoteForeign(const GrantReadings& readings, const topology::Node& node, const Names& names,
                 std::vector<std::string>& notes) {
  // A driver that does not name all of its GPUs proves nothing.
  const bool all_named =
      std::none_of(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) { return gpu.uuid.empty(); });
  if (!all_named || node.gpus.empty()) return;
  for (const ContainerDevices& container : readings.containers) {
    for (const DeviceSet& set : container.devices) {
      for (const std::string& id : set.ids) {
        if (!UuidIn(id).empty() && names.Gpu(set.resource, id) == nullptr)
          notes.push_back(fmt::format("{} holds {} {}, which is no GPU that this node's driver lists",
                                      PodOf(container), set.resource, id));
      }
    }
  }
}

auto NameOrder(const crds::Grant& grant) {
  return std::tie(grant.pod_namespace, grant.pod_name, grant.container);
}

void KeepBiggest(std::vector<crds::Grant>& grants, std::vector<std::string>& notes) {
  if (grants.size() <= kMaxGrants) return;
  std::stable_sort(grants.begin(), grants.end(), [](const crds::Grant& a, const crds::Grant& b) {
    return std::tuple(a.gpus.size(), a.nics.size()) > std::tuple(b.gpus.size(), b.nics.size());
  });
  std::size_t with_gpus = 0;
  for (std::size_t i = kMaxGrants; i < grants.size(); ++i) with_gpus += grants[i].gpus.empty() ? 0 : 1;
  notes.push_back(
      fmt::format("{} containers hold devices and {} are shown, those with most GPUs; {} of the others "
                  "hold GPUs",
                  grants.size(), kMaxGrants, with_gpus));
  grants.resize(kMaxGrants);
  std::sort(grants.begin(), grants.end(),
            [](const crds::Grant& a, const crds::Grant& b) { return NameOrder(a) < NameOrder(b); });
}

std::string_view ReasonOf(GrantsState state) {
  switch (state) {
    case GrantsState::kNoSocket:
      return "NoSocket";
    case GrantsState::kForbidden:
      return "Forbidden";
    case GrantsState::kTooOld:
      return "TooOld";
    default:
      return "NoAnswer";
  }
}

// "the kubelet can give 7 of 8 GPUs, not GPU 3"
std::string Offer(const GrantReadings& readings, const topology::Node& node) {
  if (!readings.allocatable || node.gpus.empty()) return {};
  const Names names(node, readings.functions);
  std::set<int> offered;
  for (const DeviceSet& set : *readings.allocatable) {
    for (const std::string& id : set.ids) {
      if (const topology::Gpu* gpu = names.Gpu(set.resource, id)) offered.insert(gpu->index);
    }
  }
  std::vector<int> left_out;
  for (const topology::Gpu& gpu : node.gpus) {
    if (!offered.contains(gpu.index)) left_out.push_back(gpu.index);
  }
  if (offered.empty()) return "; no device plugin offers any of them by name";
  return left_out.empty() ? fmt::format("; the kubelet can give {} GPUs", offered.size())
                          : fmt::format("; the kubelet can give {} of {} GPUs, not {}", offered.size(),
                                        node.gpus.size(), fmt::join(left_out, ", "));
}

}  // namespace

void Sort(GrantReadings& readings) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<DeviceSet>> merged;
  for (ContainerDevices& container : readings.containers) {
    auto& sets = merged[{container.pod_namespace, container.pod, container.container}];
    sets.insert(sets.end(), container.devices.begin(), container.devices.end());
  }
  readings.containers.clear();
  for (auto& [key, sets] : merged) {
    SortSets(sets);
    if (sets.empty()) continue;
    readings.containers.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(sets)});
  }
  if (readings.allocatable) SortSets(*readings.allocatable);
}

void FindFunctions(const base::FileTree& files, GrantReadings& readings) {
  std::optional<std::map<std::string, std::string, std::less<>>> minors;
  const auto link = [&](const auto& key, const std::string& path) {
    const auto target = files.ReadLink(path);
    if (target && IsPciAddress(BaseName(*target))) readings.functions[key] = BaseName(*target);
  };
  const auto find = [&](const DeviceSet& set) {
    for (const std::string& id : set.ids) {
      const std::pair key(set.resource, id);
      if (readings.functions.contains(key)) continue;
      if (IsPciAddress(id)) {
        link(key, fmt::format("sys/bus/pci/devices/{}/physfn", id));
      } else if (id.starts_with("card") && Digits(std::string_view(id).substr(4))) {
        link(key, fmt::format("sys/class/drm/{}/device", id));
      } else if (const auto minor = NvidiaMinor(set, id)) {
        if (!minors) minors = ReadMinors(files);
        if (const auto found = minors->find(*minor); found != minors->end())
          readings.functions[key] = found->second;
      }
    }
  };
  for (const ContainerDevices& container : readings.containers) {
    for (const DeviceSet& set : container.devices) find(set);
  }
  if (!readings.allocatable) return;
  for (const DeviceSet& set : *readings.allocatable) find(set);
}

JoinedGrants JoinGrants(const GrantReadings& readings, const topology::Node& node) {
  const Names names(node, readings.functions);
  JoinedGrants joined;
  for (const ContainerDevices& container : readings.containers) {
    crds::Grant grant = Join(container, readings, names, joined.notes);
    const bool named = !grant.pod_namespace.empty() && !grant.pod_name.empty();
    if (named && !grant.resources.empty()) joined.grants.push_back(std::move(grant));
  }
  NoteDoubles(readings, names, joined.notes);
  NoteForeign(readings, node, names, joined.notes);
  KeepBiggest(joined.grants, joined.notes);
  return joined;
}

std::optional<crds::Condition> GrantsCondition(const GrantReadings& readings, const JoinedGrants& joined,
                                               const topology::Node& node) {
  if (readings.state == GrantsState::kNotAsked) return std::nullopt;
  crds::Condition condition;
  condition.type = kGrantsKnown;
  if (readings.state != GrantsState::kRead) {
    condition.status = crds::ConditionStatus::kFalse;
    condition.reason = ReasonOf(readings.state);
    condition.message = readings.problem + "; grants are those last read";
    return condition;
  }
  std::set<int> held;
  std::size_t holders = 0;
  for (const crds::Grant& grant : joined.grants) {
    for (const auto& gpu : grant.gpus) held.insert(gpu.index);
    holders += grant.gpus.empty() ? 0 : 1;
  }
  condition.status = crds::ConditionStatus::kTrue;
  condition.reason = joined.notes.empty() ? "Read" : "ReadWithDoubts";
  condition.message = fmt::format("{} containers hold {} of {} GPUs{}", holders, held.size(),
                                  node.gpus.size(), Offer(readings, node));
  std::size_t said = 0;
  for (const std::string& note : joined.notes) {
    if (said == kMaxNotes || condition.message.size() + note.size() > 960) break;
    condition.message += "; " + note;
    ++said;
  }
  if (said < joined.notes.size())
    condition.message += fmt::format("; and {} more of that kind", joined.notes.size() - said);
  return condition;
}

}  // namespace heddle::nodeagent
