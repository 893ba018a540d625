#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_tree.h"
#include "base/result.h"
#include "nodeagent/qos/netlink_exchange.h"

namespace heddle::nodeagent {

// Questions and answers of RDMA netlink (Linux, drivers/infiniband/core/nldev.c). Pure.
std::string AskRdmaDevices(std::uint32_t sequence);
std::string AskQueuePairs(std::uint32_t device, std::uint32_t sequence);  // `device`: its index
std::string AskProtectionDomains(std::uint32_t device, std::uint32_t sequence);

inline constexpr std::size_t kMaxHolders = 1'024;
struct RdmaAnswer {
  bool done = false;
  int error = 0;                        // errno, or 0
  std::optional<std::uint32_t> device;  // the index of the device that was looked for
  int user_queue_pairs = 0;             // those whose entry does not name a part of the kernel as their owner
  int user_domains = 0;                 // likewise, of protection domains
  std::map<std::uint32_t, int>
      by_pid;  // of both, by a process that this one can see; at most kMaxHolders processes
};
// Adds one datagram of a dump; `device_name`: whom to look for. Total; kInvalid where a message is cut short.
[[nodiscard]] base::Status TakeRdma(std::string_view datagram, std::uint32_t sequence,
                                    std::string_view device_name, RdmaAnswer& answer);

// What was said of queue pairs and then of protection domains, in one. A kernel of `release` that lists no domains is
// believed on queue pairs alone; any other error of the second answer is passed on.
[[nodiscard]] base::Result<RdmaAnswer> WithDomains(RdmaAnswer pairs, const RdmaAnswer& domains,
                                                   std::string_view release, std::string_view rdma_device);

// Whether a kernel of this release ("6.1.0-56-amd64") shows queue pairs over PID namespaces.
bool ShowsAllQueuePairs(std::string_view release);

// The UID of the pod that a process belongs to, of its proc/PID/cgroup as the kubelet's two cgroup drivers name groups
// ("…-pod8f1c_….slice", "/pod8f1c-…/"); empty = it is in no pod.
std::string PodUidIn(std::string_view cgroup);

// Who uses a device. Queue pairs that a program makes by DEVX, as UCX does on mlx5 (uct/ib/mlx5/dv/ib_mlx5dv_md.c), are
// objects of the firmware that the kernel's list does not have (Linux, infiniband/hw/mlx5/devx.c). But such a program,
// too, has a protection domain by verbs (UCX, uct/ib/base/ib_md.c, uct_ib_md_open_common), and so has whoever has
// memory registered: a list of memory regions would say no more. A process that only has a device open, as this agent,
// has none by the libraries of the drivers that are set (mlx5, bnxt_re, hns); irdma's makes one at once (rdma-core,
// providers/irdma/umain.c).
// Thread rule: one thread.
class QueuePairs {
 public:
  QueuePairs() = default;
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;
  virtual ~QueuePairs() = default;
  // Queue pairs of processes, or their protection domains where those are more; 0: nobody uses it.
  // kForbidden: those of other processes cannot be seen. kUnavailable: there is no such device (any more).
  [[nodiscard]] virtual base::Result<int> CountUsers(const std::string& rdma_device) = 0;
  // Those processes, as PortIo::QueuePairHolders has them.
  virtual std::vector<std::string> Holders(const std::string& rdma_device) = 0;
};

// Kernels before 5.5 show a process what its own PID namespace has alone (rdma_is_visible_in_pid_ns), so that
// a count from within a container that has its own would be a confident 0: it is refused there.
class NetlinkQueuePairs final : public QueuePairs {
 public:
  // `files`: rooted at "/", for proc/self/ns/pid, proc/sys/kernel/osrelease, and comm and cgroup of processes. Must
  // outlive it.
  explicit NetlinkQueuePairs(const base::FileTree& files);
  [[nodiscard]] base::Result<int> CountUsers(const std::string& rdma_device) override;
  std::vector<std::string> Holders(const std::string& rdma_device) override;

 private:
  [[nodiscard]] base::Result<RdmaAnswer> AskUsers(const std::string& rdma_device);
  std::string Release() const;
  // An answer may be an error of the kernel's: RdmaAnswer::error.
  [[nodiscard]] base::Result<RdmaAnswer> Ask(const std::string& question, std::uint32_t sequence,
                                             const std::string& rdma_device);
  const base::FileTree& files_;
  NetlinkExchange kernel_;
};

}  // namespace heddle::nodeagent
