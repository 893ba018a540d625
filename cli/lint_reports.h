#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/lint_nics.h"
#include "crds/node_lossless.h"
#include "lossless/lint.h"

namespace heddle::cli {

// What an agent reports of ports that are alike, and what its node is told of them now.
struct LintReport {
  std::string policy;
  std::int64_t generation = 0;  // of the policy, that this speaks of; 0 = not said
  std::string port;             // the first, "gpu-017 mlx5_0:1"
  std::size_t ports = 0;
  std::optional<crds::LosslessWish> told;   // the first port; nothing = no policy selects it, or none did yet
  std::vector<lossless::Finding> findings;  // drift, and what could not be set
};

// Passes on what agents report of the policies that are looked at, and of policies that no file has, of what their
// nodes are told now. That is of this version of a policy where it would tell the port the same, whatever its
// generation: the operator keeps the number of one that tells a port nothing new. Of an earlier version, or of a policy
// that the port is not told any more, it finds nothing and says in a note that nothing is known.
// Thread rule: one thread.
class ReportLint {
 public:
  // Both outlive this, after KeepLastVersions.
  ReportLint(const std::vector<LintPolicy>& policies, const std::vector<LintPort>& ports);

  // Of one file. Appends a note for each policy.
  std::vector<lossless::Finding> Look(std::vector<LintReport> reports, std::vector<std::string>& notes) const;

 private:
  enum class Speaks : std::uint8_t { kOfThis, kOfEarlier, kOfAnother };
  Speaks OfWhat(const LintReport& report) const;
  bool TellsTheSame(const LintPolicy& policy, const std::string& port, const crds::LosslessWish& told) const;

  std::map<std::string_view, const LintPolicy*> policies_;  // by name
  std::map<std::string_view, const LintPort*> ports_;       // by name
};

}  // namespace heddle::cli
