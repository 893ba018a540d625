#include "cli/flags_bench.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {
namespace {

constexpr const char* kBenchHelp = R"(
Runs NVIDIA's nccl-tests over the GPUs of a gang, in the order of its ranks, or over whole nodes, and holds what they
measure against what the model of collectives predicts there.

Without --results it prints an MPIJob (v2beta1, for the mpi-operator) as YAML, with the prediction in comments. With
KIND/NAME its workers carry the gang's own words, so that Heddle places them as it placed the gang: while that still
runs, they wait. With --nodes they are bound to these nodes, and Heddle orders them. --image has no default: it needs
mpirun (Open MPI), sshd with host keys, and nccl-tests built with MPI=1 in its PATH, with the NCCL of your jobs.

With --results it reads what the run printed, of any version and with NCCL's own lines between, and names what is
slow: from 64 MiB on less than 80% of the predicted bandwidth. Elements that came out wrong are corrupted data,
whatever the speed. Nine of ten published results of that size are within 10% of the model: docs/cost-model.md.

Examples:
  kubectl heddle bench gang/llama-3f9c1a7e-0 -n team --image registry.example/nccl-tests:2.18 \
      --rdma-resource rdma/hca > bench.yaml
  kubectl create -f bench.yaml && kubectl logs -n team -f job/nccl-all-reduce-llama-launcher > results.txt
  kubectl heddle bench gang/llama-3f9c1a7e-0 -n team --results results.txt
  kubectl heddle bench --nodes gpu-001,gpu-002 --collective alltoall --image registry.example/nccl-tests:2.18
  kubectl get nt,fabrics,gangs -A -o json > now.json
  kubectl heddle bench job/llama --topology now.json --results results.txt -o json

Exit codes: 0 done, 3 something is slow, wrong or unfinished, 2 called wrongly or a file could not be read, 1 the
cluster could not be asked.)";

}  // namespace

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

}  // namespace heddle::cli
