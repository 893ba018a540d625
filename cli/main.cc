#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/file_tree.h"
#include "cli/commands.h"
#include "cli/import.h"
#include "cli/plan.h"
#include "cli/read_path.h"
#include "kube/config.h"
#include "kube/cpprest_transport.h"

namespace {

using namespace heddle;  // NOLINT(google-build-using-namespace): a main.cc names all of them

constexpr const char* kAbout =
    "Shows how training jobs lie on the fabric: NVLink domains, rails, leaves, and what that costs.";
constexpr const char* kExamples = R"(
Examples:
  kubectl heddle explain job/llama -n train
  kubectl heddle explain job/llama -n train --parallelism "tp=8,pp=2,dp=8"   a Job that Heddle did not place
  kubectl heddle topology                     all nodes
  kubectl heddle topology gpu-017             one node: GPU, NIC, rail, leaf
  kubectl heddle fabric
  kubectl heddle fabric import ibnetdiscover.txt ndv4-topo.xml -o json > fabric.json    from files; asks no cluster
  kubectl get nt,fabrics,gangs -A -o json | kubectl heddle plan --topology - --parallelism "tp=8,dp=16"
  kubectl heddle plan --synthetic "su:2 node:16 gpu:8 nic:8 rail:8 spine:2 rate:400 transport:ib machine:h100" \
      --parallelism "tp=8,pp=2,dp=8" --gpus-per-pod 4

Exit codes: 0 done, 1 failed, 2 called wrongly, 3 the answer is a refusal.)";

struct Flags {
  std::string kubeconfig, context, output = "table", node;
  cli::ExplainOptions explain;
  cli::PlanOptions plan;
  cli::ImportOptions import;
};

void DefineImport(CLI::App& fabric, cli::ImportOptions& flags) {
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

void Define(CLI::App& app, Flags& flags) {
  app.footer(kExamples);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--kubeconfig", flags.kubeconfig, "Default: $KUBECONFIG, then ~/.kube/config");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  app.add_option("-n,--namespace", flags.explain.ns, "Namespace (default: the context's)");
  app.add_option("-o,--output", flags.output, "table, or json or yaml for scripts")
      ->check(CLI::IsMember({"table", "json", "yaml"}))
      ->capture_default_str();

  CLI::App* explain =
      app.add_subcommand("explain", "Where a Job's pods are, what crosses what, and the predicted cost");
  explain->add_option("JOB", flags.explain.target, "job/NAME")->required();
  explain->add_option("--parallelism", flags.explain.flags.parallelism,
                      "tp=8,pp=2,dp=8: instead of the annotation heddle.dev/parallelism");
  explain->add_option("--model", flags.explain.flags.model,
                      "params=70e9,layers=80,...: instead of heddle.dev/model");

  CLI::App* topology =
      app.add_subcommand("topology", "What the nodes' agents see: all nodes, or one as a tree");
  topology->add_option("NODE", flags.node, "Name of a node");

  CLI::App* fabric =
      app.add_subcommand("fabric", "Leaves by rail and scalable unit, NVLink domains, cabling faults");
  DefineImport(*fabric, flags.import);

  CLI::App* plan = app.add_subcommand(
      "plan", "What if: places a gang on a cluster in files or in one line; asks no cluster");
  plan->add_option(
      "--topology", flags.plan.ground.topology,
      "FILE of `kubectl get nt,fabrics,gangs -A -o json`; repeat for several, - is standard input");
  plan->add_option("--synthetic,--fabric", flags.plan.ground.synthetic,
                   "Or the cluster in one line, as su:2 node:16 gpu:8 nic:8 rail:8");
  plan->add_option("--parallelism", flags.plan.parallelism, "tp=8,pp=2,dp=8");
  plan->add_option("--gpus-per-pod", flags.plan.gpus_per_pod, "GPUs of one pod")->capture_default_str();
  plan->add_option("--model", flags.plan.model, "params=70e9,layers=80,hidden=8192,seq=8192,microbatch=1");
  plan->add_option("--require", flags.plan.require, "tp=nvlink,dp=leaf");
  plan->add_option("--prefer", flags.plan.prefer, "pp=spine");
  plan->add_option("--spares", flags.plan.spares, "Free nodes to keep in each NVLink domain over nodes");
  plan->add_flag("--what-if", flags.plan.what_if,
                 "Also: how many of these fit now, or who would have to end to make room");
  plan->add_flag("--suggest", flags.plan.suggest,
                 "Instead: the fastest layouts for --model on --gpus N (or as many as --parallelism has)");
  plan->add_option("--gpus", flags.plan.gpus, "With --suggest: how many GPUs");
  plan->add_option("--global-batch", flags.plan.global_batch, "With --suggest: sequences per step");
  plan->add_option("--defragment", flags.plan.defragment,
                   "Instead: the gangs to move so that so many NVLink domains are whole");
  plan->add_option("--defragment-level", flags.plan.defragment_level, "nvlink, or su for scalable units");
  plan->add_option("--defragment-gpus", flags.plan.defragment_gpus, "Count places with so many GPUs or more");
  plan->add_option("--slower", flags.plan.slower_percent,
                   "Percent that a moved gang may be slower; -1 = any");
  plan->add_option("--taken", flags.plan.ground.taken,
                   "GPUs that others hold: FILE of `kubectl get pods -A -o json`, or node-00=4,node-03=8");
}

cli::Output AskCluster(const CLI::App& app, Flags& flags, const cli::OutputOptions& look) {
  base::SystemClock clock;
  const base::DiskFileTree root("/");
  kube::ConfigSources sources = kube::SourcesFromEnvironment(environ);
  sources.kubeconfig_flag = flags.kubeconfig;
  sources.context = flags.context;
  auto config = kube::LoadConfig(sources, root, clock);
  if (!config)
    return cli::Failure({base::Code::kNotFound, config.error().message + "; give --kubeconfig FILE"});
  if (flags.explain.ns.empty()) flags.explain.ns = config->ns;
  kube::CpprestTransport transport(*std::move(config), clock);
  kube::Client client(transport, clock, {.user_agent = "kubectl-heddle"});
  if (app.got_subcommand("explain")) return cli::RunExplain(client, flags.explain, look, {});
  if (app.got_subcommand("topology")) return cli::RunTopology(client, flags.node, look, {});
  return cli::RunFabric(client, look, {});
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(kAbout, "kubectl heddle");
  Define(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : cli::Output::kUsage;
  }
  const char* no_colour = std::getenv("NO_COLOR");  // no-color.org
  const bool colours = isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
  const cli::Format format = flags.output == "json"   ? cli::Format::kJson
                             : flags.output == "yaml" ? cli::Format::kYaml
                                                      : cli::Format::kText;
  const cli::OutputOptions look{.format = format, .style = {.colours = colours}};
  const bool import = app.got_subcommand("fabric") && app.get_subcommand("fabric")->got_subcommand("import");
  flags.import.now = base::SystemClock().WallNow();
  const cli::Output output = app.got_subcommand("plan") ? cli::Plan(flags.plan, cli::ReadPath, look)
                             : import                   ? cli::ImportFabric(flags.import, cli::ReadPath, look)
                                                        : AskCluster(app, flags, look);
  std::fputs(output.out.c_str(), stdout);
  std::fputs(output.err.c_str(), stderr);
  return output.exit_code;
}
