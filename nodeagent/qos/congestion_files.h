#pragma once

#include <span>
#include <vector>

#include "lossless/render.h"
#include "nodeagent/qos/port_io.h"
#include "nodeagent/qos/setting_files.h"

namespace heddle::nodeagent {

// ECN, CNPs and DCQCN of mlx5, the only driver that has all of them as files:
//   sys/class/net/IF/ecn/roce_{rp,np}/  MLNX_OFED and DOCA: all of it, and alone the switch by priority (enable/0…7)
//   sys/kernel/debug/mlx5/BDF/cc_params/  the kernel's own (drivers/infiniband/hw/mlx5/cong.c): all but that switch
// And of Broadcom, where the first is not there, what can be read:
//   sys/kernel/debug/bnxt_re/BDF/cc_config/  enable_cc, and alt_vlan_dscp and alt_vlan_pcp, which are the DSCP and the
//       802.1p priority of CNPs (infiniband/hw/bnxt_re/debugfs.c; the maker's own configfs.c shows alt_tos_dscp as
//       cnp_dscp). Nothing is written: bnxt_re_configure_cc drops what its firmware answers
// Where both are there the first counts. A CNP has the priority of np_cnp_prio only where np_cnp_prio_mode is 0, which
// writing it makes it (mlx5_ib_set_cc_params): any other is left_to_firmware.

// Puts kEcn, kCnpDscp, kCnpPriority and kDcqcn into `reading`, or gaps; of Broadcom's into read_only, too, and of
// mlx5's kCnpPriority into left_to_firmware.
void ReadCongestion(const base::FileTree& files, const QosPort& port, QosReading& reading);

// Writes those of `settings` that are of this kind, of DCQCN and ECN what differs. kUnimplemented: no such file.
[[nodiscard]] base::Status WriteCongestion(const SettingFiles& files, const QosPort& port,
                                           lossless::Setting setting, const lossless::PortSettings& want);

}  // namespace heddle::nodeagent
