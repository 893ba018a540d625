#include "nodeagent/print.h"

#include <cstdio>

#include "crds/yaml.h"
#include "nodeagent/grants/pod_resources.h"
#include "nodeagent/publish/report.h"

namespace heddle::nodeagent {

bool PrintNode(Machine& machine, GrantSource* kubelet, const Flags& flags, base::Clock& clock,
               const std::stop_token& stop) {
  const auto grants = ReadOnce(kubelet, flags.pod_resources.has_value(), stop);
  const Observation seen = machine.discovery->Look();
  if (stop.stop_requested()) return false;
  crds::NodeTopology object;
  object.name = machine.identity.node;
  const auto json = crds::ToJson(Report(object, seen, clock.WallNow(), &grants));
  std::fputs((flags.output == "json" ? json.dump(2) + "\n" : crds::ToYaml(json)).c_str(), stdout);
  return true;
}

}  // namespace heddle::nodeagent
