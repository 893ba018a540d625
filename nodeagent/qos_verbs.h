#pragma once

#include <stop_token>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/discovery/machine.h"
#include "nodeagent/flags.h"

namespace heddle::nodeagent {

// `qos show`, to standard output, and `qos watch`, until `stop`. `files`: those of the machine, whose ports are live
// or those of its qos.yaml. kNotFound: it has no such port.
[[nodiscard]] base::Status ServeQos(const base::FileTree& files, Machine& machine, const Flags& flags,
                                    bool live, const std::stop_token& stop);

// What is asked of a machine once: that, or NCCL's files (nccl_files.h). True: that was all there was to do.
[[nodiscard]] base::Result<bool> ServeOnce(const base::FileTree& files, Machine& machine, const Flags& flags,
                                           bool live, const std::stop_token& stop);

}  // namespace heddle::nodeagent
