"""The bed of a release: a control plane, a real kubelet with the images, KWOK's nodes beside it, and no Heddle yet.

node-00 is real. Its GPUs are names that a device plugin offers, as NVIDIA's would; its NICs and its NCCL file come from
the agent that the DaemonSet runs there, on a recorded machine. node-01 to node-03 are KWOK's, with agents beside them.
"""

import json
import os
import shutil
import stat
import threading
import time

import pod_network
from bed import ControlPlane, Heddle, Nodes, h100, path, wait_for
from bed.heddle import NAMESPACE
from bed.process import run
from bed.testing import options
from real_node import NodeTestCase, RealNode, archive_image
from test_device_plugin import BUSYBOX
from test_grants import DevicePlugin

CLUSTER = h100(units=2, nodes_per_unit=2)
REAL = CLUSTER.nodes[0].name
FAKE = [node.name for node in CLUSTER.nodes[1:]]
SYSTEM, TEAM = NAMESPACE, "team"
RDMA = "heddle.dev/rdma"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
QUICKSTART_IMAGE = "docker.io/library/busybox:1.37"  # what its Job names
NEXT = "next"  # the tag that an upgrade goes to


class ReleaseBed(NodeTestCase):
    NODE = REAL
    COMPONENTS = ControlPlane.COMPONENTS

    @classmethod
    def make_plane(cls, users):
        cls.dns = pod_network.ClusterDns()
        cls.addClassCleanup(cls.dns.close)
        # As the Service `kubernetes` has it. Nobody outside of this network namespace sees it.
        return ControlPlane(cls.BED, components=cls.COMPONENTS, users=users, port=443,
                            arguments={"apiserver": [
                                "--bind-address=0.0.0.0",
                                # Nobody resolves the node's name here; `helm test --logs` asks its kubelet.
                                "--kubelet-preferred-address-types=InternalIP"]})

    @classmethod
    def make_node(cls):
        return RealNode(cls.plane, REAL, network=pod_network.PLUGIN,
                        arguments=[f"--node-ip={pod_network.NODE_ADDRESS}"], settings={
                            "address": "0.0.0.0",  # of this network namespace
                            "clusterDNS": [pod_network.DNS], "clusterDomain": pod_network.DOMAIN})

    @classmethod
    def prepare(cls):
        # As systemd has it on every host.
        cls.node.inside("mount", "--make-rshared", "/")
        cls._load_images()
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.recording = cls.heddle.write_machines(CLUSTER)[REAL]
        machine = json.loads(run([options.binaries / "heddle-nodeagent", "--machine", cls.recording, "--print", "-o",
                                  "json"]).stdout)["status"]
        cls.nics = sorted((nic for nic in machine["nics"] if nic["role"] == "compute"), key=lambda nic: nic["rail"])
        cls._make_device_nodes(machine)
        cls.plane.rest.patch(path("nodes", name=REAL), {"metadata": {"labels": dict(CLUSTER.nodes[0].labels)}})
        cls._add_fake_nodes()
        cls.gpus = DevicePlugin(cls.node, "nvidia.com/gpu", [gpu["uuid"] for gpu in machine["gpus"]]).start()

    @classmethod
    def _load_images(cls):
        """Ours as `ctr images import` takes them; busybox for the training pods."""
        # Of this machine's architecture: tools/images may have left others there.
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
        archives = sorted(options.images.glob(f"*-{machine}.tar"))
        for wanted in ("heddle-", "kube-scheduler-"):
            if not any(archive.name.startswith(wanted) for archive in archives):
                raise AssertionError(f"{options.images} has no image {wanted}*-{machine}.tar: `make e2e` makes it")
        (cls.plane.folder / "busybox").mkdir()
        archives.append(archive_image(cls.plane.folder / "busybox", BUSYBOX, {"bin/busybox": shutil.which("busybox")},
                                      ["/bin/busybox"], links={"bin/sh": "busybox"}))
        for archive in archives:
            cls.node.import_image(archive)
        ours = next(line.split()[0] for line in cls.node.images("ls").splitlines() if "/heddle:" in line)
        cls.node.images("tag", ours, f"{ours.rpartition(':')[0]}:{NEXT}")
        cls.node.images("tag", BUSYBOX, QUICKSTART_IMAGE)
        # Charts of before 2026-11-24 named it without a registry.
        scheduler = next(line.split()[0] for line in cls.node.images("ls").splitlines() if "/kube-scheduler:" in line)
        cls.node.images("tag", scheduler, f"docker.io/library/{scheduler.rpartition('/')[2]}")

    @classmethod
    def _make_device_nodes(cls, machine):
        """uverbs0 and on, in a folder of the node that the agent sees under the same name."""
        folder = cls.node.lib / "heddle" / "infiniband"
        folder.mkdir(parents=True)
        verbs = cls.recording / "sys/class/infiniband_verbs"
        cls.verbs = {}
        for number, nic in enumerate(machine["nics"]):
            (verbs / f"uverbs{number}").mkdir(parents=True, exist_ok=True)
            (verbs / f"uverbs{number}" / "ibdev").write_text(nic["name"] + "\n")
            cls.verbs[nic["name"]] = f"uverbs{number}"
            os.mknod(folder / f"uverbs{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))  # null

    @classmethod
    def _add_fake_nodes(cls):
        nodes = Nodes(cls.plane)
        for node in CLUSTER.nodes[1:]:
            # What is no GPU pod and no agent belongs elsewhere, as on most clusters.
            body = nodes.body(node.name, labels=node.labels, taints=[GPU_TAINT])
            for kind in ("capacity", "allocatable"):
                body["status"][kind] = body["status"][kind] | {RDMA: "1"}
            cls.plane.rest.create(path("nodes"), body)
        nodes.wait_ready([node.name for node in CLUSTER.nodes[1:]])

    # What a person has there

    @classmethod
    def values(cls):
        """Of the chart: what is played here and found by itself on a machine with GPUs."""
        return {
            "agent": {
                # This machine has none, and the folder would be made in its own /dev.
                "access": {"driver": "host", "infiniband": "none", "lldp": "host"},
                "arguments": [f"--machine=/host{cls.recording}", "--infiniband-devices=/var/lib/heddle/infiniband",
                              "--pod-resources=/var/lib/kubelet/pod-resources/kubelet.sock",
                              "--device-plugins=/var/lib/kubelet/device-plugins",
                              "--interval=1", "--publish-jitter=0.1"]}}

    @classmethod
    def start_fake_agents(cls):
        """Those of KWOK's nodes, where pods run by name only. Their accounts are the chart's, so after its installation."""
        for node in FAKE:
            cls.heddle.start_agent(node, "--interval", "1", "--publish-jitter", "0.1")

    @classmethod
    def start_fake_agents_once_installed(cls):
        """The same without being told when."""
        over = threading.Event()

        def look():
            account = path("serviceaccounts", SYSTEM, "heddle-nodeagent")
            while not over.wait(0.5):
                if cls.plane.rest.find(account):
                    cls.start_fake_agents()
                    break

        def end():
            over.set()
            looking.join()
        looking = threading.Thread(target=look, name="agents", daemon=True)
        looking.start()
        cls.addClassCleanup(end)  # before the bed's own

    @classmethod
    def environment(cls):
        """Of a person's shell: kubectl, helm and kubectl-heddle, of this cluster. VALUES: a file of values()."""
        file = cls.plane.folder / "values.yaml"
        file.write_text(json.dumps(cls.values(), indent=1))
        return {"PATH": f"{options.binaries}:{cls.plane.binaries}:{os.environ.get('PATH', '/usr/bin:/bin')}", "VALUES": str(file),
                "TERM": os.environ.get("TERM", "dumb"), "LANG": "C.UTF-8"} | cls.plane.tool_environment()

    # Looking

    def wait(self, predicate, what, timeout=120.0):
        return wait_for(predicate, what, timeout, failed=self.died)

    @classmethod
    def died(cls):
        return cls.plane.died() or cls.node.died() or cls.heddle.died()

    def setUp(self):
        self.started = time.monotonic()

    def say(self, sentence):
        print(f"    {time.monotonic() - self.started:5.1f} s  {sentence}", flush=True)

    def helm(self, *arguments, stdin=None):
        """All that a person reads."""
        done = run([self.plane.binaries / "helm", *arguments, "--namespace", SYSTEM], stdin=stdin, timeout=400,
                   environment=self.plane.tool_environment())
        return done.stdout + done.stderr
