#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace heddle::test {

template <class T>
std::string BytesOf(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string Padded(std::string bytes) {
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

// One netlink attribute; nests are attributes of attributes.
inline std::string Attribute(int type, std::string_view content) {
  const nlattr head{std::uint16_t(sizeof(nlattr) + content.size()), std::uint16_t(type)};
  return Padded(BytesOf(head) + std::string(content));
}

inline std::string Message(int type, std::uint32_t sequence, std::string_view content) {
  nlmsghdr head{};
  head.nlmsg_len = std::uint32_t(sizeof head + content.size());
  head.nlmsg_type = std::uint16_t(type);
  head.nlmsg_seq = sequence;
  return Padded(BytesOf(head) + std::string(content));
}

// NLMSG_ERROR; `error`: errno, 0 acknowledges.
inline std::string Ending(std::uint32_t sequence, int error) {
  nlmsgerr content{};
  content.error = -error;
  return Message(NLMSG_ERROR, sequence, BytesOf(content));
}

}  // namespace heddle::test
