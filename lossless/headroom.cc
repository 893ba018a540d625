#include "lossless/headroom.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace heddle::lossless {
namespace {

constexpr double kLightInFibre =
    198'000'000;                       // m/s, as SONiC has it: 0.66 of that in vacuum, and so in copper
constexpr double kSmallestFrame = 64;  // IEEE 802.3
constexpr double kBytesPerQuantum = 512.0 / 8;

struct Response {
  int speed_mbps = 0;
  int quanta = 0;
};
// 800 Gb/s has no row in the standard's table yet: SONiC takes that of 400.
constexpr std::array kResponses{Response{10'000, 67},   Response{25'000, 80},   Response{40'000, 118},
                                Response{50'000, 147},  Response{100'000, 394}, Response{200'000, 453},
                                Response{400'000, 905}, Response{800'000, 905}};

// What of a cell is lost at worst. Cells of more than two smallest frames are worst filled by one such frame.
double WorstCell(double cell) {
  return cell > 2 * kSmallestFrame ? cell / kSmallestFrame : 2 * cell / (1 + cell);
}

std::int64_t InKiB(double bytes) {
  return std::int64_t(std::ceil(bytes / 1024)) * 1024;
}

}  // namespace

std::optional<int> ResponseQuanta(int speed_mbps) {
  const auto found = std::find_if(kResponses.begin(), kResponses.end(), [&](const Response& response) {
    return response.speed_mbps == speed_mbps;
  });
  if (found == kResponses.end()) return std::nullopt;
  return found->quanta;
}

std::optional<Headroom> HeadroomFor(const HeadroomOf& port, const Asic& asic) {
  constexpr int kMaxMetres = 100'000, kMaxFrame = 65'535, kMaxChip = 1 << 20;
  const auto quanta = ResponseQuanta(port.speed_mbps);
  const auto within = [](int value, int least, int most) { return value >= least && value <= most; };
  if (!quanta || !within(port.cable_metres, 0, kMaxMetres) || !within(port.port_mtu, 64, kMaxFrame) ||
      !within(port.lossless_mtu, 64, kMaxFrame) || !within(port.small_packet_percent, 0, 100) ||
      !within(asic.cell_bytes, 1, kMaxChip) || !within(asic.mac_phy_bytes, 0, kMaxChip) ||
      !within(asic.pipeline_bytes, 0, kMaxChip)) {
    return std::nullopt;
  }
  const double bytes_per_second = double(port.speed_mbps) * 1e6 / 8;
  const double cable = double(port.cable_metres) / kLightInFibre * bytes_per_second;
  const double delay = port.port_mtu + 2 * cable + asic.mac_phy_bytes + *quanta * kBytesPerQuantum;
  const double small = port.small_packet_percent / 100.0;
  const double factor = 1 - small + small * WorstCell(asic.cell_bytes);
  return Headroom{InKiB(port.lossless_mtu + delay * factor), InKiB(asic.pipeline_bytes)};
}

std::optional<std::int64_t> LeastXoff(int speed_mbps, int cable_metres, int port_mtu) {
  constexpr int kLosslessFrame = 1024;
  constexpr Asic kAny{1, 0, 0};  // cells of one byte are always full
  const auto least =
      HeadroomFor({speed_mbps, cable_metres, port_mtu, std::min(kLosslessFrame, port_mtu), 0}, kAny);
  if (!least) return std::nullopt;
  return least->xoff_bytes;
}

}  // namespace heddle::lossless
