#pragma once

#include <stop_token>
#include <vector>

#include "cli/cluster_files.h"
#include "cli/fabrics.h"
#include "cli/output.h"
#include "crds/keys.h"
#include "kube/client.h"
#include "kube/config.h"

namespace heddle::cli {

// What a command ends with where LoadConfig(sources) told of no cluster: what was tried, and what to give.
Output NoCluster(const kube::ConfigSources& sources, const base::Error& error);

// What several commands read of a cluster. Each is one consistent LIST.

kube::Resource HeddleResource(crds::keys::Kind kind, bool namespaced);
// All objects of one of our cluster-wide kinds; kUnimplemented where Heddle is not installed.
[[nodiscard]] base::Result<std::vector<crds::Json>> ListHeddle(kube::Client& client, crds::keys::Kind kind,
                                                               const std::stop_token& stop);
// All objects of any kind, page by page; kUnimplemented where it is not served, and what is missing for it in words.
[[nodiscard]] base::Result<std::vector<crds::Json>> ListOrWhyNot(kube::Client& client,
                                                                 const kube::Resource& resource,
                                                                 kube::ListOptions options,
                                                                 const std::stop_token& stop);
// NodeTopologies and Fabrics; without the right to read Fabrics a note says so.
[[nodiscard]] base::Result<FabricReading> ReadCluster(kube::Client& client, const std::stop_token& stop);
// Moves the nodes and declarations of a reading to where planning takes them; kNotFound while no node has reported.
[[nodiscard]] base::Result<ClusterFiles> TakeFiles(FabricReading& reading);
// Of Gangs those that can be read.
void AddGangs(const std::vector<crds::Json>& objects, ClusterFiles& files);

}  // namespace heddle::cli
