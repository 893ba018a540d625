"""The agent's pod as the chart makes it, on a real kubelet, containerd and runc: what starts, and what it sees."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

from bed import Heddle
from bed.heddle import CHART, NAMESPACE
from bed.process import free_port, run
from bed.rest import path
from bed.testing import REPOSITORY, options
from real_node import NodeTestCase

NODE = NodeTestCase.NODE
IMAGE = "localhost/heddle:0.1.0"
NOTHING = {"driver": "none", "infiniband": "none", "lldp": "none"}


def files_of(*programs):
    """Programs and the libraries that the loader finds for them, by their path in the image."""
    found = {}
    for program, place in programs:
        found[place] = program
        for line in run(["ldd", program]).stdout.splitlines():
            match = re.search(r"(/\S+) \(0x", line)
            if match:
                found[match[1]] = match[1]
    return found


def make_image(folder):
    """A docker-archive of the agent, lldpd and its client, and of what they need of Debian."""
    root = folder / "root"
    tools = {name: shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in ("lldpd", "lldpcli")}
    files = files_of((options.binaries / "heddle-nodeagent", "/usr/bin/heddle-nodeagent"),
                     (tools["lldpd"], "/usr/sbin/lldpd"), (tools["lldpcli"], "/usr/sbin/lldpcli"))
    for place, source in files.items():
        to = root / place.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(source), to)
    for place in ("etc", "tmp", "run", "var/run", "host"):
        (root / place).mkdir(parents=True, exist_ok=True)
    # lldpd gives up root for its own user.
    for name in ("passwd", "group"):
        lines = [line for line in Path(f"/etc/{name}").read_text().splitlines() if re.match("root:|_lldpd:", line)]
        (root / "etc" / name).write_text("\n".join(lines) + "\n")
    shutil.rmtree(root / "var/run")
    (root / "var/run").symlink_to("/run")
    run(["tar", "-C", root, "--owner=0", "--group=0", "-cf", folder / "layer.tar", "."])
    digest = run(["sha256sum", folder / "layer.tar"]).stdout.split()[0]
    (folder / "config.json").write_text(json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
        "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}))
    (folder / "manifest.json").write_text(json.dumps([
        {"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]))
    run(["tar", "-C", folder, "-cf", folder / "heddle.tar", "manifest.json", "config.json", "layer.tar"])
    return folder / "heddle.tar"


class AgentPod(NodeTestCase):
    BED = "agent-pod"

    @classmethod
    def prepare(cls):
        # As systemd has it on every host: a mount that comes later shows where HostToContainer asks for it.
        cls.node.inside("mount", "--make-rshared", "/")
        folder = cls.plane.folder / "heddle-image"
        folder.mkdir()
        cls.node.import_image(make_image(folder))
        cls.heddle = Heddle(cls.plane, options.binaries)
        cls.heddle.install()

    def setUp(self):
        # The operator's to make on a cluster.
        self.plane.rest.create(path("nodetopologies"), {
            "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology", "metadata": {"name": NODE}, "spec": {}})
        self.addCleanup(self.plane.rest.delete, path("nodetopologies", name=NODE))

    def template(self, agent):
        values = {"image": {"registry": "localhost"}, "agent": agent}
        rendered = run([self.plane.binaries / "helm", "template", "heddle", CHART, "--namespace", NAMESPACE,
                        "--values", "-", "--show-only", "templates/nodeagent.yaml"], stdin=json.dumps(values),
                       environment=self.plane.tool_environment()).stdout
        made = json.loads(self.plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=rendered))
        return made["spec"]["template"]

    def start(self, name, agent, **environment):
        """The pod that the DaemonSet's controller would make for this node. There is no kube-proxy here, so the API
        server is named where it is; the token is the projected one."""
        template = self.template(agent)
        spec = template["spec"] | {"nodeName": NODE, "terminationGracePeriodSeconds": 1}
        host, port = re.match(r"https://(.*):(\d+)", self.plane.server).groups()
        environment |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        agent = spec["containers"][0]
        # Nothing of a test listens where others can reach it.
        agent["command"] = [word.replace("--listen=:", f"--listen={host}:") for word in agent["command"]]
        for probe in ("livenessProbe", "readinessProbe"):
            agent[probe]["httpGet"]["host"] = host
        agent["env"] += [{"name": key, "value": value} for key, value in environment.items()]
        where = path("pods", NAMESPACE, name)
        self.plane.rest.create(path("pods", NAMESPACE), {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        self.addCleanup(self.end, where)

        def running():
            status = self.plane.rest.get(where)["status"]
            states = status.get("containerStatuses", []) + status.get("initContainerStatuses", [])
            # Ready is what the agent's own /readyz says, once it has looked.
            if states and all(state["ready"] and "running" in state["state"] for state in states):
                return True
            raise AssertionError([state["state"] for state in states] or status)
        self.node.wait_for(running, f"the containers of {name} to be ready", 90)

    def end(self, where):
        self.plane.rest.delete(where)
        self.node.wait_for(lambda: not self.plane.rest.find(where), "the pod to be gone", 60)

    def status(self):
        return self.plane.rest.get(path("nodetopologies", name=NODE)).get("status", {})

    def condition(self, name):
        return next((c for c in self.status().get("conditions", []) if c["type"] == name), {})

    def wait_published(self):
        self.node.wait_for(lambda: self.status().get("observedAt"), "the agent in its container to publish")

    def test_it_starts_everywhere_and_sees_a_driver_that_comes_later(self):
        """The default, on a node without GPU, InfiniBand and lldpd."""
        self.start("host", {"arguments": ["--interval=1", "--publish-jitter=0"], "port": free_port()},
                   HEDDLE_TEST_NVML=str(Path("/host") / str(self.plane.folder)[1:] / "nvml.yaml"))
        self.wait_published()
        self.assertEqual(self.status().get("gpus", []), [])
        self.assertTrue((self.node.lib / "kubelet" / "pod-resources").is_dir())
        # It is the kubelet's device plugin from inside its container, and the files lie where the host has them.
        self.node.wait_for(lambda: self.plane.rest.get(path("nodes", name=NODE))["status"]["allocatable"].get(
            "heddle.dev/fabric") == "250", "heddle.dev/fabric to be allocatable", 90)
        self.assertTrue((self.node.lib / "heddle" / "nccl" / "nccl.conf").is_file())
        # As the GPU operator's driver container does: a mount of its own, long after the agent has started.
        sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
        import machines  # The generator of the C++ tests' fixtures.
        machine = machines.write({"nodes": [{"name": NODE, "shape": "hgx-h100"}]}, str(self.plane.folder / "m"))[NODE]
        shutil.copy(Path(machine) / "nvml.yaml", self.plane.folder / "nvml.yaml")
        library = options.binaries.parent / "nvml" / "libnvidia-ml.so.1"
        self.node.inside("sh", "-c", "mkdir -p /run/nvidia/driver && mount -t tmpfs none /run/nvidia/driver && "
                    f"mkdir -p /run/nvidia/driver/usr/lib64 && cp -L {library} /run/nvidia/driver/usr/lib64/")
        self.node.wait_for(lambda: len(self.status().get("gpus", [])) == 8, "the GPUs of the driver that was mounted")
        self.assertIn("H100", self.status()["gpus"][0]["model"])

    def test_without_any_access_it_runs_and_says_so(self):
        self.start("nothing", {"access": NOTHING, "arguments": ["--publish-jitter=0"], "port": free_port()})
        self.wait_published()

    def test_lldpd_runs_beside_it_and_answers(self):
        self.start("sidecar", {"access": NOTHING | {"lldp": "sidecar"}, "arguments": ["--publish-jitter=0"],
                               "port": free_port()})
        self.wait_published()
        pod = self.plane.rest.get(path("pods", NAMESPACE, "sidecar"))
        self.assertEqual([state["restartCount"] for state in pod["status"]["initContainerStatuses"]], [0])
        self.assertNotIn("lldpd does not say", self.condition("DiscoveryComplete").get("message", ""))
