#pragma once

#include <string>

#include "base/file_tree.h"

namespace heddle::nodeagent {

// The driver that has a device now, "mlx5_core", by the link `driver` in its folder `device`
// ("sys/bus/pci/devices/0000:1b:00.0", "sys/class/infiniband/mlx5_0/device"); printable, 64 bytes at most. Empty where
// there is none: of a function that nothing drives, and of a device in software.
std::string DriverOf(const base::FileTree& files, const std::string& device);

}  // namespace heddle::nodeagent
