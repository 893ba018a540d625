#include "nodeagent/gpu/nvml_library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "formats/printable.h"

namespace heddle::nodeagent::nvml {
namespace {

// The first of the library's paths that is a file; empty where none is.
std::string Present(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

}  // namespace

std::vector<std::string> LibraryPaths(std::string_view root) {
  constexpr std::array<std::string_view, 3> kRoots{"run/nvidia/driver/", "driver/", ""};
  constexpr std::array<std::string_view, 8> kFolders{"usr/lib/x86_64-linux-gnu/",
                                                     "usr/lib/x86_64-linux-gnu/nvidia/current/",
                                                     "usr/lib/aarch64-linux-gnu/",
                                                     "usr/lib/aarch64-linux-gnu/nvidia/current/",
                                                     "usr/lib64/",
                                                     "usr/lib/",
                                                     "usr/local/nvidia/lib64/",
                                                     "home/kubernetes/bin/nvidia/lib64/"};
  std::vector<std::string> paths;
  paths.reserve(kRoots.size() * kFolders.size());
  for (const std::string_view driver : kRoots) {
    for (const std::string_view folder : kFolders) {
      paths.push_back(fmt::format("{}{}{}{}", root, driver, folder, kLibrary));
    }
  }
  return paths;
}

Library::~Library() {
  if (started_) (void)shutdown();
  if (handle_ != nullptr) ::dlclose(handle_);
}

void Library::FindCalls() {
  init.Find(handle_, trace, {"nvmlInit_v2", "nvmlInit"});
  shutdown.Find(handle_, trace, {"nvmlShutdown"});
  driver_version.Find(handle_, trace, {"nvmlSystemGetDriverVersion"});
  count.Find(handle_, trace, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  by_index.Find(handle_, trace, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  uuid.Find(handle_, trace, {"nvmlDeviceGetUUID"});
  name.Find(handle_, trace, {"nvmlDeviceGetName"});
  pci.Find(handle_, trace, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  memory.Find(handle_, trace, {"nvmlDeviceGetMemoryInfo"});
  mig.Find(handle_, trace, {"nvmlDeviceGetMigMode"});
  link_state.Find(handle_, trace, {"nvmlDeviceGetNvLinkState"});
  link_version.Find(handle_, trace, {"nvmlDeviceGetNvLinkVersion"});
  link_end.Find(handle_, trace, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  link_pci.Find(handle_, trace, {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"});
  fields.Find(handle_, trace, {"nvmlDeviceGetFieldValues"});
  fabric.Find(handle_, trace, {"nvmlDeviceGetGpuFabricInfoV"});
  fabric1.Find(handle_, trace, {"nvmlDeviceGetGpuFabricInfo"});
  ecc.Find(handle_, trace, {"nvmlDeviceGetTotalEccErrors"});
  remapped.Find(handle_, trace, {"nvmlDeviceGetRemappedRows"});
  make_events.Find(handle_, trace, {"nvmlEventSetCreate"});
  free_events.Find(handle_, trace, {"nvmlEventSetFree"});
  register_events.Find(handle_, trace, {"nvmlDeviceRegisterEvents"});
  wait_events.Find(handle_, trace, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
}

std::string Library::Open(const std::string& where) {
  const bool is_root = where.ends_with('/');
  const std::string library = is_root ? Present(LibraryPaths(where)) : where;
  if (library.empty())
    return fmt::format("no NVIDIA driver here (no {} below {}): install it", kLibrary, where);
  if (trace.on_call) trace.on_call("dlopen", -1);
  handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    const char* why = ::dlerror();
    return fmt::format("no NVIDIA driver here ({}): install it, or give its library to the agent's container",
                       formats::Printable(why == nullptr ? library : why, 160));
  }
  FindCalls();
  if (!init || !count || !by_index)
    return fmt::format("{} is not NVML: it lacks nvmlInit_v2 and its like", library);
  const Return result = init();
  if (result != kSuccess) return fmt::format("NVML does not start: {}", Meaning(result));
  started_ = true;
  return {};
}

bool HasNone(Return result) {
  switch (result) {
    case kInvalidArgument:  // a link's number that this GPU does not have
    case kNotSupported:
    case kNotFound:
    case kNoSuchCall:
    case kWrongVersion:
    case kDeprecated:
      return true;
    default:
      return false;
  }
}

std::string Meaning(Return result) {
  switch (result) {
    case kNotSupported:
      return "it does not support this";
    case kNoPermission:
      return "permission is denied: give the agent's container the driver's device nodes";
    case kDriverNotLoaded:
      return "the nvidia kernel module is not loaded";
    case kNoSuchCall:
      return "this driver is too old to tell";
    case kGpuIsLost:
      return "the GPU has fallen off the bus";
    case kResetRequired:
      return "the GPU must be reset";
    case kOperatingSystem:
      return "the operating system blocks the device: give the agent's container the driver's device nodes";
    case kVersionMismatch:
      return "the driver's library and its kernel module are of different versions: reload the module or "
             "reboot";
    default:
      return fmt::format("error {}", result);
  }
}

}  // namespace heddle::nodeagent::nvml
