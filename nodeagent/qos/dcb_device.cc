#include "nodeagent/qos/dcb_device.h"

#include <fmt/format.h>
#include <linux/netlink.h>

#include <cerrno>

namespace heddle::nodeagent {
namespace {

base::Status CheckName(const std::string& netdev) {
  if (!netdev.empty() && netdev.size() <= kMaxNetdevName) return {};
  return base::Fail(KernelError(ENODEV, "DCB", netdev));
}

base::Status Outcome(const DcbAnswer& answer, const std::string& netdev) {
  if (answer.refusal.value_or(0) == 0) return {};
  return base::Fail(KernelError(*answer.refusal, "DCB", netdev));
}

}  // namespace

NetlinkDcb::NetlinkDcb() : kernel_(NETLINK_ROUTE) {}

base::Result<DcbAnswer> NetlinkDcb::Ask(const std::string& question, std::uint32_t sequence,
                                        const std::string& netdev) {
  DcbAnswer answer;
  const auto take = [&](std::string_view datagram) -> base::Result<bool> {
    TRY(TakeDcb(datagram, sequence, answer));
    return answer.done;
  };
  TRY(kernel_.Ask(question, take), fmt::format("DCB of {}", netdev));
  if (answer.error != 0) return base::Fail(KernelError(answer.error, "DCB", netdev));
  return answer;
}

base::Result<DcbState> NetlinkDcb::Read(const std::string& netdev) {
  TRY(CheckName(netdev));
  const std::uint32_t sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(DcbAnswer answer, Ask(AskDcb(netdev, sequence), sequence, netdev));
  if (!answer.state)
    return base::Fail(base::Code::kInternal, fmt::format("DCB of {}: an empty answer", netdev));
  return *std::move(answer.state);
}

base::Status NetlinkDcb::Change(const std::string& netdev, const DcbChange& change) {
  TRY(CheckName(netdev));
  const std::uint32_t sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(const DcbAnswer answer, Ask(SetDcb(netdev, sequence, change), sequence, netdev));
  return Outcome(answer, netdev);
}

base::Status NetlinkDcb::DeleteApps(const std::string& netdev, const std::vector<DcbApp>& apps) {
  TRY(CheckName(netdev));
  const std::uint32_t sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(const DcbAnswer answer, Ask(DeleteDcbApps(netdev, sequence, apps), sequence, netdev));
  return Outcome(answer, netdev);
}

base::Status NetlinkDcb::ChangeDcbx(const std::string& netdev, int flags) {
  TRY(CheckName(netdev));
  const std::uint32_t sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(const DcbAnswer answer, Ask(SetDcbx(netdev, sequence, flags), sequence, netdev));
  if (answer.refusal.value_or(0) == 0) return {};
  return base::Fail(base::Code::kConflict,
                    fmt::format("DCBX of {}: the driver leaves it to the NIC's firmware; turn that off there "
                                "(ConnectX: mlxconfig LLDP_NB_DCBX_P1=0; bnxt_en takes it from its NVRAM)",
                                netdev));
}

}  // namespace heddle::nodeagent
