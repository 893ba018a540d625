#include "nodeagent/nvml_gpus.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

// NVML's ABI as its public header gives it; only what is called here.
using Return = int;
constexpr Return kSuccess = 0;
using Device = void*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
  unsigned long long total, free, used;
};

// nvmlGpuFabricInfo_v2_t: asked for by its version word, so newer drivers keep answering in this layout.
struct FabricInfo {
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfo) == 36);
constexpr unsigned kFabricInfoVersion = sizeof(FabricInfo) | 2u << 24;

constexpr unsigned kMaxGpus = 64;
constexpr unsigned kMaxLinks = 36;    // NVML_NVLINK_MAX_LINKS
constexpr unsigned kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr unsigned kVolatile = 0;     // nvmlEccCounterType_t

// nvmlNvlinkVersion_t is an enum of revisions, not the generation: 5 means 3.1.
int Generation(unsigned version) {
  constexpr std::array<int, 9> kGenerations{0, 1, 2, 2, 3, 3, 4, 5, 6};
  return version < kGenerations.size() ? kGenerations[version] : 0;
}

std::string Address(const PciInfo& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

FabricState StateOf(unsigned char state) {
  switch (state) {
    case 0:
      return FabricState::kNotSupported;
    case 1:
      return FabricState::kNotStarted;
    case 2:
      return FabricState::kInProgress;
    case 3:
      return FabricState::kCompleted;
    default:
      return FabricState::kUnknown;
  }
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

// A call of the library, or the fact that this version has none.
template <class... Arguments>
class Call {
 public:
  void Find(void* library, const char* symbol) {
    function_ = reinterpret_cast<Function>(::dlsym(library, symbol));
  }
  explicit operator bool() const { return function_ != nullptr; }
  bool operator()(Arguments... arguments) const { return function_ && function_(arguments...) == kSuccess; }
  Return Ask(Arguments... arguments) const { return function_(arguments...); }

 private:
  using Function = Return (*)(Arguments...);
  Function function_ = nullptr;
};

}  // namespace

class NvmlGpus::Library {
 public:
  // Empty on success, else why not.
  std::string Open(const std::string& name);
  ~Library() {
    if (started_) (void)shutdown_();
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  GpuReadings Read() const;

 private:
  GpuReading ReadGpu(int index, Device device) const;
  void ReadLinks(Device device, GpuReading& gpu) const;
  void ReadFabric(Device device, GpuReading& gpu) const;
  void ReadHealth(Device device, GpuReading& gpu) const;

  void* handle_ = nullptr;
  bool started_ = false;
  Call<> init_, shutdown_;
  Call<char*, unsigned> driver_version_;
  Call<unsigned*> count_;
  Call<unsigned, Device*> by_index_;
  Call<Device, char*, unsigned> uuid_, name_;
  Call<Device, PciInfo*> pci_;
  Call<Device, Memory*> memory_;
  Call<Device, unsigned, unsigned*> link_state_, link_version_, link_end_;
  Call<Device, unsigned, PciInfo*> link_pci_;
  Call<Device, FabricInfo*> fabric_;
  Call<Device, unsigned, unsigned, unsigned long long*> ecc_;
  Call<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped_;
};

std::string NvmlGpus::Library::Open(const std::string& name) {
  handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = ::dlerror();
    return fmt::format("no NVIDIA driver here ({})", formats::Printable(why == nullptr ? name : why, 160));
  }
  init_.Find(handle_, "nvmlInit_v2");
  shutdown_.Find(handle_, "nvmlShutdown");
  driver_version_.Find(handle_, "nvmlSystemGetDriverVersion");
  count_.Find(handle_, "nvmlDeviceGetCount_v2");
  by_index_.Find(handle_, "nvmlDeviceGetHandleByIndex_v2");
  uuid_.Find(handle_, "nvmlDeviceGetUUID");
  name_.Find(handle_, "nvmlDeviceGetName");
  pci_.Find(handle_, "nvmlDeviceGetPciInfo_v3");
  memory_.Find(handle_, "nvmlDeviceGetMemoryInfo");
  link_state_.Find(handle_, "nvmlDeviceGetNvLinkState");
  link_version_.Find(handle_, "nvmlDeviceGetNvLinkVersion");
  link_end_.Find(handle_, "nvmlDeviceGetNvLinkRemoteDeviceType");
  link_pci_.Find(handle_, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  fabric_.Find(handle_, "nvmlDeviceGetGpuFabricInfoV");
  ecc_.Find(handle_, "nvmlDeviceGetTotalEccErrors");
  remapped_.Find(handle_, "nvmlDeviceGetRemappedRows");
  if (!init_ || !count_ || !by_index_)
    return fmt::format("{} is not NVML: it lacks nvmlInit_v2 and its like", name);
  const Return result = init_.Ask();
  if (result != kSuccess)
    return fmt::format("NVML does not start (error {}): is the nvidia module loaded?", result);
  started_ = true;
  return {};
}

GpuReadings NvmlGpus::Library::Read() const {
  GpuReadings readings;
  std::array<char, 81> driver{};
  if (driver_version_(driver.data(), unsigned(driver.size() - 1)))
    readings.driver = formats::Printable(driver.data());
  unsigned count = 0;
  if (!count_(&count)) {
    readings.absent = "NVML does not say how many GPUs there are";
    readings.problems.push_back(readings.absent);
    return readings;
  }
  for (unsigned index = 0; index < std::min(count, kMaxGpus); ++index) {
    Device device = nullptr;
    if (by_index_(index, &device)) {
      readings.gpus.push_back(ReadGpu(int(index), device));
    } else {
      readings.problems.push_back(
          fmt::format("GPU {} does not answer: it may have fallen off the bus", index));
    }
  }
  return readings;
}

GpuReading NvmlGpus::Library::ReadGpu(int index, Device device) const {
  GpuReading gpu;
  gpu.index = index;
  std::array<char, 97> text{};
  if (uuid_(device, text.data(), unsigned(text.size() - 1))) gpu.uuid = formats::Printable(text.data());
  text.fill('\0');
  if (name_(device, text.data(), unsigned(text.size() - 1))) gpu.name = formats::Printable(text.data());
  PciInfo pci{};
  if (pci_(device, &pci)) gpu.pci = Address(pci);
  Memory memory{};
  if (memory_(device, &memory)) gpu.memory_mib = int(memory.total >> 20);
  ReadLinks(device, gpu);
  ReadFabric(device, gpu);
  ReadHealth(device, gpu);
  return gpu;
}

void NvmlGpus::Library::ReadLinks(Device device, GpuReading& gpu) const {
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    unsigned active = 0;
    if (!link_state_(device, link, &active)) continue;  // this GPU has no such link
    NvlinkReading reading{int(link), active == 1, LinkEnd::kUnknown, {}};
    unsigned end = 0xff;
    if (link_end_(device, link, &end)) {
      reading.end = end == 0 ? LinkEnd::kGpu : end == 2 ? LinkEnd::kSwitch : LinkEnd::kUnknown;
    }
    PciInfo remote{};
    if (reading.active && link_pci_(device, link, &remote)) reading.remote_pci = Address(remote);
    unsigned version = 0;
    if (reading.active && link_version_(device, link, &version)) gpu.nvlink_generation = Generation(version);
    gpu.nvlinks.push_back(std::move(reading));
  }
}

void NvmlGpus::Library::ReadFabric(Device device, GpuReading& gpu) const {
  FabricInfo info{};
  info.version = kFabricInfoVersion;
  if (!fabric_(device, &info)) return;
  gpu.fabric = {StateOf(info.state), Uuid(info.cluster_uuid), info.clique};
}

void NvmlGpus::Library::ReadHealth(Device device, GpuReading& gpu) const {
  unsigned long long errors = 0;
  if (ecc_(device, kUncorrected, kVolatile, &errors)) gpu.uncorrected_ecc = std::int64_t(errors);
  unsigned correctable = 0, uncorrectable = 0, pending = 0, failure = 0;
  if (remapped_(device, &correctable, &uncorrectable, &pending, &failure)) {
    gpu.row_remap_pending = pending != 0;
    gpu.row_remap_failure = failure != 0;
  }
}

NvmlGpus::NvmlGpus(std::string library) : name_(std::move(library)) {}
NvmlGpus::~NvmlGpus() = default;

GpuReadings NvmlGpus::Read() {
  if (library_ == nullptr) {
    auto library = std::make_unique<Library>();
    if (std::string why = library->Open(name_); !why.empty()) {
      GpuReadings readings;
      readings.absent = std::move(why);
      return readings;
    }
    library_ = std::move(library);
  }
  GpuReadings readings = library_->Read();
  if (!readings.absent.empty()) library_.reset();
  return readings;
}

}  // namespace heddle::nodeagent
