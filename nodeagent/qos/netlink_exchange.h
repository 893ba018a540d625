#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

struct mnl_socket;

namespace heddle::nodeagent {

// Questions to the kernel over one netlink socket, in the network namespace of this process. The kernel has its
// answer ready when the question is sent; the limit is for one that has none.
// Thread rule: one thread.
class NetlinkExchange {
 public:
  // `bus`: NETLINK_ROUTE, NETLINK_RDMA.
  explicit NetlinkExchange(int bus, std::chrono::milliseconds limit = std::chrono::seconds(5))
      : bus_(bus), limit_(limit) {}
  NetlinkExchange(const NetlinkExchange&) = delete;
  NetlinkExchange& operator=(const NetlinkExchange&) = delete;
  ~NetlinkExchange();

  // What the next question repeats as its sequence; never 0.
  std::uint32_t NextSequence() { return ++sequence_ == 0 ? ++sequence_ : sequence_; }
  // Sends it and passes on each datagram of the kernel's until `take` says that the answer is whole, or fails.
  // kUnavailable: no socket; kTimeout.
  [[nodiscard]] base::Status Ask(const std::string& question,
                                 const std::function<base::Result<bool>(std::string_view)>& take);

 private:
  [[nodiscard]] base::Status Open();
  [[nodiscard]] base::Status Receive(const std::function<base::Result<bool>(std::string_view)>& take);
  void Close();

  const int bus_;
  const std::chrono::milliseconds limit_;
  mnl_socket* socket_ = nullptr;
  std::uint32_t sequence_ = 0;
};

// The code and the words of an errno that the kernel answered with; `what` was asked of `subject`, an interface or
// an RDMA device. What to do next is said where it is known.
base::Error KernelError(int error, std::string_view what, std::string_view subject);

}  // namespace heddle::nodeagent
