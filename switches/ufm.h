#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "switches/port_counters.h"

namespace heddle::switches {

// What NVIDIA UFM Enterprise says of an InfiniBand fabric over REST: the second witness of cables to hosts, and the
// only one of cables between switches, which no host sees. Shapes are those of the NVIDIA UFM Enterprise REST API Guide
// (docs.nvidia.com/networking/display/ufmenterpriserestapi; v6.9 to v6.24): "Ports REST API", "Monitoring REST API",
// and of what NVIDIA's own plugins read (Mellanox/ufm_sdk_3.0, plugins/pdr_deterministic_plugin and
// plugins/UFM_NDT_Plugin/ufm_plugin_ndt/topoparse/data/ufm_samples). Only GET is ever sent.

// Under /ufmRest, or /ufmRestV3 for who has a token.
inline constexpr std::string_view kUfmPorts = "/resources/ports";
// Of the session that UFM keeps itself: its port counters, about every 30 s.
inline constexpr std::string_view kUfmCounters = "/monitoring/session/0/data";

// Ports of all pages; more are left out.
inline constexpr std::size_t kMaxUfmPorts = 262'144;

// A port of a switch.
struct UfmPort {
  std::string name;         // "1c34da0300728606_1": GUID and number, as counters are named by
  std::string guid;         // of its switch, 16 hexadecimal digits
  std::string system;       // name of its switch; its GUID where UFM has none
  int number = 0;           // as the switch counts, from 1
  std::string peer;         // name of the port at the other end; empty = nothing there, or nobody knows
  std::string peer_system;  // name of the host or switch there
  // Of a host "luna-0001 mlx5_10", of a switch "SLG02-07:6".
  std::string peer_description;
  friend bool operator==(const UfmPort&, const UfmPort&) = default;
};

struct UfmPortPage {
  std::vector<UfmPort> ports;  // of switches only
  std::size_t entries = 0;     // of any kind
  std::size_t unread = 0;      // of them: what is no port, or has no name
  bool more = false;           // UFM has more pages
  friend bool operator==(const UfmPortPage&, const UfmPortPage&) = default;
};

// "/resources/ports?page_number=1&rpp=1000"; `page` from 1.
std::string UfmPortsTarget(int page);
// One answer to that: a list, which is all there is (a UFM that does not know pages), or {"data": [...],
// "filtered_resources": n}. Errors: kInvalid where it is neither.
[[nodiscard]] base::Result<UfmPortPage> ReadUfmPorts(std::string_view body, int page);

struct UfmCounters {
  std::string taken;                          // when UFM took them, as it says
  std::map<std::string, PortCounters> ports;  // by UfmPort::name; hosts' ports are in it, too
  std::size_t unread = 0;                     // entries that have no counter that can be read
  friend bool operator==(const UfmCounters&, const UfmCounters&) = default;
};

// {"2026-11-25 16:00:30": {"Port": {"1c34da0300728606_1": {"statistics": {"Infiniband_LinkDowned": 3, ...}}}}}; of
// several times the last. A counter that is missing, negative or no whole number is nothing. Errors: kInvalid where it
// has another shape, kTooLarge where it has more values than all ports could.
[[nodiscard]] base::Result<UfmCounters> ReadUfmCounters(std::string_view body);

// Of each switch, by UfmPort::guid (a director has several, and each counts its ports from 1), a sample that names
// ports by their numbers. What no port of `ports` has is left out.
std::map<std::string, CounterSample> SamplesOf(const std::vector<UfmPort>& ports, UfmCounters counters,
                                               base::MonotonicTime at);

}  // namespace heddle::switches
