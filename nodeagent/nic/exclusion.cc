#include "nodeagent/nic/exclusion.h"

#include <fmt/format.h>

namespace heddle::nodeagent {

std::optional<std::string> WhyExcluded(const NicFacts& facts) {
  if (facts.manages_nvlink)
    return "manages the NVLink switches (SW_MNG in its VPD) and carries no traffic of jobs";
  if (facts.virtual_function) return "is a virtual function: its physical function stands for the port";
  if (!facts.has_ports) return "has no ports";
  if (!facts.served_by.empty())
    return fmt::format("is RDMA in software over an interface that {} serves in hardware", facts.served_by);
  return std::nullopt;
}

bool IsDownByDesign(const PortFacts& facts) {
  return facts.infiniband && facts.disabled && facts.sibling_active &&
         facts.state == topology::LinkState::kDown;
}

}  // namespace heddle::nodeagent
