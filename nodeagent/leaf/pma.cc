#include "nodeagent/leaf/pma.h"

#include <algorithm>
#include <array>

namespace heddle::nodeagent {
namespace {

// Offsets and values of the header, section 13.4.3; the attribute's data begin at byte 64 (16.1.1).
constexpr std::size_t kClass = 1, kMethod = 3, kTransaction = 8, kAttribute = 16, kData = 64;
constexpr std::uint8_t kPerformance = 0x04, kGet = 0x01, kGetResponse = 0x81, kVersion = 1;
constexpr std::size_t kPortSelect = kData + 1;

// Where a counter stands, in bits from the attribute's first: tables 16.1.3.5 (PortCounters) and 16.1.4.11
// (PortCountersExtended, whose errors are the additional ones of CapabilityMask2).
struct Field {
  std::string_view name;
  std::size_t at, bits;  // of PortCounters
  std::size_t extended;  // of PortCountersExtended, where each has 64 bits
  bool stands_still;
};
constexpr auto kFields = std::to_array<Field>({
    {"symbol_error", 32, 16, 576, true},
    {"link_error_recovery", 48, 8, 640, true},
    {"link_downed", 56, 8, 704, true},
    {"port_rcv_errors", 64, 16, 768, true},
    {"port_rcv_remote_physical_errors", 80, 16, 832, true},
    {"port_xmit_discards", 112, 16, 960, true},
    {"local_link_integrity_errors", 152, 4, 1152, true},
    {"excessive_buffer_overrun_errors", 156, 4, 1216, true},
    {"port_xmit_packets", 256, 32, 192, false},
    {"port_xmit_wait", 320, 32, 1344, false},
});
constexpr std::string_view kTransmitWait = "port_xmit_wait";

void Put(Mad& mad, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) mad[at + i] = std::uint8_t(value >> (8 * (bytes - 1 - i)));
}

// `bits` from bit `at` of the data on, the first being the highest.
std::uint64_t Bits(const Mad& mad, std::size_t at, std::size_t bits) {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + bits; ++i) value = value << 1 | (mad[kData + i / 8] >> (7 - i % 8) & 1U);
  return value;
}

const Field* Find(std::string_view name) {
  const auto field =
      std::find_if(kFields.begin(), kFields.end(), [name](const Field& one) { return one.name == name; });
  return field == kFields.end() ? nullptr : &*field;
}

}  // namespace

Mad AskCounters(PmaAttribute attribute, int port, std::uint32_t transaction) {
  Mad mad{};
  mad[0] = kVersion;
  mad[kClass] = kPerformance;
  mad[2] = kVersion;
  mad[kMethod] = kGet;
  Put(mad, kTransaction, transaction, 8);
  Put(mad, kAttribute, std::uint64_t(attribute), 2);
  if (attribute != PmaAttribute::kClassPortInfo) mad[kPortSelect] = std::uint8_t(port);
  return mad;
}

bool AnswersCounters(const Mad& answer, const Mad& question) {
  return answer[kClass] == kPerformance && answer[kMethod] == kGetResponse &&
         std::equal(answer.begin() + kTransaction + 4, answer.begin() + kAttribute + 2,
                    question.begin() + kTransaction + 4);
}

PmaAbilities ReadClassPortInfo(const Mad& answer) {
  // CapabilityMask, bit 9: PortCountersExtended; 10: the same without counts of unicast and multicast; 12:
  // PortXmitWait. CapabilityMask2 (the 27 bits after it), bit 1: additional counters in PortCountersExtended.
  const std::uint64_t mask = Bits(answer, 16, 16), mask2 = Bits(answer, 32, 27);
  const bool extended = (mask >> 9 & 1U) != 0 || (mask >> 10 & 1U) != 0;
  return {extended && (mask2 >> 1 & 1U) != 0, (mask >> 12 & 1U) != 0};
}

std::optional<std::vector<PmaCount>> ReadCounters(const Mad& answer, PmaAttribute attribute, int port,
                                                  const PmaAbilities& abilities) {
  if (answer[kPortSelect] != port) return std::nullopt;
  const bool extended = attribute == PmaAttribute::kPortCountersExtended;
  std::vector<PmaCount> counts;
  for (const Field& field : kFields) {
    if (!extended && field.name == kTransmitWait && !abilities.transmit_wait) continue;
    counts.push_back(
        {field.name, extended ? Bits(answer, field.extended, 64) : Bits(answer, field.at, field.bits)});
  }
  return counts;
}

std::string_view FindPmaCount(std::string_view name) {
  const Field* field = Find(name);
  return field == nullptr ? std::string_view() : field->name;
}

bool StandsStill(std::string_view name) {
  const Field* field = Find(name);
  return field != nullptr && field->stands_still;
}

}  // namespace heddle::nodeagent
