#pragma once

#include <cstdint>
#include <optional>

namespace heddle::lossless {

// How much a port must still be able to hold after it has asked for a pause, so that nothing is lost until the other
// end has stopped. IEEE 802.1Qbb lists what comes in the meantime, and SONiC publishes it as a formula for one priority
// (sonic-net/SONiC, doc/qos, "The well-known formula"; sonic-swss, cfgmgr/buffer_headroom_mellanox.lua):
//
//   delay = port MTU                    a frame that we have begun; the pause waits behind it
//         + 2 × cable                   the pause goes there, and what was under way comes here
//         + MAC and PHY                 of both ends
//         + response of the other end   pause quanta of 512 bits by speed, IEEE 802.3, 31B.3.7
//   xoff  = lossless MTU + delay × cell factor
//   xon   = pipeline                    what is in the chip already when the queue counts as full
//
// The cell factor is for packets that are a little larger than a buffer cell and so take two.

// Of a switch chip, as its maker publishes it.
struct Asic {
  int cell_bytes = 0;      // at least 1
  int mac_phy_bytes = 0;   // that pass while both MACs and PHYs work
  int pipeline_bytes = 0;  // that pass before a full queue has asked for the pause
  friend bool operator==(const Asic&, const Asic&) = default;
};

// A port, and the cable on it.
struct HeadroomOf {
  int speed_mbps = 0;    // 1 to 1,600,000
  int cable_metres = 0;  // 0 to 100,000
  int port_mtu = 0;      // largest frame that the port may be sending, bytes
  int lossless_mtu = 0;  // largest frame of the lossless class, bytes
  // Of all lossless packets so many are as small as can be. SONiC's LOSSLESS_TRAFFIC_PATTERN ships 100.
  int small_packet_percent = 100;
  friend bool operator==(const HeadroomOf&, const HeadroomOf&) = default;
};

struct Headroom {
  std::int64_t xoff_bytes = 0;  // held after the pause was asked for
  std::int64_t xon_bytes = 0;
  std::int64_t size_bytes() const { return xoff_bytes + xon_bytes; }
  friend bool operator==(const Headroom&, const Headroom&) = default;
};

// Pause quanta that a port of this speed may take to stop (IEEE 802.3, 31B.3.7, as SONiC has them); nothing for a
// speed that the table lacks: a guess would be a buffer too small.
std::optional<int> ResponseQuanta(int speed_mbps);

// Rounded up to KiB, as SONiC does. Nothing where ResponseQuanta has nothing, or a number is out of its range.
std::optional<Headroom> HeadroomFor(const HeadroomOf& port, const Asic& asic);

// The least that the formula gives for any chip, in bytes: packets fill their cells, MACs, PHYs and the chip take no
// time, and lossless frames have 1,024 bytes, as SONiC's LOSSLESS_TRAFFIC_PATTERN ships them. Of the same speeds and
// ranges as HeadroomFor; never more than it has for frames of that size or larger.
std::optional<std::int64_t> LeastXoff(int speed_mbps, int cable_metres, int port_mtu);

}  // namespace heddle::lossless
