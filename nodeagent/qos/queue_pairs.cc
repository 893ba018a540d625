#include "nodeagent/qos/queue_pairs.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

// Those of processes among the entries of a list are added to `users`.
base::Status TakeEntries(const nlattr* list, int entry_type, int& users, RdmaAnswer& answer) {
  return ForEachNested(list, [&](const nlattr* entry) -> base::Status {
    if (mnl_attr_get_type(entry) != entry_type) return {};
    bool kernel = false;
    std::optional<std::uint32_t> pid;
    TRY(ForEachNested(entry, [&](const nlattr* part) -> base::Status {
      kernel = kernel || mnl_attr_get_type(part) == RDMA_NLDEV_ATTR_RES_KERN_NAME;
      if (mnl_attr_get_type(part) == RDMA_NLDEV_ATTR_RES_PID) pid = U32(part);
      return {};
    }));
    if (kernel || users == std::numeric_limits<int>::max()) return {};
    ++users;
    if (pid.value_or(0) != 0 && (answer.by_pid.size() < kMaxHolders || answer.by_pid.contains(*pid)))
      ++answer.by_pid[*pid];
    return {};
  });
}

// Whether "6.1.0-56-amd64" is of `wanted` (major, minor) or later.
bool IsFrom(std::string_view release, std::pair<int, int> wanted) {
  const std::size_t dot = release.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view rest = release.substr(dot + 1);
  const auto major = formats::Number<int>(release.substr(0, dot));
  const auto minor = formats::Number<int>(rest.substr(0, rest.find_first_not_of("0123456789")));
  return major && minor && std::pair(*major, *minor) >= wanted;
}

}  // namespace

std::string AskRdmaDevices(std::uint32_t sequence) {
  return Question(RDMA_NLDEV_CMD_GET, sequence, std::nullopt);
}

std::string AskQueuePairs(std::uint32_t device, std::uint32_t sequence) {
  return Question(RDMA_NLDEV_CMD_RES_QP_GET, sequence, device);
}

std::string AskProtectionDomains(std::uint32_t device, std::uint32_t sequence) {
  return Question(RDMA_NLDEV_CMD_RES_PD_GET, sequence, device);
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
      if (type == RDMA_NLDEV_ATTR_RES_QP)
        return TakeEntries(attribute, RDMA_NLDEV_ATTR_RES_QP_ENTRY, answer.user_queue_pairs, answer);
      if (type == RDMA_NLDEV_ATTR_RES_PD)
        return TakeEntries(attribute, RDMA_NLDEV_ATTR_RES_PD_ENTRY, answer.user_domains, answer);
      return {};
    }));
    if (index && name == device_name) answer.device = index;
    return {};
  });
}

base::Result<RdmaAnswer> WithDomains(RdmaAnswer pairs, const RdmaAnswer& domains, std::string_view release,
                                     std::string_view rdma_device) {
  // EINVAL is said to a question that the kernel does not know (infiniband/core/netlink.c, rdma_nl_rcv_msg), and of a
  // device that is not there any more. Domains are listed from 4.17 on (infiniband/core/nldev.c, nldev_cb_table; no
  // right is asked for): from then on it is the second.
  const bool unlisted = domains.error == EOPNOTSUPP || (domains.error == EINVAL && !IsFrom(release, {4, 17}));
  if (unlisted) return pairs;
  if (domains.error != 0) return base::Fail(KernelError(domains.error, "protection domains", rdma_device));
  pairs.user_domains = domains.user_domains;
  for (const auto& [pid, count] : domains.by_pid) {
    if (pairs.by_pid.size() < kMaxHolders || pairs.by_pid.contains(pid)) pairs.by_pid[pid] += count;
  }
  return pairs;
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
  return IsFrom(release, {5, 5});
}

NetlinkQueuePairs::NetlinkQueuePairs(const base::FileTree& files) : files_(files), kernel_(NETLINK_RDMA) {}

base::Result<RdmaAnswer> NetlinkQueuePairs::Ask(const std::string& question, std::uint32_t sequence,
                                                const std::string& rdma_device) {
  RdmaAnswer answer;
  const auto take = [&](std::string_view datagram) -> base::Result<bool> {
    TRY(TakeRdma(datagram, sequence, rdma_device, answer));
    return answer.done;
  };
  TRY(kernel_.Ask(question, take), fmt::format("users of {}", rdma_device));
  return answer;
}

std::string NetlinkQueuePairs::Release() const {
  return base::ReadTrimmed(files_, "proc/sys/kernel/osrelease").value_or("");
}

base::Result<int> NetlinkQueuePairs::CountUsers(const std::string& rdma_device) {
  const auto space = files_.ReadLink("proc/self/ns/pid");
  const std::string release = Release();
  if ((!space || *space != kHostPids) && !ShowsAllQueuePairs(release)) {
    return base::Fail(
        base::Code::kForbidden,
        fmt::format("Linux {} shows queue pairs of other processes in the host's PID namespace only: run "
                    "the agent with hostPID, or a kernel from 5.5 on",
                    formats::Printable(release, 64)));
  }
  ASSIGN_OR_RETURN(const RdmaAnswer answer, AskUsers(rdma_device));
  return std::max(answer.user_queue_pairs, answer.user_domains);
}

base::Result<RdmaAnswer> NetlinkQueuePairs::AskUsers(const std::string& rdma_device) {
  std::uint32_t sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(const RdmaAnswer devices, Ask(AskRdmaDevices(sequence), sequence, rdma_device));
  if (devices.error != 0) return base::Fail(KernelError(devices.error, "RDMA devices", rdma_device));
  if (!devices.device) {
    return base::Fail(base::Code::kUnavailable, fmt::format("{}: there is no such RDMA device", rdma_device));
  }
  sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(RdmaAnswer pairs, Ask(AskQueuePairs(*devices.device, sequence), sequence, rdma_device));
  if (pairs.error != 0) return base::Fail(KernelError(pairs.error, "queue pairs", rdma_device));
  sequence = kernel_.NextSequence();
  ASSIGN_OR_RETURN(const RdmaAnswer domains,
                   Ask(AskProtectionDomains(*devices.device, sequence), sequence, rdma_device));
  return WithDomains(std::move(pairs), domains, Release(), rdma_device);
}

std::vector<std::string> NetlinkQueuePairs::Holders(const std::string& rdma_device) {
  std::vector<std::string> holders;
  const auto answer = AskUsers(rdma_device);
  if (!answer) return holders;
  for (const auto& [pid, count] : answer->by_pid) {
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
