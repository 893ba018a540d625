#pragma once

#include <dlfcn.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

// NVML's C ABI, as far as it is called here, and the library that answers it. Declared by ourselves after
// NVIDIA's public header nvml.h (go-nvml, gen/nvml/nvml.h, API 13), so that nothing of NVIDIA is needed
// to build and one binary runs on machines with any driver and with none.
namespace heddle::nodeagent::nvml {

using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kVersionMismatch = 18;  // of the library and the kernel module
inline constexpr Return kNoSuchCall = 13;       // what our own Call says where the library lacks it
inline constexpr Return kWrongVersion = 25;     // of the structure that was passed
inline constexpr Return kDeprecated = 26;       // a call that this driver has dropped

using Device = void*;
using EventSet = void*;

// nvmlPciInfo_t. Older drivers write 52 bytes of it; the fields that are read stand in the same place.
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
  unsigned long long total, free, used;  // bytes
};

// nvmlGpuFabricInfo_v2_t and _v3_t, which only adds the last field. Asked for by its version word, so that
// newer drivers keep answering in the layout that was asked for.
struct FabricInfo {
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health_summary;
};
static_assert(sizeof(FabricInfo) == 40);
inline constexpr unsigned kFabricInfo3 = 40 | 3U << 24;
inline constexpr unsigned kFabricInfo2 = 36 | 2U << 24;

// nvmlGpuFabricInfo_t of drivers before 545: no version word, no health.
struct FabricInfo1 {
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique;
  unsigned char state;
};
static_assert(sizeof(FabricInfo1) == 28);

// nvmlFieldValue_t.
struct FieldValue {
  unsigned field;
  unsigned scope;  // the link, for fields of a link
  long long timestamp, latency_us;
  unsigned type;  // nvmlValueType_t: which member of `value` is set
  Return result;
  union {
    double d;
    int i;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
inline constexpr unsigned kFieldLinkSpeedCommon = 90;  // MB/s, of every active link
inline constexpr unsigned kFieldLinkSpeed = 164;       // MB/s, of the link in `scope`
inline constexpr unsigned kFieldLinkState = 165;       // 0 inactive, 1 active, 2 asleep
// Of the link in `scope`: to Hopper, and those that replace them from Blackwell on (NVML_FI_DEV_NVLINK_COUNT_*).
inline constexpr unsigned kFieldLinkReplays = 161;
inline constexpr unsigned kFieldLinkRecoveries = 162;
inline constexpr unsigned kFieldLinkCrc = 163;
inline constexpr unsigned kFieldLinkMalformed = 206;  // packets
inline constexpr unsigned kFieldLinkOverruns = 207;   // packets that were discarded, as the buffer was full
inline constexpr unsigned kFieldLinkReceiveErrors = 208;     // packets with errors
inline constexpr unsigned kFieldLinkIntegrity = 211;         // times that local errors exceeded a threshold
inline constexpr unsigned kFieldLinkFailedRecoveries = 214;  // and the link was declared down
inline constexpr unsigned kFieldLinkRecoveryEvents = 215;

// What the driver asks for before the GPU may be used again: nvmlDeviceGpuRecoveryAction_t.
inline constexpr unsigned kFieldRecoveryAction = 230;

struct EventData {
  Device device;
  unsigned long long type, data;  // data: the XID
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);
inline constexpr unsigned long long kEventXid = 8;
inline constexpr unsigned long long kEventRecoveryAction =
    0x8000;  // it is another one; the event does not say which

inline constexpr unsigned kMaxGpus = 64;
inline constexpr unsigned kMaxLinks = 36;    // NVML_NVLINK_MAX_LINKS
inline constexpr unsigned kUncorrected = 1;  // nvmlMemoryErrorType_t
inline constexpr unsigned kVolatile = 0;     // nvmlEccCounterType_t

// Told before every call into the driver, so that a call that never comes back has a name. `gpu`: -1 where the
// call is of none.
using OnCall = std::function<void(std::string_view call, int gpu)>;
struct Trace {
  OnCall on_call;
  int gpu = -1;
};

// A call of the library under the newest name that it has, or the fact that this version has none.
template <class... Arguments>
class Call {
 public:
  void Find(void* library, const Trace& trace, std::initializer_list<const char*> names) {
    trace_ = &trace;
    for (const char* name : names) {
      if (function_ != nullptr) return;
      name_ = name;
      function_ = reinterpret_cast<Function>(::dlsym(library, name));
    }
  }
  explicit operator bool() const { return function_ != nullptr; }
  Return operator()(Arguments... arguments) const {
    if (function_ == nullptr) return kNoSuchCall;
    if (trace_->on_call) trace_->on_call(name_, trace_->gpu);
    return function_(arguments...);
  }

 private:
  using Function = Return (*)(Arguments...);
  Function function_ = nullptr;
  const char* name_ = "";
  const Trace* trace_ = nullptr;
};

inline constexpr std::string_view kLibrary = "libnvidia-ml.so.1";

// Where drivers put their library below `root`, which ends with a /: the GPU operator's driver container
// (run/nvidia/driver), Debian and Ubuntu, RHEL, SUSE and Amazon Linux, and GKE's Container-Optimized OS. Debian's own
// package is looked for in its real folder too: its link is absolute and leads nowhere below another root.
std::vector<std::string> LibraryPaths(std::string_view root);

// A loaded and started libnvidia-ml. Thread rule: one thread.
class Library {
 public:
  explicit Library(OnCall on_call) : trace{std::move(on_call), -1} {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();
  // `where`: what dlopen takes, or with a / at its end the root of LibraryPaths. Empty on success, else why not, as
  // a sentence.
  std::string Open(const std::string& where);

  Trace trace;
  Call<> init, shutdown;
  Call<char*, unsigned> driver_version;
  Call<unsigned*> count;
  Call<unsigned, Device*> by_index;
  Call<Device, char*, unsigned> uuid, name;
  Call<Device, PciInfo*> pci;
  Call<Device, Memory*> memory;
  Call<Device, unsigned*, unsigned*> mig;
  Call<Device, unsigned, unsigned*> link_state, link_version, link_end;
  Call<Device, unsigned, PciInfo*> link_pci;
  Call<Device, int, FieldValue*> fields;
  Call<Device, FabricInfo*> fabric;
  Call<Device, FabricInfo1*> fabric1;
  Call<Device, unsigned, unsigned, unsigned long long*> ecc;
  Call<Device, unsigned*, unsigned*, unsigned*, unsigned*> remapped;
  Call<EventSet*> make_events;
  Call<EventSet> free_events;
  Call<Device, unsigned long long, EventSet> register_events;
  Call<EventSet, EventData*, unsigned> wait_events;

 private:
  void FindCalls();
  void* handle_ = nullptr;
  bool started_ = false;
};

// Whether the answer is that there is no such thing: this GPU has none, or this driver does not know the call. Every
// other error says nothing of what was asked for.
bool HasNone(Return result);

// What an error of NVML means for whoever has to mend it: "the nvidia kernel module is not loaded".
std::string Meaning(Return result);

}  // namespace heddle::nodeagent::nvml
