#include "nodeagent/leaf/smp.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

// Offsets and values of the header, sections 13.4.3 and 14.2.1.2.
constexpr std::size_t kClass = 1, kMethod = 3, kStatus = 4, kHopCount = 7, kTransaction = 8, kAttribute = 16;
constexpr std::size_t kFirstLid = 32, kLidBytes = 4, kData = 64, kInitialPath = 128;
constexpr std::uint8_t kDirectedRoute = 0x81, kGet = 0x01, kGetResponse = 0x81, kVersion = 1;
constexpr unsigned kBusy = 1, kStatusMask = 0x7fff;  // the top bit is the direction
constexpr std::size_t kDescriptionBytes = 64;
constexpr int kTries = 3;   // as opensm's default
constexpr int kStrays = 4;  // late answers to earlier questions; more is somebody who floods us

void Put(Mad& mad, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) mad[at + i] = std::uint8_t(value >> (8 * (bytes - 1 - i)));
}

std::uint64_t Take(const Mad& mad, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | mad[at + i];
  return value;
}

unsigned StatusOf(const Mad& mad) {
  return unsigned(Take(mad, kStatus, 2)) & kStatusMask;
}

// Waits for the answer to `question`, past those to questions that were given up.
base::Result<Mad> Await(SmpPort& line, const Mad& question) {
  for (int i = 0; i < kStrays; ++i) {
    ASSIGN_OR_RETURN(const Mad got, line.Receive());
    if (Answers(got, question)) return got;
  }
  return base::Fail(base::Code::kTimeout, "only answers to other questions came");
}

}  // namespace

Mad AskNeighbour(SmpAttribute attribute, int port, std::uint32_t transaction) {
  Mad mad{};
  mad[0] = kVersion;
  mad[kClass] = kDirectedRoute;
  mad[2] = kVersion;
  mad[kMethod] = kGet;
  mad[kHopCount] = 1;
  Put(mad, kTransaction, transaction, 8);
  Put(mad, kAttribute, std::uint64_t(attribute), 2);
  Put(mad, kFirstLid, 0xffffffff, kLidBytes);  // both LIDs permissive: the whole way is directed
  mad[kInitialPath + 1] = std::uint8_t(port);
  return mad;
}

bool Answers(const Mad& answer, const Mad& question) {
  return answer[kClass] == kDirectedRoute && answer[kMethod] == kGetResponse &&
         Take(answer, kTransaction + 4, 4) == Take(question, kTransaction + 4, 4) &&
         Take(answer, kAttribute, 2) == Take(question, kAttribute, 2);
}

std::string WhyRefused(const Mad& answer) {
  const unsigned status = StatusOf(answer);
  if (status == 0) return {};
  return fmt::format("the other end refused the question with MAD status {:#06x}{}", status,
                     (status & kBusy) != 0 ? " (busy)" : "");
}

std::optional<SmpNodeInfo> ReadNodeInfo(const Mad& answer) {
  using Kind = formats::IbNodeKind;
  constexpr std::array<Kind, 4> kKinds{Kind::kNone, Kind::kChannelAdapter, Kind::kSwitch, Kind::kRouter};
  const std::size_t kind = answer[kData + 2];
  const SmpNodeInfo info{kind < kKinds.size() ? kKinds[kind] : Kind::kNone, Take(answer, kData + 12, 8),
                         int(answer[kData + 36])};
  const bool sound =
      info.kind != Kind::kNone && info.guid != 0 && info.port > 0 && info.port <= answer[kData + 3];
  return sound ? std::optional(info) : std::nullopt;
}

std::string ReadNodeDescription(const Mad& answer) {
  const auto begin = answer.begin() + kData;
  const auto end = std::find(begin, begin + kDescriptionBytes, 0);
  return formats::Printable(std::string(begin, end));
}

std::optional<std::uint16_t> ReadLid(const Mad& answer) {
  constexpr std::uint64_t kLastUnicast = 0xbfff;
  const std::uint64_t lid = Take(answer, kData + 16, 2);
  return lid > 0 && lid <= kLastUnicast ? std::optional(std::uint16_t(lid)) : std::nullopt;
}

base::Result<Mad> Exchange(SmpPort& line, SmpAttribute attribute, int port, std::uint32_t& transaction) {
  base::Error last;
  for (int i = 0; i < kTries; ++i) {
    const Mad question = AskNeighbour(attribute, port, ++transaction);
    TRY(line.Send(question));
    auto answer = Await(line, question);
    if (answer && (StatusOf(*answer) & kBusy) == 0) return answer;
    last = answer ? base::Error{base::Code::kUnavailable, WhyRefused(*answer), std::nullopt} : answer.error();
    if (!answer && last.code != base::Code::kTimeout) break;
  }
  return base::Fail(std::move(last));
}

}  // namespace heddle::nodeagent
