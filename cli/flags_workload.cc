#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/flags_commands.h"
#include "crds/workload_check.h"

namespace heddle::cli {
namespace {

constexpr const char* kCheckAbout = R"(
A FILE holds pods, Jobs, JobSets, PyTorchJobs, MPIJobs, StatefulSets, LeaderWorkerSets or any other objects with pod
templates: YAML or JSON, several documents or a List; - is standard input. KIND/NAME is one in the cluster. The pods of
a TrainJob are made from its runtime, and a PodGroup says how many its pods are: give the file of that, too, unless it
is in the cluster already.

Looked for is what keeps GPUs of several nodes from talking by RDMA, what ends a long run early, and what Heddle would
refuse. Each finding names its rule:

)";

constexpr const char* kCheckHelp = R"(
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
  kubectl heddle check --rules -o yaml                        the rules with why and what to do, as docs/devices.md

Exit codes: 0 nothing was found, 3 something was (errors or warnings), 2 something could not be read, 1 the cluster
could not be asked.)";

constexpr const char* kBenchHelp = R"(
Runs NVIDIA's nccl-tests over the GPUs of a gang, in the order of its ranks, or over whole nodes, and holds what they
measure against what the model of collectives predicts there.

Without --results it prints an MPIJob (v2beta1, for the mpi-operator) as YAML, with the prediction in comments. With
KIND/NAME its workers carry the gang's own words, so that Heddle places them as it placed the gang: while that still
runs, they wait. With --nodes they are bound to these nodes, and Heddle orders them. --image has no default: it needs
mpirun (Open MPI), sshd with host keys, and nccl-tests built with MPI=1 in its PATH, with the NCCL of your jobs.
The mpi-operator makes the launcher once all workers are ready, and workers may wait for their places: the MPIJob is
Running when there is something to follow.

With --results it reads what the run printed, of any version and with NCCL's own lines between, and names what is
slow: from 64 MiB on less than 80% of the predicted bandwidth. Elements that came out wrong are corrupted data,
whatever the speed. Nine of ten published results of that size are within 10% of the model: docs/cost-model.md.

Examples:
  kubectl heddle bench gang/llama-3f9c1a7e-0 -n team --image registry.example/nccl-tests:2.18 \
      --rdma-resource rdma/hca > bench.yaml
  kubectl create -f bench.yaml
  kubectl wait -n team --for=condition=Running --timeout=1h mpijob/nccl-all-reduce-llama
  kubectl logs -n team -f job/nccl-all-reduce-llama-launcher > results.txt
  kubectl heddle bench gang/llama-3f9c1a7e-0 -n team --results results.txt
  kubectl heddle bench --nodes gpu-001,gpu-002 --collective alltoall --image registry.example/nccl-tests:2.18
  kubectl get nt,fabrics,gangs -A -o json > now.json
  kubectl heddle bench job/llama --topology now.json --results results.txt -o json

Exit codes: 0 done, 3 something is slow, wrong or unfinished, 2 called wrongly or a file could not be read, 1 the
cluster could not be asked, or has no such gang, no such node, or no places for the gang yet (2 with --topology or
--synthetic).)";

constexpr const char* kPrepareHelp = R"(
Clusters before Kubernetes 1.36 do not serve MutatingAdmissionPolicy v1, so nothing gates a gang's pods by itself. This
does it to the manifest: pod templates that ask for GPUs go to Heddle's scheduler, and those with the annotation
heddle.dev/parallelism get Heddle's gate and ask for heddle.dev/fabric. All other objects come out as they went in. The
pods of a TrainJob are made from its runtime: give that as well, and it is prepared with it. Comments are gone and keys
sorted in what comes out, so keep your own file and send this on: it says the same to the API server.

Examples:
  kubectl heddle prepare -f job.yaml | kubectl create -f -
  helm template charts/train | kubectl heddle prepare -f - | kubectl apply -f -
  kubectl heddle prepare -f job.yaml --gpu-resource amd.com/gpu
  kubectl heddle prepare -f runtime.yaml -f trainjob.yaml | kubectl apply -f -

Exit codes: 0 done, 2 a file could not be read.)";

constexpr const char* kReleaseHelp = R"(
Pods that are not bound yet keep Heddle's gate and the name of its scheduler when Heddle is gone, and would wait for
ever. Their owners are suspended and resumed, which counts no failure and makes new pods, for the cluster's own
scheduler; where an owner has no such switch, its controller makes another pod in the place of one that is deleted.
Gangs that were suspended to make room for others are resumed. What has pods that run is left alone, and named; so is
what `kubectl heddle prepare` made, since its own pod template names Heddle: create it from the manifest as it was.

Examples:
  helm uninstall heddle -n heddle-system && kubectl heddle release --all
  kubectl heddle release --all --dry-run                      what is held, and what would be done
  kubectl heddle release --all -n train -o json

Exit codes: 0 all is handed back, 3 something is left for you, or Heddle is still in force, 1 something failed.)";

// Who looks up the word of a finding has it here as in --rules: both are made of the rules themselves.
std::string CheckHelp() {
  std::string help = kCheckAbout;
  for (const crds::WorkloadRule& rule : crds::WorkloadRules())
    help += fmt::format("  {:<17}  {}\n", rule.id, rule.forbids);
  return help + kCheckHelp;
}

}  // namespace

void DefineCheck(CLI::App& check, CheckOptions& flags) {
  check.add_option("FILE", flags.targets, "FILE or KIND/NAME to look at; repeat for several");
  check.add_option("--gpus-per-node", flags.gpus_per_node, "GPUs of the largest node (8)");
  check.add_flag("--infiniband", flags.infiniband, "NICs are InfiniBand: pods need no interface of them");
  check
      .add_option("--rdma-resource", flags.rdma_resources,
                  "A resource that brings RDMA devices under a name of its own, with {rail} at its end for "
                  "one of each rail; "
                  "repeat for several")
      ->allow_extra_args(false);
  DefineTopologyFiles(check, flags.topology);
  check.add_flag("--where", flags.where, "Also: where it would land in the cluster now, and ms per step");
  check.add_flag("--rules", flags.rules, "Instead: list the rules");
  check.footer(CheckHelp());
}

void DefineBench(CLI::App& bench, BenchOptions& flags) {
  bench.add_option("KIND/NAME", flags.target,
                   "Whose gang, as explain takes it; of several attempts the last");
  bench.add_option("--nodes", flags.nodes, "Instead: whole nodes, a list with commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  bench.add_option(
      "--collective", flags.collective,
      "all_reduce, reduce_scatter, all_gather, alltoall or sendrecv (all_reduce, or what the results say)");
  bench.add_option("--image", flags.image, "Image of the manifest, with mpirun, sshd and nccl-tests");
  bench
      .add_option("--rdma-resource", flags.rdma_resources,
                  "A resource that brings a worker its RDMA devices, one each; repeat for several")
      ->allow_extra_args(false);
  bench.add_option("--network", flags.network,
                   "RoCE: networks of k8s.v1.cni.cncf.io/networks, the NICs' interfaces");
  bench.add_option("--gpu-resource", flags.gpu_resource,
                   "With --nodes: what GPUs are called (nvidia.com/gpu)");
  bench.add_option("--results", flags.results,
                   "FILE of what the run printed, - is standard input: measured beside predicted");
  bench
      .add_option(
          "--topology", flags.ground.topology,
          "FILE of `kubectl get nt,fabrics,gangs -A -o json`, in place of the cluster; repeat for several")
      ->allow_extra_args(false);
  bench.add_option("--synthetic", flags.ground.synthetic,
                   "Or the cluster in one line, as su:2 node:16 gpu:8 nic:8 rail:8; with --nodes");
  bench.footer(kBenchHelp);
}

void DefinePrepare(CLI::App& prepare, PrepareOptions& flags) {
  prepare
      .add_option("-f,--filename", flags.files, "What to prepare; repeat for several, - is standard input")
      ->required()
      ->allow_extra_args(false);
  prepare
      .add_option("--gpu-resource", flags.gpu_resources,
                  "What GPUs are called: nvidia.com/gpu, amd.com/gpu or heddle.dev/gpu (nvidia.com/gpu)")
      ->allow_extra_args(false);
  prepare.add_flag(
      "--without-fabric", flags.without_fabric,
      "Do not ask for heddle.dev/fabric: where the chart has agent.devices.enabled=false no node "
      "offers it");
  prepare.footer(kPrepareHelp);
}

void DefineRelease(CLI::App& release, ReleaseOptions& flags) {
  release.add_flag("--all", flags.all, "Every pod that waits for Heddle; with -n, of that namespace");
  release.add_flag("--dry-run", flags.dry_run, "Only show what is held, and what would be done");
  release.footer(kReleaseHelp);
}

}  // namespace heddle::cli
