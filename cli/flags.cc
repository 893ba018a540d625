#include "cli/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/completion.h"
#include "cli/flags_bench.h"
#include "cli/flags_help.h"
#include "cli/flags_record.h"
#include "cli/flags_topology.h"
#include "cli/flags_version.h"
#include "cli/flags_words.h"
#include "cli/man_page.h"

namespace heddle::cli {
namespace {

constexpr const char* kAbout =
    "Shows how training jobs lie on the fabric: NVLink domains, rails, leaves, and what that costs.";
constexpr const char* kExamples = R"(
Examples:
  kubectl heddle status                       what is wrong, the worst first, and what to do about it
  kubectl heddle doctor                       whether Heddle itself is whole
  kubectl heddle cables --problems            which cable ends where it should not
  kubectl heddle explain job/llama -n train    why here, why waiting, what would help; also jobset/, lws/, gang/ …
  kubectl heddle explain job/llama -n train --parallelism "tp=8,pp=2,dp=8"   a Job that Heddle did not place
  kubectl heddle topology                     all nodes
  kubectl heddle topology gpu-017             one node: GPU, NIC, rail, leaf
  kubectl heddle fabric
  kubectl heddle fabric --topology fabric.json    of a file, as topology, cables and check take it too; asks no cluster
  kubectl heddle fabric design --gpus 1024     what a network would take, on paper: switches, cables, price, times
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json    from files; asks no cluster
  kubectl get nt,fabrics,gangs -A -o json | kubectl heddle plan --topology - --parallelism "tp=8,dp=16"
  kubectl heddle plan --synthetic "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100" \
      --parallelism "tp=8,pp=2,dp=8" --gpus-per-pod 4
  kubectl heddle observe                      with mode=observe: what the cluster's scheduler did, and Heddle would have
  kubectl heddle lint policy.yaml config_db.json mlnx_qos.txt    lossless settings that contradict each other
  kubectl heddle switch compare nodes.yaml leaf-*.json    which cables are lossless, by what both ends are set to
  kubectl heddle check llama.yaml             what of a workload would go wrong, before it runs
  kubectl heddle bench job/llama -n train --image registry.example/nccl-tests:2.18    nccl-tests in plan order
  kubectl heddle bench job/llama -n train --results results.txt    what they measured beside what was predicted
  kubectl heddle record gpu-017 --scrub > gpu-017.tar    a node's machine, to attach to a bug report
  kubectl heddle release --all                after `helm uninstall`: nobody waits for ever at Heddle's gate

Exit codes: 0 done, 1 failed, 2 called wrongly, 3 the answer is a refusal, or something is wrong.)";

void DefineImport(CLI::App& fabric, ImportOptions& flags) {
  CLI::App* import = fabric.add_subcommand(
      "import", "NodeTopology and Fabric objects for `plan --topology`, from files that you have already");
  import
      ->add_option(
          "FILE", flags.sources,
          "ibnetdiscover text, Slurm topology.conf or topology.yaml, NCCL topology XML, `nvidia-smi topo "
          "-m`, lldpd json0; HOST=FILE for one host's, KIND:FILE where the content does not tell")
      ->required();
  import->add_option("--gpus-per-node", flags.gpus_per_node, "Where no file shows a host's inside (8)");
  import->add_option("--link-gbps", flags.link_gbps, "Where no file says how fast a link is (400)");
  import->add_option("--transport", flags.transport, "ib, roce, efa or ethernet, where no file says it");
  import->add_flag("--nvlink-blocks", flags.nvlink_blocks, "Slurm's blocks are NVLink domains");
}

constexpr const char* kDesignHelp = R"(
Counts what a cluster's network takes before anything is bought: tiers, leaves, spines, cores, cables by length and
kind, transceivers, the network to storage, a range of prices, and what an all-reduce and a training step would take
on it. InfiniBand and RoCE stand side by side unless --transport says one of them. No cluster is asked.

Lengths follow from a stated hall, prices are estimates with a date: --prices FILE puts yours in their place, as
  date: 2026-12
  items: {switch.qm9700: {low: 28000, high: 31000}, transceiver.multimode.400: 620}

Examples:
  kubectl heddle fabric design --gpus 1024
  kubectl heddle fabric design --gpus 4096 --machine b200 --oversubscription 2:1
  kubectl heddle fabric design --gpus 2016 --machine gb200 --transport ib --switch q3400 --planes 1
  kubectl heddle fabric design --gpus 512 --radix 32 --wiring fat-tree --model llama3-8b
  kubectl heddle fabric design --gpus 1024 --transport roce --topology fabric.json
  kubectl heddle plan --topology fabric.json --parallelism "tp=8,pp=2,dp=64"
  kubectl heddle fabric --topology fabric.json

Exit codes: 0 sized, 3 it does not fit (the sentence says what would), 2 called wrongly. docs/design.md says how it
counts, from what sources, and against which published designs it is checked.)";

void DefineDesign(CLI::App& fabric, FabricDesignOptions& flags) {
  CLI::App* design = fabric.add_subcommand(
      "design", "A fabric on paper: switches, cables, prices and predicted times; asks no cluster");
  design->add_option("--gpus", flags.gpus, "How many GPUs the fabric is for");
  design->add_option("--machine", flags.machine, "a100, b200, b300, gb200, h100, h200 or mi300x")
      ->capture_default_str();
  design->add_option("--wiring", flags.wiring, "rail-optimised, fat-tree (plain ToRs) or rail-only")
      ->capture_default_str();
  design->add_option("--rails", flags.rails, "Rails of a node (one for each NIC)");
  design->add_option("--planes", flags.planes, "Parallel networks: ports of each NIC, which share its rate")
      ->capture_default_str();
  design->add_option("--oversubscription", flags.oversubscription, "Downlinks to uplinks of leaves, as 2:1")
      ->capture_default_str();
  design->add_option("--core-oversubscription", flags.core_oversubscription, "The same of spines below cores")
      ->capture_default_str();
  design->add_option("--transport", flags.transport, "ib or roce (both, side by side)");
  design->add_option(
      "--switch", flags.switch_word,
      "qm8790, qm9700, q3400, sn5600, tomahawk4 or tomahawk5 (what is usual at the NICs' rate)");
  design->add_option("--radix", flags.radix,
                     "Ports of each switch at the links' rate, instead of all that a --switch has");
  design->add_option("--tiers", flags.tiers, "1, 2 or 3 (as few as hold the GPUs)");
  design->add_option("--unit-nodes", flags.unit_nodes,
                     "Nodes of a scalable unit, built whole even where it is not full (units of equal size)");
  design->add_option("--spare-ports", flags.spare_ports, "Ports of each switch to leave free");
  design->add_option("--nodes-per-rack", flags.nodes_per_rack, "Nodes of one rack (what --rack-kw feeds)");
  design->add_option("--rack-kw", flags.rack_kw, "Kilowatts of one rack")->capture_default_str();
  design->add_option("--racks-per-row", flags.racks_per_row,
                     "Racks of one row (as square a hall as they make)");
  design->add_option("--row-metres", flags.row_metres, "Metres from row to row")->capture_default_str();
  design->add_option("--storage", flags.storage, "Reads to size storage for: good, better or best")
      ->capture_default_str();
  design->add_option("--storage-gbs-per-gpu", flags.storage_gbs_per_gpu,
                     "The same as GB/s of each GPU, as 0.5");
  design->add_option(
      "--model", flags.model,
      "llama3-8b, llama3-70b, llama3-405b or params=70e9,layers=80,hidden=8192,seq=8192 (by --gpus)");
  design->add_option("--parallelism", flags.parallelism, "tp=8,pp=2,dp=64 (the fastest)");
  design->add_option("--global-batch", flags.global_batch,
                     "Sequences per step (2048, or the next for all nodes)");
  design->add_option("--prices", flags.prices, "FILE with your prices; - is standard input");
  design->add_option("--topology", flags.topology,
                     "FILE to write the cluster to, for the --topology of other commands; - is standard "
                     "output");
  design->footer(kDesignHelp);
}

constexpr const char* kLintHelp = R"(
A FILE is, as its content tells:
  a LosslessPolicy, or NodeTopologies        kubectl get losslesspolicies,nt -o yaml > cluster.yaml
  a SONiC switch's config_db.json            scp leaf-3:/etc/sonic/config_db.json leaf-3.json
  what mlnx_qos prints of one interface      mlnx_qos -i eth2 > gpu-017-eth2.txt
  what dcb prints of one interface           for it in pfc ets app buffer; do dcb -j $it show dev eth2; done > eth2.json
  -                                          any of these on standard input

Each policy and port is looked at by itself; hosts and policies against every switch that is given, hosts against
each other, and against the policy where there is just one. What a file does not say is not held against it.

Examples:
  kubectl heddle lint policy.yaml                             before `kubectl apply`
  kubectl heddle lint policy.yaml leaf-*.json -o json         in CI: does the fabric take what hosts will send?
  kubectl get losslesspolicies,nt -o json | kubectl heddle lint - leaf-3.json
  kubectl heddle lint --rules                                 what it looks for; docs/lossless.md says why

Exit codes: 0 nothing was found, 3 something was (errors or warnings), 2 a file could not be read.)";

void DefineLint(CLI::App& lint, LintOptions& flags) {
  lint.add_option("FILE", flags.files, "What to look at; repeat for several, - is standard input");
  lint.add_flag("--rules", flags.rules, "Instead: list the rules");
  lint.footer(kLintHelp);
}

constexpr const char* kSwitchRenderHelp = R"(
What a SONiC switch has to change so that a LosslessPolicy holds on its ports: the least, with why and who says so.
Maps and profiles get names of their own; those that other ports use are not edited. Nothing is sent to a switch.

  --format sonic     the changes, each with its reason
  --format patch     a JSON Patch (RFC 6902) for `config apply-patch`; notes say what that refuses
  --format nvue      all `nv set` lines for Cumulus Linux, compared with nothing; needs no --config

Examples:
  kubectl heddle switch render policy.yaml --config leaf-3.json --port Ethernet0,Ethernet4
  kubectl get nt -o json | kubectl heddle switch render policy.yaml --config leaf-3.json --hosts-on -
  kubectl heddle switch render policy.yaml --config leaf-3.json --port Ethernet0 --fabric-port Ethernet256 \
      --fabric-cable-metres 40 --profile spectrum/v1 --format patch > leaf-3.patch.json
  kubectl heddle switch render policy.yaml --port swp1,swp2 --profile spectrum/v1 --format nvue

Exit codes: 0 nothing is to change, 3 something is, or the policy or the configuration is faulty, 2 a file could not
be read.)";

constexpr const char* kSwitchCompareHelp = R"(
A row for each cable between a host's RoCE port and a switch, the worst first: what both ends are set to (DSCP,
priority, queue, PFC, watchdog, ECN, MTU), and speed and FEC of the link. The files are NodeTopologies, and
config_db.json of the switches, which are known by their hostname.

  Contradiction    the ends do not go together, or one of them is lossy by itself
  Unproved         something that it takes is not known, or no longer
  Lossless         all of it is known and goes together

Examples:
  kubectl get nt -o json | kubectl heddle switch compare - leaf-*.json
  kubectl heddle switch compare nodes.yaml su0-r3=backup/config_db.json --problems -o json

Exit codes: 0 every cable is lossless, 3 one is not or nobody can tell, 2 a file could not be read.)";

void DefineSwitch(CLI::App& parent, Flags& flags) {
  parent.require_subcommand(1);
  SwitchRenderOptions& render = flags.switch_render;
  CLI::App* made =
      parent.add_subcommand("render", "What a switch has to change so that a policy holds on its ports");
  made->add_option("POLICY", render.policy, "FILE of one LosslessPolicy, - is standard input")->required();
  made->add_option("--config", render.config, "FILE of the switch's config_db.json");
  made->add_option("--port", render.ports, "Ports that hosts hang on; a list with commas, or repeat")
      ->allow_extra_args(false);
  made->add_option("--hosts-on", render.hosts_on,
                   "FILE of NodeTopologies: the ports that their cables end on; repeat for several")
      ->allow_extra_args(false);
  made->add_option("--fabric-port", render.fabric_ports, "Ports that other switches hang on")
      ->allow_extra_args(false);
  made->add_option("--profile", render.profile,
                   "What the switch is: sonic/v1, spectrum/v1, tomahawk/v1 (sonic/v1)");
  made->add_option("--format", render.format, "sonic, patch or nvue (sonic)");
  made->add_option("--cable-metres", render.cable_metres,
                   "Of hosts' cables, in place of what the policy says");
  made->add_option("--fabric-cable-metres", render.fabric_cable_metres, "Of cables between switches");
  made->footer(kSwitchRenderHelp);
  CLI::App* compared =
      parent.add_subcommand("compare", "Which cables are lossless, by what both ends are set to");
  compared->add_option(
      "FILE", flags.switch_compare.files,
      "NodeTopologies or a config_db.json; NAME=FILE for a switch of another name; - is standard "
      "input");
  compared->add_flag("--problems", flags.switch_compare.problems, "Only what is not lossless");
  compared->footer(kSwitchCompareHelp);
}

constexpr const char* kCheckHelp = R"(
A FILE holds pods, Jobs, JobSets, PyTorchJobs, MPIJobs, StatefulSets, LeaderWorkerSets or any other objects with pod
templates: YAML or JSON, several documents or a List; - is standard input. KIND/NAME is one in the cluster. The pods of
a TrainJob are made from its runtime: give the file of that, too, unless it is in the cluster already.

Looked for is what keeps GPUs of several nodes from talking by RDMA, and what ends a long run early: no RDMA devices,
no network interface for RoCE, memory that may not be pinned, a small /dev/shm, no heddle.dev/fabric, a parallelism
that does not make the GPUs, pods that fit no node or leave GPUs over, backoffLimit 0.

With KIND/NAME the cluster says how many GPUs its nodes have, what their NICs speak and which resources bring them.
Files are looked at alone: say it by the flags where nodes have other than 8 GPUs, or InfiniBand, or give the nodes in
a file, by --topology. --where then asks that file and no cluster.

Examples:
  kubectl heddle check llama.yaml                             before `kubectl apply`
  helm template charts/train | kubectl heddle check - -o json in CI
  kubectl heddle check --infiniband --gpus-per-node 4 jobs/*.yaml
  kubectl heddle check --where llama.yaml                     and where it would lie now, at how many ms per step
  kubectl heddle check --where llama.yaml --topology fabric.json    where it would lie in a cluster in a file
  kubectl heddle check job/llama pytorchjob/bert -n train     what runs, or waits, now
  kubectl heddle check --rules                                what it looks for; docs/devices.md says why

Exit codes: 0 nothing was found, 3 something was (errors or warnings), 2 something could not be read, 1 the cluster
could not be asked.)";

void DefineCheck(CLI::App& check, CheckOptions& flags) {
  check.add_option("FILE", flags.targets, "FILE or KIND/NAME to look at; repeat for several");
  check.add_option("--gpus-per-node", flags.gpus_per_node, "GPUs of the largest node (8)");
  check.add_flag("--infiniband", flags.infiniband, "NICs are InfiniBand: pods need no interface of them");
  check
      .add_option("--rdma-resource", flags.rdma_resources,
                  "A resource that brings RDMA devices under a name of its own; repeat for several")
      ->allow_extra_args(false);
  DefineTopologyFiles(check, flags.topology);
  check.add_flag("--where", flags.where, "Also: where it would land in the cluster now, and ms per step");
  check.add_flag("--rules", flags.rules, "Instead: list the rules");
  check.footer(kCheckHelp);
}

constexpr const char* kPrepareHelp = R"(
Clusters before Kubernetes 1.36 do not serve MutatingAdmissionPolicy v1, so nothing gates a gang's pods by itself. This
does it to the manifest: pod templates that ask for GPUs go to Heddle's scheduler, and those with the annotation
heddle.dev/parallelism get Heddle's gate and ask for heddle.dev/fabric. All other objects come out as they went in. The
pods of a TrainJob are made from its runtime: give that as well, and it is prepared with it.

Examples:
  kubectl heddle prepare -f job.yaml | kubectl create -f -
  helm template charts/train | kubectl heddle prepare -f - | kubectl apply -f -
  kubectl heddle prepare -f job.yaml --gpu-resource amd.com/gpu
  kubectl heddle prepare -f runtime.yaml -f trainjob.yaml | kubectl apply -f -

Exit codes: 0 done, 2 a file could not be read.)";

void DefinePrepare(CLI::App& prepare, PrepareOptions& flags) {
  prepare
      .add_option("-f,--filename", flags.files, "What to prepare; repeat for several, - is standard input")
      ->required()
      ->allow_extra_args(false);
  prepare
      .add_option("--gpu-resource", flags.gpu_resources,
                  "What GPUs are called, as in the chart's managedResources (nvidia.com/gpu)")
      ->allow_extra_args(false);
  prepare.footer(kPrepareHelp);
}

constexpr const char* kReleaseHelp = R"(
Pods that Heddle gated keep their gate and the name of its scheduler when Heddle is gone, and would wait for ever. Their
owners are suspended and resumed, which counts no failure and makes new pods, for the cluster's own scheduler; where an
owner has no such switch, its controller makes another pod in the place of one that is deleted. Gangs that were
suspended to make room for others are resumed. What has pods that run is left alone, and named.

Examples:
  helm uninstall heddle -n heddle-system && kubectl heddle release --all
  kubectl heddle release --all --dry-run                      what is held, and what would be done
  kubectl heddle release --all -n train -o json

Exit codes: 0 all is handed back, 3 something is left for you, or Heddle is still in force, 1 something failed.)";

void DefineRelease(CLI::App& release, ReleaseOptions& flags) {
  release.add_flag("--all", flags.all, "Every pod at Heddle's gate; with -n, of that namespace");
  release.add_flag("--dry-run", flags.dry_run, "Only show what is held, and what would be done");
  release.footer(kReleaseHelp);
}

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

Exit codes: 0 nothing is wrong, 3 something is, 1 the cluster could not be asked.)";

void DefineStatus(CLI::App& status, StatusOptions& flags) {
  status.add_flag("--all", flags.all, "Equal things one by one");
  status.footer(kStatusHelp);
}

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

Exit codes: 0 no problem (warnings may be), 3 problems, 1 the cluster could not be asked.)";

constexpr const char* kCablesHelp = R"(
A row for each port that carries jobs, what is wrong first: which rail it has, where its cable ends, and where it
belongs. A swap names both ports and both ends. Rails and leaves are as Fabrics have them: without spec.leafNames a
cable is compared with those of the other hosts of its unit.

  swapped, wrong rail, wrong leaf, contradiction, down     go there
  ambiguous, stale, unknown                                nobody can tell; the row says why
  not judged                                               nothing is expected there

Examples:
  kubectl heddle cables --problems            what to bring a ladder for
  kubectl heddle cables gpu-017
  kubectl heddle cables --csv > cables.csv    for the people of the data centre
  kubectl heddle cables --csv --topology fabric.json    the same of a fabric in a file: which cable goes where

Exit codes: 0 no cable is wrong and no port down, 3 one is, 1 the cluster could not be asked, 2 called wrongly or a
file could not be read.)";

void DefineCables(CLI::App& cables, CablesOptions& flags) {
  cables.add_option("NODE,--node", flags.node, "Name of a node");
  cables.add_flag("--problems", flags.problems, "Only what is not as it should be");
  cables.add_flag("--csv", flags.csv, "As RFC 4180 has it, with a header");
  DefineTopologyFiles(cables, flags.topology);
  cables.footer(kCablesHelp);
}

void DefinePlan(CLI::App& plan, PlanOptions& flags) {
  plan.add_option(
      "--topology", flags.ground.topology,
      "FILE of `kubectl get nt,fabrics,gangs -A -o json`; repeat for several, - is standard input");
  plan.add_option("--synthetic,--fabric", flags.ground.synthetic,
                  "Or the cluster in one line, as su:2 node:16 gpu:8 nic:8 rail:8");
  plan.add_option("--parallelism", flags.parallelism, "tp=8,pp=2,dp=8");
  plan.add_option("--gpus-per-pod", flags.gpus_per_pod, "GPUs of one pod (8)");
  plan.add_option("--model", flags.model, "params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1");
  plan.add_option("--require", flags.require, "tp=nvlink,dp=leaf");
  plan.add_option("--prefer", flags.prefer, "pp=spine");
  plan.add_option("--spares", flags.spares, "Free nodes to keep in each NVLink domain over nodes");
  plan.add_flag("--what-if", flags.what_if,
                "Also: how many of these fit now, or who would have to end to make room");
  plan.add_flag("--suggest", flags.suggest,
                "Instead: the fastest layouts for --model on --gpus N (or as many as --parallelism has)");
  plan.add_option("--gpus", flags.gpus, "With --suggest: how many GPUs");
  plan.add_option("--global-batch", flags.global_batch, "With --suggest: sequences per step");
  plan.add_option("--defragment", flags.defragment,
                  "Instead: the gangs to move so that so many NVLink domains are whole");
  plan.add_option("--defragment-level", flags.defragment_level,
                  "With --defragment: nvlink, or su for scalable units (nvlink)");
  plan.add_option("--defragment-gpus", flags.defragment_gpus,
                  "With --defragment: count places with so many GPUs or more (1)");
  plan.add_option("--slower", flags.slower_percent,
                  "With --defragment: percent that a moved gang may be slower, -1 = any (10)");
  plan.add_option("--taken", flags.ground.taken,
                  "GPUs that others hold: FILE of `kubectl get pods -A -o json`, or node-00=4,node-03=8");
}

void Define(CLI::App& app, Flags& flags, std::string& output) {
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--kubeconfig", flags.kubeconfig, "Default: $KUBECONFIG, then ~/.kube/config");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  app.add_option(
      "-n,--namespace", flags.explain.ns,
      "Namespace (default: the context's; of status, observe and release: all; of record: Heddle's)");
  app.add_option("-o,--output", output, "table, or json or yaml for scripts")->capture_default_str();

  DefineStatus(*app.add_subcommand("status", "What is wrong, the worst first, and what to do about it"),
               flags.status);
  app.add_subcommand("doctor", "Whether this installation of Heddle is whole, and what goes past it")
      ->footer(kDoctorHelp);
  DefineCables(*app.add_subcommand("cables", "Port by port: rail, leaf, and what is cabled wrongly"),
               flags.cables);
  CLI::App* explain =
      app.add_subcommand("explain", "Why a gang is where it is, why it waits, and what would help");
  explain
      ->add_option(
          "KIND/NAME", flags.explain.target,
          "job, jobset, trainjob, pytorchjob, mpijob, lws, raycluster, rayjob, rayservice, sts, podgroup, "
          "pods (by heddle.dev/gang-name) or gang; a name alone is a Job's")
      ->required();
  explain->add_option("--parallelism", flags.explain.flags.parallelism,
                      "tp=8,pp=2,dp=8: instead of the annotation heddle.dev/parallelism");
  explain->add_option("--model", flags.explain.flags.model,
                      "params=70e9,layers=80,...: instead of heddle.dev/model");

  CLI::App* observe = app.add_subcommand(
      "observe",
      "What the cluster's own scheduler did with the last gangs, and Heddle would have (mode=observe)");
  observe->add_option("--last", flags.observed.last, "So many jobs at most (20)");
  observe->add_option("--days", flags.observed.days, "Those of so many days (7)");

  DefineTopology(*app.add_subcommand("topology", "What the nodes' agents see: all nodes, or one as a tree"),
                 flags);

  CLI::App* fabric =
      app.add_subcommand("fabric", "Leaves by rail and scalable unit, NVLink domains, cabling faults");
  DefineImport(*fabric, flags.import);
  DefineDesign(*fabric, flags.design);
  DefineFabric(*fabric, flags);

  DefinePlan(*app.add_subcommand(
                 "plan", "What if: places a gang on a cluster in files or in one line; asks no cluster"),
             flags.plan);
  DefineLint(
      *app.add_subcommand("lint", "Lossless settings that contradict each other, in files; asks no cluster"),
      flags.lint);
  DefineSwitch(
      *app.add_subcommand("switch", "Switch ports: what a policy makes of them, and both ends of each cable"),
      flags);
  DefineCheck(*app.add_subcommand("check", "What of a training workload would go wrong, in files or running"),
              flags.check);
  DefineBench(*app.add_subcommand("bench",
                                  "nccl-tests over a gang's GPUs: a manifest, and measured beside predicted"),
              flags.bench);
  DefineRecord(
      *app.add_subcommand("record", "What the agent on a node reads of its machine, as a tar archive"),
      flags.record);
  DefinePrepare(*app.add_subcommand("prepare", "Does to a manifest what admission does, where it cannot"),
                flags.prepare);
  DefineRelease(*app.add_subcommand("release", "Hand back what Heddle still holds, once it is uninstalled"),
                flags.release);
  app.add_subcommand("wait", "")->group("");  // of the chart's cli.enabled; nobody is shown it
  app.add_subcommand("completion",
                     "The file that lets kubectl complete these commands; install it as it says");
  app.add_subcommand("man", "All of this as a manual page: kubectl heddle man | man -l -");
}

// What a person reads of an error in the words of the parser.
std::string Sentence(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  if (error.get_name() == "ConversionError") {
    // "Could not convert: --spares = x"; every option that is converted is a whole number.
    const std::size_t name = what.find(": "), value = what.find(" = ");
    if (name != std::string::npos && value != std::string::npos && name < value) {
      return fmt::format("{} \"{}\": write a whole number that is not beyond all bounds",
                         what.substr(name + 2, value - name - 2), what.substr(value + 3));
    }
  }
  if (error.get_name() == "RequiredError" && app.get_subcommands().empty()) {
    return WhichCommand(app);
  }
  while (!what.empty() && what.back() == '\n') what.pop_back();
  return what;
}

std::string CalledAs(const CLI::App& app) {
  std::string words = "kubectl heddle";
  for (std::vector<CLI::App*> inner = app.get_subcommands(); !inner.empty();
       inner = inner.front()->get_subcommands()) {
    words += " " + inner.front()->get_name();
  }
  return words;
}

Output Refused(const CLI::App& app, const std::string& sentence) {
  Output output = Failure({base::Code::kInvalid, sentence, std::nullopt});
  output.err += "`" + CalledAs(app) + " --help` says how it is called.\n";
  return output;
}

// `fabric`'s own --topology is within reach of its `import` and `design`, and nothing is ignored.
bool IsMisplaced(const Flags& flags) {
  return !flags.topology.empty() && (flags.command == Command::kImport || flags.command == Command::kDesign);
}

// What needs neither files nor a cluster.
std::optional<Output> SaidAtOnce(const CLI::App& app) {
  if (app.got_subcommand("completion")) return Output{.out = std::string(kCompletionFile)};
  if (app.got_subcommand("man")) return Output{.out = ManPage(app)};
  return std::nullopt;
}

Command CommandOf(const CLI::App& app) {
  if (app.got_subcommand("status")) return Command::kStatus;
  if (app.got_subcommand("doctor")) return Command::kDoctor;
  if (app.got_subcommand("cables")) return Command::kCables;
  if (app.got_subcommand("explain")) return Command::kExplain;
  if (app.got_subcommand("observe")) return Command::kObserve;
  if (app.got_subcommand("topology")) return Command::kTopology;
  if (app.got_subcommand("plan")) return Command::kPlan;
  if (app.got_subcommand("lint")) return Command::kLint;
  if (app.got_subcommand("switch"))
    return app.get_subcommand("switch")->got_subcommand("render") ? Command::kSwitchRender
                                                                  : Command::kSwitchCompare;
  if (app.got_subcommand("check")) return Command::kCheck;
  if (app.got_subcommand("bench")) return Command::kBench;
  if (app.got_subcommand("record")) return Command::kRecord;
  if (app.got_subcommand("wait")) return Command::kWait;
  if (app.got_subcommand("prepare")) return Command::kPrepare;
  if (app.got_subcommand("release")) return Command::kRelease;
  const CLI::App* const fabric = app.get_subcommand("fabric");
  if (fabric->got_subcommand("design")) return Command::kDesign;
  return fabric->got_subcommand("import") ? Command::kImport : Command::kFabric;
}

}  // namespace

CommandLine ReadCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  std::string output = "table";
  CLI::App app(kAbout, "kubectl heddle");
  Define(app, line.flags, output);
  DefineVersion(app);
  AddFooters(app);
  if (argc > 1 && argv[1] == std::string_view("__complete")) {  // by kCompletionFile
    line.instead = Output{.out = Printed(Complete(app, {argv + 2, argv + argc}))};
    return line;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      line.instead = Refused(app, Sentence(app, error));
      return line;
    }
    std::ostringstream out, err;
    app.exit(error, out, err);
    line.instead = Output{.out = out.str()};
    return line;
  }
  line.instead = SaidAtOnce(app);
  if (line.instead) return line;
  line.flags.command = CommandOf(app);
  if (output == "json") {
    line.flags.format = Format::kJson;
  } else if (output == "yaml") {
    line.flags.format = Format::kYaml;
  } else if (output != "table") {
    line.instead = Refused(app, "--output \"" + output + "\": write table, json or yaml");
  }
  if (line.instead) return line;
  if (app.got_subcommand("version")) {
    line.instead = VersionOf(line.flags.format);
  } else if (IsMisplaced(line.flags)) {
    line.instead =
        Refused(app,
                "`fabric --topology` shows what is in a file, and says nothing to `import` and `design`: "
                "leave it out, or write it behind `design`");
  } else if (const base::Status words = CheckWords(line.flags); !words) {
    line.instead = Refused(app, words.error().message);
  }
  return line;
}

}  // namespace heddle::cli
