#include "crds/device_decision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "crds/ambiguous_resource.h"
#include "crds/kept_text.h"
#include "crds/port_name.h"

namespace heddle::crds {
namespace {

constexpr std::size_t kMaxPorts = 128;  // of one resource, as the schema has it

bool Contains(const auto& values, const auto& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// A NIC without RDMA is no device, whatever its role.
bool Selects(const RdmaResource& resource, const topology::Nic& nic) {
  const bool role =
      resource.roles.empty() ? nic.role == topology::NicRole::kCompute : Contains(resource.roles, nic.role);
  const bool rail = resource.rails.empty() || (nic.rail && Contains(resource.rails, *nic.rail));
  return role && rail && nic.transport != topology::Transport::kEthernet;
}

DeviceWish WishOf(const RdmaDevicePolicy& policy, std::string resource, int slots) {
  DeviceWish wish;
  wish.resource = std::move(resource);
  wish.policies = {policy.name};
  wish.generation = policy.generation;
  wish.policy_uid = policy.uid;
  wish.mode = policy.spec.mode;
  wish.plugin = policy.spec.plugin;
  wish.slots = slots;
  return wish;
}

// What one policy makes of one node, before others have their say.
struct Offers {
  std::map<std::string, DeviceWish> wishes;  // by resource
  std::set<std::string> ambiguous;           // of these, that several entries have ports in
  std::vector<std::string> problems;         // NICs that are in none though they are selected
};

using OtherPlugins = std::set<DevicePlugin>;

std::string WhyNotServed(DevicePlugin plugin, const OtherPlugins& others) {
  if (plugin == DevicePlugin::kHeddle || others.contains(plugin)) return "";
  const bool sriov = plugin == DevicePlugin::kSriov;
  return fmt::format(
      "the operator was given no image of this plugin: set {} in the chart, or plugin to Heddle",
      sriov ? "otherPlugins.sriov.image" : "otherPlugins.rdmaShared.image");
}

// Why this NIC cannot be named to that plugin; empty = it can.
std::string Unnameable(const topology::Nic& nic, DevicePlugin plugin) {
  if (plugin == DevicePlugin::kRdmaShared && nic.netdev.empty())
    return fmt::format("{} has no interface, by which k8s-rdma-shared-dev-plugin finds its devices",
                       nic.name);
  if (plugin == DevicePlugin::kSriov && nic.netdev.empty() && nic.pci.empty())
    return fmt::format(
        "{} has neither interface nor PCI address, by which the SR-IOV plugin finds its devices", nic.name);
  return "";
}

Offers OffersOf(const RdmaDevicePolicy& policy, const topology::Node& node, const OtherPlugins& others) {
  Offers offers;
  const std::string not_served = WhyNotServed(policy.spec.plugin, others);
  std::map<std::string, std::vector<std::string>> entries;  // that have ports in it, by resource
  std::vector<DeviceWish> without;
  for (const RdmaResource& resource : policy.spec.resources) {
    const std::optional<std::string_view> stem = RailStemOf(resource.name);
    bool any = false;
    for (const topology::Nic& nic : node.nics) {
      if (!Selects(resource, nic)) continue;
      any = true;
      if (stem && !nic.rail) {
        offers.problems.push_back(fmt::format("{} is in no {}: its rail is {}", nic.name, resource.name,
                                              topology::MissingName(nic.rail.missing())));
        continue;
      }
      const std::string name = stem ? std::string(*stem) + std::to_string(*nic.rail) : resource.name;
      if (const std::string why = Unnameable(nic, policy.spec.plugin); !why.empty()) {
        offers.problems.push_back(why);
        continue;
      }
      DeviceWish& wish = offers.wishes.try_emplace(name, WishOf(policy, name, resource.slots)).first->second;
      std::vector<std::string>& from = entries[name];
      if (from.empty() || from.back() != resource.name) from.push_back(resource.name);
      for (const topology::NicPort& port : nic.ports) {
        if (wish.ports.size() < kMaxPorts) wish.ports.push_back(PortName(nic, port));
      }
    }
    if (any || stem) continue;
    DeviceWish none = WishOf(policy, resource.name, resource.slots);
    none.reason = "no RDMA device of this node has the roles and rails that it asks for";
    without.push_back(std::move(none));
  }
  for (DeviceWish& none : without) offers.wishes.try_emplace(none.resource, std::move(none));
  for (auto& [name, wish] : offers.wishes) {
    std::sort(wish.ports.begin(), wish.ports.end());
    if (std::string why = WhyAmbiguous(entries[name]); !why.empty()) {
      wish.reason = std::move(why);
      offers.ambiguous.insert(name);
    }
    if (wish.reason.empty()) wish.reason = not_served;
  }
  return offers;
}

// The NIC of a port: "mlx5_0" of "mlx5_0:1".
std::string_view NicOf(std::string_view port) {
  return port.substr(0, port.rfind(':'));
}

// Whether a GPU has lost a compute NIC that this entry is for.
bool AsksForLostNic(const RdmaResource& resource, const topology::Node& node) {
  const bool compute = resource.roles.empty() || Contains(resource.roles, topology::NicRole::kCompute);
  return compute && std::any_of(node.gpus.begin(), node.gpus.end(), [&](const topology::Gpu& gpu) {
           return gpu.nic_gone && (resource.rails.empty() || Contains(resource.rails, gpu.nic_gone->rail));
         });
}

// A card that fails is published no more. Without its port the NICs that are left would pass for a whole node, so what
// was told of it stays, and the agent keeps the device back, until the NIC is there again or is missed by no GPU.
void KeepLostNics(const RdmaDevicePolicy& policy, const topology::Node& node,
                  const std::vector<DeviceWish>& told, Offers& offers) {
  if (policy.spec.mode != DeviceMode::kWholeNode) return;
  for (const RdmaResource& resource : policy.spec.resources) {
    const auto found = offers.wishes.find(resource.name);
    if (found == offers.wishes.end() || !found->second.reason.empty()) continue;
    if (!AsksForLostNic(resource, node)) continue;
    DeviceWish& wish = found->second;
    for (const DeviceWish& before : told) {
      if (before.resource != wish.resource || before.policies != wish.policies || before.mode != wish.mode)
        continue;
      for (const std::string& port : before.ports) {
        const bool lost = node.FindNic(NicOf(port)) == nullptr && !Contains(wish.ports, port);
        if (lost && wish.ports.size() < kMaxPorts) wish.ports.push_back(port);
      }
    }
    std::sort(wish.ports.begin(), wish.ports.end());
  }
}

void Refuse(DeviceWish& wish, std::string reason) {
  wish.ports.clear();
  if (wish.reason.empty()) wish.reason = std::move(reason);
}

}  // namespace

DeviceDecision::DeviceDecision(const topology::Node& node, const std::vector<DeviceWish>& told,
                               const std::vector<const RdmaDevicePolicy*>& policies,
                               const std::set<std::string>& unreadable, const std::set<DevicePlugin>& others)
    : told_(told) {
  KeepUnreadable(unreadable);
  std::set<std::string> ambiguous;
  for (const RdmaDevicePolicy* policy : policies) {
    Offers offers = OffersOf(*policy, node, others);
    KeepLostNics(*policy, node, told, offers);
    for (const std::string& problem : offers.problems) problems_[policy->name].push_back(problem);
    for (auto& [name, wish] : offers.wishes) Take(std::move(wish));
    ambiguous.merge(offers.ambiguous);
  }
  RefuseSharedNics();
  // After NICs: those of an ambiguous resource are in it still, and no other one gets them.
  for (const std::string& name : ambiguous) Conflict(name, "");
  RefuseSameNames();
  RefuseSecondPlugin();
  // Names are long, and a sentence of several longer than what is kept of it: uncut it would differ from what is read
  // back, and be told anew. All of them end in names, so that it is not what to do that is cut off.
  for (auto& [name, wish] : wishes_) wish.reason = KeptText(wish.reason, kMaxKeptReason);
  KeepNumbers();
}

std::vector<DeviceWish> DeviceDecision::wishes() const {
  std::vector<DeviceWish> all;
  std::size_t room = kMaxDeviceEntries - std::min(kept_.size(), kMaxDeviceEntries);
  for (const auto& [name, wish] : wishes_) {
    if (!Keeps(name) && room == 0) continue;
    if (!Keeps(name)) --room;
    all.push_back(wish);
  }
  return all;
}

// A policy that a newer version wrote is not one that was taken back: what it told stays, and first of all, so that
// nothing of it is told once more in another policy's name.
void DeviceDecision::KeepUnreadable(const std::set<std::string>& unreadable) {
  for (const DeviceWish& told : told_) {
    const auto policy = std::find_if(told.policies.begin(), told.policies.end(),
                                     [&](const std::string& name) { return unreadable.contains(name); });
    if (policy == told.policies.end()) continue;
    kept_.emplace(told.resource, *policy);
    wishes_.emplace(told.resource, told);
  }
}

void DeviceDecision::Take(DeviceWish wish) {
  if (const auto kept = kept_.find(wish.resource); kept != kept_.end()) {
    kept_from_.try_emplace(
        wish.policies.front(),
        fmt::format(
            "{}: it stays as a policy had it that cannot be read: narrow nodeSelector of one of both, "
            "or correct RdmaDevicePolicy {}",
            wish.resource, kept->second));
    return;
  }
  const auto [known, fresh] = wishes_.try_emplace(wish.resource, wish);
  if (fresh) return;
  DeviceWish& both = known->second;
  constexpr std::size_t kMaxPolicies = 8;
  if (both.policies.size() < kMaxPolicies) both.policies.push_back(wish.policies.front());
  both.generation = 0;
  both.policy_uid.clear();
  both.slots = 1;
  both.reason.clear();
  conflicts_.insert(both.resource);
  Refuse(both, fmt::format("several policies name this resource: narrow nodeSelector of all but one of "
                           "RdmaDevicePolicies {}",
                           fmt::join(both.policies, ", ")));
}

void DeviceDecision::Conflict(const std::string& resource, std::string reason) {
  if (Keeps(resource)) return;
  conflicts_.insert(resource);
  Refuse(wishes_.at(resource), std::move(reason));
}

void DeviceDecision::RefuseSharedNics() {
  std::map<std::string, std::vector<std::string>, std::less<>> by_nic;
  for (const auto& [name, wish] : wishes_) {
    std::set<std::string> nics;
    for (const std::string& port : wish.ports) nics.emplace(NicOf(port));
    for (const std::string& nic : nics) by_nic[nic].push_back(name);
  }
  for (const auto& [nic, resources] : by_nic) {
    if (resources.size() < 2) continue;
    for (const std::string& resource : resources) {
      Conflict(resource, fmt::format("{} is in several resources, and a NIC can be in one: narrow roles or "
                                     "rails of all but one of {}",
                                     nic, fmt::join(resources, ", ")));
    }
  }
}

// k8s-rdma-shared-dev-plugin ends where two of its resources differ by domain only (pkg/resources/
// resources_manager.go, ValidateConfigs, v1.5), and takes all the others along.
void DeviceDecision::RefuseSameNames() {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const auto& [resource, wish] : wishes_) {
    if (wish.plugin == DevicePlugin::kRdmaShared && wish.reason.empty())
      by_name[resource.substr(resource.find('/') + 1)].push_back(resource);
  }
  for (const auto& [name, resources] : by_name) {
    if (resources.size() < 2) continue;
    for (const std::string& resource : resources) {
      Conflict(resource,
               fmt::format("k8s-rdma-shared-dev-plugin does not take resources that differ by their "
                           "domains only: give another name after the slash to all but one of {}",
                           fmt::join(resources, ", ")));
    }
  }
}

// Both configure themselves by one label of the node.
void DeviceDecision::RefuseSecondPlugin() {
  using enum DevicePlugin;
  std::map<DevicePlugin, std::vector<std::string>> resources;
  std::set<DevicePlugin> kept;
  for (const auto& [name, wish] : wishes_) {
    if (!wish.reason.empty()) continue;
    resources[wish.plugin].push_back(name);
    if (Keeps(name)) kept.insert(wish.plugin);
  }
  if (!resources.contains(kRdmaShared) || !resources.contains(kSriov)) return;
  const bool sriov = kept.contains(kSriov) && !kept.contains(kRdmaShared);
  for (const std::string& name : resources.at(sriov ? kRdmaShared : kSriov)) {
    Conflict(name, fmt::format("another policy runs {} on this node: one plugin for each node",
                               sriov ? "sriov-network-device-plugin" : "k8s-rdma-shared-dev-plugin"));
  }
}

// What changes nothing here is the old generation's, and the old policy's where one was deleted and made anew: no
// write, and what the agent reported still holds. So is what an operator told that said no UID.
void DeviceDecision::KeepNumbers() {
  for (const DeviceWish& told : told_) {
    const auto wish = wishes_.find(told.resource);
    if (wish == wishes_.end()) continue;
    DeviceWish same = told;
    same.generation = wish->second.generation;
    same.policy_uid = wish->second.policy_uid;
    if (same == wish->second) {
      wish->second.generation = told.generation;
      wish->second.policy_uid = told.policy_uid;
    }
  }
}

}  // namespace heddle::crds
