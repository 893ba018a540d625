"""A real node on a bed's control plane: kubelet, containerd and runc, in a mount and a process namespace of their own.

Nothing of it is left when it ends: what runs in the process namespace dies with its first process, and /var/lib,
/var/log and /run are folders of the bed inside. Pods use the host's network: there is no other.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

from bed import REPOSITORY, ControlPlane  # noqa: E402
from bed.process import Process, free_port, run, stop_at_exit  # noqa: E402
from bed.rest import path  # noqa: E402
from bed.waiting import wait_for  # noqa: E402

IMAGE = "localhost/pause:1"
CGROUPS = Path("/sys/fs/cgroup")
# Of the programs that ask for a folder there. Each pod's sandbox has this image, and so have the pods of tests.
PAUSE = """
#include <signal.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (;;) pause();
}
"""
# A CNI plugin that makes nothing: containerd takes a sandbox only with an address. A pod that is not on the host's network
# has no way out.
NO_NETWORK = """#!/bin/sh
case $CNI_COMMAND in
  VERSION) echo '{"cniVersion": "0.4.0", "supportedVersions": ["0.3.0", "0.3.1", "0.4.0"]}' ;;
  ADD) echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "'$CNI_NETNS'"}],
              "ips": [{"version": "4", "interface": 0, "address": "192.0.2.1/32"}]}' ;;
esac
"""


def node_binaries():
    """The folder of kubelet and containerd, built now if they are not there."""
    done = subprocess.run([REPOSITORY / "tools" / "control-plane", "--node"], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError("tools/control-plane --node failed; its last lines above say why")
    return Path(done.stdout.split("\n")[-2])


def why_not_here():
    """What keeps us from running containers on this machine; empty = nothing."""
    if os.geteuid() != 0:
        return "a kubelet needs root"
    if not shutil.which("runc"):
        return "runc is not installed: tools/install"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "none", "/mnt"],
                           capture_output=True, text=True)
    if tried.returncode:
        return f"no namespaces here: {tried.stderr.strip()}"
    probe = next((root / f"heddle-probe-{os.getpid()}" for root in cgroup_roots()), None)
    if probe is None:
        return "no cgroups here"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as problem:
        return f"no cgroup can be made here: {problem}"
    return ""


def cgroup_roots():
    """Where groups are made: one folder of cgroup v2, or one for each controller of v1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return sorted(folder for folder in CGROUPS.iterdir()
                  if folder.is_dir() and not folder.is_symlink() and folder.name != "unified")


def archive_image(folder, name, files, entrypoint, links=None):
    """A docker-archive of static programs: `files` by their path in it, `links` to names beside them."""
    root = folder / "root"
    for place, source in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(source), root / place)
    for place, target in (links or {}).items():
        (root / place).symlink_to(target)
    run(["tar", "-C", root, "--owner=0", "--group=0", "-cf", folder / "layer.tar", "."])
    digest = run(["sha256sum", folder / "layer.tar"]).stdout.split()[0]
    (folder / "config.json").write_text(json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "os": "linux",
        "config": {"Entrypoint": entrypoint}, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}))
    (folder / "manifest.json").write_text(json.dumps([
        {"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]))
    run(["tar", "-C", folder, "-cf", folder / "image.tar", "manifest.json", "config.json", "layer.tar"])
    return folder / "image.tar"


def make_image(folder):
    """That of pods that do nothing."""
    folder.mkdir()
    (folder / "pause.c").write_text(PAUSE)
    run(["cc", "-static", "-O1", "-o", folder / "pause", folder / "pause.c"])
    return archive_image(folder, IMAGE, {"pause": folder / "pause"}, ["/pause"])


class RealNode:
    """One kubelet as Node `name` of `plane`, which must know the user "kubelet" (see USERS).

        node = RealNode(plane, "real-0")
        node.start()                        # until the Node is Ready
        node.kill_kubelet(); node.start_kubelet()

    `pod_resources` and `device_plugins` are where the kubelet's socket and those of device plugins lie, as seen from
    outside.
    """

    def __init__(self, plane, name="real-0", binaries=None, network=NO_NETWORK, settings=None, arguments=()):
        """`network`: a CNI plugin, as a program's text. `settings` and `arguments`: further ones of the kubelet."""
        self.plane = plane
        self.name = name
        self._network = network
        self._settings = dict(settings or {})
        self._arguments = list(arguments)
        self.binaries = Path(binaries) if binaries else node_binaries()
        self.folder = plane.folder / name
        self.lib = self.folder / "lib"
        self.pod_resources = self.lib / "kubelet" / "pod-resources" / "kubelet.sock"
        self.device_plugins = self.lib / "kubelet" / "device-plugins"
        self._runtime = "/run/containerd/containerd.sock"  # as seen from inside
        self._cgroup = f"heddle-bed-{os.getpid()}-{name}"
        self._init = self._containerd = self._kubelet = None
        self._stopped = False
        plane.before_stop(self.stop)
        self._keep = stop_at_exit(self.stop)

    # Life

    def start(self, timeout=120.0):
        for folder in ("lib", "log", "run", "cni", "cni-plugins"):
            (self.folder / folder).mkdir(parents=True)
        for root in cgroup_roots():
            (root / self._cgroup).mkdir(exist_ok=True)
        self._enter()
        self._start_containerd()
        self.start_kubelet(timeout)
        return self

    def _process(self, name, arguments):
        return Process(f"{name} of {self.name}", arguments, self.plane.logs / f"{self.name}-{name}.log",
                       {"PATH": f"{self.binaries}:/usr/sbin:/usr/bin:/sbin:/bin"})

    def _enter(self):
        """The first process of the namespaces. All in them end with it."""
        binds = " && ".join(f"mount --bind {self.folder / inside} /var/{inside}" for inside in ("lib", "log"))
        self._init = self._process("init", [
            "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc",
            "sh", "-c", f"{binds} && mount --bind {self.folder / 'run'} /run && exec sleep infinity"])
        self._init.start()

        def inside():
            children = Path(f"/proc/{self._init.pid}/task/{self._init.pid}/children").read_text().split()
            first = children[0] if children else ""
            return first if Path(f"/proc/{first}/comm").read_text() == "sleep\n" else ""
        self._first = wait_for(inside, "the namespaces", 30, failed=self._init.died)

    def _inside(self, name, *arguments):
        return self._process(name, ["nsenter", "--target", self._first, "--mount", "--pid", "--",
                                    "setpriv", "--pdeathsig", "KILL", *arguments])

    def _start_containerd(self):
        config = self.folder / "containerd.toml"
        config.write_text(f"""
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "{self._runtime}"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "native"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
# Lowering oom_score_adj needs CAP_SYS_RESOURCE, which containers of CI do not have.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni", "{self.folder / 'cni-plugins'}"]
conf_dir = "{self.folder / 'cni'}"
use_internal_loopback = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
""")
        # The kubelet is Ready when there is a network.
        (self.folder / "cni" / "10-bed.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "bed", "plugins": [{"type": "bed"}]}))
        plugin = self.folder / "cni-plugins" / "bed"
        plugin.write_text(self._network)
        plugin.chmod(0o755)
        self._containerd = self._inside("containerd", self.binaries / "containerd", "--config", config)
        self._containerd.start()
        archive = make_image(self.folder / "image")
        socket = self.folder / "run" / "containerd" / "containerd.sock"
        self.wait_for(socket.exists, "containerd's socket", 60)
        self.wait_for(lambda: self.import_image(archive) is not None, "the image to be imported", 60)

    def inside(self, *command):
        """What a command prints that sees the node's files."""
        return run(["nsenter", "--target", self._first, "--mount", "--", *command]).stdout

    def images(self, *arguments):
        """containerd's own `ctr images`, on the kubelet's images."""
        return self.inside(self.binaries / "ctr", "--address", self._runtime, "--namespace", "k8s.io", "images", *arguments)

    def import_image(self, archive):
        return self.images("import", "--local", "--snapshotter", "native", archive)

    def _kubelet_arguments(self):
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": "127.0.0.1", "port": free_port(), "healthzPort": 0, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self._runtime}",
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self._cgroup}", "failCgroupV1": False, "failSwapOn": False,
            "localStorageCapacityIsolation": False, "makeIPTablesUtilChains": False, "resolvConf": "",
            # A disk that is full for others is no reason to evict ours.
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100, "imageMinimumGCAge": "24h",
            "syncFrequency": "1s", "nodeStatusUpdateFrequency": "2s"} | self._settings))
        kubeconfig = self.plane.kubeconfigs / "kubelet"
        return [self.binaries / "kubelet", f"--config={config}", f"--kubeconfig={kubeconfig}",
                f"--hostname-override={self.name}", "--cert-dir=/var/lib/kubelet/pki", "--v=2", *self._arguments]

    def start_kubelet(self, timeout=120.0):
        if self._kubelet is None:
            self._kubelet = self._inside("kubelet", *self._kubelet_arguments())
        started = time.time()
        self._kubelet.start()
        self.wait_for(self._ready, f"the Node {self.name} to be Ready", timeout)
        self.wait_for(lambda: self.pod_resources.is_socket() and self.pod_resources.stat().st_ctime >= started - 1,
                      "the kubelet's pod-resources socket", timeout)

    @contextmanager
    def kubelet_paused(self):
        """It hears of nothing meanwhile, and of all at once afterwards."""
        # nsenter stands before it, and stops and goes on as its child does.
        children = Path(f"/proc/{self._kubelet.pid}/task/{self._kubelet.pid}/children").read_text().split()
        both = [int(pid) for pid in (*children, self._kubelet.pid)]
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(both):
                os.kill(pid, signal.SIGCONT)

    def kill_kubelet(self):
        self._kubelet.kill9()

    def _ready(self):
        node = self.plane.rest.find(path("nodes", name=self.name)) or {}
        conditions = node.get("status", {}).get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def died(self):
        processes = (self._init, self._containerd, self._kubelet)
        return next((sentence for sentence in (p.died() for p in processes if p) if sentence), None)

    def wait_for(self, predicate, what, timeout=60.0):
        return wait_for(predicate, what, timeout, failed=lambda: self.plane.died() or self.died())

    def stop(self):
        """Safe to call again."""
        if self._stopped:
            return
        self._stopped = True
        for process in (self._kubelet, self._containerd, self._init):
            if process:
                process.kill9()
        for root in cgroup_roots():
            self._remove_groups(root / self._cgroup)
        self._keep()

    @staticmethod
    def _remove_groups(top):
        def remove():
            for folder, _, _ in os.walk(top, topdown=False):
                os.rmdir(folder)
            return True
        # A group is busy until the last process that was killed is gone.
        wait_for(remove, f"the cgroups below {top} to be free", 30)

    # Work

    def log_of(self, pod, container):
        """The lines that a container of a pod (the object) has written so far."""
        meta = pod["metadata"]
        folder = self.folder / "log" / "pods" / f"{meta['namespace']}_{meta['name']}_{meta['uid']}" / container
        return [line.split(" ", 3)[3] for log in sorted(folder.glob("*.log")) for line in log.read_text().splitlines()]

    def pod(self, name, container="worker", **limits):
        """A pod for this node that holds what it is given until it is deleted."""
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "nodeSelector": {"kubernetes.io/hostname": self.name}, "hostNetwork": True, "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
            "containers": [{"name": container, "image": IMAGE, "imagePullPolicy": "Never",
                            "resources": {"limits": limits}}]}}


class NodeTestCase(unittest.TestCase):
    """Tests on one real node of a control plane of their own, called BED. What a class needs on it, prepare() makes."""

    COMPONENTS = ("etcd", "apiserver", "controller-manager", "scheduler")
    NODE = "real-0"
    maxDiff = None

    @classmethod
    def prepare(cls):
        pass

    @classmethod
    def make_plane(cls, users):
        return ControlPlane(cls.BED, components=cls.COMPONENTS, users=users)

    @classmethod
    def make_node(cls):
        return RealNode(cls.plane, cls.NODE)

    @classmethod
    def setUpClass(cls):
        cls.plane = cls.make_plane({"kubelet": (f"system:node:{cls.NODE}", "system:nodes")})
        cls.addClassCleanup(cls._end)
        cls.ended_well = False
        cls.plane.start()
        cls.node = cls.make_node()
        cls.node.start()
        cls.prepare()
        cls.ended_well = True

    @classmethod
    def _end(cls):
        if not cls.ended_well:
            logs = cls.plane.copy_logs(REPOSITORY / "build" / "cluster-logs" / cls.__name__)
            print(f"    logs of the failed class: {logs.relative_to(REPOSITORY)}", file=sys.stderr)
        cls.plane.stop()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        answer = super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).ended_well = False
        return answer
