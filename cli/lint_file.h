#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cluster_files.h"
#include "cli/lint_devices.h"
#include "cli/lint_nics.h"
#include "cli/lint_reports.h"
#include "lossless/lint.h"

namespace heddle::cli {

// A port that nothing can be said of, because how it is set cannot be read: nothing was found of it, and nothing looked
// at either.
struct LintUnread {
  std::string port;  // "leaf-3 Ethernet4", "gpu-017 mlx5_0:1"; empty = the file is of this one
  std::string why;   // a sentence without a full stop
};

// A file that the linter was given, as what is to be looked at.
struct LintFile {
  std::string path;
  std::string kind;  // "config_db.json", "mlnx_qos", "dcb", "Kubernetes objects"
  std::vector<lossless::Subject> subjects;
  std::vector<LintReport> reports;          // of agents: drift, what failed
  std::vector<lossless::Finding> findings;  // of what nodes are told: conflicts
  std::vector<LintPolicy> policies;         // to be held against ports of all files
  std::vector<LintPort> ports;
  std::vector<LintRefusal> refusals;
  std::vector<crds::RdmaDevicePolicy> device_policies;
  std::vector<LintDeviceNode> device_nodes;
  std::vector<LintUnread> unread;  // of its ports
  std::size_t nodes = 0;  // NodeTopologies in it; of one nothing may be lossless, and no port a subject
  std::vector<std::string> notes;  // what was left out
};

// What it is, is told from the content: objects (JSON or YAML, one, a List, or several documents), SONiC's
// config_db.json, what mlnx_qos or dcb printed. Errors: kInvalid or kTooLarge, with the line or field.
[[nodiscard]] base::Result<LintFile> ReadLintFile(const std::string& path, const std::string& text);

// A file of which nothing can be read; `why` names it.
struct UnreadFile {
  std::string path;
  std::string why;
};
struct LintFiles {
  std::vector<LintFile> read;
  std::vector<UnreadFile> unread;
};
LintFiles ReadLintFiles(const std::vector<std::string>& paths, const ReadFile& read);

}  // namespace heddle::cli
