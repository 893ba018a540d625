#pragma once

#include <string>
#include <vector>

#include "cli/import_machine.h"
#include "formats/lldp.h"
#include "topology/node.h"

namespace heddle::cli {

// One host's interfaces and the leaves that they hear. An interface is for storage or management where its
// name or its leaf's says so; several different neighbours on one are kept as Ambiguous with a warning. LLDP
// tells no speed. Interfaces that hear nobody are not in lldpd's answer, and so not in this.
topology::Node LldpHost(const std::string& host, const formats::LldpNeighbours& neighbours,
                        topology::Transport transport, ImportFindings& findings);

}  // namespace heddle::cli
