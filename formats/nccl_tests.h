#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace heddle::formats {

// What nccl-tests measured of one size, in one of its two ways.
struct NcclTestTime {
  double micros = 0;
  double bus_gbs = 0;
  // Elements that came out wrong; nothing = not checked (-c 0, or in place where the test has no such way), or said
  // as the largest error (before 2.11), which is no count.
  std::optional<double> wrong;
  friend bool operator==(const NcclTestTime&, const NcclTestTime&) = default;
};

struct NcclTestRow {
  int line = 0;
  std::uint64_t bytes = 0;
  std::optional<NcclTestTime> out_of_place, in_place;  // one of them at least
  friend bool operator==(const NcclTestRow&, const NcclTestRow&) = default;
};

// One run of one program.
struct NcclTestTable {
  std::string program;             // "all_reduce_perf"; empty = versions before 2.17 do not say
  std::vector<std::string> hosts;  // by rank, from "# Rank 0 … on gpu-017"; empty = not said
  std::vector<NcclTestRow> rows;
  std::optional<std::int64_t> out_of_bounds;  // "# Out of bounds values"; nothing = it did not come so far
  friend bool operator==(const NcclTestTable&, const NcclTestTable&) = default;
};

struct NcclTestOutput {
  std::vector<NcclTestTable> tables;  // one at least, each with a row
  // What NCCL_DEBUG=INFO told between them of the ways that it took.
  bool sockets = false, rdma = false, gdr = false;
};

inline constexpr std::size_t kMaxNcclTestTables = 64;
inline constexpr std::size_t kMaxNcclTestRows = 4096;      // of all tables
inline constexpr std::size_t kMaxNcclTestRanks = 131'072;  // of one

// What `all_reduce_perf` and its sisters print, from any version on, one run after the other, with NCCL's own lines
// between; what `mpirun --tag-output` or `kubectl logs --prefix --timestamps` put before each line is passed over.
// Errors: kInvalid where there is no table in it, or a row of one is not as its header says, with the line; kTooLarge.
[[nodiscard]] base::Result<NcclTestOutput> ParseNcclTests(std::string_view text);

}  // namespace heddle::formats
