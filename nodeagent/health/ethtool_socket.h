#pragma once

#include <string>

namespace heddle::nodeagent {

// SIOCETHTOOL in the network namespace of this process. It is opened when it is first asked. What a command is and says
// stands in linux/ethtool.h. Each answers 0, or an errno: ENODEV where there is no interface of that name, which may be
// since it is longer than any. Thread rule: one thread.
class EthtoolSocket {
 public:
  EthtoolSocket() = default;
  EthtoolSocket(const EthtoolSocket&) = delete;
  EthtoolSocket& operator=(const EthtoolSocket&) = delete;
  ~EthtoolSocket();

  int Open();
  // `command`: a structure that begins with the number of an ethtool command; the kernel answers in it.
  int Ask(const std::string& netdev, void* command);
  // Which interface has that name now: another one gets another number, whatever it is called.
  int IndexOf(const std::string& netdev, int& index);

 private:
  int socket_ = -1;
};

}  // namespace heddle::nodeagent
