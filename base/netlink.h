#pragma once

#include <string>

namespace heddle::base {

// The next datagram of the kernel's on a netlink socket that does not block; false: there is none now. Those of other
// processes are passed over. `lost`: some were dropped before it, or one was cut short and passed over.
bool ReceiveFromKernel(int socket, std::string& datagram, bool& lost);

}  // namespace heddle::base
