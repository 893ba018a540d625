#pragma once

#include <memory>
#include <string>

#include "nodeagent/gpu_probe.h"

namespace heddle::nodeagent {

// The live driver, by dlopen and with our own declarations, so that one binary runs on machines with any
// driver and with none. Each call is looked up by itself: an old driver lacks some, and those facts stay
// unknown.
class NvmlGpus final : public GpuSource {
 public:
  // `library`: what dlopen takes, "libnvidia-ml.so.1" on a real machine.
  explicit NvmlGpus(std::string library);
  ~NvmlGpus() override;
  // Loads the library on the first call and again after a failure: the driver may be installed after the
  // agent.
  GpuReadings Read() override;

 private:
  class Library;
  std::string name_;
  std::unique_ptr<Library> library_;
};

}  // namespace heddle::nodeagent
