#pragma once

#include "base/result.h"
#include "nodeagent/qos/port_io.h"
#include "nodeagent/qos/setting_files.h"

namespace heddle::nodeagent {

// The ToS byte of connections by rdma_cm that say none, in configfs (Linux, drivers/infiniband/core/cma_configfs.c).
// A device has a folder there once somebody makes one; the values are the device's and stay when it is removed. It is
// left as it was found. Thread rule: one thread; two who make and remove it at once see each other's.

struct RdmaCmTos {
  int tos = 0;         // 0 to 255
  bool roce1 = false;  // connections are RoCE v1, which has no ToS at all: it reads as 0
};
// kUnimplemented: configfs or rdma_cm is not there; kNotFound: rdma_cm does not know the device.
[[nodiscard]] base::Result<RdmaCmTos> ReadRdmaCmTos(const SettingFiles& files, const QosPort& port);
// Makes connections RoCE v2, too, where they are not.
[[nodiscard]] base::Status WriteRdmaCmTos(const SettingFiles& files, const QosPort& port, int tos);
// Makes them RoCE v1. kUnimplemented: the device has no such connections (any more).
[[nodiscard]] base::Status WriteRdmaCmRoce1(const SettingFiles& files, const QosPort& port);

}  // namespace heddle::nodeagent
