#include "cli/flags_topology.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {
namespace {

constexpr const char* kTopologyHelp = R"(
A line for each node: its machine, GPUs, NVLink domain, rails that are up, leaves. With NODE one of them as a tree: GPU,
its NICs by how near they are, their rail, link and leaf port.

With --topology no cluster is asked: the nodes are those of files, as `kubectl get nt,fabrics,gangs -A -o json`,
`kubectl heddle fabric import` and `kubectl heddle fabric design --topology` write them.

Examples:
  kubectl heddle topology                     a row for each node
  kubectl heddle topology gpu-017             one node as a tree
  kubectl heddle topology gpu-017 -o yaml     its NodeTopology
  kubectl heddle topology gpu-017 --topology fabric.json

Exit codes: 0 shown, 1 no node has reported, or not this one, or the cluster could not be asked, 2 called
wrongly or a file could not be read.)";

constexpr const char* kFabricHelp = R"(
The fabrics that the nodes make: their leaves by rail and scalable unit, NVLink domains over nodes, and what is cabled
wrongly. What was neither measured nor declared is said as assumed. With import and design a fabric is made of files or
of numbers; each has a --help of its own.

With --topology no cluster is asked: the nodes are those of files, as `kubectl get nt,fabrics,gangs -A -o json`,
`kubectl heddle fabric import` and `kubectl heddle fabric design --topology` write them.

Examples:
  kubectl heddle fabric
  kubectl heddle fabric -o json
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json
  kubectl heddle fabric --topology fabric.json
  kubectl heddle fabric design --gpus 1024 --transport ib --topology - | kubectl heddle fabric --topology -

Exit codes: 0 shown, 1 no node has reported, or the cluster could not be asked, 2 called wrongly or a file could not be
read.)";

}  // namespace

void DefineTopologyFiles(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--topology", files,
                  "FILE of `kubectl get nt,fabrics,gangs -A -o json`, `fabric import` or `fabric design`, in "
                  "place of the cluster; repeat for several, - is standard input")
      ->allow_extra_args(false);
}

void DefineTopology(CLI::App& topology, Flags& flags) {
  topology.add_option("NODE", flags.node, "Name of a node");
  DefineTopologyFiles(topology, flags.topology);
  topology.footer(kTopologyHelp);
}

void DefineFabric(CLI::App& fabric, Flags& flags) {
  DefineTopologyFiles(fabric, flags.topology);
  fabric.footer(kFabricHelp);
}

}  // namespace heddle::cli
