#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/lint_nics.h"
#include "crds/node_lossless.h"
#include "lossless/lint.h"

namespace heddle::cli {

// Which version of its policy an agent's report is of: of the one that is looked at, of an earlier one, or of a policy
// that is not told there any more.
enum class Speaks : std::uint8_t { kOfThis, kOfEarlier, kOfAnother };

// A number that nobody said is no other one.
bool GenerationsDiffer(std::int64_t one, std::int64_t other);

// What is reported of another version or policy than is looked at: of this one nothing is known there yet. Thread rule:
// one thread.
class OutdatedReports {
 public:
  explicit OutdatedReports(std::string_view kind) : kind_(kind) {}  // "LosslessPolicy", a literal

  // `first`: of `count` that are alike, "gpu-017 mlx5_0:1". Speaks of another than kOfThis.
  void Add(const std::string& policy, Speaks speaks, const std::string& first, std::size_t count);
  // One for each policy and what is spoken of.
  void AppendNotes(std::vector<std::string>& notes) const;

 private:
  struct Alike {
    std::string first;
    std::size_t count = 0;
  };
  std::string_view kind_;
  std::map<std::pair<std::string, Speaks>, Alike> alike_;  // by policy
};

// What an agent reports of ports that are alike, and what its node is told of them now.
struct LintReport {
  crds::PolicyEdition edition;  // that this speaks of
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
  Speaks OfWhat(const LintReport& report) const;
  bool TellsTheSame(const LintPolicy& policy, const std::string& port, const crds::LosslessWish& told) const;

  std::map<std::string_view, const LintPolicy*> policies_;  // by name
  std::map<std::string_view, const LintPort*> ports_;       // by name
};

}  // namespace heddle::cli
