#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/fabrics.h"
#include "cli/output.h"
#include "kube/client.h"

namespace heddle::cli {

// `kubectl heddle cables`: a row for each port that carries jobs, for whoever stands before the rack. What is wrong is
// what the fabric's assembly finds, as the operator's does.

struct CablesOptions {
  std::string node;  // empty = all
  bool problems = false, csv = false;
  std::vector<std::string> topology;  // files in place of a cluster
};

enum class CableVerdict : std::uint8_t {
  kSwapped,
  kWrongRail,
  kWrongLeaf,
  kContradiction,  // two ports say that they are on one, or a leaf is not what it is declared for
  kDown,
  kAmbiguous,
  kStale,
  kUnknown,
  kNotJudged,  // nothing is expected there
  kOk,
};
std::string_view CableVerdictName(CableVerdict verdict);  // "swapped", "wrong rail", …
// Somebody has to go there; of the rest between these and kNotJudged nobody knows.
inline bool IsFault(CableVerdict verdict) {
  return verdict <= CableVerdict::kDown;
}
inline bool IsProblem(CableVerdict verdict) {
  return verdict < CableVerdict::kNotJudged;
}

struct CableRow {
  CableVerdict verdict = CableVerdict::kOk;
  std::string node, nic, netdev;
  int port = 1;
  std::optional<int> rail;       // of the NIC, by its GPU
  std::string expected_leaf;     // empty = nothing is expected
  std::string leaf, leaf_port;   // where the cable ends; empty = not known
  std::optional<int> leaf_rail;  // of the leaf, where it has one
  std::string swapped_with;      // "gpu-017 mlx5_4 on su1-r3 port 18"
  std::string sentence;  // of the fault, with both ends, or why the port is down or its leaf not known
  friend bool operator==(const CableRow&, const CableRow&) = default;
};

// The worst first, then by node and port. Pure and total.
std::vector<CableRow> ReadCables(const FabricReading& reading);

crds::Json CablesJson(const std::vector<CableRow>& rows);
std::string CablesCsv(const std::vector<CableRow>& rows);  // RFC 4180, with a header
std::string CablesText(const std::vector<CableRow>& rows, const Style& style);

// Exit codes: 0 no cable is wrong and no port down, 3 one is, 1 the cluster could not be asked.
Output RunCables(kube::Client& client, const CablesOptions& options, const OutputOptions& look,
                 const std::stop_token& stop);
// The same of options.topology; 2 where the files cannot be read, or know nothing of it.
Output ShowCables(const CablesOptions& options, const ReadFile& read, const OutputOptions& look);

}  // namespace heddle::cli
