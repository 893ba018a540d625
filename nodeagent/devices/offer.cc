#include "nodeagent/devices/offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "crds/keys.h"

namespace heddle::nodeagent {
namespace {

using crds::DeviceMode;
using crds::DeviceState;
using crds::DeviceWish;
using topology::Nic;
using topology::Node;

constexpr std::size_t kMaxListed = 1024;  // devices of one entry, as the schema has it
constexpr std::string_view kWholeNode = "node";
constexpr std::string_view kFabric = "fabric";
constexpr std::string_view kRdmaCm = "rdma_cm";
constexpr std::string_view kNvidiaCdi = "nvidia.com/gpu";  // its kind, by nvidia-ctk cdi generate

// "mlx5_0:1" as device and port; the port is 0 where the text is no such name.
std::pair<std::string, int> SplitPort(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {std::string(name), 0};
  int port = 0;
  const std::string_view digits = name.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) port = 0;
  return {std::string(name.substr(0, colon)), port};
}

std::map<std::string, std::vector<int>> ByDevice(const std::vector<std::string>& ports) {
  std::map<std::string, std::vector<int>> devices;
  for (const std::string& name : ports) {
    auto [device, port] = SplitPort(name);
    devices[device].push_back(port);
  }
  return devices;
}

// Why a NIC is not to be given out now; empty = it is. `ports` are those that the policy chose: it carries traffic as
// long as one of them does, but none may be withdrawn, because the whole device would be used.
std::string TroubleOf(const std::string& name, const std::vector<int>& ports, const Node& node,
                      const DeviceFacts& facts) {
  for (const int port : ports) {
    const auto found = facts.withdrawn.find(fmt::format("{}:{}", name, port));
    if (found != facts.withdrawn.end()) return found->second;
  }
  const Nic* nic = node.FindNic(name);
  if (nic == nullptr) return fmt::format("{} is gone", name);
  if (!facts.verbs.contains(name))
    return fmt::format("{} has no uverbs device: is the module ib_uverbs loaded?", name);
  std::string down;
  for (const int port : ports) {
    const auto found = std::find_if(nic->ports.begin(), nic->ports.end(),
                                    [&](const topology::NicPort& p) { return p.number == port; });
    const bool is_down = found == nic->ports.end() || found->state == topology::LinkState::kDown;
    if (!is_down) return {};
    down += fmt::format("{}{} port {} is {}", down.empty() ? "" : ", ", name, port,
                        found == nic->ports.end() ? "gone" : "down");
  }
  return down;
}

void AddNode(const std::string& name, const DeviceFacts& facts, ContainerGift& gift) {
  const std::string path = "/dev/infiniband/" + name;
  gift.devices[path] = facts.folder + "/" + name;
}

// The device nodes of a NIC. Never umad: who has that can speak to the subnet manager.
void AddNic(const std::string& name, const DeviceFacts& facts, OfferedDevice& device) {
  device.nics.push_back(name);
  const auto verbs = facts.verbs.find(name);
  if (verbs != facts.verbs.end()) AddNode(verbs->second, facts, device.gift);
  if (facts.rdma_cm) AddNode(std::string(kRdmaCm), facts, device.gift);
}

OfferedDevice NicDevice(const std::string& name, const std::vector<int>& ports, const Node& node,
                        const DeviceFacts& facts) {
  OfferedDevice device;
  device.id = name;
  device.trouble = TroubleOf(name, ports, node, facts);
  AddNic(name, facts, device);
  const Nic* nic = node.FindNic(name);
  if (nic != nullptr && nic->numa) device.numa = *nic->numa;
  return device;
}

void Refuse(Offer& offer, std::string reason) {
  offer.state = DeviceState::kRefused;
  offer.reason = std::move(reason);
  offer.note.clear();
  offer.devices.clear();
}

void OfferNics(const DeviceWish& wish, const Node& node, const DeviceFacts& facts, Offer& offer) {
  for (const auto& [name, ports] : ByDevice(wish.ports))
    offer.devices.push_back(NicDevice(name, ports, node, facts));
}

void OfferWholeNode(const DeviceWish& wish, const Node& node, const DeviceFacts& facts, Offer& offer) {
  OfferedDevice all;
  all.id = kWholeNode;
  for (const auto& [name, ports] : ByDevice(wish.ports)) {
    AddNic(name, facts, all);
    // All of them at once are offered, or nothing: who gets the node counts on each rail of it.
    const std::string trouble = TroubleOf(name, ports, node, facts);
    if (!trouble.empty()) all.trouble += (all.trouble.empty() ? "" : "; ") + trouble;
  }
  offer.devices.push_back(std::move(all));
}

// The NICs of one GPU that the policy chose, with their ports.
std::string PairTrouble(const topology::Gpu& gpu, const std::vector<std::string>& nics,
                        const std::map<std::string, std::vector<int>>& chosen, const Node& node,
                        const DeviceFacts& facts) {
  if (!gpu.healthy) return fmt::format("GPU {}: {}", gpu.index, gpu.unhealthy_reason);
  if (gpu.mig) return fmt::format("GPU {} is cut into MIG instances", gpu.index);
  for (const std::string& name : nics) {
    std::string trouble = TroubleOf(name, chosen.at(name), node, facts);
    if (!trouble.empty()) return trouble;
  }
  return {};
}

// Whether an id of another plugin stands for this GPU: by its UUID, or as "nvidia0" of Google's plugin does. Of a GPU
// that is cut by MIG such an id may be an instance, and we offer none of it.
bool StandsForGpu(const std::string& resource, const std::string& id, const topology::Gpu& gpu,
                  const DeviceFacts& facts) {
  if (!gpu.uuid.empty() && id.starts_with(gpu.uuid)) return true;
  const auto function = facts.functions.find({resource, id});
  return function != facts.functions.end() && !gpu.pci.empty() && !gpu.mig && function->second == gpu.pci;
}

// A plan counts such a GPU as one whose rail is down, and may use it; so it is offered, and not without a word.
void NoteBorrowed(const topology::Gpu& gpu, const std::vector<std::string>& nics, const Node& node,
                  Offer& offer) {
  if (!offer.note.empty() || !gpu.nic_gone) return;
  const bool own = std::any_of(nics.begin(), nics.end(), [&](const std::string& name) {
    const Nic* nic = node.FindNic(name);
    return nic != nullptr && nic->rail.known() && *nic->rail == gpu.nic_gone->rail;
  });
  if (own) return;
  offer.note = fmt::format("GPU {} lost its NIC on rail {}, and is offered with {}, which is another GPU's",
                           gpu.index, gpu.nic_gone->rail, fmt::join(nics, ", "));
}

std::string ForeignGpusOf(const std::vector<DeviceSet>& sets, const std::set<std::string>& own,
                          const Node& node, const DeviceFacts& facts) {
  for (const DeviceSet& set : sets) {
    if (set.claim || own.contains(set.resource)) continue;
    for (const std::string& id : set.ids) {
      for (const topology::Gpu& gpu : node.gpus) {
        if (StandsForGpu(set.resource, id, gpu, facts)) {
          return fmt::format(
              "{} offers GPU {} on this node as well, and a GPU must not be given out twice: switch its "
              "device plugin "
              "off here",
              set.resource, gpu.index);
        }
      }
    }
  }
  return {};
}

// GPUs that another plugin offers would be given twice. `own`: resources that this node is to have from us. Gone is
// only what two answers of the kubelet lack.
std::string ForeignGpus(const std::set<std::string>& own, const Node& node, const DeviceFacts& facts) {
  for (const auto* sets : {&facts.allocatable, &facts.allocatable_before}) {
    if (!*sets) continue;
    if (std::string why = ForeignGpusOf(**sets, own, node, facts); !why.empty()) return why;
  }
  return {};
}

void OfferPairs(const DeviceWish& wish, const std::set<std::string>& own, const Node& node,
                const DeviceFacts& facts, Offer& offer) {
  const auto unnamed = [](const topology::Gpu& gpu) { return !gpu.uuid.starts_with("GPU-"); };
  if (node.gpus.empty()) return Refuse(offer, "this node has no GPU to pair with a NIC");
  const auto nameless = std::find_if(node.gpus.begin(), node.gpus.end(), unnamed);
  if (nameless != node.gpus.end()) {
    return Refuse(
        offer, fmt::format("GPU {} has no UUID of NVIDIA's, by which CDI calls it: does the driver answer?",
                           nameless->index));
  }
  if (std::string why = ForeignGpus(own, node, facts); !why.empty()) return Refuse(offer, std::move(why));
  const auto chosen = ByDevice(wish.ports);
  for (const topology::Gpu& gpu : node.gpus) {
    std::vector<std::string> nics;
    for (const Nic* nic : node.NicsOfGpu(gpu.index)) {
      if (chosen.contains(nic->name)) nics.push_back(nic->name);
    }
    if (nics.empty()) continue;  // another policy's, or nobody's
    OfferedDevice pair;
    pair.id = pair.uuid = gpu.uuid;
    pair.gpu = gpu.index;
    if (gpu.numa) pair.numa = *gpu.numa;
    pair.trouble = PairTrouble(gpu, nics, chosen, node, facts);
    NoteBorrowed(gpu, nics, node, offer);
    for (const std::string& name : nics) AddNic(name, facts, pair);
    pair.gift.cdi.push_back(fmt::format("{}={}", kNvidiaCdi, gpu.uuid));
    offer.devices.push_back(std::move(pair));
  }
  if (offer.devices.empty())
    Refuse(offer, "none of the NICs that its policy chose serves a GPU of this node");
}

struct Holder {
  std::string resource;
  bool shared = false;
};

// A device that two resources have would be given twice, unless both share it.
std::string GivenTwice(const Offer& offer, std::map<std::string, Holder>& holders) {
  for (const OfferedDevice& device : offer.devices) {
    std::vector<std::pair<std::string, bool>> parts;  // and whether it is shared
    for (const std::string& nic : device.nics) parts.emplace_back(nic, offer.slots > 1);
    if (!device.uuid.empty()) parts.emplace_back(device.uuid, false);
    for (const auto& [part, shared] : parts) {
      const auto [known, fresh] = holders.emplace(part, Holder{offer.resource, shared});
      const Holder& holder = known->second;
      if (fresh || holder.resource == offer.resource || (holder.shared && shared)) continue;
      return fmt::format("{} is a device of {} already, and {}", part, holder.resource,
                         holder.shared || shared ? "only one of them shares it" : "neither shares it");
    }
  }
  return {};
}

Offer FabricOffer(const DeviceFacts& facts) {
  Offer offer;
  offer.resource = crds::keys::kFabricResource;
  offer.slots = kFabricSlots;
  if (facts.nccl.folder.empty()) {
    Refuse(offer, "the node's NCCL files are not written yet");
    return offer;
  }
  OfferedDevice fabric;
  fabric.id = kFabric;
  const std::string conf = fmt::format("{}/{}", kNcclFolder, kNcclConf);
  fabric.gift.folders[std::string(kNcclFolder)] = facts.nccl.folder;
  if (facts.nccl.over_etc) {
    fabric.gift.folders["/etc/nccl.conf"] = fmt::format("{}/{}", facts.nccl.folder, kNcclConf);
  } else {
    fabric.gift.variables["NCCL_CONF_FILE"] = conf;
  }
  if (facts.nccl.efa) fabric.gift.variables["FI_PROVIDER"] = "efa";
  offer.devices.push_back(std::move(fabric));
  return offer;
}

Offer OfferOf(const DeviceWish& wish, const std::set<std::string>& own, const Node& node,
              const DeviceFacts& facts) {
  Offer offer;
  offer.resource = wish.resource;
  offer.slots = std::clamp(wish.slots, 1, kMaxSlots);
  offer.edition = crds::EditionOf(wish);
  offer.mode = wish.mode;
  if (!wish.reason.empty()) {
    Refuse(offer, wish.reason);
  } else if (wish.policies.size() > 1) {
    Refuse(offer,
           fmt::format("{} want it differently, so none of them applies", fmt::join(wish.policies, " and ")));
  } else if (wish.plugin != crds::DevicePlugin::kHeddle) {
    offer.state = DeviceState::kElsewhere;
    offer.reason = fmt::format("its plugin is {}", crds::DevicePluginName(wish.plugin));
  } else if (wish.ports.empty()) {
    Refuse(offer, "none of this node's ports is chosen by its policy");
  } else if (wish.mode == DeviceMode::kWholeNode) {
    OfferWholeNode(wish, node, facts, offer);
  } else if (wish.mode == DeviceMode::kPairs) {
    OfferPairs(wish, own, node, facts, offer);
  } else {
    OfferNics(wish, node, facts, offer);
  }
  const auto too_long = std::find_if(
      offer.devices.begin(), offer.devices.end(),
      [&](const OfferedDevice& device) { return IdsOf(offer, device).back().size() > kMaxDeviceId; });
  if (too_long != offer.devices.end())
    Refuse(offer, fmt::format("{} is longer than the {} bytes that the kubelet takes for a device's id",
                              too_long->id, kMaxDeviceId));
  return offer;
}

}  // namespace

std::vector<Offer> OffersOf(const std::vector<DeviceWish>& wishes, const Node& node,
                            const DeviceFacts& facts) {
  std::vector<Offer> offers{FabricOffer(facts)};
  std::set<std::string> own = facts.ours, seen{std::string(crds::keys::kFabricResource)};
  for (const DeviceWish& wish : wishes) own.insert(wish.resource);
  std::map<std::string, Holder> holders;  // of GPUs and NICs
  for (const DeviceWish& wish : wishes) {
    Offer offer = OfferOf(wish, own, node, facts);
    if (!seen.insert(wish.resource).second) {
      Refuse(offer, wish.resource == crds::keys::kFabricResource
                        ? "that name is Heddle's own: call the resource something else"
                        : "another entry of the spec has the same resource");
    }
    if (std::string why = GivenTwice(offer, holders); !why.empty()) Refuse(offer, std::move(why));
    offers.push_back(std::move(offer));
  }
  return offers;
}

std::vector<std::string> IdsOf(const Offer& offer, const OfferedDevice& device) {
  if (offer.slots == 1) return {device.id};
  std::vector<std::string> ids;
  ids.reserve(std::size_t(offer.slots));
  for (int slot = 0; slot < offer.slots; ++slot) ids.push_back(fmt::format("{}::{}", device.id, slot));
  return ids;
}

const OfferedDevice* FindDevice(const Offer& offer, std::string_view id) {
  if (offer.slots > 1) {
    const std::size_t end = id.rfind("::");
    if (end == std::string_view::npos) return nullptr;
    int slot = -1;
    const std::string_view digits = id.substr(end + 2);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), slot);
    if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return nullptr;
    if (slot < 0 || slot >= offer.slots) return nullptr;
    id = id.substr(0, end);
  }
  const auto found = std::find_if(offer.devices.begin(), offer.devices.end(),
                                  [&](const OfferedDevice& device) { return device.id == id; });
  return found == offer.devices.end() ? nullptr : &*found;
}

base::Result<ContainerGift> Allocate(const Offer& offer, const std::vector<std::string>& ids) {
  ContainerGift all;
  std::set<std::string> cdi;
  for (const std::string& id : ids) {
    const OfferedDevice* device = FindDevice(offer, id);
    if (device == nullptr) {
      return base::Fail(
          base::Code::kNotFound,
          fmt::format("{} has no device \"{}\" on this node any more: delete the pod, so that it is "
                      "scheduled anew",
                      offer.resource, id));
    }
    const ContainerGift& gift = device->gift;
    all.variables.insert(gift.variables.begin(), gift.variables.end());
    all.folders.insert(gift.folders.begin(), gift.folders.end());
    all.devices.insert(gift.devices.begin(), gift.devices.end());
    cdi.insert(gift.cdi.begin(), gift.cdi.end());
  }
  all.cdi.assign(cdi.begin(), cdi.end());
  return all;
}

crds::DeviceReport ReportOf(const Offer& offer, DeviceState state, std::string_view reason) {
  crds::DeviceReport report;
  report.resource = offer.resource;
  report.edition = offer.edition;
  report.state = offer.offered() ? state : offer.state;
  report.reason = offer.offered() ? std::string(reason) : offer.reason;
  report.total = int(offer.devices.size());
  std::string trouble;
  for (const OfferedDevice& device : offer.devices) {
    report.healthy += device.trouble.empty() ? 1 : 0;
    if (trouble.empty()) trouble = device.trouble;
  }
  // Offered it is still, so the reason tells what is kept back.
  if (report.reason.empty()) report.reason = trouble;
  if (report.reason.empty()) report.reason = offer.note;
  return report;
}

crds::DeviceReport ReportOfOther(const Offer& offer, const std::optional<std::vector<DeviceSet>>& allocatable,
                                 std::string_view unheard) {
  crds::DeviceReport report = ReportOf(offer, DeviceState::kElsewhere, "");
  std::size_t listed = 0;
  if (allocatable) {
    for (const DeviceSet& set : *allocatable) {
      if (!set.claim && set.resource == offer.resource) listed += set.ids.size();
    }
  }
  report.healthy = report.total = int(std::min(listed, kMaxListed));
  if (listed > 0) return report;
  report.state = DeviceState::kPending;
  report.reason =
      fmt::format("{}, and {}", offer.reason,
                  allocatable        ? "the kubelet lists no device of it"
                  : !unheard.empty() ? unheard
                                     : "the kubelet does not say what it can give (GetAllocatableResources)");
  return report;
}

std::map<std::string, std::string> ForeignDevices(const std::vector<Offer>& offers,
                                                  const GrantReadings& readings) {
  std::map<std::string, std::string> foreign;
  if (!readings.allocatable) return foreign;
  for (const DeviceSet& set : *readings.allocatable) {
    const auto offer = std::find_if(offers.begin(), offers.end(), [&](const Offer& other) {
      return !set.claim && other.offered() && other.resource == set.resource;
    });
    if (offer == offers.end()) continue;
    for (const std::string& id : set.ids) {
      if (FindDevice(*offer, id) == nullptr) foreign.emplace(set.resource, id);
    }
  }
  return foreign;
}

void NameOwn(const std::vector<Offer>& offers, GrantReadings& readings) {
  const auto name = [&](const DeviceSet& set) {
    if (set.claim) return;
    const auto offer = std::find_if(offers.begin(), offers.end(),
                                    [&](const Offer& other) { return other.resource == set.resource; });
    if (offer == offers.end()) return;
    for (const std::string& id : set.ids) {
      const OfferedDevice* device = FindDevice(*offer, id);
      if (device == nullptr) continue;
      std::vector<std::string>& names = readings.own[{set.resource, id}];
      names = device->nics;
      if (!device->uuid.empty()) names.push_back(device->uuid);
    }
  };
  for (const ContainerDevices& container : readings.containers) {
    for (const DeviceSet& set : container.devices) name(set);
  }
}

}  // namespace heddle::nodeagent
