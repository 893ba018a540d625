#include "nodeagent/qos/congestion_files.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

using lossless::DcqcnParameter;
using lossless::kDcqcnParameters;
using lossless::kPriorities;
using lossless::Setting;

constexpr std::string_view kBnxt = "bnxt_en";

// The file of a value in the one place and in the other.
struct Names {
  std::string_view kernel;  // below cc_params/
  std::string_view vendor;  // below ecn/
};
constexpr Names kCnpDscp{"np_cnp_dscp", "roce_np/cnp_dscp"};
constexpr Names kCnpPriority{"np_cnp_prio", "roce_np/cnp_802p_prio"};
constexpr Names kCnpPriorityMode{"np_cnp_prio_mode", ""};
// In the order of lossless::DcqcnParameter.
constexpr std::array<Names, kDcqcnParameters> kDcqcn{{
    {"rp_ai_rate", "roce_rp/rpg_ai_rate"},
    {"rp_byte_reset", "roce_rp/rpg_byte_reset"},
    {"rp_clamp_tgt_rate", "roce_rp/clamp_tgt_rate"},
    {"rp_dce_tcp_g", "roce_rp/dce_tcp_g"},
    {"rp_gd", "roce_rp/rpg_gd"},
    {"rp_hai_rate", "roce_rp/rpg_hai_rate"},
    {"rp_initial_alpha_value", "roce_rp/initial_alpha_value"},
    {"rp_min_dec_fac", "roce_rp/rpg_min_dec_fac"},
    {"rp_min_rate", "roce_rp/rpg_min_rate"},
    {"rp_rate_reduce_monitor_period", "roce_rp/rate_reduce_monitor_period"},
    {"rp_rate_to_set_on_first_cnp", "roce_rp/rate_to_set_on_first_cnp"},
    {"rp_threshold", "roce_rp/rpg_threshold"},
    {"rp_time_reset", "roce_rp/rpg_time_reset"},
    {"np_min_time_between_cnps", "roce_np/min_time_between_cnps"},
}};

std::string VendorFolder(const QosPort& port) {
  return fmt::format("sys/class/net/{}/ecn", port.netdev);
}
std::string BnxtFolder(const QosPort& port) {
  return fmt::format("sys/kernel/debug/bnxt_re/{}/cc_config", port.pci_address);
}
std::string KernelFolder(const QosPort& port) {
  return fmt::format("sys/kernel/debug/mlx5/{}/cc_params", port.pci_address);
}

// Where a port's files are.
class Place {
 public:
  Place(const base::FileTree& files, const QosPort& port) : files_(files), port_(port) {
    if (files.List(VendorFolder(port))) {
      vendor_ = true;
    } else if (port.pci_address.empty()) {
      why_ = "the port has no PCI device of mlx5";
    } else if (port.driver == kBnxt) {
      bnxt_ = files.List(BnxtFolder(port)).has_value();
      if (!bnxt_)
        why_ =
            fmt::format("there is no {}: it is that of Linux's bnxt_re, of late, and debugfs must be mounted",
                        BnxtFolder(port));
    } else if (const auto listed = files.List(KernelFolder(port)); !listed) {
      why_ = listed.error().code == base::Code::kNotFound
                 ? fmt::format("there is neither {} nor {}: they are mlx5's, and debugfs must be mounted",
                               VendorFolder(port), KernelFolder(port))
                 : listed.error().message;
    }
  }
  const std::string& why() const { return why_; }  // there are none; empty = there are
  bool vendor() const { return vendor_; }
  bool bnxt() const { return bnxt_; }
  std::string Path(const Names& names) const {
    return vendor_ ? fmt::format("{}/{}", VendorFolder(port_), names.vendor)
                   : fmt::format("{}/{}", KernelFolder(port_), names.kernel);
  }
  base::Result<int> Read(const Names& names) const { return ReadAt(Path(names)); }
  base::Result<int> ReadAt(const std::string& path) const {
    ASSIGN_OR_RETURN(const std::string text, base::ReadTrimmed(files_, path));
    const auto value = formats::Number<std::uint32_t>(text);
    if (!value || *value > std::uint32_t(std::numeric_limits<std::int32_t>::max())) {
      return base::Fail(base::Code::kInvalid,
                        fmt::format("{}: \"{}\" is no number", path, formats::Printable(text, 32)));
    }
    return int(*value);
  }

 private:
  const base::FileTree& files_;
  const QosPort& port_;
  std::string why_;
  bool vendor_ = false, bnxt_ = false;
};

std::string EnablePath(const QosPort& port, std::string_view half, int priority) {
  return fmt::format("{}/{}/enable/{}", VendorFolder(port), half, priority);
}

// Those on which both halves act: a sender that never slows down is as good as none that is told to.
base::Result<lossless::PrioritySet> ReadEcn(const Place& place, const QosPort& port) {
  lossless::PrioritySet ecn;
  for (int priority = 0; priority < kPriorities; ++priority) {
    ASSIGN_OR_RETURN(const int sender, place.ReadAt(EnablePath(port, "roce_rp", priority)));
    ASSIGN_OR_RETURN(const int receiver, place.ReadAt(EnablePath(port, "roce_np", priority)));
    if (sender != 0 && receiver != 0) ecn.Insert(priority);
  }
  return ecn;
}

constexpr const char* kBnxtNoSwitch =
    "bnxt_re has one switch for all RoCE of the NIC (enable_cc), which is on, and none by priority: look "
    "with its maker's niccli";
constexpr const char* kBnxtReadOnly =
    "bnxt_re's debugfs is only read: it takes a value without saying whether the firmware does; set it with "
    "its maker's niccli";

// Of Broadcom: see the header.
void ReadBnxt(const Place& place, const QosPort& port, QosReading& reading) {
  const auto read = [&](const char* file) {
    return place.ReadAt(fmt::format("{}/{}", BnxtFolder(port), file));
  };
  const auto gap = [&reading](Setting setting, std::string why) {
    reading.gaps.push_back({setting, std::move(why)});
  };
  if (const auto on = read("enable_cc"); !on) {
    gap(Setting::kEcn, on.error().message);
  } else if (*on == 0) {
    reading.have.ecn = lossless::PrioritySet{};
    reading.read_only.push_back({Setting::kEcn, fmt::format("enable_cc is 0, and {}", kBnxtReadOnly)});
  } else {
    gap(Setting::kEcn, kBnxtNoSwitch);
  }
  const auto number = [&](const char* file, int end, Setting setting, std::optional<int>& to) {
    const auto value = read(file);
    if (value && *value < end) {
      to = *value;
      reading.read_only.push_back({setting, fmt::format("{} is {}, and {}", file, *value, kBnxtReadOnly)});
    } else {
      gap(setting,
          value ? fmt::format("{} is {}, and must be below {}", file, *value, end) : value.error().message);
    }
  };
  number("alt_vlan_dscp", lossless::kDscps, Setting::kCnpDscp, reading.have.cnp_dscp);
  number("alt_vlan_pcp", kPriorities, Setting::kCnpPriority, reading.have.cnp_priority);
  gap(Setting::kDcqcn, "these are parameters of mlx5");
}

constexpr const char* kNoSwitch =
    "the kernel's own mlx5 has no switch for ECN by priority: the firmware's ROCE_CC_PRIO_MASK_P1 decides "
    "(mlxconfig)";

base::Status WriteEcn(const SettingFiles& files, const Place& place, const QosPort& port,
                      const lossless::PrioritySet& want) {
  if (!place.vendor()) return base::Fail(base::Code::kUnimplemented, kNoSwitch);
  for (int priority = 0; priority < kPriorities; ++priority) {
    for (const std::string_view half : {"roce_rp", "roce_np"}) {
      const std::string path = EnablePath(port, half, priority);
      ASSIGN_OR_RETURN(const int have, place.ReadAt(path));
      const bool on = want.Contains(priority);
      if ((have != 0) != on) TRY(files.Write(path, on ? "1" : "0"));
    }
  }
  return {};
}

// `fixed`: whether what is there counts as it is.
base::Status WriteNumber(const SettingFiles& files, const Place& place, const Names& names, int want,
                         bool fixed = true) {
  if (const auto have = place.Read(names); fixed && have && *have == want) return {};
  auto written = files.Write(place.Path(names), std::to_string(want));
  if (!written && written.error().code == base::Code::kNotFound) {
    return base::Fail(base::Code::kUnimplemented, fmt::format("there is no {}", place.Path(names)));
  }
  return written;
}

}  // namespace

void ReadCongestion(const base::FileTree& files, const QosPort& port, QosReading& reading) {
  const Place place(files, port);
  const auto gap = [&reading](Setting setting, std::string why) {
    reading.gaps.push_back({setting, std::move(why)});
  };
  if (!place.why().empty()) {
    for (const Setting setting : {Setting::kEcn, Setting::kCnpDscp, Setting::kCnpPriority, Setting::kDcqcn})
      gap(setting, place.why());
    return;
  }
  if (place.bnxt()) return ReadBnxt(place, port, reading);
  if (!place.vendor()) {
    gap(Setting::kEcn, kNoSwitch);
  } else if (const auto ecn = ReadEcn(place, port); ecn) {
    reading.have.ecn = *ecn;
  } else {
    gap(Setting::kEcn, ecn.error().message);
  }
  if (const auto dscp = place.Read(kCnpDscp); dscp && *dscp < lossless::kDscps) {
    reading.have.cnp_dscp = *dscp;
  } else {
    gap(Setting::kCnpDscp, dscp ? fmt::format("{} is no DSCP", *dscp) : dscp.error().message);
  }
  const auto mode = place.vendor() ? base::Result<int>(0) : place.Read(kCnpPriorityMode);
  const auto priority = place.Read(kCnpPriority);
  if (priority && mode && *mode == 0 && *priority < kPriorities) {
    reading.have.cnp_priority = *priority;
  } else if (priority && mode) {
    if (*mode != 0) reading.left_to_firmware.push_back({Setting::kCnpPriority, "np_cnp_prio_mode is not 0"});
    gap(Setting::kCnpPriority, *mode != 0
                                   ? "np_cnp_prio_mode is not 0, so the firmware chooses the priority of "
                                     "CNPs: write 0 there, in debugfs"
                                   : fmt::format("{} is no priority", *priority));
  } else {
    gap(Setting::kCnpPriority, priority ? mode.error().message : priority.error().message);
  }
  lossless::Dcqcn dcqcn;
  std::string why = "none of its files is there";
  for (std::size_t i = 0; i < kDcqcn.size(); ++i) {
    if (const auto value = place.Read(kDcqcn[i]); value) {
      dcqcn[DcqcnParameter(i)] = *value;
    } else if (value.error().code != base::Code::kNotFound) {
      why = value.error().message;
    }
  }
  if (dcqcn.empty()) {
    gap(Setting::kDcqcn, why);
  } else {
    reading.have.dcqcn = std::move(dcqcn);
  }
}

base::Status WriteCongestion(const SettingFiles& files, const QosPort& port, Setting setting,
                             const lossless::PortSettings& want) {
  const Place place(files.files(), port);
  if (!place.why().empty()) return base::Fail(base::Code::kUnimplemented, place.why());
  if (place.bnxt()) return base::Fail(base::Code::kUnimplemented, kBnxtReadOnly);
  if (setting == Setting::kEcn && want.ecn) return WriteEcn(files, place, port, *want.ecn);
  if (setting == Setting::kCnpDscp && want.cnp_dscp)
    return WriteNumber(files, place, kCnpDscp, *want.cnp_dscp);
  if (setting == Setting::kCnpPriority && want.cnp_priority) {
    const bool fixed = place.vendor() || place.Read(kCnpPriorityMode).value_or(1) == 0;
    return WriteNumber(files, place, kCnpPriority, *want.cnp_priority, fixed);
  }
  if (setting != Setting::kDcqcn || !want.dcqcn) return {};
  for (const auto& [parameter, value] : *want.dcqcn) {
    TRY(WriteNumber(files, place, kDcqcn[std::size_t(parameter)], value),
        lossless::DcqcnParameterName(parameter));
  }
  return {};
}

}  // namespace heddle::nodeagent
