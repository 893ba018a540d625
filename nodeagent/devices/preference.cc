#include "nodeagent/devices/preference.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <tuple>

#include "crds/device_conditions.h"
#include "crds/gpu_indexes.h"
#include "crds/keys.h"

namespace heddle::nodeagent {
namespace {

namespace keys = crds::keys;

constexpr std::size_t kMaxNotes = 8;  // in one condition

std::vector<std::string> SplitNames(std::string_view text) {
  std::set<std::string> names;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) names.emplace(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return {names.begin(), names.end()};
}

// A count of devices; quantities with a suffix are none that a device plugin's resource has.
int CountOf(const kube::Json& quantity) {
  if (quantity.is_number_unsigned())
    return int(std::min<std::uint64_t>(quantity.get<std::uint64_t>(), 1U << 20));
  if (!quantity.is_string()) return 0;
  const auto& text = quantity.get_ref<const std::string&>();
  int count = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? std::max(count, 0) : 0;
}

using Devices = std::set<const OfferedDevice*>;

// What of this offer a pod's plan has; empty = it says nothing of it.
Devices PlannedOf(const Offer& offer, const PlannedPod& pod) {
  Devices devices;
  if (!pod.gpus) return devices;
  for (const OfferedDevice& device : offer.devices) {
    const bool gpu =
        device.gpu && *device.gpu >= 0 && *device.gpu < 32 && (*pod.gpus >> unsigned(*device.gpu) & 1U) != 0;
    const bool nic = !device.gpu && !device.nics.empty() &&
                     std::all_of(device.nics.begin(), device.nics.end(), [&](const std::string& name) {
                       return std::binary_search(pod.nics.begin(), pod.nics.end(), name);
                     });
    if (gpu || nic) devices.insert(&device);
  }
  return devices;
}

// Whether one of its containers asks for so many of a resource.
bool AsksFor(const PlannedPod& pod, const std::string& resource, int size) {
  return std::any_of(pod.containers.begin(), pod.containers.end(), [&](const auto& container) {
    const auto found = container.find(resource);
    return found != container.end() && found->second == size;
  });
}

bool Holds(const GrantReadings& readings, const PlannedPod& pod, const std::string& resource) {
  return std::any_of(
      readings.containers.begin(), readings.containers.end(), [&](const ContainerDevices& container) {
        return container.pod_namespace == pod.ns && container.pod == pod.name &&
               std::any_of(container.devices.begin(), container.devices.end(),
                           [&](const DeviceSet& set) { return !set.claim && set.resource == resource; });
      });
}

// The free ids of each device, and what must be taken of them.
struct Room {
  std::map<const OfferedDevice*, std::vector<std::string>> ids;
  std::vector<std::string> taken;
  Devices of_taken;
};

Room RoomOf(const Offer& offer, const PreferenceQuestion& question) {
  Room room;
  std::set<std::string> must(question.must_include.begin(), question.must_include.end());
  for (const std::string& id : question.must_include) {
    const OfferedDevice* device = FindDevice(offer, id);
    if (device == nullptr) continue;
    room.taken.push_back(id);
    room.of_taken.insert(device);
  }
  std::set<std::string> seen;
  for (const std::string& id : question.available) {
    const OfferedDevice* device = FindDevice(offer, id);
    if (device != nullptr && !must.contains(id) && seen.insert(id).second) room.ids[device].push_back(id);
  }
  for (auto& [device, ids] : room.ids) std::sort(ids.begin(), ids.end());
  return room;
}

// One id of each of these devices; nothing where one of them has none left.
std::optional<std::vector<std::string>> Take(const Room& room, const Devices& devices) {
  std::vector<std::string> ids = room.taken;
  for (const OfferedDevice* taken : room.of_taken) {
    if (!devices.contains(taken)) return std::nullopt;
  }
  for (const OfferedDevice* device : devices) {
    if (room.of_taken.contains(device)) continue;
    const auto found = room.ids.find(device);
    if (found == room.ids.end()) return std::nullopt;
    ids.push_back(found->second.front());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Of no plan: first devices that no plan has; NUMA nodes whole, those with the least room that suffices first; of a
// device that several share, the one with most shares left.
std::vector<std::string> TakeAny(const Offer& offer, const Room& room, const Devices& reserved, int size) {
  const int missing = size - int(room.taken.size());
  std::map<int, int> free;  // NUMA node → devices; -1 = not known
  for (const auto& [device, ids] : room.ids)
    free[device->numa.value_or(-1)] += reserved.contains(device) ? 0 : 1;
  std::vector<const OfferedDevice*> order;
  for (const OfferedDevice& device : offer.devices) {
    if (room.ids.contains(&device)) order.push_back(&device);
  }
  const auto rank = [&](const OfferedDevice* device) {
    const int numa = device->numa.value_or(-1);
    const int left = free.at(numa);
    // Enough here: the fullest node first. Not enough: the emptiest, for there the fewest are left to take elsewhere.
    return std::tuple(room.of_taken.contains(device), reserved.contains(device), left < missing,
                      left < missing ? -left : left, numa, -int(room.ids.at(device).size()));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
  std::vector<std::string> ids = room.taken;
  // A round gives one id of each device, so that shares of one are taken only where devices run out.
  for (std::size_t round = 0; int(ids.size()) < size; ++round) {
    const std::size_t before = ids.size();
    for (const OfferedDevice* device : order) {
      if (int(ids.size()) < size && round < room.ids.at(device).size())
        ids.push_back(room.ids.at(device)[round]);
    }
    if (ids.size() == before) return {};
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<std::uint64_t> VersionOf(const kube::Json& pod) {
  const std::string text = kube::ResourceVersion(pod);
  std::uint64_t version = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), version);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return version;
}

// A pod that may be meant, and what of this offer it is to have; no ids: it has no plan for this resource.
struct Candidate {
  const PlannedPod* pod = nullptr;
  std::vector<std::string> ids;
};

// As a kubelet hears of them, as far as that is known.
bool ComesBefore(const Candidate& one, const Candidate& other) {
  constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
  const PlannedPod &left = *one.pod, &right = *other.pod;
  const std::uint64_t first = left.version.value_or(kUnknown), second = right.version.value_or(kUnknown);
  return std::tie(first, left.created, left.ns, left.name) <
         std::tie(second, right.created, right.ns, right.name);
}

// Whether a kubelet takes this one before the other, whether it hears of them one by one or of both at once.
bool SurelyBefore(const PlannedPod& one, const PlannedPod& other) {
  return one.version && other.version && *one.version < *other.version && one.created <= other.created;
}

// Why it is not known which of both is meant.
std::string WhyInDoubt(const PlannedPod& first, const PlannedPod& other) {
  if (!first.version || !other.version || *first.version == *other.version)
    return fmt::format("nobody knows which of {} and {} was bound first", first.Title(), other.Title());
  return fmt::format("{} was bound before {} and made after it", first.Title(), other.Title());
}

std::string GpuText(std::uint32_t gpus) {
  return gpus == 0 ? std::string("no GPU") : "GPU " + crds::FormatGpuIndexes(gpus);
}

}  // namespace

std::optional<PlannedPod> PlannedPodOf(const kube::Json& pod) {
  const std::string phase = kube::StringAt(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed" || kube::Name(pod).empty()) return std::nullopt;
  PlannedPod planned;
  planned.ns = kube::Namespace(pod);
  planned.name = kube::Name(pod);
  if (const auto created = kube::CreationTimestamp(pod)) planned.created = *created;
  planned.version = VersionOf(pod);
  for (const char* list : {"initContainers", "containers"}) {
    for (const kube::Json& container : kube::ArrayAt(pod, {"spec", list})) {
      std::map<std::string, int> asks;
      const kube::Json* limits = kube::Find(container, {"resources", "limits"});
      if (limits != nullptr && limits->is_object()) {
        for (const auto& [name, quantity] : limits->items()) {
          if (name.find('/') != std::string::npos && CountOf(quantity) > 0) asks[name] = CountOf(quantity);
        }
      }
      planned.containers.push_back(std::move(asks));
    }
  }
  const auto gpus = kube::Annotation(pod, keys::kGpus);
  if (gpus) planned.gpus = crds::ParseGpuIndexes(*gpus);
  const auto nics = kube::Annotation(pod, keys::kNics);
  if (nics && planned.gpus) planned.nics = SplitNames(*nics);
  return planned;
}

std::vector<PlannedPod> PlannedPodsOf(const std::vector<kube::ObjectPtr>& pods) {
  std::vector<PlannedPod> planned;
  for (const kube::ObjectPtr& pod : pods) {
    if (auto one = PlannedPodOf(*pod)) planned.push_back(*std::move(one));
  }
  return planned;
}

Choice Choose(const Offer& offer, const PreferenceQuestion& question, const std::vector<PlannedPod>& pods,
              const GrantReadings& readings) {
  const int size = question.size;
  const Room room = RoomOf(offer, question);
  if (size <= 0 || int(room.taken.size()) > size) return {};
  std::vector<Candidate> candidates;
  Devices reserved;
  for (const PlannedPod& pod : pods) {
    if (Holds(readings, pod, offer.resource)) continue;
    const Devices planned = PlannedOf(offer, pod);
    const bool asks = std::any_of(pod.containers.begin(), pod.containers.end(),
                                  [&](const auto& container) { return container.contains(offer.resource); });
    if (asks) reserved.insert(planned.begin(), planned.end());
    if (!AsksFor(pod, offer.resource, size)) continue;
    if (planned.empty()) {
      candidates.push_back({&pod, {}});
    } else if (int(planned.size()) == size) {
      if (auto ids = Take(room, planned)) candidates.push_back({&pod, *std::move(ids)});
    }
  }
  std::sort(candidates.begin(), candidates.end(), ComesBefore);
  Choice choice;
  if (!candidates.empty()) {
    const Candidate& first = candidates.front();
    const PlannedPod* doubted = nullptr;
    for (const Candidate& other : candidates) {
      if (other.ids == first.ids || SurelyBefore(*first.pod, *other.pod)) continue;
      if (doubted == nullptr) doubted = other.pod;
      choice.rivals.push_back(other.pod->Title());
    }
    if (doubted != nullptr && offer.mode == crds::DeviceMode::kNics) {
      // Whoever it is gets nothing that another waits for, as long as there is something else.
      choice.refusal = WhyInDoubt(*first.pod, *doubted);
      choice.rivals.insert(choice.rivals.begin(), first.pod->Title());
    } else {
      choice.ids = first.ids;
      if (!choice.ids.empty()) choice.pod = first.pod->Title();
    }
  }
  if (choice.ids.empty()) choice.ids = TakeAny(offer, room, reserved, size);
  return choice;
}

std::optional<crds::Condition> PlanCondition(const std::vector<crds::Grant>& grants,
                                             const std::vector<PlannedPod>& pods) {
  std::vector<std::string> differ;
  std::size_t compared = 0;
  for (const PlannedPod& pod : pods) {
    if (!pod.gpus) continue;
    std::uint32_t gpus = 0;
    bool whole = true;  // every GPU of them has an index
    std::set<std::string> nics;
    for (const crds::Grant& grant : grants) {
      if (grant.pod_namespace != pod.ns || grant.pod_name != pod.name) continue;
      for (const auto& gpu : grant.gpus) {
        const bool known = gpu.index >= 0 && gpu.index < 32;
        gpus |= known ? 1U << unsigned(gpu.index) : 0U;
        whole = whole && known;
      }
      nics.insert(grant.nics.begin(), grant.nics.end());
    }
    if (!whole) gpus = 0;  // which ones they are nobody can tell, so nothing is said against them
    if (gpus == 0 && nics.empty()) continue;  // nothing granted yet, or by nobody who says it
    ++compared;
    if (gpus != 0 && gpus != *pod.gpus)
      differ.push_back(
          fmt::format("{} holds {} where its plan says {}", pod.Title(), GpuText(gpus), GpuText(*pod.gpus)));
    if (!nics.empty() && !pod.nics.empty() &&
        !std::equal(nics.begin(), nics.end(), pod.nics.begin(), pod.nics.end()))
      differ.push_back(fmt::format("{} holds {} where its plan says {}", pod.Title(), fmt::join(nics, ","),
                                   fmt::join(pod.nics, ",")));
  }
  if (compared == 0) return std::nullopt;
  crds::Condition condition;
  condition.type = crds::kDevicesAsPlanned;
  condition.status = differ.empty() ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse;
  condition.reason = differ.empty() ? "AsPlanned" : "Differs";
  if (differ.empty()) {
    condition.message = fmt::format("{} planned pods hold what their plans say", compared);
    return condition;
  }
  std::size_t said = 0;
  for (const std::string& sentence : differ) {
    if (said == kMaxNotes || condition.message.size() + sentence.size() > 900) break;
    condition.message += (said == 0 ? "" : "; ") + sentence;
    ++said;
  }
  if (said < differ.size()) condition.message += fmt::format("; and {} more", differ.size() - said);
  condition.message += ". They run, and may cross rails";
  return condition;
}

}  // namespace heddle::nodeagent
