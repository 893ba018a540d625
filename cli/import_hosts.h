#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/import_machine.h"

namespace heddle::cli {

// Roles, rails, missing and slow NICs of imported hosts: what no single file says and all hosts together show.
//
// Hosts with the same NICs are of one kind, and a host with fewer compute NICs belongs to the kind that most such hosts
// are of: what it lacks is put in as down, with a warning. Of several machines a kind is what most of its hosts are.
// A NIC that its machine shows behind no GPU's PCIe
// switch, or, where no machine is known, one that is slower than others of all hosts and meets them on no
// leaf, is for storage. The rail of a NIC is its place among the compute NICs of its kind, by the GPU that it
// is nearest to where a machine says so, else by name as people count. NICs that have a role other than
// compute keep it. `assumed_gbps` stands in where no host says how fast a NIC is.
void SettleNics(const Machines& machines, int assumed_gbps, std::vector<topology::Node>& nodes,
                ImportFindings& findings);

// By the words that names are made of: "oss-03" and "lustre" store, "login1" and "mgmt" manage.
topology::NicRole RoleOfName(std::string_view name);

// Takes out those that are no compute hosts: by name, and those with at most half of the usual number of NICs
// whose names do not begin as the others' do.
void KeepComputeHosts(std::vector<topology::Node>& nodes, ImportFindings& findings);

// "a, b, c and 7 more"
std::string SomeOf(const std::vector<std::string>& names);

}  // namespace heddle::cli
