#pragma once

#include <linux/dcbnl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace heddle::nodeagent {

// dcbnl as bytes and values: RTM_GETDCB and RTM_SETDCB of rtnetlink (Linux, net/dcb/dcbnl.c). Numbers and structures
// are those of linux/dcbnl.h. Pure.

// Linux 6.3; the header of Debian 12 ends before them.
inline constexpr int kIeeeAppTrustTable = 11;  // DCB_ATTR_IEEE_APP_TRUST_TABLE
inline constexpr int kDcbApp = 2;              // DCB_ATTR_DCB_APP: selectors that no standard has
inline constexpr int kSelectPcp = 255;         // DCB_APP_SEL_PCP

inline constexpr std::size_t kMaxNetdevName = 15;   // linux/if.h, IFNAMSIZ without the zero byte
inline constexpr std::size_t kMaxDcbApps = 512;     // 64 DSCPs of 8 priorities: what one message carries
inline constexpr std::size_t kMaxReadApps = 4'096;  // of an answer; beyond it is no table of any NIC

// One entry of the APP table: packets that `selector` finds by `protocol` have `priority`. With
// IEEE_8021QAZ_APP_SEL_DSCP the protocol is a DSCP.
struct DcbApp {
  int selector = 0;
  int protocol = 0;
  int priority = 0;
  friend bool operator==(const DcbApp&, const DcbApp&) = default;
  friend bool operator<(const DcbApp& a, const DcbApp& b) {
    return std::tie(a.selector, a.protocol, a.priority) < std::tie(b.selector, b.protocol, b.priority);
  }
};

// What an interface is set to. Nothing = its driver does not have it.
struct DcbState {
  std::optional<ieee_ets> ets;
  std::optional<ieee_pfc> pfc;
  std::optional<ieee_maxrate> max_rate;  // kbit/s by class
  std::optional<dcbnl_buffer> buffer;
  std::optional<std::vector<int>> trust;  // selectors, the one that counts most first; kernels from 6.3 on
  std::vector<DcbApp> apps;               // sorted, each once
  std::optional<int> dcbx;                // DCB_CAP_DCBX_* together
};

// What is to be set, in one message. The kernel takes its parts in the order of the members and stops at the first
// that fails, without saying which.
struct DcbChange {
  std::optional<ieee_ets> ets;
  std::optional<ieee_maxrate> max_rate;
  std::optional<dcbnl_buffer> buffer;
  std::optional<ieee_pfc> pfc;
  std::vector<DcbApp> apps;  // at most kMaxDcbApps are sent
  std::optional<std::vector<int>> trust;
};

// Requests; `netdev` of at most kMaxNetdevName characters. `sequence` is what the answer repeats.
std::string AskDcb(std::string_view netdev, std::uint32_t sequence);
std::string AskDcbx(std::string_view netdev, std::uint32_t sequence);
std::string SetDcb(std::string_view netdev, std::uint32_t sequence, const DcbChange& change);
std::string DeleteDcbApps(std::string_view netdev, std::uint32_t sequence, const std::vector<DcbApp>& apps);
std::string SetDcbx(std::string_view netdev, std::uint32_t sequence, int flags);

// What the datagrams said so far.
struct DcbAnswer {
  bool done = false;              // the kernel has nothing more to say
  int error = 0;                  // then: errno, or 0
  std::optional<DcbState> state;  // of AskDcb and AskDcbx
  // errno of the driver, which it says in a signed byte beside the message's own (524, ENOTSUPP, arrives as 12); of
  // SetDcbx 0, or not where it was refused.
  std::optional<int> refusal;
};
// Adds one datagram. Messages of another sequence are passed over. Total; kInvalid: a structure that is cut short,
// which the message names; kTooLarge: more entries than kMaxReadApps.
[[nodiscard]] base::Status TakeDcb(std::string_view datagram, std::uint32_t sequence, DcbAnswer& answer);

// The interfaces that a datagram of the group RTNLGRP_DCB says were changed, each once. Total.
std::vector<std::string> ChangedByDcb(std::string_view datagram);

}  // namespace heddle::nodeagent
