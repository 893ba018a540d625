#include <CLI/CLI.hpp>

#include "cli/flags_commands.h"

namespace heddle::cli {
namespace {

constexpr const char* kLintHelp = R"(
A FILE is, as its content tells:
  a LosslessPolicy or an RdmaDevicePolicy    before `kubectl apply`
  NodeTopologies, beside policies or not     kubectl get losslesspolicies,rdmadevicepolicies,nt -o yaml > cluster.yaml
  a SONiC switch's config_db.json            scp leaf-3:/etc/sonic/config_db.json leaf-3.json
  what mlnx_qos prints of one interface      mlnx_qos -i eth2 > gpu-017-eth2.txt
  what dcb prints of one interface           for it in pfc ets app buffer; do dcb -j $it show dev eth2; done > eth2.json
  -                                          any of these on standard input
What mlnx_qos or dcb printed of two interfaces goes into two files.

Each policy and port is looked at by itself; hosts and policies against every switch that is given, hosts against
each other, and against the policy where there is just one. What a file does not say is not held against it.

Examples:
  kubectl heddle lint policy.yaml                             before `kubectl apply`
  kubectl heddle lint policy.yaml leaf-*.json -o json         in CI: does the fabric take what hosts will send?
  kubectl get losslesspolicies,nt -o json | kubectl heddle lint - leaf-3.json
  kubectl heddle lint --resolved policy.yaml                  each value that comes of it, and who says so
  kubectl heddle lint --rules                                 what it looks for; docs/lossless.md says why

Exit codes: 0 nothing was found, 3 something was (errors or warnings), 2 a file, or a port in one, could not be read;
the rest was looked at all the same. Where there is nothing to look at, or nothing of PFC, it is 2 as well.)";

constexpr const char* kSwitchHelp = R"(
Both work on files, and nothing is sent to a switch; each has a --help of its own.

Examples:
  kubectl heddle switch render policy.yaml --config leaf-3.json --port Ethernet0,Ethernet4
  kubectl get nt -o json | kubectl heddle switch compare - leaf-*.json

Exit codes: 0 nothing is to change, or every cable is lossless, 3 it is not so, 2 a file could not be read, or there is
no cable to look at.)";

constexpr const char* kSwitchRenderHelp = R"(
What a SONiC switch has to change so that a LosslessPolicy holds on its ports: the least, with why and who says so.
Maps and profiles get names of their own; those that other ports use are not edited. Nothing is sent to a switch.

  --format sonic     the changes, each with its reason
  --format patch     a JSON Patch (RFC 6902) of what `config apply-patch` takes
  --format load      the rest, for `config load`, which goes first: new profiles, and PFC_WD's GLOBAL
  --format nvue      all `nv set` lines for Cumulus Linux, compared with nothing; needs no --config

Examples:
  kubectl heddle switch render policy.yaml --config leaf-3.json --port Ethernet0,Ethernet4
  kubectl get nt -o json | kubectl heddle switch render policy.yaml --config leaf-3.json --hosts-on -
  kubectl heddle switch render policy.yaml --config leaf-3.json --port Ethernet0 --fabric-port Ethernet256 \
      --fabric-cable-metres 40 --profile spectrum/v1 --format patch > leaf-3.patch.json
  kubectl heddle switch render policy.yaml --port swp1,swp2 --format nvue

Exit codes: 0 nothing is to change, 3 something is, or the policy or the configuration is faulty, 2 a file could not
be read.)";

constexpr const char* kSwitchCompareHelp = R"(
A row for each cable between a host's RoCE port and a switch, the worst first: what both ends are set to (DSCP,
priority, queue, PFC, watchdog, ECN, MTU), and speed and FEC of the link. The files are NodeTopologies, and
config_db.json of the switches, which are known by their hostname.

  Contradiction    the ends do not go together, or one is lossy by itself
  Unproved         something that it takes is not known, or no longer
  Lossless         all of it is known and goes together

Examples:
  kubectl get nt -o json | kubectl heddle switch compare - leaf-*.json
  kubectl heddle switch compare nodes.yaml su0-r3=backup/config_db.json --problems -o json

Exit codes: 0 every cable is lossless, 3 one is not or nobody can tell, 2 a file could not be read, or there is no
RoCE port in them and so no cable to look at.)";

}  // namespace

void DefineLint(CLI::App& lint, LintOptions& flags) {
  lint.add_option("FILE", flags.files, "What to look at; repeat for several, - is standard input");
  lint.add_flag("--rules", flags.rules, "Instead: list the rules");
  lint.add_flag("--resolved", flags.resolved,
                "Instead: each value of the policies as it will be, and who says so");
  lint.footer(kLintHelp);
}

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
  made->add_option(
      "--profile", render.profile,
      "What the switch is: sonic/v1, spectrum/v1, spectrum4/v1, tomahawk/v1 (sonic/v1; with --format "
      "nvue spectrum/v1)");
  made->add_option("--format", render.format, "sonic, patch, load or nvue (sonic)");
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
  parent.footer(kSwitchHelp);
}

}  // namespace heddle::cli
