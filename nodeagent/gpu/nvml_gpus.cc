#include "nodeagent/gpu/nvml_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

using nvml::Device;
using nvml::Return;

// nvmlNvlinkVersion_t is an enum of revisions, not the generation: 5 means 3.1.
int Generation(unsigned version) {
  constexpr std::array<int, 9> kGenerations{0, 1, 2, 2, 3, 3, 4, 5, 6};
  return version < kGenerations.size() ? kGenerations[version] : 0;
}

// Empty for what is no address: NVML writes all ones where the other end is on no bus of this host.
std::string Address(const nvml::PciInfo& pci) {
  if (pci.domain == std::numeric_limits<unsigned>::max() || pci.bus > 0xff || pci.device > 0x1f) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

FabricState StateOf(unsigned char state) {
  constexpr std::array<FabricState, 4> kStates{FabricState::kNotSupported, FabricState::kNotStarted,
                                               FabricState::kInProgress, FabricState::kCompleted};
  return state < kStates.size() ? kStates[state] : FabricState::kUnknown;
}

std::string Uuid(const unsigned char (&bytes)[16]) {
  if (std::all_of(std::begin(bytes), std::end(bytes), [](unsigned char b) { return b == 0; })) return {};
  std::string text;
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

// Asks one GPU everything, and stops asking as soon as the driver says that it is gone: each further call could
// take its whole time-out.
class Question {
 public:
  // `before`: what the same GPU said last; null where it has not said anything.
  Question(const nvml::Library& library, Device device, int index, const GpuReading* before,
           std::vector<std::string>& problems)
      : nvml_(library), device_(device), before_(before), problems_(problems) {
    gpu_.index = index;
  }

  GpuReading Run() {
    ReadIdentity();
    ReadLinks();
    ReadFabric();
    ReadHealth();
    return std::move(gpu_);
  }

 private:
  template <class... Formals, class... Arguments>
  Return Call(const nvml::Call<Device, Formals...>& call, Arguments... arguments) {
    if (gpu_.state != GpuState::kAnswers) return nvml::kGpuIsLost;
    const Return result = call(device_, arguments...);
    if (result == nvml::kGpuIsLost) gpu_.state = GpuState::kLost;
    if (result == nvml::kResetRequired) gpu_.state = GpuState::kResetRequired;
    return result;
  }
  template <class... Formals, class... Arguments>
  bool Ask(const nvml::Call<Device, Formals...>& call, Arguments... arguments) {
    return Call(call, arguments...) == nvml::kSuccess;
  }

  void ReadIdentity() {
    std::array<char, 97> text{};
    if (Ask(nvml_.uuid, text.data(), unsigned(text.size() - 1))) gpu_.uuid = formats::Printable(text.data());
    text.fill('\0');
    if (Ask(nvml_.name, text.data(), unsigned(text.size() - 1))) gpu_.name = formats::Printable(text.data());
    nvml::PciInfo pci{};
    if (Ask(nvml_.pci, &pci)) gpu_.pci = Address(pci);
    nvml::Memory memory{};
    if (Ask(nvml_.memory, &memory)) gpu_.memory_mib = int(std::min(memory.total >> 20, 1ULL << 30));
    unsigned mig = 0, pending = 0;
    if (Ask(nvml_.mig, &mig, &pending)) gpu_.mig = mig == 1;
  }

  // A field of the GPU (scope 0) or of one link; nothing where this driver or GPU has none.
  std::optional<unsigned long long> Field(unsigned field, unsigned link) {
    nvml::FieldValue value{};
    value.field = field;
    value.scope = link;
    if (!Ask(nvml_.fields, 1, &value)) return std::nullopt;
    return NumberOf(value);
  }

  static std::optional<unsigned long long> NumberOf(const nvml::FieldValue& value) {
    // The types are double, unsigned, unsigned long, unsigned long long, signed long long, int.
    if (value.result != nvml::kSuccess || value.type == 0) return std::nullopt;
    return value.type == 1 || value.type == 5 ? value.value.u : value.value.ull;
  }

  enum class LinkState : std::uint8_t { kNone, kDown, kUp, kUnread };

  // A failure: unread, unless it is the GPU itself that is gone, of which nothing is said link by link.
  LinkState StateAfter(Return failure) {
    if (gpu_.state != GpuState::kAnswers || nvml::HasNone(failure)) return LinkState::kNone;
    link_failure_ = failure;
    return LinkState::kUnread;
  }

  // None where the GPU has no such link. Of that a driver says that it does not support the call, and so does one that
  // no longer answers by this call for the whole GPU: then the field does, from Hopper on.
  LinkState StateOfLink(unsigned link) {
    unsigned active = 0;
    const Return result = Call(nvml_.link_state, link, &active);
    if (result == nvml::kSuccess) {
      state_call_answers_ = true;
      return active == 1 ? LinkState::kUp : LinkState::kDown;
    }
    const bool other_way =
        result == nvml::kNotSupported || result == nvml::kNoSuchCall || result == nvml::kDeprecated;
    if (!other_way || state_call_answers_) return StateAfter(result);
    if (!states_) states_ = LinkStates();
    return (*states_)[link];
  }

  // One call for all links: a GPU without NVLink would else take as many as there may be, for nothing.
  std::array<LinkState, nvml::kMaxLinks> LinkStates() {
    std::array<nvml::FieldValue, nvml::kMaxLinks> values{};
    for (unsigned link = 0; link < nvml::kMaxLinks; ++link) {
      values[link].field = nvml::kFieldLinkState;
      values[link].scope = link;
    }
    std::array<LinkState, nvml::kMaxLinks> states{};
    const Return result = Call(nvml_.fields, int(values.size()), values.data());
    for (unsigned link = 0; link < nvml::kMaxLinks; ++link) {
      const auto state = result == nvml::kSuccess ? NumberOf(values[link]) : std::nullopt;
      const Return failure = result == nvml::kSuccess ? values[link].result : result;
      if (state) {  // a link that sleeps wakes by itself
        states[link] = *state == 1 || *state == 2 ? LinkState::kUp : LinkState::kDown;
      } else if (failure != nvml::kSuccess) {
        states[link] = StateAfter(failure);
      }
    }
    return states;
  }

  int SpeedOf(unsigned link) {
    auto speed = Field(nvml::kFieldLinkSpeed, link);
    if (!speed || *speed == 0) speed = Field(nvml::kFieldLinkSpeedCommon, 0);
    constexpr unsigned long long kMost = 10'000'000;  // 10 TB/s
    return speed && *speed <= kMost ? int(*speed) : 0;
  }

  // One call for all links: each is a way into the driver, and a rack's GPU has 18.
  void ReadLinkErrors() {
    constexpr std::array<unsigned, 9> kFields{
        nvml::kFieldLinkReplays,       nvml::kFieldLinkRecoveries,     nvml::kFieldLinkCrc,
        nvml::kFieldLinkReceiveErrors, nvml::kFieldLinkRecoveryEvents, nvml::kFieldLinkMalformed,
        nvml::kFieldLinkOverruns,      nvml::kFieldLinkIntegrity,      nvml::kFieldLinkFailedRecoveries};
    // Each may be a way to the GPU's own processor: what links before generation 5 are known not to count is not asked
    // of them. 0: nobody knows the generation.
    constexpr std::size_t kOfAll = 5;
    const int generation = gpu_.nvlink_generation;
    const std::size_t asked = generation > 0 && generation < 5 ? kOfAll : kFields.size();
    std::vector<nvml::FieldValue> values;
    for (const NvlinkReading& link : gpu_.nvlinks) {
      for (std::size_t field = 0; field < asked; ++field) {
        nvml::FieldValue value{};
        value.field = kFields.at(field);
        value.scope = unsigned(link.link);
        values.push_back(value);
      }
    }
    if (asked == 0 || values.empty() || !Ask(nvml_.fields, int(values.size()), values.data())) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto number = NumberOf(values[i]);
      if (!number) continue;
      NvlinkErrors& errors = gpu_.nvlinks[i / asked].errors;
      switch (values[i].field) {
        case nvml::kFieldLinkReplays:
          errors.replays = number;
          break;
        case nvml::kFieldLinkRecoveries:
        case nvml::kFieldLinkRecoveryEvents:
          errors.recoveries = number;
          break;
        case nvml::kFieldLinkCrc:
          errors.crc = number;
          break;
        case nvml::kFieldLinkMalformed:
          errors.malformed = number;
          break;
        case nvml::kFieldLinkOverruns:
          errors.overruns = number;
          break;
        case nvml::kFieldLinkIntegrity:
          errors.integrity = number;
          break;
        case nvml::kFieldLinkFailedRecoveries:
          errors.failed_recoveries = number;
          break;
        default:
          errors.receive = number;
      }
    }
  }

  void ReadLinks() {
    std::vector<unsigned> unread;
    for (unsigned link = 0; link < nvml::kMaxLinks; ++link) {
      const LinkState state = StateOfLink(link);
      if (state == LinkState::kNone) continue;
      if (state == LinkState::kUnread) {
        if (KeepLink(int(link))) unread.push_back(link);
        continue;
      }
      NvlinkReading reading{int(link), state == LinkState::kUp, LinkEnd::kUnknown, {}, 0, {}};
      unsigned end = 0xff;
      if (Ask(nvml_.link_end, link, &end))
        reading.end = end == 0 ? LinkEnd::kGpu : end == 2 ? LinkEnd::kSwitch : LinkEnd::kUnknown;
      nvml::PciInfo remote{};
      if (reading.active && Ask(nvml_.link_pci, link, &remote)) reading.remote_pci = Address(remote);
      unsigned version = 0;
      if (reading.active && Ask(nvml_.link_version, link, &version))
        gpu_.nvlink_generation = Generation(version);
      if (reading.active) reading.speed_mbps = SpeedOf(link);
      gpu_.nvlinks.push_back(std::move(reading));
    }
    ReadLinkErrors();
    if (unread.empty()) return;
    problems_.push_back(
        fmt::format("GPU {} does not say whether its {} {} {} up, and what it last said stays: {}",
                    gpu_.index, unread.size() == 1 ? "NVLink" : "NVLinks", fmt::join(unread, ", "),
                    unread.size() == 1 ? "is" : "are", nvml::Meaning(link_failure_)));
  }

  // As it was last told. False where the GPU said last that it has no such link.
  bool KeepLink(int link) {
    NvlinkReading reading{link, false, LinkEnd::kUnknown, {}, 0, {}, LinkWord::kUntold};
    if (before_ != nullptr) {
      const auto told = std::find_if(before_->nvlinks.begin(), before_->nvlinks.end(),
                                     [link](const NvlinkReading& one) { return one.link == link; });
      if (told == before_->nvlinks.end()) return false;
      reading = *told;
      reading.errors = {};  // those are asked for anew
      if (reading.word == LinkWord::kSaid) reading.word = LinkWord::kKept;
    }
    gpu_.nvlinks.push_back(std::move(reading));
    return true;
  }

  // What fails is no answer that the GPU is in no fabric: what it last said stays, marked.
  void ReadFabric() {
    const Return failure = AskFabric();
    if (gpu_.state != GpuState::kAnswers || failure == nvml::kSuccess || nvml::HasNone(failure)) return;
    if (before_ != nullptr) gpu_.fabric = before_->fabric;
    gpu_.fabric.unread = failure;
  }

  Return AskFabric() {
    for (const unsigned version : {nvml::kFabricInfo3, nvml::kFabricInfo2}) {
      nvml::FabricInfo info{};
      info.version = version;
      const Return result = Call(nvml_.fabric, &info);
      if (nvml::HasNone(result)) continue;
      if (result != nvml::kSuccess) return result;
      gpu_.fabric = {StateOf(info.state),
                     Uuid(info.cluster_uuid),
                     info.clique,
                     info.health_mask,
                     version == nvml::kFabricInfo3 ? int(info.health_summary) : 0,
                     0};
      // Says something only once the probe is through (nvml.h).
      if (gpu_.fabric.state == FabricState::kCompleted) gpu_.fabric.error = info.status;
      return nvml::kSuccess;
    }
    nvml::FabricInfo1 info{};
    if (const Return result = Call(nvml_.fabric1, &info); result != nvml::kSuccess) return result;
    gpu_.fabric = {StateOf(info.state), Uuid(info.cluster_uuid), info.clique, 0, 0, 0};
    if (gpu_.fabric.state == FabricState::kCompleted) gpu_.fabric.error = info.status;
    return nvml::kSuccess;
  }

  void ReadHealth() {
    unsigned long long errors = 0;
    if (Ask(nvml_.ecc, nvml::kUncorrected, nvml::kVolatile, &errors))
      gpu_.uncorrected_ecc = std::int64_t(std::min(errors, 1ULL << 62));
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failure = 0;
    if (Ask(nvml_.remapped, &correctable, &uncorrectable, &pending, &failure)) {
      gpu_.row_remap_pending = pending != 0;
      gpu_.row_remap_failure = failure != 0;
    }
    const auto action = Field(nvml::kFieldRecoveryAction, 0);
    if (action && *action <= kMostActions) gpu_.recovery_action = int(*action);
  }
  static constexpr unsigned long long kMostActions = 999;  // more is no action but nonsense

  const nvml::Library& nvml_;
  const Device device_;
  const GpuReading* const before_;
  std::vector<std::string>& problems_;
  bool state_call_answers_ = false;                               // for some link
  Return link_failure_ = nvml::kSuccess;                          // the last of a link's state
  std::optional<std::array<LinkState, nvml::kMaxLinks>> states_;  // by LinkStates, where it was needed
  GpuReading gpu_;
};

// What a GPU is called does not change while NVML runs; the last look still knows it.
void Remember(const GpuReading& known, GpuReading& gpu) {
  if (gpu.uuid.empty()) gpu.uuid = known.uuid;
  if (gpu.name.empty()) gpu.name = known.name;
  if (gpu.pci.empty()) gpu.pci = known.pci;
  if (gpu.memory_mib == 0) gpu.memory_mib = known.memory_mib;
}

}  // namespace

NvmlGpus::NvmlGpus(std::string library, nvml::OnCall on_call)
    : name_(std::move(library)), on_call_(std::move(on_call)) {}

NvmlGpus::~NvmlGpus() {
  if (library_ != nullptr && events_ != nullptr) (void)library_->free_events(events_);
}

void NvmlGpus::ReadGpu(unsigned index, GpuReadings& readings) {
  library_->trace.gpu = int(index);
  const auto known = known_.find(index);
  Device device = nullptr;
  const Return result = library_->by_index(index, &device);
  GpuReading gpu;
  if (result == nvml::kSuccess) {
    if (!watched_.contains(device)) Watch(device, index);
    const bool told = known != known_.end() && known->second.state == GpuState::kAnswers;
    gpu = Question(*library_, device, int(index), told ? &known->second : nullptr, readings.problems).Run();
  } else if (known != known_.end() && (result == nvml::kGpuIsLost || result == nvml::kResetRequired)) {
    gpu.index = int(index);
    gpu.state = result == nvml::kGpuIsLost ? GpuState::kLost : GpuState::kResetRequired;
  } else if (known != known_.end()) {
    // It was there, and nothing says that it went: what it last said stays known for the next look.
    gpu = known->second;
    if (gpu.state == GpuState::kAnswers) {
      gpu.state = GpuState::kFails;
      gpu.failure = nvml::Meaning(result);
    }
    readings.gpus.push_back(std::move(gpu));
    return;
  } else {
    readings.problems.push_back(fmt::format("GPU {} does not answer: {}", index, nvml::Meaning(result)));
    return;
  }
  if (known != known_.end()) {
    Remember(known->second, gpu);
    KeepTold(known->second, gpu);
  }
  known_[index] = gpu;
  readings.gpus.push_back(std::move(gpu));
}

// A GPU or driver that knows no events has none to tell, and its XIDs stay unknown. Where it fails they go unheard:
// that is said, and tried again with the next look. Of a GPU that is gone its state says all.
void NvmlGpus::Watch(Device device, unsigned index) {
  Return result = nvml::kSuccess;
  if (events_ == nullptr) {
    result = library_->make_events(&events_);
    if (result != nvml::kSuccess) events_ = nullptr;
  }
  if (events_ != nullptr) {
    result = library_->register_events(device, nvml::kEventXid | nvml::kEventRecoveryAction, events_);
    // Older drivers do not know the second, whatever error they have for that, and registered neither then.
    if (result != nvml::kSuccess && result != nvml::kGpuIsLost && result != nvml::kResetRequired)
      result = library_->register_events(device, nvml::kEventXid, events_);
    registered_ = registered_ || result == nvml::kSuccess;
  }
  if (result == nvml::kSuccess || nvml::HasNone(result)) {
    watched_[device] = index;
  } else if (result != nvml::kGpuIsLost && result != nvml::kResetRequired) {
    unheard_[result].push_back(index);
  }
}

void NvmlGpus::SayUnheard(GpuReadings& readings) const {
  for (const auto& [result, gpus] : unheard_) {
    readings.problems.push_back(fmt::format("XIDs of {} {} are not heard: {}",
                                            gpus.size() == 1 ? "GPU" : "GPUs", fmt::join(gpus, ", "),
                                            nvml::Meaning(result)));
  }
  if (wait_failure_ != nvml::kSuccess)
    readings.problems.push_back(fmt::format("XIDs are not heard: {}", nvml::Meaning(wait_failure_)));
}

bool NvmlGpus::CollectXids() {
  library_->trace.gpu = -1;
  bool any_new = false;
  constexpr int kMost = 1000;  // of one look; an application in a loop may make thousands
  for (int i = 0; registered_ && i < kMost; ++i) {
    nvml::EventData event{};
    const Return result = library_->wait_events(events_, &event, 0);
    wait_failure_ = result == nvml::kTimeout || nvml::HasNone(result) ? nvml::kSuccess : result;
    if (result != nvml::kSuccess) break;  // a time-out: there are no more
    const auto of = watched_.find(event.device);
    if (of == watched_.end()) continue;
    recovery_changed_ = recovery_changed_ || event.type == nvml::kEventRecoveryAction;
    if (event.type != nvml::kEventXid) continue;
    int& last = xids_[of->second];
    const int xid = int(std::min(event.data, 999ULL));
    if (IsFatalXid(last) && !IsFatalXid(xid)) continue;
    any_new = any_new || xid != last;
    last = xid;
  }
  return any_new;
}

bool NvmlGpus::Listen() {
  if (!listens()) return false;
  const bool any_new = CollectXids();
  return std::exchange(recovery_changed_, false) || any_new;
}

GpuReadings NvmlGpus::Read() {
  GpuReadings readings;
  if (library_ == nullptr) {
    known_.clear();
    watched_.clear();
    xids_.clear();
    events_ = nullptr;
    registered_ = false;
    wait_failure_ = nvml::kSuccess;
    auto library = std::make_unique<nvml::Library>(on_call_);
    readings.absent = library->Open(name_);
    if (!readings.absent.empty()) return readings;
    library_ = std::move(library);
  }
  library_->trace.gpu = -1;
  std::array<char, 81> driver{};
  if (library_->driver_version(driver.data(), unsigned(driver.size() - 1)) == nvml::kSuccess)
    readings.driver = formats::Printable(driver.data());
  unsigned count = 0;
  if (const Return result = library_->count(&count); result != nvml::kSuccess) {
    readings.absent = fmt::format("NVML does not say how many GPUs there are: {}", nvml::Meaning(result));
    readings.problems.push_back(readings.absent);
    if (events_ != nullptr) (void)library_->free_events(std::exchange(events_, nullptr));
    library_.reset();
    return readings;
  }
  unheard_.clear();
  recovery_changed_ = false;  // it is asked for now
  for (unsigned index = 0; index < std::min(count, nvml::kMaxGpus); ++index) ReadGpu(index, readings);
  if (count > nvml::kMaxGpus) {
    readings.problems.push_back(fmt::format("{} of the driver's GPUs are left out: {} are looked at",
                                            count - nvml::kMaxGpus, nvml::kMaxGpus));
  }
  (void)CollectXids();
  SayUnheard(readings);
  for (GpuReading& gpu : readings.gpus) {
    if (const auto xid = xids_.find(unsigned(gpu.index)); xid != xids_.end()) gpu.last_xid = xid->second;
  }
  return readings;
}

}  // namespace heddle::nodeagent
