"""A cluster of N nodes on a real control plane, without agents and operator: what those would have written is written
here, once, because their own cost is bench/agent_fleet.py's and bench/lossless_fleet.py's."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cluster"), str(ROOT / "tests" / "support")]

import scenario  # noqa: E402: the path above comes first
from bed import ControlPlane, Heddle, Nodes, h100, path  # noqa: E402
from bed.heddle import NAMESPACE  # noqa: E402
from published import renamed  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
TEAM = "team"
# Heartbeats of thousands of kubelets are not what is measured, and would take half of these cores.
QUIET_NODES = {"kwok": ["--node-lease-duration-seconds=36000"],
               "controller-manager": ["--node-monitor-grace-period=36000s", "--kube-api-qps=2000", "--kube-api-burst=4000"]}


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def extender_writes(fleet):
    """Writes of the extender so far: of Gangs, of pods, of events."""
    events = [event for event in fleet.plane.audit(user="system:serviceaccount:heddle-system:heddle-extender")
              if event["verb"] in ("create", "update", "patch", "delete") and event["code"] in (200, 201)]
    return (sum(event["resource"].startswith("gangs") for event in events),
            sum(event["resource"].startswith("pods") for event in events), sum(event["resource"] == "events" for event in events))


class Fleet:
    """
        with Fleet(5000, binaries) as fleet:
            fleet.start_extender(); fleet.start_scheduler(with_extender=True)
    """

    def __init__(self, nodes, binaries, name="scale"):
        self.cluster = h100(units=(nodes + 15) // 16)
        self.plane = ControlPlane(name, arguments=QUIET_NODES)
        self.binaries = Path(binaries).resolve()
        self.heddle = None

    def __enter__(self):
        for name in ("heddle-extender", "heddle-nodeagent"):
            if not (self.binaries / name).exists():
                sys.exit(f"{self.binaries / name} is not there: build it by tools/build release {name}")
        try:
            self.plane.start()
            self._fill()
            return self
        except BaseException:
            self.plane.stop()
            raise

    def __exit__(self, *_):
        self.plane.stop()

    def _fill(self):
        started = time.monotonic()
        self.heddle = Heddle(self.plane, self.binaries)
        self.heddle.install()
        self.plane.create_namespace(TEAM, {"heddle.dev/scope": "enabled"})
        Nodes(self.plane).add(self.cluster, timeout=900)
        status = self._status()
        uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in self.plane.rest.list(path("nodes"))}

        def publish(node):
            owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uids[node.name], "controller": True,
                     "blockOwnerDeletion": False}
            self.plane.rest.create(path("nodetopologies"), {
                "apiVersion": "heddle.dev/v1alpha1", "kind": "NodeTopology",
                "metadata": {"name": node.name, "ownerReferences": [owner]}, "spec": {}})
            self.plane.rest.patch(path("nodetopologies", name=node.name, sub="status"),
                                  {"status": renamed(status, node)})
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(publish, self.cluster.nodes))
        scenario.declare_fabric(self.plane, self.cluster)
        print(f"{len(self.cluster.nodes)} nodes of 8 GPUs and their NodeTopologies made in "
              f"{time.monotonic() - started:.0f} s", flush=True)

    def _status(self):
        first = h100(units=1, nodes_per_unit=1)
        folder = self.heddle.write_machines(first)[first.nodes[0].name]
        printed = subprocess.run([self.binaries / "heddle-nodeagent", "--machine", folder, "--print", "-o", "json"],
                                 capture_output=True, text=True, check=True)
        return json.loads(printed.stdout)["status"]

    # Daemons

    @property
    def extender(self):
        return self.heddle.daemon("extender")

    def start_extender(self):
        """Seconds until it leads nothing yet but answers ready; None where it runs already."""
        if "extender" in self.heddle.daemons:
            return None
        started = time.monotonic()
        self.heddle.start_extender("--own-lease")
        return self.wait_extender_ready(started)

    def wait_extender_ready(self, started):
        import urllib.request

        def ready():
            with urllib.request.urlopen(f"http://127.0.0.1:{self.heddle.extender_port}/readyz", timeout=5) as answer:
                return answer.status == 200
        self.heddle.wait_for(ready, "the extender to be ready", 300)
        return time.monotonic() - started

    def start_scheduler(self, with_extender):
        """The chart's scheduler; without its extender it is the same scheduler without us."""
        made = self.plane.rest.get(path("configmaps", NAMESPACE, "heddle-scheduler"))
        config = json.loads(made["data"]["config.json"])
        config["leaderElection"] = {"leaderElect": False}
        if with_extender:
            config["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{self.heddle.extender_port}"
        else:
            config["extenders"] = []
        kubeconfig = self.heddle._account("scheduler")
        config["clientConnection"] |= {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000}
        file = self.plane.folder / "scale-scheduler.json"
        file.write_text(json.dumps(config))
        self.heddle._daemon("scheduler", self.plane.binaries / "kube-scheduler", [
            f"--config={file}", f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1", f"--secure-port={self.heddle.scheduler_port}",
            f"--cert-dir={self.plane.folder / 'scale-scheduler'}"])

    def stop_scheduler(self):
        self.heddle.stop_daemon("scheduler")
        del self.heddle.daemons["scheduler"]

    def empty(self):
        """Everything that runs for the team ends."""
        self.plane.kubectl("-n", TEAM, "delete", "jobs", "--all", "--cascade=background", "--wait=false")
        pods = self.plane.pods(TEAM)
        lone = [pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("ownerReferences")]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self.plane.rest.delete(path("pods", TEAM, name), gracePeriodSeconds=0), lone))

        def gone():
            return not self.plane.rest.get(path("pods", TEAM), limit=1)["items"]
        self.heddle.wait_for(gone, "an empty namespace", 600)

    def settle(self, seconds=2.0):
        """Until the API server and the extender have nothing left to do."""
        quiet = 0.0
        while quiet < seconds:
            pids = [self.plane.process("apiserver").pid]
            if "extender" in self.heddle.daemons:
                pids.append(self.extender.pid)
            before = sum(cpu_seconds(pid) for pid in pids)
            time.sleep(0.5)
            busy = sum(cpu_seconds(pid) for pid in pids) - before
            quiet = quiet + 0.5 if busy < 0.1 else 0.0


class Watch:
    """Changes of one resource as they arrive: `see` gets (event, seconds), on a thread of its own.

    The API server ends the watch of whoever reads more slowly than things happen, by a reset where bytes of it are unread;
    it goes on from where it was. Only one that ends so twice without a word between is lost.
    """

    def __init__(self, plane, where, see):
        self._plane, self._where, self._see = plane, where, see
        self._closed = False
        self._version = plane.rest.get(where, limit=1)["metadata"]["resourceVersion"]
        for thing in plane.rest.list(where):
            see({"type": "ADDED", "object": thing}, time.monotonic())
        self._process = self._start()
        threading.Thread(target=self._read, daemon=True).start()

    def _start(self):
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", self._plane.binaries / "kubectl", "get", "--raw",
             f"{self._where}?watch=true&resourceVersion={self._version}"],
            stdout=subprocess.PIPE, env=os.environ | self._plane.tool_environment())

    def _read(self):
        cut = False
        while not self._closed:
            for line in self._process.stdout:
                now = time.monotonic()
                try:
                    event = json.loads(line)
                except json.JSONDecodeError:
                    break  # cut in the middle: the rest comes again from the version before it
                cut = False
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the watch of {self._where} is lost: {event['object'].get('message')}")
                self._version = event["object"]["metadata"]["resourceVersion"]
                self._see(event, now)
            code = self._process.wait()
            if self._closed:
                return
            if code != 0 and cut:
                raise RuntimeError(f"the watch of {self._where} ended with {code}, twice")
            cut = code != 0
            self._process = self._start()

    def close(self):
        self._closed = True
        self._process.kill()
        self._process.wait()


class Binds:
    """When each pod of a namespace was bound, as a watch sees it; `ungated`: when it was let go."""

    def __init__(self, plane, namespace):
        self.bound, self.ungated = {}, {}
        self._watch = Watch(plane, path("pods", namespace), self._see)

    def _see(self, event, now):
        pod = event["object"]
        if event["type"] not in ("ADDED", "MODIFIED"):
            return
        name, spec = pod["metadata"]["name"], pod["spec"]
        if not spec.get("schedulingGates"):
            self.ungated.setdefault(name, now)
        if spec.get("nodeName"):
            self.bound.setdefault(name, now)

    def wait(self, count, timeout=900):
        limit = time.monotonic() + timeout
        while len(self.bound) < count:
            if time.monotonic() > limit:
                raise TimeoutError(f"{len(self.bound)} of {count} pods bound after {timeout} s")
            time.sleep(0.05)

    def rate(self):
        """Pods a second between the first bind and the last."""
        times = sorted(self.bound.values())
        return (len(times) - 1) / (times[-1] - times[0])

    def close(self):
        self._watch.close()
