#include <CLI/CLI.hpp>

#include "cli/flags_commands.h"

namespace heddle::cli {
namespace {

constexpr const char* kStatusHelp = R"(
A line for each thing that is wrong, the worst first: gangs that stand still, nodes out of use, GPUs, NVLinks, rails and
cables, policies that are not in force, agents that fell silent. Equal things of many nodes are one line. The last line
counts nodes, GPUs and gangs. Nothing is changed, and nothing is judged anew: it is what operator, extender and agents
have written.

  problem   work stands still, or what was bought cannot be used
  warning   it goes on, worse than it could
  note      to know, not to act on; by itself it is nothing wrong

Examples:
  kubectl heddle status
  kubectl heddle status -n train              gangs of one namespace only
  kubectl heddle status --all | grep gpu-017  each thing by itself
  kubectl heddle status -o json | jq -r '.items[] | select(.severity == "problem") | .what'
  kubectl heddle status --topology fabric.json    of a file, as far as it tells

Exit codes: 0 nothing is wrong, 3 something is, 1 the cluster could not be asked, 2 called wrongly or a file could not
be read.)";

constexpr const char* kDoctorHelp = R"(
Looks at Heddle itself, from the server to the jobs: the version of Kubernetes, CustomResourceDefinitions with the
fields of this version, admission policies and their bindings, the namespaces in scope, Deployments, Leases, agents,
versions, what Heddle's accounts may do, pods with GPUs that go past it, RDMA pods that lack something, and other
programs that have to do with gangs. What is wrong with the machines is in `kubectl heddle status`.

Nothing is changed. What you may not read is unknown, with the right that is missing; the other checks go on. Asking
what Heddle's accounts may do takes the right to create SubjectAccessReviews.

Examples:
  kubectl heddle doctor                       after `helm install`, after an upgrade, and when pods wait for nothing
  kubectl heddle doctor -o json | jq '.items[] | select(.verdict != "ok")'
  kubectl heddle doctor -o json | jq -e '.problems + .unknown == 0'    fails on what could not be looked at, too

Exit codes: 0 no problem was found (warnings may be, and checks that are unknown, even all of them), 3 problems, 1 the
cluster could not be asked.)";

constexpr const char* kCablesHelp = R"(
A row for each port that carries jobs, what is wrong first: which rail it has, where its cable ends, and where it
belongs. A swap names both ports and both ends. Rails and leaves are as Fabrics have them: without spec.leafNames a
cable is compared with those of the other hosts of its unit.

  go there              swapped, wrong rail, wrong leaf, contradiction, down
  nobody can tell       ambiguous, stale, unknown: the row says why
  nothing is expected   not judged

Examples:
  kubectl heddle cables --problems            what to bring a ladder for
  kubectl heddle cables gpu-017
  kubectl heddle cables --csv > cables.csv    for the people of the data centre
  kubectl heddle cables --csv --topology fabric.json    the same of a fabric in a file: which cable goes where

Exit codes: 0 no cable is wrong and no port down, 3 one is, 1 the cluster could not be asked, 2 called wrongly or a
file could not be read.)";

constexpr const char* kExplainHelp = R"(
Where each rank of a gang is and why there, what a step costs, and of one that waits what stands in its way, with each
way out tried on the cluster as it stands. KIND/NAME is what made the gang, or the Gang itself (kubectl get gangs).

Examples:
  kubectl heddle explain job/llama -n train
  kubectl heddle explain trainjob/llama -n train -o json
  kubectl heddle explain gang/llama-3f9c1a7e-0 -n train
  kubectl heddle explain job/llama -n train --parallelism "tp=8,pp=2,dp=8"   a Job that Heddle did not place
  kubectl get nt,fabrics,gangs -A -o json > now.json
  kubectl heddle explain gang/llama-3f9c1a7e-0 -n train --topology now.json    of a file, which needs its Gang alone

Exit codes: 0 it has its places, 3 it is refused, or waits for a reason, 1 its pods have no places yet, it is not there,
or the cluster could not be asked, 2 called wrongly, or a file could not be read or does not hold it.)";

constexpr const char* kObserveHelp = R"(
Where Heddle is installed with mode=observe it touches no pod. A row for each job that the cluster's own scheduler
placed, with what that costs a step and what Heddle's places would have cost, the latest first.

Examples:
  kubectl heddle observe
  kubectl heddle observe --last 100 --days 30 -n train
  kubectl heddle observe -o json
  kubectl heddle observe --days 30 --topology now.json    of the Gangs in a file

Exit codes: 0 shown, 1 no job was observed in these days, or the cluster could not be asked, 2 called wrongly or a file
could not be read.)";

constexpr const char* kTopologyHelp = R"(
A line for each node: its machine, GPUs, NVLink domain, rails that are up, leaves. With NODE one of them as a tree: GPU,
its NICs by how near they are, their rail, link and leaf port.

Examples:
  kubectl heddle topology                     a row for each node
  kubectl heddle topology gpu-017             one node as a tree
  kubectl heddle topology gpu-017 -o yaml     its NodeTopology
  kubectl heddle topology gpu-017 --topology fabric.json

Exit codes: 0 shown, 1 no node has reported, or not this one, or the cluster could not be asked, 2 called
wrongly or a file could not be read.)";

constexpr const char* kRecordHelp = R"(
The agent on NODE reads its machine once more, as `heddle-nodeagent record` does: GPUs, PCI tree, NICs, counters,
neighbours. What it read comes as a tar archive on standard output, through `kubectl exec` into its pod, which takes
the right to create pods/exec there. Nothing is changed on the machine or in the cluster.

Examples:
  kubectl heddle record gpu-017 --scrub > gpu-017.tar     under other names, to attach to a bug report
  mkdir gpu-017 && tar -xf gpu-017.tar -C gpu-017
  heddle-nodeagent --machine gpu-017 --print              what Heddle makes of it, anywhere

Exit codes: 0 the archive is whole, 1 it is not, 2 called wrongly.)";

}  // namespace

void DefineStatus(CLI::App& status, StatusOptions& flags) {
  status.add_flag("--all", flags.all, "Equal things one by one");
  DefineTopologyFiles(status, flags.topology);
  status.footer(kStatusHelp);
}

void DefineDoctor(CLI::App& doctor) {
  doctor.footer(kDoctorHelp);
}

void DefineCables(CLI::App& cables, CablesOptions& flags) {
  cables.add_option("NODE,--node", flags.node, "Name of a node");
  cables.add_flag("--problems", flags.problems, "Only what is not as it should be");
  cables.add_flag("--csv", flags.csv, "As RFC 4180 has it, with a header");
  DefineTopologyFiles(cables, flags.topology);
  cables.footer(kCablesHelp);
}

void DefineExplain(CLI::App& explain, ExplainOptions& flags) {
  explain
      .add_option(
          "KIND/NAME", flags.target,
          "job, jobset, trainjob, pytorchjob, mpijob, lws, raycluster, rayjob, rayservice, sts, podgroup, "
          "pods (by heddle.dev/gang-name) or gang; a name alone is a Job's")
      ->required();
  explain.add_option("--parallelism", flags.flags.parallelism,
                     "tp=8,pp=2,dp=8: instead of the annotation heddle.dev/parallelism");
  explain.add_option("--model", flags.flags.model, "params=70e9,layers=80,...: instead of heddle.dev/model");
  DefineTopologyFiles(explain, flags.topology);
  explain.footer(kExplainHelp);
}

void DefineObserve(CLI::App& observe, ObservedOptions& flags) {
  observe.add_option("--last", flags.last, "So many jobs at most (20)");
  observe.add_option("--days", flags.days, "Those of so many days (7)");
  DefineTopologyFiles(observe, flags.topology);
  observe.footer(kObserveHelp);
}

void DefineTopology(CLI::App& topology, Flags& flags) {
  topology.add_option("NODE", flags.node, "Name of a node");
  DefineTopologyFiles(topology, flags.topology);
  topology.footer(kTopologyHelp);
}

void DefineRecord(CLI::App& record, RecordOptions& flags) {
  record.add_option("NODE", flags.node, "Name of the Node")->required();
  record.add_flag(
      "--scrub", flags.scrub,
      "Under other names: GUIDs, MAC and IP addresses, UUIDs, serial numbers, hosts and switches");
  record.footer(kRecordHelp);
}

void DefineTopologyFiles(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--topology", files,
                  "FILE of `kubectl get nt,fabrics,gangs -A -o json`, `fabric import` or `fabric design`, in "
                  "place of the cluster; repeat for several, - is standard input")
      ->allow_extra_args(false);
}

}  // namespace heddle::cli
