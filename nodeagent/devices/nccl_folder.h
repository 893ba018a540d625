#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace heddle::nodeagent {

// What the folder that containers get should hold.
struct NcclFiles {
  std::string conf;      // nccl.conf
  std::string topology;  // topology.xml; empty = none
  friend bool operator==(const NcclFiles&, const NcclFiles&) = default;
};

// The NCCL files of this node in <state>/nccl. Containers have the folder and not its files, so that a process which
// starts reads what is true then, and a container that starts again finds what it found before: each file is replaced
// by a rename, and only files that nobody was ever told of are removed.
// Thread rule: one thread.
class NcclFolder {
 public:
  // `state`: the folder that is Heddle's own on this host, of the same name here and there.
  explicit NcclFolder(std::string state) : folder_(std::move(state) + "/nccl") {}

  // Writes what differs from what lies there, and sweeps what an agent that was killed left half-written.
  // kUnavailable: the file that cannot be written, and why.
  [[nodiscard]] base::Status Write(const NcclFiles& files) const;
  // nccl.conf as an agent has written it before; nothing = none has.
  std::optional<std::string> conf() const;
  const std::string& path() const { return folder_; }

 private:
  const std::string folder_;
};

}  // namespace heddle::nodeagent
