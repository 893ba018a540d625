#include "nodeagent/qos/rdma_cm_tos.h"

#include <fmt/format.h>

#include <string>

#include "formats/printable.h"
#include "formats/scanner.h"

namespace heddle::nodeagent {
namespace {

constexpr const char* kRoot = "sys/kernel/config/rdma_cm";
// Linux, drivers/infiniband/core/cache.c, gid_type_str.
constexpr std::string_view kRoce1 = "IB/RoCE v1";
constexpr std::string_view kRoce2 = "RoCE v2";

// The device's folder, for as long as it is looked at.
class Device {
 public:
  Device(const SettingFiles& files, const QosPort& port)
      : files_(files),
        folder_(fmt::format("{}/{}", kRoot, port.rdma_device)),
        port_(fmt::format("{}/ports/{}", folder_, port.rdma_port)) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    if (made_) (void)files_.RemoveFolder(folder_);
  }

  base::Status Open() {
    if (!files_.files().List(kRoot)) {
      return base::Fail(base::Code::kUnimplemented,
                        fmt::format("there is no {}: load rdma_cm and mount configfs", kRoot));
    }
    if (const auto made = files_.MakeFolder(folder_); made) {
      made_ = true;
    } else if (made.error().code != base::Code::kAlreadyExists) {
      return base::Fail(made.error().In("rdma_cm"));
    }
    return {};
  }
  std::string Tos() const { return port_ + "/default_roce_tos"; }
  std::string Mode() const { return port_ + "/default_roce_mode"; }
  base::Result<bool> IsRoce2() const {
    ASSIGN_OR_RETURN(const std::string mode, base::ReadTrimmed(files_.files(), Mode()));
    return mode == kRoce2;
  }
  base::Result<int> ReadTos() const {
    ASSIGN_OR_RETURN(const std::string text, base::ReadTrimmed(files_.files(), Tos()));
    const auto tos = formats::Within<int>(text, 0, 255);
    if (tos) return *tos;
    return base::Fail(base::Code::kInvalid,
                      fmt::format("{}: \"{}\" is no ToS byte", Tos(), formats::Printable(text, 32)));
  }

 private:
  const SettingFiles& files_;
  const std::string folder_, port_;
  bool made_ = false;
};

}  // namespace

base::Result<RdmaCmTos> ReadRdmaCmTos(const SettingFiles& files, const QosPort& port) {
  Device device(files, port);
  TRY(device.Open());
  ASSIGN_OR_RETURN(const bool roce2, device.IsRoce2());
  if (!roce2) return RdmaCmTos{0, true};
  ASSIGN_OR_RETURN(const int tos, device.ReadTos());
  return RdmaCmTos{tos, false};
}

base::Status WriteRdmaCmTos(const SettingFiles& files, const QosPort& port, int tos) {
  Device device(files, port);
  TRY(device.Open());
  ASSIGN_OR_RETURN(const bool roce2, device.IsRoce2());
  if (!roce2) TRY(files.Write(device.Mode(), kRoce2));
  ASSIGN_OR_RETURN(const int have, device.ReadTos());
  if (have == tos) return {};
  return files.Write(device.Tos(), std::to_string(tos));
}

base::Status WriteRdmaCmRoce1(const SettingFiles& files, const QosPort& port) {
  Device device(files, port);
  TRY(device.Open());
  ASSIGN_OR_RETURN(const bool roce2, device.IsRoce2());
  if (!roce2) return {};
  auto written = files.Write(device.Mode(), kRoce1);
  // cma_set_default_gid_type: EINVAL where the device has no RoCE v1, which no later try changes.
  if (!written && written.error().code == base::Code::kInvalid)
    return base::Fail(base::Code::kUnimplemented, written.error().message);
  return written;
}

}  // namespace heddle::nodeagent
