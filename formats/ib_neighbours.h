#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::formats {

enum class IbNodeKind : std::uint8_t { kNone, kSwitch, kChannelAdapter, kRouter };

// What a directed-route NodeInfo and NodeDescription said about the other end of one port of this host.
struct IbNeighbour {
  std::string device;  // "mlx5_0"
  int port = 1;
  int lid = 0;
  IbNodeKind kind = IbNodeKind::kNone;  // kNone: nobody answered
  std::string guid;                     // "0xfc6a1c…", lower case
  std::string description;  // of the other end; with kNone why nobody answered, empty where nobody says
  std::string remote_port;
  friend bool operator==(const IbNeighbour&, const IbNeighbour&) = default;
};

struct IbNeighbours {
  std::vector<IbNeighbour> entries;   // as they stand in the file
  std::vector<std::string> problems;  // a sentence for each line that says nothing usable
};

// ib.txt of a recorded machine, one port a line:
//   mlx5_0 1 34 switch 0xfc6a1c0300ab12cd "leaf-r0" 7
//   mlx5_1 1 0 none
//   mlx5_2 1 0 none "the port is Down"
// Total: a line that cannot be read is a problem, and the others count.
IbNeighbours ParseIbNeighbours(std::string_view text);
// The recording: ParseIbNeighbours(FormatIbNeighbours(x)).entries is x, where each has a device, a port that is
// not 0 and, unless it is kNone, a GUID with "0x" and a remote port. Quotes inside a description become
// apostrophes.
std::string FormatIbNeighbours(const std::vector<IbNeighbour>& entries);

// How a switch is called: its description, or its GUID where the description is only the maker's default,
// which all switches of a fabric share.
std::string IbSwitchName(std::string_view description, std::string_view guid);

}  // namespace heddle::formats
