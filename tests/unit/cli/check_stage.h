#pragma once

#include <string>
#include <vector>

#include "cli/check.h"
#include "tests/unit/cli/from_disk.h"
#include "tests/unit/cli/stage.h"

namespace heddle::cli {

inline const std::string kWorkloads = std::string(HEDDLE_SOURCE_DIR) + "/tests/fixtures/workloads/";

// A cluster for `check` to ask, with a Job of 16 pods.
class CheckInACluster : public Stage {
 protected:
  CheckInACluster() { server.Serve(ResourceOf(keys::kRdmaDevicePolicy)); }
  void AddSample(const std::string& resource) {
    Json job = AddJob("llama", 16, "");
    job["spec"]["template"]["spec"] = {
        {"containers",
         {{{"name", "trainer"},
           {"securityContext", {{"privileged", false}, {"capabilities", {{"add", {"IPC_LOCK"}}}}}},
           {"resources",
            {{"limits", {{"nvidia.com/gpu", "4"}, {resource, "1"}, {"heddle.dev/fabric", "1"}}}}}}}},
        {"hostIPC", true}};
    server.Put(kube::kJobs, job);
  }
  Output Look(const std::vector<std::string>& targets, CheckOptions options = {}) {
    options.targets = targets;
    options.ns = "train";
    return RunCheck(client, clock, options, FromDisk, {}, {});
  }
};

}  // namespace heddle::cli
