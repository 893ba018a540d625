#pragma once

#include <string>

#include "base/file_tree.h"
#include "recorded_machine.h"

namespace heddle::test {

// A file that CMake built: "nvml/libnvidia-ml.so.1", "bin/heddle-nodeagent".
std::string Built(const std::string& name);

inline const std::string& Nvml() {
  static const std::string path = Built("nvml/libnvidia-ml.so.1");
  return path;
}
inline const std::string& OldNvml() {
  static const std::string path = Built("nvml-old/libnvidia-ml.so.1");
  return path;
}

// What the test library answers from now on, in this process. See tests/support/nvml/script.h for the words.
class NvmlBed {
 public:
  // `machine`: a recorded one of the fleet.
  explicit NvmlBed(const std::string& machine);

  const std::string& recorded() const { return recorded_; }
  std::string path() const { return folder_.path() + "/nvml.yaml"; }
  // The machine's nvml.yaml with `fake` behind it.
  void Misbehave(const std::string& fake) const { Write(recorded_ + "fake: " + fake + "\n"); }
  // At once: the agent's child reads it when it likes.
  void Write(const std::string& yaml) const;
  // The machine's nvml.yaml with the first `old` after `after` replaced.
  std::string Changed(const std::string& after, const std::string& old, const std::string& now) const;

 private:
  TemporaryFolder folder_;
  std::string recorded_;
};

}  // namespace heddle::test
