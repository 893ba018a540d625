#pragma once

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/version.h"
#include "nodeagent/devices/node_devices.h"
#include "nodeagent/grants/allocation_events.h"
#include "nodeagent/grants/pod_resources.h"
#include "nodeagent/leaf/memory.h"
#include "nodeagent/nic/storage_nics.h"
#include "nodeagent/nic/uncabled.h"

namespace heddle::nodeagent {

inline constexpr const char* kAbout =
    R"(Learns what one machine has of a training fabric and keeps it in Kubernetes.

It reads GPUs and NVLinks (NVML), the PCI tree and NUMA nodes (sysfs, hwloc), RDMA devices and interfaces
(sysfs), and the leaf switch of each NIC; measures which NIC serves which GPU on which rail; and publishes that
as the status of the NodeTopology of this node (kubectl get nt), on change only. Pods with heddle.dev/fabric
get NCCL's configuration of the node from it. It changes nothing on the machine but what LosslessPolicies say,
and that with --lossless apply only.)";
inline constexpr const char* kExamples = R"(
Examples:
  heddle-nodeagent --print                           this machine as text, to read or to paste into a ticket
  heddle-nodeagent --print -o yaml                   the object that would be published of it
  heddle-nodeagent --machine DIR --print -o json     the same of a recorded machine
  heddle-nodeagent --print --follow                  then a line for each change, until Ctrl-C
  heddle-nodeagent --nccl-topo topo.xml              NCCL's topology file of this machine, rails and planes included
  heddle-nodeagent --from-nccl-xml topo.xml --print  where the hypervisor hides PCIe: the cloud's file tells it
  heddle-nodeagent record DIR --scrub                record this machine under other names, to attach to a bug report
  heddle-nodeagent record - --scrub > node.tar       the same as an archive; from a pod: kubectl heddle record NODE
  heddle-nodeagent --machine DIR record DIR2 --scrub give a recording other names
  heddle-nodeagent qos show                          what makes each RoCE port lossless, or not
  heddle-nodeagent --node gpu-17                     in a DaemonSet, with its ServiceAccount
  heddle-nodeagent --machine DIR --kubeconfig FILE   publish a recorded machine, as demos and tests do)";

// Of a live machine, and free on most. Loopback: who else may see the node's links is for the chart to say.
inline constexpr const char* kDefaultListen = "127.0.0.1:9559";

// What heddle-nodeagent was asked to do. For its main.cc, and what only that calls.
struct Flags {
  std::string named;  // --node as it was typed; `node` may also be $NODE_NAME
  std::string node, machine, kubeconfig, context, output = "text", record_to, log_level = "info";
  std::string nccl_topo, from_nccl_xml;
  std::string qos, qos_port, qos_output = "table";  // the verb: "show", "watch"; empty = none
  std::string probe;                                // the library that a child was started for
  std::string nvml = "libnvidia-ml.so.1", lldpd_socket, labels_file;
  std::string uncabled;                       // as UncabledPorts::Parse takes it
  std::string storage;                        // as StorageNics::Parse takes it
  std::optional<std::string> pod_resources;   // as given
  std::optional<std::string> device_plugins;  // as given
  std::string state_dir = "/var/lib/heddle", infiniband_devices = "/dev/infiniband", nccl_conf = "variable";
  // nullopt: the default, which is off for a recorded machine.
  std::optional<std::string> listen;
  bool print = false, follow = false, once = false, scrub = false, follow_plans = false;
  double interval_s = 60, counters_interval_s = 5, jitter_s = 10;
  // Lossless settings of ports: "observe" or "apply", and how long their steps take (qos/apply.h).
  std::string lossless = "observe", qos_dir;
  double lossless_interval_s = 30, lossless_drain_s = 15, lossless_settle_s = 10, lossless_patience_s = 1800;

  // It answers a person and exits, or goes on until Ctrl-C: no daemon.
  bool AnswersOnce() const { return print || !nccl_topo.empty() || !record_to.empty() || !qos.empty(); }
  // `environment`: $NODE_NAME, null where there is none, for who was told no --node.
  void TakeNode(const char* environment) {
    named = node;
    if (node.empty() && environment != nullptr) node = environment;
  }
  LeafPaths Paths() const { return {lldpd_socket, labels_file}; }
  // The kubelet's socket; empty = do not ask. A recorded machine's own kubelet is elsewhere.
  std::string PodResources() const {
    if (pod_resources) return *pod_resources == "none" ? std::string() : *pod_resources;
    return machine.empty() ? std::string(kPodResourcesSocket) : std::string();
  }
  // The kubelet's folder of device plugins; empty = this agent is none.
  std::string DevicePlugins() const {
    if (device_plugins) return *device_plugins == "none" ? std::string() : *device_plugins;
    return machine.empty() ? std::string(kDevicePluginsFolder) : std::string();
  }
  // Where it is heard that the kubelet gave something away, also by an agent that offers nothing there.
  std::string AllocationsFolder() const {
    const std::string offers = DevicePlugins();
    return offers.empty() ? std::string(kDevicePluginsFolder) : offers;
  }
};

// Why these cannot all be done, as a sentence: what would be left out in silence. Empty: they can.
inline std::string WhyNotTogether(const Flags& flags) {
  const int verbs = int(flags.print) + int(!flags.nccl_topo.empty()) + int(!flags.record_to.empty()) +
                    int(!flags.qos.empty());
  if (verbs > 1) return "--print, --nccl-topo, record and qos each do their work and end: give one of them";
  if (flags.follow && flags.output == "yaml")
    return "--follow prints a line for each change, and YAML has no lines: give -o text or -o json";
  if (!flags.print && flags.output != "text")
    return "-o says how --print prints, which is not asked for: add --print, or for qos show give -o behind "
           "it";
  if (flags.AnswersOnce() && flags.listen)
    return "--listen is for the agent that publishes: --print, --nccl-topo, record and qos serve no metrics; "
           "leave "
           "it out";
  return {};
}

// What the flags say of the device plugin; nothing where this agent is none.
inline std::optional<NodeDevicesOptions> DevicesOf(const Flags& flags, GrantSource* kubelet) {
  if (flags.DevicePlugins().empty()) return std::nullopt;
  NodeDevicesOptions options;
  options.plugins.folder = flags.DevicePlugins();
  options.plugins.log = [](const std::string& line) { spdlog::info(line); };
  options.state = flags.state_dir;
  options.infiniband = flags.infiniband_devices;
  options.nccl_over_etc = flags.nccl_conf == "etc";
  options.kubelet = kubelet;
  return options;
}

inline void DefineDevices(CLI::App& app, Flags& flags) {
  app.add_option("--device-plugins", flags.device_plugins,
                 "The kubelet's folder of device plugins, to offer heddle.dev/fabric and the resources of "
                 "RdmaDevicePolicies there, or none (default: /var/lib/kubelet/device-plugins; with "
                 "--machine, none)");
  app.add_option("--state-dir", flags.state_dir,
                 "Folder of our own on the host: the NCCL files that pods get, and what a port was set to "
                 "while it is "
                 "changed")
      ->capture_default_str();
  app.add_option("--infiniband-devices", flags.infiniband_devices,
                 "Where the host's uverbs* and rdma_cm lie, for pods that get NICs")
      ->capture_default_str();
  app.add_option("--nccl-conf", flags.nccl_conf,
                 "How NCCL in a pod finds its file: variable (NCCL_CONF_FILE; NCCL 2.23 and later), or etc "
                 "(/etc/nccl.conf, in place of the image's own; any NCCL)")
      ->check(CLI::IsMember({"variable", "etc"}))
      ->capture_default_str();
  app.add_flag("--follow-plans", flags.follow_plans,
               "Watch this node's pods, to give them the devices of their plans and to compare");
}

inline void DefineQos(CLI::App& app, Flags& flags) {
  CLI::App* qos = app.add_subcommand("qos", "What makes RoCE ports lossless: read it, watch it change");
  qos->require_subcommand(1);
  CLI::App* show =
      qos->add_subcommand("show", "Every setting of each port as the kernel has it now, or why not");
  CLI::App* watch = qos->add_subcommand("watch", "A line for each change of DCB, and who probably made it");
  for (CLI::App* verb : {show, watch}) {
    verb->add_option("PORT", flags.qos_port, "mlx5_0:1, mlx5_0 or eth2 (default: all RoCE ports)");
    verb->callback([&flags, name = verb->get_name()] { flags.qos = name; });
  }
  show->add_option("-o,--output", flags.qos_output,
                   "table, json or yaml, which is what `record` keeps as qos.yaml")
      ->check(CLI::IsMember({"table", "json", "yaml"}))
      ->capture_default_str();
}

inline void DefineLossless(CLI::App& app, Flags& flags) {
  app.add_option("--lossless", flags.lossless,
                 "What to do where a port is not as its LosslessPolicy says: observe (say so), or apply (set "
                 "it, where the policy's mode is Apply; needs CAP_NET_ADMIN)")
      ->check(CLI::IsMember({"observe", "apply"}))
      ->take_last()
      ->capture_default_str();
  app.add_option("--lossless-interval", flags.lossless_interval_s,
                 "Seconds between two readings of all ports")
      ->check(CLI::Range(0.1, 3600.0))
      ->take_last()
      ->capture_default_str();
  app.add_option("--lossless-drain", flags.lossless_drain_s,
                 "Seconds from taking a port away from new pods to asking who still uses it")
      ->check(CLI::Range(0.0, 3600.0))
      ->take_last()
      ->capture_default_str();
  app.add_option("--lossless-patience", flags.lossless_patience_s,
                 "Seconds after that for which a port in use is kept from new pods, for its programs to end; "
                 "then it is given back and tried again later (0: kept from them until they have ended)")
      ->check(CLI::Range(0.0, 30.0 * 86400))
      ->take_last()
      ->capture_default_str();
  app.add_option("--lossless-settle", flags.lossless_settle_s,
                 "Seconds for which the link of a port that was set is watched before pods get it again")
      ->check(CLI::Range(0.0, 3600.0))
      ->take_last()
      ->capture_default_str();
  app.add_option("--qos-dir", flags.qos_dir,
                 "With --machine: folder in which its ports are kept and written (default: in memory)")
      ->type_name("DIR");
}

inline CLI::App* DefineRecord(CLI::App& app, Flags& flags) {
  CLI::App* record =
      app.add_subcommand("record", "Copy what discovery reads of this machine into a new folder");
  record
      ->add_option("DIR", flags.record_to,
                   "The folder; it must not exist, or be empty. - is standard output, as a tar archive")
      ->required();
  record->add_flag(
      "--scrub", flags.scrub,
      "Under other names: GUIDs, MAC and IP addresses, UUIDs, serial numbers, hosts and switches");
  return record;
}

// Refuses what Named::Parse does, with its reason.
template <class Named>
CLI::Validator CheckNamed() {
  return {[](const std::string& text) {
            const auto parsed = Named::Parse(text);
            return parsed ? std::string() : parsed.error().message;
          },
          ""};
}

// What a machine is asked beside its kernel, and what its owner knows better.
inline void DefineSources(CLI::App& app, Flags& flags, CLI::Option* machine) {
  app.add_option(
         "--nvml", flags.nvml,
         "The GPU driver's management library: a name for the loader, a path, or, with a / at its end, "
         "the root of the file system that the driver is installed in")
      ->take_last()
      ->capture_default_str();
  app.add_option("--lldpd-socket", flags.lldpd_socket,
                 "lldpd's control socket (default: where lldpcli looks for it)")
      ->take_last();
  app.add_option(
         "--labels-file", flags.labels_file,
         "A file on this machine with key=value lines that name its place in the cloud's network, such as "
         "topology.k8s.aws/network-node-layer-3=nn-0a1b: for EFA and clouds whose switches are silent, where "
         "nobody labels the Node; read at each look")
      ->type_name("FILE")
      ->take_last()
      ->excludes(machine);
  app.add_option(
         "--uncabled", flags.uncabled,
         "Ports of RDMA devices that nobody cabled, and that are left out while they are down: DEVICE or "
         "DEVICE:PORT, with the shell's *, ? and [...], separated by commas, such as mlx5_1,mlx5_[45]:2. "
         "The same port of every card of a model is found without it")
      ->type_name("PATTERN,...")
      ->take_last()
      ->check(CheckNamed<UncabledPorts>());
  app.add_option(
         "--storage", flags.storage,
         "RDMA devices that are for storage, where they would be measured as rails: names with the shell's "
         "*, ? and [...], separated by commas, such as mlx5_2,mlx5_[67]")
      ->type_name("PATTERN,...")
      ->take_last()
      ->check(CheckNamed<StorageNics>());
  app.add_option("--pod-resources", flags.pod_resources,
                 "The kubelet's socket to ask which container holds which devices, or none (default: "
                 "/var/lib/kubelet/pod-resources/kubelet.sock; with --machine, none)");
}

// Returns the subcommand `record`. The other, `nvml-probe`, is what NvmlProcess starts; no one else does.
inline CLI::App* Define(CLI::App& app, Flags& flags) {
  app.footer(kExamples);
  app.set_version_flag("--version", "heddle-nodeagent " + std::string(base::kVersion));
  app.add_option("--node", flags.node,
                 "Name of the Node (default: $NODE_NAME, machine.yaml, the host's name)");
  CLI::Option* machine =
      app.add_option("--machine", flags.machine, "Folder of a recorded machine, in place of this one");
  app.add_flag("--print", flags.print, "Print the NodeTopology and exit; needs no cluster");
  app.add_flag("--follow", flags.follow,
               "With --print: go on, and print each change of health or topology as a line")
      ->needs("--print");
  app.add_option(
         "--nccl-topo", flags.nccl_topo,
         "Write NCCL's topology file of the machine (NCCL_TOPO_FILE) to FILE, or - for the terminal, and "
         "exit")
      ->type_name("FILE");
  app.add_option(
         "--from-nccl-xml", flags.from_nccl_xml,
         "Take the PCIe tree from this NCCL topology file: for VMs whose hypervisor hides it. With --print "
         "on a machine that has none of its devices: print what the file says")
      ->type_name("FILE");
  app.add_option("-o,--output", flags.output,
                 "text is for people and tickets, json and yaml are the object; with --follow text or json, "
                 "where each line "
                 "is one object")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Default: $KUBECONFIG, the pod's service account, ~/.kube/config");
  app.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  app.add_option("--interval", flags.interval_s, "Seconds between two full looks at the machine")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_option("--counters-interval", flags.counters_interval_s,
                 "Seconds between two passes over the links' counters, while the kernel says nothing")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--listen", flags.listen,
                 "ADDRESS:PORT of /metrics, /healthz and /readyz; port 0 takes a free one, \"\" is none "
                 "(default: 127.0.0.1:9559, none with --machine)");
  app.add_option("--publish-jitter", flags.jitter_s,
                 "A change waits up to so many seconds, so that agents do not write at once")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_flag("--once", flags.once, "Exit after the first publication");
  DefineSources(app, flags, machine);
  DefineDevices(app, flags);
  DefineLossless(app, flags);
  app.add_option("--log-level", flags.log_level, "debug, info, warn or error")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  CLI::App* record = DefineRecord(app, flags);
  DefineQos(app, flags);
  CLI::App* probe = app.add_subcommand("nvml-probe", "")->group("");
  probe->add_option("LIBRARY", flags.probe)->required();
  return record;
}

}  // namespace heddle::nodeagent
