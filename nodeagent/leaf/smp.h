#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/ib_neighbours.h"

namespace heddle::nodeagent {

// A management datagram as it goes over the wire: InfiniBand Architecture Specification, volume 1, sections
// 13.4 (all MADs have 256 bytes) and 14.2 (subnet management by directed route).
using Mad = std::array<std::uint8_t, 256>;

enum class SmpAttribute : std::uint16_t { kNodeDescription = 0x0010, kNodeInfo = 0x0011, kPortInfo = 0x0015 };

// Get(attribute) of the node at the other end of the cable in `port` (1-254). We never send anything but Get.
// kPortInfo is that of a switch's port 0, which has the switch's LID.
Mad AskNeighbour(SmpAttribute attribute, int port, std::uint32_t transaction);

// Whether `answer` is the answer to `question`. The kernel fills in the upper half of the transaction id.
bool Answers(const Mad& answer, const Mad& question);
// What the other end said of the question itself; empty when it took it.
std::string WhyRefused(const Mad& answer);

struct SmpNodeInfo {
  formats::IbNodeKind kind = formats::IbNodeKind::kNone;
  std::uint64_t guid = 0;
  int port = 0;  // of that node, through which the question came in
};
// Nothing where the fields make no sense: an unknown kind, a GUID of zeros, a port beyond the node's ports.
std::optional<SmpNodeInfo> ReadNodeInfo(const Mad& answer);
// Printable, up to the first zero byte.
std::string ReadNodeDescription(const Mad& answer);
// The LID in a PortInfo; nothing where a subnet manager has not given one yet, or it is none of one port (0 and from
// 0xc000 on, section 4.1.3).
std::optional<std::uint16_t> ReadLid(const Mad& answer);

// One port of this host, open for subnet management datagrams.
class SmpPort {
 public:
  SmpPort() = default;
  SmpPort(const SmpPort&) = delete;
  SmpPort& operator=(const SmpPort&) = delete;
  virtual ~SmpPort() = default;
  [[nodiscard]] virtual base::Status Send(const Mad& question) = 0;
  // The next datagram, whatever it is; kTimeout where none came in the time that one answer may take.
  [[nodiscard]] virtual base::Result<Mad> Receive() = 0;
};

// Asks three times before it gives up, with one question open at a time.
[[nodiscard]] base::Result<Mad> Exchange(SmpPort& line, SmpAttribute attribute, int port,
                                         std::uint32_t& transaction);

}  // namespace heddle::nodeagent
