#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/config.h"

namespace heddle::kube {

// A credential plugin as a kubeconfig names it (client.authentication.k8s.io/v1 and v1beta1).
struct ExecSettings {
  std::string api_version;
  std::string command;  // a path, or a name to be found in PATH
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // the whole, NAME=value; the last of a name counts
  std::string install_hint;
  std::string cluster_json;  // spec.cluster for provideClusterInfo, "" = not wanted
};

struct ExecCredential {
  std::string token;
  ClientCertificate certificate;
  std::optional<base::WallTime> expires;
};

// Runs it without a terminal, for at most a minute. Its stderr is ours; its stdout never reaches an error
// text.
[[nodiscard]] base::Result<ExecCredential> RunCredentialPlugin(const ExecSettings& settings,
                                                               base::Clock& clock);

// What a plugin printed. Public for tests.
[[nodiscard]] base::Result<ExecCredential> ParseExecCredential(const std::string& output,
                                                               const std::string& api_version);

}  // namespace heddle::kube
