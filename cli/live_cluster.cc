#include "cli/live_cluster.h"

#include <utility>

#include "kube/object.h"

namespace heddle::cli {

namespace keys = crds::keys;
using base::Code;
using crds::Json;

Output NoCluster(const kube::ConfigSources& sources, const base::Error& error) {
  std::string sentence = error.message;
  // Who named a file or a context is told what is wrong with it; to give another would be no advice.
  if (error.code == Code::kNotFound && sources.kubeconfig_flag.empty()) {
    sentence += sources.kubeconfig_env.empty() ? "; give --kubeconfig FILE"
                                               : "; mend $KUBECONFIG, or give --kubeconfig FILE";
  }
  return Failure({Code::kNotFound, std::move(sentence), std::nullopt});
}

kube::Resource HeddleResource(keys::Kind kind, bool namespaced) {
  return kube::CustomResource(std::string(keys::kGroup), std::string(keys::kVersion),
                              std::string(kind.plural), std::string(kind.kind), namespaced);
}

base::Result<std::vector<Json>> ListOrWhyNot(kube::Client& client, const kube::Resource& resource,
                                             kube::ListOptions options, const std::stop_token& stop) {
  auto list = client.ListAll(resource, std::move(options), stop);
  if (list) return std::move(list->items);
  if (list.error().code != Code::kNotFound) return base::Fail(std::move(list).error());
  // 404 on a collection: the kind is not served.
  return base::Fail(Code::kUnimplemented, "this cluster has no " + resource.Title() + " resource");
}

base::Result<std::vector<Json>> ListHeddle(kube::Client& client, keys::Kind kind,
                                           const std::stop_token& stop) {
  return ListOrWhyNot(client, HeddleResource(kind, false), {}, stop);
}

base::Result<FabricReading> ReadCluster(kube::Client& client, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto topologies, ListHeddle(client, keys::kNodeTopology, stop));
  const auto fabrics = ListHeddle(client, keys::kFabric, stop);
  FabricReading reading = ReadFabrics(topologies, fabrics ? *fabrics : std::vector<Json>{});
  if (!fabrics)
    reading.notes.push_back("Fabrics, and what is declared in them, are left out: " +
                            fabrics.error().message);
  return reading;
}

base::Result<ClusterFiles> TakeFiles(FabricReading& reading) {
  if (reading.topologies.empty()) {
    return base::Fail(base::Code::kNotFound,
                      "no node has reported its GPUs yet; `kubectl get nt` and the agents' pods say why");
  }
  ClusterFiles files;
  files.topologies = std::move(reading.topologies);
  files.declared = std::move(reading.declared);
  return files;
}

void AddGangs(const std::vector<crds::Json>& objects, ClusterFiles& files) {
  for (const crds::Json& object : objects) {
    auto gang = crds::GangFromJson(object);
    if (gang) files.gangs.push_back(*std::move(gang));
  }
}

}  // namespace heddle::cli
