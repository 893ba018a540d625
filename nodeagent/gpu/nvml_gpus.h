#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nodeagent/gpu/nvml_library.h"
#include "nodeagent/gpu/probe.h"

namespace heddle::nodeagent {

// The live driver, in this process: whoever must not hang with it takes NvmlProcess (nvml_process.h), which
// runs this in a child. Each call is looked up by itself: an old driver lacks some, and those facts stay
// unknown.
class NvmlGpus final : public GpuSource {
 public:
  // `library`: what dlopen takes, "libnvidia-ml.so.1" on a real machine. `on_call` hears of every call.
  explicit NvmlGpus(std::string library, nvml::OnCall on_call = {});
  ~NvmlGpus() override;
  // Loads the library on the first call and again after a failure: the driver may be installed after the
  // agent. XIDs are those that were reported since then.
  GpuReadings Read() override;
  // Whether there is anything to listen to, since the last Read.
  bool listens() const { return library_ != nullptr && registered_; }
  // Whether the driver has told an XID that the next Read will tell anew, or that it asks for another recovery action.
  // Does not wait.
  bool Listen();

 private:
  void ReadGpu(unsigned index, GpuReadings& readings);
  void Watch(nvml::Device device, unsigned index);
  // Whether one of them is new.
  bool CollectXids();
  void SayUnheard(GpuReadings& readings) const;

  std::string name_;
  nvml::OnCall on_call_;
  std::unique_ptr<nvml::Library> library_;
  // Of this load of the library: NVML keeps indexes while it runs, so a GPU that is lost is still known.
  std::map<unsigned, GpuReading> known_;
  nvml::EventSet events_ = nullptr;
  bool registered_ =
      false;  // for events of any GPU: what waiting for those of none comes to is nobody's promise
  std::map<nvml::Device, unsigned> watched_;               // whose XIDs are heard, or which has none to tell
  std::map<nvml::Return, std::vector<unsigned>> unheard_;  // in this look: GPUs by what the driver answered
  nvml::Return wait_failure_ = nvml::kSuccess;             // of the last wait for events
  std::map<unsigned, int> xids_;
  bool recovery_changed_ = false;  // since it was asked for
};

}  // namespace heddle::nodeagent
