#pragma once

#include <memory>

#include "base/file_tree.h"
#include "nodeagent/agent.h"
#include "nodeagent/flags.h"

namespace heddle::nodeagent {

// What an agent holds its ports by, as the flags ask for it: the kernel's of a live machine, with a journal below
// --state-dir; of a recorded one what it recorded, with a journal in --qos-dir, or in memory where there is none.
class OpenedLossless {
 public:
  // `files`: of the machine; it must outlive this.
  OpenedLossless(const Flags& flags, const base::FileTree& files);
  LosslessParts parts() const;

 private:
  const base::FileTree& files_;
  std::unique_ptr<PortIo> io_;
  std::unique_ptr<PortGate> gate_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<QosEvents> events_;
  QosLoopOptions options_;
};

}  // namespace heddle::nodeagent
