#pragma once

#include "crds/node_topology.h"

namespace heddle::crds {

// A NodeTopology for whoever goes by its status. As NodeTopologyFromJson; where that refuses the spec, because a newer
// operator wrote a word into it, as much of it as is understood: a node must not be gone from the Fabric, nor its spec
// be left as it is for good, for a setting that concerns its agent. A status that cannot be read stays an error: it is
// not one without NICs.
[[nodiscard]] inline base::Result<NodeTopology> NodeTopologyOfAnySpec(const Json& json) {
  auto topology = NodeTopologyFromJson(json);
  if (topology) return topology;
  auto own = OwnNodeTopologyFromJson(json);
  if (!own) return topology;
  Json status = json.value("status", Json());
  if (status.is_binary()) status = Json::from_cbor(status.get_binary(), true, false);  // see Packed
  const bool none = !status.is_object() || !status.contains("observedAt");
  if (!own->has_status && !none) return topology;
  return std::move(own->object);
}

}  // namespace heddle::crds
