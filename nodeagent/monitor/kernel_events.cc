#include "nodeagent/monitor/kernel_events.h"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "formats/printable.h"

namespace heddle::nodeagent {
namespace {

constexpr std::size_t kAlign = 4;            // netlink pads everything to this
constexpr std::size_t kMaxTracked = 65'536;  // interfaces; a node has some hundreds

template <typename T>
std::optional<T> Take(std::string_view bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::size_t Padded(std::size_t length) {
  return (length + kAlign - 1) / kAlign * kAlign;
}

std::string_view From(std::string_view bytes, std::size_t offset) {
  return bytes.substr(std::min(offset, bytes.size()));
}

// Calls `use` with the type and the content of each attribute; false where the bytes are no attributes.
template <typename Use>
bool ForEachAttribute(std::string_view bytes, const Use& use) {
  while (!bytes.empty()) {
    const auto header = Take<rtattr>(bytes);
    if (!header || header->rta_len < sizeof(rtattr) || header->rta_len > bytes.size()) return false;
    use(header->rta_type & ~(NLA_F_NESTED | NLA_F_NET_BYTEORDER),
        bytes.substr(sizeof(rtattr), header->rta_len - sizeof(rtattr)));
    bytes = From(bytes, Padded(header->rta_len));
  }
  return true;
}

// Names from the kernel end with a zero byte.
std::string Text(std::string_view bytes) {
  return formats::Printable(bytes.substr(0, bytes.find('\0')), 64);
}

std::optional<LinkMessage> ParseLink(std::string_view body, bool gone) {
  const auto info = Take<ifinfomsg>(body);
  if (!info) return std::nullopt;
  LinkMessage link;
  link.index = info->ifi_index;
  link.gone = gone;
  link.loopback = (info->ifi_flags & IFF_LOOPBACK) != 0;
  link.up = (info->ifi_flags & IFF_UP) != 0;
  link.carrier = (info->ifi_flags & IFF_LOWER_UP) != 0;
  const bool whole =
      ForEachAttribute(From(body, Padded(sizeof(ifinfomsg))), [&](int type, std::string_view content) {
        if (type == IFLA_IFNAME) link.name = Text(content);
        if (type == IFLA_MTU) link.mtu = int(Take<std::uint32_t>(content).value_or(0) & 0x7fffffff);
        if (type == IFLA_CARRIER_CHANGES) link.carrier_changes = Take<std::uint32_t>(content).value_or(0);
        if (type == IFLA_LINK_NETNSID) link.elsewhere = true;
        if (type != IFLA_LINKINFO) return;
        (void)ForEachAttribute(content, [&](int inner, std::string_view value) {
          if (inner == IFLA_INFO_KIND) link.kind = Text(value);
        });
      });
  if (!whole || link.name.empty()) return std::nullopt;
  return link;
}

// Whether an interface may carry what we look at, or stands in a bond that does.
bool IsOurs(const LinkMessage& link) {
  constexpr std::array<std::string_view, 6> kKinds{"", "bond", "team", "vlan", "ipoib", "veth"};
  if (link.loopback || (link.kind == "veth" && link.elsewhere)) return false;
  return std::find(kKinds.begin(), kKinds.end(), link.kind) != kKinds.end();
}

std::string Changes(const LinkMessage& before, const LinkMessage& now) {
  std::vector<std::string> said;
  if (before.name != now.name) said.push_back(fmt::format("renamed from {}", before.name));
  if (before.up != now.up) said.push_back(now.up ? "set up" : "set down");
  if (before.carrier != now.carrier) said.push_back(now.carrier ? "carrier back" : "carrier lost");
  // Both ways between two messages: the state alone would hide it.
  const bool counted = now.carrier_changes > before.carrier_changes && before.carrier_changes > 0;
  if (before.carrier == now.carrier && counted)
    said.push_back(fmt::format("carrier changed {} times", now.carrier_changes - before.carrier_changes));
  if (before.mtu != now.mtu) said.push_back(fmt::format("MTU {}, was {}", now.mtu, before.mtu));
  return fmt::format("{}", fmt::join(said, ", "));
}

KernelEvent OfLink(const LinkMessage& link, std::string what) {
  // What discovery does not read changes no topology.
  const bool topology = link.kind != "veth" && link.kind != "vlan";
  return {KernelEvent::Kind::kInterface, link.name, std::move(what), topology};
}

}  // namespace

std::string_view KernelEventKindName(KernelEvent::Kind kind) {
  constexpr std::array<std::string_view, 4> kNames{"interface", "port", "device", "lost"};
  return kNames[std::size_t(kind)];
}

std::vector<KernelEvent> Coalesce(std::vector<KernelEvent> events) {
  std::vector<KernelEvent> kept;
  for (KernelEvent& event : events) {
    if (std::find(kept.begin(), kept.end(), event) != kept.end()) continue;
    if (kept.size() == kMaxEvents) {
      kept.back() = {KernelEvent::Kind::kLost, "", fmt::format("more than {} at once", kMaxEvents), true};
      break;
    }
    kept.push_back(std::move(event));
  }
  return kept;
}

LinkMessages ParseLinkMessages(std::string_view datagram) {
  LinkMessages messages;
  while (!datagram.empty()) {
    const auto header = Take<nlmsghdr>(datagram);
    if (!header || header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > datagram.size()) {
      messages.damaged = true;
      break;
    }
    const std::string_view body = datagram.substr(0, header->nlmsg_len).substr(sizeof(nlmsghdr));
    datagram = From(datagram, Padded(header->nlmsg_len));
    if (header->nlmsg_type == NLMSG_DONE) messages.done = true;
    if (header->nlmsg_type == NLMSG_ERROR) messages.error = -Take<nlmsgerr>(body).value_or(nlmsgerr{}).error;
    if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK) continue;
    auto link = ParseLink(body, header->nlmsg_type == RTM_DELLINK);
    messages.damaged = messages.damaged || !link;
    if (link) messages.links.push_back(*std::move(link));
  }
  return messages;
}

std::optional<KernelEvent> LinkTable::Apply(const LinkMessage& message) {
  const auto known = links_.find(message.index);
  if (message.gone) {
    if (known == links_.end()) return std::nullopt;
    const LinkMessage before = known->second;
    links_.erase(known);
    return OfLink(before, "interface went");
  }
  if (!IsOurs(message)) {
    if (known != links_.end()) links_.erase(known);
    return std::nullopt;
  }
  if (known == links_.end()) {
    if (links_.size() < kMaxTracked) links_.emplace(message.index, message);
    if (!complete_) return std::nullopt;
    return OfLink(message,
                  message.carrier ? "interface came, with carrier" : "interface came, without carrier");
  }
  std::string what = Changes(known->second, message);
  known->second = message;
  if (what.empty()) return std::nullopt;
  return OfLink(message, std::move(what));
}

std::optional<KernelEvent> ParseUevent(std::string_view datagram) {
  const std::size_t header = datagram.find('\0');
  // udev's own messages, on another group, begin with "libudev" and no such line.
  if (header == std::string_view::npos || datagram.substr(0, header).find('@') == std::string_view::npos)
    return std::nullopt;
  std::string action, subsystem, path, error;
  for (std::string_view rest = datagram.substr(header + 1); !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find('\0'));
    rest = From(rest, entry.size() + 1);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = entry.substr(0, equals);
    const std::string_view value = entry.substr(equals + 1);
    if (key == "ACTION") action = formats::Printable(value, 32);
    if (key == "SUBSYSTEM") subsystem = formats::Printable(value, 32);
    if (key == "DEVPATH") path = formats::Printable(value, 512);
    if (key == "ERROR_EVENT") error = formats::Printable(value, 64);
  }
  if (subsystem != "pci" && subsystem != "infiniband") return std::nullopt;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name.empty()) return std::nullopt;
  const std::string_view kind = subsystem == "pci" ? "PCI" : "RDMA";
  // pci_uevent_ers (drivers/pci/pci-driver.c): the bus tries to recover from an error.
  if (!error.empty())
    return KernelEvent{KernelEvent::Kind::kDevice, name, fmt::format("{} device: {}", kind, error), true};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kActions{
      {{"add", "came"},
       {"remove", "went"},
       {"move", "was renamed"},
       {"bind", "got its driver"},
       {"unbind", "lost its driver"}}};
  for (const auto& [word, what] : kActions) {
    if (action == word)
      return KernelEvent{KernelEvent::Kind::kDevice, name, fmt::format("{} device {}", kind, what), true};
  }
  return std::nullopt;
}

}  // namespace heddle::nodeagent
