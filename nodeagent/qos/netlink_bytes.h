#pragma once

#include <libmnl/libmnl.h>
#include <linux/netlink.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/printable.h"

namespace heddle::nodeagent {

// Calls use(const nlmsghdr*) for each message of a datagram, which it copies: libmnl wants its bytes aligned, and what
// comes may begin anywhere. Stops at the first that `use` fails; kInvalid where the bytes are no messages.
template <class Use>
[[nodiscard]] base::Status ForEachNetlinkMessage(std::string_view datagram, const Use& use) {
  std::vector<std::uint64_t> aligned(datagram.size() / sizeof(std::uint64_t) + 1);
  if (!datagram.empty()) std::memcpy(aligned.data(), datagram.data(), datagram.size());
  const auto* message = reinterpret_cast<const nlmsghdr*>(aligned.data());
  int left = int(datagram.size());
  // libmnl takes a length beyond 2 GiB for a negative one, and such a message for a whole one.
  while (mnl_nlmsg_ok(message, left) && message->nlmsg_len <= unsigned(left)) {
    TRY(use(message));
    message = mnl_nlmsg_next(message, &left);
  }
  if (left > 0) return base::Fail(base::Code::kInvalid, "bytes that are no netlink message");
  return {};
}

// Calls use(const nlattr*) for each attribute from `first` on up to `end`; stops at the first that `use` fails, and
// where the bytes are no attribute any more.
template <class Use>
[[nodiscard]] base::Status ForEachAttribute(const void* first, const void* end, const Use& use) {
  const auto* attribute = static_cast<const nlattr*>(first);
  const auto left = [&] {
    return int(static_cast<const char*>(end) - reinterpret_cast<const char*>(attribute));
  };
  for (; mnl_attr_ok(attribute, left()); attribute = mnl_attr_next(attribute)) TRY(use(attribute));
  return {};
}
// Of a message whose own head has `head` bytes.
template <class Use>
[[nodiscard]] base::Status ForEachAttribute(const nlmsghdr* message, std::size_t head, const Use& use) {
  return ForEachAttribute(mnl_nlmsg_get_payload_offset(message, head), mnl_nlmsg_get_payload_tail(message),
                          use);
}
template <class Use>
[[nodiscard]] base::Status ForEachNested(const nlattr* nest, const Use& use) {
  const auto* first = static_cast<const char*>(mnl_attr_get_payload(nest));
  return ForEachAttribute(first, first + mnl_attr_get_payload_len(nest), use);
}

// What ends an answer: errno, 0 where it succeeded. Nothing: the message is no end.
inline std::optional<int> NetlinkError(const nlmsghdr* message) {
  if (message->nlmsg_type == NLMSG_DONE) return 0;
  if (message->nlmsg_type != NLMSG_ERROR) return std::nullopt;
  if (mnl_nlmsg_get_payload_len(message) < sizeof(std::int32_t)) return EBADMSG;
  std::int32_t error = 0;
  std::memcpy(&error, mnl_nlmsg_get_payload(message), sizeof error);
  return error < 0 && error > -4096 ? -error : error == 0 ? 0 : EBADMSG;
}

// A name from the kernel, with or without a zero byte at its end.
inline std::string NetlinkText(const nlattr* attribute) {
  const std::string_view text(static_cast<const char*>(mnl_attr_get_payload(attribute)),
                              mnl_attr_get_payload_len(attribute));
  return formats::Printable(text.substr(0, text.find('\0')), 64);
}

}  // namespace heddle::nodeagent
