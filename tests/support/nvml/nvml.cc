// A libnvidia-ml.so.1 for tests: NVML's C ABI over the nvml.yaml that HEDDLE_TEST_NVML names. It reads the file
// at nvmlInit and again whenever somebody asks how many GPUs there are, which begins a look at the machine: so
// a test changes the machine by writing the file. The declarations are its own, and not those of the code that
// is tested. Compiled with HEDDLE_TEST_NVML_OLD it has the calls of old drivers alone, each under the first name that it
// had: without a version.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/nvml/script.h"

namespace {

using heddle::test::nvml::Gpu;
using heddle::test::nvml::Link;
using heddle::test::nvml::Script;

enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kInsufficientSize = 7,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kVersionMismatch = 25
};

struct Device {
  unsigned index;
};
struct EventSet {
  std::array<bool, 64> watched{};
  std::array<int, 64> told{};
  std::array<unsigned, 64> told_action{};
};

std::unique_ptr<Script> script;
std::array<Device, 64> devices;

void Load() {
  const char* path = std::getenv("HEDDLE_TEST_NVML");
  if (path == nullptr) {
    std::fputs("test NVML: HEDDLE_TEST_NVML names no file\n", stderr);
    std::abort();
  }
  script = std::make_unique<Script>(heddle::test::nvml::ReadScript(path));
  for (unsigned i = 0; i < devices.size(); ++i) devices[i].index = i;
}

[[noreturn]] void Hang() {
  for (;;) ::pause();
}

// What every call does before its own work.
int Enter(std::string_view call, int gpu) {
  if (script == nullptr) return kUninitialized;
  const std::string name(call);
  if (script->crashes == name) std::abort();
  if (const auto hang = script->hangs.find(name);
      hang != script->hangs.end() && (hang->second == -1 || hang->second == gpu))
    Hang();
  if (gpu >= 0) {
    const auto lost = script->lost.find(unsigned(gpu));
    if (lost != script->lost.end() && lost->second-- <= 0) {
      lost->second = 0;
      return kGpuIsLost;
    }
  }
  const auto fails = script->fails.find(name);
  return fails == script->fails.end() ? kSuccess : fails->second;
}

// The GPU of a call, or why not.
int Enter(std::string_view call, const Device* device, const Gpu** gpu) {
  if (device == nullptr) return kInvalidArgument;
  const int result = Enter(call, int(device->index));
  if (result != kSuccess) return result;
  if (device->index >= script->gpus.size()) return kGpuIsLost;
  *gpu = &script->gpus[device->index];
  return kSuccess;
}

int Enter(std::string_view call, const Device* device, unsigned number, const Link** link) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter(call, device, &gpu); result != kSuccess) return result;
  if (number >= 36) return kInvalidArgument;
  *link = gpu->FindLink(number);
  return *link == nullptr ? kNotSupported : kSuccess;
}

int Copy(const std::string& text, char* buffer, unsigned size) {
  if (text.size() >= size) return kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

// The first 36 bytes of nvmlPciInfo_t, which is what every version of it has.
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, model, subsystem;
};

int Write(const std::string& address, void* out) {
  Pci pci{};
  std::snprintf(pci.legacy, sizeof pci.legacy, "%s", address.c_str());
  if (std::sscanf(address.c_str(), "%x:%x:%x", &pci.domain, &pci.bus, &pci.device) != 3) return kNotSupported;
  std::memcpy(out, &pci, sizeof pci);
  return kSuccess;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default"))) int

// A call that later drivers have under a second name, too.
#ifdef HEDDLE_TEST_NVML_OLD
#define NAME(first, version) first
#else
#define NAME(first, version) first##version
#endif
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

EXPORTED NAME(nvmlInit, _v2)() {
  Load();
  if (const int result = Enter(TEXT(NAME(nvmlInit, _v2)), -1); result != kSuccess) return result;
  if (!script->prints.empty()) {
    std::puts(script->prints.c_str());
    std::fflush(stdout);
  }
  return script->init;
}

EXPORTED nvmlShutdown() {
  script.reset();
  return kSuccess;
}

EXPORTED nvmlSystemGetDriverVersion(char* version, unsigned length) {
  if (const int result = Enter("nvmlSystemGetDriverVersion", -1); result != kSuccess) return result;
  return Copy(script->driver, version, length);
}

EXPORTED NAME(nvmlDeviceGetCount, _v2)(unsigned* count) {
  if (script == nullptr) return kUninitialized;
  Load();
  if (const int result = Enter(TEXT(NAME(nvmlDeviceGetCount, _v2)), -1); result != kSuccess) return result;
  *count = unsigned(script->gpus.size());
  return kSuccess;
}

EXPORTED NAME(nvmlDeviceGetHandleByIndex, _v2)(unsigned index, Device** device) {
  if (script != nullptr && index >= script->gpus.size()) return kInvalidArgument;
  if (const int result = Enter(TEXT(NAME(nvmlDeviceGetHandleByIndex, _v2)), int(index)); result != kSuccess)
    return result;
  if (const auto fails = script->gpu_fails.find(index); fails != script->gpu_fails.end())
    return fails->second;
  *device = &devices[index];
  return kSuccess;
}

EXPORTED nvmlDeviceGetUUID(const Device* device, char* uuid, unsigned length) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetUUID", device, &gpu); result != kSuccess) return result;
  return Copy(gpu->uuid, uuid, length);
}

EXPORTED nvmlDeviceGetName(const Device* device, char* name, unsigned length) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetName", device, &gpu); result != kSuccess) return result;
  return Copy(gpu->name, name, length);
}

EXPORTED nvmlDeviceGetMemoryInfo(const Device* device, unsigned long long* total_free_used) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetMemoryInfo", device, &gpu); result != kSuccess) return result;
  if (!gpu->memory_mib) return kNotSupported;
  total_free_used[0] = total_free_used[1] = *gpu->memory_mib << 20;
  total_free_used[2] = 0;
  return kSuccess;
}

EXPORTED nvmlDeviceGetNvLinkState(const Device* device, unsigned number, unsigned* active) {
  const Link* link = nullptr;
  if (const int result = Enter("nvmlDeviceGetNvLinkState", device, number, &link); result != kSuccess)
    return result;
  const auto fails = script->link_fails.find(std::to_string(device->index) + "." + std::to_string(number));
  if (fails != script->link_fails.end()) return fails->second;
  *active = link->active ? 1 : 0;
  return kSuccess;
}

EXPORTED nvmlDeviceGetNvLinkVersion(const Device* device, unsigned number, unsigned* version) {
  const Link* link = nullptr;
  if (const int result = Enter("nvmlDeviceGetNvLinkVersion", device, number, &link); result != kSuccess)
    return result;
  constexpr std::array<unsigned, 7> kRevisions{0, 1, 2, 5, 6, 7, 8};  // of generation 3 it is 3.1, an A100's
  const int generation = script->gpus[device->index].generation;
  if (generation < 0 || generation >= int(kRevisions.size())) return kNotSupported;
  *version = kRevisions[std::size_t(generation)];
  return kSuccess;
}

EXPORTED nvmlDeviceGetTotalEccErrors(const Device* device, unsigned type, unsigned counter,
                                     unsigned long long* errors) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetTotalEccErrors", device, &gpu); result != kSuccess)
    return result;
  if (type != 1 || counter != 0) return kInvalidArgument;
  if (!gpu->uncorrected) return kNotSupported;
  *errors = *gpu->uncorrected;
  return kSuccess;
}

#ifdef HEDDLE_TEST_NVML_OLD

EXPORTED nvmlDeviceGetPciInfo(const Device* device, void* pci) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetPciInfo", device, &gpu); result != kSuccess) return result;
  return Write(gpu->pci, pci);
}

EXPORTED nvmlDeviceGetNvLinkRemotePciInfo(const Device* device, unsigned number, void* pci) {
  const Link* link = nullptr;
  if (const int result = Enter("nvmlDeviceGetNvLinkRemotePciInfo", device, number, &link); result != kSuccess)
    return result;
  return Write(link->remote_pci, pci);
}

#else

EXPORTED nvmlDeviceGetPciInfo_v3(const Device* device, void* pci) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetPciInfo_v3", device, &gpu); result != kSuccess) return result;
  return Write(gpu->pci, pci);
}

EXPORTED nvmlDeviceGetNvLinkRemotePciInfo_v2(const Device* device, unsigned number, void* pci) {
  const Link* link = nullptr;
  if (const int result = Enter("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, number, &link);
      result != kSuccess)
    return result;
  return Write(link->remote_pci, pci);
}

EXPORTED nvmlDeviceGetNvLinkRemoteDeviceType(const Device* device, unsigned number, unsigned* type) {
  const Link* link = nullptr;
  if (const int result = Enter("nvmlDeviceGetNvLinkRemoteDeviceType", device, number, &link);
      result != kSuccess)
    return result;
  *type = link->end;
  return kSuccess;
}

EXPORTED nvmlDeviceGetMigMode(const Device* device, unsigned* current, unsigned* pending) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetMigMode", device, &gpu); result != kSuccess) return result;
  if (!gpu->mig) return kNotSupported;
  *current = *pending = *gpu->mig ? 1 : 0;
  return kSuccess;
}

EXPORTED nvmlDeviceGetRemappedRows(const Device* device, unsigned* correctable, unsigned* uncorrectable,
                                   unsigned* pending, unsigned* failure) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetRemappedRows", device, &gpu); result != kSuccess) return result;
  if (!gpu->remap_pending || !gpu->remap_failure) return kNotSupported;
  *correctable = *uncorrectable = 0;
  *pending = *gpu->remap_pending ? 1 : 0;
  *failure = *gpu->remap_failure ? 1 : 0;
  return kSuccess;
}

struct FabricAnswer {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health_summary;
};

EXPORTED nvmlDeviceGetGpuFabricInfoV(const Device* device, FabricAnswer* info) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetGpuFabricInfoV", device, &gpu); result != kSuccess)
    return result;
  if (script->fabric_version < 2) return kFunctionNotFound;
  const unsigned asked = info->version >> 24, size = info->version & 0xffffffU;
  if (int(asked) > script->fabric_version || (asked == 3 && size != 40) || (asked == 2 && size != 36))
    return kVersionMismatch;
  if (!gpu->has_fabric) return kNotSupported;
  std::memcpy(info->cluster, gpu->cluster, sizeof info->cluster);
  info->status = gpu->fabric_error;
  info->clique = gpu->clique;
  info->state = gpu->fabric_state;
  info->health_mask = gpu->health_mask;
  if (asked == 3) info->health_summary = static_cast<unsigned char>(gpu->health_summary);
  return kSuccess;
}

// nvmlGpuFabricInfo_t: what drivers before 545 have, and later ones, too. Here only they answer, so that a test knows
// who did.
struct FirstFabricAnswer {
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};

EXPORTED nvmlDeviceGetGpuFabricInfo(const Device* device, FirstFabricAnswer* info) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetGpuFabricInfo", device, &gpu); result != kSuccess) return result;
  if (script->fabric_version != 1) return kFunctionNotFound;
  if (!gpu->has_fabric) return kNotSupported;
  std::memcpy(info->cluster, gpu->cluster, sizeof info->cluster);
  info->status = gpu->fabric_error;
  info->clique = gpu->clique;
  info->state = gpu->fabric_state;
  return kSuccess;
}

struct Field {
  unsigned id, scope;
  long long timestamp, latency;
  unsigned type;
  int result;
  unsigned long long value;
};

// A count of one link, which Blackwell has under other numbers than the GPUs before it.
std::optional<unsigned long long> ErrorsOf(const Gpu& gpu, const Link& link, unsigned field) {
  const bool blackwell = gpu.generation >= 5;
  switch (field) {
    case 161:
      return blackwell ? std::nullopt : link.replays;
    case 162:
      return blackwell ? std::nullopt : link.recoveries;
    case 163:
      return blackwell ? std::nullopt : link.crc;
    case 206:
      return link.malformed;  // a test says it of what it is not to be asked of
    case 207:
      return blackwell ? link.overruns : std::nullopt;
    case 208:
      return blackwell ? link.receive_errors : std::nullopt;
    case 211:
      return blackwell ? link.integrity : std::nullopt;
    case 214:
      return blackwell ? link.failed_recoveries : std::nullopt;
    case 215:
      return blackwell ? link.recoveries : std::nullopt;
    default:
      return std::nullopt;
  }
}

EXPORTED nvmlDeviceGetFieldValues(const Device* device, int count, Field* fields) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceGetFieldValues", device, &gpu); result != kSuccess) return result;
  for (int i = 0; i < count; ++i) {
    Field& field = fields[i];
    const Link* link = gpu->FindLink(field.scope);
    unsigned speed = 0;
    if (field.id == 164 && link != nullptr && script->speeds == "all") speed = link->speed_mbps;
    for (const Link& any : gpu->links) {
      if (field.id == 90 && any.active && script->speeds != "none") speed = any.speed_mbps;
    }
    field.type = 1;  // unsigned int: the upper half of the union is somebody else's
    field.value = 0xdeadbeef00000000ULL | speed;
    field.result = speed == 0 ? kNotSupported : kSuccess;
    if (field.id == 165 && link != nullptr && script->link_states) {
      field.value = 0xdeadbeef00000000ULL | (link->active ? 1U : 0U);
      field.result = kSuccess;
    }
    if (field.id == 230 && gpu->recovery_action) {
      field.value = 0xdeadbeef00000000ULL | *gpu->recovery_action;
      field.result = kSuccess;
    }
    if (const auto errors = link == nullptr ? std::nullopt : ErrorsOf(*gpu, *link, field.id)) {
      field.type = 3;  // unsigned long long
      field.value = *errors;
      field.result = kSuccess;
    }
  }
  return kSuccess;
}

#endif

EXPORTED nvmlEventSetCreate(EventSet** set) {
  if (const int result = Enter("nvmlEventSetCreate", -1); result != kSuccess) return result;
  *set = new EventSet;
  return kSuccess;
}

EXPORTED nvmlEventSetFree(const EventSet* set) {
  delete set;
  return kSuccess;
}

EXPORTED nvmlDeviceRegisterEvents(const Device* device, unsigned long long types, EventSet* set) {
  const Gpu* gpu = nullptr;
  if (const int result = Enter("nvmlDeviceRegisterEvents", device, &gpu); result != kSuccess) return result;
  constexpr unsigned long long kXid = 8, kRecoveryAction = 0x8000;
  if (types != kXid && (types != (kXid | kRecoveryAction) || !gpu->recovery_action))
    return script->unknown_event;
  set->told_action[device->index] = gpu->recovery_action.value_or(0);
  set->watched[device->index] = true;
  return kSuccess;
}

struct Event {
  Device* device;
  unsigned long long type, data;
#ifndef HEDDLE_TEST_NVML_OLD
  unsigned gpu_instance, compute_instance;
#endif
};

// Each XID of the file is one event, told once.
EXPORTED NAME(nvmlEventSetWait, _v2)(EventSet* set, Event* event, unsigned) {
  if (const int result = Enter(TEXT(NAME(nvmlEventSetWait, _v2)), -1); result != kSuccess) return result;
  // An event comes between two looks, so the file is read for it; what else it says is of the next look.
  const Script now = heddle::test::nvml::ReadScript(std::getenv("HEDDLE_TEST_NVML"));
  for (std::size_t i = 0; i < std::min(script->gpus.size(), now.gpus.size()); ++i)
    script->gpus[i].xid = now.gpus[i].xid;
  for (std::size_t i = 0; i < script->gpus.size() && i < set->watched.size(); ++i) {
    const unsigned action = i < now.gpus.size() ? now.gpus[i].recovery_action.value_or(0) : 0;
    if (set->watched[i] && std::exchange(set->told_action[i], action) != action) {
      *event = {};
      event->device = &devices[i];
      event->type = 0x8000;
      return kSuccess;
    }
    const int xid = script->gpus[i].xid;
    if (!set->watched[i] || xid == set->told[i]) continue;
    set->told[i] = xid;
    if (xid == 0) continue;
    *event = {};
    event->device = &devices[i];
    event->type = 8;
    event->data = static_cast<unsigned long long>(xid);
    return kSuccess;
  }
  return kTimeout;
}
