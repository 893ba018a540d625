#include "nodeagent/qos/queue_pairs.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "formats/printable.h"
#include "formats/scanner.h"
#include "nodeagent/qos/netlink_bytes.h"

namespace heddle::nodeagent {
namespace {

// Linux, include/linux/proc_ns.h: PROC_PID_INIT_INO.
constexpr std::string_view kHostPids = "pid:[4026531836]";

std::string Question(int command, std::uint32_t sequence, std::optional<std::uint32_t> device) {
  alignas(nlmsghdr) std::array<char, 64> bytes{};
  nlmsghdr* header = mnl_nlmsg_put_header(bytes.data());
  header->nlmsg_type = std::uint16_t(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, unsigned(command)));
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP;
  header->nlmsg_seq = sequence;
  if (device) mnl_attr_put_u32(header, RDMA_NLDEV_ATTR_DEV_INDEX, *device);
  return std::string(bytes.data(), header->nlmsg_len);
}

std::optional<std::uint32_t> U32(const nlattr* attribute) {
  std::uint32_t value = 0;
  if (mnl_attr_get_payload_len(attribute) < sizeof value) return std::nullopt;
  std::memcpy(&value, mnl_attr_get_payload(attribute), sizeof value);
  return value;
}

base::Status TakeQueuePairs(const nlattr* list, RdmaAnswer& answer) {
  return ForEachNested(list, [&](const nlattr* entry) -> base::Status {
    if (mnl_attr_get_type(entry) != RDMA_NLDEV_ATTR_RES_QP_ENTRY) return {};
    bool kernel = false;
    std::optional<std::uint32_t> pid;
    TRY(ForEachNested(entry, [&](const nlattr* part) -> base::Status {
      kernel = kernel || mnl_attr_get_type(part) == RDMA_NLDEV_ATTR_RES_KERN_NAME;
      if (mnl_attr_get_type(part) == RDMA_NLDEV_ATTR_RES_PID) pid = U32(part);
      return {};
    }));
    if (kernel || answer.user_queue_pairs == std::numeric_limits<int>::max()) return {};
    ++answer.user_queue_pairs;
    if (pid.value_or(0) != 0 && (answer.by_pid.size() < kMaxHolders || answer.by_pid.contains(*pid)))
      ++answer.by_pid[*pid];
    return {};
  });
}

}  // namespace

std::string AskRdmaDevices(std::uint32_t sequence) {
  return Question(RDMA_NLDEV_CMD_GET, sequence, std::nullopt);
}

std::string AskQueuePairs(std::uint32_t device, std::uint32_t sequence) {
  return Question(RDMA_NLDEV_CMD_RES_QP_GET, sequence, device);
}

base::Status TakeRdma(std::string_view datagram, std::uint32_t sequence, std::string_view device_name,
                      RdmaAnswer& answer) {
  return ForEachNetlinkMessage(datagram, [&](const nlmsghdr* message) -> base::Status {
    if (message->nlmsg_seq != sequence) return {};
    if (const auto error = NetlinkError(message)) {
      answer.done = true;
      answer.error = *error;
      return {};
    }
    std::optional<std::uint32_t> index;
    std::string name;
    TRY(ForEachAttribute(message, 0, [&](const nlattr* attribute) -> base::Status {
      const int type = mnl_attr_get_type(attribute);
      if (type == RDMA_NLDEV_ATTR_DEV_INDEX) index = U32(attribute);
      if (type == RDMA_NLDEV_ATTR_DEV_NAME) name = NetlinkText(attribute);
      return type == RDMA_NLDEV_ATTR_RES_QP ? TakeQueuePairs(attribute, answer) : base::Status();
    }));
    if (index && name == device_name) answer.device = index;
    return {};
  });
}

std::string PodUidIn(std::string_view cgroup) {
  constexpr std::string_view kPod = "pod";
  constexpr std::size_t kMinUid = 32;  // of a static pod: a hash without dashes
  for (std::size_t at = cgroup.find(kPod); at != std::string_view::npos; at = cgroup.find(kPod, at + 1)) {
    if (at == 0 || (cgroup[at - 1] != '/' && cgroup[at - 1] != '-')) continue;
    const std::string_view rest = cgroup.substr(at + kPod.size());
    std::string uid(rest.substr(0, rest.find_first_not_of("0123456789abcdef_-")));
    if (uid.size() < kMinUid || uid.size() > kMinUid + 4) continue;
    std::replace(uid.begin(), uid.end(), '_', '-');
    return uid;
  }
  return {};
}

bool ShowsAllQueuePairs(std::string_view release) {
  const std::size_t dot = release.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view rest = release.substr(dot + 1);
  const auto major = formats::Number<int>(release.substr(0, dot));
  const auto minor = formats::Number<int>(rest.substr(0, rest.find_first_not_of("0123456789")));
  return major && minor && std::pair(*major, *minor) >= std::pair(5, 5);
}

NetlinkQueuePairs::NetlinkQueuePairs(const base::FileTree& files) : files_(files), kernel_(NETLINK_RDMA) {}

base::Result<RdmaAnswer> NetlinkQueuePairs::Ask(const std::string& question, std::uint32_t sequence,
                                                const std::string& rdma_device) {
  RdmaAnswer answer;
  const auto take = [&](std::string_view datagram) -> base::Result<bool> {
    TRY(TakeRdma(datagram, sequence, rdma_device, answer));
    return answer.done;
  };
  TRY(kernel_.Ask(question, take), fmt::format("queue pairs of {}", rdma_device));
  if (answer.error != 0) return base::Fail(KernelError(answer.error, "queue pairs", rdma_device));
  return answer;
}

base::Result<int> NetlinkQueuePairs::CountUsers(const std::string& rdma_device) {
  const auto space = files_.ReadLink("proc/self/ns/pid");
  const std::string release = base::ReadTrimmed(files_, "proc/sys/kernel/osrelease").value_or("");
  if ((!space || *space != kHostPids) && !ShowsAllQueuePairs(release)) {
    return base::Fail(
        base::Code::kForbidden,
        fmt::format("Linux {} shows queue pairs of other processes in the host's PID namespace only: run "
                    "the agent with hostPID, or a kernel from 5.5 on",
                    formats::Printable(release, 64)));
  }
  ASSIGN_OR_RETURN(const RdmaAnswer answer, AskUsers(rdma_device));
  return answer.user_queue_pairs;
}

base::Result<RdmaAnswer> NetlinkQueuePairs::AskUsers(const std::string& rdma_device) {
  std::uint32_t sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(const RdmaAnswer devices, Ask(AskRdmaDevices(sequence), sequence, rdma_device));
  if (!devices.device) {
    return base::Fail(base::Code::kUnavailable, fmt::format("{}: there is no such RDMA device", rdma_device));
  }
  sequence = kernel_.NextSequence();
  return Ask(AskQueuePairs(*devices.device, sequence), sequence, rdma_device);
}

std::vector<std::string> NetlinkQueuePairs::Holders(const std::string& rdma_device) {
  std::vector<std::string> holders;
  const auto answer = AskUsers(rdma_device);
  if (!answer) return holders;
  for (const auto& [pid, pairs] : answer->by_pid) {
    const std::string folder = fmt::format("proc/{}/", pid);
    const auto name = base::ReadTrimmed(files_, folder + "comm");
    const std::string pod = PodUidIn(files_.Read(folder + "cgroup").value_or(""));
    holders.push_back(fmt::format("{} (pid {}{})",
                                  name ? formats::Printable(*name, 32) : "a program without a name", pid,
                                  pod.empty() ? "" : fmt::format(", of the pod with UID {}", pod)));
  }
  std::sort(holders.begin(), holders.end());
  return holders;
}

}  // namespace heddle::nodeagent
