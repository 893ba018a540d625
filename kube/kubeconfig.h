#pragma once

#include "base/clock.h"
#include "base/file_tree.h"
#include "base/result.h"
#include "kube/config.h"

namespace heddle::kube {

struct KubeconfigReading {
  base::Result<ClientConfig> config;
  // Whether the files choose a cluster, well or badly. False where none was found, or none names a current-context
  // and no context was asked for; then `config` is the error that says so.
  bool chooses = true;
};

// What LoadKubeconfig says, for whoever has another place to turn to.
[[nodiscard]] KubeconfigReading ReadKubeconfig(const ConfigSources& sources, const base::FileTree& root,
                                               base::Clock& clock);

}  // namespace heddle::kube
