#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "nodeagent/leaf/smp.h"

namespace heddle::nodeagent {

// Performance management datagrams: what a port has counted. InfiniBand Architecture Specification, volume 1, section
// 16.1; they go by LID to queue pair 1, as all general services (13.4). We never send anything but Get: a Set would
// clear the counters under whoever else reads them.
enum class PmaAttribute : std::uint16_t {
  kClassPortInfo = 0x0001,
  kPortCounters = 0x0012,          // of 4 to 32 bits, which stop at their largest number
  kPortCountersExtended = 0x001d,  // of 64 bits
};

// Get(attribute) of `port` (1-254) of whichever node it is sent to; kClassPortInfo is of the node.
Mad AskCounters(PmaAttribute attribute, int port, std::uint32_t transaction);
// As Answers of smp.h, of such a question.
bool AnswersCounters(const Mad& answer, const Mad& question);

// What a node's performance management can do.
struct PmaAbilities {
  bool extended_errors = false;  // PortCountersExtended has the errors, too, and not only the traffic
  bool transmit_wait = false;    // PortCounters has the ticks without credit
  friend bool operator==(const PmaAbilities&, const PmaAbilities&) = default;
};
PmaAbilities ReadClassPortInfo(const Mad& answer);

struct PmaCount {
  std::string_view name;  // as Linux calls the file of it in ports/N/counters; it lives for ever
  std::uint64_t value = 0;
  friend bool operator==(const PmaCount&, const PmaCount&) = default;
};
// The counters of links and of congestion, of those in the answer; traffic in packets only. Nothing where the answer is
// of another port than `port`.
std::optional<std::vector<PmaCount>> ReadCounters(const Mad& answer, PmaAttribute attribute, int port,
                                                  const PmaAbilities& abilities);
// The name as ReadCounters has it; empty where it never has such.
std::string_view FindPmaCount(std::string_view name);
// Whether the counter stands still while nothing is wrong, as those of traffic do not.
bool StandsStill(std::string_view name);

}  // namespace heddle::nodeagent
