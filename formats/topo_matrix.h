#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/node.h"

namespace heddle::formats {

struct TopoGpu {
  int index = 0;     // 3 of "GPU3"
  std::string cpus;  // "0-31,64-95"; empty = not said
  topology::Fact<int> numa;
  std::vector<int> nvlinks;                      // to each GPU, by position: 18 of "NV18"; 0 = none
  std::vector<topology::PciDistance> distances;  // to each NIC, by position
  friend bool operator==(const TopoGpu&, const TopoGpu&) = default;
};

// One machine as `nvidia-smi topo -m` draws it.
struct TopoMatrix {
  std::vector<TopoGpu> gpus;  // sorted by index
  std::vector<std::string>
      nics;  // "mlx5_0": by the legend, or as the column is called; in the columns' order
  // What contradicts itself in it, as sentences: a pair of GPUs whose NVLinks differ by direction.
  std::vector<std::string> problems;
};

// Cells may be parted by tabs, as the tool writes them, or by blanks, as they come out of a mail; colours and
// underlines are passed over. Drivers before 515 call the columns mlx5_0, later ones NIC0 with a legend.
// Errors: kInvalid with the line.
[[nodiscard]] base::Result<TopoMatrix> ParseTopoMatrix(std::string_view text);

}  // namespace heddle::formats
