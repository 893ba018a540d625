#include <CLI/CLI.hpp>

#include "cli/flags_commands.h"

namespace heddle::cli {
namespace {

constexpr const char* kFabricHelp = R"(
The fabrics that the nodes make: their leaves by rail and scalable unit, NVLink domains over nodes, and what is cabled
wrongly. What was neither measured nor declared is said as assumed. With import and design a fabric is made of files or
of numbers; each has a --help of its own.

Examples:
  kubectl heddle fabric
  kubectl heddle fabric -o json
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json
  kubectl heddle fabric --topology fabric.json
  kubectl heddle fabric design --gpus 1024 --transport ib --topology - | kubectl heddle fabric --topology -

Exit codes: 0 shown, 1 no node has reported, or the cluster could not be asked, 2 called wrongly or a file could not be
read.)";

constexpr const char* kImportHelp = R"(
What each FILE is, is told from its content. Notes say what no file tells and is taken for granted, warnings what
contradicts itself, or a cable that is not as its like; both go to standard error. docs/import.md says more.

Examples:
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json
  kubectl heddle fabric import topology.conf --gpus-per-node 4 --nvlink-blocks -o json > fabric.json
  kubectl heddle fabric import topo-m:notes.txt gpu-017=lldp.json --transport roce
  kubectl heddle plan --topology fabric.json --parallelism "tp=8,dp=16"

Exit codes: 0 done, 2 called wrongly, or a file could not be read.)";

constexpr const char* kDesignHelp = R"(
Counts what a cluster's network takes before anything is bought: tiers, leaves, spines, cores, cables by length and
kind, transceivers, the network to storage, a range of prices, and what an all-reduce and a training step would take
on it. InfiniBand and RoCE stand side by side unless --transport says one of them. No cluster is asked.

Lengths follow from a stated hall, prices are estimates with a date: --prices FILE puts yours in their place, as
  date: 2026-12
  items:
    switch.qm9700: {low: 28000, high: 31000}
    transceiver.multimode.400: 620

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

constexpr const char* kPlanHelp = R"(
Examples:
  kubectl get nt,fabrics,gangs -A -o json | kubectl heddle plan --topology - --parallelism "tp=8,dp=16"
  kubectl heddle plan --synthetic "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100" \
      --parallelism "tp=8,pp=2,dp=8" --gpus-per-pod 4 --what-if
  kubectl heddle plan --topology now.json --suggest --gpus 256 --global-batch 2048 \
      --model "params=70e9,layers=80,hidden=8192,seq=8192"
  kubectl heddle plan --topology now.json --defragment 2     which gangs to move so that two NVLink domains are whole

Exit codes: 0 it fits, 3 it does not, 2 the question is wrong, or a file could not be read.)";

void DefineImport(CLI::App& command, ImportOptions& flags) {
  command
      .add_option(
          "FILE", flags.sources,
          "ibnetdiscover text, Slurm topology.conf or topology.yaml, NCCL topology XML, `nvidia-smi topo "
          "-m`, lldpd json0; HOST=FILE for one host's, KIND:FILE where the content does not tell")
      ->required();
  command.add_option("--gpus-per-node", flags.gpus_per_node, "Where no file shows a host's inside (8)");
  command.add_option("--link-gbps", flags.link_gbps, "Where no file says how fast a link is (400)");
  command.add_option("--transport", flags.transport, "ib, roce, efa or ethernet, where no file says it");
  command.add_flag("--nvlink-blocks", flags.nvlink_blocks, "Slurm's blocks are NVLink domains");
  command.footer(kImportHelp);
}

void DefineDesign(CLI::App& design, FabricDesignOptions& flags) {
  design.add_option("--gpus", flags.gpus, "How many GPUs the fabric is for");
  design.add_option("--machine", flags.machine, "a100, b200, b300, gb200, h100, h200 or mi300x")
      ->capture_default_str();
  design.add_option("--wiring", flags.wiring, "rail-optimised, fat-tree (plain ToRs) or rail-only")
      ->capture_default_str();
  design.add_option("--rails", flags.rails, "Rails of a node (one for each NIC)");
  design.add_option("--planes", flags.planes, "Parallel networks: ports of each NIC, which share its rate")
      ->capture_default_str();
  design.add_option("--oversubscription", flags.oversubscription, "Downlinks to uplinks of leaves, as 2:1")
      ->capture_default_str();
  design.add_option("--core-oversubscription", flags.core_oversubscription, "The same of spines below cores")
      ->capture_default_str();
  design.add_option("--transport", flags.transport, "ib or roce (both, side by side)");
  design.add_option(
      "--switch", flags.switch_word,
      "qm8790, qm9700, q3400, sn5600, tomahawk4 or tomahawk5 (what is usual at the NICs' rate)");
  design.add_option("--radix", flags.radix,
                    "Ports of each switch at the links' rate, instead of all that a --switch has");
  design.add_option("--tiers", flags.tiers, "1, 2 or 3 (as few as hold the GPUs)");
  design.add_option("--unit-nodes", flags.unit_nodes,
                    "Nodes of a scalable unit, built whole even where it is not full (units of equal size)");
  design.add_option("--spare-ports", flags.spare_ports, "Ports of each switch to leave free");
  design.add_option("--nodes-per-rack", flags.nodes_per_rack, "Nodes of one rack (what --rack-kw feeds)");
  design.add_option("--rack-kw", flags.rack_kw, "Kilowatts of one rack")->capture_default_str();
  design.add_option("--racks-per-row", flags.racks_per_row,
                    "Racks of one row (as square a hall as they make)");
  design.add_option("--row-metres", flags.row_metres, "Metres from row to row")->capture_default_str();
  design.add_option("--storage", flags.storage, "Reads to size storage for: good, better or best")
      ->capture_default_str();
  design.add_option("--storage-gbs-per-gpu", flags.storage_gbs_per_gpu,
                    "The same as GB/s of each GPU, as 0.5");
  design.add_option(
      "--model", flags.model,
      "llama3-8b, llama3-70b, llama3-405b or params=70e9,layers=80,hidden=8192,seq=8192 (by --gpus)");
  design.add_option("--parallelism", flags.parallelism, "tp=8,pp=2,dp=64 (the fastest)");
  design.add_option("--global-batch", flags.global_batch,
                    "Sequences per step (2048, or the next for all nodes)");
  design.add_option("--prices", flags.prices, "FILE with your prices; - is standard input");
  design.add_option("--topology", flags.topology,
                    "FILE to write the cluster to, for the --topology of other commands; - is standard "
                    "output");
  design.footer(kDesignHelp);
}

}  // namespace

void DefineFabric(CLI::App& fabric, Flags& flags) {
  DefineImport(
      *fabric.add_subcommand("import",
                             "NodeTopology and Fabric objects for `plan --topology`, from files that "
                             "you have already"),
      flags.import);
  DefineDesign(
      *fabric.add_subcommand(
          "design", "A fabric on paper: switches, cables, prices and predicted times; asks no cluster"),
      flags.design);
  DefineTopologyFiles(fabric, flags.topology);
  fabric.footer(kFabricHelp);
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
                "Also: how many of these fit now, counted up to 1000, or who would have to end to make room");
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
  plan.footer(kPlanHelp);
}

}  // namespace heddle::cli
