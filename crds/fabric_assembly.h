#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/fabric.h"

namespace heddle::crds {

// How NodeTopologies and Fabric objects together make fabrics. The operator, the extender and the command
// line all assemble through here, so that what is shown is what is planned on.

// "infiniband", or "infiniband-<site>": the name of the Fabric object of one transport and site.
std::string FabricName(topology::Transport transport, const std::string& site);
std::optional<topology::Transport> TransportOfName(const std::string& fabric_name);

// One fabric per transport and site, by object name. Which nodes form a fabric is measured alone; the
// declaration of that very object is then applied, so that two transports of one site can have one each.
std::map<std::string, topology::Fabric> AssembleFabrics(
    std::vector<topology::Node> nodes, const std::map<std::string, topology::Declaration>& declared);

}  // namespace heddle::crds
