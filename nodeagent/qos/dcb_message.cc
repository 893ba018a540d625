#include "nodeagent/qos/dcb_message.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "formats/printable.h"
#include "nodeagent/qos/netlink_bytes.h"

namespace heddle::nodeagent {
namespace {

// One request is built in place: 512 APP entries take 4 KiB, all else 400 bytes.
class Request {
 public:
  Request(int type, int command, std::string_view netdev, std::uint32_t sequence) {
    CHECK(netdev.size() <= kMaxNetdevName);
    header_ = mnl_nlmsg_put_header(bytes_.data());
    header_->nlmsg_type = std::uint16_t(type);
    header_->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    header_->nlmsg_seq = sequence;
    auto* message = static_cast<dcbmsg*>(mnl_nlmsg_put_extra_header(header_, sizeof(dcbmsg)));
    message->dcb_family = AF_UNSPEC;
    message->cmd = std::uint8_t(command);
    const std::string name(netdev);
    mnl_attr_put_strz(header_, DCB_ATTR_IFNAME, name.c_str());
  }

  template <class T>
  void Put(int type, const T& value) {
    mnl_attr_put(header_, std::uint16_t(type), sizeof(T), &value);
  }
  void PutByte(int type, int value) { mnl_attr_put_u8(header_, std::uint16_t(type), std::uint8_t(value)); }
  nlattr* Nest(int type) { return mnl_attr_nest_start(header_, std::uint16_t(type)); }
  void End(nlattr* nest) { mnl_attr_nest_end(header_, nest); }
  void PutApps(const std::vector<DcbApp>& apps) {
    if (apps.empty()) return;
    nlattr* table = Nest(DCB_ATTR_IEEE_APP_TABLE);
    for (std::size_t i = 0; i < std::min(apps.size(), kMaxDcbApps); ++i) {
      const dcb_app app{std::uint8_t(apps[i].selector), std::uint8_t(apps[i].priority),
                        std::uint16_t(apps[i].protocol)};
      Put(apps[i].selector > IEEE_8021QAZ_APP_SEL_DSCP ? kDcbApp : int(DCB_ATTR_IEEE_APP), app);
    }
    End(table);
  }
  std::string Bytes() const {
    CHECK(header_->nlmsg_len <= bytes_.size());
    return std::string(bytes_.data(), header_->nlmsg_len);
  }

 private:
  alignas(nlmsghdr) std::array<char, 8192> bytes_{};
  nlmsghdr* header_;
};

// A structure of the answer; nothing where it is not whole.
template <class T>
base::Status Take(const nlattr* attribute, std::string_view what, std::optional<T>& value) {
  if (mnl_attr_get_payload_len(attribute) < sizeof(T)) {
    return base::Fail(base::Code::kInvalid, fmt::format("{} of {} bytes, which must be {}", what,
                                                        mnl_attr_get_payload_len(attribute), sizeof(T)));
  }
  std::memcpy(&value.emplace(), mnl_attr_get_payload(attribute), sizeof(T));
  return {};
}

base::Status TakeApps(const nlattr* table, DcbState& state) {
  const auto take = [&](const nlattr* entry) -> base::Status {
    std::optional<dcb_app> app;
    TRY(Take(entry, "an APP entry", app));
    if (state.apps.size() >= kMaxReadApps) {
      return base::Fail(base::Code::kTooLarge, fmt::format("more than {} APP entries", kMaxReadApps));
    }
    state.apps.push_back({app->selector, app->protocol, app->priority});
    return {};
  };
  TRY(ForEachNested(table, take));
  std::sort(state.apps.begin(), state.apps.end());
  state.apps.erase(std::unique(state.apps.begin(), state.apps.end()), state.apps.end());
  return {};
}

base::Status TakeTrust(const nlattr* table, DcbState& state) {
  std::vector<int>& trust = state.trust.emplace();
  return ForEachNested(table, [&](const nlattr* entry) -> base::Status {
    std::optional<std::uint8_t> selector;
    TRY(Take(entry, "a trusted selector", selector));
    if (trust.size() < 256) trust.push_back(*selector);
    return {};
  });
}

base::Status TakeIeee(const nlattr* part, DcbState& state) {
  switch (mnl_attr_get_type(part)) {
    case DCB_ATTR_IEEE_ETS:
      return Take(part, "ETS", state.ets);
    case DCB_ATTR_IEEE_PFC:
      return Take(part, "PFC", state.pfc);
    case DCB_ATTR_IEEE_MAXRATE:
      return Take(part, "rates", state.max_rate);
    case DCB_ATTR_DCB_BUFFER:
      return Take(part, "buffers", state.buffer);
    case DCB_ATTR_IEEE_APP_TABLE:
      return TakeApps(part, state);
    case kIeeeAppTrustTable:
      return TakeTrust(part, state);
    default:
      return {};  // what peers say, QCN
  }
}

base::Status TakeMessage(const nlmsghdr* message, DcbAnswer& answer) {
  if (mnl_nlmsg_get_payload_len(message) < sizeof(dcbmsg)) {
    return base::Fail(base::Code::kInvalid, "a message without its head");
  }
  const auto command = static_cast<const dcbmsg*>(mnl_nlmsg_get_payload(message))->cmd;
  const bool asked = command == DCB_CMD_IEEE_GET || command == DCB_CMD_GDCBX;
  if (asked) answer.state.emplace();
  return ForEachAttribute(message, sizeof(dcbmsg), [&](const nlattr* attribute) -> base::Status {
    const int type = mnl_attr_get_type(attribute);
    if (type != DCB_ATTR_IEEE && type != DCB_ATTR_DCBX) return {};
    if (asked && type == DCB_ATTR_IEEE)
      return ForEachNested(attribute, [&](const nlattr* part) { return TakeIeee(part, *answer.state); });
    std::optional<std::uint8_t> byte;
    TRY(Take(attribute, "the outcome", byte));
    if (asked) {
      answer.state->dcbx = *byte;
    } else {
      answer.refusal = type == DCB_ATTR_DCBX ? int(*byte) : -int(std::int8_t(*byte));
    }
    return {};
  });
}

}  // namespace

std::string AskDcb(std::string_view netdev, std::uint32_t sequence) {
  return Request(RTM_GETDCB, DCB_CMD_IEEE_GET, netdev, sequence).Bytes();
}

std::string AskDcbx(std::string_view netdev, std::uint32_t sequence) {
  return Request(RTM_GETDCB, DCB_CMD_GDCBX, netdev, sequence).Bytes();
}

std::string SetDcb(std::string_view netdev, std::uint32_t sequence, const DcbChange& change) {
  Request request(RTM_SETDCB, DCB_CMD_IEEE_SET, netdev, sequence);
  nlattr* nest = request.Nest(DCB_ATTR_IEEE);
  if (change.ets) request.Put(DCB_ATTR_IEEE_ETS, *change.ets);
  if (change.max_rate) request.Put(DCB_ATTR_IEEE_MAXRATE, *change.max_rate);
  if (change.buffer) request.Put(DCB_ATTR_DCB_BUFFER, *change.buffer);
  if (change.pfc) request.Put(DCB_ATTR_IEEE_PFC, *change.pfc);
  request.PutApps(change.apps);
  if (change.trust) {
    nlattr* table = request.Nest(kIeeeAppTrustTable);
    for (const int selector : *change.trust)
      request.PutByte(selector > IEEE_8021QAZ_APP_SEL_DSCP ? kDcbApp : int(DCB_ATTR_IEEE_APP), selector);
    request.End(table);
  }
  request.End(nest);
  return request.Bytes();
}

std::string DeleteDcbApps(std::string_view netdev, std::uint32_t sequence, const std::vector<DcbApp>& apps) {
  Request request(RTM_SETDCB, DCB_CMD_IEEE_DEL, netdev, sequence);
  nlattr* nest = request.Nest(DCB_ATTR_IEEE);
  request.PutApps(apps);
  request.End(nest);
  return request.Bytes();
}

std::string SetDcbx(std::string_view netdev, std::uint32_t sequence, int flags) {
  Request request(RTM_SETDCB, DCB_CMD_SDCBX, netdev, sequence);
  request.PutByte(DCB_ATTR_DCBX, flags);
  return request.Bytes();
}

base::Status TakeDcb(std::string_view datagram, std::uint32_t sequence, DcbAnswer& answer) {
  return ForEachNetlinkMessage(datagram, [&](const nlmsghdr* message) -> base::Status {
    if (message->nlmsg_seq != sequence) return {};
    if (const auto error = NetlinkError(message)) {
      answer.done = true;
      answer.error = *error;
      return {};
    }
    if (message->nlmsg_type != RTM_GETDCB && message->nlmsg_type != RTM_SETDCB) return {};
    return TakeMessage(message, answer);
  });
}

std::vector<std::string> ChangedByDcb(std::string_view datagram) {
  std::vector<std::string> netdevs;
  (void)ForEachNetlinkMessage(datagram, [&](const nlmsghdr* message) -> base::Status {
    const bool dcb = message->nlmsg_type == RTM_GETDCB || message->nlmsg_type == RTM_SETDCB;
    if (!dcb || mnl_nlmsg_get_payload_len(message) < sizeof(dcbmsg)) return {};
    return ForEachAttribute(message, sizeof(dcbmsg), [&](const nlattr* attribute) -> base::Status {
      if (mnl_attr_get_type(attribute) != DCB_ATTR_IFNAME) return {};
      std::string name = NetlinkText(attribute);
      if (!name.empty() && std::find(netdevs.begin(), netdevs.end(), name) == netdevs.end())
        netdevs.push_back(std::move(name));
      return {};
    });
  });
  return netdevs;
}

}  // namespace heddle::nodeagent
